"""Tables and page of `ppo_learning.py`, from the runs it recorded: (env, library, seed) -> what was found."""

from __future__ import annotations

import numpy as np

NAMES = {"ours": "steadyrl", "sb3": "Stable-Baselines3"}
QUARTERS = 4


def table(runs):
    """Final policies: mean over seeds, and each seed's mean over its episodes."""
    titles = (
        "environment",
        "library",
        "seeds",
        "steps",
        "deterministic",
        "each seed",
        "sampled",
        "each seed",
        "seconds",
    )
    rows = []
    for env, library, some in _groups(runs):
        cells = [env, NAMES[library], str(len(some)), f"{np.mean([run['timesteps'] for run in some]):,.0f}"]
        for kind in ("deterministic", "stochastic"):
            means = [float(np.mean(run[kind])) for run in some]
            cells += [_number(np.mean(means)), " / ".join(map(_number, means))]
        rows.append([*cells, f"{np.mean([run['seconds'] for run in some]):.0f}"])
    return _markdown(titles, rows)


def curves(runs):
    """Returns while training, by quarter of the budget: means over the episodes of all seeds."""
    titles = ("environment", "library", *(f"quarter {q + 1}" for q in range(QUARTERS)))
    rows = []
    for env, library, some in _groups(runs):
        parts = [_by_quarter(run["curve"], run["asked"]["timesteps"]) for run in some]
        episodes, totals = np.sum(parts, axis=0)
        rows.append([env, NAMES[library], *map(_number, totals / episodes)])
    return _markdown(titles, rows)


def _by_quarter(curve, budget):
    """Episodes and their summed returns, [2, QUARTERS]; a record that lies in two quarters is shared by its steps."""
    ends, episodes, returns = np.array(curve).T
    starts = np.concatenate([[0], ends[:-1]])
    edges = np.linspace(0, budget, QUARTERS + 1)
    edges[-1] = max(budget, ends[-1])  # The last update may end beyond the budget.
    overlap = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    weights = np.maximum(overlap, 0) / (ends - starts)[:, None] * episodes[:, None]
    return weights.sum(axis=0), returns @ weights


def page(runs, cases, shared):
    """docs/results/ppo.md."""
    one = next(iter(runs.values()))
    episodes = len(one["deterministic"])
    dates = sorted({run["date"] for run in runs.values()})
    versions = sorted({f"{name} {number}" for run in runs.values() for name, number in run["versions"].items()})
    commits = sorted({run.get("code") or "an unrecorded commit" for run in runs.values() if run["library"] == "ours"})
    code = f" Commits of steadyrl (+: with changes): {', '.join(commits)}." if commits else ""
    threads = sorted({run["asked"]["threads"] for run in runs.values()})
    settings = _markdown(
        ("environment", "our update", "their update", "differs from the shared settings"),
        [
            [env, f"{n} episodes", f"{envs} x {steps} steps", _settings(differing) or "nothing"]
            for env, (_, n, (envs, steps), differing) in cases.items()
        ],
    )
    return f"""# PPO beside Stable-Baselines3's

Written by a script; do not edit. Runs of {" to ".join(dict.fromkeys((dates[0], dates[-1])))}, each with \
{" or ".join(map(str, threads))} thread(s) on a machine of {one["cores"]} cores ({one["machine"]}, Python \
{one["python"]}). {", ".join(versions)}.{code}

    python benchmarks/ppo_learning.py           # runs what is missing in results/ppo_learning
    python benchmarks/ppo_learning.py --report  # writes this page

Final policies, {episodes} episodes from the same fixed seeds, undiscounted return: with the likeliest or mean action \
("deterministic") and with sampled ones. Each seed's number is the mean of its episodes. Seconds are of training, mean \
over seeds; other work may have run on the machine at the time.

{table(runs)}

Returns while training, by quarter of the budget:

{curves(runs)}

## Settings

Both sides: {_settings(shared)}. Networks are separate for policy and value, with ReLU.

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


def _groups(runs):
    for env, library in dict.fromkeys((env, library) for env, library, _ in sorted(runs)):
        yield env, library, [runs[key] for key in sorted(runs) if key[:2] == (env, library)]


def _settings(values):
    return ", ".join(f"{name} {'x'.join(map(str, v)) if isinstance(v, list) else v}" for name, v in values.items())


def _number(x):
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.1f}"


def _markdown(titles, rows):
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
