"""The functions of `onnxpool.cython_api`, reached through their capsules with ctypes."""

import ctypes
from ctypes import POINTER, c_double, c_float, c_int, c_int32, c_int64, c_void_p
from typing import Any

from onnxpool import cython_api

capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
CAPSULES = vars(cython_api)["__pyx_capi__"]

OPERATIONS = {
    "AveragePool": 1,
    "MaxPool": 2,
    "LpPool": 3,
    "GlobalAveragePool": 4,
    "GlobalMaxPool": 5,
    "GlobalLpPool": 6,
    "QLinearAveragePool": 7,
    "QLinearGlobalAveragePool": 8,
    "NhwcMaxPool": 9,
}
DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "float16": 10, "float64": 11, "bfloat16": 16}
AUTO_PADS = {"NOTSET": 0, "": 0, "SAME_UPPER": 1, "SAME_LOWER": 2, "VALID": 3}
OK, NULL_POINTER, BAD_INDICES, BAD_THREADS, NO_MEMORY = range(5)

Values = POINTER(c_int64)


class Geometry(ctypes.Structure):
    """The layout of `onnxpool_geometry`, which is frozen: fields are only ever added at the end."""

    _fields_ = (
        ("size", c_int64),
        ("operation", c_int32),
        ("dtype", c_int32),
        ("opset", c_int32),
        ("ndim", c_int32),
        ("channels_last", c_int32),
        ("return_indices", c_int32),
        ("storage_order", c_int32),
        ("ceil_mode", c_int32),
        ("count_include_pad", c_int32),
        ("auto_pad", c_int32),
        ("p", c_double),
        ("shape", Values),
        ("kernel_shape", Values),
        ("strides", Values),
        ("pads", Values),
        ("dilations", Values),
        ("x_strides", Values),
        ("y_strides", Values),
        ("indices_strides", Values),
        ("x_scale", c_float),
        ("y_scale", c_float),
        ("x_zero_point", c_int32),
        ("y_zero_point", c_int32),
    )


SIZE = 136
assert ctypes.sizeof(Geometry) == SIZE


def function(name: str, *signature: Any, kind: Any = ctypes.CFUNCTYPE) -> Any:
    """A function, looked up by its capsule. Functions made with CFUNCTYPE are called without the GIL."""
    capsule = CAPSULES[name]
    return kind(*signature)(capsule_pointer(capsule, capsule_name(capsule)))


version = function("onnxpool_abi_version", c_int)
prepare = function("onnxpool_prepare", c_void_p, ctypes.py_object, ctypes.py_object, kind=ctypes.PYFUNCTYPE)
prepare_geometry = function("onnxpool_prepare_geometry", c_void_p, POINTER(Geometry), kind=ctypes.PYFUNCTYPE)
retain = function("onnxpool_retain", None, c_void_p)
release = function("onnxpool_release", None, c_void_p)
output_shape = function("onnxpool_output_shape", c_int, c_void_p, POINTER(c_int64))
run = function("onnxpool_run", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_int)
message = function("onnxpool_message", ctypes.c_char_p, c_int)


def fill(given: Geometry, fields: dict[str, Any]) -> None:
    """Set fields of a geometry; sequences become arrays of int64."""
    for name, value in fields.items():
        setattr(given, name, (c_int64 * len(value))(*value) if isinstance(value, (tuple, list)) else value)


def geometry(operation: str, shape: tuple[int, ...], dtype: str, **fields: Any) -> Geometry:
    """A geometry in which only these fields are set."""
    given = Geometry(size=SIZE, operation=OPERATIONS[operation], dtype=DTYPES[dtype], ndim=len(shape))
    fill(given, {"shape": shape, **fields})
    return given


def shape_of(handle: int) -> tuple[int, ...]:
    """The shape of the result of a handle."""
    sizes = (c_int64 * 64)()
    return tuple(sizes[: output_shape(handle, sizes)])
