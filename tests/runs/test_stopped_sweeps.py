"""Sweeps whose processes die: killed, terminated, or lost with a node of a real Ray cluster on this machine.

In one file, because each of them needs all cores: pytest-xdist runs the tests of a file in one process.
"""

import signal
import subprocess
import sys
import threading
import warnings

import pytest
from long_sweep import EPISODES, LONG, SETTINGS, results, run_names, stopped

from steadyrl.cli.main import main
from steadyrl.runs.ray_cluster import run_all_on_ray
from steadyrl.runs.scheduler import pending_jobs
from steadyrl.runs.sweep import Sweep
from steadyrl.training.run_folder import read_config, resume_files

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
MEMORY = 80 * 2**20


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The runs of LONG, never stopped."""
    out = tmp_path_factory.mktemp("whole")
    main([*LONG, "--out", str(out)])
    assert len(results(out)) == 2
    return out


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def second_node(cluster):
    node = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    cluster.wait_for_nodes()
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node)


def long_jobs(out):
    """The runs of LONG, as jobs."""
    choices = {name: [value] for name, value in SETTINGS.items()}
    sweep = Sweep(("CartPole-v1",), {"dqn": choices}, (0, 1), {"episodes": EPISODES})
    return pending_jobs(sweep.cells(out, checkpoint_seconds=0))


def resumed(command, out):
    """What the same command prints when it is given again."""
    done = subprocess.run(
        [sys.executable, "-m", "steadyrl", *command, "--out", str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_same_command_resumes_when_all_was_stopped(number, whole, tmp_path):
    out = tmp_path / "out"
    status, error = stopped(LONG, out, number)
    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    if number == signal.SIGTERM:
        assert "The same command keeps finished runs and resumes the others." in error.splitlines()[-1]
    assert list(out.rglob("resume-*.steady"))
    assert "2/2" in resumed(LONG, out)
    assert results(out) == results(whole)
    assert read_config(out / run_names(out)[0])["command"].startswith("steadyrl sweep CartPole-v1")


def test_a_sweep_on_ray_survives_the_loss_of_a_node(cluster, second_node, whole, tmp_path):
    jobs, nodes, removed = long_jobs(tmp_path), {}, threading.Event()

    def show(number, report):
        if report is None:
            return
        nodes.setdefault(number, []).append(report["node"])
        doomed = second_node.node_id
        if report["node"] == doomed and resume_files(jobs[number].folders[0]) and not removed.is_set():
            removed.set()
            cluster.remove_node(second_node, allow_graceful=False)

    assert [result.error for result in run_all_on_ray(jobs, show, cluster.address)] == [None] * 2
    assert removed.is_set()
    assert len({node for some in nodes.values() for node in some}) == 2
    assert any(len(set(some)) == 2 for some in nodes.values()), "no job moved from one node to the other"
    assert results(tmp_path) == results(whole)


def test_the_same_command_resumes_when_the_driver_of_ray_was_killed(cluster, second_node, whole, tmp_path):
    command, out = [*LONG, "--on", "ray", "--address", cluster.address], tmp_path / "out"
    status, _ = stopped(command, out, signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert list(out.rglob("resume-*.steady"))
    assert "2/2" in resumed(command, out)
    assert results(out) == results(whole)


def test_failures_on_ray_are_reported_with_their_log(cluster, tmp_path, capsys):
    """The other runs are trained."""
    command = ["sweep", "CartPole-v1", "--agents", "ppo", "--set", "policy_learning_rate=1e30,1e-3"]
    command += ["--set", "hidden=8", "--episodes", "100", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--on", "ray", "--address", cluster.address])
    assert stop.value.code == 1
    printed = capsys.readouterr()
    assert "1 failed" in printed.err
    assert "parameters became infinite or NaN" in printed.err
    assert "1/1" in printed.out
