"""Search spaces: the tables for every agent, what users write, and what is refused."""

import pytest

from steadyrl.agents import AGENTS
from steadyrl.runs.search_space import Dimension, default_space, dimension_of, space_of_texts
from steadyrl.runs.tuning_plan import plan_of

MAZE = "steadyrl/GuardedMaze-v0"
ENVS = {"q_learning": MAZE, "td3": "Pendulum-v1"}
SMALL = {"dqn": {"buffer_size": 10}, "td3": {"buffer_size": 10}, "mvpi": {"buffer_size": 10}}


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_a_space_that_it_accepts(agent):
    """`plan_of` checks every end and every choice."""
    plan = plan_of(ENVS.get(agent, "CartPole-v1"), agent, SMALL.get(agent, {}), {})
    rates = [one for name, one in plan.space.items() if name.endswith("learning_rate")]
    assert len(plan.space) >= 2
    assert rates
    assert all(one.log for one in rates)
    assert "risk_aversion" not in plan.space


def test_tables_and_networks_have_other_ranges():
    table, network = (default_space(AGENTS["mg"](env)) for env in (MAZE, "CartPole-v1"))
    assert table["policy_learning_rate"].high > network["policy_learning_rate"].high
    assert "minibatch_size" in network
    assert "minibatch_size" not in table
    paper = default_space(AGENTS["mg"](MAZE, credit="trajectory"))
    assert "risk_critic_learning_rate" not in paper
    assert "risk_critic_learning_rate" in table


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("learning_rate=1e-4:1e-2:log", Dimension("policy_learning_rate", "float", 1e-4, 1e-2, True)),
        ("gae_lambda=0.8:1", Dimension("gae_lambda", "float", 0.8, 1.0)),
        ("episodes_per_update=8:64:log", Dimension("episodes_per_update", "int", 8, 64, True)),
        ("gamma=0.9,0.99", Dimension("gamma", "choice", choices=(0.9, 0.99))),
        ("hidden=[64,64],[128]", Dimension("hidden", "choice", choices=([64, 64], [128]))),
        ("normalise_observations=true,false", Dimension("normalise_observations", "choice", choices=(True, False))),
        ("optimiser=adam,sgd", Dimension("optimiser", "choice", choices=("adam", "sgd"))),
    ],
)
def test_ranges_as_they_are_typed(text, dimension):
    assert space_of_texts("mg", (text,)) == {dimension.name: dimension}


def test_ranges_from_a_file(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("[search]\ngamma = [0.9, 0.99]\ngae_lambda = { low = 0.8, high = 1.0 }\n")
    assert space_of_texts("ppo", (str(path), "gamma=0.5,0.6")) == {
        "gamma": Dimension("gamma", "choice", choices=(0.5, 0.6)),
        "gae_lambda": Dimension("gae_lambda", "float", 0.8, 1.0),
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("policy_lerning_rate=1e-4:1e-2", "unknown setting 'policy_lerning_rate'.*policy_learning_rate"),
        ("gamma=0.99:0.9", r"gamma: the low end 0.99 is not below the high end 0.9\."),
        ("gamma=0:0.9:log", "a logarithmic range needs a low end above 0"),
        ("gamma=0.1:0.9:cubic", "that is no range"),
        ("gamma=0.9", "a list of at least two values"),
        ("gamma=0.9,0.9", "given twice"),
        ("gamma=low:high", "low is not a number"),
        ("episodes_per_update=8.5:20", "whole numbers are needed"),
        ("hidden=8:64", "it is not a number, so it has no range"),
        ("gamma", "Write name=low:high"),
        ("clip_reward=0.1:1", "there is no such setting, because clipping"),
    ],
)
def test_ranges_without_meaning_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        space_of_texts("mg", (text,))


def test_ends_that_an_agent_refuses_are_named():
    search = {"gamma": dimension_of("mg", "gamma", {"low": 0.5, "high": 1.5})}
    with pytest.raises(ValueError, match=r"search of gamma=0.5:1.5: gamma=1.5: it must be at most 1"):
        plan_of(MAZE, "mg", {}, search)
    with pytest.raises(ValueError, match=r"gamma: it is set to 0\.9 and searched too"):
        plan_of(MAZE, "mg", {"gamma": 0.9}, {"gamma": dimension_of("mg", "gamma", [0.9, 0.99])})
