"""
Draw the figures of docs/performance.md and README.md from measured data: docs/images/figures/*.svg.

    python tools/draw_figures.py [--check]

The data are the rows of benchmarks/results/zen5.md, which `benchmarks.race` writes, and
benchmarks/results/figures.json, which `python -m benchmarks.compare.figures` writes. Each figure contains a digest of
its data. --check writes nothing, but reports figures whose data have changed. Figures have colours for light and dark
pages, and are narrow, so that their text is readable on a phone. The script needs matplotlib.
"""

import argparse
import hashlib
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.race import pages  # noqa: E402
from benchmarks.race.rounds import COPY  # noqa: E402
from benchmarks.workloads import WORKLOADS, ZOO  # noqa: E402
from tools.dark import adapted  # noqa: E402

FOLDER = ROOT / "docs" / "images" / "figures"
RACE, MEASURED = ROOT / "benchmarks" / "results" / "zen5.md", ROOT / "benchmarks" / "results" / "figures.json"
OURS, PEER, THIRD, FOURTH, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#777777"
STYLES = {"onnxpool": (OURS, "o"), "OpenCV": (PEER, "s"), "SciPy": (THIRD, "^"), "onnxruntime": (FOURTH, "D"),
          "NumPy": (THIRD, "^"), "torch": ("#e69f00", "v")}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8")
MACHINE = "one thread of an AMD EPYC (Zen 5, AVX-512)"
ITEM = 4  # bytes of a float32
WIDTH = 5.6  # inches


class Row(NamedTuple):
    """A row of the benchmark: times in microseconds."""

    workload: str
    dtype: str
    channels: str
    threads: int
    ours: float
    peer: float  # the fastest
    copy: float


def race() -> list[Row]:
    """All rows that have a peer, about layers of the zoo."""
    return [Row(row.workload, row.dtype, row.channels, row.threads, row.ours, row.fastest, row.times[COPY])
            for row in pages.rows(RACE) if row.workload in ZOO and row.fastest is not None and row.start == "numpy"]


def kibibytes(row: Row) -> float:
    """The size of the input of a row."""
    size = 1
    for length in WORKLOADS[row.workload].shape:
        size *= length
    return size * ITEM / 1024


def plain(axis: Any) -> None:
    """Numbers without powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def speed() -> Figure:
    """The speed-up over the fastest peer: a dot for each layer."""
    rows = [row for row in race() if row.threads == 1]
    figure, ax = plt.subplots(figsize=(WIDTH, 4), layout="constrained")
    for place, dtype in enumerate(DTYPES):
        for channels, shift, colour in (("first", -0.18, OURS), ("last", 0.18, PEER)):
            ratios = sorted(row.peer / row.ours for row in rows if (row.dtype, row.channels) == (dtype, channels))
            spread = [place + shift + 0.13 * ((7 * i) % 11 / 5 - 1) for i in range(len(ratios))]
            ax.scatter(spread, ratios, s=7, color=colour, alpha=0.55, linewidths=0,
                       label=f"channels {channels}" if place == 0 else None)
            middle = statistics.median(ratios)
            ax.plot([place + shift - 0.16, place + shift + 0.16], [middle, middle], color="black", linewidth=2.5)
    ax.axhline(1, color=GREY, linewidth=1)
    ax.set_yscale("log", base=2)
    ax.set_ylim(0.4, 100)
    ax.set_yticks([0.5, 1, 2, 4, 8, 16, 32, 64], ["0.5x", "1x", "2x", "4x", "8x", "16x", "32x", "64x"])
    ax.set_xticks(range(len(DTYPES)), DTYPES)
    ax.set_title(f"Speed-up over the fastest peer,\n{MACHINE}\nA dot for each pooling layer of about 60 networks; "
                 "bars are medians", fontsize=10, loc="left")
    ax.legend(loc="upper left", fontsize=9, markerscale=2)
    return figure


def roof() -> Figure:
    """The speed of onnxpool and of the fastest peer relative to the roofline, a copy of the same bytes."""
    figure, axes = plt.subplots(2, 1, figsize=(WIDTH, 7), sharex=True, sharey=True, layout="constrained")
    for ax, channels in zip(axes, ("first", "last"), strict=True):
        rows = [row for row in race() if (row.dtype, row.threads, row.channels) == ("float32", 1, channels)]
        sizes = [kibibytes(row) for row in rows]
        for row, size in zip(rows, sizes, strict=True):
            ax.plot([size, size], [100 * row.copy / row.ours, 100 * row.copy / row.peer], color="#dddddd",
                    linewidth=0.8, zorder=1)
        ax.scatter(sizes, [100 * row.copy / row.peer for row in rows], s=14, marker="s", color=PEER, linewidths=0,
                   label="fastest peer", zorder=2)
        ax.scatter(sizes, [100 * row.copy / row.ours for row in rows], s=14, color=OURS, linewidths=0, label="onnxpool",
                   zorder=3)
        ax.axhline(100, color="black", linewidth=1.5)
        ax.text(0.02, 0.95, "roofline (100 %): a copy of the bytes read and written", fontsize=9,
                transform=ax.transAxes)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(f"channels {channels}, float32", fontsize=10)
        ax.set_ylim(0.1, 500)
        ax.set_yticks([0.2, 1, 5, 20, 100], ["0.2 %", "1 %", "5 %", "20 %", "100 %"])
        plain(ax.xaxis)
        ax.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
        ax.set_ylabel("speed, as a share of the copy")
    axes[1].set_xlabel("input in KiB")
    axes[0].legend(loc="lower right", fontsize=9)
    figure.suptitle(f"Pooling layers of about 60 networks,\n{MACHINE}", fontsize=10, x=0.01, horizontalalignment="left")
    return figure


def window_size() -> Figure:
    """Time against the size of the window."""
    data = json.loads(MEASURED.read_text(encoding="utf-8"))["windows"]
    figure, axes = plt.subplots(2, 1, figsize=(WIDTH, 7), sharex=True, sharey=True, layout="constrained")
    for ax, kind in zip(axes, ("maxima", "means"), strict=True):
        for name in ("onnxpool", "OpenCV", "SciPy", "onnxruntime"):
            points = [(row["k"], row["us"][name] / 1000) for row in data if row["kind"] == kind and name in row["us"]]
            colour, marker = STYLES[name]
            ax.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=name,
                    linewidth=2 if name == "onnxpool" else 1)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks([3, 5, 7, 11, 15, 23, 31, 47, 63])
        ax.set_title(f"{kind} of k x k windows", fontsize=10)
        plain(ax.xaxis)
        plain(ax.yaxis)
        ax.set_ylabel("ms")
    axes[1].set_xlabel("k")
    axes[1].legend(loc="upper right", fontsize=9, bbox_to_anchor=(1, 0.72))
    figure.suptitle(f"A window around each pixel of 512 x 512 float32,\n{MACHINE}", fontsize=10, x=0.01,
                    horizontalalignment="left")
    return figure


def threads() -> Figure:
    """The gain of a second thread, by size."""
    rows = race()
    one = {row[:3]: row.ours for row in rows if row.threads == 1}
    figure, ax = plt.subplots(figsize=(WIDTH, 4), layout="constrained")
    for channels, colour, marker in (("first", OURS, "o"), ("last", PEER, "s")):
        points = [(kibibytes(row), one[row[:3]] / row.ours) for row in rows
                  if row.threads == 2 and row.dtype == "float32" and row.channels == channels]
        ax.scatter(*zip(*points, strict=True), s=16, color=colour, marker=marker, linewidths=0, alpha=0.8,
                   label=f"channels {channels}")
    ax.axhline(1, color=GREY, linewidth=1)
    ax.axhline(2, color="black", linewidth=1.5)
    ax.axvline(512, color=GREY, linewidth=1, linestyle=":")
    ax.text(500, 2.6, "one thread below 512 KiB", fontsize=9, horizontalalignment="right")
    ax.set_xscale("log")
    ax.set_xlabel("input in KiB")
    ax.set_ylim(0.7, 2.8)
    ax.set_yticks([1, 1.5, 2, 2.5], ["1x", "1.5x", "2x", "2.5x"])
    plain(ax.xaxis)
    ax.legend(loc="lower right", fontsize=9, bbox_to_anchor=(1, 0.05))
    ax.set_title("Speed-up by a second thread, by the size of the input, float32\n"
                 "Pooling layers of about 60 networks,\ntwo virtual cores of an AMD EPYC (Zen 5, AVX-512)",
                 fontsize=10, loc="left")
    return figure


def accuracy() -> Figure:
    """The error of a mean, by the number of elements."""
    data = json.loads(MEASURED.read_text(encoding="utf-8"))["accuracy"]
    figure, ax = plt.subplots(figsize=(WIDTH, 4), layout="constrained")
    for name in ("onnxruntime", "OpenCV", "torch", "NumPy", "onnxpool"):
        colour, marker = STYLES[name]
        ax.plot([row["n"] for row in data], [row["units"][name] for row in data], color=colour, marker=marker,
                markersize=5, label=name, linewidth=2 if name == "onnxpool" else 1)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("number of elements")
    ax.set_ylabel("error in half ulps of 0.5, which are 3e-8")
    plain(ax.yaxis)
    ax.legend(loc="upper left", fontsize=9)
    ax.set_title("Largest error of the mean of n float32 numbers in [0, 1)", fontsize=10, loc="left")
    return figure


FIGURES: dict[str, tuple[Callable[[], Figure], Path]] = {
    "speed": (speed, RACE), "roof": (roof, RACE), "threads": (threads, RACE), "window_size": (window_size, MEASURED),
    "accuracy": (accuracy, MEASURED)}


def digest(data: Path) -> str:
    """A digest of the data of a figure."""
    return f"data {hashlib.sha256(data.read_bytes()).hexdigest()[:16]}"


def draw(name: str, file: Path) -> None:
    """Draw a figure into a file."""
    function, data = FIGURES[name]
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif",
                         "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"], "axes.spines.top": False,
                         "axes.spines.right": False})
    figure = function()
    figure.savefig(file, facecolor="white", metadata={"Date": None, "Creator": f"tools/{Path(__file__).name}",
                                                      "Description": digest(data)})
    plt.close(figure)
    lines = adapted(file.read_text(encoding="utf-8")).splitlines()
    file.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def main() -> int:
    """Draw the figures, or check that they show the committed data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="draw nothing; exit with 1 if a figure shows other data")
    check = parser.parse_args().check
    FOLDER.mkdir(parents=True, exist_ok=True)
    stale = [name for name, (_, data) in FIGURES.items()
             if not (FOLDER / f"{name}.svg").exists()
             or digest(data) not in (FOLDER / f"{name}.svg").read_text(encoding="utf-8")]
    if check:
        for name in stale:
            print(f"{name}.svg shows other data: run python tools/{Path(__file__).name}", file=sys.stderr)
        return 1 if stale else 0
    for name in FIGURES:
        draw(name, FOLDER / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
