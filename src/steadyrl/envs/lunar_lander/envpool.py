"""The fast simulator of LunarLander: EnvPool, which steps environments in C++ threads."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyrl.envs.envpool import step_subset
from steadyrl.envs.lunar_lander.landing import STILL_FLYING, landing_metrics
from steadyrl.envs.reward_noise import noise_stream
from steadyrl.envs.simulator import StepResult

if TYPE_CHECKING:
    from steadyrl.envs.lunar_lander.environment import LunarLanderEnv

_NO_LIMIT = np.iinfo(np.int32).max
_GRAVITY = -10.0


def unsupported(env: LunarLanderEnv) -> ImportError | ValueError | None:
    """The reason why EnvPool cannot simulate this environment; None if it can."""
    if importlib.util.find_spec("envpool") is None:
        return ImportError("engine 'envpool' needs EnvPool: pip install 'steadyrl[fast]'")
    options = {
        f"gravity={env.gravity}": env.gravity != _GRAVITY,
        "enable_wind=True": env.enable_wind,
        "continuous=True": env.continuous,
        "render_mode='human'": env.render_mode == "human",
    }
    rejected = [option for option, given in options.items() if given]
    if rejected:
        return ValueError(
            f"EnvPool's LunarLander does not support {', '.join(rejected)}. Use engine 'gymnasium', or leave this out."
        )
    return None


class EnvPoolLunarLander:
    """Up to `size` flights at once, with the rewards and metrics of `LunarLanderEnv`; see `Simulator`.

    Episodes differ from those of Gymnasium: EnvPool draws the terrain and the engine dispersion from other random
    numbers, and slightly more of its flights never come to rest, 1.9 % against 1.4 % of 15,000 flights of Gymnasium's
    heuristic in each (deviation 27). The reward noise of a seed is the same in both.
    """

    def __init__(self, env: LunarLanderEnv, size: int, max_steps: int | None) -> None:
        reason = unsupported(env)
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
        # EnvPool uses seeds only at creation, which takes milliseconds; `reset` would ignore them.
        self._pool = envpool.make(
            "LunarLander-v3",
            env_type="gymnasium",
            num_envs=len(seeds),
            seed=[_envpool_seed(seed) for seed in self._seeds],
            max_episode_steps=self._max_steps,
        )
        return self._pool.reset()[0]

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        result = step_subset(self._pool, np.asarray(slots), np.asarray(actions))
        for row in np.flatnonzero(result.terminated | result.truncated):
            slot, x = int(slots[row]), float(result.observations[row, 0])
            result.rewards[row], result.episode_metrics[slot] = self._final_step(
                slot, x, result.rewards[row], result.terminated[row]
            )
        return result

    def close(self) -> None:
        """See `Simulator`."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _final_step(self, slot: int, x: float, reward: float, terminated: bool) -> tuple[float, dict[str, float]]:
        """The last reward of an episode, including noise, and the episode metrics."""
        noise = self._landing_noise
        landing = noise.landing(x, reward) if terminated else STILL_FLYING
        if landing.noisy:
            reward += noise.noise_scale * noise_stream(self._seeds[slot]).standard_normal()
        return reward, landing_metrics(landing)


def _envpool_seed(seed: int) -> int:
    """A signed 32-bit integer, as EnvPool requires."""
    return int(np.random.SeedSequence(seed).generate_state(1).view(np.int32)[0])
