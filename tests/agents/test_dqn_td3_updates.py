"""DQN and TD3 against plain loops in NumPy, step by step: parameters, target networks and metrics."""

import gymnasium as gym
import jax
import numpy as np
import pytest

from steadyrl.agents.dqn import DQNSettings, DQNUpdate
from steadyrl.agents.settings import EnvKind
from steadyrl.agents.td3 import TD3Settings, TD3Update
from steadyrl.training.replay_buffer import ReplayBatch

KEY = jax.random.key(3)
OBSERVATIONS = gym.spaces.Box(-1, 1, (3,))
RNG = np.random.default_rng(0)

pytestmark = pytest.mark.usefixtures("numpys_layers")


def normal(shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@jax.jit
def update(algorithm, learner, batches):
    return algorithm.update(learner, batches)


def replayed(updates, batch, actions, timesteps=1):
    shape = (updates, batch)
    return ReplayBatch(
        normal((*shape, 3)),
        actions,
        normal(shape),
        normal((*shape, 3)),
        (RNG.random(shape) < 0.3).astype(np.float32),
        timesteps,
    )


def forward(layers, x):
    """Outputs, and what the backward pass needs."""
    inputs = []
    for k, layer in enumerate(layers):
        inputs.append(x)
        x = x @ layer["weight"] + layer["bias"]
        if k < len(layers) - 1:
            x = np.maximum(x, 0)
    return x, inputs


def backward(layers, inputs, of_output):
    """Gradients of the layers, and of the input."""
    gradients = []
    for layer, x in zip(reversed(layers), reversed(inputs), strict=True):
        gradients.append({"weight": x.T @ of_output, "bias": of_output.sum(axis=0)})
        of_output = (of_output @ layer["weight"].T) * (x > 0 if layer is not layers[0] else 1)
    return gradients[::-1], of_output


class Adam:
    def __init__(self, rate):
        self.rate, self.m, self.v, self.t = rate, 0.0, 0.0, 0

    def step(self, layers, gradients):
        self.t += 1
        g = np.concatenate([layer[name].ravel() for layer in gradients for name in ("weight", "bias")])
        self.m, self.v = 0.9 * self.m + 0.1 * g, 0.999 * self.v + 0.001 * g**2
        move = self.rate * (self.m / (1 - 0.9**self.t)) / (np.sqrt(self.v / (1 - 0.999**self.t)) + 1e-8)
        moved = []
        for layer in layers:
            moved.append({})
            for name in ("weight", "bias"):
                size = layer[name].size
                moved[-1][name] = layer[name] - move[:size].reshape(layer[name].shape)
                move = move[size:]
        return moved


def in_64_bits(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def assert_metrics(metrics, **expected):
    assert metrics.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def assert_close(ours, theirs):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5), ours, theirs)


@pytest.mark.parametrize(
    ("double", "huber", "tau", "interval"),
    [(False, True, 0.3, 5), (True, False, 1.0, 1)],
)
def test_dqn_is_the_textbooks(double, huber, tau, interval):
    common = {"gamma": 0.9, "learning_rate": 0.01, "hidden": (8, 8), "train_freq": 2}
    settings = DQNSettings(double=double, huber=huber, tau=tau, target_update_interval=interval, **common)
    settings = settings.resolve(EnvKind(tabular=False))
    algorithm = DQNUpdate.of(settings, OBSERVATIONS, gym.spaces.Discrete(4))
    learner = algorithm.init(KEY)
    Q, target, adam = in_64_bits(learner.theta), in_64_bits(learner.theta), Adam(0.01)
    for timesteps in (2, 4, 6, 8, 10):
        actions = RNG.integers(4, size=(2, 16, 1)).astype(np.float32)
        some = replayed(2, 16, actions, timesteps)
        some = some._replace(rewards=3 * some.rewards)  # Errors on both sides of 1.
        learner, metrics = update(algorithm, learner, some)
        # As often as a step since the last round was one for it: every 5 steps at 5 and 10, in the rounds of 6 and 10.
        for _ in [step for step in (timesteps - 1, timesteps) if step % interval == 0]:
            target = jax.tree.map(lambda old, new: (1 - tau) * old + tau * new, target, Q)
        losses, means = [], []
        for u in range(2):
            next_values = forward(target, some.next_observations[u])[0]
            best = (forward(Q, some.next_observations[u])[0] if double else next_values).argmax(axis=1)
            y = some.rewards[u] + 0.9 * (1 - some.terminal[u]) * next_values[np.arange(16), best]
            values, inputs = forward(Q, some.observations[u])
            chosen = actions[u, :, 0].astype(int)
            error = values[np.arange(16), chosen] - y
            squared, absolute = error**2 / 2, np.abs(error)
            losses.append(np.where(huber & (absolute > 1), absolute - 0.5, squared).mean())
            means.append(values[np.arange(16), chosen].mean())
            of_output = np.zeros_like(values)
            of_output[np.arange(16), chosen] = (np.clip(error, -1, 1) if huber else error) / 16
            Q = adam.step(Q, backward(Q, inputs, of_output)[0])
        assert_metrics(metrics, critic_loss=np.mean(losses), mean_q=np.mean(means))
    assert_close(learner.theta, Q)
    assert_close(learner.targets, target)


def test_td3_is_algorithm_1_of_its_paper():
    """Two critics to the lower target with smoothed actions; policy and targets at every second update."""
    settings = TD3Settings(
        gamma=0.9, learning_rate=0.01, hidden=(8, 8), tau=0.1, target_policy_noise=0.4, target_noise_clip=0.3
    ).resolve(EnvKind(tabular=False))
    algorithm = TD3Update.of(settings, OBSERVATIONS, gym.spaces.Box(-2, 2, (2,)))
    learner = algorithm.init(KEY)
    key = jax.random.wrap_key_data(learner.key)
    pi, (Q1, Q2) = in_64_bits(learner.theta), in_64_bits(learner.phi)
    slow = [pi, Q1, Q2]
    adams = [Adam(0.01) for _ in range(3)]
    some = replayed(6, 16, RNG.uniform(-1, 1, (6, 16, 2)).astype(np.float32), timesteps=())
    metrics = []
    for rounds in (slice(0, 3), slice(3, 6)):  # Every second update, across rounds.
        learner, latest = update(algorithm, learner, jax.tree.map(lambda x, r=rounds: x[r], some))
        metrics.append(latest)
    losses, means = [], []
    for u in range(6):
        s, a, r, after, terminal = (x[u] for x in some[:5])
        noise = np.clip(0.4 * np.asarray(jax.random.normal(jax.random.fold_in(key, u), a.shape)), -0.3, 0.3)
        following = np.clip(np.tanh(forward(slow[0], after)[0]) + noise, -1, 1)
        there = np.concatenate([after, following], axis=1)
        y = r + 0.9 * (1 - terminal) * np.minimum(forward(slow[1], there)[0][:, 0], forward(slow[2], there)[0][:, 0])
        here, critics, errors = np.concatenate([s, a], axis=1), [], []
        means.append(forward(Q1, here)[0].mean())
        for Q, adam in zip((Q1, Q2), adams[1:], strict=True):
            value, inputs = forward(Q, here)
            errors.append((value - y[:, None]) ** 2)
            critics.append(adam.step(Q, backward(Q, inputs, 2 * (value - y[:, None]) / 16)[0]))
        Q1, Q2 = critics
        losses.append(np.mean(errors[0] + errors[1]))
        if u % 2 == 1:
            out, inputs = forward(pi, s)
            action = np.tanh(out)
            _, at = forward(Q1, np.concatenate([s, action], axis=1))
            of_action = backward(Q1, at, -np.ones((16, 1)) / 16)[1][:, 3:]
            pi = adams[0].step(pi, backward(pi, inputs, of_action * (1 - action**2))[0])
            slow = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, slow, [pi, Q1, Q2])
    for latest, rounds in zip(metrics, (slice(0, 3), slice(3, 6)), strict=True):
        assert_metrics(latest, critic_loss=np.mean(losses[rounds]), mean_q=np.mean(means[rounds]))
    assert_close(learner.theta, pi)
    assert_close(learner.phi, [Q1, Q2])
    assert_close([learner.targets.theta, *learner.targets.phi], slow)
