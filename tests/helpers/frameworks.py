"""Servers of the snippets in examples/serving, each started on this machine, and how to talk to them."""

import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx.parser
from numpy.typing import NDArray

SNIPPETS = Path(__file__).parents[2] / "examples" / "serving"
SECONDS = 300  # maximum time until a server is ready, on a busy machine; the slowest takes 15 s on an idle one
POOL = """<ir_version: 10, opset_import: ["" : 22]>
pool (float[N, C, H, W] x) => (float[N, C, P, Q] y) { y = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (x) }"""


# Commands


def kserve(port: int, folder: Path) -> list[str]:
    """The command that starts the model of KServe, in two processes."""
    return [sys.executable, "pool_kserve.py", f"--http_port={port}", "--enable_grpc=false", "--workers=2"]


def models(port: int, folder: Path, texts: tuple[str, ...] = (POOL,)) -> list[str]:
    """The command that starts KServe with ONNX models, whose texts have the form of onnx's parser."""
    files = []
    for text in texts:
        model = onnx.parser.parse_model(text)
        files.append(str(folder / f"{model.graph.name}.onnx"))
        onnx.save(model, files[-1])
    return [sys.executable, "model_kserve.py", *files, f"--http_port={port}", "--enable_grpc=false"]


def bentoml(port: int, folder: Path) -> list[str]:
    """The command that starts the service of BentoML."""
    return [sys.executable, "-m", "bentoml", "serve", "pool_bentoml:Pool", "--host=127.0.0.1", f"--port={port}"]


def ray(port: int, folder: Path) -> list[str]:
    """The command that starts the deployment of Ray Serve, with the port in a file, since no option sets it."""
    config = folder / "serve.yaml"
    config.write_text(f"http_options: {{host: 127.0.0.1, port: {port}}}\n"
                      "applications: [{name: default, route_prefix: /, import_path: 'pool_ray:app'}]\n")
    return [sys.executable, "-m", "ray.serve.scripts", "run", str(config)]


def triton(port: int, folder: Path) -> list[str]:
    """The command that starts Triton, whose Python backend gets the program for this version of Python."""
    server = package("pytriton") / "tritonserver"
    stubs = server / "python_backend_stubs" / f"{sys.version_info.major}.{sys.version_info.minor}"
    backend = folder / "backends" / "python"
    shutil.copytree(server / "backends" / "python", backend)
    shutil.copy(stubs / "triton_python_backend_stub", backend)
    shutil.copytree(SNIPPETS / "triton", folder / "models")
    return [str(server / "bin" / "tritonserver"), f"--model-repository={folder / 'models'}",
            f"--backend-directory={folder / 'backends'}", "--http-address=127.0.0.1", f"--http-port={port}",
            "--allow-grpc=false", "--allow-metrics=false"]


def package(name: str) -> Path:
    """The folder of a package, which is not imported."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


# Requests


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    text: str


class Framework(NamedTuple):
    """A framework: how to start it, and how to write requests and read answers."""

    package: str
    command: Callable[..., list[str]]
    ready: str
    path: str
    written: Callable[[NDArray[Any]], Any]
    read: Callable[[Any], NDArray[Any]]


def tensor(x: NDArray[Any]) -> dict[str, Any]:
    """A request of version 2 of the Open Inference Protocol."""
    return {"inputs": [{"name": "x", "shape": x.shape, "datatype": "FP32", "data": x.ravel().tolist()}]}


def output(answer: dict[str, Any]) -> NDArray[Any]:
    """The array in an answer of version 2 of the protocol."""
    (found,) = answer["outputs"]
    assert found["datatype"] == "FP32"
    return np.array(found["data"], np.float32).reshape(found["shape"])


def plain(answer: Any) -> NDArray[Any]:
    """The array in an answer of nested lists."""
    return np.array(answer, np.float32)


FRAMEWORKS = {
    "kserve": Framework("kserve", kserve, "/v2/models/pool/ready", "/v2/models/pool/infer", tensor, output),
    "onnx": Framework("kserve", models, "/v2/models/pool/ready", "/v2/models/pool/infer", tensor, output),
    "bentoml": Framework("bentoml", bentoml, "/readyz", "/pool", lambda x: {"x": x.tolist()}, plain),
    "ray": Framework("ray", ray, "/-/routes", "/", lambda x: x.tolist(), plain),
    "triton": Framework("pytriton", triton, "/v2/models/pool/ready", "/v2/models/pool/infer", tensor, output),
}


class Server(NamedTuple):
    """A framework that runs."""

    framework: Framework
    port: int

    def get(self, path: str) -> Answer:
        """The answer to a GET."""
        return self.request("GET", path)

    def post(self, body: str) -> Answer:
        """The answer to a body of JSON."""
        return self.request("POST", self.framework.path, body)

    def request(self, method: str, path: str, body: str | None = None) -> Answer:
        """The answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return Answer(response.status, response.read().decode())
        finally:
            connection.close()

    def pool(self, x: NDArray[Any]) -> Answer:
        """The framework's answer to a request to pool an array."""
        return self.post(json.dumps(self.framework.written(x)))

    def pooled(self, x: NDArray[Any]) -> NDArray[Any]:
        """The array in the framework's answer to an array."""
        answer = self.pool(x)
        assert answer.status == 200, answer
        return self.framework.read(json.loads(answer.text))


@contextmanager
def running(framework: Framework, folder: Path, *options: Any) -> Iterator[tuple[Server, Any]]:
    """A running framework, with its psutil process. In the end, Ctrl-C ends the framework and all of its processes."""
    import psutil

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = Server(framework, port)
    with tempfile.TemporaryDirectory(dir="/tmp") as short, (folder / "log").open("wb") as log:
        process = subprocess.Popen(framework.command(port, folder, *options), cwd=SNIPPETS, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT, env=environment(folder, short))
        members = [psutil.Process(process.pid)]
        try:
            wait(started, process, folder / "log")
            members += members[0].children(recursive=True)
            yield started, members[0]
            members = list({*members, *members[0].children(recursive=True)})
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)
            _, left = psutil.wait_procs(members, SECONDS)
            assert [member.cmdline() for member in left] == []
        finally:
            for member in members:
                if member.is_running():
                    member.kill()
            process.wait()


def environment(folder: Path, short: str) -> dict[str, str]:
    """Environment variables of a server: it writes to the test's folders, sends no reports, and finds this Python."""
    libraries = [sysconfig.get_config_var("LIBDIR"), os.environ.get("LD_LIBRARY_PATH")]
    if importlib.util.find_spec("pytriton") is not None:
        libraries.insert(0, str(package("pytriton").parent / "nvidia_pytriton.libs"))
    return {
        **os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
        "BENTOML_DO_NOT_TRACK": "True", "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": short,  # sockets of Ray do not fit into longer names
    }


def wait(server: Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until a server is ready."""
    end = time.monotonic() + SECONDS
    answer = None
    while answer is None or answer.status != 200 or answer.text == "{}":  # Ray has no route at first
        assert process.poll() is None, log.read_text()[-4000:]
        assert time.monotonic() < end, (answer, log.read_text()[-4000:])
        time.sleep(0.2)
        try:
            answer = server.get(server.framework.ready)
        except (OSError, http.client.HTTPException):
            answer = None
