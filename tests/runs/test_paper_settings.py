"""Every number of the HalfCheetah and Swimmer experiments, beside the place in the paper where it is printed.

The paper: Luo et al., "An Alternative to Variance: Gini Deviation for Risk-averse Policy Gradient", NeurIPS 2023, with
sections numbered as in its LaTeX source. Sec. 10.6 (Swimmer) and Sec. 11 (the distance variants) take networks and
learning parameters from Sec. 10.5 (HalfCheetah), so all four files hold the same settings. What the paper does not
print is under `CHOSEN`, with its number in docs/deviations.md.
"""

import tomllib
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "src/steadyrl/runs/experiments"
ENVS = {
    "half_cheetah": "steadyrl/HalfCheetah-v0",
    "swimmer": "steadyrl/Swimmer-v0",
    "half_cheetah_distance": "steadyrl/HalfCheetahDistance-v0",
    "swimmer_distance": "steadyrl/SwimmerDistance-v0",
}

# Settings that several methods share ---------------------------------------------------------------------------------

NETWORKS = {"hidden": [256, 256]}  # Sec. 10.5, "Policy function", "Value function": two hidden layers of size 256.

PRINTED_PPO = {
    **NETWORKS,
    "network": "mlp",  # Sec. 10.5, "Policy function".
    "optimiser": "adam",  # Sec. 10.5, "Optimizer".
    "gamma": 0.99,  # Sec. 10.5.1, first line.
    # Sec. 10.5.1, "Common parameters of PPO and PPO based methods".
    "gae_lambda": 0.95,
    "entropy_coefficient": 0.01,
    "value_coefficient": 0.5,
    "clip_range": 0.2,
    "max_gradient_norm": 0.5,
    "value_targets": "monte_carlo",  # Algorithm 2 fits the values to rewards to go.
    "normalise_values": False,
    "annealing_episodes": 0,
}
LAYERS = {"activation": "relu", "layer_norm": False, "orthogonal": False}  # Deviation 33.
CONSTANT = {"learning_rate_schedule": "constant"}
CHOSEN_PPO = {
    **LAYERS,
    **CONSTANT,
    "shared_trunk": False,
    "squash_mean": True,
    "minibatch_size": 0,  # None in Algorithm 2 (deviation 44).
    "target_kl": 0.0,  # No limit in Algorithm 2 (deviation 58).
    "bootstrap_on_truncation": True,  # Deviation 42.
    "initial_log_std": -0.5,  # Deviation 45.
    "initial_output_scale": 1.0,  # Deviation 33.
    "normalise_observations": False,
    "max_episode_steps": 1000,  # An error beyond it (deviation 34); the tasks themselves end at 500 (Sec. 10.5).
}
RISK_PPO = {**PRINTED_PPO, "mean": "ppo"}  # Sec. 10.1: "With PPO: in HalfCheetah, Swimmer".
BATCHES = {"episodes_per_update": 10, "inner_updates": 5}  # Sec. 5.3 and Sec. 10.5.1: n and M of MVO and MG.
# Sec. 10.1: Tamar and MVP "update policies once at the end of each episode".
EPISODES = {"episodes_per_update": 1, "inner_updates": 1}
BY_TRAJECTORY = {"credit": "trajectory", "risk_discount": 0.99}  # Algorithm 2: D is of G0, and weighs trajectories.
FAST = {"policy_learning_rate": 3e-4, "value_learning_rate": 3e-4}  # Sec. 10.5.1: PPO, MG.
SLOW = {"policy_learning_rate": 7e-5, "value_learning_rate": 7e-5}  # Sec. 10.5.1: MVO, Tamar, MVP.

PRINTED_TD3 = {
    **NETWORKS,
    "gamma": 0.99,  # Sec. 10.5.1, first line.
    "learning_rate": 3e-4,  # Sec. 10.5.1, TD3 and MVPI.
    "batch_size": 256,  # Sec. 10.5.1, TD3 and MVPI.
    # Sec. 5, "Baselines": "at each environment step"; in rounds of 50 here (deviation 50).
    "train_freq": 50,
    "gradient_steps": 50,
}
CHOSEN_TD3 = {
    **LAYERS,
    **CONSTANT,
    "network": "mlp",
    # Deviation 49: the values of TD3's own paper, Fujimoto et al. 2018.
    "buffer_size": 1_000_000,
    "learning_starts": 10_000,
    "tau": 0.005,
    "policy_delay": 2,
    "exploration_noise": 0.1,
    "target_policy_noise": 0.2,
    "target_noise_clip": 0.5,
    "bootstrap_on_truncation": True,  # Deviation 52.
    "max_episode_steps": 1000,  # Deviation 34.
}

# Method -> all of its settings, in two parts -------------------------------------------------------------------------

PRINTED = {  # Sec. 10.5.1, under the method's name.
    "ppo": {**PRINTED_PPO, **FAST, "inner_updates": 5},
    "mg_unbiased": {**RISK_PPO, **BY_TRAJECTORY, **BATCHES, **FAST},
    "mg_printed": {  # Algorithm 2.
        **RISK_PPO,
        **BY_TRAJECTORY,
        **BATCHES,
        **FAST,
        "estimator": "paper",
        "risk_ratios": "trajectory",
    },
    "mvo": {**RISK_PPO, **BATCHES, **SLOW, "risk_ratios": "trajectory"},  # Sec. 10.1: as in Algorithm 2.
    "tamar": {
        **RISK_PPO,
        **EPISODES,
        **SLOW,
        "moments_learning_rate": 7e-3,  # J and V: 100 times the policy's.
        "threshold": 50.0,  # b.
        "risk_aversion": 0.2,
    },
    "mvp": {**RISK_PPO, **EPISODES, **SLOW, "dual_learning_rate": 7e-5, "risk_aversion": 0.2},
    "td3": PRINTED_TD3,
    "mvpi": {**PRINTED_TD3, "solver": "td3", "risk_aversion": 0.2},  # Sec. 10.1: "With TD3".
}
ZETA = {"ratio_bound": 1.0}  # Deviation 48.
# Without effect: they are of credit="step" (deviation 57).
CRITIC = {
    "risk_gamma": 1.0,
    "risk_gae_lambda": 0.95,
    "risk_critic_learning_rate": 1e-3,
    "returns_remembered": 100,
    "risk_warmup": 0,
    "lambdas_per_update": 4,  # Deviation 80.
}
NORMALISED, RAW = {"normalise_advantages": True}, {"normalise_advantages": False}  # Deviations 41 and 46.
ONCE = {"risk_ratios": "trajectory"}  # Without effect: each batch is used for one update (deviation 47).
CHOSEN = {
    "ppo": {**CHOSEN_PPO, **NORMALISED, "episodes_per_update": 10},  # Deviation 45.
    # lambda: deviation 48; weights and ratios: deviations 3 and 47.
    "mg_unbiased": {
        **CHOSEN_PPO,
        **CRITIC,
        **ZETA,
        **NORMALISED,
        "risk_aversion": 2.0,
        "estimator": "unbiased",
        "risk_ratios": "step",
    },
    "mg_printed": {**CHOSEN_PPO, **CRITIC, **ZETA, **NORMALISED, "risk_aversion": 2.0},
    "mvo": {**CHOSEN_PPO, **ZETA, **NORMALISED, "risk_aversion": 0.03},
    # Initial J, V and y: deviation 32.
    "tamar": {**CHOSEN_PPO, **ZETA, **RAW, **ONCE, "initial_mean": 0.0, "initial_variance": 0.0},
    "mvp": {**CHOSEN_PPO, **ZETA, **RAW, **ONCE, "initial_dual": 0.0},
    "td3": CHOSEN_TD3,
    "mvpi": {**CHOSEN_TD3, "episodes_per_iteration": 10, "initial_dual": 0.0, "dual_estimate": "returns"},  # 51, 59.
}
CALIBRATED = {"ppo_calibrated": "ppo", "mg_calibrated": "mg"}  # Of step_credit.toml, not of the paper.
AGENTS = {name: name for name in PRINTED} | {"mg_unbiased": "mg", "mg_printed": "mg"} | CALIBRATED

# Scale ---------------------------------------------------------------------------------------------------------------

FULL = {
    "seeds": 10,  # Captions of Figs. 4, 5 and 14 to 19.
    "episodes": 3_000,  # Deviation 18, and so are the intervals.
    "episodes_per_record": 10,
    "episodes_per_evaluation": 200,
}
QUICK = {"seeds": 1, "episodes": 60, "episodes_per_record": 10, "episodes_per_evaluation": 30}
EVALUATION_EPISODES = 20  # Sec. 5.3: "Agents are tested for 20 episodes per evaluation".
STEPS = {
    "timesteps": 1_000_000,  # Sec. 5.3, "1e6 steps", of MVPI (deviation 53).
    "episodes_per_record": 10,
    "episodes_per_evaluation": 20,
}


@pytest.fixture(params=ENVS)
def experiment(request):
    return tomllib.loads((FILES / f"{request.param}.toml").read_text()) | {"name": request.param}


def test_printed_and_chosen_settings_do_not_overlap():
    for method in PRINTED:
        assert not PRINTED[method].keys() & CHOSEN[method].keys()


def test_methods(experiment):
    methods = experiment["methods"]
    assert {name: method["agent"] for name, method in methods.items()} == AGENTS
    assert {name for name, method in methods.items() if not method["quick"]} == {"td3", "mvpi"}


@pytest.mark.parametrize("method", PRINTED)
def test_settings(experiment, method):
    settings = experiment["methods"][method]["settings"]
    printed = PRINTED[method]
    assert {name: settings.get(name) for name in printed} == printed
    assert settings == {**printed, **CHOSEN[method]}


def test_scale(experiment):
    assert experiment["full"] == FULL
    assert experiment["quick"] == QUICK
    assert experiment["evaluation_episodes"] == EVALUATION_EPISODES
    scales = {name: method["scale"] for name, method in experiment["methods"].items() if "scale" in method}
    assert scales == {"td3": STEPS, "mvpi": STEPS, "ppo_calibrated": {"first_seed": 200}}
    assert "sweep" not in experiment


def test_environment(experiment):
    assert experiment["env"] == ENVS[experiment["name"]]
    assert experiment["engine"] == "mujoco"
    (variant,) = experiment["variants"]
    assert variant["options"] == {}
