"""How PPO goes through a batch of steps: whole passes, as in Algorithm 2, or passes in minibatches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from steadyrl.training.algorithm import Learner, Metrics
from steadyrl.training.minibatches import Minibatches
from steadyrl.training.rows import Part, Rows


class PPOSteps(NamedTuple):
    """Steps to learn from, [K, L] or in any other shape."""

    observations: Array
    actions: Array
    """[..., 1, ...]: the one action taken there."""
    old_log_prob: Array
    """Log pi(a|s) when it was taken."""
    advantages: Array
    targets: Array
    """What the values are fitted to."""
    mask: Array
    """1, or 0 in the padding."""
    action_masks: Array | None = None
    """[..., A] bool: which actions were allowed; None for all."""
    divisor: Array | None = None
    """By what a sum over the steps is divided; None for how many unmasked ones there are."""

    @property
    def shares(self) -> Array:
        """The weight of each step in a mean over all unmasked steps."""
        return self.mask / (jnp.maximum(self.mask.sum(), 1) if self.divisor is None else self.divisor)


RiskWeights = Callable[[Array], tuple[Array, Any]]
"""From the log ratios of steps to their risk weights, or one for each row, and the measure's new state."""


class Steppable(Protocol):
    """What takes the steps of policy and value function: `PPOUpdate`."""

    @property
    def settings(self) -> Any:
        """PPO's settings."""
        ...

    @property
    def policy(self) -> Any:
        """The policy."""
        ...

    @property
    def value(self) -> Any:
        """The value function, or None."""
        ...

    @property
    def recurrent(self) -> bool:
        """Whether minibatches are of whole episodes."""
        ...

    def step_policy(self, learner: Learner, steps: PPOSteps, risk_weights: RiskWeights) -> tuple[Learner, Metrics]:
        """One step of the policy."""
        ...

    def step_values(self, learner: Learner, steps: PPOSteps) -> tuple[Learner, Metrics]:
        """One step of the value function, if there is one."""
        ...

    def value_gradient(self, learner: Learner, steps: PPOSteps) -> tuple[Array, Any]:
        """The loss of the value function, and its gradient."""
        ...

    def move_values(self, learner: Learner, loss_and_gradient: tuple[Array, Any]) -> tuple[Learner, Metrics]:
        """One step of the value function down its gradient."""
        ...


def whole_passes(
    ppo: Steppable, learner: Learner, steps: PPOSteps, risk_weights: RiskWeights, rows: Rows
) -> tuple[Learner, Metrics]:
    """In each pass one step of the policy from all steps, and of the value function from each trajectory in turn.

    First all passes of the policy, then all of the values: they are independent, and apart they are faster.
    """
    M = ppo.settings.inner_updates

    def policy_pass(learner: Learner, _: Any) -> tuple[Learner, Metrics]:
        return ppo.step_policy(learner, steps, risk_weights)

    def value_pass(learner: Learner, _: Any) -> tuple[Learner, Metrics]:
        if rows.split and ppo.value is not None:
            return jax.lax.scan(partial(_step_values_in_parts, ppo, steps, rows), learner, jnp.arange(len(rows.first)))
        return jax.lax.scan(ppo.step_values, learner, steps)

    learner, policy_metrics = jax.lax.scan(policy_pass, learner, length=M)
    # One after the other: the compiler might have them share the cores.
    learner = jax.lax.optimization_barrier(learner)  # type: ignore[no-untyped-call]
    learner, value_metrics = jax.lax.scan(value_pass, learner, length=M)
    metrics = jax.tree.map(jnp.mean, {**policy_metrics, **value_metrics})
    return learner, {**metrics, "updates": jnp.int32(M)}


def _step_values_in_parts(
    ppo: Steppable, steps: PPOSteps, rows: Rows, learner: Learner, i: Array
) -> tuple[Learner, Metrics]:
    """One step of the value function from trajectory `i`, whose gradient is the mean of those of its parts."""
    T = rows.total(steps.mask.sum(axis=-1))[i]

    def add(total: tuple[Array, Any], part: Part) -> tuple[Array, Any]:
        own = part.take(steps)
        own = own._replace(mask=own.mask * part.own[:, None])
        share = own.mask.sum() / T
        summed: tuple[Array, Any] = jax.tree.map(lambda x, y: x + share * y, total, ppo.value_gradient(learner, own))
        return summed

    zeros = jax.tree.map(jnp.zeros_like, (jnp.float32(0), learner.phi))
    return ppo.move_values(learner, rows.fold(i, add, zeros))


def minibatch_passes(
    ppo: Steppable, learner: Learner, steps: PPOSteps, risk_weights: RiskWeights
) -> tuple[Learner, Metrics]:
    """In each pass one step of policy and value function from each minibatch, of steps or of whole episodes."""
    s = ppo.settings

    def cond(carry: tuple[Array, Array, Learner, Metrics]) -> Array:
        m, kl, _, _ = carry
        again: Array = (m < s.inner_updates) & ((kl <= s.target_kl) | (s.target_kl == 0))
        return again

    def one_pass(carry: tuple[Array, Array, Learner, Metrics]) -> tuple[Array, Array, Learner, Metrics]:
        m, _, learner, sums = carry
        learner, moved = _minibatch_pass(ppo, learner, sums, steps, risk_weights)
        kl = (moved["approx_kl"] - sums["approx_kl"]) / (moved["updates"] - sums["updates"])
        return m + 1, kl, learner, moved

    of_values = () if ppo.value is None else ("value_loss",)
    names = ("entropy", "approx_kl", "clip_fraction", "policy_loss", "gradient_norm", *of_values)
    zeros = {**dict.fromkeys(names, jnp.float32(0)), "updates": jnp.int32(0)}
    start = (jnp.int32(0), jnp.float32(0), learner, zeros)
    _, _, learner, sums = jax.lax.while_loop(cond, one_pass, start)
    updates = sums.pop("updates")
    return learner, {**{name: total / updates for name, total in sums.items()}, "updates": updates}


def _minibatch_pass(
    ppo: Steppable, learner: Learner, sums: Metrics, steps: PPOSteps, risk_weights: RiskWeights
) -> tuple[Learner, Metrics]:
    """One pass; ratios of trajectories are those at its start. Metrics are added to `sums`."""
    log_prob = ppo.policy.log_prob(learner.theta, steps.observations, steps.actions, steps.action_masks)[..., 0]
    weights, state = risk_weights(log_prob - steps.old_log_prob)
    # What minibatches are drawn from: all steps, or episodes.
    items, mask = (steps, weights * steps.mask), steps.mask[:, 0]
    if not ppo.recurrent:
        items = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), items)
        mask = items[0].mask
    k_order, k_next = jax.random.split(jax.random.wrap_key_data(learner.key))
    learner = learner._replace(risk=state, key=jax.random.key_data(k_next))
    size = min(ppo.settings.minibatch_size, mask.size)
    minibatches = Minibatches.of(k_order, mask, size)
    # Episodes differ in length: a step counts alike in a short minibatch and in a long one.
    divisor = steps.mask.sum() / minibatches.parts if ppo.recurrent else None

    def body(k: Array, carry: tuple[Learner, Metrics]) -> tuple[Learner, Metrics]:
        learner, sums = carry
        rows, within = minibatches.part(k, size)
        part, part_weights = jax.tree.map(lambda x: x[rows], items)
        within = within.astype(part.mask.dtype)
        part = part._replace(mask=within[:, None] * part.mask if ppo.recurrent else within, divisor=divisor)
        learner, policy_metrics = ppo.step_policy(learner, part, lambda _: (part_weights, state))
        learner, value_metrics = ppo.step_values(learner, part)
        latest = {**policy_metrics, **value_metrics, "updates": jnp.int32(1)}
        return learner, {name: total + latest[name] for name, total in sums.items()}

    result: tuple[Learner, Metrics] = jax.lax.fori_loop(0, minibatches.parts, body, (learner, sums))
    return result
