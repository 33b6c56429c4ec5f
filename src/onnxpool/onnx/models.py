"""Whole ONNX models: every pooling node runs on onnxpool, every other node on onnx's ReferenceEvaluator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference.op_run import OpRun

from .comparison import (
    Rival,
    Tolerance,
    Whole,
    by_onnxruntime,
    compare_whole,
    largest_difference,
    node_agrees,
)
from .protos import (
    Array,
    ModelError,
    accept_inputs,
    check_wiring,
    inputs_of,
    load,
    one_line,
    shape_text,
    title,
)
from .reference import Evaluator, PoolingNode, subclasses

Progress = Callable[[int, int, str], None]  # finished nodes, all nodes, the node that starts now

MOST_REPEATS, MOST_SECONDS = 25, 0.2  # limits on the timed calls of a node


@dataclass
class NodeRun:
    """
    Calls of one pooling node in a run, for one input shape and dtype.

    Attributes
    ----------
    name : str
        Name of the node, or of its first output if it has none.
    operator, version : str, int
        ONNX operator and its version, such as AveragePool and 19.
    attributes : dict
        Attributes given in the node.
    input_shape, output_shape : tuple of int
        Shapes of X and of the result.
    dtype : str
        Dtype of X.
    calls : int
        Number of calls, which can exceed 1 in the body of a loop or of a function.
    first_seconds : float
        Time of the first call, which resolves windows, makes a plan and starts threads.
    warm_seconds : float
        Time of a warm call: the median of up to 25 repetitions made only for this purpose.
    difference : float, optional
        Largest difference from onnxruntime, if requested and if onnxruntime can run the node.
    agrees : bool, optional
        Whether onnxruntime runs the node and all results are within the tolerances, if requested.
    remark : str
        Reason why there is no difference or time of onnxruntime, or a note about the difference.
    onnxruntime_seconds : float, optional
        Time of a warm call on onnxruntime, if requested and if onnxruntime can run the node.
    tuned_seconds : float, optional
        Time of a warm call after tuning, if requested.
    """

    name: str
    operator: str
    version: int
    attributes: dict[str, Any]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: str
    calls: int = 0
    first_seconds: float = 0.0
    warm_seconds: float = 0.0
    difference: float | None = None
    agrees: bool | None = None
    remark: str = ""
    onnxruntime_seconds: float | None = None
    tuned_seconds: float | None = None


class Run(NamedTuple):
    """
    Result of `Model.run`.

    Attributes
    ----------
    outputs : dict of str to ndarray, or to whatever the model returns
        Outputs by name.
    nodes : list of NodeRun
        Pooling nodes that ran.
    idle : list of str
        Pooling nodes that did not run, for example in a branch not taken.
    seconds : float
        Time of the run.
    whole : Whole, optional
        Comparison of the whole model with onnxruntime, if requested.
    """

    outputs: dict[str, Any]
    nodes: list[NodeRun]
    idle: list[str]
    seconds: float
    whole: Whole | None


class Journal:
    """The record of a model's latest run. `aside` is time spent on measurements and comparisons."""

    def __init__(self) -> None:
        self.nodes: list[JournalledNode] = []
        self.begin(None, beside=False, tune=False)

    def begin(self, tolerance: Tolerance | None, *, beside: bool, tune: bool) -> None:
        """Start a new run. With a tolerance, nodes are compared with onnxruntime. If `beside`, it is timed too."""
        self.tolerance, self.beside, self.tune, self.aside = tolerance, beside, tune, 0.0
        self.runs: dict[Any, NodeRun] = {}

    def run(self, node: "JournalledNode", operator: Any, inputs: Sequence[Array], outputs: Sequence[Array]) -> NodeRun:
        """The entry of a node for the shape and dtype of its input."""
        x, y = np.asarray(inputs[0]), outputs[0]
        made = NodeRun(title(node.onnx_node), type(operator).__name__, operator.version, operator.attributes, x.shape,
                       y.shape, x.dtype.name)
        return self.runs.setdefault((node, x.shape, x.dtype), made)


class JournalledNode(PoolingNode):
    """A pooling node that reports to a journal. Subclasses set the operator and the journal."""

    journal: ClassVar[Journal]

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None) -> None:
        super().__init__(onnx_node, run_params, schema)
        self.journal.nodes.append(self)

    def _pooled(self, node: onnx.NodeProto, operator: Any, inputs: Sequence[Any]) -> tuple[Array, ...]:
        start = perf_counter()
        outputs = super()._pooled(node, operator, inputs)
        stop = perf_counter()
        entry = self.journal.run(self, operator, inputs, outputs)
        new = not entry.calls
        if new:
            entry.first_seconds = stop - start
            entry.warm_seconds = warm_seconds(lambda: operator(*inputs))
        entry.calls += 1
        journal = self.journal
        if journal.tune and new:
            x = np.asarray(inputs[0])
            operator.plan(x.shape, x.dtype).tuned(x)
            entry.tuned_seconds = warm_seconds(lambda: operator(*inputs))
        if journal.tolerance is not None or (journal.beside and new):
            rival = rival_of(entry, node, self.run_params["opsets"], inputs, outputs)
            if rival is not None and journal.tolerance is not None:
                compare(entry, rival.outputs, journal.tolerance, inputs, outputs)
            if rival is not None and journal.beside and new:
                entry.onnxruntime_seconds = warm_seconds(rival.again)
        self.journal.aside += perf_counter() - stop
        return outputs


def evaluator_class(journal: Journal) -> type[Evaluator]:
    """An Evaluator whose pooling nodes report to a journal."""
    kept = type("KeptNode", (JournalledNode,), {"journal": journal, "__module__": __name__})
    return type("KeptEvaluator", (Evaluator,), {"pooling": subclasses(kept)})


def warm_seconds(call: Callable[[], Any]) -> float:
    """The median time of a call that is made repeatedly."""
    times: list[float] = []
    begin = perf_counter()
    while not times or (len(times) < MOST_REPEATS and perf_counter() - begin < MOST_SECONDS):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times)


def rival_of(entry: NodeRun, node: onnx.NodeProto, opsets: Mapping[str, int], inputs: Sequence[Any],
             outputs: Sequence[Array]) -> Rival | None:
    """The node on onnxruntime. If it cannot run there, the result is None, and the entry has a remark."""
    try:
        return by_onnxruntime(node, opsets, entry.version, inputs, outputs)
    except Exception as error:  # any error of onnxruntime becomes the remark
        entry.agrees = False
        entry.remark = f"onnxruntime cannot run it: {one_line(error)}"
        return None


def compare(entry: NodeRun, theirs: Sequence[Array], tolerance: Tolerance, inputs: Sequence[Any],
            outputs: Sequence[Array]) -> None:
    """Record how onnxruntime's outputs differ from a node's."""
    differences = [largest_difference(y, t) for y, t in zip(outputs, theirs, strict=False)]
    agree = node_agrees(np.asarray(inputs[0]), outputs, theirs, tolerance)
    if theirs[0].shape != outputs[0].shape:
        entry.remark = f"onnxruntime returns shape {shape_text(theirs[0].shape)}"
    elif not agree:
        entry.remark = "more than the tolerances allow"
    entry.agrees = agree and entry.agrees is not False
    entry.difference = max(differences if entry.difference is None else [entry.difference, *differences])


class Model:
    """
    ONNX model whose pooling nodes run on onnxpool, and whose other nodes run on onnx's ReferenceEvaluator.

    Parameters
    ----------
    path : path_like
        Model file. External files with weights are read too.

    Attributes
    ----------
    inputs : list of Input
        Inputs of the model.

    Raises
    ------
    ModelError
        If the file cannot be read or is not a valid model.
    """

    def __init__(self, path: str | Path) -> None:
        proto = load(path)
        self._path = str(path)
        self._journal = Journal()
        self._progress: Progress | None = None
        try:
            check_wiring(proto.graph)
            self.inputs = inputs_of(proto.graph)
            self._evaluator = evaluator_class(self._journal)(proto)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from error
        except Exception as error:  # the exceptions of the onnx package have no common base
            raise ModelError(f"{path}: {one_line(error)}") from error
        for done, node in enumerate(self._evaluator.rt_nodes_):
            setattr(node, "run", self._watched(node, done, len(self._evaluator.rt_nodes_)))  # noqa: B010

    def _watched(self, node: OpRun, done: int, count: int) -> Callable[..., Any]:
        """The run method of a node, extended to report progress and to name the node in errors."""
        run: Callable[..., Any] = node.run

        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._progress is not None:
                self._progress(done, count, f"{title(node.onnx_node)} ({node.op_type})")
            try:
                return run(*args, **kwargs)
            except ModelError:
                raise
            except Exception as error:  # operators of the ReferenceEvaluator may raise anything
                raise ModelError(f"node {title(node.onnx_node)!r} ({node.op_type}): {one_line(error)}") from error

        return watched

    def run(self, inputs: Mapping[str, Array], *, check: Tolerance | None = None, beside: bool = False,
            tune: bool = False, progress: Progress | None = None) -> Run:
        """
        Run the model.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            Arrays for all inputs that have no default.
        check : Tolerance, optional
            If given, every pooling node and the whole model are compared with onnxruntime.
        beside : bool
            Whether to time every pooling node on onnxruntime too.
        tune : bool
            Whether to tune the plan of every pooling node, and to time it again.
        progress : callable, optional
            Called before each node with the number of finished nodes, the total number, and a description.

        Returns
        -------
        Run

        Raises
        ------
        ModelError
            If a node cannot be run. `InputError` if an input is missing or does not fit.
        """
        if check is not None:
            try:
                import onnxruntime  # noqa: F401  # fail before the work, not after it
            except ImportError as error:
                raise ModelError(f"--check needs the onnxruntime package ({error}): pip install onnxruntime") from error
        feeds = accept_inputs(self.inputs, inputs)
        self._journal.begin(check, beside=beside, tune=tune)
        self._progress = progress
        start = perf_counter()
        try:
            with np.errstate(all="ignore"):  # models may divide by zero, about which NumPy would warn
                values = self._evaluator.run(None, feeds)
        except ModelError:
            raise
        except Exception as error:  # as above
            raise ModelError(one_line(error)) from error
        seconds = perf_counter() - start - self._journal.aside
        reached = {node for node, _, _ in self._journal.runs}
        idle = [title(node.onnx_node) for node in self._journal.nodes if node not in reached]
        outputs = dict(zip(self._evaluator.output_names, values, strict=True))
        whole = None if check is None else compare_whole(self._path, feeds, outputs, check)
        return Run(outputs, list(self._journal.runs.values()), idle, seconds, whole)


def read_array(path: str | Path) -> Array:
    """The array in a .npy file."""
    try:
        with open(path, "rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or one_line(error)}") from error
    except Exception as error:  # NumPy parses the header with Python's parser, which raises many kinds of errors
        raise ModelError(f"{path} is not a .npy file: {one_line(error)}") from error


def example() -> tuple[Path, dict[str, Array], dict[str, Array]]:
    """The ResNet-50 that the onnx package ships: the model file, its inputs and its expected outputs."""
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    graph = load(path).graph
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.with_name("light_resnet50_output_0.pb").read_bytes())
    except OSError as error:
        raise ModelError(f"the onnx package lacks the expected outputs of {path}: {error.strerror}") from error
    image = next(value for value in inputs_of(graph) if not value.optional)
    shape = [size for size in image.shape or () if isinstance(size, int)]
    ramp = np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)  # the input for which the outputs were computed
    return path, {image.name: ramp.astype(np.float32)}, {graph.output[0].name: numpy_helper.to_array(tensor)}
