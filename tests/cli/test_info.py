"""`steadyrl agents` fits a terminal of 80 columns."""

import pytest

from steadyrl.agents import AGENTS
from steadyrl.cli import main


@pytest.mark.parametrize("arguments", [[], ["mg"], ["mvpi"]])
def test_agents_fits_80_columns(arguments, capsys):
    main(["agents", *arguments])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_list_has_whole_summaries(capsys):
    main(["agents"])
    text = " ".join(capsys.readouterr().out.split())
    assert "mg Maximizes E[R] - risk_aversion * D[R], where D is the Gini deviation" in text
    assert all(name in text for name in AGENTS)


def test_settings_begin_with_risk_aversion(capsys):
    main(["agents", "mg"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("Settings:") + 2].startswith("risk_aversion = ")
    assert lines.index("Settings:") < lines.index("Less common:") < lines.index("Notes:")
