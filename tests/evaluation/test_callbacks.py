"""Callbacks of `learn`: evaluations that change nothing, the best agent, and stopping."""

import itertools
import math
import re
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
from toy_envs import TINY, Gamble, walk

from steadyrl import DQN, MeanGini, QLearning, Reinforce, Tamar, evaluate, learn_together, load
from steadyrl.evaluation.callbacks import CallEvery, EvaluateEvery, StopWhen

MAZE = "steadyrl/GuardedMaze-v0"
DOCS = Path(__file__).parents[2] / "docs" / "training.md"


def maze(seed=0, **settings):
    return MeanGini(MAZE, seed=seed, **settings)


def learn(agent, episodes, callback, **options):
    return agent.learn(total_episodes=episodes, callback=callback, progress_bar=False, **options)


def quiet(every, *args, **options):
    return EvaluateEvery(every, *args, **{"episodes": 5, "verbose": False, **options})


def scores(*values):
    """A criterion that gives these scores, one after the other, whatever the report."""
    remaining = iter(values)
    return lambda report: next(remaining)


# EvaluateEvery.

AGENTS = {
    "compiled": lambda: maze(),
    "one environment object": lambda: Reinforce(Gamble(), seed=1, episodes_per_update=5),
    "replay buffer": lambda: DQN(walk(TINY["dqn"][0]), seed=2, **TINY["dqn"][1]),
}


@pytest.mark.parametrize("name", AGENTS)
def test_evaluations_do_not_change_a_bit_of_training(name):
    plain, evaluated = (AGENTS[name]() for _ in range(2))
    callback = quiet(20)
    learn(plain, 100, None)
    learn(evaluated, 100, callback)
    assert len(callback.reports) >= 2
    leaves, others = jax.tree.leaves(plain.learner), jax.tree.leaves(evaluated.learner)
    for one, other in zip(leaves, others, strict=True):
        np.testing.assert_array_equal(one, other)
    if plain.replay_buffer is not None:
        np.testing.assert_array_equal(plain.replay_buffer.rows, evaluated.replay_buffer.rows)
    assert [r["return"] for r in plain.history] == [r["return"] for r in evaluated.history]


def test_reports_are_those_of_evaluate_at_each_multiple():
    agents, callback = [], quiet(100, seed=7, episodes=6)
    learn(maze(), 250, [callback, lambda local, world: agents.append(local["self"].episodes)])
    assert agents == [50, 100, 150, 200, 250]
    assert [episodes for _, episodes, _ in callback.reports] == [100, 200]
    again = learn(maze(), 200, None)
    timesteps, _, report = callback.reports[-1]
    assert timesteps == again.timesteps
    np.testing.assert_array_equal(report.returns, evaluate(again, MAZE, episodes=6, seed=7).returns)


def test_a_criterion_may_be_any_measure():
    callback = quiet(50, measures=["semideviation"], criterion=lambda report: -report.measures["semideviation"].value)
    learn(maze(), 100, callback)
    spreads = [report.measures["semideviation"].value for _, _, report in callback.reports]
    assert callback.best_score == -min(spreads)
    with pytest.raises(ValueError, match="unknown measure"):
        quiet(50, measures="semi")


def test_timesteps_as_the_unit_count_each_multiple_once():
    callback = quiet(5000, unit="timesteps")
    agent = learn(maze(), 300, callback)
    expected, passed = [], 0
    for record in agent.history:
        if record["timesteps"] // 5000 > passed:
            passed = record["timesteps"] // 5000
            expected.append(record["timesteps"])
    assert len(expected) >= 2
    assert [timesteps for timesteps, _, _ in callback.reports] == expected


def test_counting_goes_on_in_the_next_call_of_learn():
    agent, callback = maze(), quiet(100)
    for _ in range(3):
        learn(agent, 50, callback)
    assert [episodes for _, episodes, _ in callback.reports] == [100]


def test_the_file_holds_the_best_agent(tmp_path):
    path = tmp_path / "folder" / "best.steady"
    callback = quiet(50, criterion=scores(1, 3, 2, 3), save_best=path)
    learn(maze(), 200, callback)
    best = load(path)
    assert best.episodes == 100  # An equal score later is not better.
    assert callback.best_score == 3
    assert callback.best_report is callback.reports[1][2]
    np.testing.assert_array_equal(evaluate(best, MAZE, episodes=5).returns, callback.best_report.returns)


def test_the_file_holds_no_replay_buffer(tmp_path):
    agent = learn(AGENTS["replay buffer"](), 20, quiet(10, save_best=tmp_path / "best.steady"))
    assert len(agent.replay_buffer)
    assert not len(load(tmp_path / "best.steady", env=agent.env).replay_buffer)


def test_a_resumed_training_replaces_the_best_agent_by_better_ones_alone(tmp_path):
    path, agent = tmp_path / "best.steady", maze()
    criterion = scores(5, 1, 4, 6)
    learn(agent, 100, quiet(50, criterion=criterion, save_best=path))
    agent.save(tmp_path / "agent.steady")
    callback = quiet(50, criterion=criterion, save_best=path)
    agent = learn(load(tmp_path / "agent.steady"), 50, callback)
    assert (load(path).episodes, callback.best_score, callback.best_report) == (50, 5, None)
    learn(agent, 50, callback)
    assert (load(path).episodes, callback.best_score) == (200, 6)


@pytest.mark.parametrize("change", ["seed", "settings", "scoring", "start"])
def test_the_best_agent_of_another_training_is_replaced(tmp_path, change):
    path = tmp_path / "best.steady"
    every = 100 if change == "start" else 50  # Then the file holds a later state than the new agent's.
    learn(maze(), 100, quiet(every, criterion=scores(9, 8), save_best=path))
    agent = {"seed": lambda: maze(seed=1), "settings": lambda: maze(risk_aversion=0.7)}.get(change, maze)()
    learn(agent, 50, quiet(50, criterion=scores(1), episodes=6 if change == "scoring" else 5, save_best=path))
    assert (load(path).seed, load(path).settings, load(path).episodes) == (agent.seed, agent.settings, 50)
    callback = quiet(50, criterion=scores(0), episodes=6 if change == "scoring" else 5, save_best=path)
    learn(agent, 50, callback)
    assert (load(path).episodes, callback.best_score) == (50, 1)  # The same training: it stays.


def test_criteria():
    def best(agent, **options):
        callback = quiet(50, **options)
        learn(agent, 50, callback)
        return callback.best_score, callback.best_report

    score, report = best(maze())
    assert score == report.mean.value
    score, report = best(maze(risk_aversion=0.5), criterion="mean_gini")
    assert score == pytest.approx(report.mean.value - 0.5 * report.gini_deviation.value)
    assert score < report.mean.value
    score, report = best(maze(), criterion="mean_gini", risk_aversion=2)
    assert score == pytest.approx(report.mean.value - 2 * report.gini_deviation.value)
    score, report = best(maze(), criterion=lambda report: report.cvar_10.value)
    assert score == report.cvar_10.value


def test_another_environment():
    """In which every episode pays 1, whereas the agent's own may pay 20."""

    class Short(Gamble):
        def reset(self, *, seed=None, options=None):
            observation, info = super().reset(seed=seed)
            self.left = 1
            return observation, info

    for env in (Short(), Short):
        callback = quiet(5, env)
        learn(Reinforce(Gamble(), episodes_per_update=5), 50, callback)
        assert callback.best_score == 1
    callback = quiet(5)
    learn(Reinforce(Gamble(), episodes_per_update=5), 50, callback)
    assert callback.best_score > 1


def test_training_stops_at_a_score():
    callback = quiet(50, criterion=scores(1, 2, 3), stop_at=2)
    assert learn(maze(), 500, callback).episodes == 100
    assert len(callback.reports) == 2


def test_verbose_prints_a_line_for_each_evaluation(capsys):
    learn(maze(), 100, quiet(50, criterion=scores(2, 1), verbose=True))
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"mg after 50 episodes \([\d,]+ steps\): mean .*, Gini deviation .*, score 2 \(best\)", first)
    assert second.endswith("score 1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, r"every=0: it counts episodes or timesteps\. Pass a whole number of at least 1\."),
        ({"every": 1.5}, r"every=1\.5: "),
        ({"unit": "steps"}, r"unknown unit 'steps'\. Did you mean 'timesteps'\?"),
        ({"episodes": 1}, r"episodes=1: risk is how the returns of episodes differ\. Pass .* at least 2\."),
        ({"seed": -1}, r"seed=-1: random streams are numbered from 0\."),
        ({"criterion": "mean_gin"}, r"unknown criterion 'mean_gin'\. Did you mean 'mean_gini'\?.* Or pass a function"),
        ({"stop_at": "high"}, r"stop_at='high': .* Pass a number\."),
        ({"env": "CartPole-v99"}, "CartPole"),
    ],
)
def test_bad_arguments_of_evaluate_every(options, message):
    with pytest.raises(ValueError, match=message) as raised:
        EvaluateEvery(**{"every": 10, **options})
    assert "\n" not in str(raised.value)


def test_what_cannot_be_evaluated_is_refused_at_the_first_record():
    agent = Reinforce(Gamble(), episodes_per_update=5)
    with pytest.raises(ValueError, match=r"criterion='mean_gini': reinforce has no weight .* Pass risk_aversion="):
        learn(agent, 1000, quiet(1000, criterion="mean_gini"))
    agent = Reinforce(gym.vector.SyncVectorEnv([Gamble] * 5), episodes_per_update=5)
    with pytest.raises(TypeError, match="Pass the single environment's id"):
        learn(agent, 1000, quiet(1000))
    assert agent.episodes == 50
    with pytest.raises(ValueError, match="returned NaN"):
        learn(maze(), 50, quiet(50, criterion=lambda report: math.nan))


@pytest.mark.slow  # Compiles for a range.
def test_a_range_of_lambdas_is_evaluated_at_the_one_that_is_asked_for():
    agent = MeanGini(MAZE, risk_aversion=(0.0, 2.0))
    with pytest.raises(ValueError, match=r"mg learns for a range of lambdas: pass EvaluateEvery\(risk_aversion="):
        learn(agent, 100, quiet(100))
    callback = quiet(100, risk_aversion=1.5, criterion="mean")
    learn(agent, 100, callback)
    assert callback.best_score == callback.reports[-1][-1].mean.value
    with pytest.raises(ValueError, match="only criterion='mean_gini' uses it, and agents that learn for a range"):
        learn(maze(), 50, quiet(50, risk_aversion=1.0))


def test_a_second_agent_is_refused():
    callback = quiet(50)
    learn(maze(), 50, callback)
    with pytest.raises(ValueError, match=r"second agent \(mg, seed 1\).* Make a new EvaluateEvery for each agent"):
        learn(maze(seed=1), 50, callback)


# StopWhen and CallEvery.


def test_training_stops_when_a_metric_is_reached():
    agent = learn(maze(), 1000, StopWhen("episodes", at_least=150))
    assert agent.episodes == 150
    entropies = [record["entropy"] for record in learn(maze(), 200, None).history]
    assert entropies == sorted(entropies, reverse=True)
    assert learn(maze(), 1000, StopWhen("entropy", at_most=entropies[2])).episodes == 150
    assert learn(maze(), 200, StopWhen("entropy", at_most=entropies[3] / 2)).episodes == 200


def records(values):
    return [{"self": AGENT, "metrics": {"return": value, "updates": 1}} for value in values]


AGENT = type("Anybody", (), {})()


def test_patience_counts_consecutive_records():
    stop = StopWhen("return", at_least=10, patience=2)
    answers = [stop(local, {}) for local in records([10, 9, 11, 12])]
    assert answers == [True, True, True, False]
    stop = StopWhen("return", at_most=10, patience=3)
    assert [stop(local, {}) for local in records([10, 9, math.nan, 9, 9, 9])] == [True] * 5 + [False]


def test_agents_trained_together_are_counted_separately():
    """With patience 2, three agents in the same round are no three records of one."""
    agents = [maze(seed) for seed in range(3)]
    called = []
    learn_together(
        agents,
        total_episodes=1000,
        callback=StopWhen("episodes", at_least=100, patience=2),
        progress_bar=False,
    )
    assert [agent.episodes for agent in agents] == [150] * 3
    learn_together(
        agents, total_episodes=100, callback=CallEvery(50, lambda a: called.append(a.seed)), progress_bar=False
    )
    assert called == [0, 1, 2, 0, 1, 2]


def test_an_unknown_metric_is_an_error_with_all_names():
    with pytest.raises(ValueError, match=r"unknown metric 'retrun'\. Did you mean 'return'\? Known: approx_kl, .*\.$"):
        learn(maze(), 100, StopWhen("retrun", at_least=1))


def test_metrics_of_updates_may_appear_later():
    """A replay buffer has to fill before there are updates, and with them their metrics."""
    agent = learn(AGENTS["replay buffer"](), 100, StopWhen("critic_loss", at_least=0))
    assert "critic_loss" not in agent.history[0]
    assert "critic_loss" in agent.history[-1]
    assert agent.episodes < 100
    with pytest.raises(ValueError, match="unknown metric 'criticloss'"):
        learn(AGENTS["replay buffer"](), 100, StopWhen("criticloss", at_least=0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"at_least=None, at_most=None: one value of return to stop at is needed\. Pass either"),
        ({"at_least": 1, "at_most": 2}, r"at_least=1, at_most=2: one value"),
        ({"at_least": 1, "patience": 0}, r"patience=0: it counts records\. Pass a whole number of at least 1\."),
        ({"at_most": math.nan}, r"at_most=nan: "),
        ({"at_least": "much"}, r"at_least='much': "),
    ],
)
def test_bad_arguments_of_stop_when(options, message):
    with pytest.raises(ValueError, match=message):
        StopWhen("return", **options)


def test_a_function_is_called_every_so_often_and_may_stop_training():
    called = []
    learn(maze(), 250, CallEvery(100, lambda agent: called.append(agent.episodes)))
    assert called == [100, 200]
    assert learn(maze(), 500, CallEvery(100, lambda agent: agent.episodes < 200)).episodes == 200
    with pytest.raises(TypeError, match=r"function=3: .* Pass a function of the agent"):
        CallEvery(100, 3)


def test_all_callbacks_of_a_list_are_called_and_any_of_them_stops():
    called = []
    callbacks = [StopWhen("episodes", at_least=100), CallEvery(50, lambda agent: called.append(agent.episodes))]
    assert learn(maze(), 500, callbacks).episodes == 100
    assert called == [50, 100]


def test_callbacks_and_loggers_in_a_run_folder(tmp_path):
    callback = quiet(100, save_best=tmp_path / "run" / "best.steady", stop_at=-math.inf)
    agent = learn(maze(), 500, [callback], out=tmp_path / "run", loggers=["jsonl"])
    for file in ("checkpoint.steady", "best.steady"):
        assert load(tmp_path / "run" / file).episodes == agent.episodes == 100
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) == 2


# The page.


@pytest.mark.slow  # Programs of five methods are compiled.
def test_the_page_names_every_metric():
    named = set(re.findall(r"`([a-z_]+)`", DOCS.read_text()))
    agents = [
        maze(),
        MeanGini(Gamble(), mean="ppo", episodes_per_update=3),
        Tamar(Gamble()),
        QLearning(Gamble()),
        AGENTS["replay buffer"](),
    ]
    for agent in agents:
        learn(agent, 60, None)
        names = set(itertools.chain.from_iterable(agent.history))
        assert not {name for name in names if not name.endswith("_rate")} - named, agent.name
