"""Measure how well onnxpool keeps its promises: python -m tests.campaign [PART ...] [--quick] [--seed N]

Each part prints a line for each figure: what was counted, of how many, and what it must be. The exit status is 1 if a
figure misses its target, or if a part could not be run to its end.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import secrets
import sys
import time
import tomllib
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("fuzz", "relations", "accuracy", "malformed", "guards", "routes", "reproducibility",
         "embedding", "sessions", "leaks", "memory", "slowest", "declared", "soak", "tails", "supply", "sanitizers",
         "lines", "mutation", "faults", "conformance")


def add_paths() -> None:
    """Make the tests' modules importable here and in programs that parts start, from the paths that pytest uses."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    paths = [str(ROOT / path) for path in settings["pythonpath"]]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])


def main() -> int:
    """Run the parts that the command line names, or all of them."""
    parts = {name: importlib.import_module(f"tests.campaign.{name}") for name in PARTS}
    known = "\n".join(f"  {name:14} {part.__doc__.splitlines()[0]}" for name, part in parts.items())
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__, epilog=f"parts:\n{known}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="few cases: five minutes for all parts on two cores")
    parser.add_argument("--seed", type=int, help="default: random, and printed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON for each figure")
    options = parser.parse_args()
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    today = datetime.date.today().isoformat()
    missed = 0
    for name in options.parts or PARTS:
        start = time.monotonic()
        print(f"{name}: {parts[name].__doc__.splitlines()[0]} (seed {seed})", flush=True)
        try:
            for figure in parts[name].run(seed, options.quick):
                missed += not figure.holds
                print(f"  {'' if figure.holds else 'MISSED '}{figure}", flush=True)
                if options.json:
                    with options.json.open("a", encoding="utf-8") as file:
                        file.write(figure.to_json(part=name, seed=seed, quick=options.quick, date=today) + "\n")
        except Exception:
            missed += 1
            traceback.print_exc()
        print(f"  {time.monotonic() - start:.0f} s", flush=True)
    print("all figures hold" if not missed else f"{missed} figures or parts missed their target")
    return int(missed > 0)


if __name__ == "__main__":
    add_paths()
    sys.exit(main())
