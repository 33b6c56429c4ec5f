"""
Compare sessions on a random graph: python tests/onnxruntime/graph_campaign.py SEED

It runs through plain onnxruntime and through every way of registering, at all levels of optimisation. The exit status
is not 0 if a session computes another value, or refuses a graph that it should run. `python -m tests.campaign sessions`
draws many graphs.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/helpers", "tests/oracle", "conformance/src")]

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from onnx.reference.op_run import OpRun  # noqa: E402
from random_graphs import Graph, draw  # noqa: E402
from sessions import options  # noqa: E402

from onnxpool.onnx.cases import ORT  # noqa: E402
from onnxpool.onnx.checks import check_site  # noqa: E402
from onnxpool.onnx.disagreements import Filter  # noqa: E402
from onnxpool.onnx.protos import canonical  # noqa: E402
from onnxpool.onnx.reference import Evaluator  # noqa: E402
from onnxpool.onnx.survey import survey  # noqa: E402
from onnxpool.schemas import SCHEMAS  # noqa: E402

Level = onnxruntime.GraphOptimizationLevel
LEVELS = {"none": Level.ORT_DISABLE_ALL, "basic": Level.ORT_ENABLE_BASIC, "extended": Level.ORT_ENABLE_EXTENDED,
          "all": Level.ORT_ENABLE_ALL}
WAYS: dict[str, Any] = {
    "missing": {"ops": "missing"}, "missing, opset": {"ops": "missing", "opset": True},
    "all": {"ops": "all"}, "all, opset": {"ops": "all", "opset": True},
    "names": {"ops": ["AveragePool", "MaxPool", "GlobalMaxPool", "LpPool"]},
}
INVALID = ("INVALID_GRAPH", "ShapeInferenceError", "TypeInferenceError")  # no kernel can help here
RELATIVE = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-5}  # some optimisers compute float64 in float32


class Answer(NamedTuple):
    """The outputs of a graph, or the reason why there are none."""

    outputs: list[NDArray[Any]] | None
    refusal: str = ""

    def __str__(self) -> str:
        return self.refusal or "; ".join(f"{y.dtype} {y.tolist()}" for y in self.outputs or ())[:400]


def run(graph: Graph, level: str, how: dict[str, Any] | None) -> Answer:
    """The answer of a session."""
    try:
        chosen = options(None) if how is None else options(how["ops"], opset=graph.opset if "opset" in how else None)
        chosen.graph_optimization_level = LEVELS[level]
        made = onnxruntime.InferenceSession(graph.model.SerializeToString(), chosen,
                                            providers=["CPUExecutionProvider"])
        return Answer(made.run(None, graph.feeds))
    except Exception as error:
        return Answer(None, f"{error}".replace("\n", " ")[:300])


class QuantizeLinear(OpRun):  # type: ignore[misc]
    """The operator up to opset 18, which onnx's ReferenceEvaluator does not have."""

    op_domain = ""

    def _run(self, x: NDArray[Any], scale: NDArray[Any], zero: NDArray[Any], **_: Any) -> tuple[NDArray[Any]]:
        limits = np.iinfo(zero.dtype)
        return (np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(zero.dtype),)


class DequantizeLinear(OpRun):  # type: ignore[misc]
    """The operator up to opset 18."""

    op_domain = ""

    def _run(self, x: NDArray[Any], scale: NDArray[Any], zero: NDArray[Any], **_: Any) -> tuple[NDArray[Any]]:
        return ((x.astype(np.int32) - zero).astype(np.float32) * scale,)


def truth(graph: Graph) -> Answer:
    """The results that follow from the meaning of the operators."""
    try:
        with np.errstate(all="ignore"):
            outputs = Evaluator(graph.model, new_ops=[QuantizeLinear, DequantizeLinear]).run(None, graph.feeds)
            return Answer([np.asarray(y) for y in outputs])
    except Exception as error:
        return Answer(None, f"{type(error).__name__}: {error}".replace("\n", " ")[:300])


def close(a: NDArray[Any], b: NDArray[Any], half: bool) -> bool:
    """Whether two outputs agree to the digits that remain after different orders of sums, and casts by optimisers."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if a.dtype.kind in "iu":
        return bool((np.abs(a.astype(np.int64) - b) <= (a.dtype.itemsize == 1)).all())
    scale = max(float(np.abs(b[np.isfinite(b)]).max(initial=0)), 1.0)
    relative = RELATIVE["float16" if half else a.dtype.name]
    return bool(np.allclose(a, b, rtol=0, atol=relative * scale, equal_nan=True))


def agree(a: Answer, b: Answer, half: bool) -> bool:
    """Whether two answers agree. Any two errors agree."""
    if a.outputs is None or b.outputs is None:
        return a.outputs is b.outputs
    return all(close(*pair, half) for pair in zip(a.outputs, b.outputs, strict=True))


def of_others(refusal: str, ops: Any) -> bool:
    """Whether an error is about an operator that onnxpool was not asked to run."""
    about = re.search(r"(?:implementation for|kernel for|while running) (\w+)", refusal)
    claimed = [name for name in SCHEMAS if name in ops] if isinstance(ops, list) else SCHEMAS
    return about is not None and about[1] not in claimed


def warned(graph: Graph) -> bool:
    """Whether `onnxpool check` warns about onnxruntime, or says why it cannot tell."""
    release = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    wanted = Filter(values=True, runtimes={ORT: release})
    nodes = [check_site(site, wanted) for site in survey(canonical(graph.model))]
    return any(node.warnings or node.unchecked or node.error for node in nodes)


class Outcome(NamedTuple):
    """The findings for a graph: errors of onnxpool, and the levels at which onnxruntime contradicts itself."""

    problems: list[str]
    kind: str
    inconsistent: list[str]


def check(graph: Graph) -> Outcome:
    """
    Run a graph in every way.

    A session that leaves nodes to onnxruntime must answer like onnxruntime at that level, or as the operators define. A
    session that takes the nodes must answer as the operators define. In three cases onnxruntime's answer is accepted
    too: onnxruntime puts operators of its own between Q and DQ, it computes nodes on constants itself, and it rounds
    float16 at other points of a graph. A graph that onnxruntime finds invalid is refused in all ways.
    """
    half = graph.has("float16")
    expected = truth(graph)
    kind = "refused by onnxpool" if "NodeError" in expected.refusal and not graph.wrong else ""
    # onnxruntime may crash if a kernel does not fit
    plain = {level: Answer(None, "not run") if kind else run(graph, level, None) for level in LEVELS}
    invalid = any(word in plain["none"].refusal for word in INVALID)
    problems = []
    for way, how in WAYS.items():
        if kind and (how["ops"] == "missing" or graph.constant or graph.quantised):  # onnxruntime runs the node
            continue
        for level in LEVELS:
            answer = run(graph, level, how)
            if graph.wrong or invalid:
                right = answer.outputs is None
            elif of_others(answer.refusal, how["ops"]):
                right = plain[level].outputs is None
            else:
                right = agree(answer, expected, half)
                if how["ops"] == "missing" or graph.quantised or graph.constant or half:
                    right |= agree(answer, plain[level], half)
            if not right:
                problems.append(f"{way}, level {level}: {answer}")
    theirs = plain["all"]
    own = not (graph.wrong or invalid or kind or half or of_others(theirs.refusal, list(SCHEMAS)))
    own &= not (graph.quantised and "Conv" in {node.op_type for node in graph.model.graph.node})  # rounded differently
    if own and not agree(theirs, expected, half) and not warned(graph):
        problems.append("onnxpool check does not warn of onnxruntime")
    if problems:
        problems += [f"truth: {expected}", *(f"plain, level {level}: {answer}" for level, answer in plain.items())]
    kind = kind or ("wrong attribute" if graph.wrong else "invalid" if invalid
                    else "refused by onnxruntime" if plain["none"].outputs is None
                    else "the same" if agree(plain["none"], expected, half) else "onnxruntime differs")
    return Outcome(problems, kind, [level for level in LEVELS if not agree(plain[level], plain["none"], half)])


def work(seeds: list[int], answers: Connection) -> None:
    """The outcomes of graphs, computed in a process of their own."""
    for seed in seeds:
        answers.send(check(draw(seed)))


def outcomes(seeds: list[int]) -> Iterator[tuple[int, Outcome]]:
    """The outcomes of graphs. If onnxruntime kills the process, that is the outcome."""
    done = 0
    while done < len(seeds):
        receiver, sender = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(target=work, args=(seeds[done:], sender))
        process.start()
        sender.close()
        try:
            while done < len(seeds):
                yield seeds[done], receiver.recv()
                done += 1
        except EOFError:
            process.join()
            yield seeds[done], Outcome([], f"ended by signal {-(process.exitcode or 0)}", [])
            done += 1
        finally:
            process.terminate()
            process.join()


def main() -> int:
    """Check the graph of a seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    ((_, outcome),) = outcomes([parser.parse_args().seed])
    print(outcome.kind, *outcome.problems, *(f"onnxruntime contradicts itself at level {level}"
                                             for level in outcome.inconsistent), sep="\n  ")
    return len(outcome.problems)


if __name__ == "__main__":
    sys.exit(main())
