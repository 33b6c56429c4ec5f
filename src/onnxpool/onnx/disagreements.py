"""
Where runtimes are known to disagree with onnxpool, or cannot run a node: a table of conditions and warnings.

docs/reference/decisions.md has onnxpool's own answers, with reasons. Rows about kernels, and all rows about tract and
onnxruntime-web, follow from runs of the conformance suite: `tools/derive_disagreements.py` writes them to
disagreements.json, as conjunctions of `CONDITIONS`. Other rows describe onnx 1.23.2, onnxruntime 1.32.0 and OpenVINO
2026.4.1 on a CPU. `tools/sweep_disagreements.py` tests them with random nodes, and finds missing and needless warnings.

If a runtime has a rule of its own, such as its pads for SAME_*, a row applies that rule, and compares
the outcome with onnxpool's.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from onnxpool.dtypes import BYTES, DTYPES, FLOATS
from onnxpool.kernels import available
from onnxpool.windows import Axis, ceil_div

from .cases import (
    ALIGN,
    AVERAGE,
    GLOBAL,
    GLOBAL_AVERAGE,
    GLOBAL_MAXIMUM,
    GLOBAL_NORM,
    INFERENCE,
    MAXIMUM,
    MOST_WINDOWS,
    NORM,
    OPENVINO,
    OPTIMIZER,
    ORT,
    ORT_FLOATS,
    POOLS,
    QLINEAR,
    QUANTISED,
    QUANTISED_GLOBAL,
    REFERENCE,
    REGIONS,
    SIMPLIFIER,
    TRACT,
    UNPOOL,
    USUAL,
    WEB,
    Case,
    Disagreement,
    differ,
    divides_by_fewer,
    leaves_first,
    most_taps,
    overhang,
    pads_reach_kernel,
    room,
    starts_later,
)
from .derived import behaviour_rows, kernel_rows

HALVES = tuple(name for name in FLOATS if DTYPES[name].itemsize == 2)

LARGEST_BFLOAT16_COUNT = 256  # the largest sum of ones in bfloat16
ORT_LARGEST_KERNEL, ORT_LONGEST_ROW, ORT_VECTOR = 32, 2045, 4  # limits of its loops for rows, and size of their vectors
LARGEST_INT32, LARGEST_BYTE = 2**31 - 1, 255


def ort_refuses_negative(case: Case) -> bool:
    """Whether the kernel that onnxruntime uses for the node refuses negative pads."""
    if case.name in AVERAGE:
        strict = case.version < 19 and not (case.ceil and case.has("count_include_pad"))
    else:
        strict = ort_plain(case)
    return strict and case.negative() and not ort_blocked(case)


def truncated(a: int, b: int) -> int:
    """a / b, rounded towards 0 as C does."""
    return abs(a) // b if a >= 0 else -(-a // b)


def ort_axis(axis: Axis, mode: str, ceil: bool, cuts: bool) -> Axis:
    """The windows with onnxruntime's pads for SAME_*; a negative pad may cut off the end of the input."""
    needed = (ceil_div(axis.size, axis.stride) - 1) * axis.stride + axis.kernel - axis.size
    head = truncated(needed + (mode == "SAME_LOWER"), 2)
    room = axis.size + needed - axis.span
    out = (ceil_div(room, axis.stride) if ceil else truncated(room, axis.stride)) + 1
    if ceil and (out - 1) * axis.stride >= axis.size + head:
        out -= 1
    tail = needed - head
    size = axis.size + min(0, tail) * cuts
    return Axis(size, out, axis.kernel, axis.stride, axis.dilation, (head, tail), axis.counts_pads)


def ort_moves(case: Case) -> bool:
    """Whether onnxruntime has other windows for SAME_*."""
    cuts = case.name in AVERAGE and not case.has("count_include_pad")
    return case.same and differ([(axis, ort_axis(axis, case.mode, case.ceil, cuts)) for axis in case.axes])


def ort_plain(case: Case) -> bool:
    """Whether onnxruntime uses its loops for float32 maxima without Indices, storage_order and dilations."""
    return (not case.has("storage_order") and not case.operator.return_indices and case.dtype in ORT_FLOATS
            and all(axis.dilation == 1 for axis in case.axes))


def ort_block() -> int:
    """The number of channels in onnxruntime's blocks, whose float32 elements fill this processor's largest register."""
    return 16 if "x86_v4" in available() else 8


def ort_blocked(case: Case) -> bool:
    """Whether onnxruntime interleaves blocks of channels, as it does if blocks divide the channels evenly."""
    return (case.rank == 2 and case.dtype == "float32" and not case.operator.return_indices
            and isinstance(case.channels, int) and case.channels % ort_block() == 0)


def ort_vectors(case: Case) -> bool:
    """Whether these loops use vectors. If so, they reduce the rows of a window first, and then the last axis."""
    whole = bool(case.axes) and all(axis.kernel == axis.size and axis.stride == 1 and axis.pads == (0, 0)
                                    for axis in case.axes)
    return not whole and case.rank in (2, 3) and all(axis.kernel <= ORT_LARGEST_KERNEL for axis in case.axes) and all(
        axis.stride <= 2 and axis.size + sum(axis.pads) <= ORT_LONGEST_ROW for axis in case.axes[-1:])


def ort_starts_finite(case: Case) -> bool:
    """Whether onnxruntime's maximum starts with the lowest finite number, and keeps it as long as nothing is larger."""
    if case.name in GLOBAL_MAXIMUM:
        return True
    inside = all((axis.begin, axis.end) == (0, axis.out) for axis in case.axes[-1:])  # padding is that number, too
    return ort_plain(case) and not (case.rank == 2 and ort_vectors(case) and inside)  # vectors start with an element


def ort_drops_nan(case: Case) -> bool:
    """Whether onnxruntime loses a NaN: vector code keeps NaN only as the last element, scalar code as the first."""
    if case.most > 1:
        return case.dtype not in BYTES
    if not case.most or ort_blocked(case):
        return False
    if case.name in GLOBAL_MAXIMUM or not ort_vectors(case):
        return ort_starts_finite(case)
    return ort_plain(case) and any(ort_drops_alone(axis, case.rank == 3) for axis in case.axes[-1:])


def ort_drops_alone(axis: Axis, finite: bool) -> bool:
    """Whether a window with one element along the last axis loses a NaN: before padding, or beyond whole vectors."""
    beyond = axis.size - axis.size % ORT_VECTOR if finite else axis.size  # there, maxima start with a finite number
    windows = ((index * axis.stride - axis.pads[0] + axis.span - 1, axis.window(index))
               for index in range(min(axis.out, MOST_WINDOWS)))
    return any(window.taps and (window.first >= beyond or window.first < last) for last, window in windows)


def orders_differ(case: Case) -> bool:
    """Whether a window has an element whose column-major position differs from its row-major one."""
    sizes = [axis.size for axis in case.axes]
    return any(math.prod(sizes[:i]) != math.prod(sizes[i + 1:]) and leaves_first(axis)
               for i, axis in enumerate(case.axes))


def openvino_crashes(case: Case) -> bool:
    """Whether OpenVINO transposes 8 channels of 8 bfloat16 numbers, for which its code with AVX2 is wrong."""
    return (case.dtype == "bfloat16" and isinstance(case.channels, int) and case.channels % 8 == 0
            and math.prod(case.output[2:]) == 8 and available()[0] == "x86_v3")


def openvino_transposes(case: Case) -> bool:
    """Whether the node reveals that OpenVINO transposes the tensor of Indices, but counts them in row-major order."""
    if not (case.operator.return_indices and case.has("storage_order")):
        return False
    outs = [axis.out for axis in case.axes]
    sizes = [axis.size for axis in case.axes]
    if outs != outs[::-1]:
        return True

    def elements(indices: tuple[int, ...]) -> list[range]:
        windows = [(axis.window(index), axis.dilation) for axis, index in zip(case.axes, indices, strict=True)]
        return [range(window.first, window.first + window.taps * step, step) for window, step in windows]

    def shows(indices: tuple[int, ...]) -> bool:
        ours, theirs = elements(indices), elements(indices[::-1])
        if not all(ours) or not all(theirs):
            return all(ours) != all(theirs)
        if place((taps[0] for taps in ours[::-1]), sizes[::-1]) != place((taps[0] for taps in theirs), sizes):
            return True
        if all(len(taps) == 1 for taps in (*ours, *theirs)):
            return False
        return ours != theirs or any(len(taps) > 1 and math.prod(sizes[:i]) != math.prod(sizes[i + 1:])
                                     for i, taps in enumerate(ours))

    return any(map(shows, itertools.islice(itertools.product(*map(range, outs)), MOST_WINDOWS)))


def openvino_truncates(case: Case) -> bool:
    """Whether the node reveals OpenVINO's arithmetic of quantised means, or that it ignores channels_last."""
    return case.most > 0 or (case.operator.channels_last and case.shape is not None and len(set(case.shape[1:])) > 1)


def openvino_stays_first(case: Case) -> bool:
    """Whether the node reveals that OpenVINO's Indices start at the first element, until an element is larger."""
    return case.operator.return_indices and any(map(starts_later, case.axes)) and case.most > 0


def shrinks_regions(case: Case) -> bool:
    """Whether a region may have no samples, because its size determines the number of samples, and may be below 1."""
    whole = case.operator.attributes.get("coordinate_transformation_mode") == "output_half_pixel" or case.version < 16
    return not case.has("sampling_ratio") and not whole


def openvino_shrinks_regions(case: Case) -> bool:
    """Whether a region may have no samples in OpenVINO, which takes one sample if sampling_ratio is omitted."""
    return shrinks_regions(case) and "sampling_ratio" in case.operator.attributes


def reference_leaves_range(case: Case) -> bool:
    """Whether the reference computes powers outside the range of the dtype; a float p turns float16 into float32."""
    wide = case.dtype == "float16" and case.version == 1 and "p" in case.operator.attributes
    return case.p != 1 and case.most > 0 and not wide


def in_bfloat16(value: float) -> float:
    """The nearest number of bfloat16, ties to even."""
    digits = DTYPES["bfloat16"].digits
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(fraction, digits)), exponent - digits)


def reference_stalls(case: Case) -> bool:
    """Whether the reference's result for an input of ones is off by more than 10 %, because it adds in bfloat16."""
    count = LARGEST_BFLOAT16_COUNT
    if case.dtype != "bfloat16" or case.most <= count:
        return False
    if case.name in NORM:  # the reference multiplies a mean by the number of taps
        ours, theirs = case.most ** (1 / case.p), (case.taps * in_bfloat16(count / case.taps)) ** (1 / case.p)
    else:
        divisor = case.taps if case.has("count_include_pad") else case.most
        ours, theirs = case.most / divisor, count / divisor
    ours = in_bfloat16(ours)
    return ours - in_bfloat16(theirs) > 0.1 * max(ours, 1)


def reference_counts_otherwise(case: Case) -> bool:
    """Whether the node reveals how the reference counts Indices in its implementation for unit strides."""
    if not (case.operator.return_indices and case.unit) or case.shape is None:
        return False
    if case.shape[:2] != (1, 1) or (case.has("storage_order") and orders_differ(case)):
        return True
    return reference_misplaces(case)


def reference_mistakes_infinity(case: Case) -> bool:
    """
    Whether the reference's Indices are wrong for a window full of inf, or of -inf, in its code for unit strides.

    Before looking for the maximum, it replaces infinities with the largest finite numbers, and padding with the minimum
    of the window. In a window of inf it then chooses padding, and in a window of -inf the first element.
    """
    return case.operator.return_indices and case.unit and reference_misplaces(case, infinities=True)


def reference_misplaces(case: Case, infinities: bool = False) -> bool:
    """Whether the reference's code for unit strides converts a position in a window to the index of another element."""
    if case.rank != 2 and any(axis.pads[0] for axis in case.axes):
        return True
    sizes, kernel, outs = zip(*((axis.size, axis.kernel, axis.out) for axis in case.axes), strict=True)
    heads = [0 if case.same else axis.pads[0] for axis in case.axes]  # for SAME_*, it uses the pads of NOTSET
    taps = list(itertools.islice(itertools.product(*map(range, kernel)), MOST_WINDOWS))
    # Windows inside the input are all alike.
    borders = [{*range(min(axis.out, axis.pads[0] + 1, MOST_WINDOWS)),
                *range(max(0, axis.out - min(axis.pads[1] + 1, MOST_WINDOWS)), axis.out)} for axis in case.axes]
    for at in itertools.islice(itertools.product(*borders), 16 * MOST_WINDOWS // len(taps)):
        begins = [window - axis.pads[0] for window, axis in zip(at, case.axes, strict=True)]
        places = [[begin + each for begin, each in zip(begins, tap, strict=True)] for tap in taps]
        inside = [all(0 <= each < size for each, size in zip(coordinates, sizes, strict=True))
                  for coordinates in places]
        index = [place(coordinates, sizes) if within else -1
                 for coordinates, within in zip(places, inside, strict=True)]
        first = index[inside.index(True)] if True in inside else -1
        chosen = [(0, first)]  # if all elements are equal, the first place, even if it is padding
        if sum(inside) > 1 or infinities:
            chosen += [(tap, index[tap]) for tap in range(len(taps)) if inside[tap]]
        if infinities and False in inside:
            chosen.append((inside.index(False), first))
        if case.dtype == "bfloat16" and False in inside:  # padding, which is NaN, is always chosen
            chosen = [(inside.index(False), right) for right in index if right >= 0 or first < 0]
        for tap, right in chosen:
            theirs = [digit + window - head for digit, window, head in
                      zip(digits(place(taps[tap], kernel), outs), at, heads, strict=True)]
            if place(theirs, sizes) != right:
                return True
    return False


def place(coordinates: Iterable[int], sizes: Iterable[int]) -> int:
    """The position of an element in row-major order."""
    number = 0
    for coordinate, size in zip(coordinates, sizes, strict=True):
        number = number * size + coordinate
    return number


def digits(number: int, sizes: Sequence[int]) -> list[int]:
    """The coordinates of a position; the first coordinate may be too large."""
    found: list[int] = []
    for size in reversed(sizes[1:]):
        number, digit = divmod(number, size)
        found.append(digit)
    return [number, *reversed(found)]


def reference_drops_nan(case: Case) -> bool:
    """Whether the node reveals that the reference treats NaN as padding, and leaves it out of windows."""
    if case.name in MAXIMUM:
        return case.dtype not in BYTES and (case.most > 1 or case.unit)
    if case.name in AVERAGE:
        return case.most > 1 and not case.has("count_include_pad")
    return case.taps > 1 and case.most > 0


def inference_ignores_mode(case: Case) -> bool:
    """Whether the node reveals that onnx's inference uses given pads, even if all are 0, instead of auto_pad."""
    def differs(axis: Axis) -> bool:
        free = axis.size - axis.span
        if case.ceil and case.version < 22:
            return ceil_div(free, axis.stride) + 1 != axis.out
        out = truncated(free + (axis.stride - 1) * case.ceil, axis.stride) + 1
        if case.ceil and (out - 1) * axis.stride >= axis.size:
            out -= 1
        return out != axis.out

    return "pads" in case.operator.attributes and case.same and any(map(differs, case.axes))


def reference_counts_pads(case: Case) -> bool:
    """Whether the node reveals that the reference counts padding at version 1."""
    return case.version == 1 and not all((axis.begin, axis.end) == (0, axis.out) for axis in case.axes)


def reference_loses_pads(case: Case) -> bool:
    """Whether the reference errs in its implementation for unit strides, which expects pads in another order."""
    if case.rank != 2:  # it does not pad, but counts the pads at the beginning in the size of the output
        theirs = [Axis(axis.size, axis.size + axis.pads[0] - axis.kernel + 1, axis.kernel, 1, 1, (0, axis.pads[0]))
                  for axis in case.axes]
        return case.unit and (case.same or (case.padded and (
            not case.ceil or differ(list(zip(case.axes, theirs, strict=True))))))
    swapped = not case.same and case.unit and case.axes[1].pads[0] != case.axes[0].pads[1]
    return case.unit and (swapped or (case.ceil and case.padded and not case.same))


def reference_pads_lower(case: Case) -> bool:
    """Whether the node reveals that the reference treats SAME_LOWER as SAME_UPPER with a size rounded down."""
    upper = [Axis(axis.size, axis.out, axis.kernel, axis.stride, axis.dilation, axis.pads[::-1]) for axis in case.axes]
    return case.mode == "SAME_LOWER" and not case.unit and (
        any(axis.size % axis.stride for axis in case.axes) or differ(list(zip(case.axes, upper, strict=True))))


def reference_axis(axis: Axis, mode: str) -> tuple[int, Axis]:
    """The windows that the reference computes for a mean or norm, and their number. All other results are 0."""
    cut, out = 0, axis.out
    if mode == "NOTSET":  # half of the overhang becomes padding before the input, and the input's end is cut off
        extra = max(0, overhang(axis))
        head, tail, padding = axis.pads[0] + extra // 2, axis.pads[1] - extra // 2, sum(axis.pads) + extra
        cut, tail = max(0, -tail), max(0, tail)
    else:
        padding = (axis.out - 1) * axis.stride + axis.kernel - axis.size if mode.startswith("SAME") else 0
        head = padding // 2 if mode == "SAME_UPPER" else padding - padding // 2
        tail = padding - head
        out = (axis.size - axis.kernel) // axis.stride + 1 if mode == "VALID" else out
    count = truncated(axis.size + padding - axis.span + axis.stride, axis.stride)
    return count, Axis(axis.size - cut, out, axis.kernel, axis.stride, axis.dilation, (head, tail),
                       axis.counts_pads)


def reference_moves(case: Case) -> bool:
    """Whether the reference has other windows for a mean or norm, or fails."""
    theirs = [reference_axis(axis, case.mode) for axis in case.axes]
    pairs = list(zip(case.axes, theirs, strict=True))
    if any(min(other.pads) < 0 or count > axis.out or other.out != axis.out for axis, (count, other) in pairs):
        return True
    norm, counts = case.name in NORM, case.has("count_include_pad")
    if not case.most and not math.prod(most_taps(other) * (count > 0) for count, other in theirs):
        return not (norm or counts) and any(count < axis.out for axis, (count, _) in pairs)  # NaN or 0
    return any(reference_moves_windows(axis, count, other, norm) for axis, (count, other) in pairs)


def reference_moves_windows(axis: Axis, count: int, other: Axis, norm: bool) -> bool:
    """Whether the reference, which computes this many windows along an axis, has other windows there."""
    whole = Axis(other.size, other.out, other.kernel, other.stride, other.dilation, other.pads, True)

    def same(index: int) -> bool:
        ours, theirs = axis.window(index), other.window(index)
        if index >= count:
            return not ours.taps and (norm or axis.counts_pads)
        if norm:  # the mean with padding, times the kernel
            return ours[:2] == theirs[:2] and (not ours.taps or whole.window(index).divisor == axis.kernel)
        return ours == theirs

    return not all(map(same, range(min(axis.out, MOST_WINDOWS))))


def merges(case: Case) -> bool:
    """Whether an optimiser that does not look at padding merges the Pad before a pool into the pool's pads."""
    return len(case.around.zeros) == 2 * len(case.operator.attributes["kernel_shape"])


def merges_average(case: Case) -> bool:
    """Whether an optimiser that looks at padding merges the Pad before a mean into pads that count."""
    own = any(case.operator.attributes.get("pads", ()))
    return merges(case) and case.mode == "NOTSET" and (case.has("count_include_pad") or not own)


def ort_merges(case: Case) -> bool:
    """Whether onnxruntime merges the Pad before a pool into the pool's pads. For a mean, it does so if pads count."""
    if case.name in AVERAGE:
        return merges_average(case)
    return merges(case) and case.mode == "NOTSET" and not case.operator.return_indices


def ort_merged_pads(case: Case) -> tuple[int, ...]:
    """The sums of the pool's pads and the pads of the Pad before the pool."""
    zeros = case.around.zeros
    own = case.operator.attributes.get("pads", (0,) * len(zeros))
    return tuple(pad + more for pad, more in zip(own, zeros, strict=True))


def ort_refuses_merged(case: Case) -> bool:
    """Whether merged pads are as large as the kernel, which onnxruntime refuses."""
    return ort_merges(case) and not pads_reach_kernel(case) and any(
        pad >= taps for pad, taps in zip(ort_merged_pads(case), case.operator.attributes["kernel_shape"] * 2,
                                         strict=True))


def ort_merged_axes(case: Case) -> list[tuple[Axis, Axis]]:
    """The windows of each axis, with the node's pads and with onnxruntime's merged pads; empty without merging."""
    return merged_axes(case) if ort_merges(case) and not ort_refuses_merged(case) else []


def merged_axes(case: Case) -> list[tuple[Axis, Axis]]:
    """The windows of each axis, without and with the pads of the Pad before the pool."""
    zeros, rank = case.around.zeros, len(case.axes)
    pairs = []
    for i, axis in enumerate(case.axes):
        head, tail = zeros[i], zeros[i + rank]
        size, pads = axis.size - head - tail, (axis.pads[0] + head, axis.pads[1] + tail)
        out = axis.out
        while case.ceil and out > 1 and (out - 1) * axis.stride >= size + pads[0]:
            out -= 1
        pairs.append((axis, Axis(size, out, axis.kernel, axis.stride, axis.dilation, pads, axis.counts_pads)))
    return pairs


def simplified(prefix: str, runtime: str, operators: tuple[str, ...], merging: Callable[[Case], bool],
               before: tuple[int, ...] = ()) -> Iterator[Disagreement]:
    """The rows of an optimiser that merges the Pad before a pool into its pads."""
    def reads_zero(case: Case) -> bool:
        return any(ours.window(i).taps != theirs.window(i).taps for ours, theirs in merged_axes(case)
                   for i in range(min(ours.out, theirs.out, MOST_WINDOWS)))

    def drops(case: Case) -> bool:
        return merging(case) and any(ours.out != theirs.out for ours, theirs in merged_axes(case))

    def forgets(case: Case) -> bool:
        lost = case.name in MAXIMUM or not merges_average(case)
        return merging(case) and lost and (case.mode != "NOTSET" or (not drops(case) and reads_zero(case)))

    yield Disagreement(f"{prefix}-merged-ceil", runtime, operators, drops, (
        "merges the preceding Pad into the pool, which then drops the window of ceil_mode that starts in its zeros: "
        "another output shape"), before=before)
    if merging is merges:
        yield Disagreement(f"{prefix}-merged-zeros", runtime, operators, forgets, (
            "merges the preceding Pad into the pool, which then ignores its zeros: another maximum of negative "
            "elements, or a divisor that counts other elements"), before=before)


def ort_drops_merged(case: Case) -> bool:
    """Whether windows of ceil_mode start in zeros of the Pad, and are dropped once the zeros become padding."""
    return any(ours.out != theirs.out for ours, theirs in ort_merged_axes(case))


def ort_forgets_zeros(case: Case) -> bool:
    """Whether a window has other elements and a zero of the Pad before the pool, which merging turns into padding."""
    def reads_zero(ours: Axis, theirs: Axis) -> bool:
        return any(ours.window(i).taps != theirs.window(i).taps for i in range(min(ours.out, MOST_WINDOWS)))

    return not ort_drops_merged(case) and any(reads_zero(*pair) for pair in ort_merged_axes(case))


def ort_fuses(case: Case) -> bool:
    """Whether onnxruntime replaces a mean between DequantizeLinear and QuantizeLinear with QLinearAveragePool."""
    before, after = case.around.before, case.around.after
    if before is None or after is None or case.around.readers != 1:
        return False
    signed = [side.signed and not side.paired for side in (before, after)]  # pairs of int8 become pairs of uint8
    return signed[0] == signed[1]


def openvino_pools_quantised(case: Case) -> bool:
    """Whether OpenVINO pools 8-bit elements with a non-zero zero point, and windows reach into padding that counts."""
    before = case.around.before
    if before is None or before.zero_point == 0 or not (before.paired or case.around.after is not None):
        return False
    reaches = case.padded and any((axis.begin, axis.end) != (0, axis.out) for axis in case.axes)
    plain = not case.ceil and "dilations" not in case.operator.attributes
    return plain and reaches and case.has("count_include_pad")


DISAGREEMENTS = (
    *kernel_rows("ort", ORT),
    Disagreement(
        "ort-pads", ORT, POOLS + QUANTISED + UNPOOL, pads_reach_kernel,
        "refuses pads as large as the undilated kernel, or larger"),
    Disagreement(
        "ort-empty-average", ORT, AVERAGE,
        lambda case: case.empty and not case.has("count_include_pad") and not ort_blocked(case),
        "returns 0 instead of NaN for a window that holds padding only"),
    Disagreement(
        "ort-empty-maximum", ORT, MAXIMUM, lambda case: case.empty and case.dtype not in ("float16", *BYTES),
        "returns the lowest finite number instead of -inf for a window that holds padding only"),
    Disagreement(
        "ort-empty-indices", ORT, MAXIMUM,
        lambda case: case.empty and case.operator.return_indices and not (
            case.rank == 1 and case.shape is not None and case.shape[:2] == (1, 1)),
        "returns an index other than -1 for a window that holds padding only"),
    Disagreement(
        "ort-same-dilations", ORT, POOLS + QUANTISED, lambda case: case.dilated and ort_moves(case),
        "ignores dilations when it computes the pads of SAME_*: other windows, or another output shape"),
    Disagreement(
        "ort-same-strides", ORT, POOLS + QUANTISED, lambda case: not case.dilated and ort_moves(case),
        "uses negative pads for SAME_* if strides exceed the kernel: other windows"),
    Disagreement(
        "ort-same-refused", ORT, AVERAGE + MAXIMUM, ort_refuses_negative,
        "computes negative pads for SAME_* if strides exceed the kernel, and refuses them"),
    Disagreement(
        "ort-zero-points", ORT, QLINEAR, lambda case: not all(case.inputs),
        "refuses a node whose zero point has an empty name"),
    Disagreement(
        "ort-quantised-divisor", ORT, QLINEAR, divides_by_fewer,
        "divides by the whole kernel even if a window of ceil_mode overhangs the padding"),
    Disagreement(
        "ort-quantised-overflow", ORT, QUANTISED_GLOBAL, lambda case: case.taps > LARGEST_INT32 // LARGEST_BYTE,
        "may overflow, because it sums this many elements in 32 bits"),
    Disagreement(
        "ort-long-sum", ORT, AVERAGE + NORM + GLOBAL_AVERAGE,
        lambda case: case.long_sum(1 if case.name in AVERAGE and case.version >= 19 else 4),
        "may be off by more than 0.2 %, because it adds this many elements one after another in float32"),
    Disagreement(
        "ort-unpool-shape", ORT, UNPOOL,
        lambda case: any(case.inputs[2:]) and (not case.output or math.prod(case.output[:-1]) > 1),
        "takes indices to refer to output_shape; in onnx's node test, they refer to the inferred shape"),
    Disagreement(
        "old-ort-ceil", ORT, POOLS + QUANTISED, lambda case: case.drops and not case.same,
        "keeps the window of ceil_mode that starts in the padding: another output shape", before=(1, 21)),
    Disagreement(
        "old-ort-indices", ORT, MAXIMUM, lambda case: case.operator.return_indices and case.dtype in BYTES,
        "points to another place for a window of the lowest integer", values="lowest", before=(1, 29)),
    Disagreement(
        "old-ort-divisor", ORT, AVERAGE,
        lambda case: divides_by_fewer(case) and case.version < 19,
        "divides by the whole kernel even if a window of ceil_mode overhangs the padding", before=(1, 29)),
    Disagreement(
        "old-ort-divisor-19", ORT, AVERAGE,
        lambda case: divides_by_fewer(case) and case.version >= 19,
        "divides by the whole kernel even if a window of ceil_mode overhangs the padding", before=(1, 21)),
    Disagreement(
        "inference-ceil", INFERENCE, POOLS, lambda case: case.drops and case.version < 22,
        "keeps the window of ceil_mode that starts in the padding, so that a full check refuses the right shape"),
    Disagreement(
        "inference-pads", INFERENCE, POOLS, inference_ignores_mode,
        "ignores auto_pad if pads are given, even if all are 0: another output shape"),
    Disagreement(
        "reference-average-1", REFERENCE, AVERAGE, reference_counts_pads,
        "counts padding at version 1"),
    Disagreement(
        "reference-ceil-average", REFERENCE, AVERAGE,
        lambda case: case.overhangs() and case.mode == "NOTSET" and reference_moves(case),
        "moves half of the overhang of ceil_mode to the beginning of the input"),
    Disagreement(
        "reference-ceil-norm", REFERENCE, NORM,
        lambda case: case.overhangs() and case.mode == "NOTSET" and reference_moves(case),
        "computes a norm as a mean times the kernel size, which is wrong if a window of ceil_mode overhangs"),
    Disagreement(
        "reference-ceil-dropped", REFERENCE, AVERAGE + NORM,
        lambda case: case.ceil and any(room(axis) // axis.stride + 1 > axis.out for axis in case.axes),
        "fails on the window of ceil_mode that starts in the padding"),
    Disagreement(
        "reference-auto-ceil", REFERENCE, AVERAGE + NORM, lambda case: case.ceil and case.mode != "NOTSET",
        "refuses auto_pad with ceil_mode"),
    Disagreement(
        "reference-valid-ceil", REFERENCE, MAXIMUM, lambda case: case.mode == "VALID" and case.overhangs(),
        "ignores ceil_mode if auto_pad is VALID"),
    Disagreement(
        "reference-auto-dilations", REFERENCE, AVERAGE + NORM,
        lambda case: case.dilated and case.mode != "NOTSET" and reference_moves(case),
        "ignores dilations if auto_pad is given"),
    Disagreement(
        "reference-same-strides", REFERENCE, POOLS,
        lambda case: case.negative() and (case.most > 0 or case.dtype != "uint8"),
        "uses negative pads for SAME_* if strides exceed the kernel: other windows, or a failure"),
    Disagreement(
        "reference-same-lower", REFERENCE, MAXIMUM, reference_pads_lower,
        "pads SAME_LOWER like SAME_UPPER"),
    Disagreement(
        "reference-unit-pads", REFERENCE, MAXIMUM, reference_loses_pads,
        "fails on pads, or swaps them, if strides and dilations are 1"),
    Disagreement(
        "reference-unit-indices", REFERENCE, MAXIMUM, reference_counts_otherwise,
        "returns wrong Indices if strides and dilations are 1: it counts from 0 in each channel, ignores "
        "storage_order, and takes output sizes for kernel sizes"),
    Disagreement(
        "reference-unit-int8", REFERENCE, MAXIMUM, lambda case: case.unit and case.rank == 2 and case.dtype == "int8",
        "pads with NaN, which int8 cannot represent, even if pads are 0"),
    Disagreement(
        "reference-empty-maximum", REFERENCE, MAXIMUM,
        lambda case: case.empty and not (case.rank == 2 and case.dtype == "uint8"),
        "returns NaN, or fails, for a window that holds padding only"),
    Disagreement(
        "reference-global-rank", REFERENCE, GLOBAL_MAXIMUM, lambda case: case.rank not in (None, 2),
        "reduces the wrong axes unless there are two spatial ones"),
    Disagreement(
        "reference-roi-align", REFERENCE, ALIGN, lambda case: case.version == 10,
        "shifts regions by half a pixel, as only RoiAlign-16 and later versions do"),
    Disagreement(
        "reference-rank", REFERENCE, MAXIMUM + UNPOOL,
        lambda case: case.rank is not None and case.rank > 3 and not case.unit,
        "fails on more than three spatial axes"),
    Disagreement(
        "reference-norm-1", REFERENCE, NORM,
        lambda case: case.version == 1 and case.dtype == "float64" and math.frexp(case.p)[0] != 0.5 and case.most > 0,
        "rounds 1/p to float32 at version 1"),
    Disagreement(
        "reference-bfloat16", REFERENCE, AVERAGE + NORM + GLOBAL_AVERAGE, reference_stalls,
        "adds in bfloat16, in which a sum of equal numbers stops growing after 256 of them"),
    Disagreement(
        "openvino-version", OPENVINO, GLOBAL_NORM,
        lambda case: case.version == 1 and "p" in case.operator.attributes,
        "refuses the float p of version 1"),
    Disagreement(
        "openvino-global-rank", OPENVINO, GLOBAL_NORM, lambda case: case.rank == 0,
        "takes the norm over all axes if none is spatial"),
    Disagreement(
        "openvino-bfloat16-crash", OPENVINO, POOLS, openvino_crashes,
        "ends the process: bfloat16, 8 results per channel, and a multiple of 8 channels, on processors with AVX2 but "
        "without AVX-512"),
    Disagreement(
        "openvino-float64", OPENVINO, POOLS + GLOBAL + REGIONS,
        lambda case: case.dtype == "float64" and case.most > 0,
        "computes float64 in float32"),
    Disagreement(
        "openvino-pads", OPENVINO, AVERAGE + QLINEAR,
        lambda case: not case.has("count_include_pad") and any(max(axis.pads) >= axis.span for axis in case.axes),
        "refuses pads that are not smaller than the dilated kernel, unless count_include_pad is 1"),
    Disagreement(
        "openvino-oversized", OPENVINO, POOLS + QLINEAR,
        lambda case: any(room(axis) < 0 for axis in case.axes),
        "refuses ceil_mode where the kernel exceeds the padded input"),
    Disagreement(
        "openvino-ceil-average", OPENVINO, AVERAGE,
        lambda case: case.padded and divides_by_fewer(case),
        "divides by the whole kernel if there are pads, even if a window of ceil_mode overhangs them"),
    Disagreement(
        "openvino-ceil", OPENVINO, MAXIMUM + QLINEAR, lambda case: case.drops,
        "keeps the window of ceil_mode that starts in the padding: another output shape"),
    Disagreement(
        "openvino-ceil-norm", OPENVINO, NORM, lambda case: case.overhangs() and not case.padded and case.most > 0,
        "computes a norm as a mean times the kernel size, which is wrong if a window of ceil_mode overhangs"),
    Disagreement(
        "openvino-quantised", OPENVINO, QLINEAR, openvino_truncates,
        "truncates instead of rounding, wraps around instead of saturating, and ignores channels_last"),
    Disagreement(
        "openvino-empty-maximum", OPENVINO, MAXIMUM,
        lambda case: case.empty and case.dtype not in (*HALVES, *BYTES),
        "returns the lowest finite number instead of -inf for a window that holds padding only"),
    Disagreement(
        "openvino-empty-indices", OPENVINO, MAXIMUM, lambda case: case.empty and case.operator.return_indices,
        "returns an index other than -1 for a window that holds padding only"),
    Disagreement(
        "openvino-indices", OPENVINO, MAXIMUM, openvino_transposes,
        "transposes the tensor of Indices for storage_order=1, instead of counting in column-major order"),
    Disagreement(
        "openvino-roi-align", OPENVINO, ALIGN, lambda case: "sampling_ratio" not in case.operator.attributes,
        "takes a different number of samples if sampling_ratio is omitted"),
    Disagreement(
        "openvino-empty-regions", OPENVINO, ALIGN,
        lambda case: openvino_shrinks_regions(case) and case.operator.attributes.get("mode") != "max",
        "returns NaN for a region without samples, whose size is 0"),
    Disagreement(
        "openvino-roi-maximum", OPENVINO, ALIGN,
        lambda case: case.operator.attributes.get("mode") == "max" and not case.pointlike,
        "takes the maximum over interpolated samples instead of over their weighted neighbours"),
    Disagreement(
        "openvino-long-sum", OPENVINO, AVERAGE + NORM + GLOBAL_AVERAGE,
        lambda case: case.long_sum(16 if case.name in GLOBAL else 4 if case.name in NORM else 1),
        "may be off by more than 0.2 %, because it adds this many elements one after another in float32"),
    Disagreement(
        "ort-nan", ORT, MAXIMUM + GLOBAL_MAXIMUM, ort_drops_nan,
        "may lose a NaN in a window, depending on its position", values="NaN"),
    Disagreement(
        "ort-regions-nan", ORT, REGIONS,
        lambda case: case.name in ALIGN or not case.pointlike,
        "ignores NaN in a maximum, and returns NaN for samples beyond an image whose first element is NaN",
        values="NaN"),
    Disagreement(
        "ort-regions-infinite", ORT, REGIONS, lambda case: True,
        "returns a finite maximum of -inf, and NaN for samples beyond an image whose first element is infinite",
        values="infinity"),
    Disagreement(
        "ort-inverted-regions", ORT, ALIGN, shrinks_regions,
        "fails on a region that ends before it begins along one axis", values="inverted"),
    Disagreement(
        "ort-mean-range", ORT, AVERAGE + GLOBAL_AVERAGE, lambda case: case.most > 1 and case.dtype == "float32",
        "returns inf if a sum overflows float32, even though the mean does not", values="range"),
    Disagreement(
        "ort-regions-range", ORT, ALIGN,
        lambda case: case.sums_samples and case.dtype != "float16",
        "returns inf if a sum overflows the dtype, even though the mean does not", values="range"),
    Disagreement(
        "ort-infinite", ORT, MAXIMUM + GLOBAL_MAXIMUM,
        lambda case: case.dtype == "float32" and case.most > 0 and (ort_starts_finite(case) or ort_blocked(case)),
        "returns the lowest finite number for a window of -inf", values="infinity"),
    Disagreement(
        "ort-norm-range", ORT, NORM + GLOBAL_NORM,
        lambda case: case.p != 1 and case.dtype == "float32" and case.most > 0,
        "returns inf or 0 if powers overflow or underflow float32, even though the norm does not", values="range"),
    Disagreement(
        "reference-nan", REFERENCE, POOLS, reference_drops_nan,
        "treats NaN in the input as padding", values="NaN"),
    Disagreement(
        "reference-infinite-indices", REFERENCE, MAXIMUM, reference_mistakes_infinity,
        "returns Indices of padding, or wrong ones, for a window of infinities if strides and dilations are 1",
        values="infinity"),
    Disagreement(
        "reference-mean-range", REFERENCE, AVERAGE + GLOBAL_AVERAGE,
        lambda case: case.most > 1 and case.dtype != "float16",
        "returns inf if a sum overflows the dtype, even though the mean does not", values="range"),
    Disagreement(
        "reference-norm-range", REFERENCE, NORM, reference_leaves_range,
        "returns inf or 0 if powers overflow or underflow the dtype, even though the norm does not", values="range"),
    Disagreement(
        "reference-regions-nan", REFERENCE, ALIGN, lambda case: True,
        "returns NaN for samples beyond an image whose first element is NaN", values="NaN"),
    Disagreement(
        "reference-regions-infinite", REFERENCE, ALIGN, lambda case: True,
        "returns NaN for samples beyond an image whose first element is infinite", values="infinity"),
    Disagreement(
        "reference-regions-range", REFERENCE, ALIGN,
        lambda case: case.sums_samples,
        "returns inf if a sum overflows the dtype, even though the mean does not", values="range"),
    Disagreement(
        "openvino-nan", OPENVINO, MAXIMUM + GLOBAL_MAXIMUM,
        lambda case: case.dtype not in BYTES and case.most > (0 if case.name in MAXIMUM else 1),
        "returns the lowest finite number for a window of NaN", values="NaN"),
    Disagreement(
        "openvino-infinite", OPENVINO, MAXIMUM + GLOBAL_MAXIMUM,
        lambda case: case.dtype not in (*HALVES, *BYTES) and case.most > 0,
        "returns the lowest finite number for a window of -inf", values="infinity"),
    Disagreement(
        "openvino-infinite-indices", OPENVINO, MAXIMUM,
        lambda case: case.dtype not in BYTES and openvino_stays_first(case),
        "points to the first element of the array for a window of -inf", values="infinity"),
    Disagreement(
        "openvino-lowest-indices", OPENVINO, MAXIMUM,
        lambda case: case.dtype in BYTES and openvino_stays_first(case),
        "points to the first element of the array for a window of the lowest integer", values="lowest"),
    Disagreement(
        "openvino-mean-range", OPENVINO, AVERAGE + GLOBAL_AVERAGE,
        lambda case: case.most > 1 and case.dtype != "float16",
        "returns inf if a sum overflows float32, even though the mean does not", values="range"),
    Disagreement(
        "openvino-norm-range", OPENVINO, NORM + GLOBAL_NORM,
        lambda case: case.dtype != "float16" and case.p != 1 and case.most > 0,
        "returns inf or 0 if powers overflow or underflow float32, even though the norm does not", values="range"),
    Disagreement(
        "openvino-half-root", OPENVINO, GLOBAL_NORM,
        lambda case: case.dtype == "float16" and math.frexp(case.p)[0] != 0.5 and case.most > 0,
        "may be off by more than 0.2 % in large norms, because it rounds 1/p to float16", values="range"),
    Disagreement(
        "openvino-inverted-regions", OPENVINO, ALIGN, openvino_shrinks_regions,
        "does not write the result of a region that ends before it begins along one axis", values="inverted"),
    Disagreement(
        "openvino-regions-nan", OPENVINO, REGIONS,
        lambda case: case.name in ALIGN or not case.pointlike,
        "ignores NaN in a maximum, and returns NaN for samples beyond an image whose first element is NaN",
        values="NaN"),
    Disagreement(
        "openvino-regions-infinite", OPENVINO, ALIGN, lambda case: True,
        "returns NaN for samples beyond an image whose first element is infinite", values="infinity"),
    Disagreement(
        "openvino-regions-range", OPENVINO, ALIGN, lambda case: case.sums_samples and case.dtype != "float16",
        "returns inf if a sum overflows float32, even though the mean does not", values="range"),
    *kernel_rows("openvino", OPENVINO), *kernel_rows("reference", REFERENCE, False),
)


# Effects of runtimes' optimisers on a pool and the nodes around it, which no single node reveals.
OF_GRAPHS = (
    Disagreement(
        "ort-merged-pads", ORT, AVERAGE + MAXIMUM, ort_refuses_merged,
        "merges the preceding Pad into the pool, and then refuses pads as large as the kernel, or larger",
        before=(1, 32)),
    Disagreement(
        "ort-merged-ceil", ORT, AVERAGE + MAXIMUM, ort_drops_merged,
        "merges the preceding Pad into the pool, and then drops the window of ceil_mode that starts in its zeros: "
        "another output shape", before=(1, 32)),
    Disagreement(
        "ort-merged-maximum", ORT, MAXIMUM, ort_forgets_zeros,
        "merges the preceding Pad into the pool, and then ignores its zeros: another maximum of negative elements",
        before=(1, 32)),
    Disagreement(
        "ort-merged-average", ORT, AVERAGE, lambda case: not case.has("count_include_pad") and ort_forgets_zeros(case),
        "merges the preceding Pad into the pool, and then leaves its zeros out of the divisor", before=(1, 21)),
    Disagreement(
        "ort-fused-dilations", ORT, AVERAGE, lambda case: ort_fuses(case) and "dilations" in case.operator.attributes,
        "merges DequantizeLinear, the pool and QuantizeLinear into QLinearAveragePool, which has no dilations, and "
        "then refuses the model"),
    Disagreement(
        "ort-fused-divisor", ORT, AVERAGE,
        lambda case: ort_fuses(case) and "dilations" not in case.operator.attributes and divides_by_fewer(case),
        "merges DequantizeLinear, the pool and QuantizeLinear into QLinearAveragePool, which divides by the whole "
        "kernel even if a window of ceil_mode overhangs the padding"),
    Disagreement(
        "ort-signed-maximum", ORT, MAXIMUM,
        lambda case: case.around.before is not None and case.around.before.signed and case.around.after is None
        and case.around.readers == 1 and case.operator.opset >= 21,
        "inserts QuantizeLinear and DequantizeLinear of the wrong type after a maximum of dequantised int8, and then "
        "refuses the model"),
    Disagreement(
        "openvino-quantised-pads", OPENVINO, AVERAGE, openvino_pools_quantised,
        "pools before it dequantises, and pads with 0 instead of the zero point"),
    *simplified("onnxsim", SIMPLIFIER, AVERAGE, merges_average),
    *simplified("old-onnxsim", SIMPLIFIER, MAXIMUM, merges, before=(0, 7)),
    *simplified("old-onnxsim-mean", SIMPLIFIER, AVERAGE, merges, before=(0, 8)),
    *simplified("onnxoptimizer", OPTIMIZER, AVERAGE + MAXIMUM, merges),
)

# Rows of onnxruntime. Rows about the same loops hold in a browser, too.
RELATED = {row.name: row for row in DISAGREEMENTS if row.runtime == ORT and not row.before}
OF_RUNS = (*kernel_rows(TRACT, TRACT), *behaviour_rows(TRACT, {}),
           *kernel_rows(WEB, WEB), *behaviour_rows(WEB, RELATED))
TABLE = (*DISAGREEMENTS, *OF_RUNS, *OF_GRAPHS)


class Filter(NamedTuple):
    """
    Which rows are selected.

    Attributes
    ----------
    values : bool
        Whether to select also the rows that only unusual values reveal.
    runtimes : mapping of str to tuple of int, optional
        The runtimes, as named in the rows, each with its release, or an empty tuple for any release. None means
        onnxruntime, OpenVINO and onnx.
    ignored : collection of str
        Names of rows that are not selected.
    """

    values: bool = False
    runtimes: Mapping[str, tuple[int, ...]] | None = None
    ignored: Collection[str] = ()

    def wants(self, row: Disagreement) -> bool:
        """Whether a row is selected."""
        if row.name in self.ignored or (row.values and not self.values):
            return False
        if self.runtimes is None:
            return row.runtime in USUAL
        release = self.runtimes.get(row.runtime)
        return release is not None and (not release or not row.before or release < row.before)


COMMON = Filter()


def disagreements(case: Case, wanted: Filter = COMMON) -> list[Disagreement]:
    """The rows of the table that apply to a node."""
    return [row for row in TABLE if case.name in row.operators and wanted.wants(row) and row.holds(case)]
