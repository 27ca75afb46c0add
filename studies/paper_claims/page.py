"""docs/results/README.md, the table in the project's README, and the figures beside them, from the results files."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

from steadyrl.reports.final_table import final_section
from steadyrl.reports.results.draw import draw_results
from steadyrl.reports.results.file import read_results
from steadyrl.reports.results.results import Results
from steadyrl.reports.seed_statistics import CONCLUSIVE_SEEDS, COVERAGE
from studies.markdown_page import fill, table
from studies.paper_claims.claims_file import Domain
from studies.paper_claims.measured import Measured, ResultsSource
from studies.paper_claims.rules import HOLDS, NOT_RUN, ONLY, OTHER, VERDICTS, Claim, Judged, Tried, judge

START, END = "<!-- paper results: python -m studies.paper_claims -->", "<!-- end of paper results -->"
PICTURES = {
    "learning_curves.png": ".png",
    "learning_curves_by_steps.png": "_td.png",
    "risk_curves.png": "_risk.png",
    "risk_curves_by_steps.png": "_td_risk.png",
    "distributions.png": "_returns.png",
    "sensitivity.png": "_sensitivity.png",
    "lambda_curves.png": "_lambda_curves.png",
}
"""A figure of `steadyrl reproduce` -> the end of its name in docs/results."""
ANSWERS = {True: "true", False: "false", None: "open"}
RULES = """A condition on numbers is true if it is true for all values within the 95 % intervals, false if it is true
for none of them, and open otherwise. A claim **holds** if its conditions are true with the settings that the paper
prints, **holds as printed only** if other settings refute it, **holds with other settings** if it needs them, **does
not hold** if one of them is false as printed, and is **inconclusive** otherwise. Methods called "printed" have the
settings of the paper's appendix. Of the two studies of lambda, curves of the paper's own values have printed settings,
and the study over decades has other ones; methods are compared at the lambdas that both have tried. The conditions are
in [claims.toml](../../studies/paper_claims/claims.toml)."""
SEEDS_RULE = """With fewer than {least} seeds a condition is always open. Bootstrap intervals over few seeds are too
narrow: for normally distributed values, the nominal 95 % interval covers the mean in {coverage} of samples."""


def results_file(folder: Path, domain: str) -> Path:
    """The published results of a domain."""
    return folder / f"{domain}.json.gz"


class Pages:
    """Everything that is written, for one folder of results."""

    def __init__(self, folder: Path, domains: dict[str, Domain], claims: Sequence[Claim]) -> None:
        self.folder, self.domains = folder, domains
        self.sources = {
            name: ResultsSource(results_file(folder, name)) for name in domains if results_file(folder, name).is_file()
        }
        self.judged = {
            name: [judge(c, self.sources.get(name), domain.choices) for c in claims if c.domain == name]
            for name, domain in domains.items()
        }

    def claims_page(self) -> str:
        """The page of claims."""
        rows = [
            [f"[{domain.title}](#{_anchor(domain.title)})", *self._counts(name)]
            for name, domain in self.domains.items()
        ]
        parts = [
            "# The paper, claim by claim",
            "What Luo et al. (2023) say about their experiments, and what the runs here say about it.",
            table(["domain", *VERDICTS], rows, left=1),
            fill(" ".join(RULES.split()), 110),
            fill(" ".join(_seeds_rule().split()), 110),
            "This page is written by `python -m studies.paper_claims` from the results beside it.",
            *(self._section(domain) for domain in self.domains.values()),
        ]
        return "\n\n".join(parts) + "\n"

    def _counts(self, name: str) -> list[str]:
        counts = Counter(judged.verdict for judged in self.judged[name])
        return [str(counts[verdict] or "") for verdict in VERDICTS]

    def _section(self, domain: Domain) -> str:
        judged = self.judged[domain.name]
        parts = [
            f"## {domain.title}",
            self._origin(domain),
            table(
                ["claim", "paper", "verdict", "as printed", "with other settings", "seeds", "figure"],
                [self._row(one) for one in judged],
            ),
        ]
        if others := [row for one in judged for row in _rows_of_other_settings(one)]:
            parts += [
                f"### Numbers with other settings: {domain.title}",
                table(["claim", "settings", "true?", "numbers"], others),
            ]
        if source := self.sources.get(domain.name):
            finals = final_section(source.results)
            parts.append(finals.replace("## Final policies", f"### Final policies: {domain.title}"))
            parts.append(self._pictures(domain, source.results))
        return "\n\n".join(part for part in parts if part)

    def _origin(self, domain: Domain) -> str:
        if domain.name not in self.sources:
            return f"Not run yet. To train it: `steadyrl reproduce {domain.name}`."
        file, made = results_file(self.folder, domain.name).name, self.sources[domain.name].results.provenance
        commits = f", {short_commits(made.commit)}" * bool(made.commit)
        text = (
            f"Numbers are interquartile means over seeds, from [{file}]({file}) (runs until {made.date}{commits}). To "
            "draw its tables and figures, and to train it:"
        )
        commands = f"steadyrl reproduce {domain.name} --from docs/results/{file}\n{made.command}"
        return f"{fill(text, 110)}\n\n{indent(commands, '    ')}"

    def _row(self, judged: Judged) -> list[str]:
        claim, printed = judged.claim, [tried for tried in judged.tried if tried.printed]
        seeds = sorted({count for tried in judged.tried for count in tried.seeds})
        shown = "" if not seeds else f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        figure = f"[figure]({claim.figure})" if judged.tried and (self.folder / claim.figure).is_file() else ""
        others = "; ".join(f"{label}: {ANSWERS[tried.answer]}" for label, tried in _other_settings(judged))
        verdict = judged.verdict if judged.verdict == NOT_RUN else f"**{judged.verdict}**"
        return [claim.text, claim.paper, verdict, " ".join(map(_numbers, printed)), others, shown, figure]

    def _pictures(self, domain: Domain, results: Results) -> str:
        """Those that are drawn from these results: others of the same names are of earlier runs."""
        units = results.experiment.by_unit()
        names = [
            f"{domain.name}{end}"
            for figure, end in PICTURES.items()
            if not figure.startswith(("learning_curves", "risk_curves"))
            or ("timesteps" if "by_steps" in figure else "episodes") in units
        ]
        return "\n".join(f"![{domain.title}: {name}]({name})" for name in names if (self.folder / name).is_file())

    def readme_table(self) -> str:
        """The table in the project's README: the risk-neutral method, MG as printed, and MG with other settings."""
        rows = []
        for name, domain in self.domains.items():
            source, judged = self.sources.get(name), self.judged[name]
            held, with_others = (
                f"{sum(one.verdict in verdicts for one in judged)} of {len(judged)}"
                for verdicts in ((HOLDS, ONLY), (OTHER,))
            )
            if source is None:
                continue
            for variant in source.experiment.variants:
                label = domain.title if len(source.experiment.variants) == 1 else f"{domain.title}, {variant.name}"
                rows.append([label, *_compared(source, domain, variant.name), held, with_others])
        waiting = [domain.title for name, domain in self.domains.items() if name not in self.sources]
        rows += [[f"{NOT_RUN}: {', '.join(waiting)}", *[""] * 6]] if waiting else []
        held = ["claims that hold as printed", "only with other settings"]
        return table(["environment", "seeds", "return", "Gini deviation", "what to look at", *held], rows)


def _seeds_rule() -> str:
    coverage = ", ".join(f"{percent} % ({seeds} seeds)" for seeds, percent in COVERAGE.items())
    return SEEDS_RULE.format(least=CONCLUSIVE_SEEDS, coverage=coverage)


def short_commits(commits: str) -> str:
    """For example commit 0123456789, or commits 0123456789, 9876543210+changes."""
    found = [commit.partition("+") for commit in commits.split()]
    return f"commit{'s' * (len(found) > 1)} {', '.join(number[:10] + plus + note for number, plus, note in found)}"


def _other_settings(judged: Judged) -> list[tuple[str, Tried]]:
    """What was tried with other settings, by the methods that have them."""
    printed = {title for tried in judged.tried if tried.printed for title in tried.titles}
    others = [tried for tried in judged.tried if not tried.printed]
    return [(", ".join(title for title in tried.titles if title not in printed), tried) for tried in others]


def _rows_of_other_settings(judged: Judged) -> list[list[str]]:
    return [
        [judged.claim.text, label, ANSWERS[tried.answer], _numbers(tried)] for label, tried in _other_settings(judged)
    ]


def _numbers(tried: Tried) -> str:
    parts = []
    for (variant, measure), shown in tried.numbers.items():
        name = measure.removeprefix("final ").removesuffix("_rate").replace("_", " ")
        parts.append(f"{name}, {variant}: " + "; ".join(f"{title} {number}" for title, number in shown.items()))
    return ". ".join(parts) + "."


def _compared(source: ResultsSource, domain: Domain, variant: str) -> list[str]:
    """Seeds, return, Gini deviation and what to look at: as printed, and with the last other settings that were run."""
    pairs = [(choice.get(domain.neutral, domain.neutral), choice["mg"]) for choice in domain.choices]
    others = [pair for pair in pairs[1:] if source.get(variant, pair[1], domain.look) is not None]
    titles = {method.name: method.title for method in source.experiment.methods}
    methods = [m for m in dict.fromkeys(m for pair in (*pairs[:1], *others[-1:]) for m in pair) if m in titles]
    if not methods:
        return ["", f"{NOT_RUN}: the risk-neutral method and MG", "", ""]
    measures = ("final return", "final GD", domain.look)
    found = {measure: [source.get(variant, method, measure) for method in methods] for measure in measures}
    seeds = sorted({one.seeds for numbers in found.values() for one in numbers if one is not None})
    cells = [", ".join(_plain(one) for one in numbers if one is not None) for numbers in found.values()]
    returns = zip(methods, found[measures[0]], strict=True)
    cells[0] = ", ".join(f"{titles[method]} {_plain(one)}" for method, one in returns if one is not None)
    name = domain.look.removeprefix("final ").removesuffix("_rate").replace("_", " ")
    return [" to ".join(map(str, sorted({*seeds[:1], *seeds[-1:]}))), *cells[:2], f"{name} {cells[2]}"]


def _plain(one: Measured) -> str:
    return str(one._replace(low=float("nan")))


def with_block(text: str, block: str) -> str:
    """A page with what is between the marks replaced."""
    pattern = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"the page needs one block between {START!r} and {END!r}.")
    return pattern.sub(lambda _: f"{START}\n{block}\n{END}", text)


def draw_figures(folder: Path, domain: str) -> list[Path]:
    """Draw the figures of a domain's results file beside it."""
    with tempfile.TemporaryDirectory() as place:
        draw_results(read_results(results_file(folder, domain)), Path(place))
        drawn = []
        for name, end in PICTURES.items():
            if (Path(place) / name).is_file():
                drawn.append(folder / f"{domain}{end}")
                drawn[-1].write_bytes((Path(place) / name).read_bytes())
    return drawn


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
