"""LunarLander in EnvPool's C++ threads."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrl.envs.lunar_lander import STILL_FLYING, LunarLanderEnv, landing_facts
from steadyrl.envs.reward_noise import noise_stream
from steadyrl.simulators.envpool_env import step_some
from steadyrl.simulators.simulator import Steps

_NO_LIMIT = np.iinfo(np.int32).max
_GRAVITY = -10.0


def obstacle(env: LunarLanderEnv) -> ImportError | ValueError | None:
    """Why EnvPool cannot stand in for this environment, or None."""
    if importlib.util.find_spec("envpool") is None:
        return ImportError("engine 'envpool' needs EnvPool: pip install 'steadyrl[fast]'")
    options = {
        f"gravity={env.gravity}": env.gravity != _GRAVITY,
        "enable_wind=True": env.enable_wind,
        "continuous=True": env.continuous,
        "render_mode='human'": env.render_mode == "human",
    }
    refused = [option for option, given in options.items() if given]
    if refused:
        return ValueError(
            f"EnvPool's LunarLander does not know {', '.join(refused)}. Use engine 'gymnasium', or leave this out."
        )
    return None


class EnvPoolLunarLander:
    """Up to `size` flights at once, with the rewards and facts of `LunarLanderEnv`; see `Simulator`.

    Not number for number: EnvPool draws the moon and the engines' scatter in its own way, and a few more of its flights
    never come to rest: 1.9 % against 1.4 % of 15,000 flights of Gymnasium's heuristic in each (deviation 27). The
    reward noise of a seed is the same in both.
    """

    def __init__(self, env: LunarLanderEnv, size: int, max_steps: int | None) -> None:
        reason = obstacle(env)
        if reason is not None:
            raise reason
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.size = size
        self.idle_steps = 0
        self._landing_noise = env.landing_noise
        self._max_steps = _NO_LIMIT if max_steps is None else max_steps
        self._pool: Any = None
        self._seeds: list[int] = []

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        import envpool

        if not 0 < len(seeds) <= self.size:
            raise ValueError(f"{len(seeds)} seeds for a simulator of {self.size} episodes.")
        self.close()
        self._seeds = [int(seed) for seed in seeds]
        # EnvPool honours seeds only when it is made, which takes milliseconds; a reset would ignore them.
        self._pool = envpool.make(
            "LunarLander-v3",
            env_type="gymnasium",
            num_envs=len(seeds),
            seed=[_envpool_seed(seed) for seed in self._seeds],
            max_episode_steps=self._max_steps,
        )
        return self._pool.reset()[0]

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        steps = step_some(self._pool, np.asarray(slots), np.asarray(actions))
        for index in np.flatnonzero(steps.terminated | steps.truncated):
            slot, x = int(slots[index]), float(steps.observations[index, 0])
            steps.rewards[index], steps.facts[slot] = self._end(slot, x, steps.rewards[index], steps.terminated[index])
        return steps

    def close(self) -> None:
        """See `Simulator`."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _end(self, slot: int, x: float, reward: float, terminated: bool) -> tuple[float, dict[str, float]]:
        """The last reward of an episode, noise included, and its facts."""
        noise = self._landing_noise
        landing = noise.landing(x, reward) if terminated else STILL_FLYING
        if landing.noisy:
            reward += noise.noise_scale * noise_stream(self._seeds[slot]).standard_normal()
        return reward, landing_facts(landing)


def _envpool_seed(seed: int) -> int:
    """EnvPool's seeds have 32 bits and a sign."""
    return int(np.random.SeedSequence(seed).generate_state(1).view(np.int32)[0])
