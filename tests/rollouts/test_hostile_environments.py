"""Environments that raise or return anything: always the same error, which names environment, step and episode."""

import re
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hostile_envs import RUNS, SPACES, Hostile, run_vector
from hypothesis import given
from hypothesis import strategies as st

from steadyrl import DQN, Reinforce
from steadyrl.rollouts.collector import FaultyEnvironmentError

every_run = pytest.mark.parametrize("run", RUNS)


def replaced(index, value):
    """Puts `value` in place of one of the values that are returned."""
    return lambda result: (*result[:index], value, *result[index + 1 :])


def at_the_end(metrics):
    return lambda result: (*result[:4], metrics)


class Fatal(BaseException):
    """Of no usual kind."""


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def raising(error):
    def call(result):
        raise error

    return call


@every_run
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (SystemExit(), "SystemExit"),
        (GeneratorExit(), "GeneratorExit"),
        (Fatal("over"), "Fatal: over"),
        (StopIteration(3), "StopIteration: 3"),
        (MemoryError(), "MemoryError"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (MuteError(), "MuteError"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, BaseException) else "",
)
def test_whatever_is_raised(run, error, text):
    episode = r"one of the episodes 40 to 40" if run == "vector" else r"episode 40 \(seed 7\)"
    with pytest.raises(FaultyEnvironmentError, match=rf"^Toy: step raised {text} at step 1 of {episode}\. Fix") as got:
        RUNS[run](Hostile(step_with=raising(error)))
    assert got.value.__cause__ is error
    with pytest.raises(FaultyEnvironmentError, match=rf"^Toy: reset raised {text} at step 0 of {episode}\. Fix"):
        RUNS[run](Hostile(reset_with=raising(error)))


@every_run
def test_ctrl_c_passes(run):
    for env in (Hostile(step_with=raising(KeyboardInterrupt())), Hostile(reset_with=raising(KeyboardInterrupt()))):
        with pytest.raises(KeyboardInterrupt):
            RUNS[run](env)


JUNK_STEPS = {
    "info None": (replaced(4, None), "info None that is not a dictionary"),
    "info text": (replaced(4, "fine"), "info 'fine' that is not a dictionary"),
    "info list": (replaced(4, [1]), r"info \[1\] that is not a dictionary"),
    "metrics list": (at_the_end({"episode_metrics": [1]}), r'info\["episode_metrics"\] of type list that does not map'),
    "metrics None": (at_the_end({"episode_metrics": None}), r'info\["episode_metrics"\] of type NoneType'),
    "facts None": (at_the_end({"facts": None}), r'info\["facts"\] of type NoneType'),
    "metric text": (at_the_end({"facts": {"a": "x"}}), "episode metric 'a': 'x' that is not a number"),
    "metric None": (at_the_end({"facts": {"a": None}}), "episode metric 'a': None that is not a number"),
    "metric name": (at_the_end({"facts": {1: 1.0}}), r'info\["facts"\] of type dict that does not map names'),
    "huge reward": (replaced(1, 10**400), "reward 1000.* that is too large for a float"),
    "very huge reward": (replaced(1, 10**5000), "reward <int> that is too large for a float"),
    "reward text": (replaced(1, "1.5"), "reward '1.5' that is not a number"),
    "reward None": (replaced(1, None), "reward None that is not a number"),
    "reward array": (replaced(1, np.zeros(2)), r"reward array\(\[0., 0.\]\) that is not a number"),
    "reward empty": (replaced(1, np.zeros(0)), r"reward array\(\[\].* that is not a number"),
    "reward complex": (replaced(1, np.complex128(1)), "reward .* that is not a number"),
    "terminated text": (replaced(2, "no"), "terminated 'no' that is not True or False"),
    "truncated None": (replaced(3, None), "truncated None that is not True or False"),
    "four values": (
        lambda result: result[:4],
        r"step returned 4 values instead of \(observation, reward, .*Return these 5",
    ),
    "one value": (lambda result: None, r"step returned None instead of \(observation, reward"),
    "observation None": (replaced(0, None), "observation .* that is not in Box"),
    "observation text": (replaced(0, ["a", "b"]), r"observation \['a', 'b'\] that is not in Box"),
    "observation ragged": (replaced(0, [[1], [1, 2]]), r"observation \[\[1\], \[1, 2\]\] that is not in Box"),
}


@pytest.mark.parametrize("run", ["gymnasium", "single"])
@pytest.mark.parametrize("what", JUNK_STEPS)
def test_junk_from_step(what, run):
    step_with, message = JUNK_STEPS[what]
    where = r"at step \d of episode 40 \(seed 7\)\."
    with pytest.raises(FaultyEnvironmentError, match=f"^Toy: {message}") as error:
        RUNS[run](Hostile(step_with=step_with))
    assert re.search(where, str(error.value))
    assert "\n" not in str(error.value)


CONVERTED = ("reward text", "terminated text", "truncated None", "reward complex", "metric None", "observation None")
"""What `SyncVectorEnv` itself turns into numbers."""


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("what", [what for what in JUNK_STEPS if what not in CONVERTED])
def test_junk_inside_a_vector_environment(what, mode):
    with pytest.raises(FaultyEnvironmentError, match=r"^Toy: .* at step"):
        run_vector(Hostile(step_with=JUNK_STEPS[what][0]), mode)


@pytest.mark.parametrize("run", ["gymnasium", "single"])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "reset returned None instead of"),
        (np.zeros(2, np.float32), r"reset returned array\(\[0., 0.\].* instead of \(observation, info\)"),
        ((np.zeros(2, np.float32),), "reset returned 1 values instead of"),
        ((np.zeros(2, np.float32), None), "info None that is not a dictionary"),
        ((None, {}), "observation"),
        ({"a": 1, "b": 2}, "reset returned {'a': 1, 'b': 2} instead of"),
    ],
)
def test_junk_from_reset(result, message, run):
    with pytest.raises(FaultyEnvironmentError, match=rf"^Toy: {message}.* at step 0 of episode 40 \(seed 7\)\."):
        RUNS[run](Hostile(reset_with=lambda _: result))


@pytest.mark.parametrize("run", ["gymnasium", "single"])
@pytest.mark.parametrize(
    ("observation", "message"), [([0], r"of shape \(1,\) that"), (None, "None that"), ("a", "'a' that")]
)
def test_states_that_are_no_numbers(observation, message, run):
    with pytest.raises(FaultyEnvironmentError, match=rf"^Toy: observation {message} is not in Discrete\(3\) at step 0"):
        RUNS[run](Hostile(replaced(0, observation), kind="discrete"))


def test_one_number_in_an_array_is_a_reward():
    for reward in (np.array([2.0]), np.float32(2), np.array(2), 2, True + True):
        assert RUNS["gymnasium"](Hostile(step_with=replaced(1, reward))).rewards.tolist() == [[2.0] * 3]


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")

    def __float__(self):
        raise Fatal("no number")

    def __bool__(self):
        raise SystemExit(1)

    def __deepcopy__(self, memo):
        raise GeneratorExit


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([10**400, 1j, np.float32(1), np.int64(-5), object(), int, iter(()), np.ma.masked]),
    st.builds(Unprintable),
    st.sampled_from([np.zeros(2, np.float32), np.zeros((2, 1)), np.array("x"), np.array([None]), np.float64("nan")]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=5).map(tuple),
        st.dictionaries(st.sampled_from(["a", "b", "facts", "episode_metrics", 3]), inner, max_size=3),
    ),
    max_leaves=8,
)
CHANGES = st.one_of(
    ANYTHING.map(lambda value: lambda result: value),
    st.builds(lambda index, value: replaced(index % 5, value), st.integers(0, 4), ANYTHING),
    ANYTHING.map(lambda value: at_the_end({"episode_metrics": value})),
)
RESET_CHANGES = st.one_of(
    st.none(),
    ANYTHING.map(lambda value: lambda result: value),
    st.builds(replaced, st.integers(0, 1), ANYTHING),
)


@pytest.mark.filterwarnings("ignore")
@every_run
@given(kind=st.sampled_from(list(SPACES)), reset_with=RESET_CHANGES, step_with=CHANGES)
def test_junk_is_reported_as_a_faulty_environment(run, kind, reset_with, step_with):
    env = Hostile(reset_with or (lambda result: result), step_with, kind)
    try:
        RUNS[run](env)
    except FaultyEnvironmentError as error:
        message = str(error)
    else:
        return
    assert message.startswith("Toy: ")


@pytest.mark.parametrize("method", ["reset", "step"])
def test_training_does_not_end_in_silence(method):
    """sys.exit(0) inside the environment would end the program as if all were well."""

    def leave(result):
        sys.exit(0)

    for agent in (
        Reinforce(Hostile(**{f"{method}_with": leave}), hidden=(4,)),
        DQN(Hostile(**{f"{method}_with": leave})),
    ):
        with pytest.raises(FaultyEnvironmentError, match=rf"Hostile.*{method} raised SystemExit: 0 at step"):
            agent.learn(total_episodes=3, progress_bar=False)
        assert agent.episodes == 0


def test_wrappers_of_gymnasium_change_nothing():
    gym.register("toys/Hostile-v0", Hostile)
    env = gym.make("toys/Hostile-v0", step_with=raising(SystemExit(0)))
    with pytest.raises(FaultyEnvironmentError, match="SystemExit: 0 at step 1"):
        RUNS["gymnasium"](env)


def test_a_keyboard_interrupt_of_the_environment_itself_is_its_error():
    """It is known that there was no Ctrl-C: training handles the signals."""

    class Interrupting(gym.Env):
        observation_space, action_space = gym.spaces.Discrete(1), gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            raise KeyboardInterrupt

    with pytest.raises(
        FaultyEnvironmentError, match=r"Interrupting.*step raised KeyboardInterrupt at step 1 of episode 0"
    ):
        Reinforce(Interrupting()).learn(total_episodes=20, progress_bar=False)
