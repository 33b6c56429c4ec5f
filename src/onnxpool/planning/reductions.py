"""THE TABLE of reductions. The build compiles each solver's loops for every reduction and dtype that the solver
takes."""

from typing import NamedTuple

from ..dtypes import BYTES, DTYPES, FLOATS, SIGNED


class Kind(NamedTuple):
    """
    A reduction, as `core/element.h` defines it.

    Attributes
    ----------
    name : str
        Headers see it as the macro REDUCTION_name.
    dtypes : tuple of str
        The dtypes for which it is compiled.
    acc_bytes : int
        Minimum bytes of an accumulator.
    factor : int
        An accumulator has at least `factor` times the bytes of an element.
    rare : bool
        Whether it runs so seldom that it is compiled only once, without an instruction set.
    eager : bool
        Whether it is compiled with -O3, which takes a tenth more space. Other reductions are as fast with -O2.
    """

    name: str
    dtypes: tuple[str, ...]
    acc_bytes: int = 1
    factor: int = 1
    rare: bool = False
    eager: bool = False

    def bytes_of(self, dtype: str) -> int:
        """The bytes of an accumulator of a dtype."""
        return max(DTYPES[dtype].itemsize * self.factor, self.acc_bytes)


LARGE = tuple(name for name in FLOATS if DTYPES[name].exponents[1] == 128)  # dtypes with the range of a float
HALVED = tuple(name for name in FLOATS if name != "bfloat16")  # units of float16 take bfloat16 too
KINDS = {kind.name: kind for kind in (
    Kind("max", (*BYTES, *HALVED)),
    Kind("extremum", SIGNED),  # other maxima and minima: maxima of integers that have the order of the elements
    Kind("mean", FLOATS, acc_bytes=4, eager=True),
    Kind("integer_mean", ("uint8", "int16"), factor=2, eager=True),  # of uint8, int16 and uint16, rounded to integers
    Kind("valid_mean", HALVED, acc_bytes=8, factor=2),  # means that skip NaNs
    Kind("norm", FLOATS, acc_bytes=8),
    # Means and norms whose sums left their range, recomputed: in doubles, or in doubles with a separate exponent.
    Kind("double_mean", LARGE, acc_bytes=8, rare=True),
    Kind("wide", FLOATS, acc_bytes=16, rare=True),
    Kind("indexed_extremum", (*SIGNED, *FLOATS), acc_bytes=8, eager=True),
    Kind("mean_in_order", BYTES, acc_bytes=4),  # means of quantised windows, with sums in row-major order
    Kind("quantised_mean", BYTES, acc_bytes=4),  # means of whole quantised channels
    Kind("long_quantised_mean", BYTES, acc_bytes=8, rare=True),  # the same, if sums do not fit into 32 bits
)}
