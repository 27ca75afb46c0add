"""A `MujocoTask` as a Gymnasium environment."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from steadyrl.envs.mujoco_task import MujocoTask, State
from steadyrl.envs.reward_noise import noise_stream
from steadyrl.simulators.fast_faces import FastFace

try:
    import mujoco
    from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
except (gym.error.DependencyNotInstalled, ModuleNotFoundError):
    raise gym.error.DependencyNotInstalled(
        "steadyrl's MuJoCo environments need MuJoCo: pip install 'steadyrl[mujoco]'"
    ) from None


class MujocoTaskEnv(MujocoEnv, EzPickle):
    """One episode of a task, simulated as Gymnasium's MuJoCo environments are.

    The reward noise has a stream of its own, one draw a step whether it is used or not: the noise of step t depends on
    the seed and t alone. `info` says of each step whether it ended `in_noisy_region`, and `info["facts"]` what the task
    says of the episode so far.
    """

    TASK: ClassVar[type[Any]]
    """The dataclass whose fields are the task's options."""
    OPTIONS: ClassVar[dict[str, Any]] = {}
    """What options are if they are not given, where that is not their own default."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (as Gymnasium has it)
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]
    }

    def __init__(self, xml_file: str, frame_skip: int, **options: Any) -> None:
        EzPickle.__init__(self, xml_file=xml_file, frame_skip=frame_skip, **options)
        options = {**self.OPTIONS, **options}
        names = {field.name for field in fields(self.TASK)}
        self.task: MujocoTask = self.TASK(**{name: options[name] for name in names & options.keys()})
        super().__init__(
            xml_file,
            frame_skip,
            observation_space=None,
            **{name: options[name] for name in options.keys() - names},
        )
        seen = self.task.observe(self._state())[0]
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, seen.shape, seen.dtype)
        self.metadata = {**self.metadata, "render_fps": round(1 / self.dt)}
        self._noise = noise_stream(None)
        self._steps = self._noisy_steps = 0

    def _initialize_simulation(self) -> tuple[Any, Any]:
        """The model and its state. MuJoCo's complaints become Python's, for it logs them to the working directory."""
        complaints: list[str] = []
        listener = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(complaints.append)
        try:
            model, data = super()._initialize_simulation()
        finally:
            mujoco.set_mju_user_warning(listener)
        for complaint in complaints:
            if "'settotalmass' is deprecated" not in complaint:  # Of Gymnasium's half cheetah.
                warnings.warn(f"{self.fullpath}: {complaint}", stacklevel=2)
        return model, data

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """A new episode; `options` are not used."""
        observation, _ = super().reset(seed=seed, options=options)
        self._noise = noise_stream(seed, self.np_random)
        self._steps = self._noisy_steps = 0
        return observation, {}

    def reset_model(self) -> NDArray[Any]:
        """The start of an episode, as the task draws it; called by `reset`."""
        offset = self.task.initial_offset(self.model.nq, self.model.nv, self.np_random)
        self.set_state(self.init_qpos + offset.qpos, self.init_qvel + offset.qvel)  # type: ignore[no-untyped-call]
        return self._seen(self._state())

    def step(  # type: ignore[override]  # Gymnasium's says that every info is a number.
        self, action: Any
    ) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """One step of the model and of the task; the time limit is `gymnasium.make`'s."""
        before = self._state()
        self.do_simulation(action, self.frame_skip)
        after = self._state()
        outcome = self.task.outcome(before, np.asarray(action)[None], after, self.dt)
        noisy = bool(outcome.in_noisy_region[0])
        self._steps += 1
        self._noisy_steps += noisy
        draw = self._noise.standard_normal()
        noise = float(np.ravel(outcome.noise_scale)[0]) * draw if noisy else 0.0
        facts = self.task.facts(after, np.array([self._noisy_steps]), np.array([self._steps]))
        info = {"in_noisy_region": noisy, "facts": {name: float(fact[0]) for name, fact in facts.items()}}
        if self.render_mode == "human":
            self.render()  # type: ignore[no-untyped-call]
        return self._seen(after), float(outcome.rewards[0]) + noise, bool(outcome.terminated[0]), False, info

    def fast_face(self, max_steps: int | None) -> FastFace | None:
        """One `MjData` for each episode, side by side; None for a subclass that steps or resets in its own way."""
        own = type(self)
        same = all(getattr(own, name) is getattr(MujocoTaskEnv, name) for name in _STEPPING)
        if not same:
            return None
        from steadyrl.simulators.mujoco_batch import MujocoBatch, obstacle

        return FastFace("mujoco", lambda size: MujocoBatch(self, size, max_steps), obstacle(self))

    def _state(self) -> State:
        return State(self.data.qpos[None].copy(), self.data.qvel[None].copy())

    def _seen(self, state: State) -> NDArray[Any]:
        seen: NDArray[Any] = self.task.observe(state)[0]
        return seen


_STEPPING = ("step", "reset", "reset_model", "set_state", "do_simulation", "_step_mujoco_simulation")
