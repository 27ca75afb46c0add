"""Actions that an environment does not allow are never taken, nor learned from."""

from functools import partial

import gymnasium as gym
import jax
import numpy as np
import pytest
from gathering import gather_from
from masked_envs import ACTIONS, Guard, Pairs, Tiles, tabular_tiles, taxi, tiles_by_method
from scipy.special import log_softmax

import steadyrl
from steadyrl.agents.networks import MLP, CategoricalNetwork, SoftmaxTable
from steadyrl.agents.networks.epsilon_greedy import EpsilonGreedy, QParams
from steadyrl.agents.networks.tables import GreedyParams, GreedyTable
from steadyrl.agents.q_learning import QLearningSettings, QLearningUpdate
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.rollouts.simulators.vector import VectorEnvSimulator
from steadyrl.training.algorithm import Learner
from steadyrl.training.transitions import Transitions

SMALL = {"hidden": (8,), "episodes_per_update": 4, "inner_updates": 2}
REPLAY = {"hidden": (8,), "buffer_size": 60, "learning_starts": 8, "train_freq": 4, "batch_size": 4}
CASES = {
    "vpg": (steadyrl.MeanGini, Tiles, {**SMALL, "mean": "vpg"}),
    "ppo": (steadyrl.MeanGini, tiles_by_method, {**SMALL, "mean": "ppo"}),
    "two choices": (steadyrl.PPO, Pairs, SMALL),
    "table": (steadyrl.MeanGini, tabular_tiles, {"episodes_per_update": 4}),
    "dqn": (steadyrl.DQN, Tiles, REPLAY),
    "mvpi with dqn": (steadyrl.MVPI, Tiles, REPLAY),
    "q_learning": (steadyrl.QLearning, tabular_tiles, {}),
    "q_learning after episodes": (steadyrl.QLearning, tabular_tiles, {"update_after": "episode"}),
    "mvpi in the taxi": (steadyrl.MVPI, taxi, {}),
    "reinforce in the taxi": (steadyrl.Reinforce, taxi, {"episodes_per_update": 4}),
}


SLOW = ("vpg", "mvpi with dqn", "reinforce in the taxi")
"""What they compile takes seconds, and others have the same masks."""


@pytest.mark.parametrize("case", [pytest.param(case, marks=pytest.mark.slow if case in SLOW else []) for case in CASES])
def test_only_allowed_actions_are_taken_and_training_resumes_exactly(case, tmp_path):
    """The environments fail in a step with another action."""
    kind, make, settings = CASES[case]
    agent = kind(make, seed=1, **settings).learn(total_episodes=12, progress_bar=False)
    agent.save(tmp_path / "agent")
    again = steadyrl.load(tmp_path / "agent", env=make)
    for one in (agent, again):
        one.learn(total_episodes=12, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, again.learner)
    for deterministic in (False, True):
        assert steadyrl.evaluate(agent, make, episodes=5, deterministic=deterministic).returns.size == 5
        assert len(agent.play(3, 0, deterministic).rewards) == 3


@pytest.mark.parametrize("case", ["vpg", "two choices"])
def test_predict_takes_a_mask(case):
    kind, make, settings = CASES[case]
    agent, env = kind(make, seed=0, **settings), make()
    observation, _ = env.reset(seed=0)
    mask = np.array([0, 1, 0, 1, 0] if case == "two choices" else [0, 0, 1, 0])
    only = [1, 0] if case == "two choices" else 3 + 2
    for deterministic in (False, True):
        np.testing.assert_array_equal(agent.predict(observation, None, None, deterministic, action_mask=mask)[0], only)
    both = agent.predict(np.stack([observation] * 2), action_mask=np.stack([mask, mask]))[0]
    np.testing.assert_array_equal(both, [only] * 2)
    with pytest.raises(ValueError, match="allows no action"):
        agent.predict(observation, action_mask=np.zeros(len(mask)))
    with pytest.raises(ValueError, match=r"action_mask of shape \(7,\): there are"):
        agent.predict(observation, action_mask=np.ones(7))


def test_a_mask_for_numbers_is_an_error():
    with pytest.raises(ValueError, match=r"action_mask: actions in Box.* have none"):
        steadyrl.PPO("Pendulum-v1").predict(np.zeros(3, np.float32), action_mask=[1])


@pytest.mark.parametrize("kind", [steadyrl.PPO, steadyrl.DQN])
def test_a_mask_that_allows_nothing_is_an_error_that_names_the_step(kind):
    agent = kind(partial(Tiles, "none at all"), seed=0, hidden=(8,))
    with pytest.raises(
        FaultyEnvironmentError, match=r"allows no action at step 3 of episode 0 \(seed \d+\)\. Allow at"
    ):
        agent.learn(total_episodes=4, progress_bar=False)
    with pytest.raises(ValueError, match="allows no action at step 3 of episode 0"):
        steadyrl.evaluate(kind(Tiles, hidden=(8,)), partial(Tiles, "none at all"), episodes=2)


class Wrong(Tiles):
    """Its second episode has another mask."""

    def __init__(self, mask):
        super().__init__()
        self.episodes, self.wrong = 0, mask

    def observe(self):
        self.episodes += self.t == 0
        observation, info = super().observe()
        return observation, info if self.episodes == 1 else self.wrong


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({}, "no action mask, which others have at step 0 of episode 1"),
        ({"action_mask": [1, 1]}, r"action_mask of shape \(2,\) for 4 actions"),
        ({"action_mask": [2, 1, 1, 1]}, "values are not 0 or 1"),
    ],
)
def test_faulty_masks(info, message):
    agent = steadyrl.DQN(Wrong(info), seed=0, **REPLAY)
    with pytest.raises(ValueError, match=message):
        agent.learn(total_episodes=3, progress_bar=False)


class Late(Tiles):
    """Its masks begin with the info of a step, the `first`; before, every action is allowed."""

    def __init__(self, tabular=False, first=2):
        super().__init__(tabular=tabular)
        self.first = first

    def observe(self):
        observation, info = super().observe()
        if self.t >= self.first:
            return observation, info
        self.mask = np.ones(ACTIONS, bool)
        return observation, {}


LATE = (
    r"Late.*: an action mask in the info of step, but none in that of reset, at step 2 of episode 0 \(seed \d+\)\. "
    r"Report info\['action_mask'\] in every reset and step, or never\.$"
)


@pytest.mark.parametrize(
    ("kind", "make", "settings"),
    [
        (steadyrl.PPO, Late, SMALL),
        (steadyrl.PPO, Late, {**SMALL, "workers": 2}),
        (steadyrl.DQN, Late, REPLAY),
        (steadyrl.QLearning, partial(Late, tabular=True), {}),
    ],
    ids=["ppo", "workers", "dqn", "q_learning"],
)
def test_masks_that_begin_after_the_reset_are_an_error_in_training(kind, make, settings):
    agent = kind(make, seed=0, **settings)
    with pytest.raises(FaultyEnvironmentError, match=LATE):
        agent.learn(total_episodes=4, progress_bar=False)


def test_masks_that_begin_after_the_reset_are_an_error_in_evaluation():
    for policy in (steadyrl.DQN(Tiles, hidden=(8,)), lambda _: 3):
        with pytest.raises(FaultyEnvironmentError, match=LATE):
            steadyrl.evaluate(policy, Late, episodes=2)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize(
    ("kinds", "episode"),
    [([Late, Late], r"episode 0 \(seed"), ([partial(Late, first=9), Late], r"episode 1 \(seed")],
    ids=["all", "the second"],
)
def test_masks_that_begin_after_the_reset_are_an_error_in_vector_environments(kinds, episode, mode):
    env = gym.vector.SyncVectorEnv(kinds, autoreset_mode=gym.vector.AutoresetMode(mode))
    with pytest.raises(FaultyEnvironmentError, match=f"but none in that of reset, at step 2 of {episode}"):
        gather_from(VectorEnvSimulator(env), [5, 6])


def test_workers_play_the_same():
    runs = [steadyrl.PPO(Tiles, seed=4, workers=n, **SMALL).learn(total_episodes=8, progress_bar=False) for n in (0, 2)]
    jax.tree.map(np.testing.assert_array_equal, *(run.learner for run in runs))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_vector_environments(mode):
    env = gym.vector.SyncVectorEnv([Tiles] * 3, autoreset_mode=gym.vector.AutoresetMode(mode))
    agent = steadyrl.PPO(env, seed=0, **SMALL | {"episodes_per_update": 6})
    agent.learn(total_episodes=6, progress_bar=False)
    assert agent.episodes == 6


@pytest.mark.parametrize(
    ("policy", "observations"),
    [(CategoricalNetwork(MLP((2, 8, ACTIONS))), np.ones((3, 2), np.float32)), (SoftmaxTable(5, ACTIONS), np.arange(3))],
    ids=["network", "table"],
)
def test_log_probabilities_and_entropy_are_of_the_masked_distribution(policy, observations):
    rng = np.random.default_rng(0)
    parameters = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), policy.init(jax.random.key(0)))
    masks = np.array([[1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 1, 1]], bool)
    logits = policy.mlp(parameters, observations) if hasattr(policy, "mlp") else parameters[observations]
    actions = np.array([[2], [1], [0]])
    log_prob, entropy = policy.log_prob_and_entropy(parameters, observations, actions, masks)
    for row, mask in enumerate(masks):
        expected = log_softmax(np.asarray(logits, np.float64)[row, mask])
        place = np.flatnonzero(mask).tolist().index(actions[row, 0])
        np.testing.assert_allclose(log_prob[row, 0], expected[place], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(entropy[row], -(np.exp(expected) * expected).sum(), rtol=1e-5, atol=1e-6)
    gradient = jax.grad(lambda p: policy.log_prob(p, observations, actions, masks).sum())(parameters)
    last = gradient[-1]["bias"] if isinstance(gradient, list) else gradient[0]
    if not isinstance(gradient, list):
        assert last[1] == 0, "no gradient for an action that was not allowed"
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradient))


def test_exploration_is_uniform_over_the_allowed_actions():
    rng, masks = np.random.default_rng(0), np.tile([True, False, True, True], (30_000, 1))
    policy = EpsilonGreedy(MLP((1, ACTIONS)), 0)
    layers = [{"weight": np.zeros((1, ACTIONS), np.float32), "bias": np.float32([0, 9, 1, 0])}]
    noise = policy.noise(rng, len(masks))
    taken = policy.act(QParams(layers, 0.5), np.ones((len(masks), 1), np.float32), noise, masks)
    np.testing.assert_allclose(np.bincount(taken, minlength=4) / len(masks), [1 / 6, 0, 2 / 3, 1 / 6], atol=0.01)
    table = GreedyTable(1, ACTIONS)
    parameters = GreedyParams(np.float32([[0, 1, 0, 0]]), np.float32([[1, 9, 1, 0]]), 0.3)
    taken = table.act(parameters, np.zeros(len(masks), int), table.noise(rng, len(masks)), masks)
    np.testing.assert_allclose(np.bincount(taken, minlength=4) / len(masks), [0.45, 0, 0.45, 0.1], atol=0.01)


def test_targets_are_of_the_best_allowed_action():
    settings = QLearningSettings(q_learning_rate=1.0, gamma=0.5, update_after="step", bootstrap_on_truncation=True)
    update, mask = QLearningUpdate(3, 2, settings), np.array([True, False])
    table = np.array([[0, 0], [3, 8], [1, 1]], np.float32)
    learner = Learner(jax.numpy.asarray(table), (), (), (), ())
    update.learn_step(table, 0, 1, 1.0, 1, False, mask)
    assert table[0, 1] == 1 + 0.5 * 3
    one = jax.numpy.ones((1, 1))
    steps = Transitions(
        observations=0 * one.astype(int),
        actions=one.astype(int),
        rewards=one,
        next_observations=one.astype(int),
        terminated=one < 0,
        last=one > 0,
        mask=one > 0,
        returns=one[0],
        next_masks=jax.numpy.asarray(mask)[None, None],
    )
    assert update.update(learner, steps)[0].theta[0, 1] == 1 + 0.5 * 3
    nothing = steps._replace(next_masks=steps.next_masks & False)
    assert update.update(learner, nothing)[0].theta[0, 1] == 1, "no action, no value"


@pytest.mark.slow
@pytest.mark.optimized
def test_q_learning_solves_the_masked_taxi():
    agent = steadyrl.QLearning(lambda: Guard(gym.make("Taxi-v4")), seed=0).learn(
        total_timesteps=100_000, progress_bar=False
    )
    assert steadyrl.evaluate(agent, "Taxi-v4", episodes=100, deterministic=True).mean.value > 5
