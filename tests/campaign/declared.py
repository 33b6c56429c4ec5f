"""Explanations and checks of huge declared sizes, as text, JSON and pictures, take little time and are short."""

from __future__ import annotations

import contextlib
import io
import json
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .figures import Figure, none

QUICK, FULL = 400, 20_000
SIZES = (1, 2, 3, 7, 224, 2**16 + 1, 2**20, 2**31, 2**40, 2**40 + 1, 2**62, 2**63 - 1)
SECONDS = 2  # maximum processor time for a plan and everything about it
LETTERS = 16_000  # maximum letters of all texts about a plan, for each axis of the array
SINGLE = ("AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")  # one input, floats


def draw(rng: random.Random) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    """An operator, a shape and attributes, any of which may be huge."""
    operator = rng.choice(SINGLE)
    rank = rng.choice([1, 2, 2, 2, 3, 5, 30])
    most = rng.choice(SIZES)
    shape = tuple(min(most, rng.choice(SIZES)) for _ in range(rank + 2))
    if operator.startswith("Global"):
        return operator, shape, {}

    def several(count: int, least: int) -> list[int]:
        return [rng.choice([least, 1, 2, 3, rng.choice(SIZES), rng.choice(shape)]) for _ in range(count)]

    given: dict[str, Any] = {"kernel_shape": several(rank, 1)}
    if rng.random() < 0.5:
        given["strides"] = several(rank, 1)
    if rng.random() < 0.3:
        given["dilations"] = several(rank, 1)
    if rng.random() < 0.5:
        given["pads"] = [rng.choice([0, 1, 2, 2**20, 2**25, rng.choice(given["kernel_shape"]) - 1])
                         for _ in range(2 * rank)]
    elif rng.random() < 0.5:
        given["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if rng.random() < 0.3:
        given["ceil_mode"] = 1
    if operator == "AveragePool" and rng.random() < 0.5:
        given["count_include_pad"] = 1
    return operator, shape, given


def explained(operator: str, shape: tuple[int, ...], given: dict[str, Any]) -> Iterator[str]:
    """What the library says about a plan: texts, JSON and picture, or why there is none."""
    import onnxpool

    try:
        op = getattr(onnxpool, operator)(**given)
        yield repr(op.output_shape(shape))
        plan = op.plan(shape, "float32")
    except onnxpool.PoolError as error:
        yield str(error)
        return
    explanation = plan.explain()
    yield from (str(explanation), json.dumps(explanation.to_dict()), explanation.svg(), repr(plan))


def checked(path: Path, operator: str, shape: tuple[int, ...], given: dict[str, Any]) -> Iterator[str]:
    """What the commands print about a model of this node."""
    import numpy as np
    from sessions import node_model

    from onnxpool.__main__ import main

    path.write_bytes(node_model(operator, [np.empty(0, np.float32)], given, opset=22, shape=shape).SerializeToString())
    for command in ("check", "explain"):
        for more in ([], ["--json"]):
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
                main([command, str(path), *more])
            yield out.getvalue() + err.getvalue()


def give_up(number: int, frame: Any) -> None:
    """End a call that takes too long."""
    raise TimeoutError(f"more than {2 * SECONDS} s of processor time")


def measured(kind: str, seeds: range, texts: Callable[..., Iterator[str]]) -> Iterator[Figure]:
    """The longest time that texts take, and the largest number of letters."""
    times, lengths, failed, calls = {}, {}, 0, len(seeds)
    for seed in seeds:
        operator, shape, given = draw(random.Random(seed))
        what = f"{operator}{shape}: {given}"
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
        try:
            lengths[what] = sum(map(len, texts(operator, shape, given))) / len(shape)
        except Exception as error:  # anything but a text is a finding
            failed += 1
            print(f"  {what}: {type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        times[what] = time.process_time() - start
    slowest, longest = max(times, key=times.__getitem__), max(lengths, key=lengths.__getitem__)
    yield none(f"{kind} that fail", failed, calls, kind)
    yield Figure(f"slowest of {kind}", times[slowest], calls, kind, "s of processor time", most=SECONDS, note=slowest)
    yield Figure(f"longest of {kind}", lengths[longest], calls, kind, "letters for each axis", most=LETTERS,
                 note=longest)


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Explain plans, then check models."""
    signal.signal(signal.SIGPROF, give_up)
    calls, first = QUICK if quick else FULL, seed * 10**7
    with tempfile.TemporaryDirectory() as folder:
        check = partial(checked, Path(folder) / "model.onnx")
        for kind, count, texts in (("explanations", calls, explained), ("checks", calls // 4, check)):
            [*texts("MaxPool", (1, 1, 4), {"kernel_shape": [2]})]  # import modules before measuring
            yield from measured(kind, range(first, first + count), texts)
