"""
The snippets of serving.md and triton.md in docs/howto: each framework starts on this machine, answers requests, and
ends.

Needs the groups ``serving`` and ``triton`` of pyproject.toml; without a package, its framework is skipped.
"""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frameworks import FRAMEWORKS, SECONDS, Answer, Server, running, tensor
from numpy.typing import NDArray

import onnxpool

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the servers are those of Linux")]

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
SECTIONS = [*(HOWTO / "serving.md").read_text(encoding="utf-8").split("\n## "),
            (HOWTO / "triton.md").read_text(encoding="utf-8").removeprefix("# ")]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server of each framework."""
    framework = FRAMEWORKS[request.param]
    if importlib.util.find_spec(framework.package) is None:
        pytest.skip(f"needs the package {framework.package}")
    pytest.importorskip("psutil")
    with running(framework, tmp_path_factory.mktemp(request.param)) as (started, _):
        yield started


def images(seed: int, *shape: int) -> NDArray[np.float32]:
    """Random images."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def means(x: NDArray[np.float32]) -> NDArray[Any]:
    """Means over 3x3 windows, by NumPy."""
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
    return windows[:, :, ::2, ::2].mean((4, 5))


@pytest.mark.parametrize("shape", [(1, 1, 3, 3), (2, 3, 16, 17), (1, 64, 40, 40), (5, 1, 3, 9), (2, 2, 9, 4)])
def test_the_answer_is_that_of_a_direct_call(server: Server, shape: tuple[int, ...]) -> None:
    """The answer has the bits of a direct call of onnxpool, and the values that NumPy computes."""
    x = images(len(shape), *shape)
    y = server.pooled(x)
    direct = onnxpool.average_pool(x, 3, strides=2)
    assert (y.shape, y.tobytes()) == (direct.shape, direct.tobytes())
    np.testing.assert_allclose(y, means(x), rtol=1e-6, atol=1e-6)


def test_an_image_that_is_too_small_is_refused(server: Server) -> None:
    """The answer for an image that is too small names the attribute that the image violates, and the way out."""
    answer = server.pool(images(0, 1, 1, 2, 8))
    assert answer.status == 400
    assert "AveragePool-22: kernel_shape[0]=3" in answer.text
    assert "axis 2 has 2" in answer.text


def test_more_work_than_the_limit_is_refused(server: Server) -> None:
    """An array with more than a million windows exceeds the limit on work. An array with fewer windows is answered."""
    answer = server.pool(np.zeros((1, 4, 1003, 1003), np.float32))
    assert answer.status == 400
    assert "more than max_work=10000000" in answer.text
    assert server.pooled(np.zeros((1, 1, 1003, 1003), np.float32)).shape == (1, 1, 501, 501)


@pytest.mark.parametrize("body", [
    '{"inputs": [{"name": "x", "shape": [1, 1, 3, 3], "datatype": "FP32", "data": [1, 2]}], "x": [[1], 2]}',
    '{"inputs": [{"name": "x", "shape": [1, 9], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6, 7, 8, 9]}], "x": [1]}',
    '{"inputs": [], "x": "word"}',
    '{"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["word"]}]}',
    '{"inputs": ',
], ids=["shape", "rank", "nothing", "words", "incomplete"])
def test_malformed_requests_are_errors_of_the_client(server: Server, body: str) -> None:
    """Malformed requests are refused, and the next request is answered."""
    answer = server.post(body)
    if server.framework is FRAMEWORKS["triton"] and "parse" in answer.text:
        assert answer.status == 500  # Triton says so itself
    else:
        assert answer.status in (400, 422), answer
    assert server.pooled(images(1, 1, 1, 5, 5)).shape == (1, 1, 2, 2)


def test_concurrent_clients_get_their_own_answers(server: Server) -> None:
    """Eight clients ask at once, and requests that are refused in between do not disturb the others."""
    cases = [images(seed, 1, 2, 9 + seed % 5, 2 + seed % 7) for seed in range(80)]
    assert {x.shape[3] < 3 for x in cases} == {True, False}
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(server.pool, cases))
    for x, answer in zip(cases, answers, strict=True):
        if x.shape[3] < 3:
            assert answer.status == 400
            assert "kernel_shape[1]=3" in answer.text
        else:
            assert answer.status == 200, answer
            y = server.framework.read(json.loads(answer.text))
            assert y.tobytes() == onnxpool.average_pool(x, 3, strides=2).tobytes()


def test_clients_of_triton_send_binary_data(server: Server) -> None:
    """The client of the package tritonclient works with all servers of its protocol, also for empty batches."""
    if server.framework.written is not tensor:
        pytest.skip("another protocol")
    triton_http = pytest.importorskip("tritonclient.http")
    client = triton_http.InferenceServerClient(f"127.0.0.1:{server.port}")
    for x in (images(2, 3, 2, 30, 41), images(3, 0, 2, 5, 7)):
        sent = triton_http.InferInput("x", x.shape, "FP32")
        sent.set_data_from_numpy(x)
        result = client.infer("pool", [sent])
        (name,) = [found["name"] for found in result.get_response()["outputs"]]
        y, direct = result.as_numpy(name), onnxpool.average_pool(x, 3, strides=2)
        assert (y.shape, y.tobytes()) == (direct.shape, direct.tobytes())
    client.close()


def test_kserve_answers_version_1(server: Server) -> None:
    """Nested lists of floats are pooled in float64; whole numbers are int64, which ONNX does not average."""
    if server.framework is not FRAMEWORKS["kserve"]:
        pytest.skip("a protocol of KServe")
    path = "/v1/models/pool:predict"
    x = images(4, 2, 1, 5, 7).astype(np.float64)
    answer = server.request("POST", path, json.dumps({"instances": x.tolist()}))
    assert answer.status == 200
    assert json.loads(answer.text) == {"predictions": onnxpool.average_pool(x, 3, strides=2).tolist()}
    answer = server.request("POST", path, json.dumps({"instances": [[[[1, 2, 3]] * 3]]}))
    assert answer.status == 400
    assert "dtype int64 is not accepted" in answer.text
    assert server.request("POST", path, "{}").status == 400


def test_ray_refuses_json_that_is_no_array(server: Server) -> None:
    """Ragged lists, words and numbers beyond floats are refused, and so are results that JSON cannot represent."""
    if server.framework is not FRAMEWORKS["ray"]:
        pytest.skip("a protocol of Ray Serve's snippet")
    image = [[1, 2, 3]] * 3
    for bad in ([1, [2]], [["word"]], [[[*image[1:], [1, 2, 10**400]]]], [[[*image[1:], [1, 2, float("nan")]]]]):
        answer = server.post(json.dumps(bad))
        assert answer.status == 400, (bad, answer)
    assert server.post(json.dumps([[image]])) == Answer(200, "[[[[2.0]]]]")


def test_the_request_of_the_page_gets_its_answer(server: Server) -> None:
    """The page's commands print the output that the page shows."""
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    (name,) = [name for name, framework in FRAMEWORKS.items() if framework is server.framework]
    (shown,) = [text for text in SECTIONS if text.lower().startswith(name)]
    pairs = re.findall(r"^\$ (curl .*)\n(.*)$", shown, re.MULTILINE)
    assert len(pairs) == 2
    for command, answer in pairs:
        words = [re.sub(r"^localhost:\d+", f"127.0.0.1:{server.port}", word) for word in shlex.split(command)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=True)
        assert re.sub(r'"id":"[^"]*"', '"id":"..."', done.stdout) == answer
