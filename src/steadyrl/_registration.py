"""Makes `import steadyrl` enough for `gymnasium.make("steadyrl/...")`, without importing Gymnasium.

Gymnasium takes a good part of a second to import, and `steadyrl --help` must not wait for it. So if it has not been
imported yet, our environments are registered right after somebody does.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any


def register_with_gymnasium() -> None:
    """Register now if Gymnasium is loaded, else as soon as it is."""
    if "gymnasium" in sys.modules:
        importlib.import_module("steadyrl.envs")
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium(importlib.abc.MetaPathFinder):
    """Finds Gymnasium as it would be found without us, and has its loader register our environments at the end."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                importlib.import_module("steadyrl.envs")

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
