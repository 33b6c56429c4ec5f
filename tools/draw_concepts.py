"""
Draw the pictures of the pages in docs/concepts, with `Plan.explain().svg()`: docs/images/concepts/*.svg.

After a change of the pictures, run python tools/draw_concepts.py with onnxpool installed, and commit the files that it
writes. With --check, it writes nothing, and exits with 1 if a committed file is stale.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import onnxpool

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "concepts"

# Name of the file, operator, its attributes, and the shape of its input.
PICTURES: tuple[tuple[str, str, dict[str, Any], tuple[int, ...]], ...] = (
    ("windows", "MaxPool", {"kernel_shape": 3, "strides": 2, "axes": 0}, (9,)),
    ("remainder", "MaxPool", {"kernel_shape": 3, "strides": 3, "axes": 0}, (8,)),
    ("pads", "MaxPool", {"kernel_shape": 3, "pads": 1, "axes": 0}, (6,)),
    ("same_upper", "MaxPool", {"kernel_shape": 2, "auto_pad": "SAME_UPPER", "axes": 0}, (5,)),
    ("same_lower", "MaxPool", {"kernel_shape": 2, "auto_pad": "SAME_LOWER", "axes": 0}, (5,)),
    ("ceil_mode", "AveragePool", {"kernel_shape": 3, "strides": 2, "ceil_mode": 1, "axes": 0}, (6,)),
    ("dropped", "AveragePool", {"kernel_shape": 3, "strides": 3, "pads": 1, "ceil_mode": 1, "axes": 0}, (2,)),
    ("divisor", "AveragePool", {"kernel_shape": 3, "pads": 1, "axes": 0}, (5,)),
    ("counted", "AveragePool", {"kernel_shape": 3, "pads": 1, "count_include_pad": 1, "axes": 0}, (5,)),
    ("overhang", "AveragePool", {"kernel_shape": 3, "strides": 2, "pads": (1, 0), "ceil_mode": 1,
                                 "count_include_pad": 1, "axes": 0}, (5,)),
    ("dilations", "MaxPool", {"kernel_shape": 3, "dilations": 2, "axes": 0}, (9,)),
)


def drawn(operator: str, attributes: dict[str, Any], shape: tuple[int, ...]) -> str:
    """The picture of an operator for an input of float32."""
    return f"{getattr(onnxpool, operator)(**attributes).plan(shape, 'float32').explain().svg()}\n"


def main() -> int:
    """Write the pictures, or check them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="exit with 1 if a committed file is stale")
    check = options.parse_args().check
    FOLDER.mkdir(parents=True, exist_ok=True)
    stale = 0
    for name, operator, attributes, shape in PICTURES:
        file, made = FOLDER / f"{name}.svg", drawn(operator, attributes, shape)
        if file.exists() and file.read_text(encoding="utf-8") == made:
            continue
        stale += 1
        if check:
            print(f"{file.name} is stale: run python tools/{Path(__file__).name}", file=sys.stderr)
        else:
            file.write_text(made, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
