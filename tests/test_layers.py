"""The order of the packages: each imports only from those before it, and no modules import each other in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import steadyrl

ORDER = ["base", "risk", "exact", "envs", "rollouts", "training", "agents", "evaluation", "runs", "reports", "cli"]
ROOT = Path(steadyrl.__file__).parent
EXEMPT = ("steadyrl", "steadyrl.__main__", "steadyrl.callbacks")
"""What users import: these lead to all the others."""


def name_of(path):
    return ".".join(("steadyrl", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {name_of(path): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def called(node):
    """`name` of `name` and of `module.name`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def imports_of(tree, modules):
    """(module, whether it is imported at runtime) for each import of ours, inside functions too."""
    nodes = list(ast.walk(tree))
    guards = [node for node in nodes if isinstance(node, ast.If) and called(node.test) == "TYPE_CHECKING"]
    for_types = {id(node) for guard in guards for statement in guard.body for node in ast.walk(statement)}
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            # `from package import module` imports the module too.
            within = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module for name in within]
        elif isinstance(node, ast.Call) and called(node.func) == "import_module":
            names = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        for name in names:
            if name.split(".")[0] == "steadyrl":
                yield name, id(node) not in for_types


def layer_of(module):
    return module.split(".")[1] if "." in module else None


def backward_imports(modules):
    return [
        f"{module} imports {name}"
        for module, tree in modules.items()
        if module not in EXEMPT
        for name, _ in imports_of(tree, modules)
        if layer_of(name) is None or ORDER.index(layer_of(name)) > ORDER.index(layer_of(module))
    ]


def circle(modules):
    """The modules of a circle of imports at runtime, or None. A package stands for its __init__ alone."""
    graph = {
        module: {name for name, at_runtime in imports_of(tree, modules) if at_runtime and name != module}
        for module, tree in modules.items()
        if module not in EXEMPT
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_every_package_has_its_place():
    assert {layer_of(module) for module in MODULES if module not in EXEMPT} == set(ORDER)


def test_packages_import_only_from_those_before_them():
    assert backward_imports(MODULES) == []


def test_no_modules_import_each_other_in_a_circle():
    assert circle(MODULES) is None


@pytest.mark.parametrize(
    "line",
    [
        "import steadyrl.cli.main",
        "from steadyrl.training import loop",
        "def f():\n    from steadyrl.agents.agent import Agent",
        "def f():\n    importlib.import_module('steadyrl.runs.job')",
        "if TYPE_CHECKING:\n    from steadyrl.envs.source import Source",
        "import steadyrl",
    ],
)
def test_a_backward_import_is_found(line):
    assert backward_imports({"steadyrl.exact.mdp": ast.parse(line)}) != []
    assert backward_imports({"steadyrl.exact.mdp": ast.parse("from steadyrl.risk import gini")}) == []


def test_a_circle_is_found():
    def modules(first):
        lines = {"a": first, "b": "from steadyrl.base import c", "c": "def f():\n    import steadyrl.base.a"}
        return {f"steadyrl.base.{name}": ast.parse(line) for name, line in lines.items()}

    assert len(circle(modules("import steadyrl.base.b"))) == 4
    assert circle(modules("if TYPE_CHECKING:\n    import steadyrl.base.b")) is None
