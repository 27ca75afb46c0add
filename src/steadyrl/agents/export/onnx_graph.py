"""An ONNX graph under construction: its nodes, inputs, outputs and constants, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH = "batch"
"""Name of the first axis of inputs and outputs, whose length is free."""


class Graph:
    """What `onnx.helper.make_graph` takes."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def input(self, name: str, dtype: Any, shape: Sequence[int]) -> str:
        """A batch of these."""
        from onnx import helper

        name = self._free(name)
        self.inputs.append(helper.make_tensor_value_info(name, element_type(dtype), [BATCH, *shape]))
        return name

    def output(self, name: str, result: str, dtype: Any, shape: Sequence[int]) -> None:
        """A batch of these, which are the result of an operation."""
        from onnx import helper

        name = self._free(name)
        self.nodes.append(helper.make_node("Identity", [result], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, element_type(dtype), [BATCH, *shape]))

    def add(self, operation: str, *arguments: str | NDArray[Any] | np.number[Any], **attributes: Any) -> str:
        """The result of an operation on tensors, by name, and on constants."""
        from onnx import helper

        names = [argument if isinstance(argument, str) else self._constant(argument) for argument in arguments]
        result = f":{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, names, [result], **attributes))
        return result

    def cast(self, x: str, dtype: Any) -> str:
        """In another type."""
        return self.add("Cast", x, to=element_type(dtype))

    def _constant(self, value: Any) -> str:
        """An array that is part of the model."""
        from onnx import numpy_helper

        name = f":constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def _free(self, name: str) -> str:
        """The name, with underscores behind it where a part of the observation has it already."""
        while name in [given.name for given in (*self.inputs, *self.outputs)]:
            name += "_"
        return name


def element_type(dtype: Any) -> int:
    """ONNX's number of a type of NumPy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
