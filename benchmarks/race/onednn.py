"""oneDNN: its pooling primitive, through the C interface of the shared library in the package onednn-cpu-gomp."""

import ctypes
import importlib.metadata
import weakref
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

import numpy as np

from .problem import Prepared, Problem

# From dnnl_types.h and dnnl_common_types.h.
TYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "int8": 5, "uint8": 6}
MAXIMUM, AVERAGE_OF_ALL, AVERAGE_OF_INPUT = 0x1FF, 0x2FF, 0x3FF
FORWARD_INFERENCE, CPU, IN_ORDER = 96, 1, 1
SOURCE, TARGET = 1, 17
MOST_AXES = 12


class Argument(ctypes.Structure):
    """The C struct dnnl_exec_arg_t."""

    _fields_ = [("place", c_int), ("memory", c_void_p)]


@cache
def library() -> ctypes.CDLL:
    """The shared library. Raises PackageNotFoundError if oneDNN is not installed."""
    files = importlib.metadata.distribution("onednn-cpu-gomp").files or []
    path = next(file.locate() for file in files if file.name.startswith("libdnnl.so"))
    return ctypes.CDLL(str(path))


@cache
def openmp() -> ctypes.CDLL:
    """The OpenMP library that oneDNN uses."""
    return ctypes.CDLL("libgomp.so.1")


def numbers(values: Any) -> Any:
    return (c_int64 * MOST_AXES)(*values)


class Handles:
    """Objects that oneDNN created, to be destroyed in reverse order."""

    def __init__(self) -> None:
        self.made: list[tuple[str, c_void_p]] = []
        weakref.finalize(self, self.destroy, self.made)

    def make(self, kind: str, how: str, *arguments: Any) -> c_void_p:
        """A new object of a kind, from dnnl_<kind>_create or another function."""
        handle = c_void_p()
        status = getattr(library(), f"dnnl_{how}")(byref(handle), *arguments)
        if status:
            raise NotImplementedError(f"dnnl_{how} returned {status}")
        self.made.append((kind, handle))
        return handle

    def array(self, a: np.ndarray, layout: str, engine: c_void_p) -> tuple[c_void_p, c_void_p]:
        """The descriptor and the memory of an array in its layout."""
        if layout == "last":
            a = np.moveaxis(a, -1, 1)
        steps = [step // a.itemsize for step in a.strides]
        described = self.make("memory_desc", "memory_desc_create_with_strides",
                              a.ndim, numbers(a.shape), TYPES[a.dtype.name], numbers(steps))
        return described, self.make("memory", "memory_create", described, engine, c_void_p(a.ctypes.data))

    @staticmethod
    def destroy(made: list[tuple[str, c_void_p]]) -> None:
        """Destroy the objects."""
        for kind, handle in reversed(made):
            getattr(library(), f"dnnl_{kind}_destroy")(handle)


def algorithm(problem: Problem) -> int | None:
    """oneDNN's algorithm for the operator, or None."""
    operator = problem.work.operator
    if operator in ("MaxPool", "NhwcMaxPool", "GlobalMaxPool"):
        return None if "return_indices" in problem.work.attributes else MAXIMUM
    if operator in ("AveragePool", "GlobalAveragePool"):
        return AVERAGE_OF_ALL if problem.work.attributes.get("count_include_pad") else AVERAGE_OF_INPUT
    return None


def geometry(problem: Problem) -> list[Any]:
    """Strides, window, dilation in oneDNN's terms, and pads. The pads at the end go as far as windows reach."""
    spatial = slice(1, -1) if problem.layout == "last" else slice(2, None)
    sizes, outs = problem.inputs[0].shape[spatial], problem.answer.shape[spatial]
    window = problem.work.attributes.get("kernel_shape", sizes)  # a global pool has one window
    strides, dilations = problem.attribute("strides"), problem.attribute("dilations")
    left = problem.attribute("pads", 0)[:len(sizes)]
    spans = [(taps - 1) * gap + 1 for taps, gap in zip(window, dilations, strict=True)]
    right = [(out - 1) * stride + span - size - pad for out, stride, span, size, pad
             in zip(outs, strides, spans, sizes, left, strict=True)]
    return [numbers(values) for values in (strides, window, [gap - 1 for gap in dilations], left, right)]


def onednn(problem: Problem) -> Prepared | None:
    """A primitive that reads the problem's input in place and writes to its own output."""
    kind, x, out = algorithm(problem), problem.inputs[0], np.empty_like(problem.answer)
    if kind is None or x.ndim > 5 or x.dtype.name not in TYPES:
        return None
    openmp().omp_set_num_threads(problem.threads)
    handles = Handles()
    engine = handles.make("engine", "engine_create", CPU, c_size_t(0))
    stream = handles.make("stream", "stream_create", engine, IN_ORDER)
    source, from_memory = handles.array(x, problem.layout, engine)
    target, to_memory = handles.array(out, problem.layout, engine)
    described = handles.make(
        "primitive_desc", "pooling_forward_primitive_desc_create", engine, FORWARD_INFERENCE, kind, source, target,
        *geometry(problem), None)
    primitive = handles.make("primitive", "primitive_create", described)
    arguments = (Argument * 2)(Argument(SOURCE, from_memory), Argument(TARGET, to_memory))
    execute, wait = library().dnnl_primitive_execute, library().dnnl_stream_wait

    def call(keep: Any = (x, out, handles)) -> None:
        execute(primitive, stream, 2, arguments)
        wait(stream)
    return Prepared(call, lambda _: out)
