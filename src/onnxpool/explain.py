"""Explanations of plans: text, data and pictures."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from .pictures import Drawable, Picture, svg
from .windows import Axis

MOST_SHOWN = 8  # windows of an axis that are listed individually
COLOURS = (3, 4)  # sizes that suggest a last axis of colours, not one to pool


class Explanation(str):
    """
    Explanation of a plan: a string that is also available as data and as a picture.

    Notebooks display the picture.

    Attributes
    ----------
    geometry : tuple of str
        Lines of the text that describe windows or regions.
    picture : Drawable
        Content of the picture that `svg` draws.

    Examples
    --------
    >>> import onnxpool
    >>> plan = onnxpool.GlobalMaxPool().plan((1, 3, 8, 8), "float32")
    >>> plan.explain().to_dict()["route"]
    ['whole']
    """

    __slots__ = ("_facts", "geometry", "picture")

    _facts: dict[str, Any]
    geometry: tuple[str, ...]
    picture: Drawable

    def __new__(cls, text: str, facts: dict[str, Any] | None = None, geometry: Sequence[str] = (),
                picture: Drawable | None = None) -> "Explanation":
        explanation = super().__new__(cls, text)
        explanation._facts, explanation.geometry = facts or {}, tuple(geometry)
        explanation.picture = picture or Picture(tuple(text.splitlines()), (), False)
        return explanation

    def svg(self) -> str:
        """
        Draw the windows.

        For two pooled axes, the picture shows the elements with their padding, some windows, and a table with a number
        for each window: the divisor of a mean, or otherwise the number of elements. For another number of axes, the
        picture is a strip of elements for each axis, with the taps of each window below it. Padding that counts,
        padding that does not and the overhang of ceil_mode look different. Long axes are cut in the middle.

        For MaxRoiPool and RoiAlign, the picture shows the bins of the first region, with their samples, or the bins of
        the whole first image if no regions were given. For MaxUnpool, it shows where the elements of the first plane
        go.

        Returns
        -------
        str
            SVG source, 380 pixels wide, which is dark if the reader prefers dark pages. Attributes of its elements,
            such as ``data-window``, hold the numbers that are drawn.

        Examples
        --------
        >>> import onnxpool
        >>> plan = onnxpool.MaxPool(kernel_shape=2, strides=2).plan((1, 1, 4), "float32")
        >>> plan.explain().svg().count("data-tap")
        4
        """
        return svg(self.picture)

    def plot(self, ax: Any = None) -> Any:
        """
        Draw the picture of `svg` with matplotlib. Requires ``onnxpool[plot]``.

        The picture is dark if the axes are dark.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the picture.

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import numpy as np, onnxpool
        >>> plan = onnxpool.MaxUnpool(kernel_shape=2).plan((1, 1, 2, 2), "float32")
        >>> explanation = plan.explain(np.array([[[[0, 1], [2, 3]]]]))
        >>> explanation.plot().figure.savefig("elements.png")  # doctest: +SKIP
        """
        from .pictures import plot

        return plot(self.picture, ax)

    def _repr_html_(self) -> str:
        return self.svg()

    def to_dict(self) -> dict[str, Any]:
        """
        Return the explanation as data.

        Returns
        -------
        dict
            Values of ``operator``, ``dtype``, ``shape``, ``output_shape`` and ``result_dtype``. Plans that reduce
            windows also have ``axes``, and two entries about row-major arrays: ``form``, the few dimensions that the
            loops see, or None if no loop runs; and ``route``, the names of the solvers, as listed by
            `onnxpool.kernels.routes`. If further inputs were given, plans of MaxRoiPool and RoiAlign have ``regions``:
            for each region its image, its corners, and its bins along each axis, with their samples. Plans of MaxUnpool
            have ``places``: for each element of X, in the order of N, C and the spatial axes, its position in the
            result, in the same order of axes.

        Examples
        --------
        >>> import onnxpool
        >>> plan = onnxpool.MaxPool(kernel_shape=2, strides=2).plan((1, 1, 4), "float32")
        >>> plan.explain().to_dict()["axes"]
        [{'axis': 2, 'size': 4, 'out': 2, 'kernel': 2, 'stride': 2, 'dilation': 1, 'pads': [0, 0], 'empty': 0}]
        """
        return deepcopy(self._facts)


def explain(label: str, dtypes: tuple[str, str], shape: Sequence[int], output_shape: Sequence[int],
            geometry: Sequence[str], axes: Sequence[tuple[int, Axis]] | None = None, divided: bool = False,
            route: Sequence[str] = (), form: dict[str, Any] | None = None) -> Explanation:
    """
    The explanation of a plan, whose X and result have these dtypes. Plans that reduce windows also pass their numbered
    axes, form and route.
    """
    dtype, result = dtypes
    heading = f"{label}, {dtype} {shape} -> {'' if result == dtype else result + ' '}{output_shape}"
    lines = [heading, *geometry]
    facts: dict[str, Any] = {"operator": label, "dtype": dtype, "shape": list(shape),
                             "output_shape": list(output_shape), "result_dtype": result}
    if axes is None:
        return Explanation("\n".join(lines), facts, geometry)
    lines += [form_line(form)] if form else []
    lines.append(f"route: {', '.join(route) or 'none'}")
    facts |= {"axes": [axis_facts(axis, number) for number, axis in axes], "form": form, "route": list(route)}
    return Explanation("\n".join(lines), facts, geometry, Picture((heading,), tuple(axes), divided))


def looks_coloured(shape: Sequence[int]) -> bool:
    """Whether a shape looks like one image (H, W, colours) rather than images with channels and one spatial axis."""
    return len(shape) == 3 and shape[2] in COLOURS and min(shape[:2]) > shape[2]


def axis_facts(axis: Axis, number: int) -> dict[str, Any]:
    """The windows of an axis as data, where `number` is the number of the axis."""
    return {"axis": number, "size": axis.size, "out": axis.out, "kernel": axis.kernel, "stride": axis.stride,
            "dilation": axis.dilation, "pads": list(axis.pads), "empty": axis.empty}


def form_line(form: dict[str, Any]) -> str:
    """The normal form of an array in words."""
    groups, axes = ("x".join(map(str, form[name])) or "1" for name in ("groups", "axes"))
    adjacent = ", made adjacent" if form["made_adjacent"] else ""
    return f"form: groups {groups}, items {form['items']}, axes {axes}, lanes {form['lanes']}{adjacent}"


def taps_text(axis: Axis, index: int) -> str:
    """The elements inside a window, as text."""
    first, taps, _ = axis.window(index)
    if taps < 2:
        return f"{first}" if taps else "none"
    return f"{first}-{first + (taps - 1) * axis.dilation}" + (f" by {axis.dilation}" if axis.dilation > 1 else "")


def axis_lines(axis: Axis, number: int, divided: bool) -> list[str]:
    """The windows of an axis as text. If `divided`, it includes the divisors."""
    shown = range(axis.out) if axis.out <= MOST_SHOWN else [*range(3), *range(axis.out - 3, axis.out)]
    texts = [taps_text(axis, i) for i in shown]
    counts = [str(axis.window(i).divisor) for i in shown]
    if axis.out > MOST_SHOWN:
        texts.insert(3, "...")
        counts.insert(3, "...")
    lines = [f"axis {number}: kernel {axis.kernel}, stride {axis.stride}, dilation {axis.dilation}, "
             f"pads {axis.pads[0]}+{axis.pads[1]}, {axis.size} -> {axis.out}",
             f"  windows {', '.join(texts)}" + (f", divided by {', '.join(counts)}" if divided else "")]
    if axis.unread:
        lines.append(f"  the last {axis.unread} of {axis.size} elements are in no window")
    if axis.empty:
        lines.append(f"  {axis.empty} of {axis.out} windows lie entirely in padding")
    return lines
