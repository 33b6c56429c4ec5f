"""
A server of the Open Inference Protocol, version 2, which runs the pooling nodes of its models on onnxpool.

``python server.py [MODEL.onnx ...]``; ``--help`` lists the limits.
"""

import argparse
import asyncio
import logging
import socket
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
import peaks
import uvicorn
from models import RUNTIMES, Model
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from protocol import Limits, RequestError, decode, encode
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import onnxpool

HEADER_LENGTH = "Inference-Header-Content-Length"
CLIENT_LEFT = 499  # in the metrics only; no client receives it
PLAIN = ("", "identity")
EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics"]  # named as in Triton

log = logging.getLogger("onnxpool.server")


class Metrics:
    """The contents of /metrics, besides memory, time and files of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("inference_requests", "Inference requests by model and HTTP status",
                                ["model", "status"], registry=self.registry)
        self.seconds = Histogram("inference_seconds", "Seconds from a whole request to its answer", ["model"],
                                 registry=self.registry)
        self.under_way = Gauge("inference_requests_under_way", "Inference requests that have no answer yet",
                               registry=self.registry)

    def statistics(self, model: Model) -> dict[str, Any]:
        """Triton's statistics of a model's requests. The time is that of all answers, including refusals of inputs."""
        counts = {True: 0, False: 0}
        for sample in next(iter(self.requests.collect())).samples:
            if sample.name == "inference_requests_total" and sample.labels["model"] == model.name:
                counts[sample.labels["status"] == "200"] += int(sample.value)
        seconds = self.registry.get_sample_value("inference_seconds_sum", {"model": model.name}) or 0.0
        return {"name": model.name, "version": model.version, "inference_count": counts[True],
                "execution_count": counts[True],
                "inference_stats": {"success": {"count": counts[True], "ns": int(1e9 * seconds)},
                                    "fail": {"count": counts[False], "ns": 0}}}


class Server:
    """
    The endpoints.

    Parameters
    ----------
    models : list of Model
    limits : Limits
    workers : int
        How many threads run models.
    """

    def __init__(self, models: list[Model], limits: Limits, workers: int) -> None:
        self.models = {model.name: model for model in models}
        self.limits = limits
        self.pool = ThreadPoolExecutor(workers, "worker")
        self.metrics = Metrics()
        self.under_way = 0
        self.metrics.under_way.set_function(lambda: self.under_way)

    def application(self) -> Starlette:
        """The ASGI application."""
        routes = [Route("/v2", self.server), Route("/metrics", self.measured),
                  Route("/v2/health/live", self.healthy), Route("/v2/health/ready", self.healthy),
                  Route("/v2/models/stats", self.counted)]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            routes += [Route(path, self.described), Route(path + "/ready", self.ready),
                       Route(path + "/config", self.configured), Route(path + "/stats", self.counted),
                       Route(path + "/infer", self.infer, methods=["POST"])]
        return Starlette(routes=routes, exception_handlers={HTTPException: refusal, RequestError: refusal})

    async def healthy(self, _: Request) -> Response:
        """Live and ready are the same: the port opens when every model is loaded."""
        return Response()

    async def server(self, _: Request) -> Response:
        """Metadata of the server."""
        return JSONResponse({"name": "onnxpool", "version": onnxpool.__version__, "extensions": EXTENSIONS})

    async def described(self, request: Request) -> Response:
        """Metadata of a model."""
        return JSONResponse(self.model(request).metadata())

    async def ready(self, request: Request) -> Response:
        """Whether a model is ready, which it is if it exists."""
        return JSONResponse({"name": self.model(request).name, "ready": True})

    async def configured(self, request: Request) -> Response:
        """The configuration of a model, which clients of Triton request."""
        return JSONResponse(self.model(request).configuration())

    async def counted(self, request: Request) -> Response:
        """The statistics of a model, or of all."""
        models = [self.model(request)] if "model" in request.path_params else self.models.values()
        return JSONResponse({"model_stats": [self.metrics.statistics(model) for model in models]})

    async def measured(self, _: Request) -> Response:
        """The metrics in Prometheus' format."""
        return Response(generate_latest(self.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def infer(self, request: Request) -> Response:
        """An inference, which is counted whatever its outcome."""
        name, status = request.path_params["model"], 500
        self.under_way += 1
        try:
            refused = self.refused(request)
            body = await self.body(request, 0 if refused else self.limits.body_bytes)
            if refused is not None:
                raise refused
            if body is None:
                raise self.too_large("too many")
            response = await asyncio.get_running_loop().run_in_executor(
                self.pool, self.answer, self.models[name], body, request.headers.get(HEADER_LENGTH))
            status = response.status_code
            return response
        except RequestError as error:
            status = error.status
            raise
        except ClientDisconnect:
            status = CLIENT_LEFT
            return Response()
        finally:
            self.under_way -= 1
            self.metrics.requests.labels(name if name in self.models else "", status).inc()

    def refused(self, request: Request) -> RequestError | None:
        """The reason to refuse a request regardless of its body, or None."""
        try:
            self.model(request)
        except RequestError as error:
            return error
        encoding, length = (request.headers.get(f"Content-{name}", "") for name in ("Encoding", "Length"))
        if encoding.lower() not in PLAIN:
            return RequestError(f"Content-Encoding {encoding!r} is not accepted; send the body as it is", 415)
        if length.isdigit() and int(length) > self.limits.body_bytes:
            return self.too_large(length)
        if self.under_way > self.limits.requests:
            return RequestError(f"{self.limits.requests} requests are in progress, which is the limit; try again", 503)
        return None

    def too_large(self, length: str) -> RequestError:
        """The refusal of a body."""
        return RequestError(f"the body has {length} bytes (limit: {self.limits.body_bytes}); send smaller "
                            f"tensors or start the server with a larger --body-bytes", 413)

    async def body(self, request: Request, most: int) -> bytearray | None:
        """
        The body, or None if it has more bytes than `most`.

        Such a body is still read, but dropped: otherwise, a client that is still sending would not see the answer.
        """
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size <= most:
                        body += chunk
                    else:
                        body.clear()
        except TimeoutError:
            raise RequestError(f"the body did not arrive within {self.limits.seconds:g} s", 408) from None
        return body if size <= most else None

    def answer(self, model: Model, body: bytearray, header_length: str | None) -> Response:
        """The answer to a complete request; this runs in a thread of the pool."""
        with self.metrics.seconds.labels(model.name).time():
            try:
                request = decode(body, header_length, model.inputs, model.outputs, self.limits)
                arrays = model.runtime.run([output.name for output in request.outputs], request.feeds)
                content, length = encode(model.name, model.version, request, arrays)
            except RequestError:
                raise
            except MemoryError:
                raise RequestError("there is not enough memory for this request; send smaller tensors", 503) from None
            except Exception:
                log.exception("model %r failed", model.name)
                raise RequestError("the model failed on these inputs; the log of the server says how", 500) from None
        if length is None:
            return Response(content, media_type="application/json")
        return Response(content, headers={HEADER_LENGTH: str(length)}, media_type="application/octet-stream")

    def model(self, request: Request) -> Model:
        """The model of a path."""
        name, version = request.path_params["model"], request.path_params.get("version", Model.version)
        if name not in self.models:
            raise RequestError(f"model {name!r} is not known; there is {', '.join(map(repr, self.models))}", 404)
        if version != Model.version:
            raise RequestError(f"model {name!r} has no version {version!r}; it has {Model.version!r}", 404)
        return self.models[name]


async def refusal(_: Request, error: Any) -> Response:
    """An error in the form that the protocol defines; a function that is not async would get a thread of its own."""
    status, text = (error.status, str(error)) if isinstance(error, RequestError) else (error.status_code, error.detail)
    return JSONResponse({"error": text}, status, {"Retry-After": "1"} if status == 503 else None)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Serve ONNX models by the Open Inference Protocol v2 over HTTP.",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="files, which give the models their names; default: peaks")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any free port")
    parser.add_argument("--runtime", choices=RUNTIMES, default="onnx", help="the runtime of the other nodes")
    parser.add_argument("--workers", type=int, default=onnxpool.get_num_threads(), help="number of concurrent runs")
    parser.add_argument("--threads", type=int, default=1, help="threads of each run")
    for name, value in Limits()._asdict().items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value, help="limit")
    options = parser.parse_args(given)
    if not 0 <= options.port < 2**16:
        parser.error(f"--port is {options.port}; it must be below 65536")
    for name in ("workers", "threads", *Limits._fields):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be more than 0")
    return options


def loaded(path: Path, options: argparse.Namespace) -> Model:
    """The model of a file; exits if it is not a model."""
    try:
        return Model(path, options.runtime, options.workers, options.threads)
    except Exception as error:  # the exceptions of onnx, protobuf and onnxruntime have no common base
        raise SystemExit(f"server.py: cannot serve {path}: {str(error).splitlines()[0]}") from None


def load(options: argparse.Namespace) -> list[Model]:
    """The requested models."""
    if options.models:
        models = [loaded(path, options) for path in options.models]
        names = [model.name for model in models]
        for name in names:
            if names.count(name) > 1:
                raise SystemExit(f"server.py: two models have the name {name}, that of their files; rename one")
        return models
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "peaks.onnx")
        onnx.save(peaks.model(), path)
        return [Model(path, options.runtime, options.workers, options.threads)]


def main(given: Sequence[str] | None = None) -> None:
    """Load the models, open the port, announce it, and serve until a signal arrives."""
    options = arguments(given)
    models = load(options)
    limits = Limits(*(getattr(options, name) for name in Limits._fields))
    config = uvicorn.Config(Server(models, limits, options.workers).application(), options.host, options.port,
                            log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=10)
    listening = config.bind_socket()
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # otherwise answers in two parts wait 40 ms
    listening.listen(config.backlog)  # so that readers of the line below can connect
    print(f"Serving {', '.join(model.name for model in models)} on http://{options.host}:{listening.getsockname()[1]}",
          flush=True)
    with suppress(KeyboardInterrupt):  # raised again by uvicorn after a clean shutdown
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
