"""THE TABLE of dtypes: sizes, formats and ONNX numbers, and how operators treat them. C headers define the rest.

The build reads this table too, so this module imports only the standard library.
"""

from typing import NamedTuple


class Dtype(NamedTuple):
    """
    Dtype of arrays that operators accept or return.

    Attributes
    ----------
    name : str
    onnx : int
        Number of the dtype in ONNX, and in `onnxpool.h`.
    itemsize : int
        Size of an element in bytes.
    digits, exponent_bits : int
        Number of bits of the significand, including the hidden bit, and of the exponent. 0 for integers.
    numpy : bool
        Whether NumPy has the dtype. Otherwise `ml_dtypes` has it.
    wide : str, optional
        Dtype of partial results, if this one is too coarse for results that will be combined.
    exact : str, optional
        Float dtype that represents all values of this integer dtype.
    """

    name: str
    onnx: int
    itemsize: int
    digits: int = 0
    exponent_bits: int = 0
    numpy: bool = True
    wide: str | None = None
    exact: str | None = None

    @property
    def exponents(self) -> tuple[int, int]:
        """The powers of two that bound the magnitudes of a float, including subnormal numbers."""
        bias = (1 << self.exponent_bits >> 1) - 1
        return (2 - bias - self.digits, bias + 1) if self.digits else (0, 0)


TABLE = (
    Dtype("float16", 10, 2, digits=11, exponent_bits=5, wide="float32"),
    Dtype("bfloat16", 16, 2, digits=8, exponent_bits=8, wide="float32", numpy=False),
    Dtype("float32", 1, 4, digits=24, exponent_bits=8),
    Dtype("float64", 11, 8, digits=53, exponent_bits=11),
    Dtype("bool", 9, 1, exact="float32"),
    Dtype("int8", 3, 1, exact="float32"),
    Dtype("uint8", 2, 1, exact="float32"),
    Dtype("int16", 5, 2, exact="float32"),
    Dtype("uint16", 4, 2, exact="float32"),
    Dtype("int32", 6, 4, exact="float64"),
    Dtype("uint32", 12, 4, exact="float64"),
    Dtype("int64", 7, 8),
    Dtype("uint64", 13, 8),
)
DTYPES = {dtype.name: dtype for dtype in TABLE}
FLOATS = tuple(dtype.name for dtype in TABLE if dtype.digits)
SIGNED = tuple(name for name in DTYPES if name.startswith("int"))
BYTES = tuple(f"{sign}int8" for sign in ("", "u"))  # dtypes of quantised tensors
MOMENTS = "mM"  # NumPy's kinds of timedelta64 and datetime64, which are stored as int64
EXACT = {dtype.name: dtype.exact for dtype in TABLE if dtype.exact}
