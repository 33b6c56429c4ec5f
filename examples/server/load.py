"""
Load for the server: concurrent clients of tritonclient, with malformed requests mixed in.

``python load.py`` starts a server and prints the figures; it exits with 1 if an answer was wrong or the server died.
"""

import argparse
import http.client
import json
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import malformed
import numpy as np
import peaks
from numpy.typing import NDArray
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

SHAPES = [(1, 1, 3, 3), (1, 3, 17, 16), (2, 5, 31, 33), (4, 1, 9, 64), (0, 2, 8, 8), (1, 16, 64, 64), (3, 7, 5, 130)]
LOOKS = 10  # how often memory is sampled
TORN = 0.1  # the fraction of malformed requests that are cut off in the middle


class Case(NamedTuple):
    """A heat map, and onnxpool's outputs for it when called directly."""

    heat: NDArray[np.float32]
    expected: dict[str, NDArray[Any]]


def cases(seed: int) -> list[Case]:
    """Heat maps of each shape."""
    rng = np.random.default_rng(seed)
    heats = [rng.standard_normal(shape, np.float32) for shape in SHAPES for _ in range(4)]
    return [Case(heat, peaks.direct(heat)) for heat in heats]


class Tally:
    """The observations of the clients."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seconds: list[float] = []
        self.refused: Counter[str] = Counter()
        self.torn = 0
        self.wrong: list[str] = []


def ask(client: InferenceServerClient, case: Case, rng: random.Random) -> list[str]:
    """Request outputs in a random form, and return the names of those whose bits differ from the direct call."""
    tensor = InferInput("heat", case.heat.shape, "FP32")
    tensor.set_data_from_numpy(case.heat, binary_data=case.heat.size > 2000 or rng.random() < 0.7)
    asked = rng.sample(list(case.expected), rng.randint(0, len(case.expected)))
    outputs = [InferRequestedOutput(name, binary_data=rng.random() < 0.7) for name in asked]
    result = client.infer("peaks", [tensor], outputs=outputs or None)
    found = {name: result.as_numpy(name) for name in asked or case.expected}
    return [name for name, array in found.items()
            if array.shape != case.expected[name].shape or array.tobytes() != case.expected[name].tobytes()]


def refused(address: tuple[str, int], request: malformed.Malformed) -> str | None:
    """Send a malformed request, and return what is wrong with the answer, if anything."""
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request(request.method, request.path, request.body, request.headers)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    try:
        error = json.loads(text)["error"]
    except (ValueError, KeyError):
        error = ""
    right = response.status == request.status and request.text in error
    return None if right else f"{request.kind}: {response.status} {text[:200]}"


def work(url: str, until: float, share: float, seed: int, tally: Tally) -> None:
    """One client."""
    rng, place = random.Random(seed), urlsplit(url)
    address = (place.hostname or "", place.port or 80)
    mine = cases(seed)
    client = InferenceServerClient(place.netloc)
    while time.monotonic() < until:
        begin, kind, wrong = time.perf_counter(), "", []
        try:
            if rng.random() >= share:
                wrong = ask(client, rng.choice(mine), rng)
            elif rng.random() < TORN:
                kind = "torn"
                malformed.tear(address, rng.choice(malformed.TORN))
            else:
                request = rng.choice(malformed.REQUESTS)
                kind = request.kind
                wrong = [text for text in [refused(address, request)] if text]
        except Exception as error:  # any exception is a finding
            wrong = [f"{kind or 'good'}: {type(error).__name__}: {error}"]
        with tally.lock:
            tally.wrong += wrong
            if not kind:
                tally.seconds.append(time.perf_counter() - begin)
            elif kind == "torn":
                tally.torn += 1
            else:
                tally.refused[kind] += 1
    client.close()


def measured(url: str) -> dict[str, float]:
    """The server's own metrics that have no labels."""
    with urllib.request.urlopen(url + "/metrics", timeout=30) as response:
        text = response.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}


@contextmanager
def started(*options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server in its own process, with the limits that the malformed requests expect; yields the process and its URL.
    """
    command = [sys.executable, str(Path(__file__).with_name("server.py")), "--port", "0", *malformed.OPTIONS, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if "http" not in line:
                raise RuntimeError(f"the server did not start: {line!r}")
            yield process, line.split()[-1]
            if process.poll() is not None:
                raise RuntimeError(f"the server died: {process.returncode}")
        finally:
            process.terminate()


@contextmanager
def server(*options: str) -> Iterator[str]:
    """A server as above; yields its URL."""
    with started(*options) as (_, url):
        yield url


def run(url: str, seconds: float, clients: int, share: float, seed: int = 0) -> dict[str, Any]:
    """Put load on a server and report: times in milliseconds, memory before and at each sample."""
    tally, begin = Tally(), time.monotonic()
    before = measured(url)
    threads = [threading.Thread(target=work, args=(url, begin + seconds, share, seed + index, tally))
               for index in range(clients)]
    for thread in threads:
        thread.start()
    looks = [before]
    for look in range(1, LOOKS):
        time.sleep(max(begin + seconds * look / LOOKS - time.monotonic(), 0))
        looks.append(measured(url))
    for thread in threads:
        thread.join()
    looks.append(measured(url))
    after = looks[-1]
    took = time.monotonic() - begin
    p50, p99 = np.percentile(np.array(tally.seconds) * 1e3, [50, 99])
    return {
        "seconds": round(took, 1), "clients": clients, "answered": len(tally.seconds),
        "refused": sum(tally.refused.values()), "torn": tally.torn,
        "requests_per_second": round((len(tally.seconds) + sum(tally.refused.values()) + tally.torn) / took, 1),
        "p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2),
        "memory_mib": [round(look["process_resident_memory_bytes"] / 2**20, 1) for look in looks],
        "files_before": int(before["process_open_fds"]), "files_after": int(after["process_open_fds"]),
        "under_way_after": int(after["inference_requests_under_way"]),
        "refused_by_kind": dict(tally.refused.most_common()), "wrong": tally.wrong,
    }


def main() -> int:
    """Run the load that the command line specifies."""
    parser = argparse.ArgumentParser(description="Put load on the server; the options after -- are the server's.",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--malformed", type=float, default=0.3, help="fraction of malformed requests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("options", nargs="*", help="options of the server, after --")
    options = parser.parse_args()
    with server(*options.options) as url:
        report = run(url, options.seconds, options.clients, options.malformed, options.seed)
    print(json.dumps(report, indent=1))
    return bool(report["wrong"])


if __name__ == "__main__":
    sys.exit(main())
