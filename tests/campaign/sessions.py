"""onnxruntime sessions: random graphs at all levels of optimisation, and real models that its own tools converted.

Random graphs run for an hour, or for as many seconds as ONNXPOOL_CAMPAIGN_SESSIONS says. Models are those of installed
packages.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .figures import Figure, none

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto

QUICK, FULL = 10, 3600  # seconds of random graphs
QUICK_MODELS = ("light_squeezenet.onnx",)
TAIL = 1.5  # the error of a converted model with onnxpool at most, in units of the error without
LOST = {"optimised": 1e-4, "static": 0.02, "dynamic": 0.02, "float16": 0.004}  # by any tool, relative to the mean
SHARE = 500  # graphs of a process
CPUS = len(os.sched_getaffinity(0))


# Random graphs

def graphs(seed: int, seconds: float) -> tuple[Counter[str], dict[int, list[str]]]:
    """How many graphs there were of each kind, and the problems by seed. Each processor has seeds of its own."""
    from graph_campaign import outcomes

    kinds, problems, end = Counter[str](), dict[int, list[str]](), time.monotonic() + seconds

    def run(share: int) -> None:
        first = seed * 10**7 + share * SHARE
        while time.monotonic() < end:
            for one, outcome in outcomes(list(range(first, first + SHARE))):
                kinds[outcome.kind] += 1
                if outcome.problems:
                    problems[one] = outcome.problems
                if time.monotonic() > end:
                    break
            first += CPUS * SHARE

    with ThreadPoolExecutor(CPUS) as pool:
        list(pool.map(run, range(CPUS)))
    return kinds, problems


# Converted models

@dataclass
class Found:
    """What happened with the conversions of a model."""

    conversions: int = 0
    models: int = 0  # that the tools made
    unconverted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # by onnxruntime, with onnxpool and without
    runs: int = 0
    rescued: int = 0  # runs that only onnxpool made possible
    nodes: int = 0  # pooling nodes that ran on onnxpool and whose inputs and outputs were seen
    problems: list[str] = field(default_factory=list)


def pools(model: ModelProto) -> list[NodeProto]:
    """The pooling nodes that onnxpool can run."""
    from onnxpool.schemas import SCHEMAS

    return [node for node in model.graph.node
            if node.op_type in SCHEMAS and node.domain in (SCHEMAS[node.op_type].domain, "ai.onnx")]


def ways(model: ModelProto) -> dict[str, Any]:
    """The arguments of `register`. Operators of com.microsoft can be chosen if the model imports that domain."""
    from onnxpool.schemas import SCHEMAS

    domains = {"" if opset.domain == "ai.onnx" else opset.domain for opset in model.opset_import}
    return {"missing": "missing", "every": [name for name, schema in SCHEMAS.items() if schema.domain in domains]}


def answer(model: ModelProto, feeds: dict[str, NDArray[Any]], level: str, ops: Any) -> tuple[Any, str, set[str]]:
    """The outputs of a session or the reason why there are none, and the names of the nodes that ran on onnxpool."""
    import onnxruntime
    from graph_campaign import LEVELS
    from sessions import options

    from onnxpool.onnxruntime import record_nodes

    try:
        chosen = options(ops)
        chosen.graph_optimization_level = LEVELS[level]
        with record_nodes() as records:
            made = onnxruntime.InferenceSession(model.SerializeToString(), chosen, providers=["CPUExecutionProvider"])
        values = made.run(None, {name: x.astype(float_input(made, name)) for name, x in feeds.items()})
    except Exception as error:
        return None, str(error).replace("\n", " ")[:300], set()
    return values, "", {record.name for record in records if record.onnxpool_calls}


def float_input(session: Any, name: str) -> str:
    """The dtype of an input."""
    kind = next(value.type for value in session.get_inputs() if value.name == name)
    return "float16" if kind == "tensor(float16)" else "float32"


def distance(actual: list[NDArray[Any]], expected: list[NDArray[Any]]) -> float:
    """The largest mean error of the outputs, relative to the mean of the absolute values."""
    import numpy as np

    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(actual, expected, strict=True)]
    return max(float(abs(a - b).mean() / (abs(b).mean() or 1)) for a, b in pairs)


def nodes_right(model: ModelProto, samples: list[dict[str, NDArray[Any]]], found: Found) -> Iterator[str]:
    """
    What is wrong with single nodes.

    Inputs and outputs of pools become outputs of the model. A node that ran on onnxpool has the bits that a call of the
    operator returns, and a node that ran on onnxruntime the same values but for rounding. Each session gets another
    sample, so that no output can be right because memory still holds the last one.
    """
    import numpy as np
    import onnx
    from onnx import numpy_helper

    import onnxpool

    opsets = {"" if opset.domain == "ai.onnx" else opset.domain: opset.version for opset in model.opset_import}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    given = {value.name for value in (*model.graph.input, *model.graph.output)} | constants.keys()
    open_model = onnx.ModelProto()
    open_model.CopyFrom(model)
    seen = dict.fromkeys(name for node in pools(model) for name in (*node.input, *node.output) if name)
    open_model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in seen if name not in given)
    for (way, ops), feeds in zip({"plain": None, **ways(model)}.items(), samples, strict=True):
        values, refusal, ours = answer(open_model, feeds, "none", ops)
        if values is None:
            if way == "every":
                yield f"{way}: {refusal}"
            continue
        known = {**constants, **feeds,
                 **dict(zip((value.name for value in open_model.graph.output), values, strict=True))}
        for node in pools(model):
            x = [known.get(name) for name in node.input]
            operator = onnxpool.from_node(node, opsets)
            y = operator(*x)
            expected, actual = (y[0] if isinstance(y, tuple) else y), known[node.output[0]]
            if way == "every" or (node.name or node.output[0]) in ours:
                found.nodes += 1
                right = (node.name or node.output[0]) in ours and expected.tobytes() == actual.tobytes()
            elif expected.dtype.kind in "iu":
                right = bool((abs(expected.astype(int) - actual) <= (node.op_type != "MaxPool")).all())
            else:
                scale = np.float64(abs(x[0].astype(np.float32)).max(initial=0))
                bound = 0 if node.op_type == "MaxPool" else {2: 2e-3, 4: 1e-5}[actual.dtype.itemsize] * scale
                right = bool((abs(expected.astype(float) - actual) <= bound).all())
            if not right or expected.shape != actual.shape or expected.dtype != actual.dtype:
                yield f"{way}: node {node.name or node.output[0]} ({node.op_type}) computes other values"


def whole_right(tool: str, model: ModelProto, feeds: dict[str, NDArray[Any]], truth: list[NDArray[Any]],
                levels: list[str], found: Found) -> Iterator[str]:
    """What is wrong with outputs, whose error against the model before conversion is that of onnxruntime alone."""
    floor = LOST[tool.replace(",", "").split()[0]]
    for level in levels:
        plain, reason, _ = answer(model, feeds, level, None)
        limit = TAIL * (0 if plain is None else distance(plain, truth)) + floor
        for way, ops in ways(model).items():
            found.runs += 1
            values, refusal, _ = answer(model, feeds, level, ops)
            if values is None and plain is None:
                found.refused.append(f"{tool}, {way}, level {level}: {reason}")
            elif values is None:
                yield f"{way}, level {level}: refused: {refusal}"
            elif plain is None:
                found.rescued += 1
            elif not distance(values, truth) <= limit:
                yield f"{way}, level {level}: error {distance(values, truth):.3g}, without onnxpool {limit:.3g}"


def check_model(path: Path, seed: int, levels: list[str]) -> Found:
    """Convert a model in every way, and run what comes out."""
    import onnx
    from conversions import conversions, filled, samples_of

    logging.disable(logging.WARNING)
    found, model = Found(), filled(onnx.load(path), seed)
    samples = samples_of(model, path.name, seed)
    truth, refusal, _ = answer(model, samples[0], "none", None)
    if truth is None:
        raise RuntimeError(f"{path.name}: {refusal}")
    with TemporaryDirectory() as folder:
        for tool, made in conversions(model, samples[:2], Path(folder)):
            found.conversions += 1
            if isinstance(made, str):
                found.unconverted.append(f"{path.name}, {tool}: {made}")
                continue
            found.models += 1
            problems = [*nodes_right(made, samples, found),
                        *whole_right(tool, made, samples[0], truth, levels, found)]
            found.problems += [f"{path.name}, {tool}: {problem}" for problem in problems]
    return found


def models(seed: int, quick: bool) -> Iterator[Found]:
    """The findings for each model, made in a process of its own, because onnxruntime may crash."""
    from real_models import shipped

    context = multiprocessing.get_context("spawn")
    for path in shipped():
        if quick and path.name not in QUICK_MODELS:
            continue
        with ProcessPoolExecutor(1, context) as pool:
            try:
                yield pool.submit(check_model, path, seed, ["all"] if quick else ["none", "basic", "extended", "all"]
                                  ).result()
            except BrokenProcessPool:
                yield Found(problems=[f"{path.name}: the process was ended"])


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Random graphs, then models."""
    seconds = float(os.environ.get("ONNXPOOL_CAMPAIGN_SESSIONS", QUICK if quick else FULL))
    kinds, problems = graphs(seed, seconds)
    for one, lines in list(problems.items())[:20]:
        print(f"  python tests/onnxruntime/graph_campaign.py --only {one}", *lines, sep="\n    ")
    yield none("graphs with another value or error", len(problems), kinds.total(), "graphs",
               ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds)))
    found = list(models(seed, quick))
    for line in [line for one in found for line in (*one.problems, *one.unconverted, *one.refused)][:200]:
        print(f"  {line}")
    runs, nodes = sum(one.runs for one in found), sum(one.nodes for one in found)
    yield none("wrong nodes and runs of real models", sum(len(one.problems) for one in found), runs, "runs",
               f"of {sum(one.models for one in found)} models converted from {len(found)}; "
               f"{nodes:,} nodes ran on onnxpool and were compared one by one")
    yield Figure("runs that onnxruntime refuses without onnxpool", sum(one.rescued for one in found), runs, "runs",
                 note=f"{sum(len(one.refused) for one in found)} refused with onnxpool too")
    yield Figure("conversions that onnxruntime's tools cannot do", sum(len(one.unconverted) for one in found),
                 sum(one.conversions for one in found), "conversions")
