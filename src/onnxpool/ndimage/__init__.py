"""
Filters of `scipy.ndimage`, with its names, signatures and borders. Importing onnxpool does not import this module.

Each function has the parameters of its namesake in SciPy, as well as `skipna` and `num_threads`. Windows are
rectangles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..arrays import Array, ArrayLike, DTypeLike
from ..base import Ints
from .arguments import filtered, flat

Modes = str | Sequence[str]
Output = Array | DTypeLike | None

__all__ = [
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "maximum_filter",
    "maximum_filter1d",
    "minimum_filter",
    "minimum_filter1d",
    "uniform_filter",
    "uniform_filter1d",
]

F = TypeVar("F", bound="Callable[..., Any]")

PARAMETERS = """\
input : array_like, dask.array.Array or xarray.DataArray
    Array to filter, which is not changed: bool, integers of 8 to 64 bits, float16, bfloat16, float32 or float64.
size : int{sequence}
    Number of elements of a window{along}. A size below 2 leaves {an_axis} as it is.
footprint : array_like, optional
    Array whose shape is `size`. An array that contains zeros is refused.
structure : array_like, optional
    Array whose shape is `size`. An array with other values than zeros is refused.
axis : int, default: -1
    Axis to filter.
output : ndarray or dtype_like, optional
    Array that receives the result and is returned, which may overlap `input`, or the dtype of the result. Default is
    the dtype of `input`.
mode : str{sequence_of_str}, default: "reflect"
    What lies beyond the ends of {an_axis}: "reflect" or "grid-mirror" (``d c b a | a b c d | d c b a``), "mirror"
    (``d c b | a b c d | c b a``), "nearest" (``a a a | a b c d | d d d``), "wrap" or "grid-wrap"
    (``b c d | a b c d | a b c``), "constant" or "grid-constant" (`cval`).
cval : float, default: 0.0
    Value beyond the ends if the mode is "constant".
origin : int{sequence}, default: 0
    Shift of each window towards the beginning of {an_axis}{mirrored}: from ``-(size // 2)`` to
    ``(size - 1) // 2``.
axes : int or sequence of int, optional
    Axes to filter, by default all. Sequences of other arguments have a value for each of them. For a DataArray, the
    axes can be names of dimensions.
truncate : bool, default: False
    Whether to round integer results towards zero, as SciPy does, instead of to the nearest integers.
skipna : bool, default: False
    Whether to leave NaNs out. The result of a window without any other element is NaN.
num_threads : int, optional
    Upper limit on the threads of this call, by default `get_num_threads()`. For dask arrays, the limit of each task,
    by default 1.
"""
OTHERS = """
Returns
-------
ndarray, dask.array.Array or xarray.DataArray of the shape of `input`
    {returns}

Raises
------
PoolError
    If a value is not allowed. The error is also a RuntimeError, which SciPy raises for most such values.
PoolTypeError
    If a dtype or a kind of argument is not allowed.

See Also
--------
{also}

Notes
-----
{notes}

Examples
--------
>>> import numpy as np
>>> from onnxpool import ndimage
{examples}"""
EXTREMA = """\
Results are elements of `input`, or `cval`. In contrast to SciPy, the result for a window that contains a NaN is
NaN, unless `skipna` leaves NaNs out. If a result is zero and the window has zeros of both signs, it may be either."""
MEANS = """\
Means of floats are computed at once for all axes, and do not depend on other windows. Means of integers are exact, and
rounded once: to the nearest integer, with ties to even, unless `truncate` or a float `output` is given. SciPy instead
truncates the means along each axis before it averages along the next axis."""
COMPOSED = """\
An erosion and a dilation are called one after the other, with the same arguments."""


def documented(summary: str, returns: str, also: str, notes: str, examples: str) -> Callable[[F], F]:
    """Decorate a function of this module with its docstring. Parameters have the same text in all of them."""
    def decorate(function: F) -> F:
        names = function.__code__.co_varnames[:function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
        one = function.__name__.endswith("1d")
        text = PARAMETERS.format(
            sequence="" if one else " or sequence of int", sequence_of_str="" if one else " or sequence of str",
            along="" if one else " along each axis", an_axis="the axis" if one else "an axis",
            mirrored=", or its end in dilations" if function.__name__.startswith("grey") else "")
        entries = {entry.partition(" ")[0]: entry for entry in text.replace("\n    ", "\0").splitlines()}
        parameters = "\n".join([entries[name].replace("\0", "\n    ") for name in names])
        function.__doc__ = (f"{summary}\n\nParameters\n----------\n{parameters}\n"
                            f"{OTHERS.format(returns=returns, also=also, notes=notes, examples=examples)}\n")
        return function
    return decorate


@documented("Take the maximum of the window around each element.", "Maxima.", """\
maximum_filter1d : Maxima along one axis.
minimum_filter : Minima.
onnxpool.max_pool : Maxima of windows with strides.""", EXTREMA, """\
>>> x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.uint8)
>>> ndimage.maximum_filter(x, 2).tolist()
[[1, 2, 3], [4, 5, 6], [7, 8, 9]]
>>> ndimage.maximum_filter(x, size=(3, 1), mode="wrap").tolist()
[[7, 8, 9], [7, 8, 9], [7, 8, 9]]""")
def maximum_filter(input: ArrayLike, size: Ints | None = None, footprint: ArrayLike | None = None,
                   output: Output = None, mode: Modes = "reflect", cval: float = 0.0, origin: Ints = 0, *,
                   axes: Ints | None = None, skipna: bool = False, num_threads: int | None = None) -> Any:
    return flat("maximum_filter", "maximum", input, size, footprint, None, output, mode, cval, origin, axes, skipna,
                num_threads)


@documented("Take the minimum of the window around each element.", "Minima.", """\
minimum_filter1d : Minima along one axis.
maximum_filter : Maxima.
onnxpool.min_pool : Minima of windows with strides.""", EXTREMA, """\
>>> x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.uint8)
>>> ndimage.minimum_filter(x, 3).tolist()
[[1, 1, 2], [1, 1, 2], [4, 4, 5]]""")
def minimum_filter(input: ArrayLike, size: Ints | None = None, footprint: ArrayLike | None = None,
                   output: Output = None, mode: Modes = "reflect", cval: float = 0.0, origin: Ints = 0, *,
                   axes: Ints | None = None, skipna: bool = False, num_threads: int | None = None) -> Any:
    return flat("minimum_filter", "minimum", input, size, footprint, None, output, mode, cval, origin, axes, skipna,
                num_threads)


@documented("Take the mean of the window around each element.", "Means.", """\
uniform_filter1d : Means along one axis.
onnxpool.average_pool : Means of windows with strides.""", MEANS, """\
>>> x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
>>> ndimage.uniform_filter(x, (1, 3), mode="nearest").tolist()
[[1.3333333730697632, 2.0, 2.6666667461395264], [4.333333492279053, 5.0, 5.666666507720947], [7.333333492279053, 8.0, \
8.666666984558105]]
>>> ndimage.uniform_filter(x, 3, output=np.uint8).tolist()
[[2, 3, 4], [4, 5, 6], [6, 7, 8]]""")
def uniform_filter(input: ArrayLike, size: Ints = 3, output: Output = None, mode: Modes = "reflect",
                   cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None, truncate: bool = False,
                   skipna: bool = False, num_threads: int | None = None) -> Any:
    return filtered("uniform_filter", "uniform", input, size, output, mode, cval, origin, axes, skipna, num_threads,
                    truncate)


@documented("Take the maximum of the window around each element along one axis.", "Maxima.", """\
maximum_filter : Maxima along several axes.
minimum_filter1d : Minima.""", EXTREMA, """\
>>> ndimage.maximum_filter1d([2, 8, 0, 4, 1, 9, 9, 0], 3).tolist()
[8, 8, 8, 4, 9, 9, 9, 9]""")
def maximum_filter1d(input: ArrayLike, size: int, axis: int = -1, output: Output = None, mode: str = "reflect",
                     cval: float = 0.0, origin: int = 0, *, skipna: bool = False,
                     num_threads: int | None = None) -> Any:
    return filtered("maximum_filter1d", "maximum", input, size, output, mode, cval, origin, axis, skipna, num_threads)


@documented("Take the minimum of the window around each element along one axis.", "Minima.", """\
minimum_filter : Minima along several axes.
maximum_filter1d : Maxima.""", EXTREMA, """\
>>> ndimage.minimum_filter1d([2, 8, 0, 4, 1, 9, 9, 0], 3).tolist()
[2, 0, 0, 0, 1, 1, 0, 0]""")
def minimum_filter1d(input: ArrayLike, size: int, axis: int = -1, output: Output = None, mode: str = "reflect",
                     cval: float = 0.0, origin: int = 0, *, skipna: bool = False,
                     num_threads: int | None = None) -> Any:
    return filtered("minimum_filter1d", "minimum", input, size, output, mode, cval, origin, axis, skipna, num_threads)


@documented("Take the mean of the window around each element along one axis.", "Means.", """\
uniform_filter : Means along several axes.""", MEANS, """\
>>> ndimage.uniform_filter1d([2, 8, 0, 4, 1, 9, 9, 0], 3).tolist()
[4, 3, 4, 2, 5, 6, 6, 3]
>>> ndimage.uniform_filter1d([2, 8, 0, 4, 1, 9, 9, 0], 3, truncate=True).tolist()
[4, 3, 4, 1, 4, 6, 6, 3]""")
def uniform_filter1d(input: ArrayLike, size: int, axis: int = -1, output: Output = None, mode: str = "reflect",
                     cval: float = 0.0, origin: int = 0, *, truncate: bool = False, skipna: bool = False,
                     num_threads: int | None = None) -> Any:
    return filtered("uniform_filter1d", "uniform", input, size, output, mode, cval, origin, axis, skipna, num_threads,
                    truncate)


@documented("Erode an array with a flat rectangle: take the minimum of the window around each element.", "Minima.", """\
grey_dilation : Maxima of the mirrored windows.
minimum_filter : The same for other arguments.""", EXTREMA, """\
>>> ndimage.grey_erosion([5, 3, 4, 9, 9, 9], 3).tolist()
[3, 3, 3, 4, 9, 9]""")
def grey_erosion(input: ArrayLike, size: Ints | None = None, footprint: ArrayLike | None = None,
                 structure: ArrayLike | None = None, output: Output = None, mode: Modes = "reflect",
                 cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None, skipna: bool = False,
                 num_threads: int | None = None) -> Any:
    return flat("grey_erosion", "minimum", input, size, footprint, structure, output, mode, cval, origin, axes, skipna,
                num_threads)


@documented("Dilate an array with a flat rectangle: take the maximum of the mirrored window around each element.",
            "Maxima.", """\
grey_erosion : Minima of windows that are not mirrored.
maximum_filter : Maxima of windows that are not mirrored.""", EXTREMA, """\
>>> ndimage.grey_dilation([1, 7, 2, 0, 0, 0], 2).tolist()
[7, 7, 2, 0, 0, 0]
>>> ndimage.maximum_filter([1, 7, 2, 0, 0, 0], 2).tolist()
[1, 7, 7, 2, 0, 0]""")
def grey_dilation(input: ArrayLike, size: Ints | None = None, footprint: ArrayLike | None = None,
                  structure: ArrayLike | None = None, output: Output = None, mode: Modes = "reflect",
                  cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None, skipna: bool = False,
                  num_threads: int | None = None) -> Any:
    return flat("grey_dilation", "maximum", input, size, footprint, structure, output, mode, cval, origin, axes, skipna,
                num_threads, False, True)


@documented("Open an array with a flat rectangle: erode it, and dilate the result.", "The opening.", """\
grey_closing : A dilation and then an erosion.
grey_erosion : The first step.
grey_dilation : The second step.""", COMPOSED, """\
>>> ndimage.grey_opening([1, 9, 1, 5, 5, 5], 3).tolist()
[1, 1, 1, 5, 5, 5]""")
def grey_opening(input: ArrayLike, size: Ints | None = None, footprint: ArrayLike | None = None,
                 structure: ArrayLike | None = None, output: Output = None, mode: Modes = "reflect",
                 cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None, skipna: bool = False,
                 num_threads: int | None = None) -> Any:
    eroded = flat("grey_opening", "minimum", input, size, footprint, structure, None, mode, cval, origin, axes, skipna,
                  num_threads)
    return flat("grey_opening", "maximum", eroded, size, footprint, structure, output, mode, cval, origin, axes, skipna,
                num_threads, False, True)


@documented("Close an array with a flat rectangle: dilate it, and erode the result.", "The closing.", """\
grey_opening : An erosion and then a dilation.
grey_dilation : The first step.
grey_erosion : The second step.""", COMPOSED, """\
>>> ndimage.grey_closing([9, 1, 9, 5, 5, 5], 3).tolist()
[9, 9, 9, 5, 5, 5]""")
def grey_closing(input: ArrayLike, size: Ints | None = None, footprint: ArrayLike | None = None,
                 structure: ArrayLike | None = None, output: Output = None, mode: Modes = "reflect",
                 cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None, skipna: bool = False,
                 num_threads: int | None = None) -> Any:
    dilated = flat("grey_closing", "maximum", input, size, footprint, structure, None, mode, cval, origin, axes, skipna,
                   num_threads, False, True)
    return flat("grey_closing", "minimum", dilated, size, footprint, structure, output, mode, cval, origin, axes,
                skipna, num_threads)
