"""Short trainings end as they did when `golden.json` was recorded.

For every array of the trained learner the file has its L2 norm and its mean. To record it with other code, for example
with an older commit that was unpacked to /tmp/old:

    PYTHONPATH=/tmp/old/src:tests/support python tests/agents/test_golden.py "commit abc1234"

The tolerance is that of another number of cores, compiler or CPU, which change the order of sums. A difference of one
rounding may also change a sampled action, and all that follows: if a case fails on one machine alone, look there first.
"""

import inspect
import json
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from paper_settings import NETWORK, PPO, RISK_AVERSION, TABLE
from toy_envs import BOX, NUMBERS, walk
from wager import Wager

import steadyrl

GOLDEN = Path(__file__).with_name("golden.json")
MAZE, PENDULUM = "steadyrl/GuardedMaze-v0", "steadyrl/InvertedPendulum-v0"
TOLERANCE = 2e-4

RISK = {"risk_aversion": RISK_AVERSION}
SMALL, WAGER = ({"hidden": (8,), "episodes_per_update": n} for n in (25, 50))
REPLAY = {"hidden": (8,), "gamma": 0.9, "learning_rate": 0.01, "batch_size": 4, "buffer_size": 20}
REPLAY |= {"learning_starts": 6, "train_freq": 3}
ITERATIONS = {"risk_aversion": 0.5, "initial_dual": 0.3, "episodes_per_iteration": 8}

# Case -> agent, environment, settings, episodes. Settings are named as in all versions that have them.
CASES = {
    "compiled/mg": (steadyrl.MeanGini, MAZE, {**TABLE, **RISK}, 500),
    "compiled/tamar": (steadyrl.Tamar, MAZE, {"risk_aversion": 1e-5, "gamma": 0.999}, 200),
    "compiled/mvpi": (steadyrl.MVPI, MAZE, {"episodes_per_iteration": 100, "initial_dual": -0.5, "gamma": 0.999}, 200),
    "table/mg": (steadyrl.MeanGini, MAZE, {**TABLE, **RISK, "engine": "gymnasium"}, 100),
    "gymnasium/mg": (steadyrl.MeanGini, "CartPole-v1", {**NETWORK, **RISK, **SMALL}, 50),
    "gymnasium/tamar": (
        steadyrl.Tamar,
        "CartPole-v1",
        {**SMALL, "normalise_observations": True, "risk_aversion": 1e-4, "gamma": 0.999, "initial_output_scale": 1.0},
        100,
    ),
    "gymnasium/ppo": (steadyrl.PPO, "CartPole-v1", {**PPO, **SMALL}, 50),
    "gymnasium/ppo in minibatches": (steadyrl.PPO, "CartPole-v1", {**PPO, **SMALL, "minibatch_size": 64}, 50),
    "gymnasium/mg with ppo": (
        steadyrl.MeanGini,
        Wager,
        {**PPO, "mean": "ppo", "credit": "trajectory", "risk_aversion": 2.0, "inner_updates": 3, **WAGER},
        200,
    ),
    "mujoco/mg": (steadyrl.MeanGini, PENDULUM, {**NETWORK, **RISK, **SMALL, "seed": 1}, 50),
    "replay/dqn": (steadyrl.DQN, partial(walk, NUMBERS), {**REPLAY, "target_update_interval": 5}, 30),
    "replay/td3": (steadyrl.TD3, partial(walk, BOX), REPLAY, 30),
    "replay/mvpi": (
        steadyrl.MVPI,
        partial(walk, NUMBERS),
        {**REPLAY, **ITERATIONS, "target_update_interval": 5, "exploration_steps": 40},
        30,
    ),
}


def trained(case, known_only=False):
    kind, env, settings, episodes = CASES[case]
    if known_only:  # Older code lacks some settings, and does what they say here.
        settings = {name: value for name, value in settings.items() if name in inspect.signature(kind).parameters}
    return kind(env, **{"seed": 3, **settings}).learn(total_episodes=episodes, progress_bar=False)


def summary(agent):
    """Name of each array -> its L2 norm and mean; also its size, and the steps that were taken."""
    arrays = {}
    for path, x in jax.tree.leaves_with_path(agent.learner):
        x = np.asarray(x, np.float64)
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        arrays[name] = {"size": x.size, "norm": float(np.linalg.norm(x)), "mean": float(x.mean())}
    return {"engine": agent.engine, "timesteps": agent.timesteps, "arrays": arrays}


@pytest.mark.parametrize("case", CASES)
def test_training_ends_as_recorded(case):
    expected, found = json.loads(GOLDEN.read_text())["cases"][case], summary(trained(case))
    assert (found["engine"], found["timesteps"]) == (expected["engine"], expected["timesteps"])
    assert found["arrays"].keys() == expected["arrays"].keys()
    for name, array in expected["arrays"].items():
        other = found["arrays"][name]
        assert other["size"] == array["size"], name
        assert other["norm"] == pytest.approx(array["norm"], rel=TOLERANCE, abs=1e-7), name
        # A mean may be near 0: it is compared in units of the root mean square.
        rms = array["norm"] / array["size"] ** 0.5
        assert other["mean"] == pytest.approx(array["mean"], abs=TOLERANCE * rms + 1e-7), name


def test_all_cases_are_recorded_and_differ():
    recorded = json.loads(GOLDEN.read_text())["cases"]
    assert recorded.keys() == CASES.keys()
    assert len({json.dumps(one["arrays"]) for one in recorded.values()}) == len(CASES)


def record(code):
    """Write the file."""
    import datetime
    import importlib.metadata as metadata
    import platform

    packages = ("jax", "jaxlib", "numpy", "optax", "gymnasium", "mujoco")
    versions = {name: metadata.version(name) for name in packages} | {"python": platform.python_version()}
    recorded = {"code": code, "date": str(datetime.date.today()), "versions": versions}
    recorded["command"] = 'PYTHONPATH=<code>/src:tests/support python tests/agents/test_golden.py "<code>"'
    cases = {case: summary(trained(case, known_only=True)) for case in CASES}
    print(f"recorded with {steadyrl.__file__}")
    GOLDEN.write_text(json.dumps({"recorded": recorded, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    record(sys.argv[1])
