"""Execution: arrays in, a plan, the output allocated, the kernel called."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import kernels, quantisation, threads, tiling
from .errors import PoolError, PoolTypeError
from .windows import Axis

if TYPE_CHECKING:
    from .base import Operator

Array = NDArray[Any]


def as_array(label: str, x: object) -> Array:
    """The input as an ndarray; masks would be lost silently and a matrix changes its rank, so they are refused."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, (np.ma.MaskedArray, np.matrix)):
        raise PoolTypeError(f"{label}: X is a {type(x).__name__}, whose meaning pooling would lose; "
                            f"give an ndarray, such as numpy.asarray(x)")
    return np.asarray(x)


def native(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype in native byte order: what results have."""
    resolved = np.dtype(dtype)
    return resolved if resolved.isnative else resolved.newbyteorder("=")


def check_out(label: str, out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Refuses an `out` that is not exactly the result's array."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise PoolTypeError(f"{label}: out is a {type(out).__name__}; give an ndarray of shape {shape}")
    if native(out.dtype) != dtype:
        raise PoolTypeError(f"{label}: out has dtype {out.dtype}, the result has {dtype}; give an array of that dtype")
    if out.shape != shape:
        raise PoolError(f"{label}: out has shape {out.shape}, the result has {shape}; give an array of that shape")
    if not out.flags.writeable:
        raise PoolError(f"{label}: output array is read-only; give a writeable one")
    return out


class Plan:
    """
    An operator made ready for one shape and dtype: the fastest call.

    Plans are made by an operator's `plan` method. They are immutable, picklable and safe to call from any thread.

    Attributes
    ----------
    operator : Operator
        What the plan computes.
    shape : tuple of int
        The only input shape that it takes.
    dtype : numpy.dtype
        The only input dtype that it takes, in native byte order.
    output_shape : tuple of int

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> plan = onnxpool.MaxPool(kernel_shape=(2, 2), strides=(2, 2)).plan((1, 1, 4, 4), np.float32)
    >>> plan(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    __slots__ = ("_pools", "axes", "dtype", "operator", "output_shape", "shape")

    operator: "Operator"
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axes: tuple[Axis, ...]
    output_shape: tuple[int, ...]
    _pools: dict[bool, kernels.Pool]

    def __init__(self, operator: "Operator", shape: tuple[int, ...], dtype: np.dtype[Any],
                 axes: tuple[Axis, ...]) -> None:
        last = operator.channels_last and len(shape) > 2
        spatial = tuple(axis.out for axis in axes)
        channels = shape[-1] if last else shape[1]
        output_shape = (shape[0], *spatial, channels) if last else (*shape[:2], *spatial)
        for name, value in (("operator", operator), ("shape", shape), ("dtype", dtype), ("axes", axes),
                            ("output_shape", output_shape), ("_pools", {})):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a plan is immutable: cannot set {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _replan, (self.operator, self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"{self.operator!r}.plan({self.shape}, {self.dtype.name!r})"

    def explain(self) -> str:
        """
        Tell in words and numbers what the plan does: pads, windows, divisors, route.

        Examples
        --------
        >>> import onnxpool
        >>> print(onnxpool.AveragePool(kernel_shape=3, auto_pad="SAME_UPPER").plan((1, 1, 4), "float32").explain())
        AveragePool-22, float32 (1, 1, 4) -> (1, 1, 4)
        axis 2: kernel 3, stride 1, dilation 1, pads 1+1, 4 -> 4
          windows 0-1, 0-2, 1-3, 2-3, divided by 2, 3, 3, 2
        """
        from .explain import explain
        return explain(self)

    def __call__(self, x: Any, *inputs: Any, out: Array | None = None, num_threads: int | None = None) -> Array:
        """
        Pool an array of the plan's shape and dtype.

        Parameters
        ----------
        x : array_like of the plan's shape and dtype
        *inputs
            The operator's further inputs, in ONNX order.
        out : ndarray of shape `output_shape`, optional
            Where the result is stored; it is returned.
        num_threads : int, optional

        Raises
        ------
        PoolError
            If a shape or value is not the plan's.
        PoolTypeError
            If a dtype or kind of argument is not.
        """
        label = self.operator.label
        x = as_array(label, x)
        if x.shape != self.shape:
            raise PoolError(f"{label}: this plan is for shape {self.shape}, got {x.shape}; plan anew for that shape")
        if x.dtype != self.dtype and native(x.dtype) != self.dtype:
            raise PoolTypeError(f"{label}: this plan is for {self.dtype}, got {x.dtype}; plan anew for that dtype")
        parameters = None
        if inputs or self.operator.quantised:
            taps = math.prod(axis.kernel for axis in self.axes)
            parameters = quantisation.parameters(label, self.dtype, taps, inputs)
        if out is not None:
            check_out(label, out, self.output_shape, self.dtype)
        interleaved = self._interleaved(x)
        team = threads.team(num_threads, x.nbytes)
        y = self._allocate(x, interleaved) if out is None or np.may_share_memory(x, out) else out
        if y.size:
            self._pool(interleaved).run(x, y, team, parameters)
        if out is None or y is out:
            return y
        np.copyto(out, y)
        return out

    def _interleaved(self, x: Array) -> bool:
        """Whether the channels of x lie closer together than its pixels."""
        if x.ndim <= 2:
            return False
        last = self.operator.channels_last
        channel, pixel = (-1, -2) if last else (1, -1)
        if x.shape[channel] == 1:
            return False
        if x.shape[pixel] == 1 or x.flags.c_contiguous:
            return last
        return abs(x.strides[channel]) < abs(x.strides[pixel])

    def _allocate(self, x: Array, interleaved: bool) -> Array:
        """The result, with its axes in memory as the input has them."""
        shape = self.output_shape
        needed = math.prod(shape) * self.dtype.itemsize
        if needed > _memory():
            raise PoolError(f"{self.operator.label}: the result of shape {shape} takes {needed} bytes, more than this "
                            f"machine's {_memory()}; shrink pads or pass out=")
        last = self.operator.channels_last
        if interleaved and not last:
            return np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), self.dtype), -1, 1)
        if last and not interleaved and len(shape) > 2 and shape[-1] > 1:
            return np.moveaxis(np.empty((shape[0], shape[-1], *shape[1:-1]), self.dtype), 1, -1)
        return np.empty(shape, self.dtype)

    def _pool(self, interleaved: bool) -> Any:
        pool = self._pools.get(interleaved)
        if pool is None:
            pool = self._pools[interleaved] = self._make_pool(interleaved)
        return pool

    def _make_pool(self, interleaved: bool) -> Any:
        last = self.operator.channels_last
        images, channels = self.shape[0], self.shape[-1] if last else self.shape[1]
        axes = self.axes or (POINT,)
        outer, inner = (images, channels) if interleaved else (images * channels, 1)
        name, p = self.operator.reduction
        tiles = tiling.choose(axes, outer, inner, running_bytes(name, self.dtype))
        return kernels.Pool(name, self.dtype.name, p, safe_range(self.dtype.name, p), images, channels, axes, tiles,
                            last and len(self.shape) > 2, interleaved)


POINT = Axis(1, 1, 1, 1, 1, (0, 0), 0, 1, 0, 1, 1, 1, 1, 1.0, *(np.empty(0, t) for t in (np.int64, np.int64, float)))

# Powers of two between which the magnitudes of each dtype lie.
EXPONENTS = {"float16": (-24, 16), "bfloat16": (-133, 128), "float32": (-149, 128), "float64": (-1074, 1024)}
SAFE = 960  # a double holds sums of powers of two from -SAFE to SAFE without loss, up to 2^63 of them


def safe_range(dtype: str, p: float) -> tuple[float, float]:
    """The sums of p-th powers that are sure to have neither overflowed nor lost digits to an underflow."""
    low, high = EXPONENTS.get(dtype, (0, 0))
    if p * max(-low, high) <= SAFE:
        return 0.0, math.inf
    return 2.0**-SAFE, 2.0**SAFE


def running_bytes(reduction: str, dtype: np.dtype[Any]) -> int:
    """The bytes of a running value."""
    if reduction == "max":
        return 4 if dtype.itemsize == 2 else dtype.itemsize
    return 8 if reduction == "norm" else max(4, dtype.itemsize)


def _memory() -> int:
    import os
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**62


def _replan(operator: "Operator", shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
    return operator.plan(shape, dtype)
