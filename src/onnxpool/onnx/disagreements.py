"""
Where runtimes are known to disagree with onnxpool, or cannot run a node: a table of conditions and warnings.

onnxpool's own answers, with the reasons, are in docs/decisions.md. The rows were found by running onnx 1.23.2 and
onnxruntime 1.31.1 and 1.32.0 on a CPU, and by reading their sources and issues. OpenVINO 2026.4.1 was read too.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from onnxpool.base import Operator
from onnxpool.windows import Axis, ceil_div

ORT, OPENVINO = "onnxruntime", "OpenVINO"
REFERENCE, INFERENCE = "onnx's ReferenceEvaluator", "onnx's shape inference"
RUNTIMES = {"onnxruntime": ORT, "openvino": OPENVINO, "reference": REFERENCE, "inference": INFERENCE}

AVERAGE, MAXIMUM, NORM = ("AveragePool",), ("MaxPool",), ("LpPool",)
POOLS = AVERAGE + MAXIMUM + NORM
QUANTISED = ("QLinearAveragePool", "NhwcMaxPool")
GLOBAL = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
REGIONS = ("MaxRoiPool", "RoiAlign")
QUANTISED_GLOBAL, UNPOOL = ("QLinearGlobalAveragePool",), ("MaxUnpool",)
EVERY = POOLS + QUANTISED + GLOBAL + REGIONS + QUANTISED_GLOBAL + UNPOOL

# What onnxruntime 1.31 and 1.32 have kernels for on a CPU. An operator is in the first table if a version has no
# kernel, and in the last one if its dtypes are not these floats. float16 is cast to float32, which the first opsets
# refuse.
ORT_VERSIONS = {"AveragePool": (7, 99), "LpPool": (2, 99), "GlobalLpPool": (2, 21), "MaxRoiPool": (1, 21),
                "RoiAlign": (10, 21)}
ORT_FLOATS, BYTES = ("float16", "float32"), ("int8", "uint8")
ORT_DTYPES = {"MaxPool": (*ORT_FLOATS, "float64", *BYTES), "RoiAlign": (*ORT_FLOATS, "float64"),
              **dict.fromkeys(QUANTISED + QUANTISED_GLOBAL, BYTES)}
ORT_CASTS_SINCE, ORT_DOUBLE_MAXIMUM_SINCE = 6, 8

LONG_SUM = 2**20  # elements: onnxruntime's float32 sum of more has lost its last digits
LARGEST_INT32, LARGEST_BYTE = 2**31 - 1, 255


def overhang(axis: Axis) -> int:
    """How many elements beyond input and padding the last window reaches."""
    return (axis.out - 1) * axis.stride + axis.span - axis.size - sum(axis.pads)


def room(axis: Axis) -> int:
    """How far a window can move within input and padding."""
    return axis.size + sum(axis.pads) - axis.span


class Case(NamedTuple):
    """A pooling node as far as it is known: without `shape` and `dtype` if its model leaves them open."""

    operator: Operator
    inputs: int
    dtype: str | None = None
    shape: tuple[int | str, ...] | None = None
    axes: tuple[Axis, ...] = ()  # of its windows; none if a size is open

    @property
    def name(self) -> str:
        """The ONNX operator."""
        return type(self.operator).__name__

    @property
    def version(self) -> int:
        """The operator's version."""
        return self.operator.version

    @property
    def rank(self) -> int | None:
        """The number of spatial axes."""
        if self.shape is not None:
            return len(self.shape) - 2
        kernel = self.operator.attributes.get("kernel_shape")
        return len(kernel) if isinstance(kernel, tuple) else None

    def has(self, attribute: str) -> bool:
        """Whether an attribute is given and not 0."""
        return bool(self.operator.attributes.get(attribute))

    @property
    def ceil(self) -> bool:
        """Whether output sizes are rounded up."""
        return self.has("ceil_mode")

    @property
    def mode(self) -> str:
        """The auto_pad."""
        return str(self.operator.attributes.get("auto_pad", "NOTSET"))

    @property
    def same(self) -> bool:
        """Whether pads follow from the shape."""
        return self.mode.startswith("SAME")

    @property
    def padded(self) -> bool:
        """Whether there is padding."""
        return any(map(any, (axis.pads for axis in self.axes)))

    @property
    def dilated(self) -> bool:
        """Whether windows have gaps."""
        return any(axis.dilation > 1 and axis.kernel > 1 for axis in self.axes)

    @property
    def empty(self) -> bool:
        """Whether a window holds padding only."""
        return any(axis.empty for axis in self.axes)

    @property
    def drops(self) -> bool:
        """Whether ceil_mode would have one window more, if that did not start in the padding."""
        return self.ceil and any(ceil_div(room(axis), axis.stride) + 1 > axis.out for axis in self.axes)

    def overhangs(self, least: int = 1) -> bool:
        """Whether ceil_mode has a window that reaches so far beyond input and padding."""
        return self.ceil and any(overhang(axis) >= least for axis in self.axes)

    def negative(self, least: int = 1) -> bool:
        """Whether SAME_* would need pads of less than zero, by so much on both sides together."""
        return self.same and any(overhang(axis) <= -least for axis in self.axes)

    @property
    def unit(self) -> bool:
        """Whether strides and dilations are 1, for which the reference has a way of its own."""
        return bool(self.axes) and all(axis.stride == axis.dilation == 1 for axis in self.axes)

    @property
    def taps(self) -> int:
        """The elements of a window."""
        return math.prod(axis.kernel for axis in self.axes)


def ort_lacks(case: Case) -> bool:
    """Whether onnxruntime has no kernel for the version or dtype."""
    first, last = ORT_VERSIONS.get(case.name, (1, 99))
    if not first <= case.version <= last:
        return True
    if case.dtype == "float16":
        return case.operator.opset < ORT_CASTS_SINCE
    if case.dtype == "float64" and case.name == "MaxPool":
        return case.version < ORT_DOUBLE_MAXIMUM_SINCE
    return case.dtype is not None and case.dtype not in ORT_DTYPES.get(case.name, ORT_FLOATS)


def ort_refuses_rank(case: Case) -> bool:
    """Whether onnxruntime refuses the number of spatial axes."""
    return case.rank is not None and (case.rank < 1 or (case.rank > 3 and case.name not in QUANTISED_GLOBAL))


def ort_refuses_negative(case: Case) -> bool:
    """Whether the kernel that onnxruntime takes for the node refuses negative pads."""
    if case.name in AVERAGE:
        return case.negative() and case.version < 19
    plain = not case.has("storage_order") and not case.operator.return_indices
    return case.negative() and plain and case.dtype in ORT_FLOATS and all(axis.dilation == 1 for axis in case.axes)


def pads_reach_kernel(case: Case) -> bool:
    """Whether a pad is given that is as large as the kernel before dilation."""
    kernel, pads = case.operator.attributes.get("kernel_shape", ()), case.operator.attributes.get("pads", ())
    return any(pad >= taps for pad, taps in zip(pads, kernel * 2, strict=False))


def reference_loses_pads(case: Case) -> bool:
    """Whether the reference's way for unit strides, which takes pads as top, bottom, left, right, goes wrong."""
    if case.rank != 2:
        return case.unit and (case.same or case.padded)
    swapped = not case.same and case.unit and case.axes[1].pads[0] != case.axes[0].pads[1]
    return case.unit and (swapped or (case.ceil and case.padded))


def reference_pads_lower(case: Case) -> bool:
    """Whether it shows that the reference takes SAME_LOWER for SAME_UPPER of a size rounded down."""
    return case.mode == "SAME_LOWER" and not case.unit and any(
        axis.pads[0] != axis.pads[1] or axis.size % axis.stride for axis in case.axes)


class Disagreement(NamedTuple):
    """A row: where the condition holds for one of the operators, the runtime does what the text says."""

    name: str
    runtime: str
    operators: tuple[str, ...]
    holds: Callable[[Case], bool]
    text: str
    values: bool = False  # whether only unusual values in the input show it
    before: tuple[int, ...] = ()  # the release that mended it

    @property
    def who(self) -> str:
        """The runtime, and its releases if they are not all."""
        return f"{self.runtime} before {'.'.join(map(str, self.before))}" if self.before else self.runtime


DISAGREEMENTS = (
    Disagreement(
        "ort-kernel", ORT, EVERY, ort_lacks,
        "has no kernel for this version and dtype (1.31 and 1.32 on a CPU)"),
    Disagreement(
        "ort-rank", ORT, POOLS + QUANTISED + GLOBAL + QUANTISED_GLOBAL + UNPOOL, ort_refuses_rank,
        "refuses this number of spatial axes"),
    Disagreement(
        "ort-pads", ORT, POOLS + QUANTISED, pads_reach_kernel,
        "refuses pads that are not smaller than kernel_shape, dilated or not"),
    Disagreement(
        "ort-empty-average", ORT, AVERAGE, lambda case: case.empty and not case.has("count_include_pad"),
        "returns 0 instead of NaN for a window that holds padding only"),
    Disagreement(
        "ort-empty-maximum", ORT, MAXIMUM, lambda case: case.empty and case.dtype not in BYTES,
        "returns the lowest finite number instead of -inf for a window that holds padding only"),
    Disagreement(
        "ort-empty-indices", ORT, MAXIMUM, lambda case: case.empty and case.operator.return_indices,
        "can return other Indices than -1 for a window that holds padding only"),
    Disagreement(
        "ort-same-dilations", ORT, POOLS + QUANTISED, lambda case: case.same and case.dilated,
        "leaves dilations out of SAME_* pads: another output shape"),
    Disagreement(
        "ort-same-strides", ORT, POOLS + QUANTISED, lambda case: case.negative(3 if case.mode == "SAME_LOWER" else 2),
        "takes negative pads where SAME_* strides exceed the kernel: other windows"),
    Disagreement(
        "ort-same-refused", ORT, AVERAGE + MAXIMUM, ort_refuses_negative,
        "computes negative pads where SAME_* strides exceed the kernel, and refuses them"),
    Disagreement(
        "ort-quantised-divisor", ORT, QUANTISED, lambda case: case.overhangs() and case.has("count_include_pad"),
        "divides a window of ceil_mode that overhangs by the whole kernel"),
    Disagreement(
        "ort-quantised-overflow", ORT, QUANTISED_GLOBAL, lambda case: case.taps > LARGEST_INT32 // LARGEST_BYTE,
        "can overflow its 32-bit sum of so many elements"),
    Disagreement(
        "ort-long-sum", ORT, AVERAGE + GLOBAL[:1], lambda case: case.taps >= LONG_SUM and case.dtype in ORT_FLOATS,
        "loses digits, because it adds so many elements one after another in float32"),
    Disagreement(
        "ort-unpool-shape", ORT, UNPOOL, lambda case: case.inputs > 2,
        "takes indices in the shape that output_shape gives, onnx's node test in the inferred one"),
    Disagreement(
        "old-ort-ceil", ORT, POOLS, lambda case: case.drops,
        "keeps the window of ceil_mode that starts in the padding: another output shape", before=(1, 21)),
    Disagreement(
        "old-ort-divisor", ORT, AVERAGE,
        lambda case: case.overhangs() and case.has("count_include_pad") and case.version < 19,
        "divides a window of ceil_mode that overhangs by the whole kernel", before=(1, 29)),
    Disagreement(
        "inference-ceil", INFERENCE, POOLS, lambda case: case.drops and case.version < 22,
        "keeps the window of ceil_mode that starts in the padding, so that a full check refuses the right shape"),
    Disagreement(
        "reference-missing", REFERENCE, (*QUANTISED, *QUANTISED_GLOBAL, "GlobalLpPool", "MaxRoiPool"),
        lambda case: True,
        "does not have this operator"),
    Disagreement(
        "reference-average-1", REFERENCE, AVERAGE, lambda case: case.version == 1 and case.padded,
        "counts padding at version 1"),
    Disagreement(
        "reference-ceil-average", REFERENCE, AVERAGE, lambda case: case.overhangs(2),
        "puts half of what a window of ceil_mode overhangs before the input"),
    Disagreement(
        "reference-ceil-norm", REFERENCE, NORM, lambda case: case.overhangs(),
        "takes a norm as a mean times the kernel, which is wrong where a window of ceil_mode overhangs"),
    Disagreement(
        "reference-ceil-dropped", REFERENCE, AVERAGE + NORM,
        lambda case: case.ceil and any(room(axis) // axis.stride + 1 > axis.out for axis in case.axes),
        "fails on the window of ceil_mode that starts in the padding"),
    Disagreement(
        "reference-auto-ceil", REFERENCE, AVERAGE + NORM, lambda case: case.ceil and case.mode != "NOTSET",
        "refuses auto_pad with ceil_mode"),
    Disagreement(
        "reference-valid-ceil", REFERENCE, MAXIMUM, lambda case: case.mode == "VALID" and case.overhangs(),
        "leaves ceil_mode out of auto_pad=VALID"),
    Disagreement(
        "reference-auto-dilations", REFERENCE, AVERAGE + NORM, lambda case: case.dilated and case.mode != "NOTSET",
        "leaves dilations out of auto_pad"),
    Disagreement(
        "reference-same-strides", REFERENCE, POOLS, lambda case: case.negative(),
        "takes negative pads where SAME_* strides exceed the kernel: other windows, or a failure"),
    Disagreement(
        "reference-same-lower", REFERENCE, MAXIMUM, reference_pads_lower,
        "pads SAME_LOWER as SAME_UPPER"),
    Disagreement(
        "reference-unit-pads", REFERENCE, MAXIMUM, reference_loses_pads,
        "fails on the pads of a MaxPool whose strides and dilations are 1, or exchanges them"),
    Disagreement(
        "reference-unit-indices", REFERENCE, MAXIMUM, lambda case: case.unit and case.operator.return_indices,
        "returns other Indices where strides and dilations are 1: anew in each channel, and without storage_order"),
    Disagreement(
        "reference-unit-int8", REFERENCE, MAXIMUM, lambda case: case.unit and case.rank == 2 and case.dtype == "int8",
        "pads with NaN, which int8 does not have, even if pads are 0"),
    Disagreement(
        "reference-empty-maximum", REFERENCE, MAXIMUM, lambda case: case.empty,
        "returns NaN, or fails, for a window that holds padding only"),
    Disagreement(
        "reference-global-rank", REFERENCE, ("GlobalMaxPool",), lambda case: case.rank not in (None, 2),
        "reduces the wrong axes unless two of them are spatial"),
    Disagreement(
        "reference-roi-align", REFERENCE, ("RoiAlign",), lambda case: case.version == 10,
        "moves regions by half a pixel, as only RoiAlign-16 does"),
    Disagreement(
        "openvino-missing", OPENVINO, ("MaxUnpool", "QLinearGlobalAveragePool", "NhwcMaxPool"), lambda case: True,
        "does not have this operator"),
    Disagreement(
        "openvino-float64", OPENVINO, POOLS + GLOBAL + REGIONS, lambda case: case.dtype == "float64",
        "computes float64 in float32"),
    Disagreement(
        "openvino-pads", OPENVINO, AVERAGE, pads_reach_kernel,
        "refuses pads that are not smaller than kernel_shape"),
    Disagreement(
        "openvino-ceil-average", OPENVINO, AVERAGE, lambda case: case.overhangs() and case.has("count_include_pad"),
        "has another divisor for a window of ceil_mode that overhangs"),
    Disagreement(
        "openvino-ceil-maximum", OPENVINO, MAXIMUM, lambda case: case.drops,
        "keeps the window of ceil_mode that starts in the padding: another output shape"),
    Disagreement(
        "openvino-ceil-norm", OPENVINO, NORM, lambda case: case.overhangs(),
        "takes a norm as a mean times the kernel, which is wrong where a window of ceil_mode overhangs"),
    Disagreement(
        "openvino-empty-maximum", OPENVINO, MAXIMUM, lambda case: case.empty,
        "returns the lowest finite number instead of -inf for a window that holds padding only"),
    Disagreement(
        "openvino-indices", OPENVINO, MAXIMUM,
        lambda case: case.operator.return_indices and case.has("storage_order"),
        "exchanges the axes of Indices for storage_order=1, instead of counting in that order"),
    Disagreement(
        "openvino-roi-align", OPENVINO, ("RoiAlign",), lambda case: not case.has("sampling_ratio"),
        "takes another number of samples where sampling_ratio is 0"),
    Disagreement(
        "ort-nan", ORT, (*MAXIMUM, "GlobalMaxPool"), lambda case: case.dtype not in BYTES,
        "does not always return NaN for a window with NaN: its place decides", values=True),
    Disagreement(
        "ort-infinite", ORT, (*MAXIMUM, "GlobalMaxPool"), lambda case: case.dtype not in BYTES,
        "can return the lowest finite number for a window of -inf", values=True),
    Disagreement(
        "ort-norm-range", ORT, (*NORM, "GlobalLpPool"), lambda case: True,
        "returns inf or 0 where powers leave the range of float32, though the norm does not", values=True),
    Disagreement(
        "reference-nan", REFERENCE, POOLS, lambda case: case.dtype not in BYTES,
        "takes NaN in the input for padding", values=True),
    Disagreement(
        "reference-norm-range", REFERENCE, NORM, lambda case: True,
        "returns inf or 0 where powers leave the dtype's range, though the norm does not", values=True),
    Disagreement(
        "openvino-nan", OPENVINO, (*MAXIMUM, "GlobalMaxPool"), lambda case: case.dtype not in BYTES,
        "returns the lowest finite number for a window of NaN", values=True),
)


class Filter(NamedTuple):
    """
    Which rows are wanted.

    Attributes
    ----------
    values : bool
        Whether those that only unusual values show are wanted too.
    runtimes : mapping of str to tuple of int, optional
        The runtimes, as the rows name them, each with its release, which is empty for any. None stands for all.
    ignored : collection of str
        Names of rows that are not wanted.
    """

    values: bool = False
    runtimes: Mapping[str, tuple[int, ...]] | None = None
    ignored: Collection[str] = ()

    def wants(self, row: Disagreement) -> bool:
        """Whether a row is wanted."""
        if row.name in self.ignored or (row.values and not self.values):
            return False
        if self.runtimes is None:
            return True
        release = self.runtimes.get(row.runtime)
        return release is not None and (not release or not row.before or release < row.before)


COMMON = Filter()


def disagreements(case: Case, wanted: Filter = COMMON) -> list[Disagreement]:
    """The rows of the table that hold for a node."""
    return [row for row in DISAGREEMENTS if case.name in row.operators and wanted.wants(row) and row.holds(case)]
