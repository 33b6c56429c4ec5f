"""The parts of docstrings that operators share: each is written once here, or taken from the table of versions.

`documented` puts them together for a function and its class when they are defined. What only one operator has stands in
the docstring in its source: the summary, notes and examples.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from . import schemas
from .hints import hinted

F = TypeVar("F", bound=Callable[..., Any])

LAYOUT = "(N, C, *spatial), or (N, *spatial, C) if `channels_last`"
ANY_AXES = f"array_like of shape {LAYOUT}; any shape with `axes`"
TAKE_AXES = ("AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
IMAGES = "(N, C, H, W), or (N, H, W, C) if `channels_last`"
PER_AXIS = "int or sequence of int"
FLAG = "{0, 1}, optional"

PARAMETERS: dict[str, tuple[str, str]] = {  # type and description
    "x": (f"array_like of shape {LAYOUT}", "The input X: {dtypes}. It is not changed."),
    "kernel_shape": (PER_AXIS, "The taps of a window along each spatial axis. An int stands for every axis."),
    "strides": (f"{PER_AXIS}, optional", "The elements from one window to the next along each axis. By default 1, "
                                         "whatever the kernel: windows overlap."),
    "pads": (f"{PER_AXIS}, optional", "The padding: the beginning of each spatial axis, then the end of each. An int "
                                      "stands for every side. By default 0."),
    "dilations": (f"{PER_AXIS}, optional", "The elements from one tap to the next along each axis. By default 1."),
    "auto_pad": ('{"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, optional',
                 'A rule for the padding instead of `pads`. By default "NOTSET".'),
    "ceil_mode": (FLAG, "1 rounds the number of windows up, so that the last one may be only partly inside. "
                        "By default 0."),
    "count_include_pad": (FLAG, "1 counts padding in the divisor. By default 0."),
    "storage_order": (FLAG, "1 counts Indices column by column within the last two axes. By default 0."),
    "return_indices": ("bool, optional", "Whether to return Indices too. By default False."),
    "p": ("int or float, optional",
          "The order of the norm: a float above 0 at version 1, an int of at least 1 since version 2. By default 2."),
    "x_scale": ("float32 scalar or float", "The real value of one unit of `x`: finite and above 0."),
    "x_zero_point": ("scalar of the dtype of `x`, or int", "The unit of `x` that stands for real 0.{optional}"),
    "y_scale": ("float32 scalar or float", "The real value of one unit of the result: finite and above 0."),
    "y_zero_point": ("scalar of the dtype of `x`, or int", "The unit of the result that stands for real 0.{optional}"),
    "indices": ("int64 array_like of the shape of `x`",
                "The input I: flat places in the result, in the order of N, C and the spatial axes. Of equal ones the "
                "last counts."),
    "output_shape": ("int64 array_like, optional",
                     "The shape of a result that is larger than what `indices` address. They then address its corner."),
    "rois": ("array_like of shape (R, 4)",
             "The regions, in the dtype of `x`. Each row holds the corners x1, y1, x2, y2."),
    "batch_indices": ("int64 array_like of shape (R,)", "The number of each region's image in `x`."),
    "pooled_shape": ("int or two ints", "The bins along the height and the width. An int stands for both."),
    "spatial_scale": ("float, optional", "What corners are multiplied by to become places in `x`. By default 1."),
    "mode": ('{"avg", "max"}, optional', 'What is taken of the samples of a bin. By default "avg".'),
    "output_height": ("int, optional", "The bins along the height. By default 1."),
    "output_width": ("int, optional", "The bins along the width. By default 1."),
    "sampling_ratio": ("int, optional",
                       "The samples of a bin along each axis. 0, the default, takes about one for each element."),
    "coordinate_transformation_mode": (
        '{"half_pixel", "output_half_pixel"}, optional',
        '"half_pixel", the default, moves corners by half an element, so that elements lie between whole numbers. '
        '"output_half_pixel" does not: version 10 always uses it.'),
    "opset": ("int, optional",
              "The opset of the model{domain}. By default the newest that this release knows, {latest}."),
    "channels_last": ("bool, optional", "Whether `x` and the result have their channels last. By default False."),
    "axes": (f"{PER_AXIS}, optional",
             "The pooled axes, instead of the spatial ones, in the order of the attributes. Negative ones count from "
             "the end. All other axes are batch."),
    "keepdims": ("bool, optional", "Whether the result keeps pooled axes, with size 1. By default True, as in ONNX."),
    "out": ("ndarray, optional", "Where the result is stored: an array of its shape and dtype. It is returned. It may "
                                 "overlap the inputs."),
    "num_threads": ("int, optional", "The most threads that the call uses. By default `get_num_threads()`. Calls on "
                                     "less than 512 KiB use one."),
}
# What is different for one operator.
SPECIAL: dict[tuple[str, str], tuple[str, str]] = {
    ("MaxPool", "out"): ("ndarray, or tuple of two with Indices, optional",
                         "Where the results are stored, and returned. Each of two may be None. They may overlap `x`, "
                         "but not each other."),
    **{(operator, "x"): (ANY_AXES, PARAMETERS["x"][1]) for operator in TAKE_AXES},
    ("NhwcMaxPool", "x"): ("array_like of shape (N, *spatial, C)", PARAMETERS["x"][1]),
    ("NhwcMaxPool", "channels_last"): ("bool, optional", "True, the default. False is refused."),
    ("MaxRoiPool", "x"): (f"array_like of shape {IMAGES}", PARAMETERS["x"][1]),
    ("MaxRoiPool", "rois"): ("array_like of shape (R, 5)",
                             "The regions, in the dtype of `x`. Each row holds the number of an image and the corners "
                             "x1, y1, x2, y2."),
    ("RoiAlign", "x"): (f"array_like of shape {IMAGES}", PARAMETERS["x"][1]),
    **{(operator, "channels_last"): (FLAG, PARAMETERS["channels_last"][1])
       for operator in ("QLinearAveragePool", "QLinearGlobalAveragePool")},
}

# What is different for dask arrays.
OF_DASK: dict[str, tuple[str, str]] = {
    "x": (f"dask.array.Array of shape {LAYOUT}; any shape with `axes`",
          "The input X, in chunks of any sizes that are known: {dtypes}."),
    "chunks": ("int, tuple, dict or str, optional",
               "The chunks of the result, as dask takes them. By default they follow those of `x`."),
    "num_threads": ("int, optional", "The most threads that a task uses. By default 1: schedulers run several tasks "
                                     "at once."),
}
# What calls of operators, plans, parts and shares have besides X.
OF_CALLS: dict[str, tuple[str, str]] = {
    "*inputs": ("array_like", "The operator's further inputs, in ONNX order."),
    "out": ("ndarray, optional",
            "Where the result is stored; it is returned. A tuple of two for MaxPool with Indices."),
    "num_threads": PARAMETERS["num_threads"],
}
NOTES_OF_DASK = {
    "parts": """\
Nothing is computed before the result is. The result has the bits of that of the whole array, whatever the chunks.

Window i stands for element ``i * stride``. It is in the chunk of the result that belongs to that element's chunk.""",
    "shares": """\
Nothing is computed before the result is. Where chunks cut pooled axes or channels, each chunk becomes a partial
result. These are combined: maxima are exact, and sums are within the bound of `onnxpool.Plan.combine`, with 16 more
shares than there are. Otherwise the result has the bits of that of the whole array, in row-major order.""",
}

RESULTS = {  # shape of the result
    "windows": "ndarray of shape (N, C, *out), or (N, *out, C) if `channels_last`",
    "any_windows": "ndarray of the shape of `x`, but for the number of windows along pooled axes",
    "nhwc": "ndarray of shape (N, *out, C)",
    "any_whole": "ndarray of the shape of `x`, but with 1 along pooled axes, or without these",
    "whole": "ndarray of shape (N, C, *ones), or (N, *ones, C) if `channels_last`",
    "unpooled": "ndarray of the shape that `indices` address, or of `output_shape`",
    "bins": "ndarray of shape (R, C, *bins), or (R, *bins, C) if `channels_last`",
}

NOTES = {
    "axes": """\
With `axes` the call is not one of ONNX. Results keep the places of axes, and are C-contiguous. `channels_last` must be
left out.""",
    "size": """\
An axis of ``size`` elements with padding ``begin`` and ``end`` has this many windows::

    span = (kernel - 1) * dilation + 1
    out = floor((size + begin + end - span) / stride) + 1

With ``ceil_mode=1`` the division is rounded up. A last window that starts in the padding at the end is dropped. An
axis that has no window is an error.
``dilation`` is 1 for operators without `dilations`.""",
    "strides": """\
`strides` default to 1, as ONNX says. In PyTorch and Keras they default to the kernel. Give ``strides=2`` with a
kernel of 2 for windows that do not overlap.""",
    "pads": """\
`pads` lists the beginnings of all axes before the ends. For images, ``pads=(1, 0, 2, 0)`` adds 1 row at the top and
2 rows at the bottom, and no column. ``pads=1`` adds 1 on every side.""",
    "auto_pad": """\
"NOTSET" uses `pads`. "VALID" pads nothing. "SAME_UPPER" and "SAME_LOWER" make ``out = ceil(size / stride)``, with a
padding of ``max(0, (out - 1) * stride + span - size)`` elements. Both sides get half of it. Of an odd number, the
last one goes to the end with "SAME_UPPER", and to the beginning with "SAME_LOWER". `pads` other than 0 are then
refused.""",
    "divisor": """\
A sum is divided by the taps of its window that lie inside the input. With ``count_include_pad=1`` taps in the
padding count too, as zeros. Taps beyond the padding, which ``ceil_mode=1`` can add, never count.""",
    "sums": """\
float16, bfloat16 and float32 are summed in float32, float64 in float64. Each result is rounded once to the dtype of
`x`, to the nearest. Sums whose mean fits the dtype do not overflow.""",
    "powers": """\
The norm is ``sum(abs(x) ** p) ** (1 / p)``. Powers are summed in float64. Each result is rounded once to the dtype
of `x`, to the nearest. Sums of powers whose root fits the dtype do not overflow.""",
    "integers": """\
With `axes`, maxima of bool, int8, uint8, int16, uint16, int32 and uint32 are taken too, and are exact.""",
    "maxima": """\
A maximum is an element of `x`, bit for bit. NaN is larger than all numbers. Indices name the first of equal
maxima.""",
    "nan": "A NaN in a window makes its result NaN.",
    "empty_mean": "The mean of a window wholly in padding is NaN, or 0 with ``count_include_pad=1``.",
    "empty_maximum": "The maximum of a window wholly in padding is -inf, or the least integer of the dtype.",
    "empty_norm": "Padding adds nothing to a norm. The norm of a window wholly in padding is 0.",
    "quantised": """\
An element stands for ``(x - x_zero_point) * x_scale``. The mean of a window is divided by `y_scale`, rounded to the
nearest, ties to even, and clipped to the range of the dtype.""",
}
WINDOWS = ("size", "strides", "pads", "auto_pad")

SUMMARIES = {  # of functions, for the section See Also
    "average_pool": "The mean of each window.",
    "max_pool": "The maximum of each window, and its place.",
    "lp_pool": "The Lp norm of each window.",
    "nhwc_max_pool": "The maximum of each window of 8-bit arrays with their channels last.",
    "global_average_pool": "The mean of each channel.",
    "global_max_pool": "The maximum of each channel.",
    "global_lp_pool": "The Lp norm of each channel.",
    "qlinear_average_pool": "The mean of each window of a quantised array.",
    "qlinear_global_average_pool": "The mean of each channel of a quantised array.",
    "max_unpool": "Scatters values back to the positions recorded by `max_pool`.",
    "max_roi_pool": "The maxima of bins of regions.",
    "roi_align": "Means or maxima of samples between the elements of regions.",
}

OBJECT = "The operator as an object, whose attributes are checked once."
RESULT = "The result Y, of the dtype of `x` in native byte order."
REFUSED = """\
PoolError
    If the version does not allow an attribute, a shape or a value.
PoolTypeError
    If the version does not allow a dtype or a kind of argument."""
NOTHING: Mapping[str, tuple[str, str]] = MappingProxyType({})
SECTION = re.compile(r"\n\n(\w+)\n-+\n")


class Shared(NamedTuple):
    """What a function's docstring takes from here."""

    result: str  # a key of RESULTS
    notes: tuple[str, ...]
    see: tuple[str, ...]


def listed(numbers: tuple[Any, ...]) -> str:
    """Words in a row: 1, 7 and 22."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def dtypes_of(schema: schemas.Schema) -> str:
    """The dtypes of all versions in words."""
    seen: tuple[str, ...] = ()
    parts = []
    for version in schema.versions:
        added = [name for name in version.dtypes if name not in seen]
        if added:
            *first, last = added
            names = f"{', '.join(first)} or {last}" if first else last
            parts.append(names if not seen else f"{names} since version {version.since}")
        seen = version.dtypes
    return "; ".join(parts)


def wrapped(text: str, margin: str = "") -> str:
    """Text on lines of at most 116 characters: `help` indents them by 4."""
    room, lines = 116 - len(margin), []
    while len(text) > room:
        cut = text.rfind(" ", 0, room + 1)
        lines.append(margin + text[:cut])
        text = text[cut + 1:]
    return "\n".join((*lines, margin + text))


def entry(name: str, kind: str, text: str) -> str:
    """What is said of a parameter."""
    return f"{name} : {kind}\n{wrapped(text, '    ')}"


def parameter(schema: schemas.Schema, name: str, special: Mapping[str, tuple[str, str]]) -> str:
    """The entry of one parameter of an operator."""
    kind, text = special.get(name) or SPECIAL.get((schema.operator, name)) or PARAMETERS[name]
    if "{" in text:
        text = text.format(dtypes=dtypes_of(schema), latest=schemas.LATEST[schema.domain],
                           domain=f" in the domain {schema.domain}" if schema.domain else "",
                           optional=" None is 0." if schema.operator == "QLinearAveragePool" else "")
    first = schemas.introduced(schema.operator, name)
    if first and first > schema.versions[0].since:
        text += f" Since version {first}."
    return entry(name, kind, text)


def section(title: str, *paragraphs: str, between: str = "\n") -> str:
    """A section, with an empty line before it."""
    return f"\n\n{title}\n{'-' * len(title)}\n{between.join(paragraphs)}"


def parameters(schema: schemas.Schema, names: Iterable[str], special: Mapping[str, tuple[str, str]] = NOTHING) -> str:
    return section("Parameters", *(parameter(schema, name, special) for name in names))


def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def see_also(*names: str) -> str:
    return section("See Also", *(f"{name} : {SUMMARIES.get(name, OBJECT)}" for name in names))


def references(schema: schemas.Schema) -> str:
    """The page that defines an operator."""
    link = f"ONNX operators, {schema.operator}: https://onnx.ai/onnx/operators/onnx__{schema.operator}.html"
    if schema.domain:
        link = (f"onnxruntime, contributed operators, {schema.operator}: https://github.com/microsoft/onnxruntime/blob/main/"
                f"docs/ContribOperators.md#{schema.domain}.{schema.operator}")
    return section("References", f".. [1] {link}")


def split(doc: str) -> tuple[str, dict[str, str]]:
    """The parts of a docstring in the source: what is before the first section, and the sections."""
    margin = re.match(r"\n +", doc)
    if margin:  # Python 3.13 removes the margin itself
        doc = doc.replace(margin[0], "\n")
    first, *rest = SECTION.split(doc.rstrip())
    return first, dict(zip(rest[::2], rest[1::2], strict=True))


def of_function(function: Callable[..., Any], schema: schemas.Schema, shared: Shared) -> str:
    """The whole docstring of a function."""
    summary, own = split(function.__doc__ or "")
    versions = tuple(version.since for version in schema.versions)
    about = (f"This is {schema.domain or 'ONNX'} {schema.operator} [1]_, version{'s' if len(versions) > 1 else ''} "
             f"{listed(versions)}.")
    notes = (wrapped(about), *([own["Notes"]] if "Notes" in own else []),
             *(NOTES[name] for name in shared.notes))
    return "".join((
        summary,
        parameters(schema, names_of(function)),
        section("Returns", own.get("Returns") or f"{RESULTS[shared.result]}\n    {RESULT}"),
        section("Raises", REFUSED),
        see_also(schema.operator, *shared.see),
        section("Notes", *notes, between="\n\n"),
        references(schema),
        section("Examples", own["Examples"]),
        "\n"))


def of_class(cls: Any, function: Callable[..., Any], schema: schemas.Schema) -> str:
    """The whole docstring of an operator's class."""
    summary, own = split(cls.__doc__ or "")
    inputs = ", ".join((*schema.inputs, "out=None", "num_threads=None"))
    return "".join((
        summary, "\n\nIt is immutable, hashable, picklable and safe to call from any thread.",
        parameters(schema, cls.__init__.__kwdefaults__),
        section("Raises", REFUSED),
        see_also(function.__name__),
        section("Notes", f"The notes of `{function.__name__}` hold here too [1]_. Attributes can be read by name.\n"
                         f"Call the operator as ``op({inputs})``: see `Operator`."),
        references(schema),
        section("Examples", own["Examples"]),
        "\n"))


def document_calls(*classes: type) -> None:
    """Completes the docstrings of methods `__call__` with the parameters that they do not describe."""
    for cls in classes:
        method: Any = cls.__call__
        if method.__doc__:
            summary, own = split(method.__doc__)
            shared = (entry(name, *texts) for name, texts in OF_CALLS.items() if f"{name} :" not in own["Parameters"])
            own["Parameters"] = "\n".join((own["Parameters"], *shared))
            method.__doc__ = "".join((summary, *(section(title, text) for title, text in own.items()), "\n"))


def documented(cls: Any, result: str, notes: tuple[str, ...], see: tuple[str, ...]) -> Callable[[F], F]:
    """Completes the docstrings of a function and of its operator's class, and the errors of its arguments."""
    schema, shared = schemas.SCHEMAS[cls.__name__], Shared(result, notes, see)

    def complete(function: F) -> F:
        if function.__doc__:  # none under python -OO
            cls.__doc__ = of_class(cls, function, schema)
            function.__doc__ = of_function(function, schema, shared)
        return hinted(function)

    return complete


def documented_for_dask(cls: Any, result: str, note: str) -> Callable[[F], F]:
    """Completes the docstring of a function on dask arrays, and the errors of its arguments."""
    schema = schemas.SCHEMAS[cls.__name__]

    def complete(function: F) -> F:
        if function.__doc__:
            summary, own = split(function.__doc__)
            shape = f"dask.array.Array{RESULTS[result].removeprefix('ndarray')}"
            function.__doc__ = "".join((
                summary,
                parameters(schema, names_of(function), OF_DASK),
                section("Returns", own.get("Returns") or f"{shape}\n    {RESULT}"),
                section("Raises", REFUSED),
                section("See Also", f"onnxpool.{function.__name__} : The same for NumPy arrays, with more notes."),
                section("Notes", NOTES_OF_DASK[note]),
                section("Examples", own["Examples"]),
                "\n"))
        return hinted(function)

    return complete
