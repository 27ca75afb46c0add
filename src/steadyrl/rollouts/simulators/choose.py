"""The choice of an engine, and of the simulator that belongs to it."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv

from steadyrl.base.names import unknown
from steadyrl.envs.envpool import is_envpool, unsupported_pool
from steadyrl.envs.fast_simulator import fast_simulator
from steadyrl.envs.finite import finite_model
from steadyrl.envs.jax_env import jax_model
from steadyrl.envs.jax_simulator import JaxSimulator
from steadyrl.envs.simulator import Simulator
from steadyrl.envs.source import Source
from steadyrl.rollouts.simulators.envpool import EnvPoolSimulator
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator
from steadyrl.rollouts.simulators.vector import VectorEnvSimulator

ENGINES = ("compiled", "jax", "gymnasium", "vector", "mujoco", "envpool")
"""The engines that training episodes can come from; "compiled" has no simulator."""
IN_PROGRAMS = ("compiled", "jax")
"""The engines that play and learn inside one compiled program."""


class UnsupportedEngineError(ValueError):
    """The engine does not support the environment, or is not installed."""


def checked_engine(engine: str, env: Any, compilable: bool, acts_in_jax: bool = False) -> str:
    """The name of the engine, with "auto" resolved; an error if it does not support `env` or the method.

    `compilable` says whether the method can be trained inside a compiled program of a finite MDP: tables can, except
    with PPO. `acts_in_jax` says the same of programs of JAX environments: policy gradients can, unless recurrent.

    "auto" never chooses an engine that needs an optional package which the environment itself does not need, because
    installing a package must not change results. So EnvPool has to be requested.
    """
    if engine not in ("auto", *ENGINES):
        raise ValueError(unknown("engine", engine, ["auto", *ENGINES]))
    if env is None:
        return "gymnasium" if engine == "auto" else engine
    if isinstance(env, VectorEnv) or engine == "vector":
        if not isinstance(env, VectorEnv) or engine not in ("auto", "vector"):
            raise UnsupportedEngineError(
                f"engine={engine!r}: the engine of a VectorEnv is 'vector', which supports nothing else."
            )
        reason = unsupported_pool(env) if is_envpool(env) else None
        if reason is not None:
            raise reason
        return "vector"
    compiled, fast = compilable and finite_model(env) is not None, fast_simulator(env)
    if engine == "compiled" and not compiled:
        problem = f"{env} is not a finite MDP that is known in full"
        problem = problem if compilable else "only tables are compiled, not networks, and not PPO"
        raise UnsupportedEngineError(f"engine='compiled': {problem}. Use engine='gymnasium'.")
    in_jax = acts_in_jax and jax_model(env) is not None
    if engine == "jax" and not in_jax:
        problem = f"{env} is not a JAX environment, or is wrapped"
        which = "only policy gradients, and without network='gru', are compiled together with a JAX environment"
        problem = problem if acts_in_jax else which
        raise UnsupportedEngineError(f"engine='jax': {problem}. Use engine='gymnasium'.")
    if engine in ("mujoco", "envpool"):
        if fast is None or fast.engine != engine:
            raise UnsupportedEngineError(f"engine={engine!r}: it has no simulator of {env}. Use engine='gymnasium'.")
        if fast.unsupported is not None:
            raise UnsupportedEngineError(f"{fast.unsupported} Or use engine 'gymnasium'.") from fast.unsupported
    if engine != "auto":
        return engine
    if compiled or in_jax:
        return "compiled" if compiled else "jax"
    return "mujoco" if fast is not None and fast.engine == "mujoco" and fast.unsupported is None else "gymnasium"


def simulator_for(engine: str, source: Source, size: int) -> Simulator:
    """A simulator for `size` episodes at once; the size of a vector environment is its own."""
    if engine == "vector":
        return EnvPoolSimulator(source.env) if is_envpool(source.env) else VectorEnvSimulator(source.env)
    if engine in ("mujoco", "envpool"):
        fast = fast_simulator(source.env)
        assert fast is not None
        return fast.make(size)
    if engine == "jax":
        model = jax_model(source.env)
        assert model is not None
        return JaxSimulator(model, size)
    return GymnasiumSimulator(source.env, source.another, size)
