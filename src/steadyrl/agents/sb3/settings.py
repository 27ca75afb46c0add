"""Settings of a Stable-Baselines3 model, as far as ours mean the same."""

from __future__ import annotations

from typing import Any

SAME: dict[str, dict[str, str | None]] = {
    "PPO": {
        "learning_rate": "policy_learning_rate",
        "n_epochs": "inner_updates",
        "batch_size": "minibatch_size",
        "gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "clip_range": "clip_range",
        "ent_coef": "entropy_coefficient",
        "vf_coef": "value_coefficient",
        "max_grad_norm": "max_gradient_norm",
        "normalize_advantage": "normalise_advantages",
        "target_kl": "target_kl",
    },
    # Its step sizes are for one step of RMSprop from each batch.
    "A2C": {"gamma": "gamma", "ent_coef": "entropy_coefficient", "vf_coef": "value_coefficient"},
    "DQN": {
        **dict.fromkeys(("learning_rate", "batch_size", "buffer_size", "learning_starts", "gamma", "tau")),
        **dict.fromkeys(("target_update_interval", "exploration_final_eps")),
        "exploration_rate": "exploration_initial_eps",
    },
    "TD3": {
        **dict.fromkeys(("learning_rate", "batch_size", "buffer_size", "learning_starts", "gamma", "tau")),
        **dict.fromkeys(("policy_delay", "target_policy_noise", "target_noise_clip")),
    },
}
"""Algorithm -> its settings -> ours; None if they have the same name."""


def settings_of(kind: str, model: Any) -> dict[str, Any]:
    """What is set in the model. Schedules count as they are at the start; what has no counterpart is left out."""
    found = {own or name: _number(getattr(model, name, None)) for name, own in SAME[kind].items()}
    settings = {name: value for name, value in found.items() if value is not None}
    if kind == "PPO" and getattr(model, "target_kl", None) is None:
        settings["target_kl"] = 0.0  # None is for no limit, which is 0 here.
    if kind in ("DQN", "TD3"):
        settings |= _frequencies(model)
    if kind == "DQN":
        settings["huber"] = True
    sigma = getattr(getattr(model, "action_noise", None), "_sigma", None)
    if kind == "TD3" and sigma is not None:
        settings["exploration_noise"] = float(max(map(float, sigma)))
    return settings


def _frequencies(model: Any) -> dict[str, int]:
    """Steps between rounds of updates, and updates in one; nothing where it updates after episodes."""
    frequency = getattr(model, "train_freq", None)
    unit = getattr(getattr(frequency, "unit", None), "value", "step")
    steps = getattr(frequency, "frequency", frequency)
    if not isinstance(steps, int) or unit != "step":
        return {}
    updates = int(getattr(model, "gradient_steps", -1))
    return {"train_freq": steps, "gradient_steps": updates if updates > 0 else steps}


def _number(value: Any) -> Any:
    """A number or a switch; of a schedule its value at the start; None for anything else."""
    value = value(1.0) if callable(value) else value
    return value if isinstance(value, bool | int | float) else None
