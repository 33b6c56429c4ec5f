"""What pools are made from, as the compiled planner describes it to Python."""

from typing import Any, NamedTuple

from ..windows import Axis


class Dim(NamedTuple):
    """
    Adjacent axes of an array that can be flattened into one dimension.

    Attributes
    ----------
    size : int
        Elements of X along the dimension.
    x, y : int
        The axes of X and of results that have its strides, or -1 if it has a single element or window.
    place : int
        The index stride along the dimension.
    windows : Axis, optional
        None if each element has a result of its own.
    """

    size: int
    x: int = -1
    y: int = -1
    place: int = 0
    windows: Axis | None = None


class Form(NamedTuple):
    """
    A problem as the loops see it: x[groups, item, axes, lane].

    Attributes
    ----------
    groups : tuple of Dim
    item : Dim
    axes : tuple of Dim
        At least one.
    lane : Dim
        Elements that fill vectors. It has one element if loops read rows of the last axis instead.
    apart : bool
        Whether lanes have a larger stride than the last axis, and must first be copied to be adjacent.
    """

    groups: tuple[Dim, ...]
    item: Dim
    axes: tuple[Dim, ...]
    lane: Dim
    apart: bool

    @property
    def dims(self) -> tuple[Dim, ...]:
        """All dimensions, slowest first."""
        return (*self.groups, self.item, *self.axes, self.lane)

    def to_dict(self) -> dict[str, Any]:
        """The sizes, for `explain`."""
        return {"groups": [dim.size for dim in self.groups], "items": self.item.size,
                "axes": [dim.size for dim in self.axes], "lanes": self.lane.size, "made_adjacent": self.apart}


class Extents(NamedTuple):
    """The extents of a tile."""

    items: int
    windows: tuple[int, ...]
    lanes: int


class Stage(NamedTuple):
    """A unit and its tiles."""

    unit: str
    by_axis: bool  # whether rows must be contiguous
    gathers: bool  # whether the unit reads strided elements itself
    shares: bool  # whether several threads can share a tile
    divides: bool  # whether the unit finishes means by divisions
    tile: Extents
    divided: Extents  # the tile if several threads divide the work


class Setup(NamedTuple):
    """
    What a pool does.

    Attributes
    ----------
    form : Form
    axes : tuple of Axis
        The windows along each axis of the form. With one window, the stride is 1; with one tap, the dilation is 1.
    joined : int
        Trailing axes that count as one in the order of sums, although there are gaps between them.
    acc_bytes : int
        Bytes of an accumulator.
    solver : str
        The name of the solver.
    stages : tuple of Stage
        One stage, or two if a second stage may have to recompute suspect results.
    careful, few : bool
        Whether quotients must be computed by division; whether means of integers are rounded in fewer steps.
    low, high : float
        The safe range of totals.
    """

    form: Form
    axes: tuple[Axis, ...]
    joined: int
    acc_bytes: int
    solver: str
    stages: tuple[Stage, ...]
    careful: bool
    few: bool
    low: float
    high: float
