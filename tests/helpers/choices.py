"""The loops and tiles that are chosen for some pools, in a file for each instruction set.

    python tests/helpers/choices.py --write

Results do not depend on these choices, but speed and memory do. No other test notices if a pool takes another
loop by accident. Where a choice is changed on purpose, write the file again, and read what else has changed.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import onnxpool
from onnxpool import kernels
from onnxpool.planning import layout

FILE = Path(__file__).parent / "data" / "choices.txt"
# Batch, channels and spatial sizes, and the windows.
POOLS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((1, 64, 112, 112), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    ((1, 288, 35, 35), {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
    ((2, 3, 56, 57), {"kernel_shape": (2, 2), "strides": (2, 2)}),
    ((1, 2048, 7, 7), {"kernel_shape": (7, 7)}),
    ((8, 512, 13, 13), {"kernel_shape": (5, 5), "pads": (2, 2, 2, 2)}),
    ((1, 3, 300, 301), {"kernel_shape": (31, 31), "pads": (15, 15, 15, 15)}),
    ((1, 16, 65, 65), {"kernel_shape": (3, 3), "dilations": (4, 4), "pads": (4, 4, 4, 4)}),
    ((1, 16, 12, 28, 28), {"kernel_shape": (3, 3, 3), "strides": (2, 2, 2), "pads": (1,) * 6}),
    ((2, 5, 16000), {"kernel_shape": (400,), "strides": (160,)}),
    ((1, 40, 100), {"kernel_shape": (64,), "pads": (32, 31)}),
    ((1, 1, 400_000), {"kernel_shape": (300_000,)}),
    ((1, 1, 40, 40), {"kernel_shape": (1, 20), "strides": (1, 20)}),
    ((3, 2, 9), {"kernel_shape": (2,)}),
)
OPERATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "MaxPool": (onnxpool.MaxPool, {}),
    "MaxPool with Indices": (onnxpool.MaxPool, {"return_indices": True}),
    "MinPool without NaNs": (onnxpool.MinPool, {"skipna": True}),
    "AveragePool": (onnxpool.AveragePool, {}),
    "LpPool": (onnxpool.LpPool, {"p": 3}),
    "QLinearAveragePool": (onnxpool.QLinearAveragePool, {}),
    "GlobalAveragePool": (onnxpool.GlobalAveragePool, {}),
    "GlobalLpPool": (onnxpool.GlobalLpPool, {}),
}
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64,
          "int8": np.int8, "uint8": np.uint8}
MEMORY = ("first", "last", "first, every second column", "last, every second channel")


def pools() -> Iterator[tuple[str, Any, Any]]:
    """Plans with arrays, which are not read, and their names. Dtypes and memory take turns."""
    turns = itertools.cycle(itertools.product(MEMORY, DTYPES))
    for operator, (shape, windows), _ in itertools.product(OPERATORS, POOLS, range(2)):
        kind, attributes = OPERATORS[operator]
        memory, dtype = next(turns)
        if kind is onnxpool.QLinearAveragePool:
            if "dilations" in windows:
                continue
            dtype = "uint8"
        elif "int8" in dtype and kind is not onnxpool.MaxPool:
            dtype = "float32"
        if operator.startswith("Global"):
            windows = {}
        last = memory.startswith("last")
        sizes = (shape[0], *shape[2:], shape[1]) if last else shape
        step = 2 if "second" in memory else 1
        x = np.empty((*sizes[:-1], sizes[-1] * step), DTYPES[dtype])[..., ::step]
        places = {"channels_last": last} if kind is not onnxpool.MinPool else {
            "axes": tuple(range(1, x.ndim - 1) if last else range(2, x.ndim))}
        plan = kind(**windows, **attributes, **places).plan(x.shape, x.dtype)
        yield f"{operator}, {dtype} {'x'.join(map(str, shape))}, channels {memory}{': ' * bool(windows)}" + ", ".join(
            f"{key} {'x'.join(map(str, value))}" for key, value in windows.items()), plan, x


def tile_of(tile: Any) -> str:
    """The items, windows and lanes of a tile."""
    return "x".join(map(str, (tile.items, *tile.windows, tile.lanes)))


def choice_of(plan: Any, x: Any) -> str:
    """The form of a problem, as sizes of groups, items and lanes; and the loops, each with the tiles of one thread and
    of several."""
    y = np.empty(plan.output_shape, plan.result_dtype)
    indices = np.empty(plan.output_shape, np.int64) if plan.reduction.indexed else None
    setup = layout.setup_of(plan.request, *plan._memory(x, y, indices))
    form = setup.form
    sizes = "x".join(str(dim.size) for dim in form.groups) or "1", form.item.size, form.lane.size
    stages = []
    for stage in setup.stages:
        flags = "".join(name[0] for name in ("by_axis", "gathers", "shares", "divides") if getattr(stage, name))
        stages.append(" ".join(filter(None, (stage.unit, flags, tile_of(stage.tile), tile_of(stage.divided)))))
    return f"{' '.join(map(str, sizes))}{' apart' * form.apart}; {'; '.join(stages)}"


def choices() -> dict[str, str]:
    """What is chosen with the instruction set of this process."""
    return {name: choice_of(plan, x) for name, plan, x in pools()}


def pinned() -> dict[str, dict[str, str]]:
    """The choices of the file, for each instruction set."""
    found: dict[str, dict[str, str]] = {}
    name = ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            levels, _, choice = line.strip().partition(": ")
            for level in levels.split():
                found.setdefault(level, {})[name] = choice
        elif not line.startswith("#"):
            name = line
    return found


def write() -> None:
    """Write the file, with a process for each instruction set. Lines of other instruction sets stay."""
    levels: dict[str, dict[str, list[str]]] = {}  # with each choice for a pool
    for level, kept in pinned().items():
        for name, choice in kept.items() if level not in kernels.available() else ():
            levels.setdefault(name, {}).setdefault(choice, []).append(level)
    for level in kernels.available():
        done = subprocess.run([sys.executable, __file__], text=True, capture_output=True, check=True,
                              env=os.environ | {"ONNXPOOL_ISA": level})
        for line in done.stdout.splitlines():
            name, choice = line.split("\t")
            levels.setdefault(name, {}).setdefault(choice, []).append(level)
    lines = ["# Written by: python tests/helpers/choices.py --write"]
    for name, own in levels.items():
        lines += [name, *(f"  {' '.join(among)}: {choice}" for choice, among in own.items())]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        for name, choice in choices().items():
            print(name, choice, sep="\t")
