"""Tables of the comparisons of `learning.py`, from the runs they recorded: (env, library, seed) -> what was found."""

from __future__ import annotations

import numpy as np

NAMES = {"ours": "steadyrl", "sb3": "Stable-Baselines3", "sbx": "SBX"}
QUARTERS = 4
HOW_TO_READ = (
    "Each seed's number is the mean of its episodes. Seconds are of training, mean over seeds; other work may have run "
    "on the machine at the time."
)


def table(runs, kinds):
    """Final policies: mean over seeds, and each seed's mean over its episodes; `kinds` of acting -> their titles."""
    evaluations = [title for kind in kinds.values() for title in (kind, "each seed")]
    titles = ("environment", "library", "seeds", "steps", *evaluations, "seconds")
    rows = []
    for env, library, some in _groups(runs):
        cells = [env, NAMES[library], str(len(some)), f"{np.mean([run['timesteps'] for run in some]):,.0f}"]
        for kind in kinds:
            means = [float(np.mean(run[kind])) for run in some]
            cells += [_number(np.mean(means)), " / ".join(map(_number, means))]
        rows.append([*cells, f"{np.mean([run['seconds'] for run in some]):.0f}"])
    return markdown(titles, rows)


def curves(runs):
    """Returns while training, by quarter of the budget: means over the episodes of all seeds."""
    titles = ("environment", "library", *(f"quarter {q + 1}" for q in range(QUARTERS)))
    rows = []
    for env, library, some in _groups(runs):
        parts = [_by_quarter(run["curve"], run["asked"]["timesteps"]) for run in some]
        episodes, totals = np.sum(parts, axis=0)
        rows.append([env, NAMES[library], *map(_number, totals / episodes)])
    return markdown(titles, rows)


def _by_quarter(curve, budget):
    """Episodes and their summed returns, [2, QUARTERS]; a record that lies in two quarters is shared by its steps."""
    ends, episodes, returns = np.array(curve).T
    starts = np.concatenate([[0], ends[:-1]])
    edges = np.linspace(0, budget, QUARTERS + 1)
    edges[-1] = max(budget, ends[-1])  # The last update may end beyond the budget.
    overlap = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    weights = np.maximum(overlap, 0) / (ends - starts)[:, None] * episodes[:, None]
    return weights.sum(axis=0), returns @ weights


def provenance(runs, name):
    """When, where, with which versions and by which commands: the head of a page."""
    one = next(iter(runs.values()))
    dates = sorted({run["date"] for run in runs.values()})
    versions = sorted({f"{package} {number}" for run in runs.values() for package, number in run["versions"].items()})
    commits = sorted({run.get("code") or "an unrecorded commit" for run in runs.values() if run["library"] == "ours"})
    code = f" Commits of steadyrl (+: with changes): {', '.join(commits)}." if commits else ""
    threads = sorted({run["asked"]["threads"] for run in runs.values()})
    return f"""Written by a script; do not edit. Runs of {" to ".join(dict.fromkeys((dates[0], dates[-1])))}, each \
with {" or ".join(map(str, threads))} thread(s) on a machine of {one["cores"]} cores ({one["machine"]}, Python \
{one["python"]}). {", ".join(versions)}.{code}

    python benchmarks/{name}.py           # runs what is missing in results/{name}
    python benchmarks/{name}.py --report  # writes this page"""


def evaluation_episodes(runs):
    """How many episodes each final policy played."""
    return len(next(iter(runs.values()))["deterministic"])


def described(settings):
    """Settings in a line."""
    return ", ".join(f"{name} {'x'.join(map(str, v)) if isinstance(v, list) else v}" for name, v in settings.items())


def markdown(titles, rows):
    """A table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _groups(runs):
    for env, library in dict.fromkeys((env, library) for env, library, _ in sorted(runs)):
        yield env, library, [runs[key] for key in sorted(runs) if key[:2] == (env, library)]


def _number(x):
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.1f}"
