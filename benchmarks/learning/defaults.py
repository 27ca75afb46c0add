"""What agents learn with their defaults, in environments that newcomers try first.

    python -m benchmarks.learning.defaults             # trains what is missing, prints the table
    python -m benchmarks.learning.defaults --report    # writes docs/results/defaults.md

20,000 episodes in the small Discrete environments, 200,000 steps in the others. Each run leaves a line of JSON in
docs/results/defaults_runs.jsonl; what is there is not run again.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import steadyrl
from steadyrl.training.run_folder import versions
from studies.markdown_page import fill

RESULTS, PAGE = Path("docs/results/defaults_runs.jsonl"), Path("docs/results/defaults.md")
SEEDS = (0, 1)
EPISODES, STEPS, EVALUATED = 20_000, 200_000, 300
TABLES = {
    "FrozenLake-v1": ("FrozenLake-v1", {}, 0.6),
    "FrozenLake-v1, not slippery": ("FrozenLake-v1", {"is_slippery": False}, 0.95),
    "Taxi-v4": ("Taxi-v4", {}, 5),
    "CliffWalking-v1": ("CliffWalking-v1", {}, -20),
}
"""Title -> id, options, and the return that should be reached."""
NETWORKS = {"Pendulum-v1": -250, "CartPole-v1": 475, "Acrobot-v1": -100, "steadyrl/TwoSides-v0": 100}
"""Id -> the return that should be reached."""
AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "REINFORCE": ("Reinforce", {}),
    "MG": ("MeanGini", {}),
    "PPO": ("PPO", {}),
    "MG with PPO": ("MeanGini", {"mean": "ppo"}),
    "Q-learning": ("QLearning", {}),
    "PPO, constant steps": ("PPO", {"learning_rate_schedule": "constant"}),
    "MG with PPO, constant steps": ("MeanGini", {"mean": "ppo", "learning_rate_schedule": "constant"}),
    "MG with PPO, constant steps, risk_gamma=1": (
        "MeanGini",
        {"mean": "ppo", "learning_rate_schedule": "constant", "risk_gamma": 1.0, "risk_gae_lambda": 0.9405},
    ),
}
VARIANTS = ("PPO, constant steps", "MG with PPO, constant steps", "MG with PPO, constant steps, risk_gamma=1")
"""Not with default settings."""
IN_TABLES = ("REINFORCE", "MG", "PPO", "MG with PPO", "Q-learning")
IN_NETWORKS = ("PPO", "MG with PPO", *VARIANTS)


def cases() -> list[tuple[str, str]]:
    """Environment and agent."""
    return [(env, agent) for env in TABLES for agent in IN_TABLES] + [
        (env, agent) for env in NETWORKS for agent in IN_NETWORKS
    ]


def make(title: str, limit: bool = False) -> gym.Env[Any, Any]:
    """The environment; with a time limit for evaluation where it has none."""
    name, options, _ = TABLES.get(title, (title, {}, 0))
    more = {"max_episode_steps": 1000} if limit and name == "CliffWalking-v1" else {}
    return gym.make(name, **options, **more)


def run(title: str, agent_title: str, seed: int, episodes: int = EPISODES, steps: int = STEPS) -> dict[str, Any]:
    """Train and evaluate one agent."""
    kind, settings = AGENTS[agent_title]
    agent = getattr(steadyrl, kind)(make(title), seed=seed, **settings)
    budget = {"total_episodes": episodes} if title in TABLES else {"total_timesteps": steps}
    agent.learn(**budget, progress_bar=False)
    returns = [record["return"] for record in agent.history]
    report = steadyrl.evaluate(agent, make(title, limit=True), episodes=EVALUATED)
    return {
        "env": title,
        "agent": agent_title,
        "seed": seed,
        "timesteps": agent.timesteps,
        "training": float(np.mean(returns[-max(1, len(returns) // 10) :])),
        "evaluation": report.mean.value,
        "gini_deviation": report.gini_deviation.value,
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Mean evaluation return of all seeds, and the lowest; in training the mean of the last tenth."""
    lines = [
        "| environment | agent | seeds | evaluation: mean (lowest) | GD | last tenth of training | asked |",
        "| --- " * 7 + "|",
    ]
    goals = {**{title: goal for title, (_, _, goal) in TABLES.items()}, **NETWORKS}
    for env, agent in cases():
        some = [one for one in runs if (one["env"], one["agent"]) == (env, agent)]
        if some:
            mean = {name: np.mean([one[name] for one in some]) for name in ("evaluation", "gini_deviation", "training")}
            lowest = min(one["evaluation"] for one in some)
            lines.append(
                f"| {env} | {agent} | {len(some)} | {mean['evaluation']:.2f} ({lowest:.2f}) | "
                f"{mean['gini_deviation']:.2f} | {mean['training']:.2f} | {goals[env]} |"
            )
    return "\n".join(lines)


def outcome(runs: list[dict[str, Any]]) -> str:
    """How many agents reach what was asked, and which do not."""
    goals = {**{title: goal for title, (_, _, goal) in TABLES.items()}, **NETWORKS}
    means = {
        (env, agent): float(np.mean(some))
        for env, agent in cases()
        if agent not in VARIANTS
        and (some := [one["evaluation"] for one in runs if (one["env"], one["agent"]) == (env, agent)])
    }
    short = {case: mean for case, mean in means.items() if mean < goals[case[0]]}
    failed = "; ".join(f"{agent} in {env} ({mean:.2f} instead of {goals[env]})" for (env, agent), mean in short.items())
    reached = (
        f"In {len(means) - len(short)} of {len(means)} cases, agents with default settings reach the return asked for."
    )
    return f"{reached} Not reached: {failed}." if failed else reached


FINDINGS = """**Risk credit has to look as far ahead as the mean part.** With `risk_gamma=1`, risk credit to the end
of the episode, MG does not learn Acrobot (with constant step sizes). Gamma = 0.99 limits what a better return is worth
to the mean part: a first episode that ends 300 steps early is worth at most 95 there, and lambda = 0.5 takes
150 off for its distance from the others. With `risk_gamma` equal to gamma, the default, both are on one scale,
and MG learns it on most seeds ([equations](../equations.md)). In Taxi with lambda 1.5 from the start MG ended at -66
with `risk_gamma=1`, and at -9 with the default of that time, which did not project the return so far to the end yet
(seed 60, 12,000 episodes, both without the action masks that Taxi reports). Today's default, with masks, ends at
[7.1](step_credit.md#taxi-lambda-15-from-the-start-or-rising).

**Not every default is what was best somewhere** ([numbers](step_credit.md)):

| default | better there | where | why it is the default |
| --- | --- | --- | --- |
| `risk_gamma` as gamma | 1: 5 of 6 seeds out of the noise, not 2 of 6 | Swimmer, constant steps | Acrobot and Taxi |
| falling step sizes | constant: 5 of 6 seeds, not 2 of 6 | Swimmer, `risk_gamma=1` | CartPole, below |
| `gae_lambda=0.95` | 0.5: 32 of 32 seeds on the quiet side, not 28 | two sides | InvertedPendulum |
| `risk_aversion=0.5` | 1.4: 40 of 40 seeds on the safe path, not 2 of 10 | maze | [deviation 56](../deviations.md) |
| `risk_warmup=0` | half of the episodes, to lambda 1: 13 of 15 runs, not 12 of 16 | InvertedPendulum | portfolio |

Only in the row of the maze is the difference significant (Fisher's exact test, p < 0.001); with `gae_lambda` p is 0.11,
in the others more.

**Step sizes have to fall.** With constant ones, MG with PPO learns CartPole and loses it again: in the second
quarter of the training its mean return is 493, 500 and 500 on seeds 0, 1 and 2, and its final policies had 317,
499 and 271, and 324, 339 and 271 in another run. With the linear schedule, the default since then, the same
seeds, in a run beside it, ended at 500, 494 and 500 (200 episodes each). PPO without risk fell too, from 491 in
the third quarter to 442 in the fourth (seed 2). When all returns are 500, advantages are nothing but errors of
the critics, and Adam's steps are as large as before.

**Ten passes over each batch stay the default of MG with PPO.** With risk_gamma=1, four were as good here. With
default settings four were no better in Swimmer (1 of 4 seeds out of the noise, with ten 2 of 4), and in two sides
ten go left with 29 of 32 seeds and four with 28 ([numbers](step_credit.md#swimmer-default-settings)). In TwoSides
a return of 100 is reached on either side: which side it is, is on [another page](step_credit.md#two-sides). More of
the paper's environments with default settings are there: [maze](step_credit.md#guarded-maze-goal-20-default-settings),
[HalfCheetah](step_credit.md#halfcheetah-default-settings-half-of-the-steps).

**MG learns Acrobot on 8 of 9 seeds.** Seeds 1 to 4 and 6 to 9 end between -81 and -88 (200 episodes each), seed 0 at
-500; seed 5 was not run. (The runs of seeds 2 to 9 were made by hand, and are not in the file.)
Episodes that reach the goal are rare at first, and to a risk-averse agent the first of them
are risk. With constant step sizes seeds 0 and 1 learn it; all runs that learn it do so in the first quarter, when the
schedule has hardly begun.

**MG with a table learns FrozenLake since returns so far are projected to the end of the episode**: 0.72 and 0.62
on seeds 0 and 1. Before, it settled on poor policies: 0.16, 0.72 and 0.20 on seeds 0, 1 and 2."""


def missing(runs: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Environment, agent and seed that have not been run."""
    done = {(one["env"], one["agent"], one["seed"]) for one in runs}
    return [(*case, seed) for seed in SEEDS for case in cases() if (*case, seed) not in done]


def page(runs: list[dict[str, Any]]) -> str:
    """The page about all runs."""
    used, absent = runs[-1], [f"{env} {agent} {seed}" for env, agent, seed in missing(runs)]
    installed = fill(", ".join(f"{name} {version}" for name, version in used["versions"].items()), 110)
    not_run = fill(f"Not run yet (agent and seed): {'; '.join(absent)}.", 110) + "\n\n" if absent else ""
    return f"""# What the defaults learn

{fill(outcome(runs), 110)}

Agents with their default settings, {EPISODES:,} episodes in the small Discrete environments (tables), {STEPS:,} steps
in the others (networks). Returns are undiscounted; evaluation is {EVALUATED} episodes of the trained policy,
with sampled actions. The last tenth of training includes exploration.

{table(runs)}

{FINDINGS}

**Which method where.** Vanilla policy gradients (REINFORCE, and MG with `mean="vpg"`) are the slowest of
these where episodes are long and rewards come late, as in Taxi, and they can settle on a poor policy in
FrozenLake: REINFORCE with seed 0 ended at 0.49 rather than 0.72 or more when its program was compiled without
optimizations, which changes rounding alone. There take PPO, `MeanGini(env, mean="ppo")`, or Q-learning if
risk does not matter. In Pendulum and other continuous control, use `mean="ppo"`, which is the default for
networks, or TD3.

{not_run}Command: `python -m benchmarks.learning.defaults`; as many seeds as the table says, from 0 on; {used["date"]};
{installed}.
"""


def main() -> None:
    """Train what is missing; print the table, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="write the page from what is there")
    parser.add_argument("--envs", nargs="+", choices=[*TABLES, *NETWORKS], help="some environments; all by default")
    parser.add_argument("--agents", nargs="+", choices=list(AGENTS), help="some agents; all by default")
    parser.add_argument("--part", default="0/1", help="the share of the runs, such as 0/2: for two processes")
    arguments = parser.parse_args()
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    if arguments.report:
        PAGE.write_text(page(runs))
        return
    index, parts = map(int, arguments.part.split("/"))
    envs, agents = arguments.envs or [*TABLES, *NETWORKS], arguments.agents or list(AGENTS)
    wanted = [case for case in missing(runs) if case[0] in envs and case[1] in agents]
    for case in wanted[index::parts]:
        runs.append(run(*case))
        with RESULTS.open("a") as file:
            file.write(json.dumps(runs[-1]) + "\n")
        print(table(runs[-1:]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
