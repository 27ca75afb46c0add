import pytest

from steadyrl.base.names import choose, nearest, unknown


def test_the_nearest_name_and_all_of_few():
    assert unknown("agent", "mgg", ["mvo", "mg"]) == "unknown agent 'mgg'. Did you mean 'mg'? Known: mg, mvo."
    assert unknown("agent", "xyz", ["mvo", "mg"]) == "unknown agent 'xyz'. Known: mg, mvo."
    assert unknown("number", "n7x", [f"n{i}" for i in range(100)]) == "unknown number 'n7x'. Did you mean 'n7'?"


def test_other_names_come_first():
    assert nearest("Lambda", ["risk_aversion", "lambada"], {"lambda": "risk_aversion"}) == "risk_aversion"
    assert nearest("xyz", ["risk_aversion"], {"lambda": "risk_aversion"}) is None
    assert nearest("lam", ["gamma"], {"lam": ""}) is None


@pytest.mark.parametrize("name", ["q_learning", "Q-Learning", "qlearning"])
def test_capitals_and_dashes_do_not_matter(name):
    assert choose("agent", name, {"q_learning": 1, "mg": 2}) == 1


def test_what_is_nothing():
    with pytest.raises(ValueError, match=r"unknown agent 'mgg'. Did you mean 'mg'"):
        choose("agent", "mgg", {"mg": 2})
