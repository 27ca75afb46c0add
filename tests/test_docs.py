"""What the documents say is so: links lead somewhere, code runs, and generated pages are complete."""

import doctest
import importlib.util
import math
import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import steadyrl
from steadyrl.agents.agent import Agent

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [page for page in (ROOT / "README.md", *DOCS.glob("*.md")) if CODE.search(page.read_text())]
BUDGET = re.compile(r"(total_episodes|total_timesteps)=([\d_]+)")
FILES = {"your_own_maze.md": {"maze.txt": ". . . . .\nS # # # G\n. . R . ."}}
"""Page -> files that it tells its readers to make."""
WRITTEN = {"training.md": ("best.steady", "runs/maze/checkpoint.steady")}
"""Page -> files that its code leaves behind."""
OPTIONAL = ("stable_baselines3", "wandb", "mlflow", "gymnax")
"""Packages that may be missing; blocks that need them are then left out."""


def shortened(budget):
    """Up to 2,000 a budget is what the code around it needs; more is what its output needs.

    50 episodes are an update of every agent. Networks would compile an update for more and more lengths of episodes.
    """
    name, number = budget.groups()
    few = 50 if name == "total_episodes" else 200
    return f"{name}={number if int(number) <= 2_000 else few}"


def needs(package, block):
    """Whether code imports a package, or names it to have it imported."""
    return re.search(rf'\b(?:import|from) {package}\b|"{package}\b', block) is not None


def name_of(page):
    return str(page.relative_to(ROOT))


def prose_of(page):
    """Without blocks of code, whose brackets are no links and whose comments are no headings."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors_of(page):
    """The anchors of its headings, as GitHub and MyST make them; those that are repeated are numbered."""
    seen, anchors = Counter(), set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose_of(page), re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return anchors


def is_address(link):
    """Whether it is a well-formed https address; whether it answers is not for a test to find out."""
    parts = urlsplit(link)
    host = parts.hostname or ""
    return parts.scheme == "https" and re.fullmatch(r"([\w-]+\.)+[a-z]{2,}", host) is not None and " " not in link


def broken(page, link):
    """Why a link leads nowhere; empty if it leads somewhere."""
    if "://" in link or link.startswith("mailto:"):
        return "" if is_address(link) else "no https address"
    path, _, anchor = link.partition("#")
    target = (page.parent / path) if path else page
    if not target.exists():
        return "no such file"
    return "no such heading" if anchor and anchor not in anchors_of(target) else ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)|<(https?://[^>]*)>", prose_of(page))
    found = {link: reason for link in ("".join(pair) for pair in links) if (reason := broken(page, link))}
    assert found == {}


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("docs/training.md#loggers", ""),
        ("docs/training.md#no-such", "no such heading"),
        ("docs/nowhere.md", "no such file"),
        ("#agents", ""),
        ("#no-such", "no such heading"),
        ("https://arxiv.org/abs/2307.08873", ""),
        ("http://arxiv.org", "no https address"),
        ("https://arxiv", "no https address"),
    ],
)
def test_a_broken_link_is_found(link, reason):
    assert broken(ROOT / "README.md", link) == reason


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_line_of_prose_begins_with_a_mark(page):
    """MyST leaves out lines that begin with a percent sign, and a plus sign begins a list."""
    assert re.findall(r"^ *(?:%|\+ |\d+[.)] ?$).*", prose_of(page), re.MULTILINE) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_of_prose_fit_a_diff(page):
    prose = [line for line in prose_of(page).splitlines() if "|" not in line and not line.startswith("    ")]
    assert [line for line in prose if len(line) > 130 and "](" not in line] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # Agents that have hardly learned: a constant action is better.
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_code_runs_with_small_budgets(page, tmp_path, monkeypatch, capsys):
    """It runs to its end, its agents have learned and can act, and where it prints, something is printed."""
    missing = [package for package in OPTIONAL if importlib.util.find_spec(package) is None]
    blocks = [block for block in CODE.findall(page.read_text()) if not block.startswith(">>>")]
    code = "\n".join(block for block in blocks if not any(needs(package, block) for package in missing))
    if blocks and not code:
        pytest.skip(f"{' and '.join(missing)} not installed")
    unknown = [name for name in re.findall(r"\bsteadyrl\.(\w+)", code) if not hasattr(steadyrl, name)]
    assert unknown == []
    program = compile(BUDGET.sub(shortened, code), name_of(page), "exec")
    if "import steadyrl" not in code:  # Fragments, whose syntax and names are right.
        return
    for name, text in FILES.get(page.name, {}).items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    exec(program, names)
    agents = {name: value for name, value in names.items() if isinstance(value, Agent)}
    learned = {name for name in agents if re.search(rf"\b{name}\.learn\(|\b{name} = .*\.learn\(", code)}
    assert learned or "learn(" not in code
    for name in learned:
        assert agents[name].episodes > 0, name
        assert math.isfinite(agents[name].history[-1]["return"]), name
    assert [path for path in WRITTEN.get(page.name, ()) if not (tmp_path / path).is_file()] == []
    printed = capsys.readouterr().out
    assert bool(printed.strip()) or "print(" not in code


@pytest.mark.parametrize("page", [page for page in WITH_CODE if ">>>" in page.read_text()], ids=name_of)
def test_examples_print_what_the_page_says(page):
    blocks = [block for block in CODE.findall(page.read_text()) if block.startswith(">>>")]
    assert blocks
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, {}, name_of(page), None, None)
        assert doctest.DocTestRunner().run(test).failed == 0


def test_the_api_reference_has_every_public_name(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import generated_pages

    text = (DOCS / "api.md").read_text() + generated_pages.other_names()
    objects = re.findall(r"auto(?:class|function):: ([\w.]+)", text)
    documented = {name.rpartition(".")[2] for name in objects}
    modules = {"callbacks", "exact", "risk"}
    assert set(steadyrl.__all__) - modules <= documented
    assert set(steadyrl.callbacks.__all__) <= documented


def test_names_and_pages_that_are_listed_nowhere_are_added(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import generated_pages

    monkeypatch.setattr(generated_pages, "DOCS", tmp_path)
    (tmp_path / "api.md").write_text(" ".join(name for name in steadyrl.__all__ if name not in ("load", "PPO")))
    (tmp_path / "index.md").write_text("api\n*environments\n")
    (tmp_path / "jax_environments.md").write_text("")
    assert generated_pages.other_pages() == ""
    (tmp_path / "news.md").write_text("")
    assert generated_pages.other_pages().splitlines()[-2:] == ["news", "```"]
    added = generated_pages.other_names()
    assert ".. autoclass:: steadyrl.PPO" in added
    assert ".. autofunction:: steadyrl.load" in added


def test_generated_pages_have_every_command_and_every_setting(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import generated_pages

    from steadyrl.agents import AGENTS
    from steadyrl.agents.describe import settings_of
    from steadyrl.cli.main import _commands

    monkeypatch.setenv("COLUMNS", "80")
    commands = generated_pages.commands()
    for name in _commands():
        assert f"## steadyrl {name}\n" in commands
        assert f"usage: steadyrl {name} " in commands
        longest = max(map(len, generated_pages.help_of(name).splitlines()))
        assert longest <= 97, name  # What fits the box of code; see site.css.
    settings = generated_pages.settings()
    for kind in AGENTS.values():
        section = settings.split(f"## {kind.__name__}\n")[1].split("\n## ")[0]
        for setting in settings_of(kind):
            assert re.search(rf"^`{setting.name} = .*`\n: ", section, re.MULTILINE), (kind, setting.name)
