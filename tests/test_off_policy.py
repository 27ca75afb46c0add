"""DQN and TD3 as users have them: when they update, how they explore, what they go on from, what they learn."""

import json
from functools import partial

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import TimeLimit
from scipy import stats
from toy_envs import BOX, NUMBERS, TINY, Counter, Diary, Walk, walk

import steadyrl
from steadyrl.agents import DQN, MVPI, TD3, QLearning
from steadyrl.cli import main
from steadyrl.episodes import FaultyEnvironmentError
from steadyrl.memory import Memory

NEVER = 10**6
MAZE = "steadyrl/GuardedMaze-v0"
SPACES = {DQN: NUMBERS, TD3: BOX}
each_kind = pytest.mark.parametrize("kind", [DQN, TD3])

pytestmark = pytest.mark.usefixtures("numpys_layers")


def tiny(kind, seed=0, env=None, **settings):
    space, common = TINY[kind.name]
    return kind(env or partial(walk, space), seed=seed, **{**common, **settings})


def learned(kind, episodes, **given):
    return tiny(kind, **given).learn(total_episodes=episodes, progress_bar=False)


def bits(agent):
    """All that goes on from here."""
    counts = [agent.iterations, agent.episodes, agent.timesteps, agent.memory.added]
    return [*map(np.asarray, jax.tree.leaves(agent.learner)), agent.memory.rows, np.array(counts)]


def assert_same(ours, others):
    for x, y in zip(bits(ours), bits(others), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "rhythm",
    [
        {},
        {"gradient_steps": 5},
        {"train_freq": 7, "gradient_steps": 1, "learning_starts": 20},
        {"train_freq": 1, "learning_starts": 10},
        {"learning_starts": 50, "buffer_size": 8},
    ],
)
def test_updates_come_in_rounds_wherever_episodes_end(rhythm, monkeypatch):
    """One for each step unless told otherwise, from what is remembered by then, and none before there is enough."""
    rounds, generators, sample = [], [], Memory.sample

    def note(algorithm, learner, rows, timesteps):
        rounds.append((timesteps, rows))
        return learner

    def note_and_sample(memory, generator, *shape):
        generators.append(generator.bit_generator.state["state"]["state"])
        return sample(memory, generator, *shape)

    monkeypatch.setattr("steadyrl.replay_engine._update", note)
    monkeypatch.setattr(Memory, "sample", note_and_sample)
    agent = learned(DQN, 15, **rhythm)
    s, last = agent.settings, agent.timesteps
    enough = min(s.learning_starts, s.buffer_size)
    expected = [t for t in range(1, last + 1) if t % s.train_freq == 0 and t >= enough]
    assert [t for t, _ in rounds] == expected
    assert {rows.shape for _, rows in rounds} == {(s.gradient_steps, 4, agent.algorithm.layout.width)}
    assert s.gradient_steps == rhythm.get("gradient_steps", s.train_freq)
    ends = [record["timesteps"] for record in agent.history]
    assert set(expected) - set(ends), "some rounds are in the midst of an episode"
    for record, start in zip(agent.history, [0, *ends], strict=False):
        assert record["updates"] == s.gradient_steps * sum(start < t <= record["timesteps"] for t in expected)
    assert len(set(generators)) == len(rounds), "each round draws anew"


def test_it_acts_by_what_it_learned_from_the_next_step_on_and_no_sooner(monkeypatch):
    """Here each round makes another action the best, whether or not an episode ends there."""
    rounds = []

    def turn(algorithm, learner, rows, timesteps):
        rounds.append(timesteps)
        best = {**learner.theta[-1], "bias": 1e9 * np.eye(3, dtype=np.float32)[len(rounds) % 3]}
        return learner._replace(theta=[*learner.theta[:-1], best])

    monkeypatch.setattr("steadyrl.replay_engine._update", turn)
    agent = learned(DQN, 15, exploration_initial_eps=0.0, exploration_final_eps=0.0, buffer_size=100)
    actions = agent.algorithm.layout.parts(agent.memory.rows, 0).actions[:, 0]
    made = np.searchsorted(rounds, np.arange(agent.timesteps), side="right")  # Rounds before each step.
    np.testing.assert_array_equal(actions[made > 0], made[made > 0] % 3)
    assert len(rounds) > 10


@each_kind
def test_every_update_is_made_and_told(kind):
    agent = learned(kind, 12)
    made = agent.timesteps // 3 * 3 - 3  # None at step 3, then three at 6, 9, ...
    optimiser = agent.learner.theta_optimiser if kind is DQN else agent.learner.phi_optimiser
    assert int(optimiser[0].count) == sum(record["updates"] for record in agent.history) == made > 20
    if kind is TD3:
        assert int(agent.learner.updates) == made
        assert int(agent.learner.theta_optimiser[0].count) == made // 2


def test_exploration_fades_in_a_line_over_all_steps():
    agent = tiny(DQN, exploration_final_eps=0.1)
    rates = [agent.behaviour(exploring_at=t).parameters.epsilon for t in (0, 10, 20, 40, 1000)]
    np.testing.assert_allclose(rates, [1, 0.775, 0.55, 0.1, 0.1])
    assert agent.behaviour().parameters.epsilon == 0
    agent = tiny(DQN, exploration_initial_eps=0.6, exploration_final_eps=0.6)
    behaviour, seen = agent.behaviour(exploring_at=0), np.zeros((60_000, 2), np.float32)
    actions = behaviour.act(seen, behaviour.policy.noise(np.random.default_rng(0), len(seen)))
    best = agent.predict(seen[0])[0] - NUMBERS.start
    share = np.bincount(actions, minlength=3) / len(seen)
    np.testing.assert_allclose(share, np.where(np.arange(3) == best, 0.6, 0.2), atol=0.01)


def collected(kind, episodes, **settings):
    """An agent after episodes of 50 steps and more without an update, and the parts of what it remembers."""
    quiet = {"learning_starts": NEVER, "buffer_size": 2000, **settings}
    agent = learned(kind, episodes, env=Diary(Walk(SPACES[kind], more=50)), **quiet)
    return agent, agent.algorithm.layout.parts(agent.memory.rows, agent.timesteps)


def test_exploration_goes_on_from_episode_to_episode():
    """At first any action, in the end the best alone; the policy is the same all the time."""
    agent, parts = collected(DQN, 15, exploration_steps=400, exploration_final_eps=0.0)
    other = parts.actions[:, 0] != agent.predict(parts.observations)[0] - NUMBERS.start
    assert agent.timesteps > 600
    assert other[:60].mean() == pytest.approx(2 / 3, abs=0.2)
    assert other[170:230].mean() == pytest.approx(1 / 3, abs=0.2)
    assert not other[404:].any()


def test_td3_starts_with_any_action():
    agent, parts = collected(TD3, 20)
    actions, taken = parts.actions, np.array([page[1] for page in agent.env.pages])
    for column in actions.T:
        assert stats.kstest(column, "uniform", (-1, 2)).pvalue > 1e-3
    assert np.abs(np.corrcoef(actions.T) - np.eye(4)).max() < 0.15
    assert np.abs(np.corrcoef(actions[:-1, 0], actions[1:, 0])[0, 1]) < 0.15
    assert (taken.shape, taken.dtype) == ((agent.timesteps, 2, 2), np.float32)
    assert all(map(BOX.contains, taken))
    width = BOX.high - BOX.low
    np.testing.assert_array_less((taken.min(axis=0) - BOX.low) / width, 0.02)
    np.testing.assert_array_less((BOX.high - taken.max(axis=0)) / width, 0.02)


@pytest.mark.parametrize("noise", [0.3, 2.0, 0.0])
def test_then_td3_stays_near_its_own_action_and_within_the_bounds(noise):
    agent = tiny(TD3, env=Walk(BOX, more=50), learning_starts=60, train_freq=60, exploration_noise=noise)
    agent.learner = agent.learner._replace(theta=jax.tree.map(np.zeros_like, agent.learner.theta))
    behaviour, seen = agent.behaviour(exploring_at=60), np.ones((4000, 2), np.float32)
    actions = behaviour.act(seen, behaviour.policy.noise(np.random.default_rng(0), len(seen)))
    bound = stats.norm.cdf(-1 / noise) if noise else 0.0  # Whatever is beyond a bound is on it.
    for end in (-1, 1):
        assert (actions == end).mean() == pytest.approx(bound, abs=0.015)
    assert np.abs(actions).max() <= 1
    inside = actions[np.abs(actions) < 1]
    if noise:
        assert stats.kstest(inside, stats.truncnorm(-1 / noise, 1 / noise, scale=noise).cdf).pvalue > 1e-3
    else:
        assert not inside.any()


def test_td3_counts_the_steps_of_all_episodes_until_it_starts():
    """Learning starts at step 100; the policy is that of the start, for no round of updates comes."""
    agent, parts = collected(TD3, 4, learning_starts=100, train_freq=NEVER, exploration_noise=0.0)
    own = agent.behaviour().act(parts.observations, None)
    ends = np.cumsum([record["length"] for record in agent.history]).astype(int)
    first = next(end for end in ends if end >= 100)
    assert (np.abs(parts.actions - own).max(axis=1) > 1e-3)[:first].all()
    np.testing.assert_allclose(parts.actions[first:], own[first:], atol=1e-6)
    assert first < agent.timesteps


@each_kind
def test_what_is_learned_names_one_action(kind):
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
def test_what_does_not_fit_is_one_clear_error(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


@each_kind
def test_the_seed_decides_everything_and_calls_of_learn_add_up(kind):
    whole = learned(kind, 14)
    again = learned(kind, 9)
    steps = again.timesteps
    again.predict(np.zeros(2, np.float32))
    again.play(3, seed=8)  # To evaluate on the way changes nothing.
    again.learn(total_episodes=5, progress_bar=False)
    assert_same(whole, again)
    assert whole.memory.added > len(whole.memory) == 20
    # As many steps as nine whole episodes have, or the fewest whole episodes that have one more.
    for more, episodes in ((0, 9), (1, 10)):
        by_steps = tiny(kind).learn(steps + more, progress_bar=False)
        assert (by_steps.episodes, by_steps.timesteps >= steps + more) == (episodes, True)
    other = learned(kind, 14, seed=1)
    assert all((x != y).any() for x, y in zip(bits(whole)[:3], bits(other)[:3], strict=True))
    assert not np.array_equal(whole.memory.rows, other.memory.rows)


@each_kind
def test_learns_on_after_loading_as_if_it_had_never_stopped(kind, tmp_path):
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
def test_a_file_may_leave_the_memory_out(kind, tmp_path):
    agent = learned(kind, 8)
    for name, memory in (("whole", True), ("small", False)):
        agent.save(tmp_path / name, memory=memory)
    sizes = [(tmp_path / name).stat().st_size for name in ("whole", "small")]
    assert sizes[0] - sizes[1] > agent.memory.rows.nbytes
    loaded = kind.load(tmp_path / "small", env=partial(walk, SPACES[kind]))
    assert (len(loaded.memory), loaded.memory.added, loaded.timesteps) == (0, 0, agent.timesteps)
    seen = np.random.default_rng(0).random((9, 2), dtype=np.float32)
    np.testing.assert_array_equal(loaded.predict(seen)[0], agent.predict(seen)[0])
    loaded.learn(1, progress_bar=False)
    assert loaded.history[0]["updates"] == 0, "the memory is filled anew first"
    loaded.learn(total_episodes=6, progress_bar=False)
    assert sum(record["updates"] for record in loaded.history) > 6


def test_a_callback_can_stop_it_after_any_episode():
    told = []

    def callback(local, _):
        told.append((local["self"].episodes, local["metrics"]["episodes"], local["num_timesteps"]))
        return len(told) < 4

    agent = tiny(DQN).learn(total_episodes=50, callback=callback, progress_bar=False)
    assert [first for first, *_ in told] == [episodes for _, episodes, _ in told] == [1, 2, 3, 4]
    assert agent.episodes == 4
    assert told[-1][2] == agent.timesteps == agent.memory.added
    assert_same(agent, learned(DQN, 4))


class Breaking(gym.Wrapper):
    """Fails at the second step of its tenth episode, until it is mended."""

    started, mended = 0, False

    def reset(self, **kwargs):
        self.started, self.steps = self.started + 1, 0
        return self.env.reset(**kwargs)

    def step(self, action):
        self.steps += 1
        if self.started == 10 and self.steps == 2 and not self.mended:
            raise OSError("cable")
        return self.env.step(action)


@each_kind
def test_a_faulty_environment_leaves_what_was_learned_before(kind):
    env = Breaking(walk(SPACES[kind]))
    agent = tiny(kind, env=env)
    with pytest.raises(FaultyEnvironmentError, match="cable at step 2 of episode 9"):
        agent.learn(total_episodes=20, progress_bar=False)
    before = learned(kind, 9)
    assert (agent.episodes, agent.timesteps) == (9, before.timesteps)
    for x, y in zip(jax.tree.leaves(agent.learner), jax.tree.leaves(before.learner), strict=True):
        np.testing.assert_array_equal(x, y)
    env.mended = True
    assert agent.learn(total_episodes=3, progress_bar=False).episodes == 12


def test_parameters_that_diverge_are_not_taken_over(monkeypatch):
    agent = learned(DQN, 5)
    before = bits(agent)[0]
    nothing = lambda _, learner, *__: jax.tree.map(lambda x: x * np.nan, learner)  # noqa: E731
    monkeypatch.setattr("steadyrl.replay_engine._update", nothing)
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
    assert len(loaded.memory) == 0
    assert loaded.timesteps == records[-1]["timesteps"]
    capsys.readouterr()
    main(["evaluate", str(folder), "--episodes", "3"])
    assert "mean" in capsys.readouterr().out


class Corridor(gym.Env):
    """Five cells; leaving to the right pays 1, each step to the left 0.02. Starts anywhere."""

    observation_space = Dict({"cell": Discrete(6), "more": Box(0, 1, (1,))})
    action_space = Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(5))
        return self.observation(self.cell), {}

    def step(self, action):
        move = int(action) - 6
        self.cell = max(0, self.cell + move)
        reward = 1.0 if self.cell == 5 else 0.02 if move == -1 else 0.0
        return self.observation(self.cell), reward, self.cell == 5, False, {}

    @staticmethod
    def observation(cell):
        return {"cell": cell, "more": np.zeros(1, np.float32)}


def test_dqn_finds_the_way_out_and_what_it_is_worth():
    """0.9^k, k steps from the last cell: left pays at once but is worth less, and nothing comes after the exit."""
    settings = {"hidden": (32,), "gamma": 0.9, "learning_rate": 5e-3, "batch_size": 64, "exploration_final_eps": 1.0}
    settings |= {"learning_starts": 400, "train_freq": 10, "gradient_steps": 30, "target_update_interval": 10}
    agent = DQN(lambda: TimeLimit(Corridor(), 40), seed=0, **settings)
    agent.learn(800, progress_bar=False)
    cells = [Corridor.observation(cell) for cell in range(5)]
    assert [int(agent.predict(cell)[0]) for cell in cells] == [7] * 5
    rows = np.eye(7, dtype=np.float32)[:5]
    values = agent.algorithm.policy.mlp.in_numpy(agent.behaviour().parameters.layers, rows)
    np.testing.assert_allclose(values.max(axis=1), 0.9 ** np.arange(4, -1, -1), atol=0.08)


class Echo(gym.Env):
    """Each step asks for an action, 0.5 or 2, and pays for the one before: less by the square of half its error.

    At once it pays a twentieth of the action, so a step is best at 1 / (10 gamma) above what it asks for.
    """

    observation_space, action_space = Box(-9, 9, (2,)), Box(-1, 3, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.debt = 0.0
        return self.observation(), {}

    def step(self, action):
        reward = float(action[0]) / 20 - self.debt
        self.debt = ((float(action[0]) - (2.0 if self.asked else 0.5)) / 2) ** 2
        return self.observation(), reward, False, False, {}

    def observation(self):
        self.asked = int(self.np_random.integers(2))
        return np.float32([self.asked, self.debt])


def test_td3_finds_the_best_action_of_a_range():
    """The highest action pays most at once: only what comes after tells that another is better."""
    settings = {"hidden": (64,), "gamma": 0.8, "learning_rate": 3e-3, "batch_size": 64, "tau": 0.02}
    settings |= {"learning_starts": 500, "train_freq": 20, "gradient_steps": 60}
    agent = TD3(lambda: TimeLimit(Echo(), 100), seed=0, **settings)
    agent.learn(1500, progress_bar=False)
    asked = np.float32([[0, 0.1], [1, 0.1]])
    np.testing.assert_allclose(agent.predict(asked)[0][:, 0], [0.625, 2.125], atol=0.3)
