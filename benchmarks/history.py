"""
Measure the history that is published: commits of main that changed the loops, one after another on one machine.

    python -m benchmarks.history --machine zen5                  # 20 commits, evenly spaced from the first to the last
    python -m benchmarks.history --machine zen5 --since 623aff3  # those after a commit, to continue a history
    python -m benchmarks.history --machine zen5 --list           # which these are

asv builds and measures each commit: the pools of benchmarks/tracked.py and the overhead of calls, in a process of its
own for each, bound to a processor. Rounds take turns among commits, so that a slow moment of the machine does not look
like a change. Results are files in benchmarks/results/asv; `tools/publish_benchmarks.py` makes pages of them. Further
arguments after `--` go to `asv run`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "asv"
SINCE = "54a4096^"  # then the core was written anew; older commits take up to 22 minutes to build
LOOPS = ("src/onnxpool/kernels", ":(exclude)*.md")
TRACKED = (r"^tracked\.", r"^overhead\.(CallOverhead|Making)\.", r"^overhead\.Import\.timeraw_import$")


def git(*arguments: str) -> str:
    """What git prints about this repository."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def spread(commits: Sequence[str], count: int) -> list[str]:
    """Select `count` commits at even distances, among them the first and the last."""
    if count >= len(commits):
        return list(commits)
    if count == 1:
        return [commits[-1]]
    return [commits[round(i * (len(commits) - 1) / (count - 1))] for i in range(count)]


def candidates(since: str = SINCE, branch: str = "main") -> list[str]:
    """The later commits of the branch itself that changed the loops, the oldest first, and its newest commit."""
    later = ["rev-list", "--first-parent", "--reverse", branch, f"^{since}"]
    found, newest = git(*later, "--", *LOOPS).split(), git(*later).split()[-1:]
    return found if found[-1:] == newest else found + newest


def configuration(**changes: Any) -> dict[str, Any]:
    """The configuration of asv, for any folder: with absolute paths."""
    settings: dict[str, Any] = json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8")) | changes
    for name in ("repo", "benchmark_dir", "env_dir", "results_dir", "html_dir"):
        settings[name] = str(ROOT / settings[name])
    settings["build_command"] = [line.replace("{conf_dir}", str(ROOT)) for line in settings["build_command"]]
    return settings


def introduce(machine: str) -> None:
    """Record the properties of the machine by a name, unless they are known."""
    from asv.machine import Machine, MachineCollection
    from asv.util import UserError
    try:
        MachineCollection.load(machine)
    except UserError:
        MachineCollection.save(machine, Machine.get_defaults() | {"machine": machine})


def keep_measured(results: Path) -> None:
    """Keep what the pages show: no single samples, and no benchmarks without results, of which asv's list has all."""
    measured = set()
    for path in results.glob("*/*.json"):
        if path.name == "machine.json":
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        columns = found["result_columns"]
        kept = columns.index("samples") if "samples" in columns else len(columns)
        found["results"] = {name: row[:kept] for name, row in found["results"].items()}
        path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        measured |= found["results"].keys()
    path = results / "benchmarks.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    kept = {name: known[name] for name in sorted(known) if name in measured or name == "version"}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history", description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--machine", required=True, metavar="NAME", help="the name of this machine in the results")
    parser.add_argument("--commits", type=int, default=20, metavar="N", help="number of commits (%(default)s)")
    parser.add_argument("--since", metavar="COMMIT", default=SINCE, help="only commits after this one (%(default)s)")
    parser.add_argument("--cpu", type=int, metavar="N", default=max(os.sched_getaffinity(0)),
                        help="the processor that benchmarks are bound to (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where results are stored")
    parser.add_argument("--list", action="store_true", help="print the commits instead")
    parser.add_argument("further", nargs="*", metavar="-- ARGUMENT", help="further arguments of asv run")
    options = parser.parse_args(arguments)

    chosen = spread(candidates(options.since), options.commits)
    if options.list or not chosen:
        print(*(git("log", "-1", "--format=%h %cs %s", commit).strip() for commit in chosen), sep="\n")
        return 0
    folder = ROOT / ".asv"
    folder.mkdir(exist_ok=True)
    hashes, settings = folder / "history.txt", folder / "history.json"
    hashes.write_text("".join(f"{commit}\n" for commit in chosen))
    settings.write_text(json.dumps(configuration(
        results_dir=str(options.results.resolve()), build_cache_size=len(chosen) + 1)))
    introduce(options.machine)
    done = subprocess.run(
        [sys.executable, "-m", "asv", "run", f"--config={settings}", f"HASHFILE:{hashes}",
         f"--machine={options.machine}", f"--cpu-affinity={options.cpu}", "--launch-method=spawn",
         "--interleave-rounds", "--attribute=rounds=2", *(f"--bench={pattern}" for pattern in TRACKED),
         *options.further], cwd=ROOT)
    keep_measured(options.results)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
