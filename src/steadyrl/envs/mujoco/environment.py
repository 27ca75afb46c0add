"""A `MujocoTask` as a Gymnasium environment."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from steadyrl.envs.episode_metrics import metrics_info
from steadyrl.envs.fast_simulator import FastSimulator
from steadyrl.envs.mujoco.task import MujocoTask, State
from steadyrl.envs.reward_noise import noise_info, noise_stream

try:
    import mujoco
    from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
except (gym.error.DependencyNotInstalled, ModuleNotFoundError):
    raise gym.error.DependencyNotInstalled(
        "steadyrl's MuJoCo environments need MuJoCo: pip install 'steadyrl[mujoco]'"
    ) from None


class MujocoTaskEnv(MujocoEnv, EzPickle):
    """A task as a Gymnasium environment, simulated in the same way as Gymnasium's MuJoCo environments.

    The reward noise has a separate random stream with one draw per step, whether it is used or not, so the noise of
    step t depends only on the seed and t. `info["in_noisy_region"]` reports whether the step ended in the noisy region,
    `info["reward_noise"]` the noise in its reward if it did, and `info["episode_metrics"]` holds the task's metrics of
    the episode so far.
    """

    TASK: ClassVar[type[Any]]
    """The dataclass whose fields are the options of the task."""
    OPTIONS: ClassVar[dict[str, Any]] = {}
    """Defaults that replace those of `TASK` and of Gymnasium's `MujocoEnv`."""

    CAMERA: ClassVar[str | None] = None
    """The camera of the model that draws arrays, if no other is given."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (as in Gymnasium)
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]
    }

    def __init__(self, xml_file: str, frame_skip: int, **options: Any) -> None:
        EzPickle.__init__(self, xml_file=xml_file, frame_skip=frame_skip, **options)
        following = {} if options.get("camera_id") is not None else {"camera_name": self.CAMERA}
        options = {**following, **self.OPTIONS, **options}
        names = {field.name for field in fields(self.TASK)}
        self.task: MujocoTask = self.TASK(**{name: options[name] for name in names & options.keys()})
        super().__init__(
            xml_file,
            frame_skip,
            observation_space=None,
            **{name: options[name] for name in options.keys() - names},
        )
        observation = self._observe(self._state())
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, observation.shape, observation.dtype)
        self.metadata = {**self.metadata, "render_fps": round(1 / self.dt)}
        self._noise = noise_stream(None)
        self._steps = self._noisy_steps = 0

    def _initialize_simulation(self) -> tuple[Any, Any]:
        """The model and its state. MuJoCo would write warnings to a log file; here they become Python warnings."""
        messages: list[str] = []
        handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(messages.append)
        try:
            model, data = super()._initialize_simulation()
        finally:
            mujoco.set_mju_user_warning(handler)
        for message in messages:
            if "'settotalmass' is deprecated" not in message:  # In Gymnasium's half cheetah.
                warnings.warn(f"{self.fullpath}: {message}", stacklevel=2)
        return model, data

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start a new episode; `options` is ignored."""
        observation, _ = super().reset(seed=seed, options=options)
        self._noise = noise_stream(seed, self.np_random)
        self._steps = self._noisy_steps = 0
        return observation, {}

    def reset_model(self) -> NDArray[Any]:
        """Draw the initial state of an episode; called by `reset`."""
        offset = self.task.initial_offset(self.model.nq, self.model.nv, self.np_random)
        self.set_state(self.init_qpos + offset.qpos, self.init_qvel + offset.qvel)  # type: ignore[no-untyped-call]
        return self._observe(self._state())

    def step(  # type: ignore[override]  # Gymnasium declares infos as numbers.
        self, action: Any
    ) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take one step; the time limit is that of `gymnasium.make`."""
        before = self._state()
        self.do_simulation(action, self.frame_skip)
        after = self._state()
        outcome = self.task.outcome(before, np.asarray(action)[None], after, self.dt)
        noisy = bool(outcome.in_noisy_region[0])
        self._steps += 1
        self._noisy_steps += noisy
        draw = self._noise.standard_normal()
        noise = float(np.ravel(outcome.noise_scale)[0]) * draw if noisy else 0.0
        metrics = self.task.episode_metrics(after, np.array([self._noisy_steps]), np.array([self._steps]))
        info = {
            "in_noisy_region": noisy,
            **noise_info(noise if noisy else None),
            **metrics_info({name: float(values[0]) for name, values in metrics.items()}),
        }
        if self.render_mode == "human":
            self.render()  # type: ignore[no-untyped-call]
        return self._observe(after), float(outcome.rewards[0]) + noise, bool(outcome.terminated[0]), False, info

    def fast_simulator(self, max_steps: int | None) -> FastSimulator | None:
        """A `MujocoBatch`; None for a subclass that overrides how episodes are stepped or reset."""
        cls = type(self)
        if any(getattr(cls, name) is not getattr(MujocoTaskEnv, name) for name in _STEPPING):
            return None
        from steadyrl.envs.mujoco.batch import MujocoBatch, unsupported

        return FastSimulator("mujoco", lambda size: MujocoBatch(self, size, max_steps), unsupported(self))

    def _state(self) -> State:
        return State(self.data.qpos[None].copy(), self.data.qvel[None].copy())

    def _observe(self, state: State) -> NDArray[Any]:
        observation: NDArray[Any] = self.task.observe(state)[0]
        return observation


_STEPPING = ("step", "reset", "reset_model", "set_state", "do_simulation", "_step_mujoco_simulation")
"""The methods that a batch replaces."""
