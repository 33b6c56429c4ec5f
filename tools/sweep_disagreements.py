"""Test the table of disagreements against every peer that is installed, with random nodes for each of its rows.

    python tools/sweep_disagreements.py [--nodes 20000] [--seed 1] [--peers onnxruntime OpenVINO] [--rows ort-pads]

Each row is tested with nodes to which it applies, and with nodes one step away: one attribute, size, dtype or version
differs so that the row does not apply. Each node runs on each peer, with ordinary values and with each kind of unusual
values. If a peer differs and no row says so, that is a miss. If a row says so and the peer never differs, that is a
false alarm.

Peers run each node at their own opset, on one thread. torch does not run ONNX models: it is tested if one of its
functions has the same attributes. Install the versions of tests/onnx/versions.txt, or some of them.

The exit status is 1 if there is a miss or a false alarm.
"""

import argparse
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from peers import PEERS, TORCH, Array, Example, Inputs, Run, agrees, installed, release

import onnxpool
from onnxpool import PoolError, PoolTypeError
from onnxpool.onnx.cases import AVERAGE, EVERY, NORM, QLINEAR, Case, Disagreement
from onnxpool.onnx.disagreements import DISAGREEMENTS
from onnxpool.planning.kinds import WindowPlan
from onnxpool.schemas import SCHEMAS

# torch does not run ONNX models, so `onnxpool check` has no rows for it. If one of its functions has the same
# attributes, its result is compared as well, with these exceptions.
WITNESSES = (
    Disagreement(
        "torch-norm-ceil", TORCH, NORM, lambda case: case.overhangs() and case.most > 0,
        "computes a norm as a mean times the kernel size, which is wrong if a window of ceil_mode overhangs"),
    Disagreement(
        "torch-norm-sign", TORCH, NORM, lambda case: case.p % 2 != 0,
        "takes powers of signed numbers instead of magnitudes"),
    Disagreement(
        "torch-norm-range", TORCH, NORM, lambda case: case.p != 1 and case.most > 0,
        "returns inf or 0 if powers overflow or underflow the dtype, even though the norm does not", values="range"),
    Disagreement(
        "torch-mean-range", TORCH, (*AVERAGE, "GlobalAveragePool"),
        lambda case: case.most > 1 and case.dtype != "float16",
        "returns inf if a sum overflows the dtype, even though the mean does not", values="range"),
    Disagreement(
        "torch-long-sum", TORCH, AVERAGE, lambda case: case.long_sum(1),
        "may be off by more than 0.2 %, because it adds this many elements one after another in float32"),
    Disagreement(
        "torch-empty-indices", TORCH, ("MaxPool",), lambda case: case.operator.return_indices and case.empty,
        "returns an index other than -1 for a window that holds padding only"),
    Disagreement(
        "torch-nan-indices", TORCH, ("MaxPool",), lambda case: case.operator.return_indices and case.most > 1,
        "points to the last NaN of a window", values="NaN"),
)
ORDINARY = ""
DTYPES = {name: np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8")}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
MOST_ELEMENTS = 3000  # maximum elements of a generated node; a step may double them
LONG = 2**15  # minimum number of elements of an input whose elements are all equal
# Rows about sums of many terms. Only the row's own peer runs their nodes, because others take minutes.
LONG_ROWS = ("ort-quantised-overflow", "ort-long-sum", "openvino-long-sum", "torch-long-sum")
ATTEMPTS = 1000  # maximum number of nodes generated until a row applies
TRIALS, FURTHER_TRIALS = 2, 96  # inputs of each kind: for every node, and for a node that is expected to differ
REGIONS = 24, 32  # regions of a node: one in a hundred may show a difference
AUTO_PADS = ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")


class Draft(NamedTuple):
    """A node without the values of its inputs."""

    operator: str
    opset: int
    dtype: str
    shape: tuple[int, ...]
    attributes: dict[str, Any]
    outputs: int = 1
    inputs: int = 1
    rois: int = 0

    def example(self, rng: random.Random, kind: str = ORDINARY, turn: int = 0) -> Example:
        """The node with inputs of a kind."""
        return Example(self.operator, self.opset, inputs_of(self, rng, kind, turn), self.attributes, self.outputs)


# Values


def floats(rng: random.Random, shape: tuple[int, ...], dtype: np.dtype[Any], kind: str, turn: int) -> Array:
    """An array of ordinary floats, or of some unusual floats, whose properties cycle with `turn`."""
    if math.prod(shape) >= LONG:
        return np.full(shape, (0.1, 0.3, 0.7, 1.1)[turn % 4], dtype)
    generator = np.random.default_rng(rng.getrandbits(32))
    signs = generator.choice((-1, 1, 1), shape)
    if kind == "range":
        info = ml_dtypes.finfo(dtype)
        high, low = float(info.max), float(info.smallest_normal)
        scales = high, high, high / 4, high / 16, low * 1.01, float(info.smallest_subnormal) * 16
        x = generator.uniform(0.5, 0.99, shape) * scales[turn // 4 % len(scales)]
        return (x * (signs if turn % 2 else 1)).astype(dtype)
    x = generator.uniform(0.5, 2, shape) * signs
    style = ("digits", "ties", "positive", "negative", "equal")[turn % 5]
    x = {"ties": np.round(x * 2), "equal": np.ones(shape), "positive": np.abs(x), "negative": -np.abs(x)}.get(
        style, x).astype(dtype)
    if kind in ("NaN", "infinity"):
        sets: tuple[tuple[float, ...], ...] = ((-np.inf,), (-np.inf, np.inf), (np.inf,))
        values = (np.nan,) if kind == "NaN" else sets[turn % 3]
        chosen = generator.random(shape) < (1, 0.1, 0.3, 0.6)[(turn if kind == "NaN" else turn // 3) % 4]
        chosen.flat[rng.randrange(x.size)] = True
        x[chosen] = generator.choice(values, int(chosen.sum())).astype(dtype)
    return x


def integers(rng: random.Random, shape: tuple[int, ...], info: Any, kind: str, turn: int) -> Array:
    """An array of ordinary integers, or of some unusual integers."""
    if math.prod(shape) >= LONG:
        return np.full(shape, info.max, info.dtype)
    low, high = info.min + 1, info.max
    if kind == "extremes":
        low, high = ((info.max, info.max), (info.min, info.max), (info.min, info.min))[turn % 3]
    if kind == "lowest":
        low, high = info.min, info.min + (turn % 2)
    return np.random.default_rng(rng.getrandbits(32)).integers(low, high, shape, info.dtype, endpoint=True)


def inputs_of(draft: Draft, rng: random.Random, kind: str, turn: int) -> Inputs:
    """The inputs of a node."""
    dtype, shape = DTYPES[draft.dtype], draft.shape
    if dtype.kind in "iu":
        x = integers(rng, shape, np.iinfo(dtype), "extremes" if draft.operator.startswith("QLinear") else kind, turn)
    else:
        x = floats(rng, shape, dtype, kind, turn)
    if draft.operator.startswith("QLinear"):
        return quantised(draft, rng, x, kind, turn)
    if draft.operator == "MaxUnpool":
        sizes = unpooled_sizes(draft)
        places = rng.sample(range(max(math.prod((*shape[:2], *sizes)), x.size)), x.size)
        larger = [np.array((*shape[:2], *(size + rng.randint(0, 2) for size in sizes)))] * (draft.inputs == 3)
        return x, np.array(places, np.int64).reshape(shape), *larger
    if draft.rois:
        rois = np.array([region(draft, rng, kind, turn + i) for i in range(draft.rois)], dtype)
        batches = np.array([rng.randrange(shape[0]) for _ in rois])
        if draft.operator == "RoiAlign":
            return x, rois, batches
        return x, np.concatenate([batches[:, None].astype(dtype), rois], 1)
    return (x,)


def region(draft: Draft, rng: random.Random, kind: str, turn: int) -> list[float]:
    """The corners of a region: the whole image, one element, random, larger, beside or beyond the image, inverted."""
    styles = {ORDINARY: ("whole", "one", "any", "more"), "range": ("corner", "more", "whole", "any"),
              "inverted": ("inverted",)}
    among = styles.get(kind, ("whole", "more", "beyond", "any"))
    style = among[(turn + turn // 4) % len(among)]
    given = draft.attributes
    half = (draft.operator == "RoiAlign" and draft.opset >= 16
            and given.get("coordinate_transformation_mode") != "output_half_pixel")
    sides = []
    for size, name in zip(reversed(draft.shape[2:]), ("output_width", "output_height"), strict=True):
        element = rng.randrange(size)
        anywhere = sorted(rng.uniform(-1, size + 1) for _ in range(2))
        more = -2 * size - rng.random(), 3 * size + rng.random()
        inverted = rng.uniform(*more), rng.uniform(*more)  # along every other axis, it ends before it begins
        corner = 0.5 * half - 1, 0.5 * half - 1 + 1.02 * given.get(name, 1)  # a first bin with two samples next to it
        sides.append({"whole": (0, size - 1), "one": (element, element), "any": anywhere, "more": more,
                      "inverted": inverted, "corner": corner, "beyond": (size + 2, size + 4)}[style])
    return [end / given.get("spatial_scale", 1) for ends in zip(*sides, strict=True) for end in ends]


def unpooled_sizes(draft: Draft) -> list[int]:
    """The spatial sizes that follow from the attributes of a MaxUnpool."""
    kernel = draft.attributes["kernel_shape"]
    rank = len(kernel)
    strides, pads = draft.attributes.get("strides", [1] * rank), draft.attributes.get("pads", [0] * 2 * rank)
    return [max(0, (size - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank])
            for i, size in enumerate(draft.shape[2:])]


def quantised(draft: Draft, rng: random.Random, x: Array, kind: str, turn: int) -> Inputs:
    """The inputs of a quantised pool: only unusual scales leave the range of its output."""
    info = np.iinfo(x.dtype)
    ratio = rng.choice((1, 0.5, 0.25, 0.3, 0.77)) if kind == ORDINARY else rng.choice((1, 2, 4, 3.3, 100))
    y_scale = rng.choice((1, 0.5, 0.02, 0.013))
    middle = (info.min + info.max + 1) // 2
    low, high = (info.min, info.max) if kind else (middle, middle) if turn % 2 else (info.min, info.min)
    x_zero, y_zero = (None if draft.inputs == 3 else np.array(rng.randint(low, high), x.dtype) for _ in range(2))
    return x, np.array(ratio * y_scale, np.float32), x_zero, np.array(y_scale, np.float32), y_zero


def kinds_of(draft: Draft) -> tuple[str, ...]:
    """The kinds of unusual values that an input can have."""
    if math.prod(draft.shape) >= LONG:
        return (ORDINARY,)
    if draft.operator.startswith("QLinear"):
        return (ORDINARY, "scales")
    if DTYPES[draft.dtype].kind in "iu":
        return ORDINARY, "lowest"
    return (ORDINARY, "NaN", "infinity", "range") + ("inverted",) * (draft.rois > 0)


# Nodes


def random_draft(rng: random.Random, operators: tuple[str, ...], long: bool = False) -> Draft:
    """A random node, usually a small one; it need not be legal."""
    operator = rng.choice(operators)
    schema = SCHEMAS[operator]
    version = rng.choice(schema.versions)
    opset = version.since
    dtype = rng.choice((*version.dtypes, *("float32",) * 2)) if "float32" in version.dtypes else rng.choice(
        version.dtypes)
    if long:
        return long_draft(rng, operator, opset, dtype)
    rank = 2 if operator in ("RoiAlign", "MaxRoiPool") else rng.choice((1, 1, 2, 2, 2, 3, 3, 4))
    if operator.startswith("Global") and rng.random() < 0.1:
        rank = 0
    spatial: list[int] = []
    shape = [rng.choice((1, 1, 2)), rng.choice((1, 1, 2, 3, 16, 17))]
    longest = 40 if operator.startswith("Global") and rng.random() < 0.3 else 9
    for _ in range(rank):
        spatial.append(rng.randint(1, max(1, min(longest, MOST_ELEMENTS // math.prod((*shape, *spatial))))))
    outputs = 2 if version.outputs == 2 and rng.random() < 0.5 else 1
    attributes = {name: value for name, value in attributes_of(rng, version.attributes, spatial).items()
                  if value is not None}
    draft = Draft(operator, opset, dtype, (*shape, *spatial), attributes, outputs)
    if channels_last(draft):
        draft = draft._replace(shape=(shape[0], *spatial, shape[1]))
    if operator.startswith("QLinear"):
        return draft._replace(inputs=3 if operator == "QLinearAveragePool" and rng.random() < 0.2 else 5)
    if operator == "MaxUnpool":
        return draft._replace(inputs=rng.choice((2, 3)))
    return draft._replace(rois=rng.randint(*REGIONS), inputs=len(schema.inputs)) if "rois" in schema.inputs else draft


def long_draft(rng: random.Random, operator: str, opset: int, dtype: str) -> Draft:
    """A node whose sums have many terms: near the limit of a quantised sum, or a power of 4."""
    quantised = operator.startswith("QLinear")
    side = rng.choice((2900, 2901, 2902, 2903)) if quantised else rng.choice((256, 512, 1024, 2048))
    attributes: dict[str, Any] = {} if "Global" in operator else {"kernel_shape": [side, side]}
    return Draft(operator, opset, dtype, (1, 1, side, side), attributes, inputs=5 if quantised else 1)


def attributes_of(rng: random.Random, known: Iterable[str], spatial: list[int]) -> dict[str, Any]:
    """Random values of a version's attributes; None for omitted attributes."""
    known, rank = set(known), len(spatial)
    unit, alike = rng.random() < 0.25, rng.random() < 0.3

    def each(low: int, high: int) -> list[int]:
        return [rng.randint(low, high)] * rank if alike else [rng.randint(low, high) for _ in range(rank)]

    kernel = [min(k, size + 2) for k, size in zip(each(1, 5), spatial, strict=True)]
    pads = [rng.randint(0, k + (rng.random() < 0.2)) for k in kernel * 2]
    if rng.random() < 0.7:  # most pads are smaller than a window
        pads = [min(pad, k - 1) for pad, k in zip(pads, kernel * 2, strict=True)]
    if rng.random() < 0.4:
        pads = pads[:rank] * 2
    dilations = each(1, 3)
    if "dilations" in known and not unit and rank and rng.random() < 0.2:  # the input may lie between two taps
        axis = rng.randrange(rank)
        kernel[axis], pads[axis], pads[axis + rank] = 2, 1, 1
        dilations[axis] = spatial[axis] + rng.randint(0, 1)
    values: dict[str, Callable[[], Any]] = {
        "kernel_shape": lambda: kernel,
        "strides": lambda: None if unit and rng.random() < 0.5 else [1] * rank if unit else each(1, 4),
        "dilations": lambda: None if unit or (max(dilations) < 4 and rng.random() < 0.5) else dilations,
        "pads": lambda: pads if rng.random() < 0.6 else None,
        "auto_pad": lambda: rng.choice(AUTO_PADS) if rng.random() < 0.35 else None,
        "ceil_mode": lambda: rng.choice((0, 1, 1, None)),
        "count_include_pad": lambda: rng.choice((0, 1, 1, None)),
        "storage_order": lambda: rng.choice((0, 1, None)),
        "channels_last": lambda: rng.choice((0, 1, None)),
        "p": lambda: rng.choice((None, 1, 1.5, 2, 3, 4)),
        "pooled_shape": lambda: [rng.randint(1, 4) for _ in range(2)],
        "spatial_scale": lambda: rng.choice((None, 1.0, 0.5, 0.25, 1.37)),
        "mode": lambda: rng.choice((None, "avg", "max")),
        "output_height": lambda: rng.choice((None, 1, 2, 3)),
        "output_width": lambda: rng.choice((None, 1, 2, 3)),
        "sampling_ratio": lambda: rng.choice((None, 0, 1, 2, 3)),
        "coordinate_transformation_mode": lambda: rng.choice((None, "half_pixel", "output_half_pixel")),
    }
    attributes = {name: values[name]() for name in sorted(known)}
    if attributes.get("auto_pad") not in (None, "NOTSET") and attributes.get("pads"):
        attributes["pads"] = rng.choice((None, None, [0] * 2 * rank))
    return attributes


def fixed(draft: Draft) -> Draft:
    """The node, with a float p if it is version 1 of a norm."""
    version = SCHEMAS[draft.operator].versions
    p = draft.attributes.get("p")
    if p is None:
        return draft
    exact = next(v for v in reversed(version) if v.since <= draft.opset).attributes["p"].type
    return draft._replace(attributes={**draft.attributes, "p": float(p) if exact == "float" else int(p)})


def beside(rng: random.Random, draft: Draft) -> Draft:
    """The node with one thing changed by one step: it need not be legal."""
    schema, attributes = SCHEMAS[draft.operator], dict(draft.attributes)
    spatial = range(1, len(draft.shape) - 1) if channels_last(draft) else range(2, len(draft.shape))
    what = rng.choice(("attribute", "attribute", "attribute", "left out", "size", "version", "dtype", "outputs"))
    if what == "size" and spatial:
        axis, step = rng.choice(spatial), rng.choice((-1, 1))
        return draft._replace(shape=tuple(size + step * (i == axis) for i, size in enumerate(draft.shape)))
    if what == "version":
        return draft._replace(opset=rng.choice(schema.versions).since)
    if what == "dtype":
        return draft._replace(dtype=rng.choice([name for v in schema.versions for name in v.dtypes]))
    if what == "outputs":
        return draft._replace(outputs=3 - draft.outputs)
    if attributes:
        name = rng.choice(sorted(attributes))
        value = attributes.pop(name)
        if what == "left out":
            pass
        elif isinstance(value, list):
            place = rng.randrange(max(len(value), 1))
            attributes[name] = [each + rng.choice((-1, 1)) * (i == place) for i, each in enumerate(value)]
        elif name == "auto_pad":
            attributes[name] = rng.choice(AUTO_PADS)
        elif name in ("ceil_mode", "count_include_pad", "storage_order"):
            attributes[name] = 1 - value
        elif isinstance(value, int):
            attributes[name] = value + rng.choice((-1, 1))
    return draft._replace(attributes=attributes)


def channels_last(draft: Draft) -> bool:
    """Whether channels are the last axis."""
    return draft.operator == "NhwcMaxPool" or bool(draft.attributes.get("channels_last"))


def case_of(draft: Draft) -> Case | None:
    """The facts of the node for the table; None if onnxpool refuses the node, or if no element can be compared."""
    schema = SCHEMAS[draft.operator]
    options = {} if schema.domain else {"opset": draft.opset}
    if draft.outputs == 2:
        options["return_indices"] = True
    try:
        if draft.operator == "MaxUnpool":
            draft.example(random.Random(0)).ours()
        operator = getattr(onnxpool, draft.operator)(**draft.attributes, **options)
        plan = operator.plan(draft.shape, DTYPES[draft.dtype])
    except (PoolError, PoolTypeError, ValueError, KeyError):
        return None
    if not math.prod(plan.output_shape):
        return None
    axes = plan.axes if isinstance(plan, WindowPlan) else ()
    given = (True, True, False, True) if draft.operator in QLINEAR and draft.inputs == 3 else (True,) * draft.inputs
    return Case(operator, given, draft.dtype, draft.shape, axes, plan.output_shape)


def rows_for(case: Case, peer: str) -> list[Disagreement]:
    """The rows that apply to the installed release of a peer."""
    return [row for row in (*DISAGREEMENTS, *WITNESSES) if row.runtime == peer and case.name in row.operators
            and (not row.before or release(peer) < row.before) and row.holds(case)]


def nodes_for(rng: random.Random, row: Disagreement, count: int) -> Iterator[tuple[Draft, Case]]:
    """Nodes to which a row applies, and preferably no other row about its peer. Every second node is one step away."""
    long = row.name in LONG_ROWS
    for number in range(count):
        best = None
        for attempt in range(ATTEMPTS):
            if best is not None and attempt % 200 == 0:
                break
            draft = fixed(random_draft(rng, row.operators, long))
            case = case_of(draft)
            if case is None or not row.holds(case):
                continue
            best = draft, case
            if rng.random() < 0.1 or all(other is row or other.values for other in rows_for(case, row.runtime)):
                break
        if best is None:
            return
        draft, case = best
        if number % 2:
            for _ in range(60):
                other = fixed(random_draft(rng, row.operators, long) if long else beside(rng, draft))
                near = case_of(other)
                if near is not None and not row.holds(near):
                    draft, case = other, near
                    break
        yield draft, case


# Verdicts


class Finding(NamedTuple):
    """A miss or a false alarm."""

    peer: str
    rows: tuple[str, ...]
    kind: str
    shown: str
    error: str = ""


class Tally:
    """The findings: misses, false alarms, and for each row the number of nodes to which it, or it alone, applied."""

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.alone: Counter[str] = Counter()
        self.misses: list[Finding] = []
        self.false_alarms: list[Finding] = []

    def judge(self, peer: str, draft: Draft, case: Case, rng: random.Random) -> None:
        """Run a node on a peer, and compare the outcome with the table."""
        rows = rows_for(case, peer)
        usual = [row for row in rows if not row.values]
        example = draft.example(rng)
        run, error = prepared(peer, example)
        differs: dict[str, bool | None] = {}
        wrong = example
        for kind in kinds_of(draft):
            expected = bool(usual) if kind == ORDINARY else any(row.values == kind for row in rows)
            differs[kind], example = differs_for(run, draft, kind, rng, expected)
            if differs[kind] is None:  # the peer has no answer
                return
            if differs[kind] and not expected and not usual:
                self.misses.append(Finding(peer, (case.name,), kind, example.shown(), error))
                break
        self.nodes[peer] += 1
        for row in rows:
            self.held[row.name] += 1
            if row.values and usual:
                continue
            self.alone[row.name] += [other for other in rows if other.values == row.values] == [row]
            if differs.get(row.values) is False:
                self.false_alarms.append(Finding(peer, (row.name,), row.values, wrong.shown()))


def prepared(peer: str, example: Example) -> tuple[Run | None, str]:
    """A function that runs a node on a peer, or None with the reason why the peer refuses the node."""
    try:
        return PEERS[peer](example), ""
    except Exception as error:
        return None, " ".join(str(error).split())[:300]


def differs_for(run: Run | None, draft: Draft, kind: str, rng: random.Random,
                expected: bool) -> tuple[bool | None, Example]:
    """Whether a peer differs for inputs of a kind, and the last inputs. It is tried more often if it should differ."""
    example = draft.example(rng, kind)
    if run is None:
        return True, example
    if math.prod(draft.shape) >= LONG:
        turns = range(4)
    else:
        turns = range(FURTHER_TRIALS) if expected else rng.sample(range(FURTHER_TRIALS), TRIALS)
    for turn in turns:
        example = draft.example(rng, kind, turn)
        agreed = agrees(example, run, example.inputs)
        if not agreed:
            return None if agreed is None else True, example
    return False, example


def sweep(rows: Iterable[Disagreement], peers: Iterable[str], nodes: int, seed: int,
          progress: Callable[[str], None] = lambda line: None) -> Tally:
    """Generate the same number of nodes for each row, and as many arbitrary nodes. Run all of them on the peers."""
    rows, peers, tally = list(rows), list(peers), Tally()
    share = max(1, nodes // (len(rows) + 1))
    anything = Disagreement("(any node)", "", EVERY, lambda case: True, "")
    begun = time.perf_counter()
    for row in (*rows, anything):
        rng = random.Random(f"{seed} {row.name}")
        for draft, case in nodes_for(rng, row, share):
            tally.nodes["all"] += 1
            for peer in peers if row.name not in LONG_ROWS else {row.runtime}.intersection(peers):
                tally.judge(peer, draft, case, rng)
        progress(f"{time.perf_counter() - begun:7.1f} s {row.name}: {len(tally.misses)} misses, "
                 f"{len(tally.false_alarms)} false alarms")
    return tally


def progressing(line: str) -> None:
    """Show a progress line."""
    print(line, file=sys.stderr, flush=True)


def report(tally: Tally, rows: Iterable[Disagreement], peers: Iterable[str], shown: int) -> None:
    """Print the findings."""
    rows = list(rows)
    alarms = Counter(name for finding in tally.false_alarms for name in finding.rows)
    for peer in peers:
        misses = Counter(finding.rows[0] for finding in tally.misses if finding.peer == peer)
        print(f"\n{peer} {'.'.join(map(str, release(peer)))}: {tally.nodes[peer]} nodes, {misses.total()} misses"
              + "".join(f", {name} {count}" for name, count in misses.items()))
        print(f"{'row':28} {'holds':>7} {'alone':>7} {'false alarms':>13}")
        for row in rows:
            if row.runtime == peer and (not row.before or release(peer) < row.before):
                print(f"{row.name:28} {tally.held[row.name]:7} {tally.alone[row.name]:7} {alarms[row.name]:13}")
    seen: Counter[Any] = Counter()
    for title, findings in (("miss", tally.misses), ("false alarm", tally.false_alarms)):
        for finding in findings:
            key = title, finding.peer, finding.rows, finding.kind, finding.error[:40]
            seen[key] += 1
            if seen[key] <= shown:
                print(f"\n{title}: {finding.peer} {', '.join(finding.rows)} {finding.kind}\n  {finding.shown}\n  "
                      f"{finding.error}")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--peers", nargs="*", default=installed(), choices=list(PEERS))
    parser.add_argument("--rows", nargs="*", help="by default all rows of these peers")
    parser.add_argument("--shown", type=int, default=2, help="how many findings of one kind are printed")
    given = parser.parse_args()
    rows = [row for row in (*DISAGREEMENTS, *WITNESSES)
            if row.runtime in given.peers and (given.rows is None or row.name in given.rows)]
    tally = sweep(rows, given.peers, given.nodes, given.seed, progressing)
    report(tally, rows, given.peers, given.shown)
    print(f"\nseed {given.seed}: {tally.nodes['all']} nodes, {len(tally.misses)} misses, {len(tally.false_alarms)} "
          f"false alarms")
    return 1 if tally.misses or tally.false_alarms else 0


if __name__ == "__main__":
    sys.exit(main())
