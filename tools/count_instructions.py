"""Count the instructions per result of the loops of the zoo, on aarch64 and x86-64, in QEMU.

    CACHE=cache .ci/aarch64 tests/project/test_wheel.py  # or any other tests
    python tools/count_instructions.py cache/aarch64

It prints a table of geometric means over the layers of the zoo, made smaller, on one thread. A count is no time:
processors execute several instructions per cycle, some of them slower than others. It needs gcc and QEMU's emulators
with plugins: `qemu-x86_64` and `qemu-aarch64`, in Debian's package qemu-user.
"""

import argparse
import gc
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from math import prod
from pathlib import Path
from statistics import geometric_mean
from typing import Any

HERE = Path(__file__).resolve().parent
MARK = -24301  # as in count_instructions.c
MOST = 400_000  # elements of a layer, on a few images if it is small: a call has about 10,000 instructions besides
DTYPES = {"MaxPool": ["float32", "float16", "bfloat16", "float64", "uint8"], "QLinear": ["uint8"]}
FLOATS = ["float32", "float16", "bfloat16", "float64"]
LAYOUTS = {"first": "channels first", "last": "channels last"}
KERNELS = {"aarch64": "baseline", "x86-64": "baseline", "AVX2": "x86_v3"}
Row = tuple[str, str, str]  # an operator, a dtype and a layout


def smaller(shape: tuple[int, ...], attributes: dict[str, Any]) -> tuple[int, ...]:
    """The shape of a layer with fewer places along the first axis, and then with fewer channels."""
    channels, first, *others = shape
    kernel = attributes.get("kernel_shape", [first])[0]
    if kernel < first:
        first = min(first, max(MOST // (channels * prod(others)), 3 * kernel, 8))
    return max(1, min(channels, MOST // (first * prod(others)))), first, *others


def mark() -> None:
    try:
        os.close(MARK)
    except OSError:
        return


def calls() -> Iterator[tuple[Row, int]]:
    """Run every layer, its second time between two marks: what ran, and its number of results."""
    import numpy as np

    import onnxpool

    sys.path.insert(0, str(HERE.parent))
    from benchmarks import workloads, zoo

    gc.disable()
    for layer in zoo.LAYERS.values():
        kind = next((name for name in DTYPES if layer.operator.startswith(name)), "")
        for dtype, layout in itertools.product(DTYPES.get(kind, FLOATS), LAYOUTS):
            shape = smaller(layer.shape, layer.attributes)
            shape = max(1, MOST // prod(shape)), *shape
            x = workloads.lay(workloads.array(shape, dtype), layout, "")
            inputs = x, *workloads.further(layer.operator, x, shape, layout)
            operator = getattr(onnxpool, layer.operator)(**layer.attributes, channels_last=layout == "last")
            plan = operator.plan(x.shape, x.dtype)
            out = plan(*inputs, num_threads=1)
            mark()
            plan(*inputs, out=out, num_threads=1)
            mark()
            yield (layer.operator, dtype, layout), int(np.size(out))


def count(name: str, emulated: Path) -> dict[Row, float]:
    """The instructions per result for a name in `KERNELS`, as geometric means over layers."""
    with tempfile.TemporaryDirectory() as folder:
        plugin, marks = Path(folder, "count.so"), Path(folder, "marks")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE / "count_instructions.c", "-o", plugin], check=True)
        command: list[Any] = ["qemu-x86_64", "-cpu", "max", sys.executable]
        if name == "aarch64":
            root = emulated / "root"
            python = root / "usr" / "bin" / os.readlink(root / "usr" / "bin" / "python3")
            command = ["qemu-aarch64", "-L", root, "-0", emulated / "venv" / "bin" / "python", python, "-E"]
        command[1:1] = ["-plugin", f"{plugin},marks={marks}"]
        run = subprocess.run([*command, __file__, "--inside"], env={**os.environ, "ONNXPOOL_ISA": KERNELS[name]},
                             check=True, stdout=subprocess.PIPE, text=True)
        counts = [int(line) for line in marks.read_text().split()]
    ran = json.loads(run.stdout)
    spent = [after - before for before, after in zip(counts[::2], counts[1::2], strict=True)]
    found = defaultdict(list)
    for (row, results), instructions in zip(ran, spent, strict=True):
        found[tuple(row)].append(instructions / results)
    return {row: geometric_mean(values) for row, values in found.items()}


def readable(value: float) -> str:
    """Three digits, without an exponent."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:#.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emulated", type=Path, nargs="?", help="the folder in which .ci/aarch64 has built the library")
    parser.add_argument("--inside", action="store_true", help="run the layers: what the emulator executes")
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(list(calls())))
        return
    if args.emulated is None:
        parser.error("name the folder in which .ci/aarch64 has built the library")
    counts = {name: count(name, args.emulated.resolve()) for name in KERNELS}
    heads = [f"{layout}: {name}" for layout in LAYOUTS.values() for name in KERNELS]
    print("| operator | dtype |", " | ".join(heads), "|")
    print("|---" * (2 + len(heads)) + "|")
    for operator, dtype in dict.fromkeys(row[:2] for row in counts["aarch64"]):
        cells = [readable(counts[name][operator, dtype, layout]) for layout in LAYOUTS for name in KERNELS]
        print(f"| {operator} | {dtype} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
