"""Results that must have the same bits everywhere: about 320 cases, whose hashes are in `data/hashes.txt`.

    python tests/helpers/pinned.py --write

writes that file anew. Do so only if results are meant to change, and say why in the changelog. Without an option, the
program prints the hashes that each case has in all circumstances of `circumstances`, as JSON.

Inputs are made of raw bits and exact arithmetic, so they are the same for every release of NumPy. Norms of other orders
than 1 and 2 are left out, because they need functions of the C library, whose results depend on its release.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import float_states
import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from support import BYTE_NAMES, FLOAT_NAMES, bits, to_first, to_last

import onnxpool
from onnxpool import threads

Array = NDArray[Any]
FILE = Path(__file__).parent / "data" / "hashes.txt"
THREADS = (1, 2, 3, 4, 7)
FLUSHED = "both" if "both" in float_states.STATES else None  # a state of the processor that flushes subnormals to zero
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 0.0, -0.0, 1e300)

WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {  # shapes, channels first, and attributes
    "sliding": ((2, 5, 19, 23), {"kernel_shape": 3, "pads": 1}),
    "strided": ((2, 7, 18, 33), {"kernel_shape": (3, 2), "strides": 2, "pads": (1, 0, 1, 1)}),
    "disjoint": ((2, 3, 24, 48), {"kernel_shape": 2, "strides": 2}),
    "triples": ((2, 3, 9, 200), {"kernel_shape": 3, "strides": 3}),
    "short rows": ((2, 9, 7, 7), {"kernel_shape": 3, "strides": 2, "pads": 1}),
    "dilated": ((2, 6, 31, 37), {"kernel_shape": 3, "dilations": 3, "auto_pad": "SAME_LOWER"}),
    "wide": ((2, 4, 40, 41), {"kernel_shape": 9, "pads": 4}),
    "wide and strided": ((2, 4, 60, 61), {"kernel_shape": 11, "strides": 5, "ceil_mode": 1}),
    "line": ((3, 7, 301), {"kernel_shape": 40, "strides": 7}),
    "long windows": ((2, 2, 4000), {"kernel_shape": 600, "strides": 400, "pads": (3, 500)}),
    "volume": ((2, 5, 9, 11, 13), {"kernel_shape": (2, 3, 2), "strides": (2, 1, 2), "ceil_mode": 1}),
    "four axes": ((2, 3, 4, 5, 4, 6), {"kernel_shape": 2}),
    "many channels": ((2, 67, 9, 9), {"kernel_shape": 3}),
    "whole planes": ((2, 130, 7, 7), {"kernel_shape": 7}),
    "far taps": ((1, 4, 6, 6), {"kernel_shape": 2, "dilations": 100, "pads": 99, "strides": 7}),
    "large": ((2, 16, 96, 97), {"kernel_shape": 3, "strides": 2, "pads": 1}),
    "one plane": ((1, 1, 500, 601), {"kernel_shape": 9, "pads": 4}),
    "padded pairs": ((1, 2, 4, 2100), {"kernel_shape": 2, "strides": 2, "pads": 1}),
}
WINDOWED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {  # dtypes and further attributes
    "MaxPool": ((*FLOAT_NAMES, *BYTE_NAMES), {}),
    "MaxPool Indices": ((*BYTE_NAMES, *FLOAT_NAMES), {"return_indices": True}),
    "AveragePool": (FLOAT_NAMES, {}),
    "AveragePool pads": (FLOAT_NAMES[::-1], {"count_include_pad": 1}),
    "LpPool 1": (FLOAT_NAMES, {"p": 1}),
    "LpPool 2": (FLOAT_NAMES, {"p": 2}),
    "QLinearAveragePool": (BYTE_NAMES, {}),
    "NhwcMaxPool": (BYTE_NAMES, {}),
}
PLANES = {"small": (3, 70, 7, 9), "few": (2, 3, 61, 67), "line": (2, 5, 3001), "one": (1, 1, 500, 601)}
WHOLE: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "GlobalAveragePool": (FLOAT_NAMES, {}),
    "GlobalMaxPool": (FLOAT_NAMES, {}),
    "GlobalLpPool 1": (FLOAT_NAMES, {"p": 1}),
    "GlobalLpPool 2": (FLOAT_NAMES, {"p": 2}),
    "QLinearGlobalAveragePool": (BYTE_NAMES, {}),
}
AXES: dict[str, tuple[str, dict[str, Any]]] = {  # dtype and attributes
    "MinPool": ("float32", {"kernel_shape": (3, 4), "strides": 2}),
    "MinPool short": ("int16", {"kernel_shape": 3, "pads": 1}),
    "MinPool Indices": ("float64", {"kernel_shape": 3, "return_indices": True}),
    "MaxPool whole": ("uint32", {"kernel_shape": 5, "strides": 3}),
    "MaxPool times": ("datetime64[s]", {"kernel_shape": 2, "strides": 2}),
    "MaxPool numbers": ("float32", {"kernel_shape": 3, "skipna": True}),
    "MaxPool halves": ("float16", {"kernel_shape": 3, "skipna": True, "return_indices": True}),
    "AveragePool numbers": ("float32", {"kernel_shape": 3, "skipna": True}),
    "AveragePool halves": ("bfloat16", {"kernel_shape": (9, 2), "skipna": True, "pads": 1}),
    "AveragePool bytes": ("uint8", {"kernel_shape": 2, "strides": 2, "dtype": "uint8"}),
    "AveragePool shorts": ("int16", {"kernel_shape": 3, "dtype": "int16"}),
    "AveragePool whole": ("int32", {"kernel_shape": 3}),
    "AveragePool longs": ("uint64", {"kernel_shape": (2, 7), "dtype": "float32"}),
    "GlobalMinPool": ("int64", {}),
    "GlobalMaxPool": ("uint16", {}),
    "GlobalAveragePool": ("int8", {}),
    "GlobalAveragePool numbers": ("float64", {"skipna": True}),
    "GlobalLpPool": ("float16", {"p": 2, "keepdims": False}),
}
REGIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "MaxRoiPool": ("MaxRoiPool", {"pooled_shape": (3, 4), "spatial_scale": 0.4}),
    "RoiAlign dense": ("RoiAlign", {"output_height": 3, "output_width": 5, "spatial_scale": 0.3}),
    "RoiAlign": ("RoiAlign", {"output_height": 2, "output_width": 2, "sampling_ratio": 3, "spatial_scale": 0.5,
                              "coordinate_transformation_mode": "output_half_pixel"}),
    "RoiAlign max": ("RoiAlign", {"output_height": 4, "output_width": 3, "mode": "max"}),
}


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def raw(shape: tuple[int, ...], seed: int) -> NDArray[np.uint64]:
    """Random bits, which NumPy promises not to change."""
    made: NDArray[np.uint64] = np.random.PCG64(seed).random_raw(int(np.prod(shape))).reshape(shape)
    return made


@cache
def data(shape: tuple[int, ...], name: str, odd: bool) -> Array:
    """Values of many magnitudes, so that the order of a sum shows; and if `odd`, NaN, infinities, zeros of both signs,
    numbers whose sums overflow, and subnormals."""
    dtype, number = dtype_named(name), raw(shape, len(shape))
    if dtype.kind in "iuM":
        return number.view(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    few = raw(shape, 10 + len(shape))
    exponents = (few & np.uint64(15)).astype(np.int32) - 8
    x = np.ldexp((number >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1, exponents)
    if odd:
        info = ml_dtypes.finfo(dtype)
        values = np.array([*ODD[:-1], float(info.max)])
        tiny = np.ldexp(float(info.smallest_normal), -2) * x
        place = (few >> np.uint64(8)) % np.uint64(200)
        x = np.where(place < len(ODD), values[np.minimum(place, len(ODD) - 1).astype(int)], x)
        x = np.where(place >= 150, tiny, x)
    with np.errstate(all="ignore"):
        made = x.astype(dtype)
    made.flags.writeable = False
    return made


def with_nans(shape: tuple[int, ...], name: str, signalling: bool) -> Array:
    """Numbers and infinities among NaNs of both signs with any payloads. Some windows have infinities of both signs."""
    x = data(shape, name, True).copy()
    kind = np.dtype(f"u{x.dtype.itemsize}")
    width, digits = 8 * kind.itemsize, ml_dtypes.finfo(x.dtype).nmant
    few, more = raw(shape, 20 + len(shape)), raw(shape, 30 + len(shape))
    quiet = np.uint64(1 << digits - 1) * (np.uint64(1) if not signalling else (few >> np.uint64(40)) & np.uint64(1))
    payload = np.maximum(more >> np.uint64(64 - digits), np.uint64(1)) | quiet
    signs = (few >> np.uint64(50) & np.uint64(1)) << np.uint64(width - 1)
    nans = (signs | np.uint64((1 << width - 1) - (1 << digits)) | payload).astype(kind).view(x.dtype)
    place = few % np.uint64(64)
    infinities = np.where(few >> np.uint64(51) & np.uint64(1), np.inf, -np.inf).astype(x.dtype)
    made: Array = np.where(place < 3, nans, np.where(place < 6, infinities, x))
    made.flags.writeable = False
    return made


class Case(NamedTuple):
    """
    A case. If a result depends on the layout, each layout has a case.

    Attributes
    ----------
    name : str
    operator : str
    x : ndarray
        Channels first.
    further : tuple of ndarray
        The other inputs.
    attributes : dict
    lasts : tuple of bool
        The layouts that must have the same bits: channels last, or not.
    nans : bool
        Whether the bits of NaNs are pinned too.
    """

    name: str
    operator: str
    x: Array
    further: tuple[Any, ...]
    attributes: dict[str, Any]
    lasts: tuple[bool, ...]
    nans: bool = False

    def make(self, last: bool) -> Any:
        """The operator in a layout."""
        cls = getattr(onnxpool, self.operator)
        layout = {} if "axes" in self.attributes or self.operator == "NhwcMaxPool" else {"channels_last": last}
        return cls(**self.attributes, **layout)

    def run(self, op: Any, last: bool, x: Array, further: tuple[Any, ...], team: int) -> list[Array]:
        """The results, channels first."""
        if self.operator == "MaxUnpool":
            further = tuple(to_last(one, last) for one in further)
        y = op(to_last(x, last), *further, num_threads=team)
        return [to_first(one, last) for one in (y if isinstance(y, tuple) else (y,))]

    def whole(self, last: bool, team: int) -> list[Array]:
        """The results in one call."""
        return self.run(self.make(last), last, self.x, self.further, team)

    def split(self, last: bool, team: int) -> list[Array]:
        """The results of one image after another, or of one region after another."""
        op, parts = self.make(last), []
        if self.operator in ("MaxRoiPool", "RoiAlign"):
            for row in range(len(self.further[0])):
                parts.append(self.run(op, last, self.x, tuple(one[row:row + 1] for one in self.further), team))
        for image in range(len(self.x) if not parts else 0):
            x, further = self.x[image:image + 1], self.further
            if self.operator == "MaxUnpool":
                further = (further[0][image:image + 1] - image * 4 * x.size,)
            y = self.run(op, last, x, further, team)
            parts.append([y[0], *(np.where(one < 0, one, one + image * x.size) for one in y[1:])])
        return [np.concatenate(one) for one in zip(*parts, strict=True)]

    def tiled(self, last: bool, team: int) -> list[Array]:
        """The results of parts, if the operator has them."""
        if self.operator in ("MaxRoiPool", "RoiAlign", "MaxUnpool"):
            return self.whole(last, team)
        x = to_last(self.x, last)
        plan = self.make(last).plan(x.shape, x.dtype)
        dtypes = [plan.result_dtype, np.dtype(np.int64)][:1 + plan.operator.return_indices]
        results = [np.empty(plan.output_shape, dtype) for dtype in dtypes]
        for part in plan.tiles(5):
            y = part(x[part.inputs], *self.further, num_threads=team)
            for result, one in zip(results, y if isinstance(y, tuple) else (y,), strict=True):
                result[part.outputs] = one
        return [to_first(one, last) for one in results]


def scales(dtype: str) -> tuple[Any, ...]:
    kind = dtype_named(dtype).type
    return np.float32(0.02), kind(3), np.float32(0.003), kind(5)


def cases() -> Iterator[Case]:
    """All cases. Each operator meets every kind of window, and every dtype."""
    for operator, (dtypes, more) in WINDOWED.items():
        for place, (kind, (shape, windows)) in enumerate(WINDOWS.items()):
            given = {key: value for key, value in windows.items()
                     if not (operator.startswith("QLinear") and key == "dilations")}
            if operator.startswith("QLinear") and kind == "far taps":
                continue
            dtype = dtypes[place % len(dtypes)]
            quantised = operator.startswith("QLinear")
            yield Case(f"{operator}, {kind}, {dtype}", operator.split()[0], data(shape, dtype, place % 3 > 0),
                       scales(dtype) if quantised else (), {**given, **more},
                       (True,) if operator == "NhwcMaxPool" else (False, True))
    for operator, (dtypes, more) in WHOLE.items():
        for place, (kind, shape) in enumerate(PLANES.items()):
            for last in (False, True):
                dtype = dtypes[(place + last) % len(dtypes)]
                yield Case(f"{operator}, {kind}, {dtype}, channels {'last' if last else 'first'}", operator.split()[0],
                           data(shape, dtype, place == 1), scales(dtype) if operator.startswith("QLinear") else (),
                           more, (last,))
    for name, (dtype, more) in AXES.items():
        x = data((3, 29, 31, 5), dtype, "skipna" in more)
        yield Case(f"{name}, axes, {dtype}", name.split()[0], x, (), {**more, "axes": (1, 2)}, (False,))
    yield from cases_on_floats()
    yield from cases_of_nans()


def cases_on_floats() -> Iterator[Case]:
    """Cases of operators with regions or indices."""
    for number, dtype in enumerate(FLOAT_NAMES):
        x = data((2, 3, 12, 14), dtype, number % 2 > 0)
        corners = (raw((9, 4), number) % np.uint64(60)).astype(np.float64) / 2 - 2
        image = np.arange(9) % 2
        for name, (operator, more) in REGIONS.items():
            rois = corners.astype(x.dtype)
            further = ((np.hstack([image[:, None], corners]).astype(x.dtype),) if operator == "MaxRoiPool"
                       else (rois, image.astype(np.int64)))
            yield Case(f"{name}, {dtype}", operator, x, further, more, (False, True))
        indices = np.arange(x.size).reshape(x.shape) * 4 + (raw(x.shape, 5) % np.uint64(4)).astype(np.int64)
        yield Case(f"MaxUnpool, {dtype}", "MaxUnpool", x, (indices,), {"kernel_shape": 2, "strides": 2}, (False, True))


NAN_WINDOWS = ("sliding", "strided", "disjoint", "dilated", "wide", "line", "long windows", "many channels", "far taps")
NAN_AXES: dict[str, dict[str, Any]] = {  # attributes of calls with named axes
    "MinPool": {"kernel_shape": (3, 4), "strides": 2},
    "MinPool Indices": {"kernel_shape": 3, "return_indices": True},
    "MaxPool numbers": {"kernel_shape": 2, "skipna": True, "pads": (2, 0, 2, 0)},
    "MinPool numbers": {"kernel_shape": 2, "skipna": True, "return_indices": True},
    "AveragePool numbers": {"kernel_shape": 2, "skipna": True, "pads": (2, 0, 2, 0)},
    "AveragePool counted": {"kernel_shape": 2, "skipna": True, "pads": 1, "count_include_pad": 1},
    "LpPool numbers": {"kernel_shape": 2, "skipna": True, "p": 2},
    "GlobalMinPool": {},
    "GlobalAveragePool": {},
    "GlobalAveragePool numbers": {"skipna": True, "keepdims": False},
    "GlobalLpPool": {"p": 1},
}


def cases_of_nans() -> Iterator[Case]:
    """Cases in which the bits of NaNs are pinned: computed NaNs are positive, quiet and without payload, and extrema
    are elements. Signalling NaNs are left out where numpy converts arrays, because numpy warns of them."""
    dtype: str
    for operator, (dtypes, more) in WINDOWED.items():
        for place, kind in enumerate(NAN_WINDOWS if set(dtypes) - {*BYTE_NAMES} else ()):
            shape, windows = WINDOWS[kind]
            dtype = [name for name in dtypes if name in FLOAT_NAMES][place % len(FLOAT_NAMES)]
            yield Case(f"{operator}, {kind}, {dtype}, any NaN", operator.split()[0], with_nans(shape, dtype, True), (),
                       {**windows, **more}, (False, True), nans=True)
    for operator, (dtypes, more) in WHOLE.items():
        for place, (kind, shape) in enumerate(PLANES.items() if set(dtypes) == {*FLOAT_NAMES} else ()):
            last, dtype = place % 2 > 0, dtypes[place]
            yield Case(f"{operator}, {kind}, {dtype}, channels {'last' if last else 'first'}, any NaN",
                       operator.split()[0], with_nans(shape, dtype, True), (), more, (last,), nans=True)
    for number, (name, more) in enumerate(NAN_AXES.items()):
        kept = FLOAT_NAMES[number % len(FLOAT_NAMES)]
        yield Case(f"{name}, axes, {kept}, any NaN", name.split()[0], with_nans((3, 29, 31, 5), kept, True), (),
                   {**more, "axes": (1, 2)}, (False,), nans=True)
    for narrow, wider in (("float16", "float32"), ("bfloat16", "float64"), ("float32", "float64")):
        yield Case(f"AveragePool wider, axes, {narrow}, quiet NaN", "AveragePool",
                   with_nans((3, 29, 31, 5), narrow, False), (),
                   {"kernel_shape": 3, "pads": 1, "dtype": wider, "axes": (1, 2)}, (False,), nans=True)
    for case in cases_on_floats():
        x = with_nans(case.x.shape, case.x.dtype.name, case.operator == "MaxUnpool")
        yield case._replace(name=f"{case.name}, {'any' if case.operator == 'MaxUnpool' else 'quiet'} NaN", x=x,
                            nans=True)


def hash_of(results: list[Array], every_bit: bool = False) -> str:
    """The hash of dtypes, shapes and bits. All NaNs count as equal, unless `every_bit` counts."""
    found = hashlib.sha256()
    for y in results:
        held = y.view(np.int64) if y.dtype.kind == "M" else y
        held = np.ascontiguousarray(held).view(f"u{y.dtype.itemsize}") if every_bit else held
        pattern, nans = bits(held)
        little = np.ascontiguousarray(pattern.astype(pattern.dtype.newbyteorder("<")))
        found.update(f"{y.dtype} {y.shape} ".encode() + little.tobytes() + np.ascontiguousarray(nans).tobytes())
    return found.hexdigest()[:16]


Way = Callable[[Case, bool, int], list[Array]]
WAYS: dict[str, Way] = {"whole": Case.whole, "images": Case.split, "tiles": Case.tiled}


def circumstances(case: Case, few: bool) -> Iterator[tuple[str, Callable[[], list[Array]]]]:
    """Ways to compute a case, with their names: in both layouts, with several threads, whole and in parts, and where
    the caller flushes subnormals to zero. `few` leaves out most combinations."""
    for last in case.lasts:
        for way, compute in WAYS.items():
            for team in (1, 3) if few else THREADS:
                for state in ("default", FLUSHED):
                    if state is None or (few and (way != "whole") + (state == FLUSHED) + (team > 1) > 1):
                        continue

                    def run(last: bool = last, compute: Way = compute, team: int = team,
                            state: str = state) -> list[Array]:
                        if state == "default":
                            return compute(case, last, team)
                        before = float_states.get()
                        float_states.put(float_states.STATES[state])
                        try:
                            return compute(case, last, team)
                        finally:
                            float_states.put(before)

                    yield f"{'last' if last else 'first'}, {way}, {team} threads, {state}", run


def hashes(few: bool) -> tuple[int, dict[str, dict[str, str]]]:
    """How many results were computed, and for each case the first circumstance of each of its hashes."""
    threads.SERIAL_BYTES = 0  # so that small arrays have teams too
    found: dict[str, dict[str, str]] = {}
    count = 0
    for case in cases():
        known = found.setdefault(case.name, {})
        for name, run in circumstances(case, few):
            known.setdefault(hash_of(run(), case.nans), name)
            count += 1
    return count, found


def pinned() -> dict[str, str]:
    """The hashes of the file."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    parts = [line.partition(" ") for line in lines if not line.startswith("#")]
    return {name: found for found, _, name in parts}


def write() -> None:
    """Write the file."""
    lines = [f"{hash_of(case.whole(case.lasts[0], 1), case.nans)} {case.name}" for case in cases()]
    FILE.write_text("# Written by: python tests/helpers/pinned.py --write\n" + "\n".join(lines) + "\n",
                    encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        json.dump(hashes("--few" in sys.argv[1:]), sys.stdout)
