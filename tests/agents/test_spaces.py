"""Agents in spaces of all kinds: several choices at once, nested observations, images and stacks of frames."""

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text, Tuple
from gymnasium.wrappers import FrameStackObservation
from scipy.special import log_softmax
from space_envs import Bright, Nested, Repeat, Steer, dials, switches

import steadyrl
from steadyrl.agents.networks.architecture import Architecture
from steadyrl.agents.networks.choose import networks_for, quantiles_for
from steadyrl.agents.networks.conv import convolve
from steadyrl.envs import spaces
from steadyrl.envs.images import Image, large_images
from steadyrl.training.replay_buffer import TransitionLayout

RNG = np.random.default_rng(0)
SMALL = {"hidden": (16,), "episodes_per_update": 4, "inner_updates": 2}


def random_parameters(policy):
    start = policy.init(jax.random.key(0))
    return jax.tree.map(lambda x: RNG.normal(size=x.shape).astype(np.float32), start)


def test_the_product_of_heads_sums_logs_and_entropies():
    space = MultiDiscrete([2, 4, 3], start=[5, 0, -1])
    policy, _ = networks_for(Box(-1, 1, (3,)), space, Architecture("mlp", (8,)), 0.0)
    parameters = random_parameters(policy)
    x = RNG.normal(size=(6, 3)).astype(np.float32)
    actions = np.stack([RNG.integers(n, size=6) for n in (2, 4, 3)], axis=-1)
    log_prob, entropy = policy.log_prob_and_entropy(parameters, x, actions[:, None])
    logits = policy.mlp.apply_numpy(parameters, x)
    heads = [log_softmax(part, axis=-1) for part in np.split(logits, [2, 6], axis=-1)]
    expected = sum(head[np.arange(6), chosen] for head, chosen in zip(heads, actions.T, strict=True))
    np.testing.assert_allclose(log_prob[:, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(entropy, sum(-(np.exp(h) * h).sum(-1) for h in heads), rtol=1e-5)
    best = policy.to_space(policy.act(parameters, x, None))
    np.testing.assert_array_equal(best, np.stack([h.argmax(-1) for h in heads], -1) + np.array([5, 0, -1]))
    assert all(space.contains(action) for action in best)
    many = np.repeat(x[:1], 20_000, axis=0)
    drawn = policy.act(parameters, many, policy.noise(np.random.default_rng(0), len(many)))
    for head, column in zip(heads, drawn.T, strict=True):
        np.testing.assert_allclose(np.bincount(column, minlength=head.shape[1]) / 20_000, np.exp(head[0]), atol=0.015)


@pytest.mark.parametrize(
    ("make", "mean"),
    [(switches, "ppo"), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((dials, "vpg"), (Nested, "ppo")))],
)
def test_save_load_and_predict(make, mean, tmp_path):
    agent = steadyrl.MeanGini(make, mean=mean, seed=1, **SMALL).learn(total_episodes=8, progress_bar=False)
    agent.save(tmp_path / "agent")
    again = steadyrl.load(tmp_path / "agent", env=make)
    env = make()
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation, deterministic=True)
    assert env.action_space.contains(action)
    np.testing.assert_array_equal(again.predict(observation, deterministic=True)[0], action)
    assert steadyrl.evaluate(agent, make, episodes=3).returns.shape == (3,)
    for one in (agent, again):
        one.learn(total_episodes=8, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, again.learner)
    same_space = spaces.from_json(spaces.to_json(env.observation_space))
    assert spaces.same_spaces(same_space, env.observation_space)


def test_choices_are_learned():
    """Real tasks are in test_real_spaces.py."""
    agent = steadyrl.PPO(dials, seed=0, hidden=(32,), learning_rate=3e-3, gamma=0.5, episodes_per_update=16)
    agent.learn(total_episodes=1_000, progress_bar=False)
    assert steadyrl.evaluate(agent, dials, episodes=50, deterministic=True).mean.value > 0.9 * 10


def test_blackjack_has_a_tuple():
    env = gym.make("Blackjack-v1")
    agent = steadyrl.PPO("Blackjack-v1", seed=0, **SMALL).learn(total_episodes=8, progress_bar=False)
    assert agent.algorithm.policy.mlp.inputs == 32 + 11 + 2
    observation, _ = env.reset(seed=0)
    row = spaces.flat(env.observation_space, observation)
    assert np.flatnonzero(row).tolist() == [observation[0], 32 + observation[1], 43 + observation[2]]
    batch = tuple(np.array([part, part]) for part in observation)
    assert agent.predict(batch)[0].shape == (2,)


@pytest.mark.parametrize("observation", [(1, 2), (1, -2, 0), (40, 1, 1)])
def test_a_tuple_that_does_not_fit(observation):
    agent = steadyrl.PPO("Blackjack-v1", **SMALL)
    with pytest.raises(ValueError, match=r"is not in|parts instead of"):
        agent.predict(observation)


@pytest.mark.parametrize("agent", [steadyrl.DQN, steadyrl.TD3, steadyrl.QLearning, steadyrl.MVPI])
def test_agents_without_several_choices_name_those_that_have_them(agent):
    with pytest.raises(ValueError, match=r"not supported by .*policy gradient, such as mg or ppo\.$"):
        agent(switches)


def test_text_is_still_an_error():
    with pytest.raises(ValueError, match=r"observation space .* is not supported: it must be Box, Discrete, Multi"):
        steadyrl.PPO(Repeat(Discrete(2), Tuple((Text(3), Discrete(2)))))


@pytest.mark.parametrize(
    ("shape", "sides", "channels"),
    [((40, 50), (40, 50), 1), ((40, 50, 3), (40, 50), 3), ((3, 40, 50), (40, 50), 3), ((4, 40, 50, 3), (40, 50), 12)],
)
def test_the_axis_of_the_channels_is_found(shape, sides, channels):
    image = Image(shape, start=2)
    assert (image.sides, image.channels) == (sides, channels)
    pixels = RNG.integers(0, 255, shape)
    rows = np.concatenate([[7, 7], pixels.ravel(), [7]])[None]
    found = image.channels_last(rows)[0]
    axis = {2: None, 3: 0 if shape[0] == 3 else 2, 4: 3}[len(shape)]
    expected = pixels[..., None] if axis is None else np.moveaxis(pixels, axis, -1)
    expected = np.moveaxis(expected, 0, 2).reshape(40, 50, 12) if len(shape) == 4 else expected
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("side", "stride"), [(8, 4), (4, 2), (3, 1)])
def test_convolutions_are_xlas(side, stride):
    images = RNG.normal(size=(2, 21, 30, 3)).astype(np.float32)
    weight = RNG.normal(size=(side, side, 3, 5)).astype(np.float32)
    order = ("NHWC", "HWIO", "NHWC")
    expected = jax.lax.conv_general_dilated(images, weight, (stride, stride), "VALID", dimension_numbers=order)
    np.testing.assert_allclose(convolve(images, weight, stride), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_the_nature_network():
    frames = Box(0, 255, (4, 84, 84), np.uint8)
    network = Architecture("cnn", (512,)).network(frames, 6)
    layers = network.init(jax.random.key(0))
    shapes = [(8, 8, 4, 32), (4, 4, 32, 64), (3, 3, 64, 64), (3136, 512), (512, 6)]
    assert [layer["weight"].shape for layer in layers] == shapes
    rows = RNG.integers(0, 255, (70, 4 * 84 * 84), np.uint8)  # More than are taken at once.
    ours = jax.jit(network)(layers, rows)
    np.testing.assert_allclose(ours, network.apply_numpy(jax.tree.map(np.asarray, layers), rows), atol=1e-4)
    assert np.abs(ours).max() < 3, "pixels are scaled"


def test_images_in_a_dict_are_convolved_beside_the_other_parts():
    space = Dict([("x", Box(-1, 1, (2,))), ("image", Box(0, 255, (36, 36), np.uint8)), ("door", Discrete(2))])
    (image,) = large_images(space)
    assert image == Image((36, 36), 2)
    network = Architecture("cnn", (8,)).network(space, 3, more_inputs=1)
    assert network.dense.inputs == 64 + 2 + 2 + 1
    row = np.append(spaces.flat(space, {"x": [0.1, 0.2], "image": np.full((36, 36), 51), "door": 1}), 0.7)[None]
    assert row.max() == 1
    seen = network._features(jax.tree.map(np.asarray, network.init(jax.random.key(0))), row.astype(np.float32))
    np.testing.assert_allclose(seen[0, 64:], [0.1, 0.2, 0, 1, 0.7], rtol=1e-6)


def test_a_critic_of_images_takes_a_few_at_a_time():
    """As floats, all images of a batch would be gigabytes."""
    critic = quantiles_for(Box(0, 255, (40, 40), np.uint8), "cnn")
    parameters = random_parameters(critic)
    images, times = RNG.integers(0, 255, (5, 20, 1600), np.uint8), RNG.uniform(size=(5, 20)).astype(np.float32)
    compiled = jax.jit(critic).lower(parameters, images, times).compile()
    rows = np.concatenate([images, times[..., None]], axis=-1).astype(np.float32)
    expected = critic.mlp.apply_numpy(parameters, rows)
    largest = np.abs(expected).max()  # Sums of numbers as large may be close to 0.
    np.testing.assert_allclose(compiled(parameters, images, times), expected, rtol=1e-3, atol=1e-5 * largest)
    many = jax.ShapeDtypeStruct((10, 1000, 1600), np.uint8), jax.ShapeDtypeStruct((10, 1000), np.float32)
    needed = jax.jit(critic).lower(parameters, *many).compile().memory_analysis().temp_size_in_bytes
    assert needed < 2 * many[0].size


def test_transitions_of_images_are_bytes():
    layout = TransitionLayout(inputs=5, outputs=2, in_bytes=True)
    before, after = np.arange(5, dtype=np.uint8), np.arange(250, 255, dtype=np.uint8)
    row = layout.row(before, [0.5, -1e-3], 1 / 3, after, True)
    assert row.dtype == np.uint8
    assert row.shape == (layout.width,) == (10 + 16,)
    for rows in (row[None, None], jax.numpy.asarray(row)[None, None]):
        parts = layout.parts(rows, 0)
        np.testing.assert_array_equal(parts.observations[0, 0], before)
        np.testing.assert_array_equal(parts.next_observations[0, 0], after)
        np.testing.assert_array_equal(parts.actions[0, 0], np.float32([0.5, -1e-3]))
        assert (parts.rewards[0, 0], parts.terminal[0, 0], parts.next_masks) == (np.float32(1 / 3), 1, None)


REPLAY = {"buffer_size": 200, "learning_starts": 8, "train_freq": 5, "batch_size": 4, "hidden": (8,)}
IMAGE_AGENTS = {
    "mg": (steadyrl.MeanGini, lambda: Bright((3, 36, 40)), SMALL),
    "reinforce": (steadyrl.Reinforce, lambda: Bright((36, 40, 3)), SMALL),
    "dqn": (steadyrl.DQN, Bright, REPLAY),
    "td3": (steadyrl.TD3, Steer, REPLAY),
    "dense layers": (steadyrl.DQN, Bright, {**REPLAY, "network": "mlp"}),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case == "dqn" else pytest.mark.slow) for case in IMAGE_AGENTS],
)
def test_images_stay_bytes_and_resume_exactly(case, tmp_path):
    kind, make, settings = IMAGE_AGENTS[case]
    agent = kind(make, seed=2, **settings).learn(total_episodes=8, progress_bar=False)
    assert agent.settings.network == ("mlp" if case == "dense layers" else "cnn")
    if agent.replay_buffer is not None:
        assert agent.replay_buffer.rows.dtype == np.uint8
    assert agent.play(2, seed=0).observations.dtype == np.uint8
    agent.save(tmp_path / "agent")
    again = steadyrl.load(tmp_path / "agent", env=make)
    observation, _ = make().reset(seed=5)
    action = agent.predict(observation, deterministic=True)[0]
    np.testing.assert_array_equal(again.predict(observation, deterministic=True)[0], action)
    for one in (agent, again):
        one.learn(total_episodes=8, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, again.learner)


@pytest.mark.slow
def test_convolutions_learn_which_half_is_bright():
    agent = steadyrl.PPO(Bright, seed=0, gamma=0.5, hidden=(32,), learning_rate=1e-3, episodes_per_update=8)
    agent.learn(total_episodes=160, progress_bar=False)
    assert steadyrl.evaluate(agent, Bright, episodes=20, deterministic=True).mean.value > 4.5


def test_small_images_have_dense_layers():
    agent = steadyrl.PPO(lambda: Bright((20, 20)), **SMALL)
    assert agent.settings.network == "mlp"
    with pytest.raises(ValueError, match=r"no images .* of at least 36 x 36 pixels. Use network='mlp'"):
        steadyrl.PPO(lambda: Bright((20, 20)), network="cnn")
    with pytest.raises(ValueError, match="from 0 to 1 already"):
        steadyrl.PPO(Bright, normalise_observations=True)


def stacked_cartpole():
    return FrameStackObservation(gym.make("CartPole-v1"), 3)


def stacked_images():
    return FrameStackObservation(Bright(), 4)


@pytest.mark.parametrize(
    ("make", "inputs", "network"),
    [(stacked_cartpole, 12, "mlp"), pytest.param(stacked_images, 4 * 36 * 36, "cnn", marks=pytest.mark.slow)],
)
def test_stacks_of_frames(make, inputs, network):
    agent = steadyrl.PPO(make, seed=0, **SMALL).learn(total_episodes=4, progress_bar=False)
    assert (agent.algorithm.policy.mlp.inputs, agent.settings.network) == (inputs, network)
    assert steadyrl.evaluate(agent, make, episodes=2).returns.size == 2
