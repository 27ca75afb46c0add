"""What our PPO learns, beside Stable-Baselines3's with the same networks, settings and budgets of steps.

    python benchmarks/ppo_learning.py [--only ENV] [--library ours|sb3] [--seeds 3] [--threads 1] [--again] [--report]

Each (environment, library, seed) is a process of its own (`ppo_run.py`) and leaves a line of JSON in
`results/ppo_learning/runs.jsonl`; what is there already is not run again, unless its settings have changed. Printed is
a table of all that is there; with `--report` it is written to docs/results/ppo.md too, and nothing is run.
Stable-Baselines3 lives in `.venv-peers` (see `peers.py`).
"""

from __future__ import annotations

from learning import Comparison
from ppo_report import page, table

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


def asked(env, library, seed, threads):
    """What `ppo_run.py` is to do."""
    timesteps, episodes, (envs, steps), differing = CASES[env]
    batch = {"episodes_per_update": episodes} if library == "ours" else {"sb3_envs": envs, "sb3_steps": steps}
    run = {"env": env, "library": library, "seed": seed, "threads": threads, "timesteps": timesteps}
    return {**run, **batch, "settings": SHARED | differing}


COMPARISON = Comparison(
    name="ppo_learning",
    script="ppo_run.py",
    environments=CASES,
    peer="sb3",
    asked=asked,
    table=table,
    page=lambda runs: page(runs, CASES, SHARED),
    page_file="docs/results/ppo.md",
)

if __name__ == "__main__":
    COMPARISON.main(__doc__)
