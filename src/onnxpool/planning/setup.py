"""What pools are made from, as the compiled planner describes it to Python."""

from typing import Any, NamedTuple

from ..windows import Axis


class Dim(NamedTuple):
    """
    Neighbouring axes of an array whose strides are those of a single axis.

    Attributes
    ----------
    size : int
        Elements of X along it.
    x, y : int
        The axes of the arrays whose strides it has, or -1 if it has a single element or window.
    place : int
        The index stride along it.
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
        Elements that fill vectors. A single one if the loops read rows of the last axis instead.
    apart : bool
        Whether lanes have a larger stride than the last axis, so that they are first copied to be adjacent.
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
    gathers: bool  # whether it reads strided elements itself
    shares: bool  # whether several threads can share a tile
    divides: bool  # whether it finishes means by divisions
    tile: Extents
    divided: Extents  # the tile of a task where several threads divide the work


class Setup(NamedTuple):
    """
    What a pool does.

    Attributes
    ----------
    form : Form
    axes : tuple of Axis
        The windows along each axis of the form. Distances that no two windows or taps have are 1.
    joined : int
        Trailing axes that count as one in the order of sums, although there are gaps between them.
    acc_bytes : int
        Bytes of an accumulator.
    solver : str
        The name of the solver.
    stages : tuple of Stage
        One, or two if a second one may have to recompute suspect results.
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
