"""THE TABLE of reductions. The build compiles each step for every reduction and dtype that it takes."""

from typing import NamedTuple

from ..dtypes import FLOATS, INTEGERS, LOOPS


class Kind(NamedTuple):
    """
    A reduction, as `core/element.h` defines it.

    Attributes
    ----------
    name : str
        The headers see it as the macro REDUCTION_name.
    dtypes : tuple of str
        The dtypes that it is compiled for.
    acc_bytes : int
        Bytes of an accumulator. It has at least those of an element.
    merge : str, optional
        The function of NumPy that makes one result of two, if the order of taps does not show in results.
    rare : bool
        Whether it runs so seldom that it is compiled only once, without an instruction set.
    """

    name: str
    dtypes: tuple[str, ...]
    acc_bytes: int = 1
    merge: str | None = None
    rare: bool = False


KINDS = {kind.name: kind for kind in (
    Kind("max", LOOPS, merge="maximum"),
    Kind("magnitude", FLOATS, merge="maximum", rare=True),  # the norm of infinite p
    Kind("mean", FLOATS, acc_bytes=4),
    Kind("norm", FLOATS, acc_bytes=8),
    Kind("wide", FLOATS, acc_bytes=16, rare=True),  # means and norms recomputed, as doubles with a separate exponent
    Kind("indexed_max", LOOPS, acc_bytes=8),
    Kind("mean_in_order", INTEGERS, acc_bytes=4),  # means of quantised windows, with sums in row-major order
    Kind("quantised_mean", INTEGERS, acc_bytes=4),  # means of whole quantised channels,
    Kind("long_quantised_mean", INTEGERS, acc_bytes=8, rare=True),  # and of those whose sums do not fit into 32 bits
)}
