"""Agents from models of Stable-Baselines3: from stand-ins, whose numbers are known, and from real ones if there are."""

import gymnasium as gym
import numpy as np
import pytest
import sb3_models
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from sb3_models import normalizer

import steadyrl

N = 1000


def cart():
    return gym.make("CartPole-v1")


def swing():
    return gym.make("Pendulum-v1")


class Reach(gym.Env):
    """Bounds that are not symmetric, in two axes; an episode is five steps."""

    observation_space = Box(-3, 3, (5,), np.float32)
    action_space = Box(np.float32([[-1, 0], [2, -4]]), np.float32([[3, 0.5], [6, 4]]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation_space.low, {}

    def step(self, action):
        self.t += 1
        return self.np_random.uniform(-3, 3, 5).astype(np.float32), float(action.sum()), self.t == 5, False, {}


CASES = {
    "PPO, discrete": (sb3_models.PPO, cart),
    "PPO, continuous": (sb3_models.PPO, Reach),
    "MaskablePPO": (sb3_models.MaskablePPO, cart),
    "A2C, discrete": (sb3_models.A2C, cart),
    "A2C, continuous": (sb3_models.A2C, swing),
    "DQN": (sb3_models.DQN, cart),
    "TD3": (sb3_models.TD3, Reach),
}
KINDS = {
    "PPO": steadyrl.PPO,
    "MaskablePPO": steadyrl.PPO,
    "A2C": steadyrl.PPO,
    "DQN": steadyrl.DQN,
    "TD3": steadyrl.TD3,
}
AVERSE = {
    "PPO": steadyrl.MeanGini,
    "MaskablePPO": steadyrl.MeanGini,
    "A2C": steadyrl.MeanGini,
    "DQN": steadyrl.MVPI,
    "TD3": steadyrl.MVPI,
}


def observations(env):
    return np.random.default_rng(5).uniform(-2, 2, (N, *env.observation_space.shape)).astype(np.float32)


def check_equal(ours, theirs, varied=True):
    assert ours.shape == theirs.shape
    if np.issubdtype(ours.dtype, np.integer):
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert len(np.unique(ours)) > 1 or not varied


def values_of(agent, model, seen):
    """The values that ours and theirs give to observations, theirs in their own units."""
    algorithm, learner = agent.algorithm, agent.learner
    if isinstance(model, sb3_models.PPO | sb3_models.MaskablePPO):
        return algorithm.value(learner.phi, agent.actor().normalize(seen)), model.values
    if isinstance(model, sb3_models.DQN):
        return algorithm.policy.mlp(learner.theta, seen), model.values
    actions = np.random.default_rng(0).uniform(-1, 1, (N, 4)).astype(np.float32)
    return algorithm.values(learner.phi, seen, actions)[1], lambda x: model.values(x, actions, critic=1)


@pytest.mark.parametrize("normalized", [False, True], ids=["plain", "VecNormalize"])
@pytest.mark.parametrize("name", CASES)
def test_actions_and_values_are_the_models(name, normalized):
    kind, make = CASES[name]
    model = kind(make())
    seen = observations(model)
    vec = normalizer(seen.shape[1]) if normalized else None
    agent = steadyrl.from_sb3(model, vec_normalize=vec)
    assert type(agent) is KINDS[kind.__name__]
    theirs = vec.normalize_obs(seen).astype(np.float32) if normalized else seen
    check_equal(agent.predict(seen, deterministic=True)[0], model.predict(theirs))
    own, values = values_of(agent, model, seen)
    unit = 2.5 if normalized else 1  # The square root of the variance of discounted rewards.
    np.testing.assert_allclose(own, unit * values(theirs), rtol=2e-4, atol=2e-4)


def test_log_std_is_in_halves_of_the_range():
    model = sb3_models.PPO(Reach())
    drawn = steadyrl.from_sb3(model).actor()
    noise = np.ones((N, 4), np.float32)
    at, above = (drawn.policy.act(drawn.parameters, observations(model), x) for x in (0 * noise, noise))
    half = (model.action_space.high - model.action_space.low).ravel() / 2
    np.testing.assert_allclose((above - at) * half, np.tile(np.exp(model.state["log_std"]), (N, 1)), rtol=1e-4)


def test_settings_of_the_model_and_ones_own():
    agent = steadyrl.from_sb3(sb3_models.PPO(cart()), gamma=0.9, seed=3)
    s = agent.settings
    assert (s.gamma, s.gae_lambda, s.clip_range, s.policy_learning_rate) == (0.9, 0.9, 0.3, 1e-3)
    assert (s.inner_updates, s.minibatch_size, s.entropy_coefficient, s.target_kl) == (3, 32, 0.02, 0)
    assert (s.hidden, s.activation, s.normalise_observations, agent.seed) == ((8, 6), "tanh", False, 3)
    q = steadyrl.from_sb3(sb3_models.DQN(cart())).settings
    assert (q.train_freq, q.gradient_steps, q.huber, q.exploration_initial_eps, q.tau) == (8, 2, True, 0.1, 0.5)
    twin = steadyrl.from_sb3(sb3_models.TD3(Reach())).settings
    assert (twin.train_freq, twin.gradient_steps, twin.exploration_noise, twin.policy_delay) == (4, 4, 0.25, 3)


@pytest.mark.parametrize(
    "name",
    ["DQN", "TD3", *(pytest.param(name, marks=pytest.mark.slow) for name in ("PPO, discrete", "A2C, continuous"))],
)
def test_fine_tuning_with_risk_aversion_begins_with_the_model(name, tmp_path):
    kind, make = CASES[name]
    model = kind(make(), num_timesteps=100)
    seen = observations(model)
    agent = steadyrl.from_sb3(model, risk_aversion=1.0, max_episode_steps=300)
    assert type(agent) is AVERSE[kind.__name__]
    assert agent.settings.risk_aversion == 1
    before = agent.predict(seen, deterministic=True)[0]
    check_equal(before, model.predict(seen))
    agent.save(tmp_path / "agent.steady")
    check_equal(steadyrl.load(tmp_path / "agent.steady", make()).predict(seen, deterministic=True)[0], before)
    weight = np.asarray(agent.actor().parameters["mean"][0]["weight"]) if name == "A2C, continuous" else None
    agent.learn(total_episodes=4, progress_bar=False)
    assert agent.timesteps > 100
    if weight is not None:
        assert 0 < np.abs(agent.actor().parameters["mean"][0]["weight"] - weight).max() < 0.1


def test_the_first_update_keeps_the_values():
    """The scale of values changes with the first batch, and what was learned does not."""
    model = sb3_models.PPO(cart())
    agent = steadyrl.from_sb3(model, vec_normalize=normalizer(4), learning_rate=1e-9, value_learning_rate=1e-9)
    seen = normalizer(4).normalize_obs(observations(model)).astype(np.float32)
    before = np.asarray(agent.algorithm.value(agent.learner.phi, seen))
    agent.learn(total_episodes=8, progress_bar=False)
    assert agent.learner.phi.scale.mean_square != 6.25
    np.testing.assert_allclose(agent.algorithm.value(agent.learner.phi, seen), before, atol=1e-3)


def test_evaluation_in_the_models_own_environment():
    agent = steadyrl.from_sb3(sb3_models.PPO(cart()))
    assert agent.env_name == "CartPole-v1"
    report = steadyrl.evaluate(agent, "CartPole-v1", episodes=20, deterministic=True)
    model = sb3_models.PPO(cart())
    theirs = steadyrl.evaluate(lambda seen: model.predict(seen[None])[0], "CartPole-v1", episodes=20)
    np.testing.assert_array_equal(report.returns, theirs.returns)


def test_a_model_without_an_environment_still_acts():
    model = sb3_models.PPO(cart())
    model.get_env = lambda: None
    agent = steadyrl.from_sb3(model)
    check_equal(agent.predict(observations(model), deterministic=True)[0], model.predict(observations(model)))
    assert agent.env is None
    with pytest.raises(ValueError, match="environment"):
        agent.learn(total_episodes=1)


def changed(kind, make, change):
    model = kind(make())
    change(model)
    return model


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: type("SAC", (), {})(), {}, "a SAC cannot be taken over"),
        (lambda: type("DDPG", (sb3_models.TD3,), {})(Reach()), {}, "a DDPG cannot be taken over"),
        (lambda: steadyrl.DQN("CartPole-v1", hidden=(2,)), {}, "a DQN cannot be taken over"),
        (lambda: sb3_models.PPO(cart(), use_sde=True), {}, "explores by the state"),
        (lambda: sb3_models.PPO(cart()), {"risk_aversion": (0, 1)}, "cannot be a range"),
        (lambda: sb3_models.PPO(cart()), {"env": "Pendulum-v1"}, "Pass one with the same spaces"),
        (lambda: sb3_models.PPO(cart()), {"vec_normalize": normalizer(4, clip_obs=5.0)}, "clip_obs=5"),
        (lambda: sb3_models.PPO(cart()), {"vec_normalize": normalizer(4, obs_rms={})}, "Dict observations"),
        (lambda: sb3_models.PPO(cart()), {"vec_normalize": normalizer(3)}, "do not have the sizes"),
        (lambda: sb3_models.PPO(cart()), {"hidden": (3,)}, "do not have the sizes"),
        (
            lambda: changed(sb3_models.DQN, cart, lambda m: m.state.update({"features.cnn.0.weight": np.ones(3)})),
            {},
            r"this DQN has parameters features\.cnn\.0\.weight",
        ),
        (lambda: changed(sb3_models.PPO, cart, lambda m: m.state.pop("value_net.bias")), {}, "has no parameters"),
        (
            lambda: changed(sb3_models.PPO, cart, lambda m: setattr(m.policy, "activation_fn", type("GELU", (), {}))),
            {},
            "activation GELU: known ones are ReLU, Tanh",
        ),
    ],
)
def test_what_cannot_be_taken_over_says_why(model, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        steadyrl.from_sb3(model(), **options)


def test_different_layers_and_binary_actions_are_refused():
    model = sb3_models.PPO(cart())
    model.state |= sb3_models.dense(np.random.default_rng(0), "mlp_extractor.value_net", (4, 9, 6), (0, 2))
    with pytest.raises(ValueError, match=r"hidden layers \(8, 6\) for the policy and \(9, 6\) for values"):
        steadyrl.from_sb3(model)
    model = sb3_models.PPO(cart())
    model.action_space = MultiBinary(3)
    with pytest.raises(ValueError, match="MultiBinary"):
        steadyrl.from_sb3(model)


def test_discrete_observations_are_one_hot():
    class Rooms(gym.Env):
        observation_space, action_space = Discrete(7), Discrete(3)

    model = sb3_models.DQN(Rooms())
    agent = steadyrl.from_sb3(model)
    check_equal(agent.predict(np.arange(7), deterministic=True)[0], model.predict(np.eye(7, dtype=np.float32)))


@pytest.mark.parametrize("normalized", [False, True], ids=["plain", "VecNormalize"])
@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("PPO", "CartPole-v1"),
        ("PPO", "Pendulum-v1"),
        ("A2C", "CartPole-v1"),
        ("A2C", "Pendulum-v1"),
        ("DQN", "CartPole-v1"),
        ("TD3", "Pendulum-v1"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_real_models(name, env, normalized):
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    vec = make_vec_env(env)
    vec = VecNormalize(vec) if normalized else vec
    small = {"policy_kwargs": {"net_arch": [32, 32]}, "batch_size": 32, "learning_starts": 50}
    options = small if name in ("DQN", "TD3") else {"n_steps": 128}
    model = getattr(sb3, name)("MlpPolicy", vec, seed=0, **options).learn(256)
    agent = steadyrl.from_sb3(model)
    seen = observations(agent)
    if normalized and name in ("DQN", "TD3"):  # Within the 10 standard deviations from which on theirs clips.
        spread = np.sqrt(vec.obs_rms.var + vec.epsilon)
        seen = (vec.obs_rms.mean + 4 * spread * seen).astype(np.float32)
    theirs, _ = model.predict(vec.normalize_obs(seen) if normalized else seen, deterministic=True)
    check_equal(agent.predict(seen, deterministic=True)[0], theirs, varied=name != "DQN")
    if name == "DQN":  # After so few steps it may prefer one action everywhere: values tell more.
        tensor, _ = model.policy.obs_to_tensor(vec.normalize_obs(seen) if normalized else seen)
        unit, values = (vec.ret_rms.var + vec.epsilon) ** 0.5 if normalized else 1, model.q_net(tensor)
        own = agent.algorithm.policy.mlp(agent.learner.theta, seen)
        np.testing.assert_allclose(own, unit * values.detach().numpy(), atol=1e-4 * unit)
    assert agent.timesteps == model.num_timesteps
    if name in ("PPO", "A2C"):
        tensor, _ = model.policy.obs_to_tensor(vec.normalize_obs(seen) if normalized else seen)
        unit = np.sqrt(vec.ret_rms.var + vec.epsilon) if normalized else 1
        inputs = agent.actor().normalize(seen)
        values = model.policy.predict_values(tensor).detach().numpy()[:, 0]
        np.testing.assert_allclose(agent.algorithm.value(agent.learner.phi, inputs), unit * values, atol=1e-3 * unit)
    averse = steadyrl.from_sb3(model, risk_aversion=0.5, **({} if name in ("PPO", "A2C") else {"learning_starts": 20}))
    averse.learn(total_episodes=2, progress_bar=False)
    assert averse.timesteps > model.num_timesteps


@pytest.mark.parametrize("several", [False, True], ids=["Discrete", "MultiDiscrete"])
@pytest.mark.filterwarnings("ignore")
def test_real_models_with_action_masks(several):
    contrib = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.wrappers import ActionMasker

    numbers = (3, 2) if several else (3,)
    env = gym.make("Acrobot-v1", max_episode_steps=50)
    if several:
        env = gym.wrappers.TransformAction(env, lambda k: k[0] * k[1], MultiDiscrete(numbers))
    env = ActionMasker(env, lambda env: np.arange(sum(numbers)) != 1)
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=128, seed=0).learn(256)
    agent, rng = steadyrl.from_sb3(model), np.random.default_rng(0)
    seen = observations(agent)
    masks = np.concatenate([rng.permuted(np.arange(n) < rng.integers(1, n + 1, (N, 1)), axis=1) for n in numbers], 1)
    theirs, _ = model.predict(seen, deterministic=True, action_masks=masks)
    check_equal(agent.predict(seen, deterministic=True, action_mask=masks)[0], theirs)
    agent = steadyrl.from_sb3(model, risk_aversion=0.5).learn(total_episodes=16, progress_bar=False)
    taken = agent.play(2, seed=0).actions.reshape(-1, len(numbers))[:, 0]
    assert not (taken == 1).any(), "its environment still masks the second action"
