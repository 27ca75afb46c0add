"""What our DQN and TD3 learn, beside SBX's with the same networks, settings and budgets of steps.

    python benchmarks/off_policy_learning.py [--only ENV] [--library ours|sbx] [--seeds 3] [--threads 1] [--again]
                                             [--report]

Each (environment, library, seed) is a process of its own (`off_policy_run.py`) and leaves a line of JSON in
`results/off_policy_learning/runs.jsonl`; what is there already is not run again, unless its settings have changed.
Printed is a table of all that is there; with `--report` it is written to docs/results/off_policy.md too, and nothing is
run. SBX lives in `.venv-peers` (see `peers.py`).
"""

from __future__ import annotations

from learning import Comparison
from off_policy_report import page, table

SHARED = {
    "DQN": {
        "gamma": 0.99,
        "learning_starts": 1_000,
        "tau": 1.0,
        "double": False,
        "huber": True,
        "exploration_initial_eps": 1.0,
        "hidden": [256, 256],
    },
    "TD3": {
        "learning_rate": 1e-3,
        "batch_size": 256,
        "tau": 0.005,
        "train_freq": 50,
        "gradient_steps": 50,
        "exploration_noise": 0.1,
        "policy_delay": 2,
        "target_policy_noise": 0.2,
        "target_noise_clip": 0.5,
        "hidden": [256, 256],
    },
}
"""For both sides, under our names."""
CASES = {
    # Environment: algorithm, budget, and the rest of its settings.
    "CartPole-v1": (
        "DQN",
        50_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_final_eps": 0.04,
            "exploration_steps": 8_000,
        },
    ),
    "LunarLander-v3": (
        "DQN",
        100_000,
        {
            "learning_rate": 6.3e-4,
            "batch_size": 128,
            "buffer_size": 50_000,
            "target_update_interval": 250,
            "train_freq": 4,
            "gradient_steps": 4,
            "exploration_final_eps": 0.1,
            "exploration_steps": 12_000,
        },
    ),
    "Pendulum-v1": ("TD3", 20_000, {"gamma": 0.98, "buffer_size": 200_000, "learning_starts": 1_000}),
    "HalfCheetah-v5": ("TD3", 50_000, {"gamma": 0.99, "buffer_size": 1_000_000, "learning_starts": 10_000}),
}


def asked(env, library, seed, threads):
    """What `off_policy_run.py` is to do."""
    algorithm, timesteps, differing = CASES[env]
    run = {"env": env, "library": library, "seed": seed, "threads": threads, "timesteps": timesteps}
    settings = SHARED[algorithm] | differing
    if algorithm == "TD3" and library == "ours":
        # SBX moves its targets at every update, ours with the policy: as far in one move as theirs in so many.
        settings["tau"] = 1 - (1 - settings["tau"]) ** settings["policy_delay"]
    return {**run, "algorithm": algorithm, "settings": settings}


COMPARISON = Comparison(
    name="off_policy_learning",
    script="off_policy_run.py",
    environments=CASES,
    peer="sbx",
    asked=asked,
    table=table,
    page=lambda runs: page(runs, CASES, SHARED),
    page_file="docs/results/off_policy.md",
)

if __name__ == "__main__":
    COMPARISON.main(__doc__)
