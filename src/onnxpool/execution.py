"""The base of all plans: they are immutable, and can be called, explained, and cut into parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .arrays import Array, ArrayLike, as_array, native
from .attributes import positive
from .errors import Place, PoolError, PoolTypeError
from .frozen import Frozen
from .windows import Axis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .arrays import T
    from .explain import Explanation
    from .parts import Limit, Part, Partial, Range, Share
else:  # for typing.get_type_hints; these modules are imported when a plan first needs them
    Explanation = Limit = Part = Partial = Range = Share = Any


class Plan(Frozen):
    """
    Operator prepared for one shape and dtype. Calling a plan has the least overhead.

    Create plans with the method `plan` of an operator, not with this class. Plans are immutable and picklable, and any
    thread may call them. Two plans are equal if their operators, shapes and dtypes are.

    Parameters
    ----------
    operator : Operator
        Operator that the plan belongs to.
    shape : tuple of int
        Shape of X.
    dtype : numpy.dtype
        Dtype of X.
    **resolved
        Further fields of subclasses.

    Attributes
    ----------
    operator : Operator
        Operator that made the plan. The plan uses it only for `repr` and pickling.
    shape : tuple of int
        Shape of X. The plan accepts no other.
    dtype : numpy.dtype
        Dtype of X, in native byte order. The plan accepts no other.
    result_dtype : numpy.dtype
        Dtype of the result. It differs from the dtype of X only for means along named axes.
    output_shape : tuple of int
        Shape of the result. For operators that pool regions, shape of the result for one region.
    axes : tuple of Axis
        Windows along each spatial axis, or an empty tuple for operators without windows.
    channels_last : bool
        Whether arrays are (N, *spatial, C).
    label : str
        Operator and version, such as ``"MaxPool-22"``.

    See Also
    --------
    Operator : Makes plans.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> plan = onnxpool.MaxPool(kernel_shape=(2, 2), strides=(2, 2)).plan((1, 1, 4, 4), np.float32)
    >>> plan(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    __slots__ = ("__weakref__", "channels_last", "dtype", "label", "operator", "result_dtype", "shape")

    channels_last: bool
    label: str
    operator: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    result_dtype: np.dtype[Any]
    output_shape: tuple[int, ...]
    axes: tuple[Axis, ...] = ()

    def __init__(self, operator: Any, shape: tuple[int, ...], dtype: np.dtype[Any], **resolved: Any) -> None:
        last = operator.channels_last and len(shape) > 2
        self._freeze(operator=operator, label=operator.label, channels_last=last, shape=shape, dtype=dtype,
                     **{"result_dtype": dtype, **resolved})

    def _key(self) -> tuple[Any, ...]:
        return self.operator, self.shape, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return _replan, (self.operator, self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"{self.operator!r}.plan({self.shape}, {self.dtype.name!r})"

    def result_shape(self, *inputs: Any) -> tuple[int, ...]:
        """
        Return the shape of the result, which can depend on the values of further inputs.

        Parameters
        ----------
        *inputs : array_like
            Inputs of the operator after X, in ONNX order.

        Returns
        -------
        tuple of int
            Shape of the result for these inputs.

        Raises
        ------
        PoolError, PoolTypeError
            If the shape depends on an input that is not allowed.

        Examples
        --------
        >>> import numpy as np, onnxpool
        >>> plan = onnxpool.MaxRoiPool(pooled_shape=2).plan((1, 3, 8, 8), np.float32)
        >>> plan.result_shape(np.zeros((10, 5), np.float32))
        (10, 3, 2, 2)
        """
        return self.output_shape

    def explain(self, *inputs: Any) -> Explanation:
        """
        Describe the plan: its pads, windows and divisors, and the form and route of row-major arrays.

        Parameters
        ----------
        *inputs : array_like
            Inputs of the operator after X, in ONNX order. Only MaxUnpool, MaxRoiPool and RoiAlign describe them: the
            position of each element, or the bins of each region. Other operators ignore them.

        Returns
        -------
        Explanation
            String with a method `to_dict` that returns the same as data.

        Raises
        ------
        PoolError, PoolTypeError
            If MaxUnpool, MaxRoiPool or RoiAlign does not allow the inputs.

        Examples
        --------
        >>> import onnxpool
        >>> print(onnxpool.AveragePool(kernel_shape=3, auto_pad="SAME_UPPER").plan((1, 1, 4), "float32").explain())
        AveragePool-22, float32 (1, 1, 4) -> (1, 1, 4)
        axis 2: kernel 3, stride 1, dilation 1, pads 1+1, 4 -> 4
          windows 0-1, 0-2, 1-3, 2-3, divided by 2, 3, 3, 2
        form: groups 1, items 1, axes 4, lanes 1
        route: passes
        """
        from .explain import explain

        dtypes = self.dtype.name, self.result_dtype.name
        return explain(self.label, dtypes, self.shape, self.output_shape, self._geometry())

    def plot(self, ax: Any = None) -> Any:
        """
        Draw the picture of `Explanation.svg` with matplotlib, as `Explanation.plot` does.

        Requires ``onnxpool[plot]``. The picture is dark if the axes are dark.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the picture.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return self.explain().plot(ax)

    def _repr_html_(self) -> str:
        return self.explain().svg()

    def _geometry(self) -> list[str]:
        """The description of windows or regions, as lines of text."""
        return []

    def tile(self, slices: slice | Sequence[slice]) -> Part:
        """
        Make a part that computes a block of the result, with the same bits as in the whole result.

        Parameters
        ----------
        slices : slice or sequence of slice
            Slices of the result with step 1, one per axis. Trailing axes without a slice are taken whole.

        Returns
        -------
        Part
            Part that computes ``result[slices]`` from ``X[part.inputs]``.

        Raises
        ------
        PoolError, PoolTypeError
            If the slices do not have this form, or if the values of an input determine which elements of X a result
            depends on.
        """
        from .parts import ranges_of

        return self._part(ranges_of(self.label, slices, self.output_shape))

    def tiles(self, n: int | None = None, *, max_bytes: int | None = None) -> Iterator[Part]:
        """
        Cut the result into parts that cover it exactly once, in row-major order.

        Parameters
        ----------
        n : int, optional
            Minimum number of parts, provided that the result has that many elements.
        max_bytes : int, optional
            Maximum size in bytes of the input and output of a part together. Pass either `n` or `max_bytes`.

        Returns
        -------
        iterator of Part
            Parts as returned by `tile`.

        Raises
        ------
        PoolError
            If a part with a single element exceeds `max_bytes`, or for the reasons given in `tile`.
        """
        from .parts import Limit

        return self._parts(Limit.of(self.label, n, max_bytes))

    def partials(self, n: int | None = None, *, max_bytes: int | None = None) -> Iterator[Share]:
        """
        Cut the input of a global operator into shares, whose partial results `combine` merges.

        Parameters
        ----------
        n : int, optional
            Minimum number of shares, provided that the pooled axes have that many elements.
        max_bytes : int, optional
            Maximum size of the input of a share in bytes, including the copy that sums of 16-bit floats need. Pass
            either `n` or `max_bytes`.

        Returns
        -------
        iterator of Share
            Shares. Each computes a `Partial` from ``X[share.inputs]``.

        Raises
        ------
        PoolError
            If a share with a single element exceeds `max_bytes`, or if the operator is not global.
        """
        from .parts import Limit

        return self._shares(Limit.of(self.label, n, max_bytes))

    def combine(self, partials: Iterable[Partial]) -> Array:
        """
        Combine partial results into the result.

        Parameters
        ----------
        partials : iterable of Partial
            Partial results of all shares, in any order. Consumed one at a time.

        Returns
        -------
        ndarray
            Result for the whole input. Maxima are exact, and so are sums of integers while they stay below 2^51; their
            means are rounded once. Let n be the number of shares, and u half an ulp of float32 or float64. The error of
            any other mean is at most ``(2 * log2(taps) + 5) * u * mean(abs(x))`` plus ``n * 2**-53 * mean(abs(x))``, or
            ``n * 2**-1074`` if that is more. The relative error of a norm is at most
            ``(2 * log2(taps) + 4 + n) * 2**-53 * max(1, 1 / p)`` plus u. Both are then rounded to the dtype.

        Raises
        ------
        PoolError
            If the shares do not add up to the whole input, or if the operator is not global.
        """
        return self._combined(partials)

    def tuned(self, x: ArrayLike | None = None, *, seconds: float = 0.1, num_threads: int | None = None) -> Plan:
        """
        Measure all ways to compute the result, and use the fastest from now on.

        The ways differ in loops, memory layouts and tile sizes, and all return the same bits. Plans that are later made
        for the same problem also use the fastest way. A problem is not measured again if it was measured before with
        the same number of threads, or loaded with `load_wisdom`.

        Parameters
        ----------
        x : array_like, optional
            Array to measure on. It has the plan's shape and dtype, and should have the strides of later arrays. Default
            is a C-contiguous array of ones, which takes as much memory as X.
        seconds : float
            Time for measurements. The usual way is measured even if that takes longer.
        num_threads : int, optional
            Number of threads to measure with. Default is `get_num_threads()`.

        Returns
        -------
        Plan
            The plan itself.

        Raises
        ------
        PoolError, PoolTypeError
            If `x` has another shape or dtype, or if `seconds` is not a finite number above 0.

        See Also
        --------
        wisdom : Returns what was learned.
        load_wisdom : Loads it in another process.

        Examples
        --------
        >>> import numpy as np, onnxpool
        >>> plan = onnxpool.MaxPool(kernel_shape=3, strides=2).plan((1, 64, 15, 15), np.float32)
        >>> x = np.random.default_rng(0).standard_normal((1, 64, 15, 15), np.float32)
        >>> y = plan(x)
        >>> np.array_equal(plan.tuned(seconds=0.01)(x), y)
        True
        """
        import sys

        limit = positive(Place(self.label, "seconds"), seconds, sys.float_info.max, 0.1)
        return self._tuned(x, limit, num_threads)

    def _tuned(self, x: ArrayLike | None, seconds: float, num_threads: int | None) -> Plan:
        return self

    def _uncut(self) -> PoolError:
        """The error of plans that cannot be cut into parts."""
        return PoolError(f"{self.label}: positions come from values of an input, so the result cannot be cut into "
                         f"parts; cut the inputs", self.label, "slices")

    def _part(self, ranges: Sequence[Range]) -> Part:
        raise self._uncut()

    def _parts(self, limit: Limit) -> Iterator[Part]:
        raise self._uncut()

    def _shares(self, limit: Limit) -> Iterator[Share]:
        raise self._uncut()

    def _combined(self, partials: Iterable[Partial]) -> Array:
        raise self._uncut()

    @overload
    def __call__(self, x: NDArray[T], *inputs: ArrayLike | None, out: None = None,
                 num_threads: int | None = None) -> NDArray[T] | Any: ...

    @overload
    def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                 num_threads: int | None = None) -> Array | Any: ...

    def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                 num_threads: int | None = None) -> Array | Any:
        """
        Run the operator on an array of the plan's shape and dtype.

        Parameters
        ----------
        x : array_like of the plan's shape and dtype
            Input X, which is not changed.
        *inputs : array_like
            Further inputs of the operator, in ONNX order.
        out : ndarray, optional
            Array that receives the result and is returned. A tuple of two for MaxPool with Indices.
        num_threads : int, optional
            Upper limit on the threads of this call. Default is `get_num_threads()`. Calls on less than 512 KiB use
            one thread.

        Returns
        -------
        ndarray, or tuple of two for MaxPool with Indices
            The result, with the plan's `result_dtype`.

        Raises
        ------
        PoolError
            If the shape of the array is not the plan's, or if a value is not allowed.
        PoolTypeError
            If the dtype of the array is not the plan's, or if a kind of argument is not allowed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not run")

    def _checked(self, x: Any, shape: tuple[int, ...] | None = None) -> Array:
        """X as an array of the given shape, by default the plan's, and of the plan's dtype."""
        label, shape = self.label, self.shape if shape is None else shape
        array = as_array(label, x)
        if array.shape != shape:
            raise PoolError(f"{label}: this plan is for shape {shape}, got {array.shape}; make a plan for that shape",
                            label, "X", value=array.shape)
        if array.dtype != self.dtype and native(array.dtype) != self.dtype:
            raise PoolTypeError(f"{label}: this plan is for {self.dtype}, got {array.dtype}; make a plan for that "
                                f"dtype", label, "X", value=array.dtype.name)
        return array

    def _no_inputs(self, inputs: tuple[Any, ...]) -> None:
        if inputs:
            raise PoolError(f"{self.label}: takes only X, got {1 + len(inputs)} inputs; leave the others out, and pass "
                            f"an array for the result as out=", self.label, value=1 + len(inputs))


def _replan(operator: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
    plan: Plan = operator.plan(shape, dtype)
    return plan
