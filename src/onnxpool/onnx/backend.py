"""
A backend as defined by ``onnx.backend.base``. onnxpool runs pooling nodes, and onnx's ReferenceEvaluator runs all other
nodes.

By convention, the module itself is a backend too: ``import onnxpool.onnx.backend as backend; backend.prepare(model)``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from onnxpool.schemas import LATEST

from .protos import Input, InputError, ModelError, accept_inputs, canonical, inputs_of
from .reference import Evaluator


class PreparedModel(BackendRep):
    """A model that can be run repeatedly and from any thread. `inputs` describes its inputs."""

    def __init__(self, evaluator: Evaluator, inputs: Sequence[Input]) -> None:
        self._evaluator = evaluator
        self.inputs = inputs
        self._outputs = namedtupledict("Outputs", evaluator.output_names)

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """
        Run the model.

        Parameters
        ----------
        inputs : mapping of str to ndarray, sequence of ndarray, or ndarray
            Inputs. A sequence has one array for each input without a default, in the order of the model.

        Returns
        -------
        tuple
            Outputs, also available by name: ``outputs["y"]``.

        Raises
        ------
        InputError
            If an input is missing or does not fit.
        NodeError
            If a pooling node refuses its inputs.
        """
        if not isinstance(inputs, Mapping):
            names = [value.name for value in self.inputs if not value.optional]
            arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(arrays) != len(names):
                raise InputError(f"{len(arrays)} inputs given, but the model takes {len(names)}: "
                                 f"{', '.join(map(repr, names)) or 'none'}")
            inputs = dict(zip(names, arrays, strict=True))
        values = self._evaluator.run(None, accept_inputs(self.inputs, inputs))
        outputs: tuple[Any, ...] = self._outputs(*values)
        return outputs


class OnnxPoolBackend(Backend):
    """
    Backend of onnxpool for the device "CPU".

    Examples
    --------
    >>> import numpy as np
    >>> from onnx.helper import make_node
    >>> from onnxpool.onnx import backend
    >>> node = make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2], strides=[2])
    >>> outputs = backend.run_node(node, [np.array([[[1, 3, 4, 2]]], np.float32)])
    >>> outputs["y"].tolist(), outputs["i"].tolist()
    ([[[3.0, 4.0]]], [[[1, 2]]])
    """

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is a CPU, such as "CPU" or "CPU:0"."""
        return device.split(":")[0] == "CPU"

    @classmethod
    def _check_device(cls, device: str) -> None:
        if not cls.supports_device(device):
            raise ModelError(f"device={device!r} is not supported, only 'CPU'; pass device='CPU'")

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` accepts the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:  # the exceptions of the onnx package have no common base
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """
        Prepare a model to be run.

        Parameters
        ----------
        model : ModelProto
        device : str
        **kwargs
            Ignored. onnx's test runner passes its own options to every backend.

        Returns
        -------
        PreparedModel

        Raises
        ------
        onnx.checker.ValidationError
            If the model is not valid.
        NodeError
            If the attributes of a pooling node are not allowed.
        ModelError
            If the device is not supported, or `model` is not a ModelProto.
        """
        cls._check_device(device)
        if not isinstance(model, onnx.ModelProto):
            raise ModelError(f"model is a {type(model).__name__}; pass a ModelProto, such as onnx.load(path)")
        model = canonical(model)
        evaluator = Evaluator(model)
        super().prepare(model, device, **kwargs)
        return PreparedModel(evaluator, inputs_of(model.graph))

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """
        Run one node.

        Parameters
        ----------
        node : NodeProto
        inputs : mapping of str to ndarray, sequence of ndarray, or ndarray
            Inputs. A sequence has one array for each input that the node names, in order.
        device : str
        outputs_info : sequence, optional
            Ignored.
        **kwargs
            ``opset_version`` is the opset of the default domain. Default is the newest one that is known.

        Returns
        -------
        tuple
            Outputs, also available by name: ``outputs["y"]``.

        Raises
        ------
        onnx.checker.ValidationError
            If the node is not valid.
        NodeError
            If the node is a pooling node and is refused.
        ModelError
            If an input is missing or the device is not supported.
        """
        cls._check_device(device)
        node = canonical(node)
        opset = kwargs.setdefault("opset_version", min(onnx.defs.onnx_opset_version(), LATEST[""]))
        names = list(dict.fromkeys(filter(None, node.input)))
        graph = helper.make_graph([node], "node", [onnx.ValueInfoProto(name=name) for name in names],
                                  [onnx.ValueInfoProto(name=name) for name in node.output if name])
        evaluator = Evaluator(graph, opsets={**LATEST, "": opset})
        if not node.domain:  # the checker accepts other domains only in models
            super().run_node(node, inputs, device, outputs_info, **kwargs)
        return PreparedModel(evaluator, inputs_of(graph)).run(inputs)


is_compatible = OnnxPoolBackend.is_compatible
prepare = OnnxPoolBackend.prepare
run_model = OnnxPoolBackend.run_model
run_node = OnnxPoolBackend.run_node
supports_device = OnnxPoolBackend.supports_device
