"""The operators registered with onnxruntime, and the nodes of its sessions."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import budget, threads
from ..arrays import Array, dtype_named
from ..base import Operator, registry
from ..dtypes import DTYPES
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..planning.kinds import WindowPlan
from ..schemas import SCHEMAS, resolve
from ..scopes import Stack
from ..windows import ceil_div

DType = np.dtype[Any]
Piece = tuple[Plan, tuple[Array | None, ...], Any]  # a plan, its inputs, its output

ELEMENTS = {dtype.onnx: name for name, dtype in DTYPES.items()}  # by ONNX numbers, which onnxruntime uses too

# Type parameters of onnxruntime's kernels other than T for X. MaxPool has I since the version with Indices.
CONSTRAINTS = {"MaxPool": ("T", "I"), "RoiAlign": ("T1", "T2")}
INDEXED = 8

# An optimiser of onnxruntime that replaces these operators with kernels of its own if elements are float32.
BLOCKING, BLOCKED = "NchwcTransformer", {"AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool"}

# An optimiser that merges a Pad into the pool that follows it. Before release FIXED, it did so even where that changes
# results: zeros are not the padding of a maximum, and an overhanging window of a mean could disappear.
MERGING, FIXED = "Pad_Fusion", (1, 32)


class Theirs(NamedTuple):
    """An operator of onnxruntime itself. `types` has the names and numbers of its element types."""

    operator: str
    version: int
    types: list[tuple[str, int]]
    attributes: dict[str, Any]


class Kind(NamedTuple):
    """
    Version of an operator, for which a kernel is registered.

    Attributes
    ----------
    operator : str
    since : int
    delegates : bool
        Whether nodes run on onnxruntime's own kernel if there is one.
    tunes : bool
        Whether nodes measure the fastest way for each new shape.
    """

    operator: str
    since: int
    delegates: bool
    tunes: bool

    @property
    def domain(self) -> str:
        """The domain of the operator."""
        return SCHEMAS[self.operator].domain

    @property
    def attributes(self) -> dict[str, str]:
        """The types of the attributes of the version."""
        return {name: kind.type for name, kind in resolve(self.operator, self.since).attributes.items()}

    def node(self, given: dict[str, Any], inputs: list[DType | None], indices: bool) -> "Node":
        """A node with these attributes and dtypes of inputs. None stands for an omitted input."""
        cls: Callable[..., Operator] = registry[self.operator]
        keywords = {**given, "return_indices": True} if indices else given
        return Node(cls(**keywords, opset=self.since), inputs, self.delegates, self.tunes)


def dtype(element: int) -> DType:
    """The dtype of an element type of onnxruntime."""
    return dtype_named(ELEMENTS[element])


def chosen(ops: object) -> list[str]:
    """The operators selected by the argument `ops`."""
    if ops in ("missing", "all"):
        return [name for name, schema in SCHEMAS.items() if schema.domain == ""]
    names = [ops] if isinstance(ops, str) else ops
    if not isinstance(names, Iterable):
        raise PoolTypeError(f"register: ops is a {type(ops).__name__}; pass 'missing', 'all' or names of operators",
                            attribute="ops", value=type(ops).__name__)
    names = sorted(set(names), key=str)
    for name in names:
        if name not in SCHEMAS:
            raise PoolError(f"register: ops has {name!r}, which is not a pooling operator; "
                            f"pass 'missing', 'all' or names among {', '.join(SCHEMAS)}", attribute="ops", value=name)
    if not names:
        raise PoolError("register: ops is empty; pass 'missing', 'all' or names of operators",
                        attribute="ops", value=names)
    return names


def unwanted(operators: Iterable[str], delegates: bool, release: tuple[int, ...]) -> list[str]:
    """The optimisers that would replace nodes selected for onnxpool, or change the results of pools."""
    replaced = not delegates and not BLOCKED.isdisjoint(operators)
    return [BLOCKING] * replaced + [MERGING] * (release < FIXED)


def kinds(operators: Iterable[str], delegates: bool, tunes: bool) -> list[Kind]:
    """Every version of these operators."""
    return [Kind(operator, version.since, delegates, tunes)
            for operator in operators for version in SCHEMAS[operator].versions]


class Node:
    """
    Node of a session.

    Attributes
    ----------
    operator : Operator
    input_dtypes, output_dtypes : list of dtype
        Dtypes of inputs and outputs. None stands for an omitted input.
    theirs : Theirs, optional
        onnxruntime's own operator, if it is preferred and certain to compute a result of the same shape.
    """

    __slots__ = ("_plan", "input_dtypes", "operator", "output_dtypes", "theirs", "tunes")

    def __init__(self, operator: Operator, input_dtypes: list[DType | None], delegates: bool, tunes: bool) -> None:
        self.operator = operator
        self.input_dtypes = input_dtypes
        self.output_dtypes = [self.dtype, np.dtype(np.int64)][:1 + operator.return_indices]
        self.theirs = theirs(operator, self.dtype) if delegates else None
        self.tunes = tunes and self.theirs is None
        self._plan: Plan | None = None

    @property
    def dtype(self) -> DType:
        """The dtype of X."""
        x = self.input_dtypes[0]
        assert x is not None
        return x

    def plan(self, x: Array) -> Plan:
        """The plan for an array. The latest plan is cached."""
        plan = self._plan
        if plan is None or plan.shape != x.shape:
            changes = plan is not None
            plan = self._plan = self.operator.plan(x.shape, x.dtype)
            if changes:
                self.operator._learn(plan)
            if self.tunes:
                for own, part in split(plan, x):
                    own.tuned(part, num_threads=1)
        return plan

    def shape_of(self, x: Array) -> tuple[int, ...] | None:
        """The shape of the result for an array that one thread pools without a plan; otherwise None."""
        shapes = self.operator._shapes
        if shapes is None or self.theirs is not None or self.tunes or threads.team(None, x.nbytes) > 1:
            return None
        found: tuple[int, ...] | None = shapes.shape_of(x)
        return found

    def result_shape(self, plan: Plan, inputs: tuple[Array | None, ...]) -> tuple[int, ...]:
        """The shape of the result, which onnxruntime allocates. Refuses a result that exceeds the limits in force."""
        shape = plan.result_shape(*inputs[1:])
        if isinstance(plan, WindowPlan):
            plan._check_limits()
        else:
            results = math.prod(shape)
            need = budget.Need(results * plan.dtype.itemsize, results)  # at least this much
            budget.check(plan.label, "a result", shape, need, budget.in_force())
        return shape


@dataclass(slots=True)
class NodeRecord:
    """
    Record of a node of a session.

    Attributes
    ----------
    name : str
        Name of the node, or of its first output if it has none.
    operator : str
        ONNX operator.
    dtype : str
        Dtype of X.
    runs_on : str
        "onnxpool", or "onnxruntime" if onnxruntime's own kernel runs first and onnxpool's only if that fails. After
        a failure, onnxruntime's kernel is not tried again for the same shapes.
    onnxpool_calls, onnxruntime_calls : int
        Number of times that each has run the node.
    onnxruntime_error : str
        First error message of onnxruntime's own kernel, from its creation or a call, or "".
    """

    name: str
    operator: str
    dtype: str
    runs_on: str
    onnxpool_calls: int = 0
    onnxruntime_calls: int = 0
    onnxruntime_error: str = ""
    alive: bool = field(default=True, repr=False)  # whether the node still exists: optimisers create temporary nodes


records: Stack[list[NodeRecord]] = Stack("onnxpool.onnxruntime.records")


def record(name: str, node: Node, left: bool, reason: str) -> NodeRecord:
    """
    Record a new node for `record_nodes`.

    `left` means that onnxruntime's own kernel runs first. `reason` says why that kernel could not be made.
    """
    made = NodeRecord(name, type(node.operator).__name__, node.dtype.name, "onnxruntime" if left else "onnxpool",
                      onnxruntime_error=reason)
    seen = records.innermost()
    if seen is not None:
        seen.append(made)
    return made


def theirs(operator: Operator, x: DType) -> Theirs | None:
    """
    onnxruntime's own operator for a node, or None if the shape of its result is uncertain.

    It writes to an output whose shape onnxpool determines. Releases of onnxruntime disagree about shapes with ceil_mode
    or auto_pad and of MaxUnpool, so onnxruntime's operator is not used for these.
    """
    name = type(operator).__name__
    values = {key: operator._values[key] for key in operator._version.attributes}
    if name == "MaxUnpool" or values.get("ceil_mode") or values.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    names = CONSTRAINTS.get(name, ("T",))
    if name == "MaxPool" and operator.version < INDEXED:
        names = names[:1]
    numbers = (DTYPES[x.name].onnx, DTYPES["int64"].onnx)
    return Theirs(name, operator.version, list(zip(names, numbers, strict=False)),
                  {key: value for key, value in values.items() if value is not None})


def split(plan: Plan, x: Array) -> list[tuple[Plan, Array]]:
    """
    Split an array into parts that threads of onnxruntime can pool in parallel, each with a plan of its own.

    Images, and planes of images, can be pooled separately without changing the bits of the result.
    """
    team = threads.team(None, x.nbytes)
    if team == 1 or not isinstance(plan, WindowPlan) or plan.operator.return_indices:
        return [(plan, x)]
    x = separate(plan, x)
    each = ceil_div(len(x), team)
    return [(plan.operator.plan(part.shape, plan.dtype), part)
            for part in (x[begin:begin + each] for begin in range(0, len(x), each))]


def separate(plan: Plan, array: Array) -> Array:
    """An array as a batch of images, or of planes if channels come first."""
    return array if plan.channels_last else array.reshape(-1, 1, *array.shape[2:])


def pieces(plan: Plan, inputs: tuple[Array | None, ...], out: Any) -> list[Piece]:
    """Split a call into serial calls."""
    x, *others = inputs
    assert x is not None
    parts = split(plan, x)
    if len(parts) == 1:
        return [(plan, inputs, out)]
    found, begin, outs = [], 0, separate(plan, out)
    for own, part in parts:
        found.append((own, (part, *others), outs[begin:begin + len(part)]))
        begin += len(part)
    return found
