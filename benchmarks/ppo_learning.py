"""What our PPO learns, beside Stable-Baselines3's with the same networks, settings and budgets of steps.

    python benchmarks/ppo_learning.py [--only ENV] [--library ours|sb3] [--seeds 3] [--threads 1] [--again] [--report]

Each (environment, library, seed) is a process of its own (`ppo_run.py`) and leaves a line of JSON in
`results/ppo_learning/runs.jsonl`; what is there already is not run again, unless its settings have changed. Printed is
a table of all that is there; with `--report` it is written to docs/results/ppo.md too, and nothing is run.
Stable-Baselines3 lives in `.venv-peers` (see `peers.py`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import peers
from ppo_report import page, table

RUN = Path(__file__).with_name("ppo_run.py")
PAGE = peers.ROOT / "docs/results/ppo.md"
SHARED = {
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "policy_learning_rate": 3e-4,
    "inner_updates": 10,
    "minibatch_size": 64,
    "clip_range": 0.2,
    "entropy_coefficient": 0.0,
    "value_coefficient": 0.5,
    "max_gradient_norm": 0.5,
    "normalise_advantages": True,
    "hidden": [64, 64],
    "initial_log_std": -0.5,
    "normalise_observations": False,
}
"""For both sides, under our names."""
CASES = {
    # Environment: budget; whole episodes of an update of ours; environments and steps in each of an update of theirs,
    # about as many steps in all; and what differs from SHARED.
    "CartPole-v1": (100_000, 8, (8, 256), {"policy_learning_rate": 1e-3}),
    "Acrobot-v1": (
        200_000,
        10,
        (16, 256),
        {"policy_learning_rate": 1e-3, "inner_updates": 4, "entropy_coefficient": 0.01},
    ),
    "Pendulum-v1": (200_000, 20, (4, 1000), {"gamma": 0.9, "policy_learning_rate": 1e-3}),
    "HalfCheetah-v5": (500_000, 2, (2, 1000), {"hidden": [256, 256], "normalise_observations": True}),
}
LIBRARIES = ("ours", "sb3")


def asked(env, library, seed, threads):
    """What `ppo_run.py` is to do."""
    timesteps, episodes, (envs, steps), differing = CASES[env]
    batch = {"episodes_per_update": episodes} if library == "ours" else {"sb3_envs": envs, "sb3_steps": steps}
    run = {"env": env, "library": library, "seed": seed, "threads": threads, "timesteps": timesteps}
    return {**run, **batch, "settings": SHARED | differing}


def finished(file):
    """The runs in the file whose settings are still those above: (env, library, seed) -> what was asked and found."""
    lines = file.read_text().splitlines() if file.exists() else []
    runs = (json.loads(line) for line in lines)
    return {_key(run): run for run in runs if run["env"] in CASES and run["asked"] == _asked_again(run)}


def _asked_again(run):
    return asked(*_key(run), run["asked"]["threads"])


def _key(run):
    return run["env"], run["library"], run["seed"]


def commit():
    """The commit that our library is at, with a + if files of it have changed since."""
    git = ["git", "-C", peers.ROOT]
    head, changes = (
        subprocess.run([*git, *command], capture_output=True, text=True).stdout.strip()
        for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "src"])
    )
    return head + "+" * bool(changes)


def do(file, env, library, seed, threads):
    """One run, and its line in the file."""
    run = asked(env, library, seed, threads)
    python = {} if library == "sb3" else {"python": sys.executable}
    code = commit()
    printed = peers.run(RUN, json.dumps(run), threads=threads, **python)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "code": code if library == "ours" else None}
    today = datetime.date.today().isoformat()
    found = {"env": env, "library": library, "seed": seed, "date": today, **machine, "asked": run}
    with file.open("a") as lines:
        lines.write(json.dumps(found | json.loads(printed)) + "\n")


def main() -> None:
    """Run what is missing, and print or write what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, nargs="+", default=list(CASES), help="these environments")
    parser.add_argument("--library", choices=LIBRARIES, help="one of the two")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0, 1, ... of each")
    parser.add_argument("--threads", type=int, default=1, help="threads for matrix products")
    parser.add_argument("--out", type=Path, default=peers.ROOT / "results/ppo_learning", help="where results are kept")
    parser.add_argument("--again", action="store_true", help="run also what is there; the newest counts")
    parser.add_argument("--report", action="store_true", help="run nothing; write the page from what is there")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "runs.jsonl"
    libraries = [options.library] if options.library else LIBRARIES
    if not options.report:
        if "sb3" in libraries:
            peers.install()
        wanted = [(env, lib, seed) for env in options.only for seed in range(options.seeds) for lib in libraries]
        for key in wanted:
            if options.again or key not in finished(file):
                print(f"{key[0]}, {key[1]}, seed {key[2]} ...", flush=True)
                do(file, *key, options.threads)
    runs = finished(file)
    if not runs:
        sys.exit(f"There are no results in {file} yet.")
    print(table(runs))
    if options.report:
        PAGE.write_text(page(runs, CASES, SHARED))


if __name__ == "__main__":
    main()
