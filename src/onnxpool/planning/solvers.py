"""THE TABLE of solvers: which problems each solver's loops can solve, and how problems are cut for them.

A solver is a file in `kernels/loops/`, a record here, and the functions in `work.pxi` that say when it fits and how
much work it does. The build reads the table too, so this module imports nothing that has to be compiled.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..constants import CACHE_LINE
from .reductions import KINDS

PAGE = 1 << 12  # bytes
FREQUENT = ("max", "mean")  # reductions for which loops that only save time are worth their space
DISJOINT = ("max", "extremum", "mean", "integer_mean")  # reductions with loops for windows that share no place
RETRIES = ("double_mean", "wide")  # reductions that compute suspect results again
BOTH = ("max", "extremum", "mean", "norm", *RETRIES)  # reductions of windows and of whole channels
WINDOWED = (*BOTH, "valid_mean", "integer_mean")  # reductions of windows that can be computed axis by axis
EACH, FAST = "each", "fast"  # instruction sets: all, and all but the baseline of x86-64


class Solver(NamedTuple):
    """
    What planning knows about a solver, besides when it fits and its work. Each family is listed from the most special
    solver to the general one. The first solver that fits is chosen, unless a test or a measurement asks for another.
    Costs choose between families. A solver without costs in `costs.py` is chosen where no solver with costs fits.

    Attributes
    ----------
    name : str
        Name of the solver.
    when : str
        The problems that it fits, in words.
    reductions : tuple of str
        Reductions for which it is compiled.
    room : int
        Byte budget of a tile.
    general : str, optional
        The general solver of its family. By default, itself.
    loops : str, optional
        The solver whose file in `kernels/loops/` has these loops. By default, itself.
    isas : str
        The instruction sets for which it is compiled: `EACH`, `FAST` or the name of one.
    least_bytes : int
        Minimum bytes of the accumulators for which it is compiled.
    whole : bool
        Whether it reduces whole channels rather than windows.
    least_lanes : int, optional
        Minimum bytes of lanes that cutting leaves in a tile. By default, tiles have all lanes.
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
        Whether axes are reduced one after another. Then rows must be contiguous, and padding is read as well.
    retry : str, optional
        The solver that recomputes suspect results of many taps, if it fits. The default is the family's general solver,
        if it takes `RETRIES`. Few taps, which may be far apart, always use the default.
    """

    name: str
    when: str
    reductions: tuple[str, ...]
    room: int
    general: str | None = None
    loops: str | None = None
    isas: str = EACH
    least_bytes: int = 1
    whole: bool = False
    least_lanes: int | None = CACHE_LINE
    in_place: bool = False
    gathers: bool = False
    shares: bool = False
    copies_in_room: bool = False
    rereads: bool = False
    divides: bool = False
    by_axis: bool = False
    retry: str | None = None

    @property
    def family(self) -> str:
        """The name of the family's general solver."""
        return self.general or self.name

    @property
    def file(self) -> str:
        """The name of the file with its loops."""
        return self.loops or self.name


DIRECT = Solver("direct", "all other windows",
                WINDOWED, 1 << 19, in_place=True, copies_in_room=True, rereads=True, retry="passes")
PASSES = Solver("passes", "other windows whose spans and strides are at most 8 times the axis plus 64 elements",
                WINDOWED, 1 << 17, least_lanes=PAGE, in_place=True, by_axis=True)
SOLVERS = (
    Solver("whole", "one window that covers a whole channel",
           (*BOTH, "valid_mean", "quantised_mean", "long_quantised_mean"), 1 << 19, whole=True, least_lanes=PAGE,
           in_place=True, gathers=True, shares=True, divides=True),
    Solver("ordered", "maxima with Indices; QLinearAveragePool, except of whole channels",
           ("indexed_extremum", "mean_in_order"), 1 << 18),
    DIRECT._replace(name="slide", when="2x2 and 3x3 windows, with one more axis or none, along rows of adjacent lanes",
                    general="direct", reductions=FREQUENT, isas=FAST),
    DIRECT,
    PASSES._replace(name="stack", when="many taps along an axis, of which windows share few, in long rows",
                    isas=FAST, loops="passes", retry="passes",
                    reductions=tuple(name for name in WINDOWED if not KINDS[name].rare)),
    PASSES._replace(name="short", when="few taps along rows that fit into at most three registers of AVX-512",
                    general="passes", reductions=FREQUENT, isas="x86_v4", least_bytes=2),
    PASSES._replace(name="disjoint", when="few taps of windows that share no place along rows of few lanes",
                    general="passes", reductions=DISJOINT, isas=FAST, least_lanes=None),
    PASSES._replace(name="folded", when="many adjacent taps along rows, of which windows share few",
                    general="passes", reductions=FREQUENT, isas=FAST, loops="passes"),
    PASSES,
)
COPY = "copy", "any", "bytes"  # the unit that copies a box of elements between any strides, for all solvers
VIEW = "copy"  # stands for results that are elements of X, which NumPy copies


class Unit(NamedTuple):
    """
    A solver's loops, as the build compiles them for one reduction and dtype.

    Attributes
    ----------
    name, loops, reduction, dtype : str
        The solver, the file with its loops, the reduction and the dtype.
    isas : str
        The instruction sets for which it is compiled, as in the solver's record; or "common" if it is compiled only
        once, because it is rare.
    eager : bool
        Whether it is compiled with -O3.
    """

    name: str
    loops: str
    reduction: str
    dtype: str
    isas: str
    eager: bool


def unit_of(solver: str, reduction: str, dtype: str) -> str:
    """The name of the compiled function."""
    return f"{solver}_{reduction}_{dtype}"


def units() -> Iterator[Unit]:
    """The units that the build compiles."""
    yield Unit(unit_of(*COPY), *COPY, EACH, True)
    for solver in SOLVERS:
        for name in solver.reductions:
            kind = KINDS[name]
            for dtype in kind.dtypes:
                if kind.bytes_of(dtype) >= solver.least_bytes:
                    yield Unit(unit_of(solver.name, name, dtype), solver.file, name, dtype,
                               "common" if kind.rare else solver.isas, kind.eager)


def table() -> list[dict[str, str]]:
    """The solvers as data."""
    return [{"name": solver.name, "loops": solver.file, "when": solver.when} for solver in SOLVERS]
