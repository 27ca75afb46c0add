"""A policy as an ONNX model: written operation by operation, because it is a handful of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents.export.plain_policy import Choice, Input, PlainNetwork, PlainTable, Scaled

OPSET, IR_VERSION = 17, 8
"""Of 2022: what runs on phones and controllers is seldom the latest."""
ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "elu": "Elu", "silu": "Sigmoid"}
"""Our name -> ONNX's; silu is the input times its sigmoid."""
LAYER_NORM_EPSILON = 1e-6
"""That of `MLP`."""
BATCH = "batch"
"""Name of the first axis of inputs and outputs, whose length is free."""


def onnx_file(policy: PlainNetwork | PlainTable, about: Mapping[str, str]) -> bytes:
    """The content of the file: inputs are batches of observations, the output is a batch of actions.

    Args:
        policy: What the model computes.
        about: Text for its metadata, by name.
    """
    try:
        import onnx
    except ImportError:
        raise ModuleNotFoundError(
            "an .onnx file needs onnx, which is not installed: pip install 'steadyrl[onnx]'. Or write an .npz file."
        ) from None
    graph = _Graph()
    action = _add_table(graph, policy) if isinstance(policy, PlainTable) else _add_network(graph, policy)
    graph.nodes.append(onnx.helper.make_node("Identity", [action.name], ["action"]))
    output = onnx.helper.make_tensor_value_info("action", _element_type(action.dtype), [BATCH, *action.shape])
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "policy", graph.inputs, [output], graph.constants),
        producer_name="steadyrl",
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.helper.set_model_props(model, dict(about))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


class _Result:
    """The name of a tensor, and the type and shape of its rows."""

    def __init__(self, name: str, dtype: Any, shape: Sequence[int]) -> None:
        self.name, self.dtype, self.shape = name, np.dtype(dtype), tuple(shape)


class _Graph:
    """Nodes, inputs and constants of a model, in order."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []

    def input(self, name: str, dtype: Any, shape: Sequence[int]) -> str:
        """A batch of these."""
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, _element_type(dtype), [BATCH, *shape]))
        return name

    def constant(self, value: Any) -> str:
        """An array that is part of the model."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def add(self, operation: str, *arguments: str | NDArray[Any] | np.number[Any], **attributes: Any) -> str:
        """The result of an operation on tensors, by name, and on constants."""
        from onnx import helper

        names = [argument if isinstance(argument, str) else self.constant(argument) for argument in arguments]
        result = f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, names, [result], **attributes))
        return result


def _element_type(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _add_table(graph: _Graph, policy: PlainTable) -> _Result:
    state = graph.input("observation", np.int64, ())
    row = graph.add("Sub", state, np.int64(policy.first_state)) if policy.first_state else state
    return _Result(graph.add("Gather", policy.actions, row), policy.actions.dtype, policy.actions.shape[1:])


def _add_network(graph: _Graph, policy: PlainNetwork) -> _Result:
    parts = [_add_input(graph, part) for part in policy.inputs]
    x = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
    if policy.moments is not None:
        mean, std = policy.moments
        x = graph.add("Div", graph.add("Sub", x, mean), std)
        x = graph.add("Clip", x, np.float32(-policy.clip), np.float32(policy.clip))
    for k, layer in enumerate(policy.layers):
        x = graph.add("Gemm", x, layer["weight"], layer["bias"])
        if "scale" in layer:
            x = graph.add("LayerNormalization", x, layer["scale"], layer["shift"], epsilon=LAYER_NORM_EPSILON)
        if k < len(policy.layers) - 1:
            activated = graph.add(ACTIVATIONS[policy.activation], x)
            x = graph.add("Mul", x, activated) if policy.activation == "silu" else activated
    return _add_action(graph, x, policy.head)


def _add_input(graph: _Graph, part: Input) -> str:
    """The features of one part of the observation, [batch, features] float32."""
    from onnx import TensorProto

    x = graph.input(part.name or "observation", part.dtype, part.shape)
    if len(part.shape) != 1:
        x = graph.add("Reshape", x, np.array([-1, int(np.prod(part.shape))]))
    if part.one_hot is not None:
        choice, value = part.one_hot
        chosen = graph.add("Equal", graph.add("Gather", x, choice, axis=1), value.astype(part.dtype)[None])
        return graph.add("Cast", chosen, to=TensorProto.FLOAT)
    if part.dtype != np.float32:
        x = graph.add("Cast", x, to=TensorProto.FLOAT)
    return x if part.divisor == 1 else graph.add("Div", x, np.float32(part.divisor))


def _add_action(graph: _Graph, x: str, head: Choice | Scaled) -> _Result:
    if isinstance(head, Choice):
        return _add_choices(graph, x, head)
    x = graph.add("Tanh", x) if head.squash else x
    dtype = head.low.dtype
    if dtype != np.float32:
        x = graph.add("Cast", x, to=_element_type(dtype))
    x = graph.add("Add", graph.add("Mul", x, head.half_range), head.middle)
    # Not Clip, whose bounds are single numbers.
    x = graph.add("Min", graph.add("Max", x, head.low), head.high)
    if len(head.shape) != 1:
        x = graph.add("Reshape", x, np.array([-1, *head.shape]))
    return _Result(x, dtype, head.shape)


def _add_choices(graph: _Graph, x: str, head: Choice) -> _Result:
    ends = np.cumsum(head.numbers)
    parts = [x]
    if len(ends) > 1:
        columns = [(end - n, end) for n, end in zip(head.numbers, ends, strict=True)]
        parts = [graph.add("Slice", x, np.array([start]), np.array([end]), np.array([1])) for start, end in columns]
    best = [graph.add("ArgMax", part, axis=1) for part in parts]
    x = graph.add("Concat", *best, axis=1) if len(best) > 1 else best[0]
    if head.first.dtype != np.int64:
        x = graph.add("Cast", x, to=_element_type(head.first.dtype))
    if head.first.any():
        x = graph.add("Add", x, head.first)
    return _Result(graph.add("Reshape", x, np.array([-1, *head.shape])), head.first.dtype, head.shape)
