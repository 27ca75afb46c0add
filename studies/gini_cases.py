"""The cases of the study `gini_estimators.py`: returns and scores whose grad D is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from steadyrl import exact
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.rollouts.compiled import Tables, play
from steadyrl.training.batch import batch_from_plays

Floats = NDArray[np.float64]
SIZES = (10, 30, 50)
"""n: episodes in a batch."""
CHUNK = 30_000
"""Episodes played in the maze at once."""
SEED = 0
GAMMA = 0.999


class Truth(NamedTuple):
    """What can be known without sampling."""

    gini: float
    """Grad D."""
    lead: dict[int, float]
    """n -> d/dtheta E[max of n returns - their mean]."""

    def paper_bias(self, n: int) -> float:
        """How far the mean of the paper's estimator is from grad D."""
        return -self.lead[n] / (n - 1)


def integrated(width: Floats, F: Floats, dF: Floats) -> Truth:
    """From F and dF/dtheta on pieces of the line of the given widths: D = int F (1 - F), lead = int F - F^n."""
    return Truth(
        gini=float(np.sum(width * (1 - 2 * F) * dF)),
        lead={n: float(np.sum(width * (1 - n * F ** (n - 1)) * dF)) for n in SIZES},
    )


@dataclass(frozen=True, eq=False)
class Case:
    """Returns and scores whose grad D is known."""

    name: str
    setting: str
    """What it is, in a sentence."""
    draw: Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]]
    """(generator, (batches, n)) -> returns and scores, [batches, n] each."""
    truth: Truth


def gaussian() -> Case:
    """The scale of a normal distribution."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        z = rng.normal(size=shape)
        return z, z**2 - 1

    width = 1e-3
    x = np.arange(-10, 10, width) + width / 2
    return Case(
        "Gaussian, scale",
        "R is normal with standard deviation s; theta = log s, at s = 1. The score is z^2 - 1, and D = s / sqrt(pi).",
        draw,
        integrated(np.full_like(x, width), norm.cdf(x), -x * norm.pdf(x)),
    )


def reach(noise: float, related: bool = True) -> Case:
    """The goal is reached or not, and perhaps the score has nothing to do with it."""
    p, gap = 0.2, 60.0

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        reached = rng.random(shape) < p
        R = gap * reached + noise * rng.normal(size=shape)
        return R, reached - p if related else rng.normal(size=shape)

    if noise:
        width = 0.01
        x = np.arange(-10 * noise, gap + 10 * noise, width) + width / 2
        not_reached, reached = norm.cdf(x / noise), norm.cdf((x - gap) / noise)
        pieces = np.full_like(x, width), (1 - p) * not_reached + p * reached, p * (1 - p) * (reached - not_reached)
    else:
        pieces = np.array([gap]), np.array([1 - p]), np.array([-p * (1 - p)])
    if not related:
        setting = "Returns as in the case before, scores drawn from N(0, 1) on their own: grad D = 0."
        return Case("unrelated score", setting, draw, integrated(pieces[0], pieces[1], 0 * pieces[2]))
    around = f", plus normal noise of standard deviation {noise:g}" if noise else ""
    return Case(
        f"reach or not, noise {noise:g}" if noise else "reach or not",
        f"R is 60 with probability p = 0.2, else 0{around}; theta = logit p. The score is 1 - p or -p.",
        draw,
        integrated(*pieces),
    )


def white_or_short() -> Case:
    """The two pure paths of the maze."""
    q = 0.5
    maze = Maze()
    white = -np.sum(GAMMA ** np.arange(10)) + maze.goal_reward * GAMMA**10
    # The fourth move enters the red cell, the ninth the goal.
    others = -np.sum(np.delete(GAMMA ** np.arange(8), 3)) + maze.goal_reward * GAMMA**8
    short = others + GAMMA**3 * np.array(maze.red_rewards)

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        took_white = rng.random(shape) < q
        R = np.where(took_white, white, rng.choice(short, p=maze.red_probabilities, size=shape))
        return R, took_white - q

    values = np.sort([white, *short])
    F_short = np.array([np.sum(np.array(maze.red_probabilities)[short <= x]) for x in values])[:-1]
    F_white = (white <= values)[:-1].astype(float)
    return Case(
        "white or short path",
        f"The maze's white path (R = {white:.3f}) with probability q = 0.5, else its short path through red "
        f"(R = {short[0]:.3f}, {short[1]:.3f} or {short[2]:.3f}); theta = logit q.",
        draw,
        integrated(np.diff(values), q * F_white + (1 - q) * F_short, q * (1 - q) * (F_white - F_short)),
    )


class MazePool:
    """Episodes of the uniform policy in the maze, and their scores along the exact gradient of D."""

    def __init__(self, size: int, advance: Callable[[int], Any]) -> None:
        """`size` episodes, a multiple of CHUNK or less than that; `advance` is called with each chunk's size."""
        self.mdp, self.size, self.advance = Maze().mdp, size, advance
        self.logits = np.zeros((self.mdp.n_states, self.mdp.n_actions))
        self.policy = np.full_like(self.logits, 1 / self.mdp.n_actions)

    @cached_property
    def gradient(self) -> Floats:
        """Grad D, [S, A]."""
        return exact.gradient("gini_deviation", self.mdp, self.logits, GAMMA)

    @property
    def direction(self) -> Floats:
        """Theta runs along this unit vector."""
        return self.gradient / np.linalg.norm(self.gradient)

    def truth(self) -> Truth:
        """By the exact distribution of the return; P(max <= x) = F(x)^n."""

        def lead(n: int, values: Any, probabilities: Any) -> Any:
            F = probabilities.cumsum()[:-1]
            return (F - F**n) @ (values[1:] - values[:-1])

        leads = {n: exact.gradient(partial(lead, n), self.mdp, self.logits, GAMMA) for n in SIZES}
        return Truth(
            gini=float(np.linalg.norm(self.gradient)),
            lead={n: float(np.sum(self.direction * of)) for n, of in leads.items()},
        )

    @cached_property
    def episodes(self) -> tuple[Floats, Floats]:
        """Returns and scores of all episodes."""
        tables = Tables.of(self.mdp)
        policy = jnp.asarray(self.policy, jnp.float32)
        centred = self.direction - (self.policy * self.direction).sum(axis=-1, keepdims=True)
        R, scores, n = [], [], min(self.size, CHUNK)
        for chunk in range(self.size // n):
            keys = jax.random.split(jax.random.fold_in(jax.random.key(SEED), chunk), n)
            returns, visits = _returns_and_visits(tables, policy, keys, self.mdp.horizon)
            R.append(np.asarray(returns, np.float64))
            scores.append(np.asarray(visits, np.float64).reshape(n, -1) @ centred.ravel())
            self.advance(n)
        return np.concatenate(R), np.concatenate(scores)

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        """The same episodes for every n, divided into batches, as many as they make."""
        R, scores = self.episodes
        return R.reshape(-1, shape[1]), scores.reshape(-1, shape[1])

    def case(self) -> Case:
        """The pool as a case."""
        error = exact.return_distribution(self.mdp, self.policy, GAMMA).error
        return Case(
            "maze, uniform policy",
            f"Episodes of the uniform policy in the Guarded Maze (goal reward 20, gamma = {GAMMA}); theta runs along "
            f"the direction of the exact grad D. The exact distribution of R is within {error:.1g} (Wasserstein-1) "
            "of the truth.",
            self.draw,
            self.truth(),
        )


@partial(jax.jit, static_argnames="horizon")
def _returns_and_visits(
    tables: Tables, policy: jax.Array, keys: jax.Array, horizon: int
) -> tuple[jax.Array, jax.Array]:
    batch = batch_from_plays(tables, play(tables, policy[None], keys[None], horizon), jnp.array([GAMMA]))
    return batch.returns[0], batch.visits[0]
