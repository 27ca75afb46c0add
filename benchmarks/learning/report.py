"""Tables and pages of `compare.py`, from the runs that it recorded: (environment, library, seed) -> result."""

from __future__ import annotations

import numpy as np

from studies import markdown_page

NAMES = {"ours": "steadyrl", "sb3": "Stable-Baselines3", "sbx": "SBX"}
QUARTERS = 4
HOW_TO_READ = (
    "Each seed's number is the mean over its episodes. Seconds are the training time, averaged over seeds; other work "
    "may have run on the machine at the time."
)


def page(family, runs):
    """The page of a family."""
    text = family.text["page"].format(
        table=table(family, runs),
        episodes=len(next(iter(runs.values()))["deterministic"]),
        how_to_read=HOW_TO_READ,
        curves=curves(runs),
        provenance=provenance(family, runs),
        shared={algorithm: describe(settings) for algorithm, settings in family.shared.items()},
        cases=case_table(family),
    )
    return markdown_page.wrap(text)


def table(family, runs):
    """Final policies: mean over seeds, and each seed's mean over its episodes."""
    evaluations = [title for kind in family.evaluations.values() for title in (kind, "each seed")]
    head = ("environment", "library", "seeds", "steps", *evaluations, "seconds")
    rows = []
    for env, library, group in _groups(runs):
        cells = [env, NAMES[library], str(len(group)), f"{np.mean([run['timesteps'] for run in group]):,.0f}"]
        for kind in family.evaluations:
            means = [float(np.mean(run[kind])) for run in group]
            cells += [_number(np.mean(means)), " / ".join(map(_number, means))]
        rows.append([*cells, f"{np.mean([run['seconds'] for run in group]):.0f}"])
    return markdown_page.table(head, rows)


def curves(runs):
    """Returns during training, by quarter of the budget: means over the episodes of all seeds."""
    head = ("environment", "library", *(f"quarter {q + 1}" for q in range(QUARTERS)))
    rows = []
    for env, library, group in _groups(runs):
        parts = [_by_quarter(run["curve"], run["asked"]["timesteps"]) for run in group]
        episodes, totals = np.sum(parts, axis=0)
        rows.append([env, NAMES[library], *map(_number, totals / episodes)])
    return markdown_page.table(head, rows)


def case_table(family):
    """The settings of each environment."""
    rows = []
    for env, case in family.cases.items():
        known = {**case.get("ours", {}), **case.get("theirs", {}), "algorithm": case["algorithm"]}
        cells = [template.format(settings=describe(case["settings"]), **known) for template in family.columns.values()]
        rows.append([env, *cells])
    return markdown_page.table(["environment", *family.columns], rows)


def provenance(family, runs):
    """When, where, with which versions and by which commands the runs were made."""
    one = next(iter(runs.values()))
    dates = sorted({run["date"] for run in runs.values()})
    versions = sorted({f"{package} {number}" for run in runs.values() for package, number in run["versions"].items()})
    commits = sorted({run.get("code") or "an unrecorded commit" for run in runs.values() if run["library"] == "ours"})
    code = f" Commits of steadyrl (+: with changes): {', '.join(commits)}." if commits else ""
    threads = sorted({run["asked"]["threads"] for run in runs.values()})
    command = f"python -m benchmarks.learning.compare {family.name}"
    return f"""Written by a script; do not edit. Runs of {" to ".join(dict.fromkeys((dates[0], dates[-1])))}, each \
with {" or ".join(map(str, threads))} thread(s) on a machine of {one["cores"]} cores ({one["machine"]}, Python \
{one["python"]}). {", ".join(versions)}.{code}

    {command}           # runs what is missing
    {command} --report  # writes this page"""


def describe(settings):
    """Settings in a line."""
    return ", ".join(f"{name} {'x'.join(map(str, v)) if isinstance(v, list) else v}" for name, v in settings.items())


def _by_quarter(curve, budget):
    """Episodes and their summed returns, [2, QUARTERS]; a record that lies in two quarters is shared by its steps."""
    ends, episodes, returns = np.array(curve).T
    starts = np.concatenate([[0], ends[:-1]])
    edges = np.linspace(0, budget, QUARTERS + 1)
    edges[-1] = max(budget, ends[-1])  # The last update may end beyond the budget.
    overlap = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    weights = np.maximum(overlap, 0) / (ends - starts)[:, None] * episodes[:, None]
    return weights.sum(axis=0), returns @ weights


def _groups(runs):
    for env, library in dict.fromkeys((env, library) for env, library, _ in sorted(runs)):
        yield env, library, [runs[key] for key in sorted(runs) if key[:2] == (env, library)]


def _number(x):
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.1f}"
