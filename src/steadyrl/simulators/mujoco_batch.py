"""Many episodes of a MuJoCo task side by side, each in an `MjData` of its own.

`mujoco.rollout` would be no faster (the time goes into the physics either way), and it forgets the constraint solver's
last solution between calls, by which some tasks drift from Gymnasium's.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
from gymnasium.utils import seeding

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
    the physics, which pays where a step of the model is slow, and changes no number.
    """

    def __init__(self, env: MujocoTaskEnv, size: int, max_steps: int | None, threads: int = 1) -> None:
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
        self._model = _without_idle_work(env.model)
        self._data = [mujoco.MjData(self._model) for _ in range(size)]
        # Views into MuJoCo's memory: asking an MjData for them at each step would take longer than using them.
        self._qpos = [data.qpos for data in self._data]
        self._qvel = [data.qvel for data in self._data]
        self._ctrl = [data.ctrl for data in self._data]
        self._threads = threads
        self._others = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self._noise: list[np.random.Generator] = []
        self._draws = np.empty((size, 0))
        self._state = State(np.empty((size, 0)), np.empty((size, 0)))
        self._steps = np.zeros(size, int)
        self._noisy_steps = np.zeros(size, int)

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`."""
        if not 0 < len(seeds) <= self.size:
            raise ValueError(f"{len(seeds)} seeds for a simulator of {self.size} episodes.")
        model = self._model
        for data, seed in zip(self._data, seeds, strict=False):
            offset = self._task.initial_offset(model.nq, model.nv, seeding.np_random(int(seed))[0])
            mujoco.mj_resetData(model, data)
            data.qpos[:] = self._init.qpos + offset.qpos
            data.qvel[:] = self._init.qvel + offset.qvel
            mujoco.mj_forward(model, data)
        self._noise = [noise_stream(int(seed)) for seed in seeds]
        self._draws = np.empty((len(seeds), 0))
        self._steps[:] = self._noisy_steps[:] = 0
        self._state = self._gather(range(len(seeds)))
        return self._task.observe(self._state)

    def step(self, slots: Any, actions: Any) -> Steps:
        """See `Simulator`."""
        slots, actions = np.asarray(slots), np.asarray(actions)
        chosen = slots.tolist()
        for slot, control in zip(chosen, actions.astype(np.float64), strict=True):
            self._ctrl[slot][:] = control
        self._simulate(chosen)
        before, after = State(*(x[slots] for x in self._state)), self._gather(chosen)
        for stored, new in zip(self._state, after, strict=True):
            stored[slots] = new
        outcome = self._task.outcome(before, actions, after, self._seconds)
        noise = np.where(outcome.in_noisy_region, outcome.noise_scale * self._drawn(slots), 0.0)
        self._steps[slots] += 1
        self._noisy_steps[slots] += outcome.in_noisy_region
        truncated = self._steps[slots] >= self._max_steps
        return Steps(
            observations=self._task.observe(after),
            rewards=outcome.rewards + noise,
            terminated=outcome.terminated,
            truncated=truncated,
            facts=self._facts(after, slots, np.flatnonzero(outcome.terminated | truncated)),
        )

    def close(self) -> None:
        """See `Simulator`."""
        if self._others is not None:
            self._others.shutdown()

    def _simulate(self, chosen: list[int]) -> None:
        if self._others is None:
            self._simulate_some(chosen)
            return
        others = [self._others.submit(self._simulate_some, chosen[k :: self._threads]) for k in range(1, self._threads)]
        self._simulate_some(chosen[:: self._threads])
        for other in others:
            other.result()

    def _simulate_some(self, chosen: list[int]) -> None:
        model, data, frame_skip = self._model, self._data, self._frame_skip
        for slot in chosen:
            mujoco.mj_step(model, data[slot], frame_skip)

    def _gather(self, chosen: Sequence[int]) -> State:
        k = len(chosen)
        qpos = np.concatenate([self._qpos[slot] for slot in chosen]).reshape(k, -1)
        qvel = np.concatenate([self._qvel[slot] for slot in chosen]).reshape(k, -1)
        return State(qpos, qvel)

    def _drawn(self, slots: Any) -> Any:
        """The draws from N(0, 1) that belong to the coming step of each episode."""
        if self._steps.max() >= self._draws.shape[1]:
            # Drawn in blocks, which gives the numbers that one draw at a time would.
            block = [stream.standard_normal(_NOISE_BLOCK) for stream in self._noise]
            self._draws = np.concatenate([self._draws, block], axis=1)
        return self._draws[slots, self._steps[slots]]

    def _facts(self, state: State, slots: Any, ended: Any) -> dict[int, dict[str, float]]:
        if not len(ended):
            return {}
        over = slots[ended]
        facts = self._task.facts(State(*(x[ended] for x in state)), self._noisy_steps[over], self._steps[over])
        return {int(slot): {name: float(fact[k]) for name, fact in facts.items()} for k, slot in enumerate(over)}


def _without_idle_work(model: mujoco.MjModel) -> mujoco.MjModel:
    """The same model, not looking for contacts if its geoms cannot touch: the pendulum's time falls by a quarter."""
    model = copy.copy(model)
    may_touch = np.bitwise_and.outer(model.geom_contype, model.geom_conaffinity).any() or model.npair > 0
    if not may_touch:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model
