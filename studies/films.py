"""The films in docs/films: what risk aversion looks like.

    python -m studies.films                  # both; training takes about a quarter of an hour on one core
    python -m studies.films --films maze     # one of them: about two minutes

The agents are those of benchmarks/learning/step_credit.toml with the same settings and seeds. Trained runs stay in
--runs and are not trained again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import tyro

import steadyrl
from benchmarks.learning.step_credit import AGENTS, PLAN, budget_of, settings_of

FOLDER = Path(__file__).parents[1] / "docs" / "films"


class Scene(NamedTuple):
    """Two agents of a domain side by side."""

    domain: str
    methods: dict[str, str]
    """Caption -> the method of the plan."""
    seed: int
    """Of training: one of those reported in docs/results/step_credit.md."""
    which: tuple[str | int, ...]
    """See `steadyrl.film`."""
    options: dict[str, Any]
    """Of `steadyrl.film`."""


SCENES = {
    "maze": Scene(
        "maze_20",
        {"REINFORCE": "REINFORCE", "MG (Gini deviation)": "MG by step"},
        10,
        ("worst", "median", "best"),
        {},
    ),
    # Seed 51: where PPO lands on the left least often. The first five episodes, not the worst: in those, nothing lands.
    "lunar_lander": Scene(
        "lunar_lander",
        {"PPO": "PPO", "MG (Gini deviation)": "MG by step"},
        51,
        (0, 1, 2, 3, 4),
        {"width": 260, "seconds": 3, "fps": 12.5, "max_bytes": 1_400_000},
    ),
}


@dataclass
class Args:
    """Make films of two agents side by side."""

    films: tuple[str, ...] = tuple(SCENES)
    """Which of them."""
    runs: Path = Path("runs/films")
    """Where trained agents are kept."""
    episodes: int = 200
    """Played with each agent, and ranked."""


def trained(scene: Scene, method: str, runs: Path) -> Any:
    """The agent of a method; loaded if its run is complete, and resumed if it was interrupted."""
    domain = PLAN["domains"][scene.domain]
    env = gym.make(domain["env"], **domain.get("options", {}))
    kind = getattr(steadyrl, AGENTS.get(method, "MeanGini"))
    agent = kind(env, seed=scene.seed, **settings_of(scene.domain, method))
    return agent.learn(**budget_of(scene.domain), out=runs / scene.domain / method.replace(" ", "_"))


def main(args: Args) -> None:
    """Train what is missing, and write the films."""
    for name in args.films:
        scene = SCENES[name]
        agents = {caption: trained(scene, method, args.runs) for caption, method in scene.methods.items()}
        domain = PLAN["domains"][scene.domain]
        env = gym.make(domain["env"], render_mode="rgb_array", **domain.get("options", {}))
        file = FOLDER / f"{name}.gif"
        film = steadyrl.film(agents, env, file, episodes=args.episodes, which=scene.which, **scene.options)
        env.close()
        print(f"{film}\n{file}: {file.stat().st_size / 1000:,.0f} kB\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
