"""Which share of landings on the left does E - lambda D prefer in LunarLander?

    python studies/lander_sides.py   # about ten minutes on one core; writes docs/results/lander_sides.md

PPO, whose objective knows no risk, learns to land. Then its policy is shown a shifted horizontal position, so that it
lands as well as before, but farther to the left or to the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import tyro
from markdown_page import provenance, table, wrap

import steadyrl

LAMBDAS = (0.6, 1.0, 1.2, 1.5)
SETTINGS: dict[str, Any] = {
    "gamma": 0.995, "episodes_per_update": 16, "inner_updates": 4, "entropy_coefficient": 0.0,
}  # fmt: skip
"""Of PPO: those of benchmarks/learning/step_credit.toml."""


@dataclass
class Args:
    """E - lambda D of a learned landing, by the share of landings on the left."""

    training: int = 2_500
    """Episodes of PPO."""
    episodes: int = 300
    """Played for each shift."""
    shifts: tuple[float, ...] = (-0.15, -0.1, -0.05, 0.0, 0.03, 0.06, 0.1, 0.15)
    """Added to the horizontal position that the policy sees; the pad extends from -0.2 to 0.2."""
    seed: int = 0
    page: Path = Path("docs/results/lander_sides.md")


def shifted(shift: float) -> gym.Env[Any, Any]:
    """LunarLander, seen from `shift` to the left."""
    env = gym.make("steadyrl/LunarLander-v0")
    offset = np.zeros(env.observation_space.shape, np.float32)
    offset[0] = shift
    return gym.wrappers.TransformObservation(env, lambda seen: seen + offset, env.observation_space)


def row(agent: steadyrl.PPO, shift: float, episodes: int) -> tuple[list[str], list[float]]:
    """The cells of one shift, and E - lambda D by lambda."""
    report = steadyrl.evaluate(agent, shifted(shift), episodes=episodes, seed=1)
    E, D = report.mean.value, report.gini_deviation.value
    landed, left = (report.episode_metrics[name] for name in ("landed_rate", "landed_left_rate"))
    scores = [E - each * D for each in LAMBDAS]
    return [f"{shift:+.2f}", f"{landed:.0%}", f"{left:.0%}", f"{E:.0f}", f"{D:.1f}"], scores


def outcome(rows: Sequence[tuple[list[str], list[float]]], best: Sequence[int]) -> str:
    """Which landing the objective prefers with each lambda, by how much, and which is the next best."""
    (first, at_first), parts = rows[0], []
    for k in dict.fromkeys(best):
        columns = [column for column, place in enumerate(best) if place == k]
        lambdas = ", ".join(f"{LAMBDAS[column]:g}" for column in columns)
        gains = ", ".join(f"{rows[k][1][column] - at_first[column]:.0f}" for column in columns)
        parts.append(
            f"With lambda {lambdas} it is the one that is left in {rows[k][0][2]} of flights, "
            f"by {gains} higher than with {first[2]}."
        )
    lost = {
        k: [rows[place][1][column] - rows[k][1][column] for column, place in enumerate(best)]
        for k in range(len(rows))
        if k not in best
    }
    second = min(lost, key=lambda k: max(lost[k]))
    near = f"The one with {rows[second][0][2]} is {min(lost[second]):.0f} to {max(lost[second]):.0f} lower."
    return f"Which landing has the highest E - lambda D? {' '.join(parts)} {near}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, shift, and write the page."""
    args = tyro.cli(Args, args=arguments)
    agent = steadyrl.PPO(
        gym.make("steadyrl/LunarLander-v0"), seed=args.seed, annealing_episodes=args.training, **SETTINGS
    )
    agent.learn(total_episodes=args.training)
    rows = [row(agent, shift, args.episodes) for shift in args.shifts]
    best = [max(range(len(rows)), key=lambda k: rows[k][1][column]) for column in range(len(LAMBDAS))]
    lines = [
        [*cells, *(f"**{x:.0f}**" if best[column] == k else f"{x:.0f}" for column, x in enumerate(scores))]
        for k, (cells, scores) in enumerate(rows)
    ]
    head = ["shift", "landed", "landed left", "E", "D", *(f"E - {each:g} D" for each in LAMBDAS)]
    made = provenance()
    args.page.write_text(
        wrap(f"""# LunarLander: which side the objective prefers

{outcome(rows, best)}

PPO, whose objective knows no risk, learned to land ({args.training:,} episodes, seed {args.seed}). Then its policy was
shown the lander farther right than it was, by the shift in the table, so that it landed as much farther left. So these
are the landings of one policy, moved, and not what is learned for each side. {args.episodes} episodes for each shift;
return and GD are undiscounted. In each column the highest number is in bold.

{table(head, lines, left=0)}

## Method

    python studies/lander_sides.py

{made["date"]}; steadyrl {made["steadyrl"]}, jax {made["jax"]}, numpy {made["numpy"]}, Python {made["python"]}.
""")
    )


if __name__ == "__main__":
    main()
