"""Whole ONNX models: every pooling node runs on onnxpool, every other node on onnx's ReferenceEvaluator."""

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import onnxpool

Array = NDArray[Any]
Progress = Callable[[int, int, str], None]  # nodes done, nodes in all, the node that starts now

RTOL, ATOL = 1e-3, 1e-7  # what the onnx package allows its ResNet-50
LONGEST_REASON = 300  # characters of somebody else's error message


class ModelError(ValueError):
    """A model, file or input that cannot be run; its text is one line."""


@dataclass
class NodeRun:
    """
    What one pooling node did in a run, for one input shape and dtype.

    Attributes
    ----------
    name : str
        The node's name, or that of its first output if it has none.
    operator, version : str, int
        The ONNX operator and its version, such as AveragePool and 19.
    attributes : dict
        Those that the node gives.
    input_shape, output_shape : tuple of int
    dtype : str
    calls : int
        More than 1 in the body of a loop or of a function.
    seconds : float
        Of all calls.
    difference : float, optional
        The largest difference to onnxruntime, if that was asked for and onnxruntime can run the node.
    remark : str
        Why there is no difference, or what it does not say.
    """

    name: str
    operator: str
    version: int
    attributes: dict[str, Any]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: str
    calls: int = 0
    seconds: float = 0.0
    difference: float | None = None
    remark: str = ""


class Run(NamedTuple):
    """The result of `Model.run`; `idle` names the pooling nodes that were not reached, as in a branch not taken."""

    outputs: dict[str, Any]
    nodes: list[NodeRun]
    idle: list[str]
    seconds: float


class Input(NamedTuple):
    """An input of a model: `dtype` is None if it is no tensor, a size that the model leaves open is a name or "?"."""

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int | str, ...] | None
    optional: bool

    def __str__(self) -> str:
        kind = "(no tensor)" if self.dtype is None else "string" if self.dtype == object else self.dtype.name
        return f"{kind} of any shape" if self.shape is None else f"{kind} {shape_text(self.shape)}"

    def accept(self, array: Array) -> Array:
        """The array as the model takes it, or an error."""
        if self.dtype is not None and array.dtype.kind == "V" and array.dtype.itemsize == self.dtype.itemsize:
            array = array.view(self.dtype)  # a .npy file keeps only the size of an ml_dtypes dtype
        elif self.dtype == object and array.dtype.kind == "U":
            array = array.astype(object)
        elif not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        fits = self.shape is None or (len(self.shape) == array.ndim and all(
            want == size for want, size in zip(self.shape, array.shape, strict=True) if isinstance(want, int)))
        if array.dtype != self.dtype or not fits:
            raise ModelError(f"input {self.name!r} is {array.dtype.name} {shape_text(array.shape)}, "
                             f"the model takes {self}: give --input {self.name}=FILE.npy like that")
        return array


class Journal:
    """What the pooling nodes of one model did in its latest run; `aside` is time that does not belong to the model."""

    def __init__(self) -> None:
        self.nodes: list[PoolingNode] = []
        self.begin(check=False)

    def begin(self, *, check: bool) -> None:
        """Forgets the previous run."""
        self.check, self.aside = check, 0.0
        self.runs: dict[Any, NodeRun] = {}

    def run(self, node: "PoolingNode", operator: Any, inputs: Sequence[Array], outputs: Sequence[Array]) -> NodeRun:
        """The entry of a node for the shape and dtype of its input."""
        x, y = np.asarray(inputs[0]), outputs[0]
        made = NodeRun(node.title, type(operator).__name__, operator.version, operator.attributes, x.shape, y.shape,
                       x.dtype.name)
        return self.runs.setdefault((node, x.shape, x.dtype), made)


class PoolingNode(OpRun):
    """A pooling node within a ReferenceEvaluator: subclasses say which operator, and the journal it reports to."""

    op_schema = None  # else onnx adds the defaults of the newest version to the node's own attributes
    journal: ClassVar[Journal]

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None) -> None:
        super().__init__(onnx_node, run_params, schema)
        self.title = title(onnx_node)
        if not self.has_linked_attribute:
            self._operator = self._made(onnx_node)  # wrong attributes are refused before anything runs
        self.journal.nodes.append(self)

    def _made(self, node: onnx.NodeProto) -> Any:
        try:
            return onnxpool.from_node(node, self.run_params["opsets"])
        except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
            raise ModelError(f"node {self.title!r}: {error}") from error

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Array, ...]:
        node, operator = self.onnx_node, None if self.has_linked_attribute else self._operator
        if operator is None:
            node = unlinked(node, attributes)
            operator = self._made(node)
        start = perf_counter()
        try:
            result = operator(*inputs)
        except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
            # Not the error itself: OpRun takes a TypeError for its own and hides the text.
            raise ModelError(f"node {self.title!r}: {error}") from error
        stop = perf_counter()
        outputs: tuple[Array, ...] = result if isinstance(result, tuple) else (result,)
        entry = self.journal.run(self, operator, inputs, outputs)
        entry.calls += 1
        entry.seconds += stop - start
        if self.journal.check:
            compare(entry, node, self.run_params["opsets"], inputs, outputs)
        self.journal.aside += perf_counter() - stop
        return outputs


def pooling_nodes(journal: Journal) -> list[type[OpRun]]:
    """A class for each pooling operator of the library, as ReferenceEvaluator takes them in `new_ops`."""
    operators = sorted({(row["operator"], row["domain"]) for row in onnxpool.supported()})
    return [type(name, (PoolingNode,), {"op_domain": domain, "journal": journal}) for name, domain in operators]


def evaluator_class(journal: Journal) -> type[ReferenceEvaluator]:
    """A ReferenceEvaluator whose pooling nodes are onnxpool's, those in functions and in bodies of nodes too."""
    own = pooling_nodes(journal)

    class Evaluator(ReferenceEvaluator):
        def __init__(self, proto: Any, **options: Any) -> None:
            super().__init__(proto, **{**options, "new_ops": own})

    return Evaluator


def title(node: onnx.NodeProto) -> str:
    """How to name a node to a reader: it need not have a name, but has an output."""
    return node.name or next(filter(None, node.output), node.op_type)


def shape_text(shape: Sequence[int | str]) -> str:
    """A shape as (1,3,224,224)."""
    return f"({','.join(map(str, shape))})"


def one_line(error: BaseException) -> str:
    """What an error of another package says, on one line that is not too long."""
    if type(error) is TypeError and error.__cause__ is not None:
        error = error.__cause__  # OpRun and ReferenceEvaluator hide the reason there
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : ", "", " ".join(str(error).split()))
    text = text or type(error).__name__
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "..."


def unlinked(node: onnx.NodeProto, values: Mapping[str, Any]) -> onnx.NodeProto:
    """A node of a function with the attributes that refer to the function's replaced by their values."""
    result = onnx.NodeProto()
    result.CopyFrom(node)
    for attribute in result.attribute:
        if attribute.ref_attr_name:
            value = values[attribute.name]
            attribute.CopyFrom(helper.make_attribute(attribute.name, value, attr_type=attribute.type))
    return result


def distance(actual: Array, expected: Array) -> Array:
    """The absolute differences of two arrays of one shape: NaN agrees with NaN, and nothing else is near it."""
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(apart), np.inf, apart)


def largest_difference(actual: Array, expected: Array) -> float:
    """The largest of the differences; infinity for arrays of different shapes."""
    return float(distance(actual, expected).max(initial=0.0)) if actual.shape == expected.shape else float("inf")


def agrees(actual: Array, expected: Array) -> bool:
    """Whether an output is as near to the expected one as the onnx package asks of its models."""
    if actual.shape != expected.shape:
        return False
    size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    return bool(np.all(distance(actual, expected) <= ATOL + RTOL * size))


def compare(entry: NodeRun, node: onnx.NodeProto, opsets: Mapping[str, int], inputs: Sequence[Any],
            outputs: Sequence[Array]) -> None:
    """Enters how far onnxruntime is from a node's outputs, or why it cannot say."""
    try:
        try:
            theirs = by_onnxruntime(node, opsets[node.domain], inputs, outputs)
        except Exception:  # an opset newer than onnxruntime, say: the operator may be older
            theirs = by_onnxruntime(node, entry.version, inputs, outputs)
    except Exception as error:  # whatever onnxruntime has against the node is the answer
        entry.remark = f"onnxruntime cannot run it: {one_line(error)}"
        return
    differences = [largest_difference(y, t) for y, t in zip(outputs, theirs, strict=False)]
    if theirs[0].shape != outputs[0].shape:
        entry.remark = f"onnxruntime returns shape {shape_text(theirs[0].shape)}"
    entry.difference = max(differences if entry.difference is None else [entry.difference, *differences])


def by_onnxruntime(node: onnx.NodeProto, opset: int, inputs: Sequence[Any], outputs: Sequence[Array]) -> list[Array]:
    """The outputs of one node as onnxruntime computes them."""
    import onnxruntime  # type: ignore[import-untyped]
    feeds = {name: np.asarray(value) for name, value in zip(node.input, inputs, strict=False) if name}
    results = {name: value for name, value in zip(node.output, outputs, strict=False) if name}

    def described(name: str, value: Array, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    graph = helper.make_graph([node], "node", [described(name, value, value.shape) for name, value in feeds.items()],
                              [described(name, value, None) for name, value in results.items()])
    imports = [helper.make_opsetid(node.domain, opset)]
    if node.domain:
        imports.append(helper.make_opsetid("", 1))
    version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(list(results), feeds)]


def merge_domain_names(nodes: Sequence[onnx.NodeProto]) -> None:
    """Writes the domain "ai.onnx" as "", its other name: ReferenceEvaluator knows only that one."""
    for node in nodes:
        if node.domain == "ai.onnx":
            node.domain = ""
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                merge_domain_names(graph.node)


def load(path: str | Path) -> onnx.ModelProto:
    """The model in a file, with its weights."""
    try:
        model = onnx.load(str(path))
    except OSError as error:
        raise ModelError(f"cannot read the model {path}: {error.strerror or one_line(error)}") from error
    except Exception as error:  # what a parser raises depends on the file format and the protobuf version
        raise ModelError(f"{path} is not an ONNX model: {one_line(error)}") from error
    if not model.HasField("graph") or not model.opset_import:
        raise ModelError(f"{path} is not an ONNX model: it has no graph or no opset")
    for part in (model.graph, *model.functions):
        merge_domain_names(part.node)
    for holder in (model, *model.functions):
        for opset in holder.opset_import:
            opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
    return model


def constants_of(graph: onnx.GraphProto) -> set[str]:
    """The names of a graph's initializers."""
    return {tensor.name for tensor in graph.initializer} | {tensor.values.name for tensor in graph.sparse_initializer}


def check_wiring(graph: onnx.GraphProto) -> None:
    """Refuses a graph that reads what nothing writes: better before a long run than at its end."""
    known = constants_of(graph) | {value.name for value in graph.input}
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                raise ModelError(f"node {title(node)!r} ({node.op_type}) reads {name!r}, but nothing before writes it")
        known.update(node.output)
    for value in graph.output:
        if value.name not in known:
            raise ModelError(f"output {value.name!r} is written by no node")


def inputs_of(graph: onnx.GraphProto) -> list[Input]:
    """The inputs that a graph declares."""
    given = constants_of(graph)
    found = []
    for value in graph.input:
        tensor = value.type.tensor_type
        sizes = None
        if tensor.HasField("shape"):
            # Some exporters write an open size as -1.
            sizes = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or "?"
                          for d in tensor.shape.dim)
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)) if tensor.elem_type else None
        found.append(Input(value.name, dtype, sizes, value.name in given))
    return found


class Model:
    """
    An ONNX model with its pooling nodes on onnxpool and its other nodes on onnx's ReferenceEvaluator.

    Parameters
    ----------
    path : path_like
        The model file; weights in external files are read too.

    Attributes
    ----------
    inputs : list of Input

    Raises
    ------
    ModelError
        If the file cannot be read, or is no valid model.
    """

    def __init__(self, path: str | Path) -> None:
        proto = load(path)
        self._journal = Journal()
        self._progress: Progress | None = None
        try:
            check_wiring(proto.graph)
            self.inputs = inputs_of(proto.graph)
            self._evaluator = evaluator_class(self._journal)(proto)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from error
        except Exception as error:  # the onnx package has no common base of what it raises
            raise ModelError(f"{path}: {one_line(error)}") from error
        for done, node in enumerate(self._evaluator.rt_nodes_):
            setattr(node, "run", self._watched(node, done, len(self._evaluator.rt_nodes_)))  # noqa: B010

    def _watched(self, node: OpRun, done: int, count: int) -> Callable[..., Any]:
        """The run method of a node, telling the progress and naming the node in errors."""
        run: Callable[..., Any] = node.run

        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._progress is not None:
                self._progress(done, count, f"{title(node.onnx_node)} ({node.op_type})")
            try:
                return run(*args, **kwargs)
            except ModelError:
                raise
            except Exception as error:  # an operator of the ReferenceEvaluator raises anything
                raise ModelError(f"node {title(node.onnx_node)!r} ({node.op_type}): {one_line(error)}") from error

        return watched

    def _feeds(self, given: Mapping[str, Array]) -> dict[str, Array]:
        known = {value.name: value for value in self.inputs}
        for name in given:
            if name not in known:
                raise ModelError(f"the model has no input {name!r}; it has {', '.join(map(repr, known)) or 'none'}")
        missing = [value for value in self.inputs if value.name not in given and not value.optional]
        if missing:
            lines = [f"missing input {value.name!r} {value}: give --input {value.name}=FILE.npy" for value in missing]
            raise ModelError("; ".join(lines))
        return {name: known[name].accept(array) for name, array in given.items()}

    def run(self, inputs: Mapping[str, Array], *, check: bool = False, progress: Progress | None = None) -> Run:
        """
        Run the model.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            An array for every input that has no default.
        check : bool
            Whether onnxruntime runs every pooling node too, for comparison.
        progress : callable, optional
            Called before each node with the nodes done, the nodes in all, and what the node is.

        Returns
        -------
        Run

        Raises
        ------
        ModelError
            If an input is missing or does not fit, or a node cannot be run.
        """
        if check:
            try:
                import onnxruntime  # noqa: F401  # before the work, not after it
            except ImportError as error:
                raise ModelError(f"--check needs the onnxruntime package ({error}): pip install onnxruntime") from error
        feeds = self._feeds(inputs)
        self._journal.begin(check=check)
        self._progress = progress
        start = perf_counter()
        try:
            with np.errstate(all="ignore"):  # a model may divide by zero; numpy would warn of it on stderr
                values = self._evaluator.run(None, feeds)
        except ModelError:
            raise
        except Exception as error:  # as above
            raise ModelError(one_line(error)) from error
        seconds = perf_counter() - start - self._journal.aside
        reached = {node for node, _, _ in self._journal.runs}
        idle = [node.title for node in self._journal.nodes if node not in reached]
        outputs = dict(zip(self._evaluator.output_names, values, strict=True))
        return Run(outputs, list(self._journal.runs.values()), idle, seconds)


def read_array(path: str | Path) -> Array:
    """The array in a .npy file."""
    try:
        with open(path, "rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or one_line(error)}") from error
    except Exception as error:  # numpy parses the header with Python's own parser, which raises many things
        raise ModelError(f"{path} is not a .npy file: {one_line(error)}") from error


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Stores arrays in a .npz file under any names: numpy.savez has names of its own, such as "file"."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise ModelError(f"cannot write output {name!r} to {path}: it is no array of numbers")
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror or one_line(error)}") from error


def example() -> tuple[Path, dict[str, Array], dict[str, Array]]:
    """The ResNet-50 that the onnx package ships: the model file, its inputs and the outputs expected of it."""
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    graph = load(path).graph
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.with_name("light_resnet50_output_0.pb").read_bytes())
    except OSError as error:
        raise ModelError(f"the onnx package came without the outputs of {path}: {error.strerror}") from error
    image = next(value for value in inputs_of(graph) if not value.optional)
    shape = [size for size in image.shape or () if isinstance(size, int)]
    ramp = np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)  # the input that the onnx package uses
    return path, {image.name: ramp.astype(np.float32)}, {graph.output[0].name: numpy_helper.to_array(tensor)}
