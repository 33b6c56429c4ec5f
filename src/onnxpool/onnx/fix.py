"""
``onnxpool fix``: rewrites pooling nodes so that runtimes agree about them.

The table of disagreements says what is wrong with a node, and `RULES` say how to rewrite it. A rewritten node must keep
every window: the same elements, and for means the same divisors. Of all rewritten nodes that rules offer, the one with
the fewest disagreements wins.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import external_data_helper, helper, numpy_helper

from onnxpool.base import by_name
from onnxpool.dtypes import BYTES
from onnxpool.errors import PoolError, PoolTypeError
from onnxpool.planning.kinds import WindowPlan
from onnxpool.schemas import LATEST, resolve
from onnxpool.windows import Axis

from .cases import AVERAGE, GLOBAL_NORM, INFERENCE, MAXIMUM, NHWC, POOLS, QLINEAR, QUANTISED, Case, Disagreement
from .checks import warning
from .disagreements import Filter, disagreements
from .protos import (
    LONG_NAME,
    Array,
    ModelError,
    bodies,
    completed,
    every_node,
    opsets_of,
    parsed,
    tensors_of,
    texts_of,
    title,
    value_of,
)
from .splicing import Path as Place
from .splicing import part, spliced, step
from .surroundings import PAD_BY_INPUTS
from .survey import FAMILY, Site, survey, without_weights

MARK = "onnxpool fix: "  # begins the doc_string that tells nodes apart while shapes are inferred
PADS, PAD_OF_BFLOAT16 = 2, 13  # the first opset whose Pad has pads and a value, and the first for bfloat16
CONSTANT_OF_BYTES = 9  # the first opset whose Constant can be of any dtype
MOST_COMPARED = 2**16  # maximum number of windows of an axis that reach into padding: each is compared
DECLARED = ("the model declares the sizes that onnx's shape inference predicts, not the sizes that runtimes compute; "
            "remove its value_info and the sizes of its outputs first")
LARGEST_PAD = 2**16  # elements that a Pad may add along an axis: unlike a pool's pads, they take memory
MEANS, MAXIMA = AVERAGE + QLINEAR, MAXIMUM + NHWC

# Disagreements that the table does not list, because they concern no single runtime.
PORTABILITY = (
    Disagreement("ceil-mode", "some runtimes, such as onnxruntime-web on WebGPU,", POOLS + QUANTISED,
                 lambda case: case.ceil, "do not support ceil_mode"),
    Disagreement("auto-pad", "some runtimes", POOLS + QUANTISED, lambda case: case.mode not in ("NOTSET", ""),
                 "do not support auto_pad, which ONNX has deprecated, or compute other pads"),
)


class UnfitError(ModelError):
    """Error about a node that a rule cannot rewrite, although the rule is meant for it."""


class State(NamedTuple):
    """A pooling node, perhaps rewritten, with the nodes that precede it, and what is known about it."""

    node: onnx.NodeProto
    before: tuple[onnx.NodeProto, ...]
    case: Case
    opset: int  # opset of the default domain
    names: Collection[str]  # names that the model uses
    constant: Callable[[str], Array | None]  # the value of an input, by the operator's name for it

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the node."""
        return attributes_of(self.node)

    @property
    def written(self) -> list[bytes]:
        """The nodes as they are stored."""
        return [node.SerializeToString() for node in (*self.before, self.node)]

    def fresh(self, suffix: str) -> str:
        """A name for a new value."""
        base = name = f"{next(filter(None, self.node.output), 'pool')}_{suffix}"
        number = 1
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        return name

    def constant_node(self, suffix: str, array: Array) -> onnx.NodeProto:
        """A node that writes a constant. Unlike an initializer, it can also be in a function."""
        name = self.fresh(suffix)
        return helper.make_node("Constant", [], [name], name, value=numpy_helper.from_array(array, name))

    def pooled(self, attributes: Mapping[str, Any], shape: tuple[int | str, ...] | None = None,
               operator: str = "") -> "State":
        """The node with other attributes, and perhaps with another input shape or another operator."""
        old, shape = self.case, shape or self.case.shape
        made = by_name(operator or old.name, old.operator.opset, dict(attributes),
                       return_indices=old.operator.return_indices)
        assert shape is not None
        plan = made.plan(closed(shape), old.dtype or np.float32)
        node = onnx.NodeProto()
        node.CopyFrom(self.node)
        node.op_type = operator or node.op_type
        for attribute in [each for each in node.attribute if attributes.get(each.name) != self.attributes[each.name]]:
            node.attribute.remove(attribute)
        own = attributes_of(node)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items()
                              if name not in own)
        case = old._replace(operator=made, shape=shape, axes=plan.axes, output=plan.output_shape)
        return self._replace(node=node, case=case)


def closed(shape: Sequence[int | str]) -> tuple[int, ...]:
    """A shape with 1 for unknown sizes. Only batch and channels may be unknown, and no window depends on them."""
    return tuple(size if isinstance(size, int) else 1 for size in shape)


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of a node."""
    return {attribute.name: value_of(attribute) for attribute in node.attribute}


def without(attributes: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Attributes without some of them."""
    return {name: value for name, value in attributes.items() if name not in names}


def spatial(case: Case) -> range:
    """The numbers of the spatial axes."""
    assert case.shape is not None
    rank = len(case.shape)
    return range(1, rank - 1) if case.operator.channels_last else range(2, rank)


def tail(axis: Axis) -> int:
    """The end pads for which rounding down yields the same number of windows."""
    least = (axis.out - 1) * axis.stride + axis.span - axis.size - axis.pads[0]
    return axis.pads[1] if least <= axis.pads[1] < least + axis.stride else max(0, least)


def check_kept(old: State, new: State, heads: Sequence[int]) -> None:
    """Refuse a node with other windows. `heads`: how many elements a Pad adds before the input along each axis."""
    means = old.case.name in MEANS
    for ours, theirs, head in zip(old.case.axes, new.case.axes, heads, strict=True):
        if ours.out != theirs.out or ours.pads[0] != theirs.pads[0] + head:
            raise UnfitError("other windows would result")
        begin, end = max(ours.begin, theirs.begin), min(ours.end, theirs.end)  # between, all taps are inside
        if means and begin + ours.out - end > MOST_COMPARED:
            raise UnfitError(f"more than {MOST_COMPARED} windows reach into padding")
        border = (*range(begin), *range(end, ours.out)) if means else ()
        if any(ours.window(i).divisor != theirs.window(i).divisor for i in border):
            raise UnfitError("a mean would get another divisor, because ceil_mode overhangs padding that counts")
    covers = [all(axis.covers for axis in state.case.axes) for state in (old, new)]
    if old.case.name in QLINEAR and covers[0] != covers[1]:
        raise UnfitError("a quantised mean would be rounded differently, because only the old or only the new window "
                         "covers all elements")


def explicit(state: State) -> Iterator[State]:
    """The node with pads instead of auto_pad and ceil_mode."""
    case = state.case
    if not case.axes or (case.mode in ("NOTSET", "") and not case.ceil):
        return
    pads = [axis.pads[0] for axis in case.axes] + [tail(axis) for axis in case.axes]
    others = without(state.attributes, "auto_pad", "ceil_mode", "pads")
    new = state.pooled(others | ({"pads": pads} if any(pads) else {}))
    check_kept(state, new, [0] * len(case.axes))
    yield new


def padded(state: State) -> Iterator[State]:
    """The node with a Pad instead of pads: zeros for norms and means that count pads, the lowest value for maxima."""
    case = state.case
    ends = [tail(axis) for axis in case.axes]
    if not any(ends) and not case.padded:
        return
    if case.operator.return_indices:
        raise UnfitError("a Pad would change its Indices")
    if case.name in MEANS and not case.has("count_include_pad"):
        raise UnfitError("a mean would count the elements of a Pad")
    if case.name in MAXIMA and case.empty:
        raise UnfitError("a window holds padding only, and runtimes differ about a maximum of -inf, too")
    heads = [axis.pads[0] for axis in case.axes]
    counted = [min(axis.pads[1], end) if case.name in MEANS else end
               for axis, end in zip(case.axes, ends, strict=True)]  # an overhang does not count
    if max(heads + counted) > LARGEST_PAD:
        raise UnfitError(f"a Pad would add more than {LARGEST_PAD} elements")
    own = [end - pad for end, pad in zip(ends, counted, strict=True)]
    pad = pad_nodes(state, heads, counted, filler(state))
    shape = list(case.shape or ())
    for axis, head, end in zip(spatial(case), heads, counted, strict=True):
        size = shape[axis]
        assert isinstance(size, int)
        shape[axis] = size + head + end
    sides = [*heads, *counted]
    zeros = () if filler(state).any() or case.operator.channels_last else tuple(sides)
    around = case.around._replace(zeros=zeros, before=None)
    base = without(state.attributes, "auto_pad", "ceil_mode", "pads", "count_include_pad")
    if any(own):
        base["pads"] = [0] * len(own) + own
    for extra in ({}, {"count_include_pad": 1}) if case.name in MEANS else ({},):
        new = state.pooled(base | extra, tuple(shape))
        new.node.input[0] = pad[-1].output[0]
        new = new._replace(before=(*state.before, *pad), case=new.case._replace(around=around))
        try:
            check_kept(state, new, heads)
        except UnfitError:
            if extra:
                return
            raise
        yield new


def filler(state: State) -> Array:
    """The value of padding: the one that does not change a result."""
    case, dtype = state.case, np.dtype(numpy_dtype(state.case.dtype))
    if case.name in MAXIMA:
        return np.array(np.iinfo(dtype).min if case.dtype in BYTES else -np.inf).astype(dtype)
    if case.name in QLINEAR:
        point = state.constant("x_zero_point")
        if point is None or point.size != 1:
            raise UnfitError("its zero point is not a constant of the model")
        return point.reshape(())
    return np.zeros((), dtype)


def numpy_dtype(name: str | None) -> Any:
    """The dtype with this name; onnx defines bfloat16."""
    return helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16) if name == "bfloat16" else name


def pad_nodes(state: State, heads: Sequence[int], ends: Sequence[int], value: Array) -> list[onnx.NodeProto]:
    """The nodes that pad the input: constants, and a Pad that uses them."""
    case = state.case
    assert case.shape is not None
    sides = [0] * (2 * len(case.shape))
    for axis, head, end in zip(spatial(case), heads, ends, strict=True):
        sides[axis], sides[axis + len(case.shape)] = head, end
    source, name = state.node.input[0], state.fresh("padded")
    if state.opset < PADS or (state.opset < PAD_BY_INPUTS and case.dtype in BYTES) or (
            state.opset < PAD_OF_BFLOAT16 and case.dtype == "bfloat16"):
        raise UnfitError(f"opset {state.opset} has no Pad of {case.dtype}")
    if state.opset < PAD_BY_INPUTS:
        return [helper.make_node("Pad", [source], [name], name, pads=sides, value=float(value))]
    made = [state.constant_node("pads", np.array(sides, np.int64))]
    if value.any():
        made.append(state.constant_node("pad_value", value))
    return [*made, helper.make_node("Pad", [source, *(node.output[0] for node in made)], [name], name)]


def windowed(state: State) -> Iterator[State]:
    """LpPool with a window of all elements, instead of GlobalLpPool."""
    case = state.case
    sizes = case.shape[2:] if case.shape else ()
    if not sizes or not all(isinstance(size, int) for size in sizes):
        raise UnfitError("its sizes are not known")
    yield state.pooled(state.attributes | {"kernel_shape": list(sizes)}, operator="LpPool")


def zero_points(state: State) -> Iterator[State]:
    """The node with constants of 0 for omitted zero points."""
    inputs = [*state.node.input, "", ""][:5]
    made = []
    for place, suffix in ((2, "x_zero_point"), (4, "y_zero_point")):
        if not inputs[place]:
            made.append(state.constant_node(suffix, np.zeros((), state.case.dtype)))
            inputs[place] = made[-1].output[0]
    if made and state.opset < CONSTANT_OF_BYTES:
        raise UnfitError(f"the model's opset has no Constant of {state.case.dtype}")
    if made:
        node = onnx.NodeProto()
        node.CopyFrom(state.node)
        del node.input[:]
        node.input.extend(inputs)
        yield state._replace(node=node, before=(*state.before, *made), case=state.case._replace(inputs=(True,) * 5))


class Rule(NamedTuple):
    """
    A way to rewrite nodes of some operators.

    `ways` yields rewritten nodes, or none if the rule does not apply. If the rule applies but cannot be used, it raises
    `UnfitError` with the reason. A rule that `admits` lets runtimes run nodes that they refuse, and is used only if the
    runtimes then compute the same values as onnxpool.
    """

    operators: tuple[str, ...]
    ways: Callable[[State], Iterator[State]]
    admits: bool = False


RULES = (
    Rule(POOLS + QUANTISED, explicit),
    Rule(QLINEAR, zero_points, admits=True),
    Rule(GLOBAL_NORM, windowed),
    Rule(POOLS + QUANTISED, padded),
)


@dataclass
class NodeFix:
    """
    What became of a pooling node about which runtimes disagree.

    Attributes
    ----------
    name, operator : str
        Node and operator.
    changes : list of str
        The nodes that replace it, as text. Empty if it stays as it is.
    fixed, remaining : list of dict
        Disagreements that the rewriting settled, and disagreements that remain, as in `NodeCheck`.
    reasons : list of str
        Reasons why some disagreements remain.
    """

    name: str
    operator: str
    changes: list[str] = field(default_factory=list)
    fixed: list[dict[str, str]] = field(default_factory=list)
    remaining: list[dict[str, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


class Fixed(NamedTuple):
    """
    The result of `fix_model`.

    Attributes
    ----------
    data : bytes
        New content of the file: every byte that does not belong to a rewritten node is as before.
    external : bool
        Whether the model refers to files with weights, by paths relative to its own.
    nodes : list of NodeFix
        Pooling nodes with changes, or with disagreements that remain.
    opset : tuple of int, optional
        Opsets of the default domain before and after. None if the opset stays the same.
    """

    data: bytes
    external: bool
    nodes: list[NodeFix]
    opset: tuple[int, int] | None


Result = tuple[NodeFix, State | None]  # what becomes of a node, and its new state if it changes


class Target(NamedTuple):
    """The runtimes that should agree."""

    wanted: Filter

    def rows(self, case: Case) -> list[Disagreement]:
        """The disagreements about a node."""
        rows = disagreements(case, self.wanted)
        if self.wanted.runtimes is None:
            rows += [row for row in PORTABILITY if case.name in row.operators and row.holds(case)]
        return rows

    def cost(self, case: Case) -> tuple[int, int]:
        """The number of disagreements with all releases of a runtime, and the number with old releases only."""
        rows = self.rows(case)
        return sum(not row.before for row in rows), sum(bool(row.before) for row in rows)

    def exposes(self, state: State, way: State) -> bool:
        """Whether a runtime with a settled disagreement still disagrees about the node for other reasons."""
        left = self.rows(way.case)
        names = {row.name for row in left}
        settled = {row.runtime for row in self.rows(state.case) if row.name not in names}
        return any(row.runtime in settled for row in left)

    def improved(self, state: State) -> tuple[State, list[str]]:
        """The node, rewritten until nothing improves, and the reasons why it cannot be rewritten further."""
        while True:
            ways: list[State] = []
            reasons: list[str] = []
            for rule in RULES if any(self.cost(state.case)) else ():
                if state.case.name in rule.operators:
                    try:
                        ways += [way for way in rule.ways(state) if not (rule.admits and self.exposes(state, way))]
                    except UnfitError as error:
                        reasons.append(str(error))
                    except (PoolError, PoolTypeError):
                        continue  # onnxpool would refuse such a node
            known = {row.name for row in self.rows(state.case) if not row.before}
            ways = [way for way in ways if self.cost(way.case) < self.cost(state.case)
                    and known.issuperset(row.name for row in self.rows(way.case) if not row.before)]
            if not ways:
                return state, reasons
            state = min(ways, key=lambda way: self.cost(way.case))


class Found(NamedTuple):
    """A pooling node in the file: where it is, the nodes that it becomes once functions are inlined, and perhaps why it
    must stay."""

    place: Place
    node: onnx.NodeProto
    sites: list[Site]
    reason: str = ""


def pools_of(graph: Any, path: Place) -> Iterator[tuple[Place, onnx.NodeProto]]:
    """The pooling nodes of a graph or function and of its bodies, with their places in the file."""
    for i, node in enumerate(graph.node):
        here = (*path, step(type(graph), "node", i))
        if (node.op_type, "" if node.domain == LONG_NAME else node.domain) in FAMILY:
            yield here, node
        for j, attribute in enumerate(node.attribute):
            there = (*here, step(onnx.NodeProto, "attribute", j))
            if attribute.HasField("g"):
                yield from pools_of(attribute.g, (*there, step(onnx.AttributeProto, "g")))
            for k, body in enumerate(attribute.graphs):
                yield from pools_of(body, (*there, step(onnx.AttributeProto, "graphs", k)))


def forget_claims(graph: onnx.GraphProto, inner: bool = False) -> None:
    """Remove the shapes that a model declares for node results: only shapes that follow from inputs are certain."""
    del graph.value_info[:]
    for value in (*graph.output, *(graph.input if inner else ())):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for body in bodies(node):
            forget_claims(body, inner=True)


def find(model: onnx.ModelProto, path: str | Path) -> list[Found]:
    """The pooling nodes of a model."""
    work = onnx.ModelProto()
    work.CopyFrom(model)
    found: list[Found] = []
    parts: list[tuple[Any, Place]] = [(work.graph, (step(onnx.ModelProto, "graph"),))]
    parts += [(function, (step(onnx.ModelProto, "functions", i),)) for i, function in enumerate(work.functions)]
    for holder, start in parts:
        for place, node in pools_of(holder, start):
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            node.doc_string = f"{MARK}{len(found)}"
            found.append(Found(place, copy, []))
    forget_claims(work.graph)
    for site in survey(completed(work, path, weights=False)):
        found[int(site.node.doc_string.removeprefix(MARK))].sites.append(site)
    return found


def typed(value: Any, kind: Any) -> Any:
    """An attribute's value in another type, if it can represent the value. The type of p depends on the version."""
    if kind == onnx.AttributeProto.FLOAT and isinstance(value, int):
        return float(value)
    if kind == onnx.AttributeProto.INT and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def state_of(found: Found, site: Site, names: Collection[str], opset: int | None) -> State | None:
    """The state of a node before it is rewritten. None if onnxpool refuses it. `opset` replaces the model's."""
    operator = site.operator
    if operator is None or site.error:
        return None
    node, default = found.node, site.opsets.get("", 0)
    if opset is not None:
        node, default = onnx.NodeProto(), opset
        node.CopyFrom(found.node)
        if site.node.domain == "":
            version = resolve(site.node.op_type, opset)
            given = {name: typed(value, onnx.defs.get_schema(site.node.op_type, opset).attributes[name].type)
                     for name, value in attributes_of(site.node).items() if name in version.attributes}
            moved = by_name(site.node.op_type, opset, given, return_indices=operator.return_indices)
            if moved._values != operator._values or (site.dtype is not None and site.dtype.name not in version.dtypes):
                raise UnfitError(f"{version.label} has another meaning")
            operator = moved
            for attribute in list(node.attribute):
                value = given.get(attribute.name)
                if type(value) is not type(value_of(attribute)):
                    node.attribute.remove(attribute)
                    node.attribute.extend([] if value is None else [helper.make_attribute(attribute.name, value)])

    def constant(name: str) -> Array | None:
        place = 2 if name == "x_zero_point" else 4
        if not "".join(site.node.input[place:place + 1]):
            return np.zeros((), site.dtype)
        return site.wiring.constant(site.node.input[place])

    plan = site.plan
    case = Case(operator, tuple(map(bool, site.node.input)), None if site.dtype is None else site.dtype.name,
                site.shape, plan.axes if isinstance(plan, WindowPlan) else (),
                () if plan is None else plan.output_shape, site.around)
    return State(node, (), case, default, names, constant)


def fixed_node(found: Found, names: Collection[str], target: Target, opset: int | None) -> Result:
    """What becomes of a node."""
    report = NodeFix(title(found.node), found.node.op_type)
    results: list[tuple[State, State]] = []
    linked = any(attribute.ref_attr_name for attribute in found.node.attribute)
    for site in found.sites:
        state = state_of(found, site, names, opset)
        if state is None:
            report.reasons.append(f"onnxpool refuses it: {site.error}" if site.error else site.unknown)
            continue
        reason = site.unknown or (linked and "its attributes come from the caller of a function") or found.reason
        new, reasons = (state, [reason]) if reason else target.improved(state)
        if not reason or target.rows(state.case) or any(row.holds(state.case) for row in PORTABILITY):
            report.reasons += reasons
        results.append((state, new))
    if not results:
        return report, None
    if any(new.written != results[0][1].written for _, new in results):
        report.reasons.append("the calls of its function need different pads")
        results = [(old, old) for old, _ in results]
    start, end = ({row.name: row for pair in results for row in target.rows(pair[side].case)} for side in (0, 1))
    report.fixed = [warning(row) for name, row in start.items() if name not in end]
    report.remaining = [warning(row) for row in end.values()]
    old, new = results[0]
    report.reasons = list(dict.fromkeys(report.reasons)) if report.remaining or new is old else []
    if report.remaining and not report.reasons:
        report.reasons = ["no other way to write it keeps its results"]
    changed = new.written != [found.node.SerializeToString()]
    report.changes = [described(node) for node in (*new.before, new.node)] if new is not old else []
    return report, new if changed else None


def described(node: onnx.NodeProto) -> str:
    """A node as text, such as Pad(x, y_pads)."""
    given = []
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = numpy_helper.to_array(value).tolist()
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value).replace(" ", "")
        given.append(f"{attribute.name}={text.strip('[]')}")
    return f"{node.op_type}{'(' + ', '.join(node.input) + ')' if node.input else ''} {' '.join(given)}".rstrip()


def opsets_for(model: onnx.ModelProto) -> list[int]:
    """Opsets that change only versions of pooling nodes: one opset for each combination of such versions."""
    own = {entry.version for entry in model.opset_import if entry.domain in ("", LONG_NAME)}
    if len(own) != 1 or model.functions:
        return []
    now = own.pop()
    names = {node.op_type for node in every_node(model.graph.node) if node.domain in ("", LONG_NAME)}

    def versions(opset: int, pools: bool) -> tuple[int, ...] | None:
        try:
            return tuple(onnx.defs.get_schema(name, opset, "").since_version
                         for name in sorted(names) if ((name, "") in FAMILY) is pools)
        except onnx.defs.SchemaError:  # this opset lacks one of the versions
            return None

    others, found = versions(now, pools=False), {versions(now, pools=True): now, None: now}
    for opset in sorted(range(1, LATEST[""] + 1), key=lambda opset: abs(opset - now)):
        if others is not None and versions(opset, pools=False) == others:
            found.setdefault(versions(opset, pools=True), opset)
    return [opset for opset in found.values() if opset != now]


def fix_model(path: str | Path, wanted: Filter = Filter()) -> Fixed:  # noqa: B008  # an immutable value
    """
    Rewrite the pooling nodes in a model if runtimes disagree about them. No file is written.

    Parameters
    ----------
    path : path_like
        Model file. External files with weights need not be present.
    wanted : Filter
        Selection of disagreements. By default, disagreements of all runtimes, unless they show only with unusual
        values.

    Returns
    -------
    Fixed

    Raises
    ------
    ModelError
        If the file cannot be read or the model is inconsistent.
    """
    model = parsed(path)
    content = binary_content(path, model)
    try:
        found = find(model, path)
    except ModelError as error:
        raise type(error)(f"{path}: {error}") from error
    results, opset = best_results(model, found, Target(wanted), opsets_for(model))
    data = edited(path, content, edits_of(model, found, results, opset))
    misjudged = [is_misjudged(each) for each in found]
    if any(misjudged) and is_consistent(model) and not is_consistent(onnx.ModelProto.FromString(data)):
        found = [each._replace(reason=DECLARED if wrong else "") for each, wrong in zip(found, misjudged, strict=True)]
        results, opset = best_results(model, found, Target(wanted), ())
        data = edited(path, content, edits_of(model, found, results, opset))
    return Fixed(data, any(map(external_data_helper.uses_external_data, tensors_of(model))),
                 [report for report, _ in results if report.fixed or report.remaining or report.reasons],
                 None if opset is None else (opsets_of(model)[""], opset))


class Edit(NamedTuple):
    """A message of the file, and the messages that take its place."""

    old: Any
    new: list[bytes]


def edits_of(model: onnx.ModelProto, found: Sequence[Found], results: Sequence[Result],
             opset: int | None) -> dict[Place, Edit]:
    """The changes to the file, by the place of each message."""
    edits = {each.place: Edit(each.node, state.written)
             for each, (_, state) in zip(found, results, strict=True) if state is not None}
    for i, entry in enumerate(model.opset_import) if opset is not None else ():
        if entry.domain in ("", LONG_NAME):
            new = onnx.OperatorSetIdProto(domain=entry.domain, version=opset)
            edits[step(onnx.ModelProto, "opset_import", i),] = Edit(entry, [new.SerializeToString()])
    return edits


def edited(path: str | Path, content: bytes, edits: Mapping[Place, Edit]) -> bytes:
    """The content of a file, with some messages replaced."""
    for place, (old, _) in edits.items():
        stored = part(memoryview(content), place)
        if stored is None or type(old).FromString(stored.tobytes()).SerializeToString() != old.SerializeToString():
            raise ModelError(f"{path} stores a message in several pieces; save it again with onnx.save")
    return spliced(memoryview(content), {place: edit.new for place, edit in edits.items()}) if edits else content


def is_misjudged(found: Found) -> bool:
    """Whether onnx's inference predicts another shape of a node than runtimes compute."""
    states = [state_of(found, site, (), None) for site in found.sites]
    return any(state is not None and disagreements(state.case, Filter(runtimes={INFERENCE: ()})) for state in states)


def is_consistent(model: onnx.ModelProto) -> bool:
    """Whether a model declares the shapes that onnx's inference predicts."""
    try:
        onnx.shape_inference.infer_shapes(without_weights(model), check_type=True, strict_mode=True)
    except Exception:  # the exceptions of the onnx package have no common base
        return False
    return True


def binary_content(path: str | Path, model: onnx.ModelProto) -> bytes:
    """The bytes of a model's file, in protobuf's binary format: models can also be stored as text."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        if onnx.ModelProto.FromString(data).SerializeToString() == model.SerializeToString():
            return data
    except Exception:  # as in `parsed`
        pass
    raise ModelError(f"{path} is not in ONNX's binary format; save it with onnx.save as a file named .onnx")


def best_results(model: onnx.ModelProto, found: Sequence[Found], target: Target,
                 opsets: Sequence[int]) -> tuple[list[Result], int | None]:
    """The result for each node, and the new opset if one of these opsets leaves fewer disagreements."""
    names = {str(text) for text in texts_of(model)}
    plain = best = [fixed_node(each, names, target, None) for each in found]
    moved = None
    for opset in opsets if remaining(best) else ():
        try:
            other = [fixed_node(each, names, target, opset) for each in found]
        except (PoolError, PoolTypeError):  # at this opset, a node does not exist or has another meaning
            continue
        if remaining(other) < remaining(best):
            best, moved = other, opset
    for (report, _), (first, _) in zip(best, plain, strict=True):
        left = [row["name"] for row in report.remaining]
        report.fixed = [row for row in (*first.fixed, *first.remaining) if row["name"] not in left]
    return best, moved


def remaining(results: Sequence[Result]) -> int:
    """The number of disagreements that remain."""
    return sum(len(report.remaining) for report, _ in results)
