"""The base of all operators: attributes are checked once, and plans are cached."""

from __future__ import annotations

import os
from _thread import RLock  # threading takes a millisecond to import
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload
from weakref import ref

import numpy as np

from . import schemas, windows
from .arrays import Array, ArrayLike, DTypeLike, as_array, dtype_name, dtype_of, native
from .attributes import Axes, Flag, integer
from .constants import MOST_AXES
from .errors import Place, PoolError, PoolTypeError
from .execution import Plan
from .frozen import Frozen
from .hints import hinted
from .kernels import renew_shapes
from .kernels.cpu import DefaultFloats
from .keys import MOST_KEPT, forget_calls, remembered
from .planning.quantisation import ratio_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .arrays import T

Ints = int | Sequence[int]  # one value for all axes, or one per axis

# Held during imports that calls trigger, and during forks. Otherwise, a child process forked while another thread
# imports a module would wait for that import forever. Modules compute constants when they are imported, which is why
# operators import them in the default floating-point state.
importing = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=importing.acquire, after_in_parent=importing.release, after_in_child=importing.release)


class Operator(Frozen):
    """
    ONNX operator with checked attributes: immutable, hashable, picklable and thread-safe.

    This is the base of all operator classes, for annotations and `isinstance`. Instantiate its subclasses, such as
    `MaxPool`.

    Attributes
    ----------
    attributes : dict
        Given attributes, by ONNX name.
    opset : int
        Given opset, by default the newest one that this release knows.
    version : int
        Version of the operator in that opset.
    channels_last : bool
        Whether arrays are (N, *spatial, C) instead of (N, C, *spatial).
    return_indices : bool
        Whether calls return Indices as well. Only MaxPool and MinPool return Indices.
    axes : tuple of int, or None
        Given axes to pool, or None for the spatial axes of ONNX.
    keepdims : bool
        Whether the result keeps pooled axes. Only global operators can drop them.
    dtype : numpy.dtype, or None
        Given dtype of the result. Only operators that take means accept one.
    skipna : bool
        Whether NaNs and NaTs are left out.
    label : str
        Operator and version, such as ``"AveragePool-19"``.

    See Also
    --------
    from_node : Makes the operator of an ONNX node.
    Plan : Operator prepared for one shape and dtype.

    Notes
    -----
    Every ONNX attribute can also be read by its name. Attributes that were not given have their defaults: `strides` and
    `dilations` are 1, `pads` are 0.

    Examples
    --------
    >>> import onnxpool
    >>> op = onnxpool.MaxPool(kernel_shape=(3, 3), opset=12)
    >>> isinstance(op, onnxpool.Operator)
    True
    >>> op.kernel_shape, op.strides, op.ceil_mode
    ((3, 3), 1, 0)
    >>> op.attributes
    {'kernel_shape': (3, 3)}
    >>> op.label
    'MaxPool-12'
    """

    __slots__ = ("_given", "_recent", "_shapes", "_values", "_version", "axes", "channels_last", "dtype", "keepdims",
                 "label", "opset", "return_indices", "skipna")

    windowed: ClassVar[bool] = True
    quantised: ClassVar[bool] = False
    _schema: ClassVar[schemas.Schema]  # the operator's rows in the table of versions
    _optional: ClassVar[dict[str, Any]]  # the defaults of the arguments that may be left out

    _given: tuple[tuple[str, Any], ...]
    _values: dict[str, Any]  # all attributes: given, default, or implied by a version that lacks them
    _version: schemas.Version
    _recent: Callable[[], Plan | None]  # a weak reference to the last call's plan, which holds the operator
    _shapes: Any  # the pools of plain arrays by shape, once there are any
    axes: tuple[int, ...] | None
    channels_last: bool
    dtype: np.dtype[Any] | None
    keepdims: bool
    label: str
    opset: int
    return_indices: bool
    skipna: bool

    def _set(self, opset: int | None = None, channels_last: bool | int = False, *, return_indices: bool = False,
             axes: Ints | None = None, keepdims: bool = True, dtype: DTypeLike | None = None, skipna: bool = False,
             **given: Any) -> None:
        """Check and store the arguments of a constructor."""
        schema = self._schema
        version = schemas.resolve(schema.operator, opset)
        checked = schemas.check_attributes(version, given)
        pooled = None if axes is None else Axes().check(Place(version.label, "axes"), axes)
        if pooled is None and schema.domain == schemas.OWN:
            raise PoolTypeError(f"{version.label}: axes is None, but this operator is not part of ONNX and has no "
                                f"default; name the pooled axes, such as axes=(0, 1)", version.label, "axes")
        if pooled is not None and channels_last:
            raise PoolError(f"{version.label}: axes={pooled} given together with channels_last; axes names the "
                            f"pooled axes in any layout, so leave channels_last out", version.label, "axes",
                            value=pooled)
        sides = checked.get("kernel_shape") if pooled is None else pooled
        if self.windowed and isinstance(sides, tuple):
            windows.check_lengths(version.label, checked, len(sides))
        if dtype is not None and pooled is None:
            raise PoolError(f"{version.label}: dtype={dtype!r} given without axes, but results of ONNX have the dtype "
                            f"of X; name the pooled axes, or cast the result", version.label, "dtype", value=dtype)
        skips = bool(Flag().check(Place(version.label, "skipna"), skipna))
        if skips and pooled is None:
            raise PoolError(f"{version.label}: skipna=True given without axes, but ONNX does not leave NaNs out; name "
                            f"the pooled axes, such as axes=(2, 3)", version.label, "skipna", value=True)
        last = bool(Flag().check(Place(version.label, "channels_last"), channels_last))
        if schema.channels_last and not last:
            raise PoolError(f"{version.label}: channels_last=False, but this operator takes (N, *spatial, C); use "
                            f"MaxPool", version.label, "channels_last", value=False)
        indices = bool(Flag().check(Place(version.label, "return_indices"), return_indices))
        keeps = bool(Flag().check(Place(version.label, "keepdims"), keepdims))
        schemas.check_outputs(version, 1 + indices)
        resolved = schemas.LATEST[schema.domain] if opset is None else int(opset)
        self._freeze(_given=tuple(checked.items()), _values={**version.implied, **checked}, _version=version,
                     label=version.label, channels_last=last, opset=resolved, return_indices=indices, axes=pooled,
                     keepdims=keeps, skipna=skips, _recent=no_plan, _shapes=None,
                     dtype=None if dtype is None else dtype_of(version.label, dtype))
        self._check()

    def _check(self) -> None:
        """Refuse attributes that are valid one by one but not together."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The given attributes, by ONNX name."""
        return dict(self._given)

    @property
    def version(self) -> int:
        """The version of the operator that its opset uses."""
        return self._version.since

    def _spatial(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """The sizes of the spatial axes, and the number of the first spatial axis."""
        first = 1 if self.channels_last and len(shape) > 2 else 2
        return shape[first:first + len(shape) - 2], first

    def _checked_shape(self, shape: Any) -> tuple[int, ...]:
        """A shape that a caller passed, as a tuple."""
        try:
            sizes = tuple(shape)
        except TypeError:
            raise PoolTypeError(f"{self.label}: shape must be a sequence of integers, got {shape!r} of type "
                                f"{type(shape).__name__}; pass the shape of X, such as (1, 3, 224, 224)",
                                self.label, "shape", value=shape) from None
        if len(sizes) > MOST_AXES:
            raise PoolError(f"{self.label}: X has {len(sizes)} axes, but no array has more than {MOST_AXES}; pass "
                            f"fewer", self.label, "shape", value=len(sizes))
        return tuple(integer(Place(self.label, "shape", i), size, 0) for i, size in enumerate(sizes))

    def _check_rank(self, shape: tuple[int, ...]) -> None:
        """Refuse a shape that has too few axes."""
        least = 3 if self.windowed else 2
        if len(shape) < least:
            raise PoolError(f"{self.label}: X has {len(shape)} axes (shape {shape}), but needs at least {least}; "
                            f"pass (N, C{', *spatial' if least == 3 else ''})", self.label, "X", value=shape)

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Refuse a dtype that the version does not allow."""
        schemas.check_dtype(self._version, dtype_name(dtype))

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for a checked shape."""
        raise NotImplementedError(f"{self.label} has no result")

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        """The plan for a checked shape and dtype."""
        raise NotImplementedError(f"{self.label} has no plan")

    def _keywords(self) -> dict[str, Any]:
        """The constructor arguments of an equal operator."""
        keywords = dict(self.attributes)
        if self._schema.domain != schemas.OWN:
            keywords["opset"] = self.opset
        for name, value, omitted in (("channels_last", self.channels_last, False),
                                     ("return_indices", self.return_indices, False), ("axes", self.axes, None),
                                     ("keepdims", self.keepdims, True),
                                     ("skipna", self.skipna, False),
                                     ("dtype", None if self.dtype is None else dtype_name(self.dtype), None)):
            if value != omitted:
                keywords[name] = value
        return keywords

    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._given, self.opset, self.channels_last, self.return_indices, self.axes, self.keepdims,
                None if self.dtype is None else dtype_name(self.dtype), self.skipna)  # NumPy's float64 equals None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._keywords().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), tuple(self._keywords().items()))

    def plan(self, shape: Sequence[int], dtype: DTypeLike) -> Plan:
        """
        Resolve the geometry for one shape and dtype.

        Parameters
        ----------
        shape : sequence of int
            Shape of X: (N, C, *spatial), or (N, *spatial, C) if `channels_last`. With axes, any shape.
        dtype : dtype_like
            Dtype of X, which the operator's version must allow.

        Returns
        -------
        Plan
            Plan that pools arrays of this shape and dtype.

        Raises
        ------
        PoolError
            If the shape has too few axes or an empty spatial axis, or if no window fits.
        PoolTypeError
            If the version does not allow the dtype.
        """
        return _plan(self, self._checked_shape(shape), dtype_of(self.label, dtype))

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """
        Return the shape of the result for an input shape.

        Parameters
        ----------
        shape : sequence of int
            Shape of X.

        Returns
        -------
        tuple of int
            Shape of the result. For operators that pool regions, shape of the result for one region.

        Raises
        ------
        PoolError
            For the same reasons as in `plan`.
        """
        sizes = self._checked_shape(shape)
        self._check_rank(sizes)
        with importing, DefaultFloats():
            return self._output_shape(sizes)

    @overload
    def __call__(self, x: NDArray[T], *inputs: ArrayLike | None, out: None = None,
                 num_threads: int | None = None) -> NDArray[T] | Any: ...

    @overload
    def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                 num_threads: int | None = None) -> Array | Any: ...

    def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                 num_threads: int | None = None) -> Array | Any:
        """
        Pool an array.

        Parameters
        ----------
        x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
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
            The result, with the dtype of `x` in native byte order. It has the memory order of `x`, or is C-contiguous
            with axes.

        Raises
        ------
        PoolError
            If the operator does not allow a shape or a value.
        PoolTypeError
            If the operator does not allow a dtype or a kind of argument.
        """
        return self._call(x, inputs, out, num_threads)

    def _learn(self, plan: Plan) -> None:
        """Let compiled code handle later calls on arrays that differ from a plan's only in shape."""

    def _call(self, x: Any, inputs: tuple[Any, ...], out: Any, num_threads: int | None) -> Any:
        if type(x) is not np.ndarray:
            x = as_array(self.label, x)
        plan = self._recent()
        if plan is None or plan.dtype is not x.dtype or plan.shape != x.shape:
            plan = _plan(self, x.shape, native(x.dtype))
            if self._recent is not no_plan:  # shapes change, or dtypes
                self._learn(plan)
            self._freeze(_recent=ref(plan))
        return plan(x, *inputs, out=out, num_threads=num_threads)


Kind = TypeVar("Kind", bound=type[Operator])
registry: dict[str, type[Operator]] = {}  # operator classes by name


def registered(cls: Kind) -> Kind:
    """Register the class of an operator under its name in the table of versions."""
    cls._schema = schemas.ALL_SCHEMAS[cls.__name__]
    code = cls.__init__.__code__
    cls._optional = {**dict(zip(code.co_varnames[1:code.co_argcount], cls.__init__.__defaults__ or (), strict=True)),
                     **(cls.__init__.__kwdefaults__ or {})}
    cls.__init__ = hinted(cls.__init__, cls.__name__)  # type: ignore[method-assign]
    registry[cls.__name__] = cls
    return cls


def no_plan() -> None:
    """The recent plan of an operator that has not been called."""


def _remake(cls: type[Operator], keywords: tuple[tuple[str, Any], ...]) -> Operator:
    try:
        return cls(**dict(keywords))
    except TypeError as error:
        if isinstance(error, PoolTypeError) and error.attribute in cls._optional:  # about a value
            raise
        raise PoolTypeError(f"{cls.__name__}: cannot be unpickled: {error}; pickle and load it with the same version "
                            f"of onnxpool") from None


@lru_cache(maxsize=MOST_KEPT)
def _plan(operator: Operator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
    """The plan of an operator for a shape and dtype, cached."""
    with importing, DefaultFloats():
        operator._check_dtype(dtype)
        operator._check_rank(shape)
        return operator._make_plan(shape, dtype)


further_caches: list[Any] = []  # caches of modules that need not be imported


def clear_caches() -> None:
    """
    Clear the caches of operators and plans, and free their memory.

    Operators and plans in use elsewhere stay valid. Later calls create the operators and plans that they need.

    See Also
    --------
    Operator : Cached for each set of arguments of a function.
    Plan : Cached for each operator, shape and dtype.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.clear_caches()
    """
    forget_calls()
    renew_shapes()
    for cache in (remembered, _plan, dtype_name, ratio_of, *further_caches):
        cache.cache_clear()


def by_name(name: str, opset: int | None, given: dict[str, Any], channels_last: bool | int = False,
            return_indices: bool | int = False) -> Operator:
    """The operator with this name and these attributes, which its version must have."""
    version = schemas.resolve(name, opset)
    schemas.check_attributes(version, given)
    schemas.check_outputs(version, 1 + bool(return_indices))
    ours = {"channels_last": channels_last, "return_indices": return_indices}
    keywords = {**given, **{key: value for key, value in ours.items() if value}, "opset": opset}
    return registry[name](**{key: value for key, value in keywords.items() if value is not None})
