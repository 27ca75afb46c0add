"""The environment in docs/jax_environments.md, as it is printed there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/jax_environments.md"


@pytest.mark.slow
def test_the_example_runs_and_takes_the_certain_reward(capsys):
    (code,) = re.findall(r"<!-- example -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    exec(compile(code, "example", "exec"), names)
    # Ten certain rewards are 4.5 with a Gini deviation of 0; ten tosses 5 with one of 0.88. Lambda is 2.
    report, last = names["report"], names["agent"].history[-1]
    assert report.mean.value < 4.7
    assert report.gini_deviation.value < 0.4
    assert last["won"] == pytest.approx(last["return"], rel=1e-5)
    assert "gini_deviation" in capsys.readouterr().out
