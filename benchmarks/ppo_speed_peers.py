"""The side of `ppo_speed.py` that runs in `.venv-peers`: told a name, it does a round and answers with its seconds.

The first line that it prints says which kind of vector environment was quicker for each library, and is used.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

TRIALS = 3


def environments(shape, kind):
    """Gymnasium's HalfCheetah, with what ours shows and the length of ours."""
    from stable_baselines3.common import vec_env
    from stable_baselines3.common.env_util import make_vec_env

    options = {"max_episode_steps": shape["length"], "exclude_current_positions_from_observation": False}
    return make_vec_env(
        "HalfCheetah-v5", n_envs=shape["episodes"], seed=0, env_kwargs=options, vec_env_cls=getattr(vec_env, kind)
    )


def agent_of(library, shape, kind):
    """A PPO that updates from whole episodes, all of them in one batch."""
    import flax.linen
    import sbx
    import stable_baselines3
    import torch

    PPO, relu = {"sb3": (stable_baselines3.PPO, torch.nn.ReLU), "sbx": (sbx.PPO, flax.linen.relu)}[library]
    hidden = shape["hidden"]
    return PPO(
        "MlpPolicy",
        environments(shape, kind),
        n_steps=shape["length"],
        batch_size=shape["episodes"] * shape["length"],
        n_epochs=shape["passes"],
        policy_kwargs={"net_arch": {"pi": hidden, "vf": hidden}, "activation_fn": relu},
        seed=0,
        device="cpu",
    )


def update(agent):
    """Seconds of one round of collecting and updating."""
    start = time.perf_counter()
    agent.learn(agent.n_steps * agent.n_envs, reset_num_timesteps=False)
    return time.perf_counter() - start


def quickest(library, shape, threads):
    """An agent in the kind of vector environment, and PyTorch's threads, that suit it best; and all their seconds.

    With more than one thread PyTorch can be slower: the products of acting are small.
    """
    import torch

    agents = {kind: agent_of(library, shape, kind) for kind in ("DummyVecEnv", "SubprocVecEnv")}
    counts = sorted({1, threads}) if library == "sb3" else [threads]
    seconds = {}
    for kind, agent in agents.items():
        for count in counts:
            torch.set_num_threads(count)
            for _ in range(2):  # The first compiles, and SBX's second again: its learning rate is an array by then.
                update(agent)
            seconds[kind, count] = statistics.median(update(agent) for _ in range(TRIALS))
    best, count = min(seconds, key=seconds.get)
    for kind in agents.keys() - {best}:
        agents[kind].env.close()
    return agents[best], count, {f"{kind}, {some} threads": s for (kind, some), s in seconds.items()}


def main() -> None:
    """Answer until there is nothing more to answer."""
    import torch
    from ppo_limit import Products

    shape, threads = json.loads(sys.argv[1]), int(sys.argv[2])
    found = {library: quickest(library, shape, threads) for library in ("sb3", "sbx")}
    products = Products(shape, torch.from_numpy)
    print(json.dumps({library: seconds for library, (_, _, seconds) in found.items()}), flush=True)
    for line in sys.stdin:
        asked = line.strip()
        agent, count, _ = found.get(asked, (None, threads, None))
        torch.set_num_threads(count)
        print(json.dumps(products.seconds() if agent is None else update(agent)), flush=True)
    for agent, *_ in found.values():
        agent.env.close()


if __name__ == "__main__":
    main()
