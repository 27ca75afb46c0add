"""A value in memory that several processes have: what is read is what was written."""

import numpy as np
import pytest

from steadyrl.base.shared_pickle import SharedPickle


@pytest.fixture
def memory():
    shared = SharedPickle()
    yield shared
    shared.close()


def test_values_with_arrays_of_every_kind(memory):
    grid = np.arange(24, dtype=np.float32).reshape(4, 6)
    arrays = [grid, np.asfortranarray(grid), grid[::2, 1:], np.zeros((0, 3)), np.array(5), grid > 3]
    copies = memory.read(memory.write({"arrays": arrays, "name": "policy"}))
    assert copies["name"] == "policy"
    for copy, array in zip(copies["arrays"], arrays, strict=True):
        np.testing.assert_array_equal(copy, array, strict=True)
        assert copy.flags.writeable


def test_each_value_replaces_the_one_before(memory):
    for value in (list(range(1000)), np.ones(10**5), np.zeros(3), None):
        np.testing.assert_array_equal(memory.read(memory.write(value)), value)


def test_a_copy_stays_what_it_is(memory):
    copy = memory.read(memory.write(np.ones(9)))
    memory.write(np.zeros(9))
    assert copy.sum() == 9
