"""DQN and TD3 as users have them: predicting, seeds, files, callbacks, faults, and errors that help."""

import json
from functools import partial

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box
from tiny_off_policy import NEVER, SPACES, assert_same, bits, each_kind, learned, tiny
from toy_envs import BOX, NUMBERS, Counter, walk

import steadyrl
from steadyrl.agents import DQN, MVPI, TD3, QLearning
from steadyrl.cli.main import main
from steadyrl.rollouts.collector import FaultyEnvironmentError

MAZE = "steadyrl/GuardedMaze-v0"

pytestmark = pytest.mark.usefixtures("numpys_layers")


@each_kind
def test_the_learned_policy_is_deterministic(kind):
    agent = learned(kind, 6)
    seen = np.random.default_rng(0).random((5, 2), dtype=np.float32)
    actions, state = agent.predict(seen, state="kept", deterministic=False)
    assert state == "kept"
    np.testing.assert_array_equal(actions, agent.predict(seen)[0])
    np.testing.assert_array_equal(actions, agent.predict(seen, deterministic=True)[0])
    for one, action in zip(seen, actions, strict=True):
        assert SPACES[kind].contains(action)
        np.testing.assert_allclose(agent.predict(one)[0], action, rtol=1e-5)
    played = [agent.play(3, seed=1, deterministic=deterministic) for deterministic in (False, True)]
    np.testing.assert_array_equal(played[0].actions, played[1].actions)


@pytest.mark.parametrize("observations", ["dict", "discrete", "image"])
@pytest.mark.parametrize("space", [NUMBERS, BOX], ids=["dqn", "td3"])
def test_acts_on_every_kind_of_observation(observations, space):
    class Acting(Counter):
        action_space = space

        def step(self, action):
            assert space.contains(action)
            return super().step(np.sum(action))

    kind = DQN if space is NUMBERS else TD3
    agent = learned(kind, 4, env=lambda: Acting(observations), learning_starts=NEVER)
    observation, _ = Acting(observations).reset(seed=3)
    assert space.contains(agent.predict(observation)[0])


class Unbounded(Counter):
    action_space = Box(-np.inf, np.inf, (2,))


class Bounded(Counter):
    action_space = Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TD3("CartPole-v1"), r"Discrete\(2\) is not supported by td3: .* Use dqn"),
        (lambda: TD3(Unbounded), "lowest and a highest value"),
        (lambda: DQN(Bounded), "its actions must be Discrete. Use td3"),
        (lambda: QLearning(Bounded), "learns a table"),
        (lambda: QLearning("CartPole-v1"), "learns a table"),
        (lambda: MVPI(Bounded, solver="dqn"), "not supported by dqn"),
        (lambda: MVPI(Bounded, solver="q_learning"), "not supported by q_learning"),
        (lambda: MVPI(MAZE, solver="td3"), "not supported by td3"),
        (lambda: MVPI(Unbounded), "lowest and a highest value"),
        (lambda: MVPI("CartPole-v1", solver="sarsa"), "solver=sarsa: it is one of q_learning, dqn, td3"),
        (lambda: MVPI("CartPole-v1", q_learning_rate=0.1), "q_learning_rate: .* solver='q_learning'"),
        (lambda: MVPI("CartPole-v1", solver="dqn", policy_delay=3), "policy_delay: .* solver='td3'"),
        (lambda: MVPI(MAZE, batch_size=8), "batch_size: .* solver='dqn'"),
        (lambda: DQN("CartPole-v1", risk_aversion=0.1), "unknown setting 'risk_aversion'"),
        (lambda: DQN("CartPole-v1", lr=0.1), "Did you mean 'learning_rate'"),
        (lambda: DQN(MAZE, engine="compiled"), "only tables are compiled"),
    ],
)
def test_unsupported_spaces_and_settings_are_one_clear_error(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


@each_kind
def test_the_seed_decides_everything_and_calls_of_learn_add_up(kind):
    whole = learned(kind, 14)
    again = learned(kind, 9)
    steps = again.timesteps
    again.predict(np.zeros(2, np.float32))
    again.play(3, seed=8)  # Evaluating does not change training.
    again.learn(total_episodes=5, progress_bar=False)
    assert_same(whole, again)
    assert whole.replay_buffer.added > len(whole.replay_buffer) == 20
    # As many steps as nine whole episodes have, or the fewest whole episodes that have one more.
    for more, episodes in ((0, 9), (1, 10)):
        by_steps = tiny(kind).learn(steps + more, progress_bar=False)
        assert (by_steps.episodes, by_steps.timesteps >= steps + more) == (episodes, True)
    other = learned(kind, 14, seed=1)
    assert all((x != y).any() for x, y in zip(bits(whole)[:3], bits(other)[:3], strict=True))
    assert not np.array_equal(whole.replay_buffer.rows, other.replay_buffer.rows)


@each_kind
def test_training_resumes_after_loading_bit_for_bit(kind, tmp_path):
    agent = learned(kind, 8)
    agent.save(tmp_path / "agent.steady")
    loaded = steadyrl.load(tmp_path / "agent.steady", env=agent.env)
    assert type(loaded) is kind
    assert loaded.settings == agent.settings
    assert_same(loaded, agent)
    for each in (agent, loaded):
        each.learn(total_episodes=6, progress_bar=False)
    assert_same(loaded, agent)


@each_kind
def test_a_file_may_leave_the_replay_buffer_out(kind, tmp_path):
    agent = learned(kind, 8)
    agent.save(tmp_path / "whole")
    agent.save(tmp_path / "small", replay_buffer=False)
    with pytest.warns(DeprecationWarning, match=r"save\(memory=...\) is now called save\(replay_buffer=...\)"):
        agent.save(tmp_path / "old", memory=False)
    assert (tmp_path / "old").read_bytes() == (tmp_path / "small").read_bytes()
    sizes = [(tmp_path / name).stat().st_size for name in ("whole", "small")]
    assert sizes[0] - sizes[1] > agent.replay_buffer.rows.nbytes
    loaded = kind.load(tmp_path / "small", env=partial(walk, SPACES[kind]))
    assert (len(loaded.replay_buffer), loaded.replay_buffer.added, loaded.timesteps) == (0, 0, agent.timesteps)
    seen = np.random.default_rng(0).random((9, 2), dtype=np.float32)
    np.testing.assert_array_equal(loaded.predict(seen)[0], agent.predict(seen)[0])
    loaded.learn(1, progress_bar=False)
    assert loaded.history[0]["updates"] == 0, "the replay buffer is filled anew first"
    loaded.learn(total_episodes=6, progress_bar=False)
    assert sum(record["updates"] for record in loaded.history) > 6


def test_a_callback_can_stop_it_after_any_episode():
    calls = []

    def callback(local, _):
        calls.append((local["self"].episodes, local["metrics"]["episodes"], local["num_timesteps"]))
        return len(calls) < 4

    agent = tiny(DQN).learn(total_episodes=50, callback=callback, progress_bar=False)
    assert [first for first, *_ in calls] == [episodes for _, episodes, _ in calls] == [1, 2, 3, 4]
    assert agent.episodes == 4
    assert calls[-1][2] == agent.timesteps == agent.replay_buffer.added
    assert_same(agent, learned(DQN, 4))


class Breaking(gym.Wrapper):
    """Fails at the second step of its tenth episode, until it is repaired."""

    started, repaired = 0, False

    def reset(self, **kwargs):
        self.started, self.steps = self.started + 1, 0
        return self.env.reset(**kwargs)

    def step(self, action):
        self.steps += 1
        if self.started == 10 and self.steps == 2 and not self.repaired:
            raise OSError("cable")
        return self.env.step(action)


@each_kind
def test_what_was_learned_before_a_fault_is_kept(kind):
    env = Breaking(walk(SPACES[kind]))
    agent = tiny(kind, env=env)
    with pytest.raises(FaultyEnvironmentError, match="cable at step 2 of episode 9"):
        agent.learn(total_episodes=20, progress_bar=False)
    before = learned(kind, 9)
    assert (agent.episodes, agent.timesteps) == (9, before.timesteps)
    for x, y in zip(jax.tree.leaves(agent.learner), jax.tree.leaves(before.learner), strict=True):
        np.testing.assert_array_equal(x, y)
    env.repaired = True
    assert agent.learn(total_episodes=3, progress_bar=False).episodes == 12


def test_parameters_that_diverge_are_refused(monkeypatch):
    agent = learned(DQN, 5)
    before = bits(agent)[0]
    nothing = lambda _, learner, *__: (jax.tree.map(lambda x: x * np.nan, learner), {})  # noqa: E731
    monkeypatch.setattr("steadyrl.training.engines.replay._update", nothing)
    with pytest.raises(FloatingPointError, match=r"after \d episodes. Lower learning_rate\."):
        agent.learn(total_episodes=5, progress_bar=False)
    np.testing.assert_array_equal(bits(agent)[0], before)


@pytest.mark.parametrize(("agent", "solver"), [("dqn", None), ("mvpi", "dqn")])
def test_the_command_line_trains_and_evaluates_it(agent, solver, tmp_path, capsys):
    folder = tmp_path / "run"
    command = ["train", "CartPole-v1", "--agent", agent, "--timesteps", "60", "--set", "hidden=8", "--no-progress"]
    main([*command, "--set", "exploration_steps=30", "--out", str(folder)])
    config = json.loads((folder / "config.json").read_text())
    assert config["budget"] == {"timesteps": 60}
    assert config["settings"]["exploration_steps"] == 30
    assert config["settings"].get("solver") == solver
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["timesteps"] >= 60 > records[-2]["timesteps"]
    loaded = steadyrl.load(folder / "checkpoint.steady")
    assert len(loaded.replay_buffer) == 0
    assert loaded.timesteps == records[-1]["timesteps"]
    capsys.readouterr()
    main(["evaluate", str(folder), "--episodes", "3"])
    assert "mean" in capsys.readouterr().out
