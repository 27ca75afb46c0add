"""Keyword arguments of the agents, for editors and type checkers. Written by `make signatures`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from steadyrl.agents.networks.description import NetworkDescription

Auto = Literal["auto"] | None
"""Chooses a default that depends on other settings or on the environment."""
Layers = NetworkDescription | Mapping[str, Any] | Callable[[int], Any]
"""A description of layers, or a function that makes them."""


class Execution(TypedDict, total=False):
    """How training is run; results do not depend on it."""

    workers: int | Literal["auto"]


class ReinforceKwargs(Execution, total=False):
    """Settings of `Reinforce`."""

    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int | Auto
    gamma: float
    normalise_observations: bool
    normalize_observations: bool
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"]
    lr_schedule: Literal["constant", "linear", "cosine"]
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"]
    optimizer: Literal["sgd", "adam"]
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    inner_updates: int
    n_epochs: int
    ratio_range: float
    least_selected: float


class PPOKwargs(Execution, total=False):
    """Settings of `PPO`."""

    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"]
    optimizer: Literal["sgd", "adam"]
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    annealing_episodes: int
    inner_updates: int | Auto
    n_epochs: int | Auto
    minibatch_size: int | Auto
    batch_size: int | Auto
    gae_lambda: float
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
    shared_trunk: bool
    value_targets: Literal["td_lambda", "monte_carlo"]
    normalise_values: bool | Auto
    normalize_values: bool | Auto
    value_coefficient: float
    vf_coef: float
    bootstrap_on_truncation: bool


class MeanGiniKwargs(Execution, total=False):
    """Settings of `MeanGini`."""

    risk_aversion: float | tuple[float, float] | list[float]
    mean: Literal["vpg", "ppo"]
    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int | Auto
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"]
    optimizer: Literal["sgd", "adam"]
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    inner_updates: int | Auto
    n_epochs: int | Auto
    ratio_range: float
    least_selected: float
    credit: Literal["step", "trajectory"] | Auto
    risk_discount: float | Auto
    risk_gamma: float | Auto
    risk_gae_lambda: float | Auto
    risk_critic_learning_rate: float | Auto
    returns_remembered: int | Auto
    risk_warmup: int
    lambdas_per_update: int
    estimator: Literal["unbiased", "paper"]
    annealing_episodes: int
    minibatch_size: int | Auto
    batch_size: int | Auto
    gae_lambda: float
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
    shared_trunk: bool
    value_targets: Literal["td_lambda", "monte_carlo"]
    normalise_values: bool | Auto
    normalize_values: bool | Auto
    value_coefficient: float
    vf_coef: float
    bootstrap_on_truncation: bool
    risk_ratios: Literal["step", "trajectory"]
    ratio_bound: float


class MVOKwargs(Execution, total=False):
    """Settings of `MVO`."""

    risk_aversion: float
    mean: Literal["vpg", "ppo"]
    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int | Auto
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"]
    optimizer: Literal["sgd", "adam"]
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    inner_updates: int | Auto
    n_epochs: int | Auto
    ratio_range: float
    least_selected: float
    annealing_episodes: int
    minibatch_size: int | Auto
    batch_size: int | Auto
    gae_lambda: float
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
    shared_trunk: bool
    value_targets: Literal["td_lambda", "monte_carlo"]
    normalise_values: bool | Auto
    normalize_values: bool | Auto
    value_coefficient: float
    vf_coef: float
    bootstrap_on_truncation: bool
    risk_ratios: Literal["step", "trajectory"]
    ratio_bound: float


class TamarKwargs(Execution, total=False):
    """Settings of `Tamar`."""

    risk_aversion: float
    threshold: float
    mean: Literal["vpg", "ppo"]
    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"] | Auto
    optimizer: Literal["sgd", "adam"] | Auto
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    moments_learning_rate: float | Auto
    initial_mean: float
    initial_variance: float
    annealing_episodes: int
    inner_updates: int
    n_epochs: int
    minibatch_size: int
    batch_size: int
    gae_lambda: float
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
    shared_trunk: bool
    value_targets: Literal["td_lambda", "monte_carlo"]
    normalise_values: bool | Auto
    normalize_values: bool | Auto
    value_coefficient: float
    vf_coef: float
    bootstrap_on_truncation: bool
    risk_ratios: Literal["step", "trajectory"]
    ratio_bound: float


class MVPKwargs(Execution, total=False):
    """Settings of `MVP`."""

    risk_aversion: float
    mean: Literal["vpg", "ppo"]
    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"] | Auto
    optimizer: Literal["sgd", "adam"] | Auto
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    dual_learning_rate: float | Auto
    initial_dual: float
    annealing_episodes: int
    inner_updates: int
    n_epochs: int
    minibatch_size: int
    batch_size: int
    gae_lambda: float
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
    shared_trunk: bool
    value_targets: Literal["td_lambda", "monte_carlo"]
    normalise_values: bool | Auto
    normalize_values: bool | Auto
    value_coefficient: float
    vf_coef: float
    bootstrap_on_truncation: bool
    risk_ratios: Literal["step", "trajectory"]
    ratio_bound: float


class QLearningKwargs(Execution, total=False):
    """Settings of `QLearning`."""

    q_learning_rate: float | Auto
    learning_rate: float | Auto
    episodes_per_update: int
    gamma: float
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"]
    lr_schedule: Literal["constant", "linear", "cosine"]
    exploration: float
    bootstrap_on_truncation: bool | Auto
    update_after: Literal["step", "episode"] | Auto
    final_exploration: float
    exploration_steps: int


class DQNKwargs(Execution, total=False):
    """Settings of `DQN`."""

    learning_rate: float
    network: Literal["auto", "mlp", "cnn"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    batch_size: int
    gamma: float
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"]
    lr_schedule: Literal["constant", "linear", "cosine"]
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    buffer_size: int
    learning_starts: int
    train_freq: int
    gradient_steps: int | Auto
    bootstrap_on_truncation: bool | Auto
    target_update_interval: int
    tau: float
    exploration_initial_eps: float
    exploration_final_eps: float
    exploration_steps: int
    double: bool
    huber: bool


class TD3Kwargs(Execution, total=False):
    """Settings of `TD3`."""

    learning_rate: float
    network: Literal["auto", "mlp", "cnn"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    batch_size: int
    gamma: float
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"]
    lr_schedule: Literal["constant", "linear", "cosine"]
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    buffer_size: int
    learning_starts: int
    train_freq: int
    gradient_steps: int | Auto
    bootstrap_on_truncation: bool | Auto
    tau: float
    policy_delay: int
    exploration_noise: float
    target_policy_noise: float
    target_noise_clip: float


class MVPIKwargs(Execution, total=False):
    """Settings of `MVPI`."""

    risk_aversion: float
    solver: Literal["q_learning", "dqn", "td3"]
    learning_rate: float
    q_learning_rate: float
    network: Literal["auto", "mlp", "cnn"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int
    batch_size: int
    gamma: float
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"]
    lr_schedule: Literal["constant", "linear", "cosine"]
    exploration: float
    bootstrap_on_truncation: bool | Auto
    initial_dual: float
    dual_estimate: Literal["returns", "rewards"]
    episodes_per_iteration: int
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    buffer_size: int
    learning_starts: int
    train_freq: int
    gradient_steps: int | Auto
    target_update_interval: int
    tau: float
    exploration_initial_eps: float
    exploration_final_eps: float
    exploration_steps: int
    double: bool
    huber: bool
    policy_delay: int
    exploration_noise: float
    target_policy_noise: float
    target_noise_clip: float


class MeanRiskKwargs(Execution, total=False):
    """Settings of `MeanRisk`."""

    risk_aversion: float | tuple[float, float] | list[float]
    measure: str
    alpha: float | Auto | None
    beta: float | Auto | None
    mean: Literal["vpg", "ppo"]
    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    value_learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int | Auto
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"]
    optimizer: Literal["sgd", "adam"]
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    inner_updates: int | Auto
    n_epochs: int | Auto
    ratio_range: float
    least_selected: float
    credit: Literal["step", "trajectory"]
    risk_discount: float | Auto
    risk_gamma: float | Auto
    risk_gae_lambda: float | Auto
    risk_critic_learning_rate: float | Auto
    returns_remembered: int | Auto
    risk_warmup: int
    lambdas_per_update: int
    annealing_episodes: int
    minibatch_size: int | Auto
    batch_size: int | Auto
    gae_lambda: float
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
    shared_trunk: bool
    value_targets: Literal["td_lambda", "monte_carlo"]
    normalise_values: bool | Auto
    normalize_values: bool | Auto
    value_coefficient: float
    vf_coef: float
    bootstrap_on_truncation: bool
    risk_ratios: Literal["step", "trajectory"]
    ratio_bound: float


class CVaRKwargs(Execution, total=False):
    """Settings of `CVaR`."""

    alpha: float
    mean: Literal["vpg", "ppo"]
    policy_learning_rate: float | Auto
    learning_rate: float | Auto
    network: Literal["auto", "table", "mlp", "cnn", "gru"] | Layers | Auto
    hidden: tuple[int, ...] | list[int] | Auto
    episodes_per_update: int | Auto
    gamma: float
    normalise_observations: bool | Auto
    normalize_observations: bool | Auto
    max_episode_steps: int
    learning_rate_schedule: Literal["constant", "linear", "cosine"] | Auto
    lr_schedule: Literal["constant", "linear", "cosine"] | Auto
    activation: Literal["relu", "tanh", "elu", "silu"]
    activation_fn: Literal["relu", "tanh", "elu", "silu"]
    layer_norm: bool
    orthogonal: bool
    ortho_init: bool
    optimiser: Literal["sgd", "adam"]
    optimizer: Literal["sgd", "adam"]
    initial_log_std: float
    log_std_init: float
    initial_output_scale: float
    squash_mean: bool
    inner_updates: int | Auto
    n_epochs: int | Auto
    ratio_range: float
    least_selected: float
    estimator: Literal["capping", "plain"]
    risk_discount: float
    gae_lambda: float
    risk_critic_learning_rate: float | Auto
    returns_remembered: int | Auto
    annealing_episodes: int
    minibatch_size: int | Auto
    batch_size: int | Auto
    clip_range: float
    target_kl: float | Auto
    entropy_coefficient: float | Auto
    ent_coef: float | Auto
    max_gradient_norm: float
    max_grad_norm: float
    normalise_advantages: bool
    normalize_advantage: bool
    normalize_advantages: bool
