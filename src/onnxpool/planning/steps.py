"""THE TABLE of steps: the problems that the loops of each can solve, and how problems are cut for them.

A step is a file in `kernels/steps/`, a record here, and its work in `work.pxi`. The build reads the table too, so this
module imports nothing that has to be compiled.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..constants import CACHE_LINE
from .reductions import KINDS

PAGE = 1 << 12  # bytes
FREQUENT = ("max", "mean")  # reductions with loops that are only faster,
DISJOINT = ("max", "extremum", "mean", "integer_mean")  # and those with loops for windows that share no place
RETRIES = ("double_mean", "wide")  # reductions that compute suspect results again
BOTH = ("max", "extremum", "mean", "norm", *RETRIES)  # reductions of windows and of whole channels
WINDOWED = (*BOTH, "valid_mean", "integer_mean")  # reductions of windows that can be computed one axis after the other


class Step(NamedTuple):
    """
    What planning knows about a step, besides its work. A step without costs in `costs.py` is chosen where no step with
    costs fits, or when a test forces it.

    Attributes
    ----------
    name : str
        Name of the step and of its file.
    when : str
        The problems that it fits, in words.
    reductions : tuple of str
        Reductions for which it is compiled.
    room : int
        Byte budget of a tile.
    whole : bool
        Whether it reduces whole channels rather than windows.
    least_lanes : int
        Minimum bytes of lanes of a tile that is cut.
    in_place : bool
        Whether contiguous elements are not copied.
    gathers : bool
        Whether it reads strided elements itself, so that none are copied beforehand.
    shares : bool
        Whether several threads can share a tile of contiguous elements along a single axis.
    copies_in_room : bool
        Whether copied elements count towards the byte budget of a tile.
    rereads : bool
        Whether a row of windows reads elements that the previous row has read.
    divides : bool
        Whether it finishes means by divisions, which are right for every total.
    by_axis : bool
        Whether axes are reduced one after the other. Then rows must be contiguous, and padding is read as well.
    retry : str, optional
        The step that computes suspect results of many taps again, if it fits. By default, and for few taps, which may
        be far apart, the same one, if it takes `RETRIES`.
    """

    name: str
    when: str
    reductions: tuple[str, ...]
    room: int
    whole: bool = False
    least_lanes: int = CACHE_LINE
    in_place: bool = False
    gathers: bool = False
    shares: bool = False
    copies_in_room: bool = False
    rereads: bool = False
    divides: bool = False
    by_axis: bool = False
    retry: str | None = None


STEPS = (
    Step("whole", "one window that covers a whole channel",
         (*BOTH, "valid_mean", "quantised_mean", "long_quantised_mean"), 1 << 19, whole=True, least_lanes=PAGE,
         in_place=True, gathers=True, shares=True, divides=True),
    Step("ordered", "maxima with Indices; QLinearAveragePool, except of whole channels",
         ("indexed_extremum", "mean_in_order"), 1 << 18),
    Step("direct", "all other windows",
         WINDOWED, 1 << 19, in_place=True, copies_in_room=True, rereads=True, retry="passes"),
    Step("passes", "other windows whose spans and strides are at most 8 times the axis plus 64 elements",
         WINDOWED, 1 << 17, least_lanes=PAGE, in_place=True, by_axis=True),
)
COPY = "copy", "any", "bytes"  # the unit that copies a box of elements between any strides, for all steps
VIEW = "copy"  # the route of results that are elements of X, which NumPy copies


def unit_of(step: str, reduction: str, dtype: str) -> str:
    """The name of the compiled function."""
    return f"{step}_{reduction}_{dtype}"


def units() -> Iterator[tuple[str, str, str, bool, bool]]:
    """The units that the build compiles: step, reduction and dtype, and whether the reduction is rare and eager."""
    yield (*COPY, False, True)
    for step in STEPS:
        for name in step.reductions:
            for dtype in KINDS[name].dtypes:
                yield step.name, name, dtype, KINDS[name].rare, KINDS[name].eager


def table() -> list[dict[str, str]]:
    """The steps as data."""
    return [{"name": step.name, "step": step.name, "when": step.when} for step in STEPS]
