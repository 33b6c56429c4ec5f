"""Models for Triton's Python backend: the counterpart of the example server, and that of docs/howto/serving.md."""

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import peaks
import pytest
import triton_stand_in
from model_files import typed

import onnxpool

SERVER = Path(__file__).parents[2] / "examples/server"
SERVING = Path(__file__).parents[2] / "examples/serving"


def loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a Triton model."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", triton_stand_in)
    spec = importlib.util.spec_from_file_location("triton_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the model of the example server."""
    return loaded(SERVER / "triton/peaks/1/model.py", monkeypatch)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The model of the page, whose module changes settings of the process."""
    threads = onnxpool.get_num_threads()
    yield loaded(SERVING / "triton/pool/1/model.py", monkeypatch).TritonPythonModel()
    onnxpool.set_limits()
    onnxpool.set_num_threads(threads)


Made = Callable[[onnx.ModelProto, list[str]], Any]


@pytest.fixture
def made(triton: ModuleType, tmp_path: Path) -> Made:
    """Make a Triton model of an ONNX model."""
    def make(proto: onnx.ModelProto, inputs: list[str]) -> Any:
        (tmp_path / "1").mkdir()
        onnx.save(proto, tmp_path / "1/model.onnx")
        model = triton.TritonPythonModel()
        config = {"input": [{"name": name} for name in inputs], "parameters": {"threads": {"string_value": "2"}}}
        model.initialize({"model_config": json.dumps(config), "model_repository": str(tmp_path), "model_version": "1"})
        assert model.threads == 2
        return model
    return make


def test_triton_answers_each_request(made: Made) -> None:
    """A batch of requests, one of which is refused: the others have the same bits as direct calls."""
    model = made(peaks.model(), ["heat"])
    heats = [np.random.default_rng(3).standard_normal((2, 3, size, 7), np.float32) for size in (9, 2, 5)]
    asked = ["energy", "peaks", "thumbnail"]
    responses = model.execute([triton_stand_in.InferenceRequest([triton_stand_in.Tensor("heat", heat)], asked)
                               for heat in heats])

    error = responses[1].error
    assert error.code == triton_stand_in.TritonError.INVALID_ARG
    assert error.text.startswith("node 'thumbnail': AveragePool-22: kernel_shape[0]=3")
    for heat, response in zip(heats[::2], responses[::2], strict=True):
        assert response.error is None
        assert list(response.outputs) == asked
        for name, array in peaks.direct(heat).items():
            assert response.outputs[name].as_numpy().tobytes() == array.tobytes()


def test_triton_carries_bfloat16(made: Made) -> None:
    """bfloat16 enters and leaves through DLPack, because NumPy cannot represent it."""
    import onnxruntime

    model = made(typed("bfloat16"), ["x", "keep"])
    x = np.random.default_rng(4).standard_normal((1, 2, 9)).astype(ml_dtypes.bfloat16)
    value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(np.uint16), onnx.TensorProto.BFLOAT16)
    inputs = [triton_stand_in.Tensor.from_dlpack("x", value), triton_stand_in.Tensor("keep", np.array([True]))]
    response, = model.execute([triton_stand_in.InferenceRequest(inputs, ["y", "i"])])
    y, i = onnxpool.max_pool(x, 3, strides=2, return_indices=True, opset=22)

    assert response.error is None
    assert onnxpool.from_dlpack(response.outputs["y"]).tobytes() == y.tobytes()
    assert response.outputs["i"].as_numpy().tolist() == i.tolist()


def test_triton_fails_one_request_alone(made: Made) -> None:
    """A missing input fails its request but not the batch."""
    model = made(peaks.model(), ["heat"])
    heat = triton_stand_in.Tensor("heat", np.ones((1, 1, 3, 3), np.float32))
    first, second = model.execute([triton_stand_in.InferenceRequest([], ["energy"]),
                                   triton_stand_in.InferenceRequest([heat], ["energy"])])
    assert first.error.code == triton_stand_in.TritonError.INTERNAL
    assert second.outputs["energy"].as_numpy().item() == 3.0


def test_triton_configuration_is_that_of_the_model() -> None:
    """config.pbtxt names the inputs and outputs of the model."""
    text = (SERVER / "triton/peaks/config.pbtxt").read_text()
    graph = peaks.model().graph
    found = re.findall(r'name: "(\w+)" data_type: TYPE_(\w+) dims: \[ ([-\d, ]+) \]', text)
    shapes = [(info.name, info.type.tensor_type.shape.dim) for info in [*graph.input, *graph.output]]
    assert found == [(name, "FP32", ", ".join(str(size.dim_value or -1) for size in sizes)) for name, sizes in shapes]


def test_the_model_of_the_page_answers_each_request(pool: Any) -> None:
    """A batch of requests, of which two are refused, one for its size; the others have the bits of direct calls."""
    assert onnxpool.get_num_threads() == 1
    shapes = [(2, 3, 16, 17), (1, 1, 2, 9), (1, 4, 1003, 1003), (0, 1, 5, 5), (1, 2, 3, 3)]
    images = [np.random.default_rng(5).standard_normal(shape, np.float32) for shape in shapes]
    responses = pool.execute([triton_stand_in.InferenceRequest([triton_stand_in.Tensor("x", x)], ["y"])
                              for x in images])

    small, large = responses[1].error, responses[2].error
    assert small.code == large.code == triton_stand_in.TritonError.INVALID_ARG
    assert small.text.startswith("AveragePool-22: kernel_shape[0]=3")
    assert "more than max_work=10000000" in large.text
    for i in (0, 3, 4):
        y, direct = onnxpool.from_dlpack(responses[i].outputs["y"]), onnxpool.average_pool(images[i], 3, strides=2)
        assert (y.shape, y.tobytes()) == (direct.shape, direct.tobytes())
