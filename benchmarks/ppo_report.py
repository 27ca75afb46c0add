"""Table and page of `ppo_learning.py`, from the runs it recorded: (env, library, seed) -> what was found."""

from __future__ import annotations

import learning_report
from learning_report import HOW_TO_READ, curves, described, evaluation_episodes, markdown, provenance


def table(runs):
    """Final policies, with the likeliest or mean action and with sampled ones."""
    return learning_report.table(runs, {"deterministic": "deterministic", "stochastic": "sampled"})


def page(runs, cases, shared):
    """docs/results/ppo.md."""
    settings = markdown(
        ("environment", "our update", "their update", "differs from the shared settings"),
        [
            [env, f"{n} episodes", f"{envs} x {steps} steps", described(differing) or "nothing"]
            for env, (_, n, (envs, steps), differing) in cases.items()
        ],
    )
    return f"""# PPO beside Stable-Baselines3's

{provenance(runs, "ppo_learning")}

Final policies, {evaluation_episodes(runs)} episodes from the same fixed seeds, undiscounted return: with the \
likeliest or mean action ("deterministic") and with sampled ones. {HOW_TO_READ}

{table(runs)}

Returns while training, by quarter of the budget:

{curves(runs)}

## Settings

Both sides: {described(shared)}. Networks are separate for policy and value, with ReLU.

{settings}

They were chosen for Stable-Baselines3, nothing for ours: known good ones, but for Acrobot, where five were tried by \
hand on its seed 0 and the best kept (with a learning rate of 0.0003 it learned later, and with observations \
normalised too, not at all). That seed is among those above.

What still differs: ours updates from whole episodes, theirs from a number of steps, so that where lengths vary the \
sizes of updates do too (the number of gradient steps per step of the environment hardly does). Our values learn from \
rewards to go, theirs from advantage plus value; our advantages are normalised over the batch, theirs over each \
minibatch; our gradients are shortened for each network, theirs for both together. Stable-Baselines3 initialises its \
layers orthogonally and draws real-valued actions around an unbounded mean, ours around the tanh of the network's \
output; both clip actions to the range. Rewards are normalised by neither.
"""
