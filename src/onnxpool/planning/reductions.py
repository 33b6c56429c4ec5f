"""THE TABLE of reductions. The build compiles each step for every reduction and dtype that it takes."""

from typing import NamedTuple

from ..dtypes import BYTES, FLOATS, SIGNED


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
        Bytes of an accumulator. It has at least those of an element,
    factor : int
        times this factor.
    rare : bool
        Whether it runs so seldom that it is compiled only once, without an instruction set.
    """

    name: str
    dtypes: tuple[str, ...]
    acc_bytes: int = 1
    factor: int = 1
    rare: bool = False


KINDS = {kind.name: kind for kind in (
    Kind("max", (*BYTES, *(name for name in FLOATS if name != "bfloat16"))),  # that of float16 takes bfloat16 too
    Kind("extremum", SIGNED),  # all other maxima and minima: maxima of integers in the order of the elements
    Kind("mean", FLOATS, acc_bytes=4),
    Kind("integer_mean", ("uint8", "int16"), factor=2),  # of uint8, int16 and uint16, rounded to an integer
    Kind("norm", FLOATS, acc_bytes=8),
    Kind("wide", FLOATS, acc_bytes=16, rare=True),  # means and norms recomputed, as doubles with a separate exponent
    Kind("indexed_extremum", (*SIGNED, *FLOATS), acc_bytes=8),
    Kind("mean_in_order", BYTES, acc_bytes=4),  # means of quantised windows, with sums in row-major order
    Kind("quantised_mean", BYTES, acc_bytes=4),  # means of whole quantised channels,
    Kind("long_quantised_mean", BYTES, acc_bytes=8, rare=True),  # and of those whose sums do not fit into 32 bits
)}
