"""Random models with pools about which runtimes disagree, for ``onnxpool fix``."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnxpool.schemas import SCHEMAS, resolve

OPERATORS = ("AveragePool", "MaxPool", "LpPool", "GlobalLpPool", "QLinearAveragePool", "NhwcMaxPool")
WEIGHTS = (0.35, 0.3, 0.15, 0.05, 0.1, 0.05)
OPSETS = (7, 8, 9, 10, 11, 12, 13, 18, 19, 21, 22)
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE,
         "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int64": TensorProto.INT64}
PLACES = ("graph", "branch", "function")
IMPORTS = {"com.microsoft": 1, "own": 1}


class Model(NamedTuple):
    """A model, its inputs, and its pooling nodes by the name of their first output."""

    proto: ModelProto
    inputs: dict[str, NDArray[Any]]
    pools: dict[str, NodeProto]


def draw(seed: int) -> Model:
    """The random model of a seed: one to three pools, in the graph, in branches of an If, or in functions."""
    random = np.random.default_rng(seed)
    opset = int(random.choice(OPSETS))
    nodes, inputs, outputs, functions, constants = [], [], [], [], []
    arrays, pools = {}, {}
    for number in range(int(random.integers(1, 4))):
        pool, x, more = draw_pool(random, opset, number)
        arrays[f"x{number}"] = x
        constants += more
        pools[pool.output[0]] = pool
        inputs.append(helper.make_tensor_value_info(f"x{number}", TYPES[x.dtype.name],
                                                    ["N" if random.random() < 0.3 else x.shape[0], *x.shape[1:]]))
        kinds = [TYPES[x.dtype.name], TensorProto.INT64]
        made = [helper.make_tensor_value_info(name, kind, [None] * x.ndim)
                for name, kind in zip(pool.output, kinds, strict=False)]
        outputs += made
        place = str(random.choice(PLACES, p=(0.7, 0.15, 0.15)))
        if place == "branch" and opset >= 11:
            branches = [helper.make_graph([pool if taken else helper.make_node("Identity", [pool.input[0]],
                                                                              [f"other{number}"])],
                                          f"branch{number}", [], made if taken else [
                helper.make_tensor_value_info(f"other{number}", kinds[0], [None] * x.ndim)]) for taken in (True, False)]
            if len(made) == 1:
                constants.append(numpy_helper.from_array(np.array(True), f"c{number}"))
                nodes.append(helper.make_node("If", [f"c{number}"], [f"out{number}"], then_branch=branches[0],
                                              else_branch=branches[1]))
                outputs[-1] = helper.make_tensor_value_info(f"out{number}", kinds[0], [None] * x.ndim)
                continue
        if place == "function" and pool.domain == "":
            inner = list(pool.input)
            functions.append(helper.make_function("own", f"F{number}", inner, list(pool.output), [pool],
                                                  [helper.make_opsetid("", opset)]))
            nodes.append(helper.make_node(f"F{number}", inner, list(pool.output), domain="own"))
            continue
        nodes.append(pool)
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    imports = [helper.make_opsetid(domain, version) for domain, version in {"": opset, **IMPORTS}.items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)
    return Model(model, arrays, pools)


def draw_pool(random: np.random.Generator, opset: int, number: int) -> tuple[NodeProto, NDArray[Any], list[Any]]:
    """A random pooling node, its input, and its constants."""
    while True:
        operator = str(random.choice(OPERATORS, p=WEIGHTS))
        schema = SCHEMAS[operator]
        version = resolve(operator, opset if schema.domain == "" else 1)
        dtype = str(random.choice([name for name in version.dtypes if name != "bfloat16"]))
        if random.random() < 0.6 and "float32" in version.dtypes:
            dtype = "float32"
        rank = int(random.choice([1, 2, 2, 2, 3]))
        sizes = [int(size) for size in random.integers(3, 10, rank)]
        attributes = draw_attributes(random, version.attributes, rank)
        last = schema.channels_last or attributes.get("channels_last")
        spans = [(taps - 1) * step + 1 for taps, step in zip(
            attributes.get("kernel_shape", [1] * rank), attributes.get("dilations", [1] * rank), strict=True)]
        if all(span <= size for span, size in zip(spans, sizes, strict=True)):
            break
    shape = (2, *sizes, 3) if last else (2, 3, *sizes)
    if dtype in ("int8", "uint8"):
        x = random.integers(-128 if dtype == "int8" else 0, 127, shape).astype(dtype)
    else:
        x = (random.standard_normal(shape) - 3 * (random.random() < 0.3)).astype(dtype)
    constants, names = [], [f"x{number}"]
    if operator == "QLinearAveragePool":
        point = np.array(random.integers(0, 100), dtype)
        for name, value in (("s", np.array(0.5, np.float32)), ("z", point), ("t", np.array(0.75, np.float32)),
                            ("q", point)):
            constants.append(numpy_helper.from_array(value, f"{name}{number}"))
            names.append(f"{name}{number}")
        if random.random() < 0.3:
            names = [*names[:2], "", names[3]]
    indices = operator == "MaxPool" and version.outputs > 1 and random.random() < 0.25
    results = [f"y{number}", f"i{number}"][:1 + indices]
    return helper.make_node(operator, names, results, f"pool{number}", domain=schema.domain, **attributes), x, constants


def draw_attributes(random: np.random.Generator, known: Any, rank: int) -> dict[str, Any]:
    """Random attributes of a version."""
    attributes: dict[str, Any] = {}
    if "kernel_shape" in known:
        attributes["kernel_shape"] = kernel = [int(taps) for taps in random.integers(1, 5, rank)]
        if random.random() < 0.7:
            attributes["strides"] = [int(step) for step in random.integers(1, 4, rank)]
        kind = random.random()
        if kind < 0.6:
            more = random.random() < 0.15
            attributes["pads"] = [int(random.integers(0, taps + more)) for taps in kernel * 2]
        elif kind < 0.85:
            attributes["auto_pad"] = str(random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    for name in ("ceil_mode", "count_include_pad", "channels_last", "storage_order"):
        if name in known and random.random() < 0.5:
            attributes[name] = int(random.integers(0, 2))
    if "dilations" in known and random.random() < 0.25:
        attributes["dilations"] = [int(step) for step in random.integers(1, 3, rank)]
    if "p" in known and random.random() < 0.5:
        attributes["p"] = int(random.integers(1, 4))
    return attributes
