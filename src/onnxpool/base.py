"""What all operators share: attributes checked once, plans made and kept, nodes read."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from . import schemas, windows
from .attributes import Flag, integer
from .errors import PoolError, PoolTypeError
from .execution import Plan, as_array, native
from .keys import key_of

Ints = int | Sequence[int]  # an attribute for every axis, or for each


class Operator:
    """
    An ONNX operator with its attributes checked: immutable, hashable, picklable, safe from any thread.

    Attributes
    ----------
    attributes : dict
        The attributes that were given, by ONNX name.
    opset : int
        The opset asked for, by default the newest known.
    version : int
        The operator's version in that opset.
    channels_last : bool
        Whether arrays are (N, *spatial, C) instead of (N, C, *spatial).
    """

    __slots__ = ("_given", "_recent", "_version", "channels_last", "opset", "return_indices")

    windowed: ClassVar[bool] = True
    quantised: ClassVar[bool] = False
    zero_points_optional: ClassVar[bool] = False

    registry: ClassVar[dict[str, type["Operator"]]] = {}

    _given: tuple[tuple[str, Any], ...]
    _version: schemas.Version
    _recent: "Plan | None"  # the plan of the last call
    channels_last: bool
    opset: int
    return_indices: bool

    def __init_subclass__(cls) -> None:
        if cls.__name__ in schemas.SCHEMAS:
            Operator.registry[cls.__name__] = cls

    def _set(self, opset: int | None, channels_last: bool | int, *, return_indices: bool = False, **given: Any) -> None:
        """What every constructor ends in."""
        name = type(self).__name__
        version = schemas.resolve(name, opset)
        checked = schemas.check_attributes(version, given)
        if self.windowed and isinstance(checked.get("kernel_shape"), tuple):
            windows.check_lengths(version.label, checked, len(checked["kernel_shape"]))
        last = bool(Flag().check(f"{version.label}: channels_last", channels_last))
        indices = bool(Flag().check(f"{version.label}: return_indices", return_indices))
        schemas.check_outputs(version, 1 + indices)
        resolved = schemas.LATEST[schemas.SCHEMAS[name].domain] if opset is None else int(opset)
        for key, value in (("_given", tuple(checked.items())), ("_version", version), ("channels_last", last),
                           ("opset", resolved), ("return_indices", indices), ("_recent", None)):
            object.__setattr__(self, key, value)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that were given, by ONNX name."""
        return dict(self._given)

    def value(self, attribute: str) -> Any:
        """What an attribute is: as given, or by default, or fixed in a version that has it not yet."""
        kind = self._version.attributes.get(attribute)
        if kind is None:
            return self._version.fixed[attribute]
        return self.attributes.get(attribute, kind.default)

    @property
    def version(self) -> int:
        """The version of the operator that its opset uses."""
        return self._version.since

    @property
    def label(self) -> str:
        """The operator and its version, such as AveragePool-19."""
        return self._version.label

    def _spatial(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """The sizes of the spatial axes, and which axis is the first of them."""
        first = 1 if self.channels_last and len(shape) > 2 else 2
        return shape[first:first + len(shape) - 2], first

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        """The plan for a checked shape and dtype."""
        raise NotImplementedError(f"{self.label} has no plan")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self.label} is immutable: cannot set {name}; make a new operator")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self.label} is immutable: cannot delete {name}")

    def _keywords(self) -> dict[str, Any]:
        """The arguments that make an equal operator."""
        keywords = {**self.attributes, "opset": self.opset, "channels_last": self.channels_last}
        return {**keywords, "return_indices": True} if self.return_indices else keywords

    def _key(self) -> tuple[Any, ...]:
        return type(self), self._given, self.opset, self.channels_last, self.return_indices

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
            (N, C, *spatial), or (N, *spatial, C) if `channels_last`.
        dtype : dtype_like
            One that the operator's version has.

        Returns
        -------
        Plan

        Raises
        ------
        PoolError
            If the shape has too few axes, an empty spatial axis, or no room for a window.
        PoolTypeError
            If the version does not have the dtype.
        """
        return _plan(self, tuple(shape), native(dtype))

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """
        Return the shape of the result for an input shape.

        Parameters
        ----------
        shape : sequence of int

        Returns
        -------
        tuple of int

        Raises
        ------
        PoolError
            As `plan`.
        """
        return self.plan(shape, self._version.dtypes[0]).output_shape

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """
        Pool an array.

        Parameters
        ----------
        x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        *inputs
            The operator's further inputs, in ONNX order.
        out : ndarray, optional
            Where the result is stored; it is returned. It may overlap an input.
        num_threads : int, optional

        Returns
        -------
        ndarray
            Of the dtype of `x`, in native byte order.

        Raises
        ------
        PoolError
            For a shape or value that the operator does not allow.
        PoolTypeError
            For a dtype or kind of argument that it does not allow.
        """
        if type(x) is not np.ndarray:
            x = as_array(self.label, x)
        plan = self._recent
        if plan is None or plan.dtype is not x.dtype or plan.shape != x.shape:
            plan = _plan(self, x.shape, native(x.dtype))
            object.__setattr__(self, "_recent", plan)
        return plan(x, *inputs, out=out, num_threads=num_threads)


def _remake(cls: type[Operator], keywords: tuple[tuple[str, Any], ...]) -> Operator:
    return cls(**dict(keywords))


def made(cls: Any, *arguments: Any) -> Operator:
    """The operator with these arguments, in the order of its signature; one made before, if they are of the same types
    too, as 2 and 2.0 are not."""
    arguments, kinds = key_of(arguments)
    try:
        return _made(cls, arguments, kinds)
    except PoolTypeError:
        raise
    except TypeError:  # what cannot be looked up, such as an array
        return _made.__wrapped__(cls, arguments, kinds)


@lru_cache(maxsize=1024)
def _made(cls: Any, arguments: tuple[Any, ...], kinds: tuple[type, ...]) -> Operator:
    operator: Operator = cls(**dict(zip(cls.__init__.__kwdefaults__, arguments, strict=True)))
    return operator


@lru_cache(maxsize=1024)
def _plan(operator: Operator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
    """The plan of an operator; the same object for the same question."""
    label = operator.label
    schemas.check_dtype(operator._version, dtype.name)
    shape = tuple(integer(f"{label}: shape[{i}]", size, 0) for i, size in enumerate(shape))
    least = 3 if operator.windowed else 2
    if len(shape) < least:
        raise PoolError(f"{label}: X has {len(shape)} axes, shape {shape}, but takes at least {least}; "
                        f"give (N, C{', *spatial' if least == 3 else ''})")
    return operator._make_plan(shape, dtype)


def from_node(node: Any, opsets: dict[str, int]) -> Operator:
    """
    Make the operator of an ONNX node.

    Parameters
    ----------
    node : onnx.NodeProto
        With its domain; ``"ai.onnx"`` is the same as ``""``.
    opsets : dict of str to int
        The model's opset imports, such as ``{"": 19, "com.microsoft": 1}``.

    Returns
    -------
    Operator
        To be called with the node's inputs, in ONNX order.

    Raises
    ------
    PoolError
        If the operator is not known, if its domain is not imported, or for its attributes.
    PoolTypeError
        If an attribute has another type than its version says.

    Examples
    --------
    >>> import onnx.helper, onnxpool
    >>> node = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
    >>> onnxpool.from_node(node, {"": 12})
    MaxPool(kernel_shape=(2, 2), opset=12, channels_last=False)
    """
    from onnx.helper import get_attribute_value

    domain = "" if node.domain == "ai.onnx" else node.domain
    schema = schemas.SCHEMAS.get(node.op_type)
    if schema is None or schema.domain != domain:
        known = ", ".join(f"{s.domain + ':' if s.domain else ''}{name}" for name, s in schemas.SCHEMAS.items())
        raise PoolError(f"{domain + ':' if domain else ''}{node.op_type} is no pooling operator that onnxpool knows; "
                        f"it knows {known}")
    imported = {"" if name == "ai.onnx" else name: opset for name, opset in opsets.items()}
    if domain not in imported:
        raise PoolError(f"{node.op_type}: domain {domain!r} is not among the model's opset imports {opsets}; "
                        f"add it with a version")
    given = {a.name: get_attribute_value(a) for a in node.attribute}
    given = {name: value.decode(errors="replace") if isinstance(value, bytes) else value
             for name, value in given.items()}
    return by_name(node.op_type, imported[domain], given, return_indices=any(node.output[1:]))


def by_name(name: str, opset: int | None, given: dict[str, Any], channels_last: bool | int = False,
            return_indices: bool | int = False) -> Operator:
    """The operator of that name, with what its version does not have refused."""
    version = schemas.resolve(name, opset)
    schemas.check_attributes(version, given)
    schemas.check_outputs(version, 1 + bool(return_indices))
    ours = {"channels_last": channels_last, "return_indices": return_indices}
    keywords = {**given, **{key: value for key, value in ours.items() if value}, "opset": opset}
    return Operator.registry[name](**{key: value for key, value in keywords.items() if value is not None})
