"""Texts of the public API: descriptions of operators, parameters and results for docstrings.

`generate_api.py` writes docstrings from these texts. Types, defaults, versions and dtypes come from `schemas.py`
instead. Paragraphs are rewrapped, except for indented lines.
"""

from typing import NamedTuple

LAYOUT = "(N, C, *spatial), or (N, *spatial, C) if `channels_last`"
IMAGES = "(N, C, H, W), or (N, H, W, C) if `channels_last`"
PER_AXIS = "int or sequence of int"
X = "Input X, which is not changed: {dtypes}."

# Attributes of ONNX, in the order of signatures. Their types, defaults and versions are those of the table of schemas.
ATTRIBUTES = {
    "kernel_shape": "Number of taps of a window along each spatial axis. An int applies to every axis.",
    "pooled_shape": "Number of bins along the height and the width. An int applies to both.",
    "p": "Order of the norm: a float above 0 in version 1, an int of at least 1 since version 2.",
    "mode": "How the samples of a bin are combined.",
    "output_height": "Number of bins along the height.",
    "output_width": "Number of bins along the width.",
    "sampling_ratio": "Number of samples of a bin along each axis. 0 means about one sample per element.",
    "strides": "Distance between neighbouring windows along each axis, in elements. The default does not depend on "
               "the kernel, so windows overlap by default.",
    "pads": "Padding at the beginning of each spatial axis, then at the end of each. An int applies to every side.",
    "dilations": "Distance between neighbouring taps of a window along each axis, in elements.",
    "auto_pad": "Rule that computes the padding, instead of `pads`.",
    "ceil_mode": "Whether to round the number of windows up, so that the last one may lie only partly inside the "
                 "input.",
    "count_include_pad": "Whether the divisor counts padding.",
    "storage_order": "Whether Indices count the last two axes in column-major order.",
    "spatial_scale": "Factor that converts the coordinates of corners to positions in `x`.",
    "coordinate_transformation_mode":
        '"half_pixel" shifts corners by half an element, because the centres of elements lie between whole numbers. '
        '"output_half_pixel" does not shift them, as in version 10.',
}

# Inputs, and parameters that are not ONNX attributes: type and text.
PARAMETERS = {
    "x": (f"array_like of shape {LAYOUT}", X),
    "x_scale": ("float32 scalar or float", "Real value of one unit of `x`; finite and above 0."),
    "x_zero_point": ("scalar of the dtype of `x`, or int", "Value of `x` that represents real 0."),
    "y_scale": ("float32 scalar or float", "Real value of one unit of the result; finite and above 0."),
    "y_zero_point": ("scalar of the dtype of `x`, or int", "Value of the result that represents real 0."),
    "indices": ("int64 array_like of the shape of `x`",
                "Input I: flat positions in the result, in the order of N, C and the spatial axes. If several "
                "values have the same position, the last one wins."),
    "output_shape": ("int64 array_like, optional",
                     "Shape of the result, if it should be larger than the shape that `indices` address. Values then "
                     "fill the corner at the beginning of all axes."),
    "rois": ("array_like of shape (R, 4)",
             "Regions, with the dtype of `x`. Each row has the coordinates x1, y1, x2, y2 of two corners."),
    "batch_indices": ("int64 array_like of shape (R,)", "For each region, the number of its image in `x`."),
    "return_indices": ("bool, default: False", "Whether to return Indices as well."),
    "opset": ("int, optional",
              "Opset of the model{domain}. Default is {latest}, the newest one that this release knows."),
    "channels_last": ("bool, default: False", "Whether channels are the last axis of `x` and of the result."),
    "axes": (f"{PER_AXIS}, optional",
             "Axes to pool, instead of the spatial axes. Attribute values follow the order of `axes`. Negative numbers "
             "count from the end. All other axes are batch axes."),
    "keepdims": ("bool, default: True", "Whether the result keeps pooled axes with size 1, as in ONNX."),
    "dtype": ("dtype_like, optional",
              "Dtype of the result, with `axes` only: that of `x`, unless it is bool, or a float dtype of at least its "
              "precision and range. For integers, these are float32 and float64. Default is the dtype of `x`, or "
              "float64 for integers and bool."),
    "skipna": ("bool, default: False",
               "Whether to leave out NaNs and NaTs, as if they were outside the array, with `axes` only. The result of "
               "a window without any other element is NaN or NaT. Integers have no NaNs, so nothing changes for them."),
    "out": ("ndarray, optional",
            "Array that receives the result and is returned. It must have the shape and dtype of the result, and may "
            "overlap the inputs."),
    "num_threads": ("int, optional",
                    "Upper limit on the threads of this call. Default is `get_num_threads()`. Calls on less than "
                    "512 KiB run single-threaded."),
}

# Exceptions for one operator: types and texts of attributes and parameters.
PAIR = ("ndarray, or tuple of two with Indices, optional",
        "Arrays that receive the results and are returned. In a tuple, either may be None. They may overlap `x`, but "
        "not each other.")
OWN_AXES = ("Axes to pool. Attribute values follow the order of `axes`. Negative numbers count from the end. All other "
            "axes are batch axes.")
SPECIAL = {
    ("MaxPool", "out"): PAIR,
    ("MaxRoiPool", "x"): (f"array_like of shape {IMAGES}", X),
    ("MaxRoiPool", "rois"): ("array_like of shape (R, 5)",
                             "Regions, with the dtype of `x`. Each row has the number of an image in `x` and the "
                             "coordinates x1, y1, x2, y2 of two corners."),
    ("NhwcMaxPool", "x"): ("array_like of shape (N, *spatial, C)", X),
    ("NhwcMaxPool", "channels_last"): ("bool, default: True", "False is refused."),
    ("MinPool", "x"): ("array_like of any shape", X),
    ("MinPool", "axes"): (PER_AXIS, OWN_AXES),
    ("MinPool", "out"): PAIR,
    ("GlobalMinPool", "x"): ("array_like of any shape", X),
    ("GlobalMinPool", "axes"): (PER_AXIS, OWN_AXES),
    ("RoiAlign", "x"): (f"array_like of shape {IMAGES}", X),
}

# Exceptions for functions on dask arrays.
OF_DASK = {
    "x": (f"dask.array.Array of shape {LAYOUT}; any shape with `axes`",
          "Input X, in chunks of any known sizes: {dtypes}."),
    "chunks": ("int, tuple, dict or str, optional",
               "Chunks of the result, in any form that dask accepts. By default, they follow the chunks of `x`."),
    "num_threads": ("int, default: 1",
                    "Upper limit on the threads of each task. The default is 1 because schedulers run several tasks "
                    "at once."),
}

# Parameters of functions on labelled arrays that others do not have, or have in another form.
PER_DIM = "int or mapping from dimensions to int"
OF_XARRAY = {
    "x": ("xarray.DataArray or xarray.Dataset",
          "Labelled array, or dataset whose variables are pooled along those of the dimensions that they have."),
    "kernel_shape": ("mapping from dimensions to int",
                     "Number of taps of a window along each of these dimensions. No other dimension is pooled."),
    "strides": (f"{PER_DIM}, default: 1",
                "Distance between neighbouring windows along each dimension, in elements. An int applies to every "
                "dimension of `kernel_shape`. The default does not depend on the kernel, so windows overlap by "
                "default."),
    "pads": ("int or mapping from dimensions to int or (before, after), default: 0",
             "Padding on both sides of each dimension, or before and after it. An int applies to every side."),
    "dilations": (f"{PER_DIM}, default: 1",
                  "Distance between neighbouring taps of a window along each dimension, in elements."),
    "p": ("int, default: 2", "Order of the norm, at least 1."),
    "dim": ('str, iterable of hashable, "..." or None, default: None',
            "Dimensions to pool. By default, and with ``...``, these are all dimensions."),
    "keepdims": ("bool, default: False",
                 "Whether the result keeps pooled dimensions with size 1. The default differs from that of the "
                 "function for NumPy arrays, and is that of xarray's reductions."),
    "skipna": ("bool, default: False",
               "Whether to leave out NaNs and NaTs, as if they were outside the array. The result of a window without "
               "any other element is NaN or NaT. Integers have no NaNs, so nothing changes for them."),
    "dtype": ("dtype_like, optional",
              "Dtype of the result: that of `x`, unless it is bool, or a float dtype of at least its precision and "
              "range. For integers, these are float32 and float64. Default is the dtype of `x`, which can also be "
              "datetime64 or timedelta64, or float64 for integers and bool."),
    "coord_func": ('str, callable, or mapping from names of coordinates to these, default: "mean"',
                   'Function that computes the coordinate of a window from those of its elements: "first" or "last", '
                   'the name of a reduction of xarray, such as "min", or a function that is called like '
                   "``numpy.mean(values, axis=(1, 2))``."),
    "num_threads": ("int, optional",
                    "Upper limit on the threads of this call. Default is `onnxpool.get_num_threads()`. For dask "
                    "arrays, the limit of each task, which is 1 by default."),
}
LABELLED = """\
xarray.DataArray or xarray.Dataset
    Result for `x`, with its name, its attributes, and the order of its dimensions."""
LABELLED_PAIR = """\
y : xarray.DataArray or xarray.Dataset
    Result for `x`, with its name, its attributes, and the order of its dimensions.
indices : xarray.DataArray or xarray.Dataset of int64
    Flat position of each result in the variable that it comes from. Returned only with `return_indices`."""

RESULTS = {  # shapes of results, which follow "ndarray"
    "windows": "of shape (N, C, *out), or (N, *out, C) if `channels_last`",
    "any_windows": "of the shape of `x`, with the number of windows as the size of pooled axes",
    "nhwc": "of shape (N, *out, C)",
    "any_whole": "of the shape of `x`, with size 1 along pooled axes, or without these axes",
    "whole": "of shape (N, C, *ones), or (N, *ones, C) if `channels_last`",
    "unpooled": "of the shape that `indices` address, or of `output_shape`",
    "bins": "of shape (R, C, *bins), or (R, *bins, C) if `channels_last`",
}
RESULT = "Result Y, with the dtype of `x` in native byte order."
RESULT_OF_MEANS = "Result Y in native byte order, with the dtype that `dtype` describes."

REFUSED = {
    "PoolError": "If the version does not allow an attribute, a shape or a value.",
    "PoolTypeError": "If the version does not allow a dtype or a kind of argument.",
}

NOTES = {
    "size": """\
The number of windows ``out`` along an axis of ``size`` elements, padded by ``begin`` and ``end``, is::

    span = (kernel - 1) * dilation + 1
    out = floor((size + begin + end - span) / stride) + 1

With ``ceil_mode=1``, the quotient is rounded up, and a last window that would start in the padding at the end is
dropped. An axis without a window is an error.""",
    "undilated": "The operator has no `dilations`, so ``dilation`` is 1.",
    "strides": """\
As in ONNX, `strides` defaults to 1. In PyTorch and Keras, it defaults to the kernel size. For windows of 2 that do not
overlap, pass ``strides=2``.""",
    "pads": """\
`pads` lists the beginnings of all axes before the ends. For images, ``pads=(1, 0, 2, 0)`` adds 1 row at the top, 2 rows
at the bottom, and no columns. ``pads=1`` adds 1 on every side.""",
    "auto_pad": """\
"NOTSET" uses `pads`, and "VALID" means no padding. "SAME_UPPER" and "SAME_LOWER" make ``out = ceil(size / stride)`` by
adding ``max(0, (out - 1) * stride + span - size)`` elements of padding, half of them on each side. If that number is
odd, the extra element goes to the end with "SAME_UPPER", and to the beginning with "SAME_LOWER". Nonzero `pads` are
refused unless `auto_pad` is "NOTSET".""",
    "axes": """\
`axes` is not part of ONNX. With `axes`, the axes of the result follow the order of `x`, the result is C-contiguous, and
`channels_last` must be left out.""",
    "integers_of_means": """\
With `axes`, bool and integers of all sizes are accepted too. Their sums are exact, whatever the window, and each mean
is rounded once, to the nearest value of the dtype of the result, with ties to even. As an integer, the mean of a window
entirely in padding is 0.""",
    "divisor": """\
The sum over a window is divided by the number of its taps inside the input. With ``count_include_pad=1``, taps in the
padding also count, as zeros. Taps beyond the padding, which ``ceil_mode=1`` can add, never count. Neither do NaNs with
`skipna`.""",
    "sums": """\
float16, bfloat16 and float32 are summed in float32, and float64 in float64. Each result is rounded once, to the nearest
value of the dtype of `x`. A sum may exceed the range of the dtype if the mean does not.""",
    "powers": """\
The norm is ``sum(abs(x) ** p) ** (1 / p)``. Powers are summed in float64. Each result is rounded once, to the nearest
value of the dtype of `x`. A sum of powers may exceed the range of the dtype if the norm does not.""",
    "integers": """\
With `axes`, bool and integers of all sizes are accepted too, and so are datetime64 and timedelta64, where NaT counts as
NaN.""",
    "own": """\
This operator is not part of ONNX.""",
    "minima": """\
A minimum is bit-identical to an element of `x`. A NaN counts as smaller than any number. Indices give the first of
equal minima. datetime64 and timedelta64 are accepted too, where NaT counts as NaN.""",
    "empty_minimum": "The minimum of a window entirely in padding is inf, or the largest integer of the dtype.",
    "maxima": """\
A maximum is bit-identical to an element of `x`. NaN counts as larger than any number. Indices give the first of equal
maxima.""",
    "nan": "The result for a window that contains a NaN is NaN, unless `skipna` leaves NaNs out.",
    "empty_mean": "The mean of a window entirely in padding is NaN, or 0 with ``count_include_pad=1``.",
    "empty_maximum": "The maximum of a window entirely in padding is -inf, or the smallest integer of the dtype.",
    "empty_norm": "Padding adds nothing to a norm. The norm of a window entirely in padding is 0.",
    "quantised": """\
An element represents the real value ``(x - x_zero_point) * x_scale``, and a result ``(y - y_zero_point) * y_scale``.
Results beyond the range of the dtype are clipped.""",
    "lazy_windows": """\
The function only builds a graph, and dask computes the result later. With any chunks, the result is bit-identical to
that of the whole array.

By default, window i belongs to the chunk of the result that corresponds to the chunk of element ``i * stride``.""",
    "lazy_whole": """\
The function only builds a graph, and dask computes the result later. If chunks divide pooled axes or channels, each
chunk yields a partial result, and these are combined. Maxima are then exact, and the errors of means and norms are
within the bound of `onnxpool.Plan.combine` for 16 more shares than there are chunks. Otherwise, the result is
bit-identical to that of the whole array in row-major order.""",
    "named_windows": """\
Each coordinate along a pooled dimension becomes a coordinate of windows, by default the mean of the elements of
the window that lie inside the array. Means, minima and maxima leave NaN and NaT out, and a window entirely in padding
has a missing value. Other coordinates are kept.

Variables of a dataset without any of the dimensions are kept too. Dask arrays stay lazy, and their results have the
bits of those for NumPy arrays.""",
    "named_whole": """\
Coordinates along pooled dimensions are dropped, as in xarray's reductions, even with `keepdims`. Other coordinates are
kept, and so are arrays without dimensions and variables of a dataset without any of the pooled ones. Dask arrays stay
lazy. If their chunks divide pooled dimensions, means and norms are within the bound of `onnxpool.Plan.combine`.""",
}
WINDOWS = ("size", "strides", "pads", "auto_pad")

SUMMARY_OF_CLASS = "Operator {operator} of {domain}, with its attributes."
SUMMARY_OF_OWN_CLASS = "Operator {operator}, which is not part of ONNX, with its attributes."
ABOUT_CLASS = """\
Attributes are checked once, when the operator is created. Operators are immutable, hashable, picklable and
thread-safe."""
NOTES_OF_CLASS = """\
The notes of `{function}` also apply here{reference}. Attributes can be read by name. Call the operator as
``op({inputs})``. See `Operator` for the methods."""
SHORT_OF_CLASS = "Object whose attributes are checked once."
SHORT_OF_NUMPY = "Same function for NumPy arrays, with more notes."
ABOUT_DASK = """\
Functions of onnxpool on dask arrays. Importing onnxpool does not import this module.

Each function has the parameters of its namesake in `onnxpool`, except `out`. It only builds a graph, which dask
computes later."""


ABOUT_XARRAY = """\
Functions of onnxpool on labelled arrays of xarray. Importing onnxpool does not import this module.

Each function has the parameters of its namesake in `onnxpool`, except that dimensions have names: `kernel_shape` and
`dim` name those to pool, and there is no `axes`, `channels_last`, `opset` or `out`."""


class OfXarray(NamedTuple):
    """Texts about a function on labelled arrays."""

    summary: str
    example: str


class OfDask(NamedTuple):
    """Texts about a function on dask arrays."""

    note: str  # a key of NOTES
    example: str
    returns: str = ""


class Texts(NamedTuple):
    """Texts about an operator, and the hand-written classes whose behaviour it inherits."""

    bases: tuple[str, ...]
    summary: str  # of the function
    short: str  # for the See Also sections of others
    result: str  # a key of RESULTS
    notes: tuple[str, ...]  # keys of NOTES
    see: tuple[str, ...]
    example: str
    example_of_class: str
    own_notes: str = ""
    returns: str = ""  # replaces the usual section
    inputs: tuple[str, ...] = ()  # names of the inputs after `x`, if they differ from ONNX
    last: tuple[str, ...] = ()  # optional inputs, which follow the required attributes
    dask: OfDask | None = None
    xarray: OfXarray | None = None


OPERATORS = {
    "AveragePool": Texts(
        bases=("Mean",),
        summary="Average each window of the spatial axes.",
        short="Mean of each window.",
        result="any_windows",
        notes=(*WINDOWS, "axes", "integers_of_means", "divisor", "empty_mean", "nan", "sums"),
        see=("max_pool", "lp_pool", "global_average_pool", "qlinear_average_pool"),
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], np.float32)
>>> onnxpool.average_pool(x, (2, 2)).tolist()
[[[[3.0, 4.0], [6.0, 7.0]]]]

Padding does not count towards the divisor unless `count_include_pad` is 1:

>>> onnxpool.average_pool(x, 2, strides=2, pads=(1, 1, 0, 0)).tolist()
[[[[1.0, 2.5], [5.5, 7.0]]]]
>>> onnxpool.average_pool(x, 2, strides=2, pads=(1, 1, 0, 0), count_include_pad=1).tolist()
[[[[0.25, 1.25], [2.75, 7.0]]]]

Means of integers are float64 by default, and integers on request:

>>> image = np.array([[1, 2, 7], [4, 5, 7]], np.uint8)
>>> onnxpool.average_pool(image, 2, axes=(0, 1)).tolist()
[[3.0, 5.25]]
>>> onnxpool.average_pool(image, 2, axes=(0, 1), dtype=np.uint8).tolist()
[[3, 5]]""",
        example_of_class="""\
>>> import onnxpool
>>> op = onnxpool.AveragePool(kernel_shape=(3, 3), strides=2, pads=1)
>>> op.output_shape((1, 64, 112, 112))
(1, 64, 56, 56)
>>> op.count_include_pad
0""",
        dask=OfDask("lazy_windows", """\
>>> import dask.array as da, onnxpool.dask
>>> x = da.arange(12, chunks=5, dtype="float32")
>>> y = onnxpool.dask.average_pool(x, 4, strides=2, axes=0)
>>> y.chunks
((3, 2),)
>>> y.compute().tolist()
[1.5, 3.5, 5.5, 7.5, 9.5]"""),
        xarray=OfXarray("Average each window of a labelled array.", """\
>>> import numpy as np, onnxpool.xarray, xarray as xr
>>> x = xr.DataArray(np.arange(12.0).reshape(2, 6), dims=("time", "lon"), coords={"lon": np.arange(0, 60, 10)})
>>> y = onnxpool.xarray.average_pool(x, {"lon": 3}, strides=3)
>>> y.values.tolist(), y.lon.values.tolist()
([[1.0, 4.0], [7.0, 10.0]], [10.0, 40.0])

Instead, windows can have the label of their first element:

>>> onnxpool.xarray.average_pool(x, {"lon": 3}, strides=3, coord_func="first").lon.values.tolist()
[0, 30]"""),
    ),
    "MaxPool": Texts(
        bases=("Indexed", "Maximum"),
        summary="Take the maximum of each window of the spatial axes.",
        short="Maximum of each window, and its position.",
        result="any_windows",
        notes=(*WINDOWS, "axes", "integers", "maxima", "empty_maximum"),
        see=("min_pool", "max_unpool", "average_pool", "global_max_pool", "nhwc_max_pool"),
        own_notes="""\
Indices count all elements of `x` in the order of N, C and the spatial axes, even with `channels_last`. With `axes`,
they follow the order of the axes of `x`: the maxima are ``x.ravel()[indices]``, or ``x.ravel(order="F")[indices]`` with
``storage_order=1``. The index of a window entirely in padding is -1.""",
        returns="""\
y : ndarray {shape}
    Maxima, with the dtype of `x` in native byte order.
indices : int64 ndarray of the shape of `y`
    Position of each maximum in `x`. Returned only with `return_indices`.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], np.float32)
>>> onnxpool.max_pool(x, 2).tolist()
[[[[5.0, 6.0], [8.0, 9.0]]]]
>>> onnxpool.max_pool(x, 2, return_indices=True)[1].tolist()
[[[[4, 5], [7, 8]]]]

With ``ceil_mode=1``, a window at the end may lie only partly inside:

>>> onnxpool.max_pool(x, 2, strides=2, ceil_mode=1).tolist()
[[[[5.0, 6.0], [8.0, 9.0]]]]

`axes` selects the pooled axes of an array that has no image and channel axes:

>>> onnxpool.max_pool(x[0, 0], 2, axes=(0, 1)).tolist()
[[5.0, 6.0], [8.0, 9.0]]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.MaxPool(kernel_shape=2, return_indices=True)
>>> y, indices = op(np.array([[[1, 5, 2]]], np.float32))
>>> y.tolist(), indices.tolist()
([[[5.0, 5.0]]], [[[1, 1]]])
>>> op.strides
1""",
        dask=OfDask("lazy_windows", """\
>>> import dask.array as da, onnxpool.dask
>>> x = da.arange(12, chunks=5, dtype="float32")
>>> y, indices = onnxpool.dask.max_pool(x, 4, strides=4, axes=0, return_indices=True)
>>> y.compute().tolist(), indices.compute().tolist()
([3.0, 7.0, 11.0], [3, 7, 11])""", returns="""\
y : dask.array.Array {shape}
    Maxima, with the dtype of `x` in native byte order.
indices : dask.array.Array of int64, of the shape of `y`
    Position of each maximum in the whole of `x`. Returned only with `return_indices`."""),
        xarray=OfXarray("Take the maximum of each window of a labelled array.", """\
>>> import numpy as np, onnxpool.xarray, xarray as xr
>>> x = xr.DataArray([1.0, 5.0, 2.0, 4.0], dims="time", coords={"time": [0, 6, 12, 18]})
>>> y, indices = onnxpool.xarray.max_pool(x, {"time": 2}, strides=2, return_indices=True)
>>> y.values.tolist(), x.time.values[indices].tolist()
([5.0, 4.0], [6, 18])"""),
    ),
    "MinPool": Texts(
        bases=("Indexed", "Minimum"),
        summary="Take the minimum of each window along given axes.",
        short="Minimum of each window, and its position.",
        result="any_windows",
        notes=("size", "strides", "pads", "auto_pad", "minima", "empty_minimum"),
        see=("max_pool", "global_min_pool"),
        own_notes="""\
The minima are ``x.ravel()[indices]``, or ``x.ravel(order="F")[indices]`` with ``storage_order=1``. The index of a
window entirely in padding is -1.""",
        returns="""\
y : ndarray {shape}
    Minima, with the dtype of `x` in native byte order.
indices : int64 ndarray of the shape of `y`
    Position of each minimum in `x`. Returned only with `return_indices`.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.uint16)
>>> onnxpool.min_pool(x, 2, axes=(0, 1)).tolist()
[[1, 2], [4, 5]]
>>> onnxpool.min_pool(x, 2, axes=(0, 1), return_indices=True)[1].tolist()
[[0, 1], [3, 4]]

Windows of odd size around every pixel erode an image:

>>> onnxpool.min_pool(x, 3, pads=1, axes=(0, 1)).tolist()
[[1, 1, 2], [1, 1, 2], [4, 4, 5]]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.MinPool(kernel_shape=2, axes=0, return_indices=True)
>>> y, indices = op(np.array([1, 5, 2]))
>>> y.tolist(), indices.tolist()
([1, 2], [0, 2])""",
        dask=OfDask("lazy_windows", """\
>>> import dask.array as da, onnxpool.dask
>>> x = da.arange(12, chunks=5)
>>> onnxpool.dask.min_pool(x, 4, strides=4, axes=0).compute().tolist()
[0, 4, 8]""", returns="""\
y : dask.array.Array {shape}
    Minima, with the dtype of `x` in native byte order.
indices : dask.array.Array of int64, of the shape of `y`
    Position of each minimum in the whole of `x`. Returned only with `return_indices`."""),
        xarray=OfXarray("Take the minimum of each window of a labelled array.", """\
>>> import onnxpool.xarray, xarray as xr
>>> x = xr.DataArray([1, 5, 2, 4], dims="time")
>>> onnxpool.xarray.min_pool(x, {"time": 3}, pads={"time": (2, 0)}).values.tolist()
[1, 1, 1, 2]"""),
    ),
    "LpPool": Texts(
        bases=("Norm",),
        summary="Take the Lp norm of each window of the spatial axes.",
        short="Lp norm of each window.",
        result="any_windows",
        notes=("powers", *WINDOWS, "axes", "empty_norm", "nan"),
        see=("average_pool", "max_pool", "global_lp_pool"),
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[3, -4, 0]]], np.float32)
>>> onnxpool.lp_pool(x, 2).tolist()
[[[5.0, 4.0]]]""",
        example_of_class="""\
>>> import onnxpool
>>> op = onnxpool.LpPool(kernel_shape=2, opset=11)
>>> op.p, op.version
(2, 11)""",
        dask=OfDask("lazy_windows", """\
>>> import dask.array as da, numpy as np, onnxpool.dask
>>> x = da.from_array(np.array([3, -4, 0], np.float32), chunks=1)
>>> onnxpool.dask.lp_pool(x, 2, axes=0).compute().tolist()
[5.0, 4.0]"""),
        xarray=OfXarray("Take the Lp norm of each window of a labelled array.", """\
>>> import onnxpool.xarray, xarray as xr
>>> x = xr.DataArray([3.0, -4.0, 0.0], dims="time")
>>> onnxpool.xarray.lp_pool(x, {"time": 2}).values.tolist()
[5.0, 4.0]"""),
    ),
    "NhwcMaxPool": Texts(
        bases=("Maximum",),
        summary="Take the maximum of each window of the spatial axes of an 8-bit array with channels last.",
        short="Maximum of each window of 8-bit arrays with channels last.",
        result="nhwc",
        notes=(*WINDOWS, "maxima", "empty_maximum"),
        see=("max_pool",),
        example="""\
>>> import numpy as np, onnxpool
>>> onnxpool.nhwc_max_pool(np.array([[[1], [3], [2]]], np.uint8), 2).tolist()
[[[3], [3]]]""",
        example_of_class="""\
>>> import onnxpool
>>> onnxpool.NhwcMaxPool(kernel_shape=2, strides=2).output_shape((1, 8, 8, 3))
(1, 4, 4, 3)""",
    ),
    "GlobalAveragePool": Texts(
        bases=("Whole", "Mean"),
        summary="Average all spatial elements of each channel.",
        short="Mean of each channel.",
        result="any_whole",
        notes=("axes", "integers_of_means", "nan", "sums"),
        see=("average_pool", "global_max_pool", "global_lp_pool", "qlinear_global_average_pool"),
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
>>> onnxpool.global_average_pool(x).tolist()
[[[[3.0]]]]

`axes` selects the axes to pool, and ``keepdims=False`` drops them:

>>> onnxpool.global_average_pool(x[0, 0], axes=1, keepdims=False).tolist()
[1.5, 4.5]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.GlobalAveragePool(channels_last=True)
>>> op(np.full((1, 2, 2, 3), 0.5, np.float32)).tolist()
[[[[0.5, 0.5, 0.5]]]]""",
        dask=OfDask("lazy_whole", """\
>>> import dask.array as da, onnxpool.dask
>>> x = da.arange(12, chunks=5, dtype="float32")
>>> float(onnxpool.dask.global_average_pool(x, axes=0, keepdims=False).compute())
5.5"""),
        xarray=OfXarray("Average all elements along dimensions of a labelled array.", """\
>>> import numpy as np, onnxpool.xarray, xarray as xr
>>> x = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("time", "lon"))
>>> onnxpool.xarray.global_average_pool(x, "lon").values.tolist()
[1.0, 4.0]"""),
    ),
    "GlobalMaxPool": Texts(
        bases=("Whole", "Maximum"),
        summary="Take the maximum of all spatial elements of each channel.",
        short="Maximum of each channel.",
        result="any_whole",
        notes=("axes", "integers", "maxima"),
        see=("max_pool", "global_min_pool", "global_average_pool", "global_lp_pool"),
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
>>> onnxpool.global_max_pool(x).tolist()
[[[[6.0]]]]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.GlobalMaxPool(channels_last=True)
>>> op(np.full((1, 2, 2, 3), 0.5, np.float32)).tolist()
[[[[0.5, 0.5, 0.5]]]]""",
        dask=OfDask("lazy_whole", """\
>>> import dask.array as da, onnxpool.dask
>>> x = da.arange(12, chunks=5, dtype="float32")
>>> float(onnxpool.dask.global_max_pool(x, axes=0, keepdims=False).compute())
11.0"""),
        xarray=OfXarray("Take the maximum along dimensions of a labelled array.", """\
>>> import numpy as np, onnxpool.xarray, xarray as xr
>>> x = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("time", "lon"))
>>> onnxpool.xarray.global_max_pool(x, "lon").values.tolist()
[2.0, 5.0]"""),
    ),
    "GlobalMinPool": Texts(
        bases=("Whole", "Minimum"),
        summary="Take the minimum along given axes.",
        short="Minimum along given axes.",
        result="any_whole",
        notes=("minima",),
        see=("min_pool", "global_max_pool"),
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[1, 2], [3, 6]])
>>> onnxpool.global_min_pool(x, axes=1, keepdims=False).tolist()
[1, 3]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.GlobalMinPool(axes=(0, 1))
>>> op(np.full((2, 2, 3), 7, np.uint8)).tolist()
[[[7, 7, 7]]]""",
        dask=OfDask("lazy_whole", """\
>>> import dask.array as da, onnxpool.dask
>>> x = da.arange(12, chunks=5)
>>> int(onnxpool.dask.global_min_pool(x, axes=0, keepdims=False).compute())
0"""),
        xarray=OfXarray("Take the minimum along dimensions of a labelled array.", """\
>>> import numpy as np, onnxpool.xarray, xarray as xr
>>> x = xr.DataArray(np.arange(6).reshape(2, 3), dims=("time", "lon"))
>>> onnxpool.xarray.global_min_pool(x, ["time", "lon"]).item()
0"""),
    ),
    "GlobalLpPool": Texts(
        bases=("Whole", "Norm"),
        summary="Take the Lp norm of all spatial elements of each channel.",
        short="Lp norm of each channel.",
        result="any_whole",
        notes=("axes", "powers", "nan"),
        see=("lp_pool", "global_average_pool", "global_max_pool"),
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[[3, 0], [0, -4]]]], np.float32)
>>> onnxpool.global_lp_pool(x).tolist()
[[[[5.0]]]]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.GlobalLpPool(channels_last=True)
>>> op(np.full((1, 2, 2, 3), 0.5, np.float32)).tolist()
[[[[1.0, 1.0, 1.0]]]]""",
        dask=OfDask("lazy_whole", """\
>>> import dask.array as da, numpy as np, onnxpool.dask
>>> x = da.from_array(np.array([3, 0, -4], np.float32), chunks=1)
>>> float(onnxpool.dask.global_lp_pool(x, axes=0, keepdims=False).compute())
5.0"""),
        xarray=OfXarray("Take the Lp norm along dimensions of a labelled array.", """\
>>> import onnxpool.xarray, xarray as xr
>>> x = xr.DataArray([3.0, 0.0, -4.0], dims="time")
>>> onnxpool.xarray.global_lp_pool(x).item()
5.0"""),
    ),
    "QLinearAveragePool": Texts(
        bases=("QuantisedMean",),
        summary="Average each window of the spatial axes of a quantised array.",
        short="Mean of each window of a quantised array.",
        result="windows",
        notes=("size", "undilated", *WINDOWS[1:], "divisor", "quantised"),
        see=("average_pool", "qlinear_global_average_pool"),
        own_notes="""\
A result is ``rint(mean / y_scale + y_zero_point)``, where `rint` rounds to the nearest integer, with ties to even. The
zero point is added before rounding, so it decides which way ties go: a quotient of 1.5 gives 2 with a `y_zero_point` of
0, and 2 with one of 1. Each step is rounded to float32: real values, their sum in the order of the taps, the mean, the
quotient, and its sum with the zero point. If a single window without padding covers all spatial elements, the result is
that of `qlinear_global_average_pool`, which adds the zero point after rounding.

Results are bit-identical to those of onnxruntime, except for windows that reach beyond the padding at the end. Their
divisor is that of AveragePool. The result for a window entirely in padding is `y_zero_point`.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[10, 20, 40]]], np.uint8)
>>> onnxpool.qlinear_average_pool(x, 0.5, 0, 0.25, 0, 2).tolist()
[[[30, 60]]]

The mean of 1 and 2 is 1.5. With the zero point, that is 2.5, which rounds to 2:

>>> x = np.array([[[2, 3, 9]]], np.int8)
>>> onnxpool.qlinear_average_pool(x, 1.0, 1, 1.0, 1, 2, strides=2).tolist()
[[[2]]]""",
        example_of_class="""\
>>> import onnxpool
>>> onnxpool.QLinearAveragePool(kernel_shape=3, auto_pad="SAME_UPPER").output_shape((1, 8, 7, 7))
(1, 8, 7, 7)""",
    ),
    "QLinearGlobalAveragePool": Texts(
        bases=("Whole", "QuantisedMean"),
        summary="Average all spatial elements of each channel of a quantised array.",
        short="Mean of each channel of a quantised array.",
        result="whole",
        notes=("quantised",),
        see=("qlinear_average_pool", "global_average_pool"),
        own_notes="""\
A result is ``rint(total * (x_scale / (y_scale * count))) + y_zero_point``, where `total` is the exact sum of ``x -
x_zero_point`` over the `count` elements of a channel, and `rint` rounds to the nearest integer, with ties to even. Each
other step is computed in float32. The zero point is added after rounding, as in QuantizeLinear but not in
`qlinear_average_pool`: a product of 1.5 gives 2 with a `y_zero_point` of 0, and 3 with one of 1.

Results are bit-identical to those of onnxruntime, unless its 32-bit sum overflows.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[[10, 20], [30, 40]]]], np.uint8)
>>> onnxpool.qlinear_global_average_pool(x, 0.5, 0, 0.25, 0).tolist()
[[[[50]]]]

The mean of 1 and 2 is 1.5, which rounds to 2. Then the zero point is added:

>>> x = np.array([[[2, 3]]], np.int8)
>>> onnxpool.qlinear_global_average_pool(x, 1.0, 1, 1.0, 1).tolist()
[[[3]]]""",
        example_of_class="""\
>>> import numpy as np, onnxpool
>>> op = onnxpool.QLinearGlobalAveragePool(channels_last=1)
>>> op(np.full((1, 2, 2, 3), 7, np.uint8), 1.0, 0, 0.5, 1).tolist()
[[[[15, 15, 15]]]]""",
    ),
    "MaxUnpool": Texts(
        bases=("Scatter",),
        summary="Scatter values back to the positions recorded by `max_pool`.",
        short="Inverse of `max_pool`, which scatters values back to their positions.",
        result="unpooled",
        notes=(),
        see=("max_pool",),
        inputs=("indices", "output_shape"),
        last=("output_shape",),
        own_notes="""\
All other positions are 0. Pass the `kernel_shape`, `strides` and `pads` that were passed to `max_pool`. An axis of `x`
with ``size`` elements becomes one with ``(size - 1) * stride + kernel - begin - end``.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.array([[[1, 5, 2, 4]]], np.float32)
>>> y, indices = onnxpool.max_pool(x, 2, strides=2, return_indices=True)
>>> onnxpool.max_unpool(y, indices, 2, strides=2).tolist()
[[[0.0, 5.0, 0.0, 4.0]]]""",
        example_of_class="""\
>>> import onnxpool
>>> onnxpool.MaxUnpool(kernel_shape=2, strides=2).output_shape((1, 3, 4, 4))
(1, 3, 8, 8)""",
    ),
    "MaxRoiPool": Texts(
        bases=("MaximumOfBins",),
        summary="Take the maximum of each bin of regions of images.",
        short="Maximum of each bin of regions.",
        result="bins",
        notes=(),
        see=("roi_align", "max_pool"),
        own_notes="""\
Corners are multiplied by `spatial_scale` and rounded to the nearest integer, with ties away from zero. A region
includes both of its corners. The maximum of a bin is 0 if the bin lies outside the image, and NaN if it contains a NaN.
A coordinate or a side of a region must be less than 2^31.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
>>> onnxpool.max_roi_pool(x, np.array([[0, 0, 0, 3, 3]], np.float32), (2, 2)).tolist()
[[[[6.0, 8.0], [14.0, 16.0]]]]""",
        example_of_class="""\
>>> import onnxpool
>>> op = onnxpool.MaxRoiPool(pooled_shape=(7, 7))
>>> op.spatial_scale
1.0""",
    ),
    "RoiAlign": Texts(
        bases=("SamplesOfBins",),
        summary="Average interpolated samples of each bin of regions of images, or take their maximum.",
        short="Mean or maximum of interpolated samples of each bin of regions.",
        result="bins",
        notes=(),
        see=("max_roi_pool", "average_pool"),
        own_notes="""\
A sample is interpolated bilinearly from the four elements around it. With ``mode="max"``, the result is not the largest
sample but the largest weighted element of all samples. A region may have at most 2^22 samples. Coordinates are computed
in float64 for float64, and in float32 for other dtypes. The corners and sides of regions must be finite there.""",
        example="""\
>>> import numpy as np, onnxpool
>>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
>>> rois, images = np.array([[0, 0, 3, 3]], np.float32), np.array([0])
>>> onnxpool.roi_align(x, rois, images, output_height=2, output_width=2, opset=10).tolist()
[[[[4.75, 6.25], [10.75, 12.25]]]]""",
        example_of_class="""\
>>> import onnxpool
>>> op = onnxpool.RoiAlign(output_height=7, output_width=7, opset=10)
>>> op.coordinate_transformation_mode
'output_half_pixel'""",
    ),
}
