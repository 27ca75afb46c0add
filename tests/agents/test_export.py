"""Exported policies act as `predict` does: through onnxruntime, and through the runner that needs NumPy alone."""

import ast
import sys
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import onnx
import onnxruntime
import pytest
import run_policy
from commands import refusal
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from toy_envs import Counter

import steadyrl
from steadyrl.cli.main import main
from steadyrl.envs.spaces import as_batch, choices
from steadyrl.rollouts.normalization import RunningMoments

pytestmark = pytest.mark.usefixtures("numpys_layers")
N = 1000


class Spaces(gym.Env):
    """Any spaces; it is never played."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space


REACH = Box(np.array([-2, 0, -1]), np.array([1, 0.5, 3]), dtype=np.float64)
FREE = Box(np.float32([-np.inf, 0, -1]), np.float32([np.inf, np.inf, 1]))
SEEN = Box(-5, 5, (6,), np.float32)
NESTED = Tuple([MultiDiscrete([2, 3], start=[1, 0]), Dict({"on": MultiBinary(2), "x": SEEN, "k": Discrete(3)})])
AGENTS = {
    "ppo, discrete": lambda: steadyrl.PPO("CartPole-v1"),
    "reinforce, actions from 3": lambda: steadyrl.Reinforce(Spaces(SEEN, Discrete(4, start=3))),
    "mg with ppo, continuous": lambda: steadyrl.MeanGini("Pendulum-v1", mean="ppo"),
    "mg with vpg, bounds of their own": lambda: steadyrl.MeanGini(Spaces(SEEN, REACH), mean="vpg"),
    "vpg, without bounds": lambda: steadyrl.Reinforce(Spaces(SEEN, FREE)),
    "actions with two axes": lambda: steadyrl.PPO(Spaces(SEEN, Box(-1, 2, (2, 2), np.float32))),
    "dqn": lambda: steadyrl.DQN("CartPole-v1"),
    "mvpi with dqn": lambda: steadyrl.MVPI("CartPole-v1", risk_aversion=0.1),
    "td3": lambda: steadyrl.TD3("Pendulum-v1"),
    "64-bit observations": lambda: steadyrl.TD3(Spaces(Box(-9, 9, (3,), np.float64), REACH)),
    "pixels": lambda: steadyrl.PPO(Spaces(Box(0, 255, (4, 5), np.uint8), Discrete(3))),
    "dict": lambda: steadyrl.PPO(Counter("dict")),
    "a tuple, and several choices": lambda: steadyrl.PPO(Spaces(NESTED, MultiDiscrete([3, 2, 4], start=[5, 0, -1]))),
    "two by two switches": lambda: steadyrl.PPO(Spaces(SEEN, MultiBinary((2, 2))), activation="tanh"),
    "layer normalization and silu": lambda: steadyrl.PPO("CartPole-v1", layer_norm=True, activation="silu"),
    "elu": lambda: steadyrl.TD3("Pendulum-v1", activation="elu"),
    "a network of states": lambda: steadyrl.DQN(Counter("discrete")),
    "a table": lambda: steadyrl.MeanGini("steadyrl/GuardedMaze-v0"),
    "a table of values": lambda: steadyrl.QLearning("CliffWalking-v1"),
}


def prepared(agent, batch):
    """With moments as if something had been seen, and outputs of the network or table that differ: N(0, 1)."""
    rng, learner = np.random.default_rng(7), agent.learner
    if learner.seen:
        inputs = len(learner.seen.mean)
        moments = rng.normal(size=inputs), rng.uniform(0.01, 4, inputs)
        learner = learner._replace(seen=RunningMoments(np.float32(9), *(np.float32(x) for x in moments)))
    if not isinstance(learner.theta, list | dict):
        agent.learner = learner._replace(theta=np.asarray(rng.normal(size=learner.theta.shape), np.float32))
        return agent
    agent.learner = learner
    layers = learner.theta["mean"] if isinstance(learner.theta, dict) else learner.theta
    actor, rows = agent.actor(), as_batch(agent.observation_space, batch)[0]
    outputs = actor.policy.mlp.apply_numpy(jax.tree.map(np.asarray, layers), actor.inputs(actor.features(rows)))
    mean, std = outputs.mean(axis=0), outputs.std(axis=0)
    layers[-1] = {"weight": layers[-1]["weight"] / std, "bias": (layers[-1]["bias"] - mean) / std}
    return agent


def observations(agent):
    """N of them, as a batch; of unbounded ones, some are far away."""
    space = gym.vector.utils.batch_space(agent.observation_space, N)
    space.seed(0)
    batch = space.sample()
    return 30 * batch if isinstance(batch, np.ndarray) and batch.dtype == np.float32 else batch


def leaves(batch, name=""):
    """The inputs of an ONNX model by name."""
    if not isinstance(batch, dict | tuple):
        return {name.lstrip("/") or "observation": batch}
    parts = batch.items() if isinstance(batch, dict) else enumerate(batch)
    return {key: part for k, inner in parts for key, part in leaves(inner, f"{name}/{k}").items()}


def run_onnx(path, batch, **more):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (actions,) = session.run(None, leaves(batch) | more)
    return actions


def check_equal(actions, expected):
    """Rounding differs between matrix products of other libraries, and nothing else."""
    assert actions.shape == expected.shape
    assert actions.dtype == expected.dtype
    if np.issubdtype(expected.dtype, np.integer):
        np.testing.assert_array_equal(actions, expected)
        assert len(np.unique(expected)) > 1
    else:
        np.testing.assert_allclose(actions, expected, atol=3e-5 * np.abs(expected).max())
        assert expected.std() > 0.1


@pytest.mark.parametrize("name", AGENTS)
def test_files_act_as_predict_does(name, tmp_path):
    agent = AGENTS[name]()
    batch = observations(agent)
    prepared(agent, batch)
    expected, _ = agent.predict(batch, deterministic=True)
    check_equal(run_onnx(agent.export(tmp_path / "policy.onnx"), batch), expected)
    check_equal(run_policy.act(dict(np.load(agent.export(tmp_path / "policy.npz"))), batch), expected)


def test_a_trained_policy_gets_the_same_returns_from_its_file(tmp_path):
    agent = steadyrl.PPO("CartPole-v1", hidden=(16,)).learn(total_episodes=16, progress_bar=False)
    main(["export", str(saved(agent, tmp_path)), str(tmp_path / "policy.onnx")])
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    from_file = steadyrl.evaluate(lambda seen: session.run(None, {"observation": seen[None]})[0][0], "CartPole-v1", 20)
    own = steadyrl.evaluate(agent, "CartPole-v1", 20, deterministic=True)
    np.testing.assert_array_equal(from_file.returns, own.returns)
    about = {entry.key: entry.value for entry in onnx.load(tmp_path / "policy.onnx").metadata_props}
    assert (about["agent"], about["trained_episodes"]) == ("ppo", "16")


def saved(agent, folder):
    agent.save(folder / "agent.steady")
    return folder / "agent.steady"


def test_an_agent_with_a_range_of_lambdas_is_exported_at_one(tmp_path, capsys):
    agent = steadyrl.MeanGini("CartPole-v1", risk_aversion=(0, 3), hidden=(8,))
    with pytest.raises(ValueError, match=r"use agent\.at\(1\.5\)"):
        agent.export(tmp_path / "policy.npz")
    main(["export", str(saved(agent, tmp_path)), str(tmp_path / "policy.onnx"), "--at", "2"])
    assert "at lambda 2" in capsys.readouterr().out
    batch = observations(agent)
    np.testing.assert_array_equal(
        run_onnx(tmp_path / "policy.onnx", batch), agent.at(2).predict(batch, deterministic=True)[0]
    )


def test_another_suffix_is_refused_before_the_agent_is_read(tmp_path, capsys):
    line = refusal(capsys, "export", tmp_path / "none.steady", "policy.pt")
    assert line == (
        "steadyrl: policy.pt: .pt is not a format of exported policies. Use .onnx, .npz, or agent.save to train it "
        "further."
    )
    with pytest.raises(ValueError, match="policy: no suffix is not a format"):
        steadyrl.DQN("CartPole-v1").export("policy")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    agent = steadyrl.DQN("CartPole-v1", hidden=(4,))
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'steadyrl\[onnx\]'\. Or write an \.npz file"):
        agent.export(tmp_path / "policy.onnx")
    assert agent.export(tmp_path / "policy.npz").exists()


def test_a_network_of_another_kind_is_refused(tmp_path):
    agent = steadyrl.PPO("CartPole-v1", network=Doubled)
    with pytest.raises(ValueError, match="ppo: a CustomNetwork cannot be exported, only tables and networks whose"):
        agent.export(tmp_path / "policy.npz")


class Doubled:
    """A network of somebody else's."""

    def __init__(self, inputs):
        self.outputs = inputs

    def init(self, key):
        return {}

    def apply(self, parameters, x):
        return 2 * x

    apply_numpy = apply


MASKED = {
    "a network": lambda: steadyrl.DQN("CartPole-v1", hidden=(8,)),
    "several choices": lambda: steadyrl.PPO(Spaces(SEEN, MultiDiscrete([3, 2, 4], start=[5, 0, -1])), hidden=(8,)),
    "a table": lambda: steadyrl.Reinforce("Taxi-v4"),
    "a table of values": lambda: steadyrl.QLearning("Taxi-v4"),
}


@pytest.mark.parametrize("name", MASKED)
def test_files_take_action_masks(name, tmp_path):
    agent = MASKED[name]()
    batch = observations(agent)
    prepared(agent, batch)
    numbers = choices(agent.action_space)
    rng = np.random.default_rng(0)
    masks = np.concatenate([rng.permuted(np.arange(n) < rng.integers(1, n + 1, (N, 1)), axis=1) for n in numbers], 1)
    expected, _ = agent.predict(batch, deterministic=True, action_mask=masks)
    free, _ = agent.predict(batch, deterministic=True)
    assert (expected != free).mean() > 0.1
    agent.save(tmp_path / "agent.steady")
    main(["export", str(tmp_path / "agent.steady"), str(tmp_path / "policy.onnx"), "--action-masks"])
    check_equal(run_onnx(tmp_path / "policy.onnx", batch, action_mask=masks), expected)
    arrays = dict(np.load(agent.export(tmp_path / "policy.npz")))
    check_equal(run_policy.act(arrays | {"own": arrays["own"] & masks[:, None]}, batch), expected)


def test_real_valued_actions_have_no_masks(tmp_path):
    with pytest.raises(ValueError, match=r"action_masks: actions in Box.* have none"):
        steadyrl.TD3("Pendulum-v1", hidden=(8,)).export(tmp_path / "policy.onnx", action_masks=True)


def test_the_runner_is_30_lines_that_need_numpy_alone():
    source = Path(run_policy.__file__).read_text()
    nodes = list(ast.walk(ast.parse(source)))
    assert not [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names] == ["numpy"]
    assert len(source.splitlines()) <= 30
