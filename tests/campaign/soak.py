"""KServe with pools under good, wrong, torn, slow and huge requests: answers are right, and nothing leaks."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .figures import Figure, all_of, none

QUICK, FULL = 14.0, 600.0  # seconds
CLIENTS, LOOKS, PIECES = 6, 50, 20  # clients, looks at the process, and pieces of a slow body
WARM = 0.25  # share of the time in which caches and the heaps of threads may grow
GROWTH = 16  # maximum MiB, because KServe collects garbage at any time
PATH = "/v2/models/heat/infer"
MODEL = """<ir_version: 10, opset_import: ["" : 22]>
heat (float[N, C, H, W] x) => (
    float[N, C, H, W] highest, float[N, C, P, Q] mean, float[N, C, 1, 1] norm, int64[N, C, P, Q] i) {
    highest = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)
    mean = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (x)
    norm = GlobalLpPool <p = 2> (x)
    top, i = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (x)
}"""
SHAPES = ((1, 1, 3, 3), (1, 3, 17, 16), (2, 5, 31, 33), (4, 1, 9, 64), (1, 16, 64, 64), (3, 7, 5, 130))
BAD_SHAPES = ((1, 1, 2, 8), (1, 1, 8), (3, 3), (1, 1, 1, 9, 9), (0, 0, 2, 0), (1, 2, 9, 1))
BAD = (*((shape, "f4") for shape in BAD_SHAPES), *((SHAPES[1], dtype) for dtype in ("f8", "i4", "u1")))
DATATYPES = {"f4": "FP32", "f8": "FP64", "i4": "INT32", "u1": "UINT8"}
ODD = (None, True, 0, -1, 3, 2**31, 2**63, 2**64, 1e308, 0.5, "", "x", "FP32", "INT8", [], [[1], [2, 3]], {})


class Client:
    """A client with requests of all kinds, and a record of its answers."""

    def __init__(self, port: int, seed: int) -> None:
        import numpy as np
        from tritonclient import http as triton

        self.port, self.rng, self.arrays, self.triton = port, random.Random(seed), np.random.default_rng(seed), triton
        self.client = triton.InferenceServerClient(f"127.0.0.1:{port}", network_timeout=60.0)
        self.counts, self.wrong, self.seconds = Counter[str](), list[str](), list[float]()

    def body(self) -> bytes:
        """A request in JSON."""
        data = self.arrays.standard_normal(45).tolist()
        return json.dumps({"inputs": [{"name": "x", "shape": [1, 1, 5, 9], "datatype": "FP32", "data": data}]}).encode()

    def infer(self, x: Any) -> Any:
        """The result of an array, sent as bytes, and returned as JSON or as bytes."""
        sent = self.triton.InferInput("x", x.shape, DATATYPES[x.dtype.str[1:]])
        sent.set_data_from_numpy(x)
        binary = x.size > 2000 or self.rng.random() < 0.5
        return self.client.infer("heat", [sent], outputs=[
            self.triton.InferRequestedOutput(name, binary) for name in ("highest", "mean", "norm", "i")])

    def good(self) -> str:
        """An array whose answers have the bits of direct calls."""
        import onnxpool

        x = self.arrays.standard_normal(self.rng.choice(SHAPES), "f4")
        begin, found = time.perf_counter(), self.infer(x)
        self.seconds.append(time.perf_counter() - begin)
        right = {"highest": onnxpool.max_pool(x, 3, pads=1), "mean": onnxpool.average_pool(x, 3, strides=2),
                 "norm": onnxpool.global_lp_pool(x), "i": onnxpool.max_pool(x, 3, strides=2, return_indices=True)[1]}
        return ", ".join(name for name, y in right.items() if found.as_numpy(name).tobytes() != y.tobytes())

    def bad(self) -> str:
        """An array that the model does not take."""
        shape, dtype = self.rng.choice(BAD)
        try:
            self.infer(self.arrays.random(shape).astype(dtype))
        except self.triton.InferenceServerException as error:
            return "" if error.status() == "400" and len(error.message()) > 10 else f"{shape} {dtype}: {error}"
        return f"{shape} {dtype} has a result"

    def odd(self) -> str:
        """A request in which one value has another type."""
        document = json.loads(self.body())
        at: Any = self.rng.choice([document, document["inputs"], document["inputs"][0], document["inputs"][0]["data"]])
        at[self.rng.choice(list(at) if isinstance(at, dict) else range(len(at)))] = self.rng.choice(ODD)
        return self.answered(json.dumps(document).encode())

    def damaged(self) -> str:
        """A body with bytes changed, missing or repeated."""
        body, place, size = self.body(), self.rng.randrange(900), self.rng.choice((1, 7, 40))
        return self.answered(body[:place] + self.rng.choice((b"", b"\xff", b"[" * 9999, body)) + body[place + size:])

    def huge(self) -> str:
        """More data than any tensor of the model may have."""
        return self.answered(bytes(24 << 20))

    def slow(self) -> str:
        """A good request that takes a second to arrive."""
        body = self.body()
        size = -(-len(body) // PIECES)
        status = self.answer(time.sleep(1 / PIECES) or body[at:at + size] for at in range(0, len(body), size))
        return "" if status == 200 else f"{status}"

    def torn(self) -> str:
        """A part of a request, after which the client leaves."""
        head = b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall((head % PATH.encode() + self.body())[:self.rng.randrange(800)])
        return ""

    def answer(self, body: Any) -> int:
        """The status of the answer to a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", PATH, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def answered(self, body: bytes) -> str:
        """What is wrong with a status, if anything. KServe answers some bodies that it cannot parse with status 500."""
        status = self.answer(body)
        return "" if status in (200, 400, 422, 500) else f"{status}"

    def work(self, until: float) -> None:
        """Send requests of all kinds."""
        kinds = (self.good, self.bad, self.odd, self.damaged, self.torn, self.slow, self.huge)
        while time.monotonic() < until:
            (kind,) = self.rng.choices(kinds, (60, 15, 10, 10, 5, 1, 1))
            try:
                fault = kind()
            except Exception as error:  # any exception is a finding
                fault = f"{type(error).__name__}: {error}"
            self.counts[kind.__name__] += 1
            self.wrong += [f"{kind.__name__}: {fault[:300]}"] if fault else []


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Put load on a server, and look at its process."""
    if importlib.util.find_spec("kserve") is None:
        print("  left out: pip install --group serving")
        return
    import numpy as np
    from frameworks import FRAMEWORKS, running

    seconds, looks = QUICK if quick else FULL, list[tuple[float, int, int]]()
    framework = FRAMEWORKS["onnx"]._replace(ready="/v2/models/heat/ready")
    with tempfile.TemporaryDirectory() as folder, running(framework, Path(folder), (MODEL,)) as (server, process):
        begin, files = time.monotonic(), process.num_fds()
        clients = [Client(server.port, seed + number) for number in range(CLIENTS)]
        threads = [threading.Thread(target=client.work, args=(begin + seconds,)) for client in clients]
        for thread in threads:
            thread.start()
        for look in range(1, LOOKS + 1):
            time.sleep(max(0.0, begin + seconds * look / LOOKS - time.monotonic()))
            looks.append((process.memory_info().rss / 2**20, process.num_fds(), process.num_threads()))
        for thread in threads:
            thread.join()
        for client in clients:
            client.client.close()
        time.sleep(6)  # uvicorn closes idle connections after 5 s
        left, lives = process.num_fds() - files, Client(server.port, seed).good() == ""
    for text in [text for client in clients for text in client.wrong][:20]:
        print(f"  {text}")
    counts, wrong = sum((client.counts for client in clients), Counter[str]()), sum(len(c.wrong) for c in clients)
    (early, _, _), (late, _, threads_late) = (map(max, zip(*part, strict=True)) for part in (
        looks[int(LOOKS * WARM):LOOKS // 2], looks[-LOOKS // 4:]))
    yield none("wrong answers, and requests without one", wrong, counts.total(), "requests",
               ", ".join(f"{count:,} {kind}" for kind, count in counts.items()))
    yield all_of("servers that answer afterwards", int(lives), 1, "server")
    yield Figure("growth of memory", late - early, len(looks), "looks", "MiB", most=GROWTH,
                 note=f"at most {early:.0f} MiB early and {late:.0f} late")
    yield none("more descriptors than at the start", max(0, left), len(looks), "looks")
    yield Figure("threads", threads_late, len(looks), "looks", most=(os.cpu_count() or 1) + 12, note="of a pool")
    p50, p99 = np.percentile([1e3 * spent for client in clients for spent in client.seconds], [50, 99])
    yield Figure("99th percentile of good requests", float(p99), counts["good"], "requests", "ms",
                 note=f"median {p50:.1f} ms; the clients share the processors with the server")
