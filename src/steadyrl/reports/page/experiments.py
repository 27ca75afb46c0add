"""The methods and variants of the paper's experiments, by the runs that `steadyrl reproduce` makes of them."""

from __future__ import annotations

from functools import cache

from steadyrl.reports.page.runs_found import FoundRun
from steadyrl.runs.experiment import Method, Variant, load_experiment, names


def experiment_method(run: FoundRun) -> Method | None:
    """The method of an experiment that a run is of; None if it is of none.

    It is if its folder is below one with the name of the method, with the same environment, agent and settings.
    """
    settings = run.config["settings"]
    for method in _methods().get(run.env_id, ()):
        same = (method.name, method.agent) == (run.folder.parent.name, run.config["agent"])
        if same and all(settings.get(name) == value for name, value in method.settings.items()):
            return method
    return None


def experiment_variant(run: FoundRun, folder: str) -> str:
    """The name of the variant that `folder` is called after, such as goal 20 for goal-20; else `folder`.

    It is if the run was trained in the environment of an experiment with the options of that variant.
    """
    options = run.config["env"].get("options") or {}
    for variant in _variants().get(run.env_id, ()):
        same = all(options.get(name) == value for name, value in variant.options.items())
        if variant.folder == folder and same:
            return variant.name
    return folder


@cache
def _variants() -> dict[str, tuple[Variant, ...]]:
    """Environment -> the variants of its experiment."""
    experiments = [load_experiment(name) for name in names()]
    return {experiment.env: experiment.variants for experiment in experiments}


@cache
def _methods() -> dict[str, tuple[Method, ...]]:
    """Environment -> the methods of its experiment, and those of its studies."""
    methods = {}
    for name in names():
        experiment = load_experiment(name)
        studies = experiment.study_experiments().values()
        methods[experiment.env] = experiment.methods + tuple(method for study in studies for method in study.methods)
    return methods
