"""THE TABLE of reductions: what the loops make of a window. The build compiles a step for each reduction and dtype."""

from typing import NamedTuple

from ..dtypes import BYTES, FLOATS, LOOPS


class Kind(NamedTuple):
    """
    A reduction, as `core/element.h` defines it.

    Attributes
    ----------
    name : str
        The headers see it as REDUCTION_name.
    dtypes : tuple of str
        Those that it is compiled for.
    acc_bytes : int
        The bytes of an accumulator, at least those of an element.
    ordered : bool
        Whether the order of taps shows in a result.
    rare : bool
        Whether it is compiled once, for speed on no instruction set in particular.
    """

    name: str
    dtypes: tuple[str, ...]
    acc_bytes: int = 1
    ordered: bool = True
    rare: bool = False


KINDS = {kind.name: kind for kind in (
    Kind("max", LOOPS, ordered=False),
    Kind("magnitude", FLOATS, ordered=False, rare=True),  # the norm of infinite p
    Kind("mean", FLOATS, acc_bytes=4),
    Kind("norm", FLOATS, acc_bytes=8),
    Kind("wide", FLOATS, acc_bytes=16, rare=True),  # a mean or norm again, as doubles with an exponent of their own
    Kind("indexed_max", LOOPS, acc_bytes=8),
    Kind("mean_in_order", BYTES, acc_bytes=4),  # of quantised windows, whose sum is taken in row-major order
    Kind("quantised_mean", BYTES, acc_bytes=4),  # of whole quantised channels,
    Kind("long_quantised_mean", BYTES, acc_bytes=8, rare=True),  # and of those whose sum does not fit into 32 bits
)}
