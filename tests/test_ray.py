"""Sweeps on a real Ray cluster: two nodes on this machine, one of which goes away, and drivers that are killed."""

import signal
import subprocess
import sys
import threading
import warnings

import pytest
from long_sweep import LONG, bits, broken_off

from steadyrl.cli import main
from steadyrl.ray_cluster import do_all_on_ray
from steadyrl.runs import resume_files
from steadyrl.scheduling import left_of
from steadyrl.sweep import Sweep

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("long sweep")]
MEMORY = 80 * 2**20


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


def jobs_of(out):
    """The runs of LONG, as jobs."""
    settings = {"hidden": [(16, 16)], "learning_starts": [100], "gradient_steps": [1]}
    cells = Sweep(("CartPole-v1",), {"dqn": settings}, (0, 1), {"episodes": 150}).cells(out, checkpoint_seconds=0)
    from dataclasses import replace

    return [job for cell in cells for job in left_of(replace(cell, threads=1))]


def test_a_sweep_spreads_and_survives_the_loss_of_a_node(cluster, second_node, whole, tmp_path):
    jobs, nodes, removed = jobs_of(tmp_path), {}, threading.Event()

    def show(number, told):
        if told is None:
            return
        nodes.setdefault(number, []).append(told["node"])
        doomed = second_node.node_id
        if told["node"] == doomed and resume_files(jobs[number].folders[0]) and not removed.is_set():
            removed.set()
            cluster.remove_node(second_node, allow_graceful=False)

    outcomes = do_all_on_ray(jobs, show, cluster.address)
    assert [outcome.error for outcome in outcomes] == [None] * 2
    assert removed.is_set()
    assert len({node for some in nodes.values() for node in some}) == 2
    assert any(len(set(some)) == 2 for some in nodes.values()), "no job moved from one node to the other"
    assert bits(tmp_path) == bits(whole)


def test_the_same_command_goes_on_when_the_driver_was_killed(cluster, second_node, whole, tmp_path):
    command = [*LONG, "--on", "ray", "--address", cluster.address]
    out = tmp_path / "out"
    status, _ = broken_off(command, out, signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert list(out.rglob("resume-*.steady"))
    again = [sys.executable, "-m", "steadyrl", *command, "--out", str(out)]
    done = subprocess.run(again, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2/2" in done.stdout
    assert bits(out) == bits(whole)


def test_failures_come_home(cluster, tmp_path, monkeypatch, capsys):
    """What breaks on a node is told here, with its log; the others go on."""
    command = [
        "sweep",
        "CartPole-v1",
        "--agents",
        "ppo",
        "--set",
        "policy_learning_rate=1e30,1e-3",
        "--episodes",
        "100",
    ]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--out", str(tmp_path / "out"), "--on", "ray", "--address", cluster.address])
    assert stop.value.code == 1
    told = capsys.readouterr()
    assert "1 failed" in told.err
    assert "parameters became infinite or NaN" in told.err
    assert "1/1" in told.out


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "no Ray cluster answers there"), ("nowhere", "write auto, or HOST:PORT")],
)
def test_no_cluster_is_said_in_one_line(address, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "CartPole-v1", "--on", "ray", "--address", address, "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
