"""Small jobs for every engine, ways to interrupt them, and the comparison of what they end with."""

import json

from steadyrl.runs.job import Job
from steadyrl.training.run import Plan
from steadyrl.training.run_folder import is_complete, read_config, resume_files

MAZE = "steadyrl/GuardedMaze-v0"
REPLAY = {
    "hidden": (8,),
    "learning_starts": 40,
    "batch_size": 8,
    "train_freq": 6,
    "gradient_steps": 3,
    "buffer_size": 90,
}
# Constant, so that a run that is extended has the bits of one that had the budget from the start.
EPISODIC = {"hidden": (8,), "episodes_per_update": 25, "learning_rate_schedule": "constant"}
CASES = {
    # One of each engine ...
    "compiled": (MAZE, "mg", {}, "compiled"),
    "gymnasium": ("CartPole-v1", "mg", EPISODIC, "gymnasium"),
    "mujoco": ("steadyrl/InvertedPendulum-v0", "ppo", EPISODIC, "mujoco"),
    "envpool": ("steadyrl/LunarLander-v0", "mg", {**EPISODIC, "max_episode_steps": 1000}, "envpool"),
    "dqn": ("CartPole-v1", "dqn", REPLAY, "gymnasium"),
    "td3": ("steadyrl/InvertedPendulum-v0", "td3", REPLAY, "gymnasium"),
    "jax": ("jax_worlds:Counter", "mg", {**EPISODIC, "mean": "ppo", "inner_updates": 2}, "jax"),
    # ... and those whose learner holds more than parameters and optimizers.
    "tamar": ("CartPole-v1", "tamar", {"hidden": (8,)}, "gymnasium"),
    "mvp": ("CartPole-v1", "mvp", {"hidden": (8,)}, "gymnasium"),
    "mvpi compiled": (MAZE, "mvpi", {}, "compiled"),
    "mvpi on dqn": ("CartPole-v1", "mvpi", {**REPLAY, "episodes_per_iteration": 3}, "gymnasium"),
    "ppo, normalized, minibatches": (
        "CartPole-v1",
        "ppo",
        {**EPISODIC, "normalise_observations": True, "minibatch_size": 64},
        "gymnasium",
    ),
    "gru": ("CartPole-v1", "mg", {**EPISODIC, "network": "gru", "inner_updates": 2}, "gymnasium"),
    # Here lambda depends on the number of the round.
    "dial": (
        "CartPole-v1",
        "mg",
        {"hidden": (8,), "risk_aversion": (0, 3), "learning_rate_schedule": "constant"},
        "gymnasium",
    ),
}
CLOCKS = ("time", "seconds_collecting", "seconds_updating")


class Killed(BaseException):
    """As good as `kill -9` for what is on disk: nothing catches it."""


def make_job(case, folder, seeds=None, **plan):
    """A job of a case, with records, evaluations and a checkpoint after every record; `plan` changes its plan."""
    env, agent, settings, engine = CASES[case]
    # Three records at least.
    episodes = 14 if "buffer_size" in settings else 2500 if engine in ("compiled", "jax") else 180
    defaults = {
        "budget": {"episodes": episodes},
        # A policy for a range of lambdas is evaluated once one of them is chosen.
        "evaluations": None if "risk_aversion" in settings else {"every": episodes // 3, "episodes": 2},
        "episodes_per_record": episodes // 5,
        "checkpoint_seconds": 0,
    }
    return Job.cell(
        env=env,
        agent=agent,
        settings=settings,
        seeds=seeds or ((5, 7) if engine in ("compiled", "jax") else (5,)),
        folder=folder,
        title=case,
        plan=Plan(**{**defaults, **plan}),
        engine=engine,
    )


def raising_at(call, error):
    """For `run_job`: a listener that raises an error at that call, when the metrics are already written."""
    calls = []

    def listener(agents, records):
        calls.append(1)
        if len(calls) == call:
            raise error

    return lambda agents, runs: [listener]


def without_clocks(path):
    """The records of a file, without what clocks measured."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in record.items() if name not in CLOCKS} for record in records]


def assert_same_runs(one, other):
    """Two jobs are complete and have the same results, bit for bit."""
    for a, b in zip(one.folders, other.folders, strict=True):
        assert is_complete(a)
        assert (a / "checkpoint.steady").read_bytes() == (b / "checkpoint.steady").read_bytes()
        files = ["metrics.jsonl", *(["evaluations.jsonl"] if other.plan.evaluations else [])]
        for file in files:
            assert without_clocks(a / file) == without_clocks(b / file)
            assert len(without_clocks(a / file)) > 2
        assert not resume_files(a)
        assert read_config(a).keys() == read_config(b).keys()
