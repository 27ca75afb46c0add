"""Which simulator an environment's episodes happen in, by the name of an engine."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv

from steadyrl.envs.source import Source
from steadyrl.naming import unknown
from steadyrl.rollout import finite_face
from steadyrl.simulators import envpool_env
from steadyrl.simulators.envpool_env import EnvPoolEnvs
from steadyrl.simulators.fast_faces import fast_face
from steadyrl.simulators.gymnasium_envs import GymnasiumEnvs
from steadyrl.simulators.simulator import Simulator
from steadyrl.simulators.vector_env import VectorEnvs

ENGINES = ("compiled", "gymnasium", "vector", "mujoco", "envpool")
"""Where episodes can come from while an agent learns; "compiled" is the one without a simulator."""


class UnfitEngineError(ValueError):
    """The environment cannot be played in this engine, or not here."""


def checked_engine(engine: str, env: Any, compilable: bool) -> str:
    """The engine's name, with "auto" decided; an error if `env` cannot be played in it, or not by such a method.

    `compilable` if the method can learn inside a compiled program: from a table, and not with PPO.

    "auto" never decides for another package than the environment itself needs: to install one must not change what
    comes out. So EnvPool has to be asked for.
    """
    if engine not in ("auto", *ENGINES):
        raise ValueError(unknown("engine", engine, ["auto", *ENGINES]))
    if env is None:
        return "gymnasium" if engine == "auto" else engine
    if isinstance(env, VectorEnv) or engine == "vector":
        if not isinstance(env, VectorEnv) or engine not in ("auto", "vector"):
            raise UnfitEngineError(
                f"engine={engine!r}: the engine of a VectorEnv is 'vector', and only it can be played there."
            )
        reason = envpool_env.obstacle(env) if envpool_env.is_envpool(env) else None
        if reason is not None:
            raise reason
        return "vector"
    compiled, face = compilable and finite_face(env) is not None, fast_face(env)
    if engine == "compiled" and not compiled:
        what = f"{env} is no finite process known in full"
        what = what if compilable else "only tables are compiled, not networks, and not PPO"
        raise UnfitEngineError(f"engine='compiled': {what}. Use engine='gymnasium'.")
    if engine in ("mujoco", "envpool"):
        if face is None or face.engine != engine:
            raise UnfitEngineError(f"engine={engine!r}: it has no face of {env}. Use engine='gymnasium'.")
        if face.obstacle is not None:
            raise UnfitEngineError(f"{face.obstacle} Or use engine 'gymnasium'.") from face.obstacle
    if engine != "auto":
        return engine
    if compiled:
        return "compiled"
    return "mujoco" if face is not None and face.engine == "mujoco" and face.obstacle is None else "gymnasium"


def simulator_for(engine: str, source: Source, size: int) -> Simulator:
    """A simulator for `size` episodes at once, or as many as the environment has room for."""
    if engine == "vector":
        return EnvPoolEnvs(source.env) if envpool_env.is_envpool(source.env) else VectorEnvs(source.env)
    if engine in ("mujoco", "envpool"):
        face = fast_face(source.env)
        assert face is not None
        return face.make(size)
    return GymnasiumEnvs(source.env, source.another, size)
