"""One library that trains PPO until its policy reaches a threshold; prints JSON. Run by `worlds.py`.

    python -m benchmarks.speed.reaching LEARNER TASK SEEDS [SECONDS]     # such as: rejax CartPole-v1 0,1,2

The clock runs while policies are trained, from their construction on, and stands while they are evaluated: on 32
episodes of the policy as it acts in training, after each 2,048 steps. With several seeds, training ends when all have
reached the threshold, or after so many seconds; where they are trained one after the other, times add up.

Everything is compiled in the first part of a training. That part is trained twice before, and what it takes longer the
first time is the time of compilation.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from contextlib import contextmanager
from functools import cache

EVALUATED = 32
TASKS = {
    "CartPole-v1": {"threshold": 475.0, "limit": 400_000, "learning_rate": 3e-4, "gamma": 0.99, "episodes": 8},
    "Pendulum-v1": {"threshold": -200.0, "limit": 600_000, "learning_rate": 1e-3, "gamma": 0.9, "episodes": 10},
}
"""The same for all: networks of 64x64 with ReLU, 10 passes in minibatches of 64, and these. `episodes` are ours."""
ENVS, STEPS, MINIBATCH, PASSES = 8, 256, 64, 10
ROUNDS = 2
"""Ours between two evaluations of several seeds."""
WIDTH = int(os.environ.get("WORLDS_VMAP_WIDTH", "0")) or None


class Clock:
    """Seconds of training, and those of all processor cores together, which a busy machine changes little."""

    def __init__(self):
        self.seconds = self.cpu_seconds = 0.0

    @contextmanager
    def running(self):
        """Counts what is done inside."""
        start, cpu_start = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.process_time() - cpu_start


def ours(task, seeds):
    """Steadyrl, all seeds in one program; like the others, yields the clock, steps and mean returns after each part."""
    import steadyrl

    t, clock = TASKS[task], Clock()
    settings = {"hidden": (64, 64), "policy_learning_rate": t["learning_rate"], "gamma": t["gamma"], "target_kl": 0.0}
    settings |= {"minibatch_size": MINIBATCH, "inner_updates": PASSES, "episodes_per_update": t["episodes"]}
    settings |= {"entropy_coefficient": 0.0, "normalise_observations": False, "learning_rate_schedule": "constant"}
    settings |= {"squash_mean": False, "initial_log_std": 0.0}
    with clock.running():
        agents = [steadyrl.PPO(f"gymnax:{task}", seed=seed, **settings) for seed in seeds]
    while True:
        with clock.running():
            if len(agents) == 1:
                agents[0].learn(total_timesteps=ENVS * STEPS, progress_bar=False)
            else:
                steadyrl.learn_together(
                    agents, total_episodes=ROUNDS * t["episodes"], progress_bar=False, vmap_width=WIDTH
                )
        means = [agent.play(EVALUATED, seed=1).rewards.sum(axis=1).mean() for agent in agents]
        yield clock, max(agent.timesteps for agent in agents), means


def rejax(task, seeds):
    """Rejax, all seeds under `vmap`."""
    import jax
    import jax.numpy as jnp

    clock = Clock()
    with clock.running():
        init, train, returns = rejax_programs(task)
        states = init(jnp.stack([jax.random.key(seed) for seed in seeds]))
    while True:
        with clock.running():
            states = jax.block_until_ready(train(states))
        yield clock, int(states.global_step[0]), returns(states).tolist()


@cache
def rejax_programs(task):
    """Programs for several seeds: their states, a part of their training, and their mean returns."""
    import jax
    import jax.numpy as jnp
    from rejax import PPO
    from rejax.evaluate import evaluate

    t = TASKS[task]
    algorithm = PPO.create(
        env=task, num_envs=ENVS, num_steps=STEPS, num_minibatches=ENVS * STEPS // MINIBATCH, num_epochs=PASSES,
        learning_rate=t["learning_rate"], gamma=t["gamma"], ent_coef=0.0, max_grad_norm=0.5,
        agent_kwargs={"hidden_layer_sizes": (64, 64), "activation": "relu"},
    )  # fmt: skip

    def returns(state):
        def act(observation, key):
            network = algorithm.actor.bind(state.actor_ts.params)
            action = jnp.squeeze(network.act(observation[None], key))
            return action if algorithm.discrete else jnp.clip(action, -2.0, 2.0).reshape(1)

        limit = algorithm.env_params.max_steps_in_episode
        return evaluate(act, jax.random.key(1), algorithm.env, algorithm.env_params, EVALUATED, limit)[1].mean()

    init, train = jax.jit(jax.vmap(algorithm.init_state)), jax.jit(jax.vmap(algorithm.train_iteration))
    return init, train, jax.jit(jax.vmap(returns))


def sb3(task, seeds):
    """Stable-Baselines3, one seed after the other."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)  # Faster than two, with networks of this size.
    t, clock, before = TASKS[task], Clock(), 0.0
    means = []
    for k, seed in enumerate(seeds):
        with clock.running():
            policy = {"net_arch": [64, 64], "activation_fn": torch.nn.ReLU}
            model = PPO(
                "MlpPolicy", make_vec_env(task, ENVS, seed=seed), n_steps=STEPS, batch_size=MINIBATCH,
                n_epochs=PASSES, learning_rate=t["learning_rate"], gamma=t["gamma"], policy_kwargs=policy, seed=seed,
                device="cpu",
            )  # fmt: skip
        tests, reached = make_vec_env(task, EVALUATED, seed=1), False
        while not reached:
            with clock.running():
                model.learn(ENVS * STEPS, reset_num_timesteps=False)
            mean, _ = evaluate_policy(model, tests, EVALUATED, deterministic=False)
            reached = mean >= t["threshold"] or model.num_timesteps >= t["limit"]
            means = [*means[:k], mean]
            yield clock, max(before, model.num_timesteps), means + [-1e9] * (len(seeds) - len(means))
        before = max(before, model.num_timesteps)


def compilation(learner, task, seeds):
    """Seconds by which a first part of training takes longer the first time."""
    first, again = (vars(next(learner(task, seeds))[0]) for _ in range(2))
    return {name: first[name] - again[name] for name in first}


def reach(learner, task, seeds, longest=math.inf):
    """Train until all seeds have reached the threshold at some time; seconds, steps, and how many have."""
    t, best = TASKS[task], [-1e9] * len(seeds)
    for clock, steps, means in learner(task, seeds):
        best = [max(pair) for pair in zip(best, means, strict=True)]
        reached = sum(bool(mean >= t["threshold"]) for mean in best)
        if reached == len(seeds) or steps >= t["limit"] or clock.seconds >= longest:
            return {**vars(clock), "steps": steps, "reached": reached, "seeds": len(seeds)}
    raise AssertionError("a learner does not end by itself")


def main():
    """Train, and print what it took, with compilation and without."""
    name, task, seeds = sys.argv[1], sys.argv[2], [int(seed) for seed in sys.argv[3].split(",")]
    longest = float(sys.argv[4]) if len(sys.argv) > 4 else math.inf
    learner = {"ours": ours, "rejax": rejax, "sb3": sb3}[name]
    compiling = compilation(learner, task, seeds) if name != "sb3" else {}
    result = reach(learner, task, seeds, longest)
    for clock, seconds in compiling.items():
        result |= {clock: result[clock] + seconds, f"{clock}_compiled": result[clock]}
    print(json.dumps({"learner": name, "task": task, **result}), flush=True)


if __name__ == "__main__":
    main()
