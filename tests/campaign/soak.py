"""The server under good, wrong, torn, slow and huge requests: right answers, flat memory, descriptors and threads."""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .figures import Figure, all_of, none

QUICK, FULL = 14.0, 600.0  # seconds
CLIENTS, SHARE = 4, 0.3  # of tritonclient, and how much of their requests is wrong or torn
WARM = 0.25  # of the time, in which caches and the heaps of threads grow
GROWTH = 8  # MiB: a body and a tensor of the largest size for each thread that holds some, and gaps in their heaps
PIECES = 20  # of a slow body
LOOKS = 50  # at the process
TICK, PAUSE, AFTER = 0.1, 2.0, 5.0  # a sleep of TICK that takes over PAUSE s excuses faults of AFTER s: we were stopped


class Others:
    """Clients that are slow or send too much, and what they have seen."""

    def __init__(self, url: str, until: float) -> None:
        import malformed
        import numpy as np
        import peaks

        place = urlsplit(url)
        self.address, self.until = (place.hostname or "", place.port or 80), until
        self.lock, self.wrong = threading.Lock(), list[str]()
        self.counts: Counter[str] = Counter()
        self.malformed = malformed
        heat = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
        self.right = {name: y.ravel().tolist() for name, y in peaks.direct(heat).items()}

    def answer(self, body: bytes | Iterator[bytes], headers: dict[str, str], pause: float = 0.0) -> tuple[int, Any]:
        """The status and the document of the answer to a request, which is sent in pieces if there are pauses."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            if pause and isinstance(body, bytes):
                connection.putrequest("POST", self.malformed.INFER)
                for name, value in headers.items():
                    connection.putheader(name, value)
                connection.endheaders()
                size = -(-len(body) // PIECES)
                for at in range(0, len(body), size):
                    connection.send(body[at:at + size])
                    time.sleep(pause)
            else:
                connection.request("POST", self.malformed.INFER, body, headers,
                                   encode_chunked="Transfer-Encoding" in headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def slow(self) -> str:
        """A good request that takes seconds to arrive."""
        good = self.malformed.GOOD
        status, found = self.answer(good, {"Content-Length": str(len(good))}, pause=2 / PIECES)
        outputs = {output["name"]: output["data"] for output in found.get("outputs", [])}
        return "" if (status, outputs) == (200, self.right) else f"{status} {found}"

    def stuck(self) -> str:
        """A request whose body never ends."""
        good = self.malformed.GOOD
        status, found = self.answer(good[:-1], {"Content-Length": str(len(good))}, pause=0.01)
        return "" if status == 408 else f"{status} {found}"

    def huge(self) -> str:
        """A body of 48 MiB, which declares its length."""
        status, found = self.answer(bytes(48 << 20), {})
        return "" if status == 413 else f"{status} {found}"

    def endless(self) -> str:
        """A body of 32 MiB in chunks, which declares no length."""
        chunks = (bytes(1 << 20) for _ in range(32))
        status, found = self.answer(chunks, {"Transfer-Encoding": "chunked"})
        return "" if status == 413 else f"{status} {found}"

    def full(self) -> str:
        """A tensor of the largest size that is accepted."""
        size = self.malformed.LIMITS.tensor_bytes
        header = self.malformed.listed(shape=[1, 1, 256, size // 1024], data=None,
                                       parameters={"binary_data_size": size})
        document = json.loads(header) | {"outputs": [{"name": "energy"}]}
        header = json.dumps(document).encode()
        status, found = self.answer(header + bytes(size), {self.malformed.HEADER_LENGTH: str(len(header))})
        return "" if status == 200 and found["outputs"][0]["data"] == [0.0] else f"{status} {found}"

    def work(self, kinds: tuple[Callable[[], str], ...], pause: float, seed: int) -> None:
        """Send requests of some kinds until the time is over."""
        rng = random.Random(seed)
        while time.monotonic() < self.until:
            kind = rng.choice(kinds)
            try:
                fault = kind()
            except Exception as error:  # any exception is a finding
                fault = f"{type(error).__name__}: {error}"
            with self.lock:
                self.counts[kind.__name__] += 1
                self.wrong += [f"{kind.__name__}: {fault[:200]}"] if fault else []
            time.sleep(pause)


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Put load on a server, and look at its process."""
    import load
    import numpy as np

    seconds = QUICK if quick else FULL
    with load.started() as (process, url):
        looks: list[tuple[float, float, int]] = []

        def look() -> None:
            found = load.measured(url)
            threads = len(os.listdir(Path("/proc", str(process.pid), "task")))
            looks.append((found["process_resident_memory_bytes"] / 2**20, found["process_open_fds"], threads))

        look()
        begin = time.monotonic()
        tally, others = load.Tally(), Others(url, begin + seconds)
        jobs: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            (load.work, (url, begin + seconds, SHARE, seed + client, tally)) for client in range(CLIENTS)]
        jobs += [(others.work, ((others.slow, others.slow, others.stuck), 0.0, seed)) for _ in range(2)]
        jobs += [(others.work, ((others.huge, others.endless, others.full), 0.5, seed))]
        threads = [threading.Thread(target=target, args=arguments) for target, arguments in jobs]
        for thread in threads:
            thread.start()
        excused, ended, seen = 0, -math.inf, 0
        while time.monotonic() < begin + seconds:
            tick = time.monotonic()
            time.sleep(TICK)
            now, count = time.monotonic(), len(tally.wrong) + len(others.wrong)
            if now - tick > PAUSE:
                ended = now
            if now < ended + AFTER:
                excused += count - seen
            seen = count
            if now > begin + seconds * len(looks) / LOOKS:
                look()
        for thread in threads:
            thread.join()
        time.sleep(1)  # connections are closed
        look()
        left = load.measured(url)["inference_requests_under_way"]
        lived = process.poll() is None
    wrong = tally.wrong + others.wrong
    faults = len(wrong) - excused
    for text in wrong[:20]:
        print(f"  {text}")
    sent = len(tally.seconds) + sum(tally.refused.values()) + tally.torn + others.counts.total()
    kinds = {"good": len(tally.seconds), "refused": sum(tally.refused.values()), "torn": tally.torn, **others.counts}
    note = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    if excused:
        note += f"; {excused} others when all processes had been stopped"
    yield none("wrong answers, and requests without one", faults, sent, "requests", note)
    yield all_of("servers that live and have no requests left", int(lived and not left), 1, "server")
    warm = int(len(looks) * WARM)
    (early, _, few), (late, _, many) = (map(max, zip(*part, strict=True)) for part in (looks[warm:2 * warm],
                                                                                      looks[-warm:]))
    yield Figure("growth of memory", late - early, len(looks), "looks", "MiB", most=GROWTH,
                 note=f"{looks[0][0]:.0f} MiB at the start, at most {early:.0f} early and {late:.0f} late")
    yield none("more descriptors than at the start", max(0, int(looks[-1][1] - looks[0][1])), len(looks), "looks",
               f"at most {max(files for _, files, _ in looks):.0f}")
    yield none("more threads than after warming up", max(0, many - few), len(looks), "looks", f"{few} threads")
    p50, p99 = np.percentile(np.array(tally.seconds) * 1e3, [50, 99])
    yield Figure("99th percentile of good requests", float(p99), len(tally.seconds), "requests", "ms",
                 note=f"median {p50:.1f} ms; the clients share the processors with the server")
