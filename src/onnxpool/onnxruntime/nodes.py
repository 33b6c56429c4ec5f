"""What onnxruntime is told of an operator, and what a node of a session does."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from .. import threads
from ..arrays import Array, bfloat16
from ..base import Operator, registry
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..planning.plan import WindowPlan
from ..schemas import SCHEMAS, resolve
from ..windows import ceil_div

DType = np.dtype[Any]
Piece = tuple[Plan, tuple[Array | None, ...], Any]  # a plan, its inputs, its output

# The numbers of element types in ONNX and onnxruntime.
ELEMENTS = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7, "float16": 10, "float64": 11, "bfloat16": 16}

# Inputs whose elements are not those of X.
OTHER_INPUTS = {"I": "int64", "output_shape": "int64", "batch_indices": "int64", "x_scale": "float32",
                "y_scale": "float32"}
OPTIONAL_INPUTS = ("output_shape",)
ZERO_POINTS = ("x_zero_point", "y_zero_point")

# An operator is ours from its first version on. There are two exceptions. A RoiAlign without attributes is another one
# before 16. And an optimiser of onnxruntime replaces some operators by its own, for channels in blocks. It knows them
# by their versions, so these begin at a number that is no version.
BEGINNINGS = {"RoiAlign": 16}
BEGINNINGS_UNKNOWN = {**BEGINNINGS, "AveragePool": 2, "MaxPool": 2, "GlobalAveragePool": 2, "GlobalMaxPool": 2}

# How onnxruntime's kernels name element types, if not just T that of X; of MaxPool since Indices exist.
CONSTRAINTS = {"MaxPool": ("T", "I"), "RoiAlign": ("T1", "T2")}
INDEXED = 8

ANY_SIZE = 1 << 12  # what an open size is taken for: larger than most kernels
UNNAMED = count()  # numbers for open sizes of results that have no name


class Port(NamedTuple):
    """An input or an output: the dtype of its elements, and whether a node may leave it out."""

    dtype: str
    optional: bool


class Theirs(NamedTuple):
    """An operator of onnxruntime itself; `types` are names and numbers of element types."""

    operator: str
    version: int
    types: list[tuple[str, int]]
    attributes: dict[str, Any]


class Kind(NamedTuple):
    """
    An operator for one element type, as it is registered.

    Attributes
    ----------
    operator, domain : str
    start : int
        The opset from which on nodes are ours.
    opset : int, optional
        That of the models, if it is known.
    their_opset : int, optional
        If nodes are onnxruntime's own where it has them: the opset of its operators.
    inputs, outputs : tuple of Port
    """

    operator: str
    domain: str
    start: int
    opset: int | None
    their_opset: int | None
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def attributes(self) -> dict[str, set[str]]:
        """The attributes that any version has, and their types."""
        types: dict[str, set[str]] = {}
        for version in SCHEMAS[self.operator].versions:
            for name, attribute in version.attributes.items():
                types.setdefault(name, set()).add(attribute.type)
        return types

    def node(self, given: dict[str, Any], indices: bool) -> "Node":
        """A node that gives these attributes."""
        return Node(self.made(given, indices), [dtype(port.dtype) for port in self.inputs],
                    [dtype(port.dtype) for port in self.outputs[:1 + indices]], self.their_opset)

    def inferred(self, given: dict[str, Any], shape: tuple[int | str | None, ...]) -> tuple[int | str, ...] | None:
        """
        The shape of the result, if the attributes are right; `shape` is that of X, with names or None for open sizes.

        Open sizes of the result have the names of those that pass through, or new ones.
        """
        try:
            operator = self.made(given, indices=False)
            sizes = operator.output_shape([size if isinstance(size, int) else ANY_SIZE for size in shape])
        except (PoolError, PoolTypeError):
            return None
        passing = (0, len(shape) - 1 if operator.channels_last else 1)
        return tuple(
            size if isinstance(before, int) or (axis not in passing and not operator.windowed)
            else before if before and axis in passing else f"{self.operator}_{next(UNNAMED)}"
            for axis, (before, size) in enumerate(zip(shape, sizes, strict=True)))

    def made(self, given: dict[str, Any], indices: bool) -> Operator:
        """The operator: of the models' opset, or else of the newest version whose attributes have such types."""
        keywords = {**given, "return_indices": True} if indices else given
        cls: Callable[..., Operator] = registry[self.operator]
        if self.opset is not None:
            return cls(**keywords, opset=self.opset)
        *older, newest = SCHEMAS[self.operator].versions
        try:
            return cls(**keywords, opset=newest.since)
        except PoolTypeError:
            for version in reversed(older):
                try:
                    return cls(**keywords, opset=version.since)
                except PoolTypeError:
                    continue
            raise


def dtype(name: str) -> DType:
    """The dtype of a name."""
    return bfloat16() if name == "bfloat16" else np.dtype(name)


def chosen(ops: object, opset: int | None) -> list[str]:
    """The operators that a user asks for."""
    if ops in ("missing", "all"):
        return [name for name, schema in SCHEMAS.items()
                if schema.domain == "" and (opset is None or opset >= schema.versions[0].since)]
    names = [ops] if isinstance(ops, str) else ops
    if not isinstance(names, Iterable):
        raise PoolTypeError(f"register: ops is a {type(ops).__name__}; give 'missing', 'all' or names of operators",
                            attribute="ops", value=type(ops).__name__)
    names = sorted(set(names), key=str)
    for name in names:
        if name not in SCHEMAS:
            raise PoolError(f"register: ops has {name!r}, which is no pooling operator; "
                            f"give 'missing', 'all' or names out of {', '.join(SCHEMAS)}", attribute="ops", value=name)
    if not names:
        raise PoolError("register: ops is empty; give 'missing', 'all' or names of operators",
                        attribute="ops", value=names)
    return names


def kinds(operators: Iterable[str], opset: int | None, newest: int | None) -> list[Kind]:
    """
    Operators for every element type.

    Parameters
    ----------
    operators : iterable of str
    opset : int, optional
        Of the main domain in the models; None if any may come.
    newest : int, optional
        The newest main-domain opset that onnxruntime has, if its own operators are preferred.
    """
    made = []
    for operator in operators:
        schema = SCHEMAS[operator]
        known = opset if schema.domain == "" else None
        version = resolve(operator, known)
        beginnings = BEGINNINGS if newest else BEGINNINGS_UNKNOWN
        start = beginnings.get(operator, schema.versions[0].since)
        if known is not None:
            start = version.since if newest else min(start, known)
        theirs = None if newest is None else known or newest
        absent = OPTIONAL_INPUTS + (ZERO_POINTS if registry[operator].zero_points_optional else ())
        made += [
            Kind(operator, schema.domain, start, known, theirs,
                 tuple(Port(OTHER_INPUTS.get(name, x), name in absent) for name in schema.inputs),
                 (Port(x, False), Port("int64", True))[:version.outputs])
            for x in version.dtypes
        ]
    return made


class Node:
    """
    A node of a session.

    Attributes
    ----------
    operator : Operator
    input_dtypes, output_dtypes : list of dtype
    theirs : Theirs, optional
        onnxruntime's own operator, if that is preferred and surely computes a result of the same shape.
    """

    __slots__ = ("_plan", "input_dtypes", "operator", "output_dtypes", "theirs")

    def __init__(self, operator: Operator, input_dtypes: list[DType], output_dtypes: list[DType],
                 their_opset: int | None) -> None:
        self.operator = operator
        self.input_dtypes = input_dtypes
        self.output_dtypes = output_dtypes
        self.theirs = None if their_opset is None else theirs(operator, input_dtypes[0], their_opset)
        self._plan: Plan | None = None

    def plan(self, x: Array) -> Plan:
        """The plan for an array; that of the latest shape is kept."""
        plan = self._plan
        if plan is None or plan.shape != x.shape:
            plan = self._plan = self.operator.plan(x.shape, x.dtype)
        return plan


@dataclass(slots=True)
class NodeRecord:
    """
    A node of a session, and who runs it.

    Attributes
    ----------
    name : str
        The node's name, or that of its first output if it has none.
    operator : str
    dtype : str
        Of X.
    runs_on : str
        "onnxpool"; or "onnxruntime" if its own kernel is asked first, and onnxpool where that fails.
    onnxpool_calls, onnxruntime_calls : int
        How often each has run the node.
    """

    name: str
    operator: str
    dtype: str
    runs_on: str
    onnxpool_calls: int = 0
    onnxruntime_calls: int = 0
    alive: bool = field(default=True, repr=False)  # whether a session has the node: optimisers make nodes for a while


records: ContextVar[list[NodeRecord] | None] = ContextVar("onnxpool.onnxruntime.records", default=None)


def record(name: str, node: Node, left: bool) -> NodeRecord:
    """The record of a new node, which `record_nodes` gets to see; `left` says that onnxruntime has a kernel for it."""
    made = NodeRecord(name, type(node.operator).__name__, node.input_dtypes[0].name,
                      "onnxruntime" if left else "onnxpool")
    seen = records.get()
    if seen is not None:
        seen.append(made)
    return made


def theirs(operator: Operator, x: DType, opset: int) -> Theirs | None:
    """
    onnxruntime's own operator for the same node.

    It writes into an output of the size that we allocate. Its releases differ in the sizes of ceil_mode, auto_pad and
    MaxUnpool, so it is not trusted with these.
    """
    name = type(operator).__name__
    values = {key: operator._value(key) for key in operator._version.attributes}
    if name == "MaxUnpool" or values.get("ceil_mode") or values.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    version = min(operator.version, resolve(name, opset).since)
    names = CONSTRAINTS.get(name, ("T",))
    if name == "MaxPool" and version < INDEXED:
        names = names[:1]
    numbers = (ELEMENTS[x.name], ELEMENTS["int64"])
    return Theirs(name, version, list(zip(names, numbers, strict=False)),
                  {key: value for key, value in values.items() if value is not None})


def pieces(plan: Plan, inputs: tuple[Array | None, ...], out: Any) -> list[Piece]:
    """
    A call, as calls that threads of onnxruntime can make at the same time, each on one thread.

    Images, and planes of images, are pooled apart without a change of the result's bits.
    """
    x, *others = inputs
    assert x is not None
    team = threads.team(None, x.nbytes)
    if team == 1 or not isinstance(plan, WindowPlan) or isinstance(out, tuple):
        return [(plan, inputs, out)]
    if not plan.channels_last:
        x, out = x.reshape(-1, 1, *x.shape[2:]), out.reshape(-1, 1, *out.shape[2:])
    each = ceil_div(len(x), team)
    parts = [slice(begin, begin + each) for begin in range(0, len(x), each)]
    return [(plan.operator.plan(x[part].shape, plan.dtype), (x[part], *others), out[part]) for part in parts]
