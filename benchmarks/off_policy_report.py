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

In TD3, SBX's actor climbs the smaller of both critics' values; ours follows the paper, the first's. SBX adds the \
exploration noise to its first, random actions too. SBX's targets move at every update; ours, as in the paper, with \
the actor, at every second one. Ours has therefore a tau that moves them as far in one move as theirs in two: \
1 - (1 - 0.005)^2. With 0.005, as the paper has it, ours learned more slowly: in HalfCheetah 1,824 and 2,250 (seeds 0 \
and 1), in Pendulum -124 in the end but -1,280 in the first quarter. That was seen first, and tau was \
then matched for this reason; the runs above are the first with the matched one.

What it comes to: DQN and TD3 reach what SBX's reach, as far as three seeds can tell.
"""
