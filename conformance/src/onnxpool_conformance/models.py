"""The ONNX model of a case. Needs the package onnx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import __version__
from .cases import Array, Case
from .errors import SuiteError
from .versions import MICROSOFT, OPERATORS

if TYPE_CHECKING:
    import onnx

MOST_STORED = 9000  # elements of an input; a larger one, whose elements are all equal, is made by the model
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7, "float16": 10, "float64": 11, "bfloat16": 16}


def package() -> None:
    """Require onnx."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise SuiteError("models need the package onnx: pip install 'onnxpool-conformance[onnx]'") from error


def given(case: Case) -> list[tuple[str, Array]]:
    """The inputs of the model, by name. The shape stands for an input that the model makes."""
    names = [f"x{place}" for place in range(len(case.inputs))]
    arrays = [(name, array) for name, array in zip(names, case.inputs, strict=True) if array is not None]
    return [("shape", np.array(case.x.shape)), *arrays[1:]] if made(case) else arrays


def made(case: Case) -> bool:
    """Whether the model makes the first input, because it is large."""
    return case.x.size > MOST_STORED and bool((case.x == case.x.flat[0]).all())


def results(case: Case) -> list[tuple[str, str]]:
    """The outputs of the model: names and dtypes."""
    return [("y", case.x.dtype.name), ("indices", "int64")][:case.outputs]


def model(case: Case) -> onnx.ModelProto:
    """The model. It leaves the sizes of its outputs unspecified, because they can be part of the question."""
    package()
    from onnx import helper
    known = OPERATORS[case.operator]
    names = ["" if array is None else f"x{place}" for place, array in enumerate(case.inputs)]
    while not names[-1]:
        names.pop()
    outputs = results(case)
    nodes = [helper.make_node(case.operator, names, [name for name, _ in outputs], domain=known.domain or None,
                              **case.attributes)]
    if made(case):
        value = tensor("value", case.x.flat[:1])
        nodes.insert(0, helper.make_node("ConstantOfShape", ["shape"], names[:1], value=value))
    imports = [helper.make_opsetid("", case.opset)]
    if known.domain:
        imports.append(helper.make_opsetid(MICROSOFT, 1))
    graph = helper.make_graph(
        nodes, case.name,
        [helper.make_tensor_value_info(name, TYPES[array.dtype.name], array.shape) for name, array in given(case)],
        [helper.make_tensor_value_info(name, TYPES[dtype], [None] * case.x.ndim) for name, dtype in outputs])
    made_model = helper.make_model(graph, opset_imports=imports, producer_name="onnxpool-conformance",
                                   producer_version=__version__,
                                   ir_version=helper.find_min_ir_version_for(imports, ignore_unknown=True))
    made_model.doc_string = f"{case.decided.tests} ({case.tier}: {case.decided.reason})"
    return made_model


def little(array: Array) -> bytes:
    """The elements in row-major order, as little-endian numbers."""
    swapped = array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and np.little_endian is False)
    return (array.byteswap() if swapped else array).tobytes()


def tensor(name: str, array: Array) -> onnx.TensorProto:
    """An array as a TensorProto, as every version of onnx writes it."""
    import onnx
    made = onnx.TensorProto()
    made.dims.extend(array.shape)
    made.data_type = TYPES[array.dtype.name]
    made.raw_data = little(array)
    made.name = name
    return made
