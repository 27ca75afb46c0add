"""A policy as an ONNX model: written operation by operation, because it is a few dozen of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steadyrl.agents.export.onnx_graph import Graph
from steadyrl.agents.export.plain_policy import Choice, Convolutions, Input, Layer, PlainNetwork, PlainTable, Scaled
from steadyrl.agents.networks.masks import LOWEST

OPSET, IR_VERSION = 17, 8
"""Of 2022: what runs on phones and controllers is seldom the latest."""
ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "elu": "Elu", "silu": "Sigmoid"}
"""Our name -> ONNX's; silu is the input times its sigmoid."""
LAYER_NORM_EPSILON = 1e-6
"""That of `MLP`."""


def onnx_file(policy: PlainNetwork | PlainTable, about: Mapping[str, str], action_masks: bool = False) -> bytes:
    """The content of the file: inputs are batches of observations, the output is a batch of actions.

    A recurrent policy has its state as one more input and one more output.

    Args:
        policy: What the model computes.
        about: Text for its metadata, by name.
        action_masks: Whether one more input says which actions are allowed, which have to be choices.
    """
    try:
        import onnx
    except ImportError:
        raise ModuleNotFoundError(
            "an .onnx file needs onnx, which is not installed: pip install 'steadyrl[onnx]'. Or write an .npz file."
        ) from None
    graph = Graph()
    x = _add_table(graph, policy) if isinstance(policy, PlainTable) else _add_network(graph, policy)
    head = policy.head
    if isinstance(head, Choice):
        graph.output("action", _add_choices(graph, x, head, action_masks), head.first.dtype, head.shape)
    else:
        graph.output("action", _add_scaling(graph, x, head), head.low.dtype, head.shape)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "policy", graph.inputs, graph.outputs[::-1], graph.constants),
        producer_name="steadyrl",
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.helper.set_model_props(model, dict(about))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _add_table(graph: Graph, policy: PlainTable) -> str:
    state = graph.input("observation", np.int64, ())
    row = graph.add("Sub", state, np.int64(policy.first_state)) if policy.first_state else state
    return graph.add("Gather", policy.outputs, row)


def _add_network(graph: Graph, policy: PlainNetwork) -> str:
    parts = [_add_input(graph, part) for part in policy.inputs]
    x = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
    if policy.moments is not None:
        mean, std = policy.moments
        x = graph.add("Div", graph.add("Sub", x, mean), std)
        x = graph.add("Clip", x, np.float32(-policy.clip), np.float32(policy.clip))
    if policy.convolutions:
        x = _add_images(graph, x, policy.convolutions, sum(part.features for part in policy.inputs))
    *hidden, last = policy.layers
    for layer in hidden:
        x = graph.add("Gemm", x, layer["weight"], layer["bias"])
        if "scale" in layer:
            x = graph.add("LayerNormalization", x, layer["scale"], layer["shift"], epsilon=LAYER_NORM_EPSILON)
        activated = graph.add(ACTIVATIONS[policy.activation], x)
        x = graph.add("Mul", x, activated) if policy.activation == "silu" else activated
    x = graph.add("Gemm", x, last["weight"], last["bias"])
    if policy.recurrent is not None:
        gates, last = policy.recurrent
        x = _add_recurrent(graph, x, gates)
        graph.output("next_state", x, np.float32, (len(gates["weight"]),))
        x = graph.add("Gemm", x, last["weight"], last["bias"])
    return x


def _add_input(graph: Graph, part: Input) -> str:
    """The features of one part of the observation, [batch, features] float32."""
    x = graph.input("/".join(map(str, part.path)) or "observation", part.dtype, part.shape)
    if len(part.shape) != 1:
        x = graph.add("Reshape", x, np.array([-1, part.size]))
    if part.one_hot is not None:
        choice, value = part.one_hot
        chosen = graph.add("Equal", graph.add("Gather", x, choice, axis=1), value.astype(part.dtype)[None])
        return graph.cast(chosen, np.float32)
    if part.dtype != np.float32:
        x = graph.cast(x, np.float32)
    return x if part.divisor == 1 else graph.add("Div", x, np.float32(part.divisor))


def _add_images(graph: Graph, x: str, images: Sequence[Convolutions], inputs: int) -> str:
    """The outputs of the convolutions of each image, and then the other inputs."""
    others = np.ones(inputs, bool)
    seen = []
    for convolutions in images:
        image = convolutions.image
        others[image.start : image.start + image.size] = False
        pixels = x if image.size == inputs else _slice(graph, x, image.start, image.start + image.size)
        seen.append(_add_convolutions(graph, pixels, convolutions))
    if others.any():
        seen.append(graph.add("Gather", x, np.flatnonzero(others), axis=1))
    return seen[0] if len(seen) == 1 else graph.add("Concat", *seen, axis=1)


def _add_convolutions(graph: Graph, x: str, convolutions: Convolutions) -> str:
    """[batch, pixels] to [batch, features]. ONNX has channels before height and width, and here they are last."""
    image = convolutions.image
    height, width, channels = image.axes
    x = graph.add("Reshape", x, np.array([-1, *image.shape]))
    x = graph.add("Transpose", x, perm=[0, *(axis + 1 for axis in (*channels, height, width))])
    x = graph.add("Reshape", x, np.array([-1, image.channels, *image.sides]))
    for layer, stride in zip(convolutions.layers, convolutions.strides, strict=True):
        weight = layer["weight"].transpose(3, 2, 0, 1)
        x = graph.add("Relu", graph.add("Conv", x, weight, layer["bias"], strides=[stride, stride]))
    return graph.add("Flatten", graph.add("Transpose", x, perm=[0, 2, 3, 1]))


def _add_recurrent(graph: Graph, x: str, layer: Layer) -> str:
    """The state after this step, from that before it and what enters the gates: `gru_states.next_state`."""
    H = len(layer["weight"])
    state = graph.input("state", np.float32, (H,))
    recalled = graph.add("MatMul", state, layer["weight"])
    sums = graph.add("Add", _slice(graph, x, 0, 2 * H), _slice(graph, recalled, 0, 2 * H))
    gates = graph.add("Sigmoid", sums)
    reset, update = _slice(graph, gates, 0, H), _slice(graph, gates, H, 2 * H)
    into_candidate = graph.add("Add", _slice(graph, recalled, 2 * H, 3 * H), layer["bias"])
    candidate = graph.add("Add", _slice(graph, x, 2 * H, 3 * H), graph.add("Mul", reset, into_candidate))
    candidate = graph.add("Tanh", candidate)
    return graph.add("Add", candidate, graph.add("Mul", update, graph.add("Sub", state, candidate)))


def _slice(graph: Graph, x: str, start: int, end: int) -> str:
    """Columns from `start` to before `end`."""
    return graph.add("Slice", x, np.array([start]), np.array([end]), np.array([1]))


def _add_scaling(graph: Graph, x: str, head: Scaled) -> str:
    x = graph.add("Tanh", x) if head.squash else x
    if head.low.dtype != np.float32:
        x = graph.cast(x, head.low.dtype)
    x = graph.add("Add", graph.add("Mul", x, head.half_range), head.middle)
    # Not Clip, whose bounds are single numbers.
    x = graph.add("Min", graph.add("Max", x, head.low), head.high)
    return x if len(head.shape) == 1 else graph.add("Reshape", x, np.array([-1, *head.shape]))


def _add_choices(graph: Graph, x: str, head: Choice, action_masks: bool) -> str:
    ends = np.cumsum(head.numbers)
    if action_masks:
        x = graph.add("Where", graph.input("action_mask", bool, (int(ends[-1]),)), x, LOWEST)
    parts = [x]
    if len(ends) > 1:
        parts = [_slice(graph, x, end - n, end) for n, end in zip(head.numbers, ends, strict=True)]
    best = [graph.add("ArgMax", part, axis=1) for part in parts]
    x = graph.add("Concat", *best, axis=1) if len(best) > 1 else best[0]
    if head.first.dtype != np.int64:
        x = graph.cast(x, head.first.dtype)
    if head.first.any():
        x = graph.add("Add", x, head.first)
    return graph.add("Reshape", x, np.array([-1, *head.shape]))
