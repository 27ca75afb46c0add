"""What several tests share."""

import gc
import os
from pathlib import Path

from steadyrl.base.machine import compilation_cache_env

# Before JAX is imported: workers and subprocesses share what they compile.
os.environ.update(compilation_cache_env())
# Most programs run for a few rounds, so that compiling them is most of the time: without optimization, and each of them
# in one piece, it takes a third of it. Tests with long trainings are marked `optimized`.
QUICKLY_COMPILED = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1"
)
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICKLY_COMPILED}".strip()
DISABLED = "JAX_DISABLE_MOST_OPTIMIZATIONS"
os.environ[DISABLED] = "true"

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings
from in_process import trained_in_process
from longest_first import longest_first, make_scheduler, unit_of

from steadyrl.agents.networks import MLP

# The same examples each time, and no timings: a test fails because of the code alone.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items):
    """Files with long tests come first."""
    rank = longest_first(item.nodeid for item in items)
    items.sort(key=lambda item: rank[unit_of(item.nodeid)])


def pytest_collection_finish():
    """Garbage collection skips what imports have made, and is rarer than by default: JAX traces make many objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile`, a process takes the next file in this order."""
    return make_scheduler(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(tryfirst=True)  # Before the fixtures of a module, which are compiled as its first test is.
def pytest_runtest_setup(item):
    """Programs of a test marked `optimized`, and of the processes it starts, are compiled with optimization."""
    quickly = item.get_closest_marker("optimized") is None
    if os.environ[DISABLED] != str(quickly).lower():
        os.environ[DISABLED] = str(quickly).lower()
        jax.config.update(DISABLED.lower(), quickly)
        jax.clear_caches()  # JAX would take the programs that are in memory, however they were compiled.


MEMORY_MAPS = Path("/proc/self/maps")
MAX_MEMORY_MAPS = 20_000
"""Linux allows a process 65,530 maps of memory. Compiled programs take up to a hundred each, and XLA crashes there."""


@pytest.fixture(scope="module", autouse=True)
def _few_programs_in_memory():
    """Compiled programs of earlier files are let go before they are too many for a process."""
    yield
    if MEMORY_MAPS.exists() and MEMORY_MAPS.read_bytes().count(b"\n") > MAX_MEMORY_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def pages():
    """Asks for the pages that `train` and `sweep` write."""


@pytest.fixture(autouse=True)
def _without_pages(request, monkeypatch):
    """`train` and `sweep` write no page, which would play episodes, unless a test asks for `pages`."""
    if "pages" not in request.fixturenames:
        monkeypatch.setattr("steadyrl.cli.train.write_page", lambda *arguments: None)
        monkeypatch.setattr("steadyrl.cli.sweep.write_page", lambda *arguments, **more: None)
        monkeypatch.setattr("steadyrl.cli.sweep.evaluate_many", lambda *arguments: None)


@pytest.fixture(scope="module")
def numpys_layers():
    """Layers start from NumPy's random numbers: JAX would compile its own, for seconds, shape by shape."""

    real = MLP.init

    def init(self, key, output_scale=1.0):
        if isinstance(key, jax.core.Tracer):  # Shapes alone are asked for.
            return real(self, key, output_scale)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        ends = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        draw = lambda *shape: jnp.asarray(rng.standard_normal(shape, dtype=np.float32) / 2)  # noqa: E731
        layers = [{"weight": draw(inputs, outputs), "bias": draw(outputs)} for inputs, outputs in ends]
        if self.layer_norm:
            more = [{"scale": 1 + draw(n), "shift": draw(n)} for n in self.sizes[1:-1]]
            layers = [*(layer | norm for layer, norm in zip(layers[:-1], more, strict=True)), layers[-1]]
        return [*layers[:-1], {name: output_scale * numbers for name, numbers in layers[-1].items()}]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MLP, "init", init)
        yield


@pytest.fixture
def in_process():
    """Sweeps train in this process."""
    with trained_in_process():
        yield
