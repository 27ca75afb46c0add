"""The order in which two test processes take files: the longest first, so that both end at the same time."""

from collections import Counter

SECONDS = {
    "benchmarks/test_speed_benchmarks.py": 75,
    "runs/test_stopped_sweeps.py": 75,
    "agents/test_defaults_learn.py": 70,
    "benchmarks/test_studies.py": 65,
    "runs/test_calibration.py": 60,
    "training/test_killed_operations.py": 50,
    "_in_browser.py": 50,
    "training/test_exact_resume.py": 45,
    "test_docs.py": 40,
    "agents/test_solving_cartpole.py": 40,
    "runs/test_tune.py": 35,
    "cli/test_reproduce.py": 30,
    "runs/test_frontier_runs.py": 30,
    "training/test_jax_engine.py": 30,
    "evaluation/test_callbacks.py": 30,
    "agents/test_dialled_agents.py": 30,
    "agents/test_packed_updates.py": 30,
    "agents/test_shared_programs.py": 30,
    "examples/test_examples.py": 30,
    "training/test_interruptions.py": 30,
    "runs/test_sweep.py": 30,
    "agents/test_from_sb3.py": 25,
    "agents/test_spaces.py": 25,
    "agents/test_action_masks.py": 25,
    "reports/test_page_while_runs_change.py": 25,
    "agents/test_agents.py": 20,
}
"""What the longest files take, roughly. A wrong number costs time and nothing else."""
SECONDS_PER_TEST = 0.05
"""Of the other files."""
TOGETHER = "_in_browser.py"
"""Files whose names end so are run by one process: they share a browser and a page."""


def unit_of(nodeid):
    """The tests that one process runs: those of a file."""
    file = nodeid.partition("::")[0]
    return TOGETHER if file.endswith(TOGETHER) else file


def longest_first(nodeids):
    """Unit -> its rank."""
    seconds = {
        unit: next((SECONDS[name] for name in SECONDS if unit.endswith(name)), SECONDS_PER_TEST * count)
        for unit, count in Counter(map(unit_of, nodeids)).items()
    }
    return {unit: rank for rank, unit in enumerate(sorted(seconds, key=lambda unit: (-seconds[unit], unit)))}


def make_scheduler(config, log):
    """As `--dist loadfile`, with units in the order of the collection."""
    from xdist.scheduler import LoadFileScheduling

    class Units(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)
