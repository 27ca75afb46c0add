"""Many episodes of a MuJoCo task side by side, each in an `MjData` of its own, stepped by `mujoco.batch`.

`mujoco.rollout` forgets the constraint solver's last solution between calls, by which tasks with contacts drift from
Gymnasium's.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium.utils import seeding
from mujoco.batch import Batch

from steadyrl.cores import usable_cores
from steadyrl.envs.mujoco_env import MujocoTaskEnv
from steadyrl.envs.mujoco_task import State
from steadyrl.envs.reward_noise import noise_stream
from steadyrl.simulators.simulator import Steps

_NOISE_BLOCK = 512


def obstacle(env: MujocoTaskEnv) -> ValueError | None:
    """Why a batch cannot stand in for this environment, or None."""
    if env.render_mode == "human":
        return ValueError("engine 'mujoco' draws nothing. Use engine 'gymnasium', or leave out render_mode='human'.")
    return None


class MujocoBatch:
    """Up to `size` episodes of the task and model of `env`, which itself is left alone; see `Simulator`.

    An episode has the same observations, rewards and facts as in `env`, from the same seed and actions. `threads` share
    the physics, by default as many as there are cores, and change no number.
    """

    def __init__(self, env: MujocoTaskEnv, size: int, max_steps: int | None, threads: int | None = None) -> None:
        reason = obstacle(env)
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
        model, threads = _without_idle_work(env.model), min(size, threads or usable_cores())
        # Persistent: an `MjData` for each episode. Models that sleep or have plugins need it, and it is as fast.
        self._physics = Batch(model, size, threads, persistent=True)
        # Views of what MuJoCo reads and writes, a row for each episode.
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

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        slots, actions = np.asarray(slots), np.asarray(actions)
        before = self._state(slots)
        self._ctrl[slots] = actions
        # All of them need not be looked up.
        self._physics.step(None if len(slots) == self.size else slots, self._frame_skip)
        after = self._state(slots)
        outcome = self._task.outcome(before, actions, after, self._seconds)
        steps = self._steps[slots]
        noise = np.where(outcome.in_noisy_region, outcome.noise_scale * self._drawn(slots, steps), 0.0)
        steps += 1
        self._steps[slots] = steps
        self._noisy_steps[slots] += outcome.in_noisy_region
        truncated = steps >= self._max_steps
        over = outcome.terminated | truncated
        return Steps(
            observations=self._task.observe(after),
            rewards=outcome.rewards + noise,
            terminated=outcome.terminated,
            truncated=truncated,
            facts=self._facts(after, slots, over) if np.count_nonzero(over) else {},
        )

    def close(self) -> None:
        """See `Simulator`. The threads end with the last reference to MuJoCo's memory."""

    def _state(self, slots: Any) -> State:
        return State(self._qpos.take(slots, axis=0), self._qvel.take(slots, axis=0))

    def _drawn(self, slots: Any, steps: Any) -> Any:
        """The draws from N(0, 1) that belong to the step of each episode after so many `steps` [k]."""
        try:
            return self._draws[slots, steps]
        except IndexError:
            # Drawn in blocks, which gives the numbers that one draw at a time would.
            block = [stream.standard_normal(_NOISE_BLOCK) for stream in self._noise]
            self._draws = np.concatenate([self._draws, block], axis=1)
            return self._draws[slots, steps]

    def _facts(self, state: State, slots: Any, over: Any) -> dict[int, dict[str, float]]:
        ended = slots[over]
        facts = self._task.facts(State(*(x[over] for x in state)), self._noisy_steps[ended], self._steps[ended])
        return {int(slot): {name: float(fact[k]) for name, fact in facts.items()} for k, slot in enumerate(ended)}


def _without_idle_work(model: mujoco.MjModel) -> mujoco.MjModel:
    """The same model, not looking for contacts if its geoms cannot touch: the pendulum's time falls by a quarter."""
    model = copy.copy(model)
    may_touch = np.bitwise_and.outer(model.geom_contype, model.geom_conaffinity).any() or model.npair > 0
    if not may_touch:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model
