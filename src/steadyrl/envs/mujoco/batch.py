"""The fast simulator of MuJoCo tasks: many episodes at once, each with its own `MjData`, stepped by `mujoco.batch`.

`mujoco.rollout` is not used, because it drops the warm start of the constraint solver between calls: tasks with
contacts would drift away from Gymnasium's.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from gymnasium.utils import seeding
from mujoco.batch import Batch

from steadyrl.base.machine import usable_cores
from steadyrl.envs.mujoco.task import State
from steadyrl.envs.reward_noise import noise_stream
from steadyrl.envs.simulator import StepResult

if TYPE_CHECKING:
    from steadyrl.envs.mujoco.environment import MujocoTaskEnv

_NOISE_BLOCK = 512


def unsupported(env: MujocoTaskEnv) -> ValueError | None:
    """The reason why a batch cannot simulate this environment; None if it can."""
    if env.render_mode == "human":
        return ValueError("engine 'mujoco' does not render. Use engine 'gymnasium', or leave out render_mode='human'.")
    return None


class MujocoBatch:
    """Up to `size` episodes of the task and model of `env`, which itself is not changed; see `Simulator`.

    With the same seed and actions, an episode has the same observations, rewards and metrics as in `env`. The number of
    `threads` for the physics, by default the number of cores, does not affect results.
    """

    def __init__(self, env: MujocoTaskEnv, size: int, max_steps: int | None, threads: int | None = None) -> None:
        reason = unsupported(env)
        if reason is not None:
            raise reason
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.size = size
        self.idle_steps = 0
        self._task = env.task
        self._frame_skip, self._seconds = env.frame_skip, env.dt
        self._init = State(env.init_qpos, env.init_qvel)
        self._max_steps = np.inf if max_steps is None else max_steps
        model, threads = _without_unused_contacts(env.model), min(size, threads or usable_cores())
        # Persistent: one `MjData` per episode. Models with sleeping or plugins need it, and it is as fast.
        self._physics = Batch(model, size, threads, persistent=True)
        # Views of MuJoCo's arrays, one row per episode.
        self._qpos, self._qvel = self._physics.bind("qpos"), self._physics.bind("qvel")
        self._ctrl = self._physics.bind("ctrl")
        self._noise: list[np.random.Generator] = []
        self._draws = np.empty((size, 0))
        self._steps = np.zeros(size, int)
        self._noisy_steps = np.zeros(size, int)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        if not 0 < len(seeds) <= self.size:
            raise ValueError(f"{len(seeds)} seeds for a simulator of {self.size} episodes.")
        slots, (nq, nv) = np.arange(len(seeds)), (self._qpos.shape[1], self._qvel.shape[1])
        self._physics.reset(slots, stage=mujoco.mjtStage.mjSTAGE_NONE)
        for slot, seed in enumerate(seeds):
            offset = self._task.initial_offset(nq, nv, seeding.np_random(int(seed))[0])
            self._qpos[slot] = self._init.qpos + offset.qpos
            self._qvel[slot] = self._init.qvel + offset.qvel
        self._physics.forward(slots)
        self._noise = [noise_stream(int(seed)) for seed in seeds]
        self._draws = np.empty((len(seeds), 0))
        self._steps[:] = self._noisy_steps[:] = 0
        return self._task.observe(self._state(slots))

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        slots, actions = np.asarray(slots), np.asarray(actions)
        before = self._state(slots)
        self._ctrl[slots] = actions
        # None steps all episodes, without a lookup.
        self._physics.step(None if len(slots) == self.size else slots, self._frame_skip)
        after = self._state(slots)
        outcome = self._task.outcome(before, actions, after, self._seconds)
        steps = self._steps[slots]
        noise = np.where(outcome.in_noisy_region, outcome.noise_scale * self._noise_draws(slots, steps), 0.0)
        steps += 1
        self._steps[slots] = steps
        self._noisy_steps[slots] += outcome.in_noisy_region
        truncated = steps >= self._max_steps
        done = outcome.terminated | truncated
        return StepResult(
            observations=self._task.observe(after),
            rewards=outcome.rewards + noise,
            terminated=outcome.terminated,
            truncated=truncated,
            episode_metrics=self._metrics(after, slots, done) if np.count_nonzero(done) else {},
        )

    def close(self) -> None:
        """See `Simulator`. The threads end when the last reference to MuJoCo's memory is gone."""

    def _state(self, slots: Any) -> State:
        return State(self._qpos.take(slots, axis=0), self._qvel.take(slots, axis=0))

    def _noise_draws(self, slots: Any, steps: Any) -> Any:
        """[k]: for each of the `slots`, the draw from N(0, 1) of step `steps` [k] of its episode."""
        try:
            return self._draws[slots, steps]
        except IndexError:
            # Drawn in blocks, which gives the same numbers as one draw at a time.
            block = [stream.standard_normal(_NOISE_BLOCK) for stream in self._noise]
            self._draws = np.concatenate([self._draws, block], axis=1)
            return self._draws[slots, steps]

    def _metrics(self, state: State, slots: Any, done: Any) -> dict[int, dict[str, float]]:
        ended = slots[done]
        metrics = self._task.episode_metrics(
            State(*(x[done] for x in state)), self._noisy_steps[ended], self._steps[ended]
        )
        return {int(slot): {name: float(values[k]) for name, values in metrics.items()} for k, slot in enumerate(ended)}


def _without_unused_contacts(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy of the model, without collision detection if no geoms can touch: a quarter less time for the pendulum."""
    model = copy.copy(model)
    may_touch = np.bitwise_and.outer(model.geom_contype, model.geom_conaffinity).any() or model.npair > 0
    if not may_touch:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model
