"""The facts of a pooling node that decide whether runtimes disagree about it, and the rows of the table."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from onnxpool.base import Operator
from onnxpool.dtypes import DTYPES, FLOATS
from onnxpool.windows import Axis, ceil_div

from .surroundings import NOTHING, Surroundings

ORT, OPENVINO = "onnxruntime", "OpenVINO"
REFERENCE, INFERENCE = "onnx's ReferenceEvaluator", "onnx's shape inference"
TRACT, WEB, SIMPLIFIER, OPTIMIZER = "tract", "onnxruntime-web", "onnxsim", "onnxoptimizer"
RUNTIMES = {"onnxruntime": ORT, "openvino": OPENVINO, "reference": REFERENCE, "inference": INFERENCE,
            **{name: name for name in (TRACT, WEB, SIMPLIFIER, OPTIMIZER)}}
USUAL = (ORT, OPENVINO, REFERENCE, INFERENCE)  # runtimes whose rows are selected by default
NAMES = {runtime: name for name, runtime in RUNTIMES.items()}

AVERAGE, MAXIMUM, NORM = ("AveragePool",), ("MaxPool",), ("LpPool",)
GLOBAL_AVERAGE, GLOBAL_MAXIMUM, GLOBAL_NORM = ("GlobalAveragePool",), ("GlobalMaxPool",), ("GlobalLpPool",)
QLINEAR, NHWC, QUANTISED_GLOBAL = ("QLinearAveragePool",), ("NhwcMaxPool",), ("QLinearGlobalAveragePool",)
ROI_MAXIMUM, ALIGN, UNPOOL = ("MaxRoiPool",), ("RoiAlign",), ("MaxUnpool",)
POOLS, QUANTISED, REGIONS = AVERAGE + MAXIMUM + NORM, QLINEAR + NHWC, ROI_MAXIMUM + ALIGN
GLOBAL = GLOBAL_AVERAGE + GLOBAL_MAXIMUM + GLOBAL_NORM
EVERY = POOLS + QUANTISED + GLOBAL + REGIONS + QUANTISED_GLOBAL + UNPOOL


ORT_FLOATS = tuple(name for name in FLOATS if DTYPES[name].numpy and DTYPES[name].itemsize < 8)
LONG_SUM = 2**18  # elements: the error of a longer sum in float32, added one after another, can exceed 0.2 %
MOST_WINDOWS = 2**12  # maximum number of windows checked one by one; enough unless pads are a thousand times the kernel


def overhang(axis: Axis) -> int:
    """The number of elements by which the last window reaches beyond input and padding."""
    return (axis.out - 1) * axis.stride + axis.span - axis.size - sum(axis.pads)


def room(axis: Axis) -> int:
    """The distance by which a window can move within input and padding."""
    return axis.size + sum(axis.pads) - axis.span


def differ(pairs: Sequence[tuple[Axis, Axis]]) -> bool:
    """
    For each pair of axes, whether windows or divisors differ between the two.

    If a window is empty along one axis, its other axes do not matter, as results of empty windows are not compared.
    """
    if any(ours.out != theirs.out for ours, theirs in pairs):
        return True
    windows = [[(ours.window(index), theirs.window(index))
                for index in {*range(min(ours.out, MOST_WINDOWS)), ours.out - 1}] for ours, theirs in pairs]
    return any(all(any(both[side].taps for both in along) for along in windows)
               and any(both[side].taps and both[0] != both[1] for along in windows for both in along)
               for side in (0, 1))


def cuts_divisor(axis: Axis) -> bool:
    """Whether a window with elements overhangs input and padding, so that a mean divides by fewer than its taps."""
    last = map(axis.window, range(max(0, axis.out - MOST_WINDOWS), axis.out))
    return axis.counts_pads and any(window.taps and window.divisor < axis.kernel for window in last)


def starts_later(axis: Axis) -> bool:
    """Whether a window begins at an element other than the first one."""
    return any(axis.window(index).first > 0 for index in range(min(axis.out, MOST_WINDOWS)))


def most_taps(axis: Axis) -> int:
    """The largest number of taps that a window has inside the input."""
    if axis.begin < axis.end:
        return axis.kernel
    return max((axis.window(index).taps for index in range(min(axis.out, MOST_WINDOWS))), default=0)


def leaves_first(axis: Axis) -> bool:
    """Whether a window has a tap on an element other than the first one."""
    windows = map(axis.window, range(min(axis.out, MOST_WINDOWS)))
    return any(window.taps and window.first + (window.taps - 1) * axis.dilation for window in windows)


class Case(NamedTuple):
    """The known facts of a pooling node, without `shape` and `dtype` if its model leaves them open."""

    operator: Operator
    inputs: tuple[bool, ...]  # whether each input has a name; optional inputs may have an empty one
    dtype: str | None = None
    shape: tuple[int | str, ...] | None = None
    axes: tuple[Axis, ...] = ()  # the windows of each axis; None if a size is unknown
    output: tuple[int, ...] = ()  # the shape that follows from these sizes; None if one is unknown
    around: Surroundings = NOTHING

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
        """Whether an attribute is not 0."""
        return bool(self.operator._values.get(attribute))

    @property
    def ceil(self) -> bool:
        """Whether output sizes are rounded up."""
        return self.has("ceil_mode")

    @property
    def mode(self) -> str:
        """The auto_pad."""
        return str(self.operator._values.get("auto_pad", "NOTSET"))

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
        """Whether a window lies entirely in the padding."""
        return any(axis.empty for axis in self.axes)

    @property
    def drops(self) -> bool:
        """Whether ceil_mode adds a window that is dropped, because it starts in the padding."""
        return self.ceil and any(ceil_div(room(axis), axis.stride) + 1 > axis.out for axis in self.axes)

    def overhangs(self, least: int = 1) -> bool:
        """Whether ceil_mode has a window that reaches this far beyond input and padding."""
        return self.ceil and any(overhang(axis) >= least for axis in self.axes)

    def negative(self, least: int = 1) -> bool:
        """Whether SAME_* would need negative pads of this total size."""
        return self.same and any(overhang(axis) <= -least for axis in self.axes)

    @property
    def unit(self) -> bool:
        """Whether strides and dilations are 1, for which the reference has a separate implementation."""
        return bool(self.axes) and all(axis.stride == axis.dilation == 1 for axis in self.axes)

    @property
    def taps(self) -> int:
        """The number of elements of a window."""
        return math.prod(axis.kernel for axis in self.axes)

    @property
    def most(self) -> int:
        """The largest number of input elements in a window."""
        return math.prod(map(most_taps, self.axes))

    @property
    def pointlike(self) -> bool:
        """Whether images have one element."""
        return self.shape is not None and self.shape[2:] == (1, 1)

    @property
    def channels(self) -> int | str | None:
        """The size of the channel axis of a channels-first array."""
        return None if self.shape is None else self.shape[1]

    @property
    def p(self) -> float:
        """The exponent of a norm."""
        p: float = self.operator._values.get("p", 2)
        return p

    @property
    def sums_samples(self) -> bool:
        """Whether the mean over a region may be taken over more than one sample."""
        given = self.operator.attributes
        return not (given.get("mode") == "max" or given.get("sampling_ratio") == 1)

    def long_sum(self, lanes: int) -> bool:
        """Whether the error of a sum in float32, split into this many parts, can exceed 0.2 %."""
        return self.taps >= LONG_SUM * lanes and self.dtype in ORT_FLOATS


def divides_by_fewer(case: Case) -> bool:
    """Whether a mean with count_include_pad divides by fewer than the taps of the kernel, because of ceil_mode."""
    return case.most > 0 and any(map(cuts_divisor, case.axes))


def pads_reach_kernel(case: Case) -> bool:
    """Whether a pad is given that is as large as the kernel before dilation."""
    kernel, pads = case.operator.attributes.get("kernel_shape", ()), case.operator.attributes.get("pads", ())
    return any(pad >= taps for pad, taps in zip(pads, kernel * 2, strict=False))


class Disagreement(NamedTuple):
    """A row: if the condition holds for one of the operators, the runtime behaves as the text says."""

    name: str
    runtime: str
    operators: tuple[str, ...]
    holds: Callable[[Case], bool]
    text: str
    values: str = ""  # the unusual values that reveal the disagreement; empty if ordinary values do
    before: tuple[int, ...] = ()  # the release that fixed it

    @property
    def who(self) -> str:
        """The runtime, with its releases unless the row applies to all."""
        return f"{self.runtime} before {'.'.join(map(str, self.before))}" if self.before else self.runtime
