"""Files of agents from strangers: they run no code, take no more memory than they hold, and are checked first."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest
from commands import refusal
from crafted_files import craft
from hypothesis import given
from hypothesis import strategies as st

import steadyrl

MAZE = "steadyrl/GuardedMaze-v0"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of an agent with tables, and of one with networks and a replay buffer."""
    folder = tmp_path_factory.mktemp("agents")
    steadyrl.MeanGini(MAZE).save(folder / "table.steady")
    dqn = steadyrl.DQN("CartPole-v1", hidden=(4,), buffer_size=8, learning_starts=4, batch_size=2)
    dqn.learn(total_episodes=1, progress_bar=False)
    dqn.save(folder / "dqn.steady")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def written(files, tmp_path):
    """Writes one of the `files`, changed by a function of header and arrays."""

    def write(name, change, **how):
        path = tmp_path / f"{name}.steady"
        path.write_bytes(files[name])
        craft(path, change, **how)
        return path

    return write


def named(env, /, **options):
    return lambda header, arrays: header.update(env={"id": env, "options": options})


EVIL = """
from pathlib import Path
Path("called").touch()
def make(**options):
    Path("called").touch()
"""


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("beside", ["evil.py", ".venv/lib/site-packages/evil.py"])
def test_a_factory_that_a_file_names_is_not_called(command, beside, written, capsys, tmp_path, monkeypatch):
    """Wherever its module is: beside a downloaded run, or installed in a folder below."""
    path = written("table", named("evil:make", layout="x y"))
    (tmp_path / beside).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / beside).write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend((tmp_path / beside).parent)
    line = refusal(capsys, command, *[path] * (1 if command == "evaluate" else 2))
    assert "code that a file must not choose. If you trust it, name it: --env evil:make --env-set 'layout=x y'" in line
    assert not (tmp_path / "called").exists()
    assert "evil" not in sys.modules


@pytest.mark.parametrize(
    "env",
    [
        ("numpy:load", {"file": "x.npy", "allow_pickle": True}),
        ("subprocess:run", {"args": ["touch", "called"]}),
        ("evil:Env-v0", {}),
        ("GymV26Environment-v0", {"env_id": "evil:Env-v0"}),
    ],
)
def test_functions_of_installed_packages_are_not_called_either(env, written, capsys, tmp_path, monkeypatch):
    path = written("table", named(env[0], **env[1]))
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert steadyrl.load(path).env is None
    assert "If you trust it, name it" in refusal(capsys, "evaluate", path)
    assert not (tmp_path / "called").exists()


def test_plugins_beside_a_downloaded_run_are_not_loaded(written, tmp_path):
    """Gymnasium and JAX load whatever on the path calls itself their plugin, so the current folder is not on it."""
    path = written("table", lambda header, arrays: None)
    (tmp_path / "evil.py").write_text(EVIL)
    (tmp_path / "evil-1.dist-info").mkdir()
    (tmp_path / "evil-1.dist-info" / "METADATA").write_text("Name: evil\nVersion: 1\n")
    (tmp_path / "evil-1.dist-info" / "entry_points.txt").write_text("[gymnasium.envs]\n__root__ = evil:make\n")
    (tmp_path / "jax_plugins" / "evil").mkdir(parents=True)
    (tmp_path / "jax_plugins" / "evil" / "__init__.py").write_text(EVIL)
    command = [sys.executable, "-m", "steadyrl"]
    result = subprocess.run([*command, "evaluate", path, "--episodes", "2"], cwd=tmp_path, capture_output=True)
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "called").exists()


def test_a_file_does_not_open_windows(written, monkeypatch):
    path = written("dqn", named("CartPole-v1", render_mode="human", max_episode_steps=7))
    env = steadyrl.load(path).env
    assert env.render_mode is None
    assert env.spec.max_episode_steps == 7


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header["settings"].update(hidden=[20_000, 20_000]),
        lambda header, arrays: header["settings"].update(hidden=[2] * 100_000),
        lambda header, arrays: header.update(observation_space={"kind": "Discrete", "n": 2**31 - 1}),
        lambda header, arrays: header.update(action_space={"kind": "Discrete", "n": 2**31 - 1}),
        lambda header, arrays: header["observation_space"].update(dtype="U50000000"),
    ],
)
def test_a_small_file_takes_little_memory(change, written):
    path = written("dqn", change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"dqn agent"):
        steadyrl.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("name", "array"), [("table", "theta"), ("dqn", "memory/rows")])
def test_numbers_must_be_finite(value, name, array, written):
    def change(header, arrays):
        arrays[array].reshape(-1)[3] = value

    with pytest.raises(ValueError, match=rf"damaged: its array '{array}' is not finite"):
        steadyrl.load(written(name, change))


@given(st.data())
def test_every_flipped_bit_is_found(files, tmp_path_factory, data):
    content = bytearray(files[data.draw(st.sampled_from(sorted(files)))])
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / "flipped.steady"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged|no steadyrl agent|newer steadyrl|altered"):
        steadyrl.load(path)


def test_files_of_format_1_have_no_digests_and_load(written):
    path = written("table", lambda header, arrays: header.update(format=1), digests=False)
    assert steadyrl.load(path).env is not None
    with pytest.raises(ValueError, match="header"):
        steadyrl.load(written("table", lambda header, arrays: None, digests=False))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    """The paths of everything in nested plain data."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


@given(st.data())
def test_any_header_is_an_agent_or_one_clear_error(files, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "header.steady"
    path.write_bytes(files[data.draw(st.sampled_from(sorted(files)))])

    def change(header, arrays):
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.sampled_from([p for p in places(header) if p and p != ("format",)]))
            part = header
            for key in place[:-1]:
                part = part[key]
            part[place[-1]] = data.draw(JSON)

    craft(path, change)
    agent, error = None, ""
    try:
        agent = steadyrl.load(path)
    except ValueError as refusal:
        error = str(refusal)
    assert agent is not None or str(path) in error
    if agent is not None:
        agent.predict(agent.observation_space.sample())


def test_a_header_may_be_nested_as_deep_as_it_likes(files, tmp_path):
    path = tmp_path / "deep.steady"
    path.write_bytes(files["table"])
    for depth in (30, 300, 900, 100_000):
        space = '{"kind": "Dict", "order": [], "spaces": {"a": ' * depth + "1" + "}}" * depth

        def change(header, arrays):
            header["observation_space"] = "HERE"

        craft(path, change, digests=False)
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        inner = (
            content[8 : 8 + size]
            .replace(b'\\"HERE\\"', json.dumps(space)[1:-1].encode())
            .replace(b'\\"format\\": 2', b'\\"format\\": 1')
        )
        path.write_bytes(len(inner).to_bytes(8, "little") + inner + content[8 + size :])
        with pytest.raises(ValueError, match=r"deep\.steady"):
            steadyrl.load(path)
        path.write_bytes(files["table"])


@pytest.mark.parametrize("name", ["env", "cls", "self", "id"])
def test_options_may_have_any_name(name, written, capsys):
    path = written("dqn", named("CartPole-v1", **{name: 1}))
    assert steadyrl.load(path).env is None
    assert len(refusal(capsys, "evaluate", path).splitlines()) == 1


@pytest.mark.parametrize("horizon", [10**6, 10**30])
def test_a_horizon_takes_no_memory(horizon, written):
    assert steadyrl.load(written("table", named(MAZE, horizon=horizon))).env is None


def test_text_from_a_file_does_not_reach_the_terminal_raw(written, capsys):
    path = written("table", named("\x1b[31mEvil:x-v0\n", layout="\x07"))
    assert not [c for c in refusal(capsys, "evaluate", path) if not c.isprintable()]


def test_what_the_user_types_is_not_dropped(written, capsys):
    path = written("table", named(MAZE))
    assert "render_mode='odd'" in refusal(capsys, "evaluate", path, "--env-set", "render_mode=odd")
