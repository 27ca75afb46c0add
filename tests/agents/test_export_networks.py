"""Exported convolutions and recurrent networks act as `predict` does: on frames of a race, and along whole episodes."""

import gymnasium as gym
import jax
import numpy as np
import onnxruntime
import pytest
import run_policy
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import FrameStackObservation, TransformAction
from memory_envs import cart_without_velocities
from real_envs import Views, race

import steadyrl
from steadyrl.envs.spaces import as_batch

pytestmark = pytest.mark.usefixtures("numpys_layers")
N = 1000
AT_ONCE = 50


@pytest.fixture(scope="module")
def images():
    """[N, 96, 96, 3]: frames of the race with random actions, each also mirrored in both directions."""
    env = race()
    env.action_space.seed(0)
    frames = [env.reset(seed=1)[0]]
    while len(frames) < N // 4:
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        frames.append(env.reset()[0] if terminated or truncated else observation)
    frames = np.stack(frames)
    mirrored = frames, frames[:, ::-1], frames[:, :, ::-1], frames[:, ::-1, ::-1]
    return np.random.default_rng(0).permutation(np.concatenate(mirrored))


IMAGES = {
    "dqn": (lambda: steadyrl.DQN(race, buffer_size=10, hidden=(64,)), lambda images: images),
    "frame stacks": (
        lambda: steadyrl.PPO(FrameStackObservation(race(), 2), hidden=(64,), activation="tanh"),
        lambda images: np.stack([images, np.roll(images, 1, axis=0)], axis=1),
    ),
    "images beside numbers": (
        lambda: steadyrl.PPO(Views(race()), hidden=(32, 32), layer_norm=True),
        lambda images: Views(race()).observation(images),
    ),
}


@pytest.mark.parametrize("case", ["dqn", *(pytest.param(case, marks=pytest.mark.slow) for case in list(IMAGES)[1:])])
def test_convolutions(case, images, tmp_path):
    make, seen = IMAGES[case]
    agent, batch = make(), seen(images)
    spread_outputs(agent, batch)
    session = onnx_session(agent, tmp_path)
    arrays = dict(np.load(agent.export(tmp_path / "policy.npz")))
    chosen = []
    for start in range(0, N, AT_ONCE):
        part = jax.tree.map(lambda x, k=start: x[k : k + AT_ONCE], batch)
        expected = agent.predict(part, deterministic=True)[0]
        named = part if isinstance(part, dict) else {"observation": part}
        np.testing.assert_array_equal(session.run(["action"], named)[0], expected)
        np.testing.assert_array_equal(run_policy.act(arrays, part), expected)
        chosen.append(expected)
    assert np.bincount(np.concatenate(chosen)).max() < 0.9 * N


def spread_outputs(agent, batch):
    """Outputs of the policy's network become N(0, 1) on some of the batch, so that actions differ."""
    some = jax.tree.map(lambda x: x[:AT_ONCE], batch)
    actor, rows = agent.actor(), as_batch(agent.observation_space, some)[0]
    *hidden, last = agent.learner.theta
    outputs = actor.policy.mlp.apply_numpy(jax.tree.map(np.asarray, agent.learner.theta), actor.features(rows))
    mean, std = outputs.mean(axis=0), outputs.std(axis=0)
    last = {"weight": last["weight"] / std, "bias": (last["bias"] - mean) / std}
    agent.learner = agent.learner._replace(theta=[*hidden, last])


def onnx_session(agent, folder):
    return onnxruntime.InferenceSession(agent.export(folder / "policy.onnx"), providers=["CPUExecutionProvider"])


def torques():
    """Pendulum with a choice of torques."""
    return TransformAction(gym.make("Pendulum-v1"), lambda k: np.float32([k - 2]), Discrete(4, start=1))


RECURRENT = {
    "cart": (steadyrl.PPO, cart_without_velocities, {"hidden": (16,)}),
    "torques": (steadyrl.PPO, torques, {"hidden": (16, 8), "activation": "silu", "layer_norm": True}),
    "pendulum": (steadyrl.MeanGini, lambda: gym.make("Pendulum-v1"), {"hidden": (16, 8), "activation": "tanh"}),
}


@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent_policies_along_whole_episodes(case, tmp_path):
    kind, make, settings = RECURRENT[case]
    agent, env = kind(make, network="gru", **settings), make()
    prepare_recurrent(agent, env)
    session = onnx_session(agent, tmp_path)
    assert [given.name for given in session.get_inputs()] == ["observation", "state"]
    start = np.zeros((1, settings["hidden"][-1]), np.float32)
    actions, done, episodes = [], True, 0
    for _ in range(N):
        if done:
            observation, _ = env.reset(seed=episodes)
            ours, theirs, episodes = None, start, episodes + 1
        expected, ours = agent.predict(observation, ours, deterministic=True)
        (action,), theirs = session.run(["action", "next_state"], {"observation": observation[None], "state": theirs})
        np.testing.assert_allclose(action, expected, atol=1e-5)
        np.testing.assert_allclose(theirs[0], ours, atol=1e-5)
        actions.append(action)
        observation, _, terminated, truncated, _ = env.step(expected)
        done = terminated or truncated
    assert episodes > 4
    assert np.std(actions) > 0.1


def prepare_recurrent(agent, env):
    """Outputs of the policy's network become N(0, 1) along an episode with random actions, so that actions differ."""
    rng, theta = np.random.default_rng(0), agent.learner.theta
    env.action_space.seed(0)
    observation, state, states = env.reset(seed=0)[0], None, []
    for _ in range(10):
        _, state = agent.predict(observation, state)
        states.append(state)
        observation = env.step(env.action_space.sample())[0]
    layers = theta["mean"] if isinstance(theta, dict) else theta
    weight = rng.normal(size=layers[-1]["weight"].shape)
    mean, std = (np.stack(states) @ weight).mean(axis=0), (np.stack(states) @ weight).std(axis=0)
    layers = [*layers[:-1], {"weight": np.float32(weight / std), "bias": np.float32(-mean / std)}]
    agent.learner = agent.learner._replace(theta=theta | {"mean": layers} if isinstance(theta, dict) else layers)


def test_a_batch_of_recurrent_policies(tmp_path):
    agent = steadyrl.PPO(cart_without_velocities, network="gru", hidden=(8,))
    prepare_recurrent(agent, cart_without_velocities())
    rng = np.random.default_rng(0)
    observations, states = (np.float32(rng.normal(size=(N, size))) for size in (2, 8))
    expected, after = agent.predict(observations, states, deterministic=True)
    given = {"observation": observations, "state": states}
    actions, next_states = onnx_session(agent, tmp_path).run(None, given)
    np.testing.assert_array_equal(actions, expected)
    np.testing.assert_allclose(next_states, after, atol=1e-5)
    with pytest.raises(ValueError, match=r"^a policy with a GRU has a state, which .*\. Export it to \.onnx\.$"):
        agent.export(tmp_path / "policy.npz")


def test_names_that_observations_have_already(tmp_path):
    env = gym.Env()
    names = ("state", "action", "action_mask")
    env.observation_space, env.action_space = Dict({name: Box(-1, 1, (2,)) for name in names}), Discrete(2)
    session = steadyrl.PPO(env, network="gru", hidden=(4,)).export(tmp_path / "policy.onnx", action_masks=True)
    session = onnxruntime.InferenceSession(session, providers=["CPUExecutionProvider"])
    assert [given.name for given in session.get_inputs()] == [*sorted(names), "state_", "action_mask_"]
    assert [given.name for given in session.get_outputs()] == ["action_", "next_state"]
