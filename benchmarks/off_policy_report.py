"""Table and page of `off_policy_learning.py`, from the runs it recorded: (env, library, seed) -> what was found."""

from __future__ import annotations

import learning_report
from learning_report import HOW_TO_READ, curves, described, evaluation_episodes, markdown, provenance


def table(runs):
    """Final policies without exploration."""
    return learning_report.table(runs, {"deterministic": "greedy"})


def page(runs, cases, shared):
    """docs/results/off_policy.md."""
    settings = markdown(
        ("environment", "agent", "settings of its own"),
        [[env, algorithm, described(own)] for env, (algorithm, _, own) in cases.items()],
    )
    return f"""# DQN and TD3 beside SBX's

{provenance(runs, "off_policy_learning")}

Final policies without exploration, {evaluation_episodes(runs)} episodes from the same fixed seeds, undiscounted \
return. {HOW_TO_READ}

{table(runs)}

Returns while training, with exploration, by quarter of the budget:

{curves(runs)}

## Settings

Both sides, all networks with ReLU:

- DQN: {described(shared["DQN"])};
- TD3: {described(shared["TD3"])}.

{settings}

DQN's are those of RL Baselines3 Zoo, but that there LunarLander learns from its first step; TD3's are near to its. \
None was chosen for ours. DQN's target is the plain one, not that of double DQN, and its loss Huber's: SBX \
knows no other.

What still differs: SBX's layers start from LeCun's normal distribution with biases of 0, ours from PyTorch's uniform \
one. SBX's budget may be exceeded by a part of a round of train_freq steps.

In TD3, SBX's actor climbs the smaller of both critics' values, and its targets move at every update, before the actor \
does; ours follows the paper: the actor climbs the first critic, and the targets move with the actor, at every second \
update, so that with the same tau they follow half as fast. SBX adds the exploration noise to its first, random \
actions too.

What it comes to: DQN and, in Pendulum, TD3 reach what SBX's reach, as far as three seeds can tell. In HalfCheetah \
after 50,000 steps ours is behind; our second seed was run when the first was seen to be. One seed of theirs and \
two of ours cannot say by how much; but ours learns later in Pendulum too, which fits targets that follow half as \
fast. That this is the reason has not been tried.
"""
