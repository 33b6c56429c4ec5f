"""
Where runtimes are known to disagree with onnxpool, or cannot run a node: a table of conditions and warnings.

onnxpool's own answers, with the reasons, are in docs/decisions.md. The rows were found by running onnx 1.23.2 and
onnxruntime 1.31.1 on a CPU, and by reading their sources, those of OpenVINO 2026.4.1, and their issues.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from onnxpool.base import Operator
from onnxpool.windows import Axis

REFERENCE, INFERENCE = "onnx's ReferenceEvaluator", "onnx's shape inference"
ORT, OPENVINO = "onnxruntime", "OpenVINO"

POOLS = ("AveragePool", "MaxPool", "LpPool")
QUANTISED = ("QLinearAveragePool", "NhwcMaxPool")
GLOBAL = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")

# What onnxruntime 1.31.1 has kernels for on a CPU, of what the standard has: operator -> (first, last) version.
# float16 runs as float32. Operators that are not here have all versions.
ORT_VERSIONS = {"AveragePool": (7, 99), "LpPool": (2, 99), "GlobalLpPool": (2, 21), "MaxRoiPool": (1, 21),
                "RoiAlign": (10, 21)}
ORT_DTYPES = {"MaxPool": ("float16", "float32", "float64", "int8", "uint8"),
              "RoiAlign": ("float16", "float32", "float64"),
              "QLinearAveragePool": ("int8", "uint8"), "QLinearGlobalAveragePool": ("int8", "uint8"),
              "NhwcMaxPool": ("int8", "uint8")}
ORT_FLOATS = ("float16", "float32")
LONG_SUM = 2**20  # elements: onnxruntime's float32 sum of more has lost the last digits
INT32 = 2**31


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
    def mode(self) -> str:
        """The auto_pad."""
        return str(self.operator.attributes.get("auto_pad", "NOTSET"))

    @property
    def rank(self) -> int | None:
        """The number of spatial axes."""
        if self.shape is not None:
            return len(self.shape) - 2
        kernel = self.operator.attributes.get("kernel_shape")
        return len(kernel) if isinstance(kernel, tuple) else None

    def flag(self, attribute: str) -> bool:
        """Whether an attribute is given and not 0."""
        return bool(self.operator.attributes.get(attribute))


class Disagreement(NamedTuple):
    """A row: where the condition holds for one of the operators, `who` does what the text says."""

    name: str
    who: str
    operators: tuple[str, ...]
    holds: Callable[[Case], bool]
    text: str
    values: bool = False  # whether only unusual values in the input show it


def overhang(axis: Axis) -> int:
    """How many elements beyond input and padding the last window reaches."""
    return (axis.out - 1) * axis.stride + axis.span - axis.size - sum(axis.pads)


def room(axis: Axis) -> int:
    """How far a window can move within input and padding."""
    return axis.size + sum(axis.pads) - axis.span


def drops(axis: Axis) -> bool:
    """Whether ceil_mode would have one window more, if that did not start in the padding."""
    return -(-room(axis) // axis.stride) + 1 > axis.out


def shifts(case: Case) -> bool:
    """Whether onnxruntime's negative SAME_* pads, rounded towards 0, move windows."""
    return same(case) and any(overhang(axis) < -1 - (case.mode == "SAME_LOWER") for axis in case.axes)


def refuses_negative(case: Case) -> bool:
    """Whether the kernel that onnxruntime takes refuses negative pads."""
    if case.name == "MaxPool":
        plain = not case.flag("storage_order") and all(axis.dilation == 1 for axis in case.axes)
        return negative(case) and plain and case.dtype in ORT_FLOATS and not case.operator.return_indices
    return negative(case) and case.operator.version < 19


def any_axis(condition: Callable[[Axis], bool]) -> Callable[[Case], bool]:
    """Whether the condition holds for an axis."""
    return lambda case: any(map(condition, case.axes))


def both(*conditions: Callable[[Case], bool]) -> Callable[[Case], bool]:
    """Whether all conditions hold."""
    return lambda case: all(condition(case) for condition in conditions)


def flag(attribute: str) -> Callable[[Case], bool]:
    """Whether a flag is set."""
    return lambda case: case.flag(attribute)


def same(case: Case) -> bool:
    """Whether pads follow from the shape."""
    return case.mode.startswith("SAME")


def auto(case: Case) -> bool:
    """Whether auto_pad is in use."""
    return case.mode != "NOTSET"


dilated = any_axis(lambda axis: axis.dilation > 1 and axis.kernel > 1)
padded = any_axis(lambda axis: any(axis.pads))
empty = any_axis(lambda axis: bool((axis.inside == 0).any()))
negative = both(same, any_axis(lambda axis: overhang(axis) < 0))
overhanging = any_axis(lambda axis: overhang(axis) > 0)
oversized = any_axis(lambda axis: room(axis) <= -axis.stride)
ceil = flag("ceil_mode")


def taps(case: Case) -> int:
    """The elements of a window."""
    return math.prod(axis.kernel for axis in case.axes)


def unit(case: Case) -> bool:
    """Whether the reference takes its own way for strides and dilations of 1."""
    return all(axis.stride == axis.dilation == 1 for axis in case.axes) and bool(case.axes)


def unit_pads(case: Case) -> bool:
    """Whether the reference's own way for unit strides loses or exchanges pads: it is made for four equal ones."""
    if len(case.axes) != 2:
        return unit(case) and (same(case) or padded(case))
    swapped = not same(case) and case.axes[1].pads[0] != case.axes[0].pads[1]
    return unit(case) and (swapped or case.flag("ceil_mode") and padded(case))


def unit_indices(case: Case) -> bool:
    """Whether the reference's own way for unit strides returns Indices."""
    return unit(case) and case.operator.return_indices


def odd_same_lower(axis: Axis) -> bool:
    """Whether the reference's SAME_LOWER, which is SAME_UPPER of a size rounded down, is another."""
    return axis.pads[0] != axis.pads[1] or axis.size % axis.stride != 0


def ort_lacks(case: Case) -> bool:
    """Whether onnxruntime has no kernel for the version or dtype."""
    first, last = ORT_VERSIONS.get(case.name, (1, 99))
    lacks = not first <= case.operator.version <= last
    dtypes = ORT_DTYPES.get(case.name, ORT_FLOATS)
    if case.name == "MaxPool" and case.operator.version < 8:
        dtypes = ORT_FLOATS
    return lacks or case.dtype is not None and case.dtype not in dtypes


def ort_rank(case: Case) -> bool:
    """Whether onnxruntime refuses the number of spatial axes."""
    return case.rank is not None and not 1 <= case.rank <= 3


def pads_reach_kernel(case: Case) -> bool:
    """Whether an explicit pad is as large as the kernel before dilation."""
    kernel, pads = case.operator.attributes.get("kernel_shape", ()), case.operator.attributes.get("pads", ())
    return any(pad >= k for pad, k in zip(pads, kernel * 2, strict=False))


DISAGREEMENTS = (
    Disagreement("ort-kernel", ORT, (*POOLS, *QUANTISED, *GLOBAL, "QLinearGlobalAveragePool", "MaxUnpool", "MaxRoiPool",
                                     "RoiAlign"), ort_lacks,
                 "has no kernel for this version and dtype (1.31.1 on a CPU)"),
    Disagreement("ort-rank", ORT, (*POOLS, *QUANTISED, *GLOBAL, "MaxUnpool"), ort_rank,
                 "takes one to three spatial axes only"),
    Disagreement("ort-pads", ORT, (*POOLS, *QUANTISED), pads_reach_kernel,
                 "refuses pads that are not smaller than kernel_shape, dilated or not"),
    Disagreement("ort-empty-average", ORT, ("AveragePool", "QLinearAveragePool"),
                 lambda case: empty(case) and not case.flag("count_include_pad"),
                 "does not give NaN (AveragePool) or the zero point (QLinearAveragePool) for a window that holds padding "
                 "only"),
    Disagreement("ort-empty-maximum", ORT, ("MaxPool",), both(empty, lambda case: case.dtype not in ("int8", "uint8")),
                 "gives the lowest finite number instead of -inf for a window that holds padding only"),
    Disagreement("ort-same-dilations", ORT, (*POOLS, *QUANTISED), both(same, dilated),
                 "leaves dilations out of SAME_* pads: another output shape"),
    Disagreement("ort-same-strides", ORT, (*POOLS, *QUANTISED), shifts,
                 "takes negative pads where SAME_* strides exceed the kernel: other windows"),
    Disagreement("ort-same-refusal", ORT, ("AveragePool", "MaxPool"), refuses_negative,
                 "takes negative pads where SAME_* strides exceed the kernel, and then refuses them"),
    Disagreement("ort-ceil-oversized", ORT, (*POOLS, *QUANTISED), both(ceil, oversized),
                 "does not make the one window of ceil_mode if the kernel exceeds the padded input by a stride"),
    Disagreement("ort-quantised-divisor", ORT, ("QLinearAveragePool",),
                 both(ceil, flag("count_include_pad"), overhanging),
                 "divides a window that ceil_mode lets overhang by the whole kernel"),
    Disagreement("ort-quantised-overflow", ORT, ("QLinearGlobalAveragePool",), lambda case: taps(case) * 255 >= INT32,
                 "overflows its 32-bit sum of so many elements"),
    Disagreement("ort-long-sum", ORT, ("AveragePool", "GlobalAveragePool"),
                 lambda case: taps(case) >= LONG_SUM and case.dtype in ORT_FLOATS,
                 "adds so many elements one after another in float32: the last digits are lost"),
    Disagreement("ort-unpool-shape", ORT, ("MaxUnpool",), lambda case: case.inputs > 2,
                 "takes indices in the shape of output_shape, onnx's node test those of the inferred shape"),
    Disagreement("ort-1.20-ceil", "onnxruntime up to 1.20", POOLS, both(ceil, any_axis(drops)),
                 "keeps the window of ceil_mode that starts in the padding: another output shape"),
    Disagreement("ort-2026-divisor", "onnxruntime before July 2026", ("AveragePool",),
                 lambda case: case.operator.opset < 19 and case.flag("count_include_pad") and case.flag("ceil_mode")
                 and overhanging(case),
                 "divides a window that ceil_mode lets overhang by the whole kernel"),
    Disagreement("inference-ceil", INFERENCE, POOLS,
                 both(ceil, any_axis(drops), lambda case: case.operator.version < 22),
                 "declares the window of ceil_mode that starts in the padding, and a full check of the model refuses the "
                 "right shape"),
    Disagreement("reference-missing", REFERENCE,
                 ("GlobalLpPool", "MaxRoiPool", *QUANTISED, "QLinearGlobalAveragePool"), lambda case: True,
                 "does not have this operator"),
    Disagreement("reference-average-1", REFERENCE, ("AveragePool",), both(lambda case: case.operator.version == 1, padded),
                 "counts the padding at version 1"),
    Disagreement("reference-ceil-average", REFERENCE, ("AveragePool",), any_axis(lambda axis: overhang(axis) > 1),
                 "puts half of what a window of ceil_mode overhangs before the input"),
    Disagreement("reference-ceil-norm", REFERENCE, ("LpPool",), overhanging,
                 "takes the norm as a mean times the kernel, wrong where a window of ceil_mode overhangs"),
    Disagreement("reference-ceil-dropped", REFERENCE, ("AveragePool", "LpPool"), both(ceil, any_axis(lambda axis: room(axis) // axis.stride + 1 > axis.out)),
                 "still looks for the window of ceil_mode that starts in the padding"),
    Disagreement("reference-ceil-oversized", REFERENCE, POOLS, both(ceil, oversized),
                 "does not make the one window of ceil_mode if the kernel exceeds the padded input by a stride"),
    Disagreement("reference-auto-ceil", REFERENCE, ("AveragePool", "LpPool"), both(auto, ceil),
                 "refuses auto_pad with ceil_mode"),
    Disagreement("reference-valid-ceil", REFERENCE, ("MaxPool",),
                 both(ceil, overhanging, lambda case: case.mode == "VALID"), "leaves ceil_mode out of auto_pad=VALID"),
    Disagreement("reference-auto-dilations", REFERENCE, ("AveragePool", "LpPool"), both(auto, dilated),
                 "leaves dilations out of auto_pad"),
    Disagreement("reference-same-strides", REFERENCE, POOLS, negative,
                 "takes negative pads where SAME_* strides exceed the kernel: other windows, or a refusal"),
    Disagreement("reference-same-lower", REFERENCE, ("MaxPool",),
                 lambda case: case.mode == "SAME_LOWER" and not unit(case) and any(map(odd_same_lower, case.axes)),
                 "pads SAME_LOWER as SAME_UPPER"),
    Disagreement("reference-unit-pads", REFERENCE, ("MaxPool",), unit_pads,
                 "loses or exchanges the pads of a MaxPool with strides and dilations of 1, or fails"),
    Disagreement("reference-unit-indices", REFERENCE, ("MaxPool",), unit_indices,
                 "counts Indices anew in each channel, without storage_order, where strides and dilations are 1"),
    Disagreement("reference-unit-int8", REFERENCE, ("MaxPool",),
                 both(unit, lambda case: case.dtype == "int8" and case.rank == 2),
                 "pads with NaN, which int8 has not, if only by 0"),
    Disagreement("reference-empty", REFERENCE, ("MaxPool",), empty,
                 "gives NaN, or fails, for a window that holds padding only"),
    Disagreement("reference-global-rank", REFERENCE, ("GlobalMaxPool",), lambda case: case.rank not in (None, 2),
                 "reduces the wrong axes unless there are two spatial ones"),
    Disagreement("reference-roi-align-10", REFERENCE, ("RoiAlign",), lambda case: case.operator.version == 10,
                 "shifts regions by half a pixel, which came with RoiAlign-16"),
    Disagreement("openvino-missing", OPENVINO, ("MaxUnpool", "QLinearGlobalAveragePool", "NhwcMaxPool"),
                 lambda case: True, "does not have this operator"),
    Disagreement("openvino-float64", OPENVINO, (*POOLS, *GLOBAL, "MaxRoiPool", "RoiAlign"),
                 lambda case: case.dtype == "float64", "computes float64 in float32"),
    Disagreement("openvino-pads", OPENVINO, ("AveragePool",), pads_reach_kernel,
                 "refuses pads that are not smaller than kernel_shape"),
    Disagreement("openvino-ceil-maximum", OPENVINO, ("MaxPool",), both(ceil, any_axis(drops)),
                 "keeps the window of ceil_mode that starts in the padding: another output shape"),
    Disagreement("openvino-empty-maximum", OPENVINO, ("MaxPool",), empty,
                 "gives the lowest finite number instead of -inf for a window that holds padding only"),
    Disagreement("openvino-ceil-average", OPENVINO, ("AveragePool",),
                 both(ceil, flag("count_include_pad"), overhanging),
                 "has another divisor where a window of ceil_mode overhangs"),
    Disagreement("openvino-ceil-norm", OPENVINO, ("LpPool",), both(ceil, overhanging),
                 "takes the norm as a mean times the kernel, wrong where a window of ceil_mode overhangs"),
    Disagreement("openvino-indices", OPENVINO, ("MaxPool",),
                 lambda case: case.operator.return_indices and case.flag("storage_order"),
                 "transposes the tensor of Indices for storage_order=1, not what they say"),
    Disagreement("openvino-roi-align-grid", OPENVINO, ("RoiAlign",), lambda case: not case.flag("sampling_ratio"),
                 "chooses another number of samples where sampling_ratio is 0"),
    Disagreement("nan-maximum", f"{ORT}, {OPENVINO}", ("MaxPool", "GlobalMaxPool"),
                 lambda case: case.dtype not in ("int8", "uint8"),
                 "return NaN, another element or the lowest finite number for a window with NaN, depending on its place",
                 values=True),
    Disagreement("nan-reference", REFERENCE, POOLS, lambda case: case.dtype not in ("int8", "uint8"),
                 "takes NaN in the input for padding", values=True),
    Disagreement("infinite-maximum", f"{ORT}, {OPENVINO}", ("MaxPool", "GlobalMaxPool"),
                 lambda case: case.dtype not in ("int8", "uint8"),
                 "return the lowest finite number for a window of -inf only", values=True),
    Disagreement("overflowing-norm", f"{ORT}, {REFERENCE}", ("LpPool", "GlobalLpPool"), lambda case: True,
                 "return infinity or 0 where the powers leave the dtype's range, though the norm does not", values=True),
)


def disagreements(case: Case, *, values: bool = False) -> list[Disagreement]:
    """
    The rows of the table that hold for a node.

    Parameters
    ----------
    case : Case
    values : bool
        Whether those that only unusual values show are wanted too.
    """
    return [row for row in DISAGREEMENTS
            if case.name in row.operators and (values or not row.values) and row.holds(case)]
