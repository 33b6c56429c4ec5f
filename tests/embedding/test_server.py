"""The example server: a real client, malformed requests, load, and its counterparts for Triton and onnxruntime."""

import http.client
import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("tritonclient.http", reason="needs tritonclient[http]")

import load
import malformed
import models
import numpy as np
import onnx
import onnx.parser
import peaks
import server
from model_files import typed
from numpy.typing import NDArray
from protocol import DTYPES, Limits, RequestError, Signature, decode, shown
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

import onnxpool

SERVER = Path(__file__).parents[2] / "examples/server"
ELEMENTS = {"float16": "FP16", "float": "FP32", "double": "FP64", "bfloat16": "BF16", "int8": "INT8", "uint8": "UINT8"}
QUANTISED = """
    <ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
    quantised (uint8[N, C, H, W] x) => (uint8[N, C, 1, 1] y) {
        scale = Constant <value_float = 0.5> ()
        zero = Constant <value = uint8 {3}> ()
        y = com.microsoft.QLinearGlobalAveragePool (x, scale, zero, scale, zero)
    }
"""


@pytest.fixture(scope="module", params=models.RUNTIMES)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of models, on each runtime."""
    folder = tmp_path_factory.mktemp("models")
    protos = {"peaks": peaks.model(), "quantised": onnx.parser.parse_model(QUANTISED),
              **{f"typed_{element}": typed(element) for element in ELEMENTS}}
    for name, proto in protos.items():
        onnx.save(proto, folder / f"{name}.onnx")
    paths = [str(folder / f"{name}.onnx") for name in protos]
    with load.server(*paths, "--runtime", request.param, "--workers", "2") as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[InferenceServerClient]:
    """A client from the package tritonclient."""
    client = InferenceServerClient(urlsplit(url).netloc)
    yield client
    client.close()


def tensor(name: str, array: NDArray[Any], datatype: str, binary: bool = True) -> InferInput:
    """An input of a request."""
    made = InferInput(name, array.shape, datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


# The protocol


def test_health_and_metadata(client: InferenceServerClient) -> None:
    """The client finds that the server is live and ready, and gets the right metadata of the model."""
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("peaks")
    assert client.is_model_ready("peaks", "1")
    assert not client.is_model_ready("nothing")
    assert client.get_server_metadata()["version"] == onnxpool.__version__
    metadata = client.get_model_metadata("typed_bfloat16", "1")
    assert metadata["inputs"] == [{"name": "x", "datatype": "BF16", "shape": [-1, 2, -1]},
                                  {"name": "keep", "datatype": "BOOL", "shape": [-1]}]
    assert [output["datatype"] for output in metadata["outputs"]] == ["BF16", "INT64", "BOOL"]


def test_configuration_and_statistics(client: InferenceServerClient) -> None:
    """Clients of Triton, such as perf_analyzer, get the data about a model that they request."""
    config = client.get_model_config("typed_bfloat16", "1")
    assert config["max_batch_size"] == 0
    assert config["input"][0] == {"name": "x", "data_type": "TYPE_BF16", "dims": [-1, 2, -1]}
    assert [output["name"] for output in config["output"]] == ["y", "i", "kept"]

    def counts() -> tuple[int, int, int]:
        (stats,) = client.get_inference_statistics("quantised")["model_stats"]
        assert (stats["name"], stats["version"]) == ("quantised", "1")
        kinds = stats["inference_stats"]
        assert stats["inference_count"] == kinds["success"]["count"]
        return kinds["success"]["count"], kinds["success"]["ns"], kinds["fail"]["count"]

    before = counts()
    client.infer("quantised", [tensor("x", np.zeros((1, 1, 2, 2), np.uint8), "UINT8")])
    with pytest.raises(InferenceServerException):
        client.infer("quantised", [tensor("x", np.zeros((1, 1, 2, 2), np.int8), "INT8")])
    after = counts()
    assert (after[0] - before[0], after[2] - before[2]) == (1, 1)
    assert after[1] > before[1]
    names = [stats["name"] for stats in client.get_inference_statistics()["model_stats"]]
    assert "peaks" in names
    with pytest.raises(InferenceServerException, match="is not known"):
        client.get_model_config("nothing")


@pytest.mark.parametrize("element", ELEMENTS)
def test_bits_are_those_of_a_direct_call(client: InferenceServerClient, element: str) -> None:
    """Every element type makes the round trip in binary."""
    datatype = ELEMENTS[element]
    x = np.random.default_rng(1).integers(-100, 100, (3, 2, 9)).astype(DTYPES[datatype])
    keep = np.array([True, False, True])
    result = client.infer(f"typed_{element}", [tensor("x", x, datatype), tensor("keep", keep, "BOOL")])
    y, i = onnxpool.max_pool(x, 3, strides=2, return_indices=True, opset=22)

    found = result.as_numpy("y")
    assert (found.dtype, found.tobytes()) == (y.dtype, y.tobytes())
    assert result.as_numpy("i").tolist() == i.tolist()
    assert result.as_numpy("kept").tolist() == keep.tolist()


def test_quantised_models(client: InferenceServerClient) -> None:
    """Operators of com.microsoft are served too."""
    x = np.random.default_rng(5).integers(0, 256, (2, 3, 5, 7), np.uint8)
    found = client.infer("quantised", [tensor("x", x, "UINT8")]).as_numpy("y")
    y = onnxpool.qlinear_global_average_pool(x, np.float32(0.5), np.uint8(3), np.float32(0.5), np.uint8(3))
    assert found.tolist() == y.tolist()


@pytest.mark.parametrize("element", ["float", "double", "int8", "uint8"])
def test_json_loses_no_bit(client: InferenceServerClient, element: str) -> None:
    """JSON is as exact as binary, in both directions."""
    datatype = ELEMENTS[element]
    x = (np.random.default_rng(2).standard_normal((1, 2, 7)) * 40).astype(DTYPES[datatype])
    inputs = [tensor("x", x, datatype, False), tensor("keep", np.array([True]), "BOOL", False)]
    result = client.infer(f"typed_{element}", inputs,
                          outputs=[InferRequestedOutput("y", binary_data=False)], request_id="seven")
    y = onnxpool.max_pool(x, 3, strides=2, opset=22)

    assert result.as_numpy("y").tobytes() == y.tobytes()
    assert result.get_response()["id"] == "seven"
    assert [output["name"] for output in result.get_response()["outputs"]] == ["y"]


@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_16_bit_floats_are_not_json(client: InferenceServerClient, element: str) -> None:
    """The protocol has no JSON for them, in the request or in the response."""
    x = np.ones((1, 2, 3), DTYPES[ELEMENTS[element]])
    inputs = [tensor("x", x, ELEMENTS[element]), tensor("keep", np.array([True]), "BOOL")]
    with pytest.raises(InferenceServerException,
                       match=f"output 'y': {ELEMENTS[element]} cannot be represented in JSON; ask for"):
        client.infer(f"typed_{element}", inputs, outputs=[InferRequestedOutput("y", binary_data=False)])
    signature = Signature("x", ELEMENTS[element], (3,))
    body = malformed.listed(name="x", datatype=ELEMENTS[element], shape=[3], data=[1, 2, 3])
    with pytest.raises(RequestError, match="cannot be represented in JSON; send binary data"):
        decode(body, None, [signature], [], Limits())


def test_open_sizes_must_agree(client: InferenceServerClient) -> None:
    """Sizes with the same name must agree across all inputs."""
    inputs = [tensor("x", np.ones((3, 2, 9), np.float32), "FP32"), tensor("keep", np.array([True]), "BOOL")]
    with pytest.raises(InferenceServerException, match=r"input 'keep' has shape \[1\], whose axis 0 is 1; "
                                                       "input 'x' has 3 there") as caught:
        client.infer("typed_float", inputs)
    assert caught.value.status() == "400"


@pytest.mark.parametrize(("datatype", "data", "text"), [
    ("INT8", [128], "a number in data that INT8 cannot hold"),
    ("UINT8", [-1], "a number in data that UINT8 cannot hold"),
    ("UINT64", [2**64], "a number in data that UINT64 cannot hold"),
    ("INT32", [1.0], "has 1.0 in data; INT32 takes integers"),
    ("INT32", [True], "has True in data; INT32 takes integers"),
    ("BOOL", [1], "has 1 in data; BOOL takes true and false"),
])
def test_numbers_of_json_fit_their_type(datatype: str, data: list[Any], text: str) -> None:
    """No number is wrapped, rounded to an integer or converted to a truth value."""
    body = malformed.listed(name="x", shape=[1], datatype=datatype, data=data)
    with pytest.raises(RequestError, match=text):
        decode(body, None, [Signature("x", datatype, (1,))], [], Limits())


def test_binary_truth_values_are_0_and_1() -> None:
    """Any other byte is refused."""
    body, headers = malformed.binary(2, b"\x01\x02", name="x", shape=[2], datatype="BOOL")
    with pytest.raises(RequestError, match="bytes other than 0 and 1, which are not valid as BOOL"):
        decode(body, headers[malformed.HEADER_LENGTH], [Signature("x", "BOOL", (2,))], [], Limits())


@pytest.mark.parametrize("shape", [[0, 3], [2, 0], []])
def test_tensors_without_axes_or_elements(shape: list[int]) -> None:
    """Empty tensors, flat and nested, and scalars."""
    array = np.zeros(shape, np.int32)
    for data in (array.ravel().tolist(), array.tolist() if shape else [0]):
        body = malformed.listed(name="x", shape=shape, datatype="INT32", data=data)
        feeds = decode(body, None, [Signature("x", "INT32", (None,) * len(shape))], [], Limits()).feeds
        assert feeds["x"].tobytes() == array.tobytes()
        assert feeds["x"].shape == array.shape


def test_null_is_nothing() -> None:
    """Clients that write null for what they omit are understood."""
    array = malformed.listed(parameters=None)
    document = {"id": None, "parameters": None, "outputs": None,
                "inputs": [{**json.loads(array)["inputs"][0], "parameters": None}]}
    signature = Signature("heat", "FP32", (1, 1, 3, 3))
    request = decode(json.dumps(document).encode(), None, [signature], [signature], Limits())
    assert request.feeds["heat"].ravel().tolist() == list(range(9))
    assert [output.name for output in request.outputs] == ["heat"]


# Malformed requests


def test_nesting_beyond_the_stack() -> None:
    """JSON that Python cannot parse, and a value that it cannot show, are described instead."""
    depth = 1_000_000
    with pytest.raises(RequestError, match="nested too deeply"):
        decode(b"[" * depth, None, [], [], Limits())
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    assert shown(value) == "a deeply nested list"


@pytest.mark.parametrize("request_", malformed.REQUESTS, ids=lambda request: request.kind)
def test_malformed_requests_are_refused(url: str, request_: malformed.Malformed) -> None:
    """Each gets the status and the message that it should."""
    place = urlsplit(url)
    assert load.refused((place.hostname, place.port), request_) is None


def test_a_body_without_a_length_is_limited_too(url: str) -> None:
    """A chunked body is refused when it is too large."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    chunks = (bytes(1 << 16) for _ in range(40))
    connection.request("POST", malformed.INFER, chunks, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    response = connection.getresponse()
    assert response.status == 413
    assert "the body has too many bytes (limit: 1048576)" in json.load(response)["error"]
    connection.close()


def test_a_body_that_never_comes_ends() -> None:
    """A client that stops sending gets an answer, and its slot is released."""
    with load.server("--seconds", "0.5") as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        connection.request("POST", malformed.INFER, malformed.GOOD[:10], {"Content-Length": "100"})
        response = connection.getresponse()
        assert response.status == 408
        assert json.load(response)["error"] == "the body did not arrive within 0.5 s"
        connection.close()
        assert load.measured(url)["inference_requests_under_way"] == 0


def test_more_requests_than_the_most_are_sent_away() -> None:
    """Requests beyond the limit are answered at once, not queued; a slot is released after its request."""
    with load.server("--requests", "1") as url:
        place = urlsplit(url)
        first, second = (http.client.HTTPConnection(place.netloc, timeout=30) for _ in range(2))
        first.request("POST", malformed.INFER, malformed.GOOD[:10], {"Content-Length": str(len(malformed.GOOD))})
        while not load.measured(url)["inference_requests_under_way"]:
            pass
        second.request("POST", malformed.INFER, malformed.GOOD)
        response = second.getresponse()
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert "1 requests are in progress" in json.load(response)["error"]
        first.send(malformed.GOOD[10:])
        assert first.getresponse().status == 200
        second.request("POST", malformed.INFER, malformed.GOOD)
        assert second.getresponse().status == 200
        first.close()
        second.close()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_signals_end_it_when_requests_are_answered(number: int, status: int) -> None:
    """A request in progress gets its answer, and nothing is printed."""
    command = [sys.executable, "-W", "error", str(SERVER / "server.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        connection.request("POST", malformed.INFER, malformed.GOOD[:10], {"Content-Length": str(len(malformed.GOOD))})
        while not load.measured(url)["inference_requests_under_way"]:
            pass
        process.send_signal(number)
        connection.send(malformed.GOOD[10:])
        assert connection.getresponse().status == 200
        connection.close()
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == status


# Models


def test_a_failure_of_the_model_is_not_the_clients(tmp_path: Path) -> None:
    """A failure inside a model is a 500 with a message for the client, and the server continues."""
    proto = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 22]>
        reshaped (float[N] x) => (float[2, M] y) {
            shape = Constant <value_ints = [2, -1]> ()
            y = Reshape (x, shape)
        }""")
    onnx.save(proto, tmp_path / "reshaped.onnx")
    with load.server(str(tmp_path / "reshaped.onnx")) as url:
        client = InferenceServerClient(urlsplit(url).netloc)
        with pytest.raises(InferenceServerException, match="the model failed on these inputs") as caught:
            client.infer("reshaped", [tensor("x", np.ones(3, np.float32), "FP32")])
        assert caught.value.status() == "500"
        result = client.infer("reshaped", [tensor("x", np.ones(4, np.float32), "FP32")])
        assert result.as_numpy("y").shape == (2, 2)
        client.close()


@pytest.mark.parametrize(("signature", "text"), [
    ("(string[2] x) => (string[2] y)", "'x' is not a tensor of numbers"),
    ("(seq(float[2]) x) => (seq(float[2]) y)", "'x' is not a tensor of numbers"),
])
def test_models_that_the_protocol_cannot_carry(tmp_path: Path, signature: str, text: str) -> None:
    """They are refused before the port opens."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> m {signature} {{ y = Identity (x) }}')
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match=text):
        models.Model(tmp_path / "m.onnx")


def test_evaluators_are_not_shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No evaluator runs in two threads at a time, and all are returned, even after errors."""
    onnx.save(peaks.model(), tmp_path / "peaks.onnx")
    runtime = models.Model(tmp_path / "peaks.onnx", workers=2).runtime
    used: list[Any] = []
    run = models.Evaluator.run

    def nested(self: Any, outputs: Any, feeds: Any) -> Any:
        used.append(self)
        if len(used) == 1:
            runtime.run(["energy"], feeds)
        return run(self, outputs, feeds)

    monkeypatch.setattr(models.Evaluator, "run", nested)
    runtime.run(["energy"], {"heat": np.ones((1, 1, 3, 3), np.float32)})
    assert used[0] is not used[1]
    for _ in range(3):
        with pytest.raises(RequestError):
            runtime.run(["thumbnail"], {"heat": np.ones((1, 1, 2, 2), np.float32)})


# Load


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_refusals_need_no_threads() -> None:
    """The server has the threads of its workers and its loop, however many requests it refuses."""
    with load.started("--workers", "1") as (process, url):
        place = urlsplit(url)
        good = urllib.request.Request(url + malformed.INFER, malformed.GOOD, method="POST")
        urllib.request.urlopen(good, timeout=30).close()
        tasks = Path("/proc", str(process.pid), "task")
        before = len(list(tasks.iterdir()))
        for request in malformed.REQUESTS[:10]:
            assert load.refused((place.hostname or "", place.port or 80), request) is None
        assert len(list(tasks.iterdir())) == before


def test_load_with_malformed_requests(url: str) -> None:
    """Concurrent clients get no wrong bit and no wrong refusal, and nothing is left over."""
    report = load.run(url, seconds=2.5, clients=4, share=0.3)
    assert report["wrong"] == []
    assert report["answered"] > 30
    assert report["refused"] > 10
    assert report["under_way_after"] == 0
    with urllib.request.urlopen(url + "/metrics", timeout=30) as response:
        counted = dict(re.findall(r'^inference_requests_total{model="peaks",status="(\d+)"} (\S+)',
                                  response.read().decode(), re.MULTILINE))
    assert float(counted["200"]) >= report["answered"]
    assert float(counted["400"]) > 0
    assert "500" not in counted


def test_load_reports_wrong_answers(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """The load test can fail: for a direct call that differs in one bit, and for a refusal with another message."""
    def differing(heat: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        outputs = direct(heat)
        outputs["energy"] = np.nextafter(outputs["energy"], np.float32(0))
        return outputs

    direct = peaks.direct
    monkeypatch.setattr(peaks, "direct", differing)
    monkeypatch.setattr(malformed, "REQUESTS", [malformed.REQUESTS[0]._replace(text="no such text")])
    wrong = load.run(url, seconds=1, clients=1, share=0.3)["wrong"]
    assert "energy" in wrong
    assert any("no body: 400" in text for text in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", models.RUNTIMES)
def test_memory_is_flat_under_long_load(runtime: str) -> None:
    """After a minute of load, memory and files are as they were after the warm-up."""
    with load.server("--runtime", runtime) as url:
        report = load.run(url, seconds=60, clients=8, share=0.3)
    assert report["wrong"] == []
    assert max(report["memory_mib"]) < report["memory_mib"][2] + 8  # the first samples are from the warm-up
    assert report["files_after"] <= report["files_before"] + 2


# The pages


@pytest.mark.parametrize("page", [SERVER / "README.md", SERVER.parent.parent / "README.md"], ids=["example", "project"])
def test_the_request_of_the_pages(page: Path) -> None:
    """The request shown on a page gets the answer shown there."""
    shown = re.search(r"curl -s localhost:8000(\S+) -d '(.*)'\n(.*)\n", page.read_text())
    assert shown is not None
    with load.server() as url, urllib.request.urlopen(url + shown[1], shown[2].encode(), timeout=30) as answer:
        assert json.load(answer) == json.loads(shown[3])


def test_the_client_of_the_page(url: str) -> None:
    """The README of the example shows a client that runs."""
    shown, = re.findall(r"```python\n(.*?)```", (SERVER / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(shown.replace("localhost:8000", urlsplit(url).netloc), names)
    assert names["peaks"].tobytes() == peaks.direct(names["heat"])["peaks"].tobytes()
    names["client"].close()


def test_the_page_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    """Options mentioned in the README of the example exist, and each limit is among them."""
    with pytest.raises(SystemExit):
        server.arguments(["--help"])
    there = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    named = set(re.findall(r"`(--[\w-]+)", (SERVER / "README.md").read_text()))
    assert named <= there
    assert {"--" + name.replace("_", "-") for name in Limits._fields} <= named


@pytest.mark.parametrize("option", ["--workers", "--rank", "--seconds"])
def test_options_are_more_than_0(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Limits of 0 are refused."""
    with pytest.raises(SystemExit):
        server.arguments([option, "0"])
    assert f"{option} is 0" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"no model"], ids=["missing", "empty", "text"])
def test_a_file_that_is_no_model_ends_in_one_line(content: bytes | None, tmp_path: Path) -> None:
    """Mistakes are reported without a traceback."""
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit, match=r"^server.py: cannot serve .*model\.onnx: .+$") as caught:
        server.load(server.arguments([str(path)]))
    assert "\n" not in str(caught.value)


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    """One would hide the other."""
    paths = [tmp_path / folder / "net.onnx" for folder in ("first", "second")]
    for path in paths:
        path.parent.mkdir()
        onnx.save(peaks.model(), path)
    with pytest.raises(SystemExit, match=r"two models have the name net, that of their files; rename one"):
        server.load(server.arguments([*map(str, paths)]))


def test_a_port_is_one_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        server.arguments(["--port", "65536"])
    assert "--port is 65536" in capsys.readouterr().err
