"""Numbers are arguments of compiled programs: agents that differ in them share a program, and are trained together."""

import dataclasses
import typing
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from toy_envs import BOX, TINY, walk

from steadyrl.agents import AGENTS, DQN, PPO, TD3, MeanGini
from steadyrl.training.engines import host, program, replay
from steadyrl.training.loop import learn_together

MAZE = "steadyrl/GuardedMaze-v0"
SMALL = {"hidden": (8,), "episodes_per_update": 25}

pytestmark = pytest.mark.usefixtures("numpys_layers")


def arrays(agent):
    return [np.asarray(x) for x in jax.tree.leaves(agent.learner)]


def assert_same(one, other):
    for x, y in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(x, y)


GINI = (
    {"risk_aversion": 1.2, "policy_learning_rate": 1e-3, "value_learning_rate": 1e-2, "gamma": 0.99},
    {"risk_aversion": 0.3, "policy_learning_rate": 2e-3, "value_learning_rate": 3e-2, "gamma": 0.9, "ratio_range": 0.4},
)
CRITIC = {"risk_discount": 0.95, "risk_gae_lambda": 0.5, "risk_critic_learning_rate": 0.1}
CASES = {
    "compiled": (program._compiled_rounds, MeanGini, {"env": MAZE}, 100, GINI[0], GINI[1] | CRITIC),
    "vpg": (host._update, MeanGini, {"env": "CartPole-v1", **SMALL, "mean": "vpg", "credit": "trajectory"}, 50, *GINI),
    "ppo": (
        host._update,
        PPO,
        {"env": "CartPole-v1", **SMALL},
        50,
        {"clip_range": 0.2, "gae_lambda": 0.95, "entropy_coefficient": 0.01},
        {"clip_range": 0.01, "gae_lambda": 0.5, "entropy_coefficient": 0.3, "value_coefficient": 2.0, "gamma": 0.9}
        | {"target_kl": 0.01, "initial_output_scale": 0.5},
    ),
    "dqn": (
        replay._update,
        DQN,
        {"env": partial(walk, TINY["dqn"][0]), **TINY["dqn"][1]},
        12,
        {"learning_rate": 0.01, "gamma": 0.9},
        {"learning_rate": 0.03, "gamma": 0.5, "tau": 0.5},
    ),
    "td3": (
        replay._update,
        TD3,
        {"env": partial(walk, TINY["td3"][0]), **TINY["td3"][1]},
        12,
        {"learning_rate": 0.01, "gamma": 0.9},
        {"learning_rate": 0.03, "gamma": 0.5, "tau": 0.5, "target_policy_noise": 0.4, "exploration_noise": 0.3},
    ),
}


class Trained(NamedTuple):
    """Two agents with different numbers trained one after the other, and again after all programs were forgotten."""

    first: Any
    second: Any
    first_again: Any
    second_again: Any
    programs: tuple[int, ...]
    """How many versions of the update were compiled after each training."""


@pytest.fixture(scope="module")
def trained(numpys_layers):
    """Case -> `Trained`. For all cases at once: whatever is forgotten is traced anew by the tests that come after."""

    def train(case, values):
        program, kind, common, episodes, *_ = CASES[case]
        agent = kind(seed=2, **{**common, **values})
        return agent.learn(total_episodes=episodes, progress_bar=False), program._cache_size()

    before = {case: [train(case, numbers) for numbers in CASES[case][-2:]] for case in CASES}
    jax.clear_caches()
    assert not any(program._cache_size() for program, *_ in CASES.values())
    # The second numbers first: they must not be those that the program is compiled with.
    after = {case: [train(case, numbers) for numbers in reversed(CASES[case][-2:])] for case in CASES}
    return {
        case: Trained(
            *(agent for agent, _ in before[case]),
            *(agent for agent, _ in reversed(after[case])),
            tuple(programs for _, programs in (*before[case], *after[case])),
        )
        for case in CASES
    }


@pytest.mark.parametrize("case", CASES)
def test_other_numbers_do_not_compile_anew(case, trained):
    first, second, second_again, first_again = trained[case].programs
    assert 0 < first == second
    assert 0 < second_again == first_again


@pytest.mark.parametrize("case", CASES)
def test_other_numbers_give_their_own_results(case, trained):
    one = trained[case]
    assert any(not np.array_equal(x, y) for x, y in zip(arrays(one.first), arrays(one.second), strict=True))
    assert_same(one.second, one.second_again)
    assert_same(one.first, one.first_again)


def test_the_first_update_and_the_others_are_one_program(trained):
    """Of each update function: what it was compiled for after all programs were forgotten."""
    compiled_for = [trained[case].programs[2] for case in ("compiled", "vpg", "dqn")]
    assert compiled_for == [1, 1, 1]


def settings_classes():
    for name, kind in AGENTS.items():
        for choice in kind.settings_by_choice or [None]:
            yield pytest.param(kind, {kind.choice: choice} if choice else {}, id=f"{name} {choice or ''}".strip())


@pytest.mark.parametrize(("kind", "choice"), list(settings_classes()))
def test_every_number_is_an_argument_and_everything_else_is_not(kind, choice):
    """Of each setting declared as float another value leaves the program as it is; of others another program."""
    replays = choice.get("solver", kind.name) in ("dqn", "td3")
    tabular = choice.get("solver", kind.name) == "q_learning"
    env = MAZE if tabular else partial(walk, BOX) if "td3" in (kind.name, *choice.values()) else "CartPole-v1"
    common = {**choice, **({} if tabular else {"hidden": (2,)}), **({"buffer_size": 10} if replays else {})}
    agent = kind(env, **common)
    hints = typing.get_type_hints(type(agent.settings))
    numbers = [field.name for field in dataclasses.fields(agent.settings) if hints[field.name] is float]
    assert {"gamma"} < set(numbers)
    structure = jax.tree.structure(agent.algorithm)
    weak = [path for path, x in jax.tree.leaves_with_path(agent.learner) if getattr(x, "weak_type", False)]
    assert not weak, "the second update would be compiled anew"
    for name in numbers:
        value = getattr(agent.settings, name)
        other = kind(env, **common, **{name: value * 0.9 if value else 0.1})
        assert jax.tree.structure(other.algorithm) == structure, name
        assert jax.tree.leaves(other.algorithm) != jax.tree.leaves(agent.algorithm), name
    static = {"max_episode_steps": 77} | ({"train_freq": 7} if replays else {"episodes_per_update": 7})
    of_some = {"value_targets": "monte_carlo", "normalise_values": False}
    of_some |= {"credit": "trajectory", "returns_remembered": 7}
    static |= {name: value for name, value in of_some.items() if name in hints}
    for name, value in static.items():
        assert jax.tree.structure(kind(env, **common, **{name: value}).algorithm) != structure, name


def test_another_budget_does_not_compile_anew():
    """Of a schedule: neither how long it is nor when it begins."""
    agent = MeanGini(MAZE, learning_rate_schedule="linear").learn(total_episodes=100, progress_bar=False)
    programs = program._compiled_rounds._cache_size()
    agent.learn(total_episodes=150, progress_bar=False)
    assert program._compiled_rounds._cache_size() == programs
    assert agent.history[-1]["learning_rate_factor"] == pytest.approx(1 / 3)


def test_only_the_first_call_of_a_new_program_is_alone(monkeypatch):
    """It compiles for the others, which share the cores; what the process has compiled is remembered."""
    together = []

    class Threads(ThreadPoolExecutor):
        def map(self, function, *calls):
            together.append(len(calls[0]))
            return super().map(function, *calls)

    monkeypatch.setattr(program, "ThreadPoolExecutor", Threads)
    for _ in range(2):
        agents = [MeanGini(MAZE, seed=seed, episodes_per_update=9) for seed in range(4)]
        learn_together(agents, total_episodes=9, progress_bar=False, vmap_width=2)
    assert together == [1, 2]


def test_agents_with_different_numbers_learn_together():
    """Each as it would alone in a program of the same width: the others, and its place among them, do not matter."""
    numbers = [(0, 1.2, 0.999), (1, 0.0001, 0.999), (2, 1.2, 0.9), (4, 5.0, 0.99), (7, 0.3, 0.999)]  # 7 = 2 mod 5.

    def make(seed, risk_aversion, gamma):
        return MeanGini(MAZE, seed=seed, risk_aversion=risk_aversion, gamma=gamma, policy_learning_rate=1e-3)

    together = [make(*one) for one in numbers]
    learn_together(together, total_episodes=150, progress_bar=False)
    programs = program._compiled_rounds._cache_size()
    for agent, one in zip(together, numbers, strict=True):
        alone = make(*one)
        learn_together([alone], total_episodes=150, progress_bar=False, vmap_width=5)
        assert_same(agent, alone)
        for x, y in zip(agent.history, alone.history, strict=True):
            assert {**x, "time": 0} == {**y, "time": 0}
    assert program._compiled_rounds._cache_size() == programs
    same_seed = make(0, 5.0, 0.999)
    learn_together([same_seed], total_episodes=150, progress_bar=False, vmap_width=5)
    assert not np.array_equal(same_seed.learner.theta, together[0].learner.theta)


def test_many_seeds_together_are_the_seeds_one_by_one():
    """The same seeds give the same bits; a seed alone in a program of width 1 the same up to rounding."""
    lists = [[MeanGini(MAZE, seed=s) for s in range(6)] for _ in range(2)]  # More than the width of the program.
    for agents in lists:
        learn_together(agents, total_episodes=150, progress_bar=False)
    for one, other in zip(*lists, strict=True):
        assert_same(one, other)
    for seed in (1, 4):
        alone = MeanGini(MAZE, seed=seed).learn(total_episodes=150, progress_bar=False)
        np.testing.assert_allclose(alone.learner.theta, lists[0][seed].learner.theta, atol=1e-4)
    assert np.abs(lists[0][0].learner.theta - lists[0][1].learner.theta).max() > 1e-3
