"""`network=` as a description of layers, and as a function that makes networks of one's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from space_envs import Bright, Steer

import steadyrl
from steadyrl.agents.networks.description import expanded, with_network_described
from steadyrl.agents.networks.mlp import ACTIVATIONS, MLP
from steadyrl.agents.ppo_passes import PPOSteps

LAYERS = {"hidden": [8, 6], "activation": "tanh", "layer_norm": True, "orthogonal": True}
SMALL = {"episodes_per_update": 4, "inner_updates": 2}
REPLAY = {"buffer_size": 60, "learning_starts": 8, "train_freq": 4, "batch_size": 4}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_jax_and_numpy_agree(activation, layer_norm):
    rng = np.random.default_rng(0)
    mlp = MLP((3, 8, 8, 2), activation, layer_norm)
    layers = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), mlp.init(jax.random.key(0)))
    x = 3 * rng.normal(size=(5, 2, 3)).astype(np.float32)
    np.testing.assert_allclose(mlp(layers, x), mlp.apply_numpy(layers, x), rtol=1e-4, atol=1e-4)


def test_layer_normalization():
    mlp = MLP((2, 4, 4), layer_norm=True)
    layers = mlp.init(jax.random.key(0))
    last = {"weight": np.eye(4), "bias": np.zeros(4)}
    x = np.float32([[5, -3]])
    seen = np.asarray(x @ layers[0]["weight"] + layers[0]["bias"])
    normal = (seen - seen.mean()) / seen.std()
    np.testing.assert_allclose(mlp([layers[0], last], x), np.maximum(normal, 0), rtol=1e-3, atol=1e-5)
    shifted = {**layers[0], "scale": np.full(4, 2.0), "shift": np.full(4, 3.0)}
    np.testing.assert_allclose(mlp([shifted, last], x), np.maximum(2 * normal + 3, 0), rtol=1e-3, atol=1e-5)


def test_orthogonal_weights():
    first, last = MLP((8, 8, 3), orthogonal=True).init(jax.random.key(0), output_scale=0.01)
    np.testing.assert_allclose(first["weight"] @ first["weight"].T, 2 * np.eye(8), atol=1e-5)
    np.testing.assert_allclose(last["weight"].T @ last["weight"], 1e-4 * np.eye(3), atol=1e-8)
    assert not first["bias"].any()


@pytest.mark.parametrize("network", [LAYERS, steadyrl.NetworkDescription(**LAYERS), str(LAYERS)])
def test_a_description_is_short_for_settings(network):
    agent = steadyrl.PPO("CartPole-v1", network=network, **SMALL)
    s = agent.settings
    assert (s.network, s.hidden, s.activation, s.layer_norm, s.orthogonal) == ("mlp", (8, 6), "tanh", True, True)
    assert agent.algorithm.policy.mlp == MLP((4, 8, 6, 2), "tanh", True, True)
    flat = steadyrl.PPO("CartPole-v1", **LAYERS, **SMALL)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, flat.learner)


def test_descriptions_elsewhere():
    assert steadyrl.DQN.settings_of({"network": {"hidden": (7,)}}).hidden == (7,)
    env = Bright()
    assert expanded({"network": {"hidden": (7,)}}, env.observation_space)["network"] == "cnn"
    texts = with_network_described({"gamma": "0.9", "network": '{"hidden": [7]}'}, env.observation_space)
    assert texts == {"gamma": "0.9", "network": "cnn", "hidden": "[7]"}
    assert steadyrl.MeanGini("steadyrl/GuardedMaze-v0", network={}).settings.network == "mlp", "not a table"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": {"hiden": (8,)}}, "unknown part of network 'hiden'. Did you mean 'hidden'?"),
        ({"network": {"hidden": (8,)}, "hidden": (9,)}, "Give it once"),
        ({"network": {"activation": "relux"}}, "activation=relux: it is one of relu, tanh, elu, silu"),
        ({"network": "custom"}, "pass the function itself"),
        ({"network": 3}, "network=3: text is needed"),
    ],
)
def test_mistakes(settings, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        steadyrl.PPO("CartPole-v1", **settings)
    assert message in str(error.value)


class Sines:
    """Sines of sums of inputs."""

    outputs = 5

    def __init__(self, inputs):
        self.inputs = inputs

    def init(self, key):
        return (jax.random.normal(key, (self.inputs, self.outputs)) / self.inputs**0.5,)

    def apply(self, parameters, x):
        return jnp.sin(x @ parameters[0])

    def apply_numpy(self, parameters, x):
        return np.sin(x @ parameters[0])


CASES = {
    "mg": (steadyrl.MeanGini, "CartPole-v1", SMALL),
    "vpg": (steadyrl.Reinforce, "CartPole-v1", SMALL),
    "dqn": (steadyrl.DQN, Bright, REPLAY),
    "td3": (steadyrl.TD3, Steer, REPLAY),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if case in ("mg", "vpg", "dqn") else []) for case in CASES]
)
def test_networks_of_ones_own_resume_exactly(case, tmp_path):
    kind, env, settings = CASES[case]
    agent = kind(env, network=Sines, seed=1, **settings).learn(total_episodes=4, progress_bar=False)
    assert agent.settings.network == "custom"
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"whose network is a function: pass it, as load\(path, network=\.\.\.\)"):
        steadyrl.load(tmp_path / "agent", env=env)
    again = steadyrl.load(tmp_path / "agent", env=env, network=Sines)
    assert steadyrl.evaluate(again, env, episodes=2).returns.size == 2
    for one in (agent, again):
        one.learn(total_episodes=4, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, again.learner)


class Different(Sines):
    def apply_numpy(self, parameters, x):
        return np.cos(x @ parameters[0])


class Narrow(Sines):
    outputs = 4

    def apply(self, parameters, x):
        return super().apply(parameters, x)[:, :3]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda inputs: None, "returned None without 'outputs'"),
        (Different, "apply and apply_numpy differ by up to"),
        (Narrow, r"apply of \[2, 4\] has shape \(2, 3\), and outputs=4"),
    ],
)
def test_faulty_networks_of_ones_own(function, message):
    with pytest.raises(ValueError, match=message):
        steadyrl.PPO("CartPole-v1", network=function)


def test_a_range_of_lambdas_needs_layers_of_ours():
    with pytest.raises(ValueError, match=r"a range needs layers of ours"):
        steadyrl.MeanGini("CartPole-v1", network=Sines, risk_aversion=(0, 1))
    agent = steadyrl.MeanGini("CartPole-v1", network=LAYERS, risk_aversion=(0, 1), mean="ppo")
    assert agent.at(0.5).predict(np.zeros(4, np.float32))[0] in (0, 1)


def test_a_function_for_an_agent_that_has_none(tmp_path):
    steadyrl.PPO("CartPole-v1", hidden=(8,)).save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"no function\. Leave network out"):
        steadyrl.load(tmp_path / "agent", network=Sines)


@pytest.mark.parametrize(
    "env", ["CartPole-v1", *(pytest.param(env, marks=pytest.mark.slow) for env in ("Pendulum-v1", Bright))]
)
def test_a_shared_trunk_learns_values_and_resumes_exactly(env, tmp_path):
    settings = {**SMALL, "network": {"hidden": (8,), "shared_trunk": True}, "minibatch_size": 16}
    agent = steadyrl.PPO(env, seed=0, **settings)
    assert agent.algorithm.value.mlp.sizes == (8, 1)
    agent.learn(total_episodes=4, progress_bar=False)
    agent.save(tmp_path / "agent")
    again = steadyrl.load(tmp_path / "agent", env=env)
    for one in (agent, again):
        one.learn(total_episodes=4, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, again.learner)


@pytest.mark.slow
def test_a_shared_trunk_follows_both_losses():
    """With advantages of 0 and no entropy bonus the policy has no gradient of its own: layers learn values alone."""
    agent = steadyrl.PPO("CartPole-v1", shared_trunk=True, hidden=(8,), entropy_coefficient=0, value_coefficient=0.5)
    update, learner = agent.algorithm, agent.learner
    rng = np.random.default_rng(0)
    x, ones = jnp.asarray(rng.normal(size=(6, 4)), jnp.float32), jnp.ones(6)
    actions = jnp.zeros((6, 1), int)
    old = update.policy.log_prob(learner.theta, x, actions)[..., 0]
    steps = PPOSteps(x, actions, old, 0 * ones, 3 * ones, ones)
    moved, _ = update.step_policy(learner, steps, lambda ratios: (0 * ratios, learner.risk))
    before, after = (np.asarray(update.values(each.theta, learner.phi, x)) for each in (learner, moved))
    np.testing.assert_array_equal(moved.theta[-1]["weight"], learner.theta[-1]["weight"])
    assert np.abs(moved.theta[0]["weight"] - learner.theta[0]["weight"]).max() > 0
    assert ((after - 3) ** 2).mean() < ((before - 3) ** 2).mean()
    apart = steadyrl.PPO("CartPole-v1", hidden=(8,), entropy_coefficient=0)
    same, _ = apart.algorithm.step_policy(apart.learner, steps, lambda ratios: (0 * ratios, apart.learner.risk))
    np.testing.assert_array_equal(same.theta[0]["weight"], apart.learner.theta[0]["weight"])


def test_a_shared_trunk_is_for_ppo_and_networks():
    with pytest.raises(ValueError, match="it is a setting of mg with mean='ppo'"):
        steadyrl.MeanGini("CartPole-v1", mean="vpg", shared_trunk=True)
    with pytest.raises(ValueError, match="shared_trunk=True: it is for networks"):
        steadyrl.PPO("steadyrl/GuardedMaze-v0", shared_trunk=True)
    agent = steadyrl.MeanGini("CartPole-v1", shared_trunk=True, hidden=(8,), risk_aversion=(0, 1), mean="ppo")
    assert agent.at(0.5).predict(np.zeros(4, np.float32))[0] in (0, 1)
