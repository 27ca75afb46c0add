"""Credit for risk, step by step: how much each step changed the utility that its episode can expect.

With the law of returns frozen for one batch, minus the gradient of a measure is E[u(R) sum_t score_t], where u is the
measure's utility (`risk.measure`). So the risk part is an ordinary policy gradient with one reward, u(R), at the end.
Let C_t be the return before step t and Z_t the return still to come, so that R = C_t + gamma^t Z_t. The critic
expects U_t = E[u(C_t + gamma^t Z_t) | s_t, t], and the advantage of a step is U_{t+1} - U_t plus a decaying sum of the
changes that follow (GAE), with u(R) in place of U after the last step. If the sum does not decay, the estimate is
unbiased for that law, whatever the critic says. Remembered returns of earlier policies make the law less noisy and a
little stale: of a policy that is better than all of them, u would only say that less is better.

With gamma < 1, advantages of the mean leave out what is further ahead than about 1 / (1 - gamma) steps. So that both
parts keep one scale, `gamma` does the same here. The return so far is projected to the end by what other episodes
collect from the same time on (`training.time_baseline`), and the rewards of the risk part, u(P_{t+1}) - u(P_t) with the
projection P_t, are discounted. That is the utility of the projection at a stop that comes after each step with
probability 1 - gamma. So Z_t has the episode's own rewards up to such a stop, and what others collect after it.

What is learned is the distribution of Z_t, by quantile regression: it does not move with u, and how U depends on C_t
is known. `tests/agents/test_risk_critic.py` compares it with exact gradients.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import Array

from steadyrl.agents.networks.quantiles import pinball_loss
from steadyrl.agents.networks.running_scale import RunningScale
from steadyrl.agents.trajectory_credit import laws_of_others, remember
from steadyrl.base.pytree import Leaf, register_pytree
from steadyrl.risk import Law, LawMeasure
from steadyrl.training.batch import Steps
from steadyrl.training.minibatches import Minibatches
from steadyrl.training.returns import rewards_to_go
from steadyrl.training.time_baseline import TimeBaseline

STOPS = 16
"""Levels at which the distribution of stops after the end of an episode is taken: the credit for ending it is exact to
3 % where u is linear, and about 10 % too small where u is quadratic over hundreds of steps."""


class Quantiles(Protocol):
    """What learns the distribution of the return still to come, in units of its scale."""

    @property
    def knows_time(self) -> bool:
        """Whether quantiles depend on the time."""
        ...

    @property
    def passes(self) -> int:
        """Over each batch."""
        ...

    @property
    def minibatch_size(self) -> int | None:
        """None for the whole batch."""
        ...

    def init(self, key: Array) -> Any:
        """Parameters to start from."""
        ...

    def __call__(self, parameters: Any, observations: Array, times: Array) -> Array:
        """Quantiles [..., N], given observations and times in units of the mean length of episodes [...]."""
        ...


class CriticState(NamedTuple):
    """What a `RiskCritic` knows, from earlier batches alone."""

    parameters: Any
    optimiser: Any
    key: Any
    """The random key of the minibatches."""
    scale: RunningScale
    """Of what is learned, over the steps of recent episodes."""
    length: Array
    """The mean length of recent episodes."""
    returns: Array
    """[m]: the latest returns, 0 where there are fewer."""
    known: Array
    """[m]: 1, or 0 where there is no return yet."""

    @property
    def episodes(self) -> Array:
        """Seen so far."""
        return self.scale.episodes


@dataclass(frozen=True)
class RiskCritic:
    """Learns the distribution of the return still to come, and credits steps with what they changed. A pytree."""

    network: Quantiles
    measure: Leaf[LawMeasure]
    discount: Leaf[float]
    """Of the return whose risk is measured."""
    decay: Leaf[float]
    """Of credit for changes further ahead, per step; GAE's lambda, times gamma if there is one."""
    learning_rate: Leaf[float]
    returns_remembered: int
    warmup: Leaf[float] = 0.0
    """Episodes over which aversion rises from nothing."""
    groups: int = 1
    """Equal parts of a batch that are judged apart: an episode is compared with those of its own group alone."""
    gamma: Leaf[float] = 1.0
    """Discount factor of the rewards u(P_{t+1}) - u(P_t); with 1 credit looks to the end of the episode."""

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """How the quantiles take their steps."""
        return optax.flatten(optax.adam(self.learning_rate))

    def init(self, key: Array) -> CriticState:
        """An untrained critic, with quantiles around 0."""
        k_network, k_order = jax.random.split(key)
        parameters, none_yet = self.network.init(k_network), jnp.zeros(self.returns_remembered)
        return CriticState(
            parameters,
            self.optimiser.init(parameters),
            jax.random.key_data(k_order),
            scale=RunningScale.unknown(),
            length=jnp.float32(1),
            returns=none_yet,
            known=none_yet,
        )

    def readiness(self, state: CriticState) -> Array:
        """The share of risk aversion that counts by now: from 0 to 1 while episodes are fewer than `warmup`."""
        return jnp.where(state.episodes < self.warmup, state.episodes / jnp.maximum(self.warmup, 1), 1.0)

    def advantages(self, state: CriticState, steps: Steps) -> Array:
        """[K, T]: how much each step lowered the measure, in its units.

        Episode i is judged by the law of the others and of remembered returns, and by what was learned before: neither
        depends on its own actions.
        """
        rows, discounts = steps.rows, self.discount**steps.times
        gained = steps.rewards * discounts
        returns, so_far = rows.total(gained.sum(axis=-1)), rows.sum_before(gained)
        quantiles = self.network(state.parameters, steps.observations, _times(state, steps))
        baseline = TimeBaseline.of(steps, self.discount, self.groups)
        to_come = state.scale.mean + state.scale.std * quantiles + self._typical(baseline)[..., None]
        possible = so_far[..., None] + discounts[..., None] * to_come
        utility: Any = jax.vmap(self.measure.utility)
        laws = self.laws_of_others(state, returns)
        of_steps = Law(*map(rows.spread, laws))
        expected = utility(possible, of_steps).mean(axis=-1)
        projected = so_far + gained + discounts * self.discount * baseline.at(1)
        after = (1 - self.gamma) * utility(projected, of_steps) + self.gamma * rows.following(expected)
        # After the end only the baseline changes, and it is known: the mean over the stops.
        ahead = self._steps_before_stop((jnp.arange(STOPS) + 0.5) / STOPS)
        left = self.discount ** (steps.lengths[:, None] + ahead) * baseline.after_end(ahead)
        final = rows.spread(utility(returns[:, None] + left, laws).mean(axis=-1))[:, None]
        changes = jnp.where(steps.last, final, after) - expected
        credit: Array = rewards_to_go(changes * steps.mask, self.decay, rows) * steps.mask
        return credit

    def laws_of_others(self, state: CriticState, returns: Array) -> Law:
        """For each of n episodes the law of all returns but its own: [n, n + m] each.

        With groups, of those in its group: [n, n / groups] each. Their lambdas differ from batch to batch, so that
        nothing is remembered.
        """
        if self.groups > 1:
            apart = dataclasses.replace(self, groups=1)
            laws = jax.vmap(lambda part: apart.laws_of_others(state, part))(returns.reshape(self.groups, -1))
            return Law(*(x.reshape(returns.size, -1) for x in laws))
        return laws_of_others(returns, state.returns, state.known)

    def fit(self, state: CriticState, steps: Steps) -> tuple[CriticState, Array]:
        """The critic after learning from a batch, and its loss in the last pass."""
        targets = self.targets(jax.random.fold_in(jax.random.wrap_key_data(state.key), 0), steps)
        state = self._remember(state, steps, targets)
        given = steps.observations, _times(state, steps), (targets - state.scale.mean) / state.scale.std
        given, mask = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (given, steps.mask))

        def loss(parameters: Any, given: tuple[Array, Array, Array], weights: Array) -> Array:
            observations, times, targets = given
            errors = pinball_loss(self.network(parameters, observations, times), targets)
            return (weights * errors).sum() / weights.sum()

        def step(carry: tuple[Any, Any, Array], given: Any, weights: Array) -> tuple[Any, Any, Array]:
            parameters, optimiser, total = carry
            value, gradient = jax.value_and_grad(loss)(parameters, given, weights)
            moves, optimiser = self.optimiser.update(gradient, optimiser, parameters)
            return optax.apply_updates(parameters, moves), optimiser, total + value

        def one_pass(carry: tuple[Any, Any], key: Array) -> tuple[tuple[Any, Any], Array]:
            if self.network.minibatch_size is None:
                *moved, total = step((*carry, jnp.float32(0)), given, mask)
                return tuple(moved), total
            size = min(self.network.minibatch_size, mask.size)
            minibatches = Minibatches.of(key, mask, size)

            def on_part(k: Array, carry: tuple[Any, Any, Array]) -> tuple[Any, Any, Array]:
                rows, within = minibatches.part(k, size)
                return step(carry, jax.tree.map(lambda x: x[rows], given), within)

            *moved, total = jax.lax.fori_loop(0, minibatches.parts, on_part, (*carry, jnp.float32(0)))
            return tuple(moved), total / minibatches.parts

        k_next, *keys = jax.random.split(jax.random.wrap_key_data(state.key), 1 + self.network.passes)
        learned, losses = jax.lax.scan(one_pass, (state.parameters, state.optimiser), jnp.stack(keys))
        state = state._replace(parameters=learned[0], optimiser=learned[1], key=jax.random.key_data(k_next))
        return state, losses[-1]

    def targets(self, key: Array, steps: Steps) -> Array:
        """[K, T]: the return still to come, with that of other episodes after a stop that is drawn for each step.

        Less what others collect from that time on, if the network knows the time and there is a stop.
        """
        to_end = rewards_to_go(steps.rewards, self.discount, steps.rows)
        ahead = 1 + self._steps_before_stop(_uniform_of_steps(key, steps))
        baseline, none = TimeBaseline.of(steps, self.discount, self.groups), jnp.zeros(steps.rows.episodes(to_end))
        at_stop = baseline.at(ahead) - steps.rows.later(to_end, steps.mask, ahead, none)
        drawn: Array = to_end + self.discount**ahead * at_stop - self._typical(baseline)
        return drawn

    def _typical(self, baseline: TimeBaseline) -> Array:
        """[K, T]: the part of the return still to come that is not learned, because all have it at that time.

        In long episodes most of it is that. Tables, which know no time, and critics without a stop learn it all.
        """
        known = jnp.where(self.gamma < 1, 1.0, 0.0) if self.network.knows_time else 0.0
        return known * baseline.at(0)

    def _steps_before_stop(self, levels: Array) -> Array:
        """Steps after the first before a stop, at these levels of their distribution, P(at least k) = gamma^k."""
        return jnp.where(self.gamma < 1, jnp.floor(jnp.log1p(-levels) / jnp.log(self.gamma)), jnp.inf)

    def _remember(self, state: CriticState, steps: Steps, targets: Array) -> CriticState:
        """The state with the returns of a batch, and moments that include it."""
        returns = steps.returns(self.discount)
        n = returns.size
        latest, known = remember(returns, state.returns, state.known)
        return state._replace(
            scale=state.scale.updated(targets, steps.mask / steps.mask.sum(), n),
            length=state.length + state.scale.weight(n) * (steps.mask.sum() / n - state.length),
            returns=latest,
            known=known,
        )


register_pytree(RiskCritic)


def _uniform_of_steps(key: Array, steps: Steps) -> Array:
    """[K, T]: a random number in [0, 1) for each step, which depends on its episode and time, and not on the rows."""
    rows, shape = steps.rows, steps.mask.shape
    episodes = rows.spread(jnp.arange(rows.episodes(steps.mask)))
    times = jnp.broadcast_to(steps.times, shape).astype(jnp.int32)
    of_steps: Any = jax.vmap(jax.vmap(_uniform, (None, None, 0)), (None, 0, 0))
    numbers: Array = of_steps(key, episodes, times)
    return numbers


def _uniform(key: Array, episode: Array, time: Array) -> Array:
    return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, episode), time))


def _times(state: CriticState, steps: Steps) -> Array:
    return jnp.broadcast_to(steps.times / state.length, steps.mask.shape)
