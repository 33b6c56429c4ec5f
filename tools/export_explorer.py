"""
Write docs/explorer/facts.js: the window explorer's facts about onnxpool and other libraries, as JSON.

    python tools/export_explorer.py

The versions of operators come from the table in schemas.py, and the look of pictures from pictures.py. Differences come
from the table of `onnxpool check`, and for torch from `tools/sweep_disagreements.py`. This file defines rows about what
torch and Keras cannot express. The conditions of all rows are also written in JavaScript, in differences.js.
`tests/docs/test_explorer.py` compares the conditions, and facts.js with the output of this script.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from onnxpool import pictures
from onnxpool.onnx import cases, disagreements
from onnxpool.onnx.cases import AVERAGE, MAXIMUM, NORM, OPENVINO, ORT, POOLS, Case, Disagreement
from onnxpool.onnx.derived import DERIVED
from onnxpool.onnx.disagreements import DISAGREEMENTS
from onnxpool.schemas import LATEST, SCHEMAS
from tools.sweep_disagreements import TORCH, WITNESSES

FILE = Path(__file__).resolve().parents[1] / "docs" / "explorer" / "facts.js"
KERAS = "Keras"
RUNTIMES = (TORCH, KERAS, OPENVINO, ORT)
ATTRIBUTES = ("kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode", "count_include_pad")
OF_OTHER_NODES = ("torch-norm-sign", "torch-empty-indices", "torch-nan-indices")  # a p other than 2, or Indices


def counts(case: Case) -> bool:
    """Whether padding counts."""
    return case.has("count_include_pad")


def uneven(case: Case) -> bool:
    """Whether padding at the beginning of an axis differs from that at its end."""
    return any(axis.pads[0] != axis.pads[1] for axis in case.axes)


def padded_first(name: str, runtime: str, condition: Callable[[Case], bool], text: str) -> tuple[Disagreement, ...]:
    """Rows for pads that the input must get first: the value to pad with, or why the mean of a padded input differs."""
    return (
        Disagreement(f"{name}-maximum", runtime, MAXIMUM, condition, f"{text}; pad the input with -inf first"),
        Disagreement(f"{name}-counted", runtime, AVERAGE, lambda case: condition(case) and counts(case),
                     f"{text}; pad the input with zeros first"),
        Disagreement(f"{name}-mean", runtime, AVERAGE, lambda case: condition(case) and not counts(case),
                     f"{text}, and counts the zeros of an input that is padded first"))


# Things that functions of torch and layers of Keras cannot express. Without such a row, their results are the same.
FRAMEWORKS = (
    *padded_first("torch-uneven", TORCH, uneven, "pads both ends of an axis alike"),
    Disagreement(
        "torch-large-pads", TORCH, AVERAGE + MAXIMUM,
        lambda case: not uneven(case) and any(axis.pads[0] > axis.kernel // 2 for axis in case.axes),
        "refuses pads larger than half of the kernel, however large its dilations are"),
    Disagreement(
        "torch-dilations", TORCH, AVERAGE + NORM, lambda case: case.dilated,
        "has no dilations for means and norms"),
    Disagreement(
        "torch-oversized", TORCH, AVERAGE + NORM,
        lambda case: len(case.axes) == 3 and any(axis.kernel > axis.size for axis in case.axes),
        "refuses kernels larger than the input without its padding, for three axes"),
    Disagreement(
        "torch-norm-pads", TORCH, NORM, lambda case: case.padded,
        "has no pads for norms; pad the input with zeros first"),
    Disagreement(
        "torch-default-count", TORCH, AVERAGE, lambda case: case.padded and not case.has("count_include_pad"),
        "counts padding by default; pass count_include_pad=False"),
    *(row for row in WITNESSES if row.name not in OF_OTHER_NODES),
    Disagreement(
        "keras-missing", KERAS, NORM, lambda case: True,
        "has no norms"),
    *padded_first("keras-pads", KERAS, lambda case: case.mode == "NOTSET" and case.padded,
                  "pads only as SAME_UPPER does"),
    Disagreement(
        "keras-lower", KERAS, AVERAGE + MAXIMUM, lambda case: case.mode == "SAME_LOWER" and uneven(case),
        "puts the odd element of padding at the end, as SAME_UPPER does"),
    Disagreement(
        "keras-dilations", KERAS, AVERAGE + MAXIMUM, lambda case: case.dilated,
        "has no dilations"),
    Disagreement(
        "keras-ceil", KERAS, AVERAGE + MAXIMUM, lambda case: not case.same and case.overhangs(),
        "has no ceil_mode, and drops the last window"),
    Disagreement(
        "keras-count", KERAS, AVERAGE, lambda case: case.same and case.padded and case.has("count_include_pad"),
        "never counts padding"),
)
ROWS = tuple(row for row in (*FRAMEWORKS, *DISAGREEMENTS)
             if row.runtime in RUNTIMES and not set(POOLS).isdisjoint(row.operators))


def facts() -> dict[str, object]:
    """The content of the file."""
    return {
        "newest": LATEST[""],
        "operators": {operator: [{"since": version.since,
                                  "attributes": [name for name in ATTRIBUTES if name in version.attributes]}
                                 for version in SCHEMAS[operator].versions] for operator in POOLS},
        "runtimes": RUNTIMES,
        "limits": {name: getattr(module, name) for module, names in (
            (cases, ("MOST_WINDOWS", "LONG_SUM")),
            (disagreements, ("ORT_LARGEST_KERNEL", "ORT_LONGEST_ROW", "ORT_VECTOR"))) for name in names},
        "ort_versions": {operator: DERIVED["onnxruntime"]["kernels"][operator]["float32"][0] for operator in POOLS},
        "rows": [{"name": row.name, "runtime": row.runtime, "text": row.text, "values": row.values,
                  "operators": [operator for operator in POOLS if operator in row.operators],
                  "before": ".".join(map(str, row.before))} for row in ROWS],
        "pictures": {**{name: getattr(pictures, name) for name in (
            "WIDTH", "MARGIN", "LINE", "LETTERS", "CELL", "STRIP", "DIGIT", "CAPTION", "MOST_CELLS", "MOST_ROWS",
            "MOST_RESULTS", "IMAGE_AXES", "COLOURS", "BOXES", "DOTS", "CELLS", "SIGNS", "NAMES", "PLAIN_NAMES")},
            "STYLES": {kind: style._asdict() for kind, style in pictures.STYLES.items()}},
    }


def written(value: object, *outer: object) -> str:
    """JSON with a line for each entry of a table."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(outer) > 1 or not isinstance(value, (dict, list, tuple)) or len(flat) < 100:
        return flat
    pairs = value.items() if isinstance(value, dict) else [(None, one) for one in value]
    lines = [f"{json.dumps(key)}: " * (key is not None) + written(one, *outer, value) for key, one in pairs]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + ",".join(f"\n{' ' * len(outer)} {line}" for line in lines) + end


def text() -> str:
    """The file: JSON within a script, because a page that is opened from a disk cannot load plain JSON."""
    return f"// Written by tools/{Path(__file__).name}.\n\nconst FACTS = {written(facts())};\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
