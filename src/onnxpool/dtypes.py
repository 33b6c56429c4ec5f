"""THE TABLE of dtypes: what each one is in memory, in a sum, in ONNX and in DLPack. Only headers know more of them.

The build reads this table too, so it imports nothing but the standard library.
"""

from typing import NamedTuple


class Dtype(NamedTuple):
    """
    A dtype of arrays that some operator takes.

    Attributes
    ----------
    name : str
    onnx : int
        Its number in ONNX. `onnxpool.h` has the same numbers.
    itemsize : int
        Bytes of an element.
    digits, exponent_bits : int
        Binary digits of the significand of a float, the hidden one included, and bits of its exponent. 0 for integers.
    loops : bool
        Whether the compiled loops read and write it.
    numpy : bool
        Whether NumPy has it. `ml_dtypes` has the others.
    wide : str, optional
        The dtype of partial results, if its own has too few digits for results that are combined later.
    exact : str, optional
        A float dtype that holds all values of an integer dtype.
    maxima : str, optional
        The dtype in which the loops compare its elements, if not its own.
    """

    name: str
    onnx: int
    itemsize: int
    digits: int = 0
    exponent_bits: int = 0
    loops: bool = True
    numpy: bool = True
    wide: str | None = None
    exact: str | None = None
    maxima: str | None = None

    @property
    def exponents(self) -> tuple[int, int]:
        """The powers of two between which the magnitudes of a float lie; subnormal numbers count."""
        bias = (1 << self.exponent_bits >> 1) - 1
        return (2 - bias - self.digits, bias + 1) if self.digits else (0, 0)


TABLE = (
    Dtype("float16", 10, 2, digits=11, exponent_bits=5, wide="float32"),
    Dtype("bfloat16", 16, 2, digits=8, exponent_bits=8, wide="float32", numpy=False),
    Dtype("float32", 1, 4, digits=24, exponent_bits=8),
    Dtype("float64", 11, 8, digits=53, exponent_bits=11),
    Dtype("int8", 3, 1, exact="float32"),
    Dtype("uint8", 2, 1, exact="float32"),
    # Maxima along named axes take these:
    Dtype("bool", 9, 1, loops=False, exact="float32", maxima="uint8"),
    Dtype("int16", 5, 2, loops=False, exact="float32", maxima="float32"),
    Dtype("uint16", 4, 2, loops=False, exact="float32", maxima="float32"),
    Dtype("int32", 6, 4, loops=False, exact="float64", maxima="float64"),
    Dtype("uint32", 12, 4, loops=False, exact="float64", maxima="float64"),
    # Indices have this one, and pooled arrays never:
    Dtype("int64", 7, 8, loops=False),
)
DTYPES = {dtype.name: dtype for dtype in TABLE}
FLOATS = tuple(dtype.name for dtype in TABLE if dtype.digits)
BYTES = tuple(dtype.name for dtype in TABLE if dtype.loops and not dtype.digits)
LOOPS = (*BYTES, *FLOATS)
MAXIMA = {dtype.name: dtype.maxima or dtype.name for dtype in TABLE if dtype.exact}  # of integers, along named axes
EXACT = {dtype.name: dtype.exact for dtype in TABLE if dtype.exact}
