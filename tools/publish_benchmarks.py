"""
Make asv's pages of the measured history, in a folder of the site.

    python tools/publish_benchmarks.py build/docs/benchmarks [--branch asv-results | --results FOLDER]

The results are those of benchmarks/results/asv, which `python -m benchmarks.history` measures, or those of a branch
that has nothing else. It needs asv and the history of the repository, but no network. Results of commits that are not
part of the history of the current one are left out, and named.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.history import RESULTS, configuration  # noqa: E402

STYLES = ROOT / "benchmarks" / "pages.css"
HEAD = "<title>airspeed velocity</title>"
MENU = '<li id="nav-li-" class="active">'
MARK = "asv_ui.js"  # a file that only such pages have


def git(*arguments: str) -> bytes:
    """What git prints about this repository."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


def collect(results: Path, target: Path, commits: set[str]) -> int:
    """Copy the results of these commits, and return how many there are."""
    count = 0
    for path in sorted(results.glob("*/*.json")):
        if path.name != "machine.json":
            commit = json.loads(path.read_text(encoding="utf-8"))["commit_hash"]
            if commit not in commits:
                print(f"left out: {path.relative_to(results)}, because the commit is not part of the history")
                continue
            count += 1
        (target / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target / path.parent.name)
    if count:
        shutil.copy(results / "benchmarks.json", target)
    return count


def adapted(page: str) -> str:
    """asv's page with a title, for telephones too, and with a way back to the site."""
    for part in (HEAD, MENU, "<html>", "</head>"):
        if part not in page:
            sys.exit(f"asv's page has changed: it lacks {part}")
    page = page.replace(HEAD, '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                              "    <title>onnxpool: speed of its commits</title>")
    page = page.replace("<html>", '<html lang="en">')
    page = page.replace("</head>", f'  <link href="{STYLES.name}" rel="stylesheet">\n  </head>')
    return page.replace(MENU, f'<li><a href="../index.html">Documentation</a></li>\n        {MENU}')


def publish(results: Path, out: Path) -> int:
    """Make the pages, and return of how many results."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        count = collect(results, folder / "results", set(git("rev-list", "--first-parent", "HEAD").decode().split()))
        if not count:
            sys.exit(f"{results} has no results of this history: measure them with python -m benchmarks.history")
        settings = folder / "asv.conf.json"
        settings.write_text(json.dumps(configuration(
            branches=["HEAD"], results_dir=str(folder / "results"), html_dir=str(folder / "html"))))
        done = subprocess.run([sys.executable, "-m", "asv", "publish", "--no-pull", f"--config={settings}"], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"asv publish failed, which needs asv (pip install --group bench):\n{done.stdout}")
        pages = folder / "html"
        index = pages / "index.html"
        index.write_text(adapted(index.read_text(encoding="utf-8")), encoding="utf-8")
        shutil.copy(STYLES, pages)
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(pages, out)
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder of the pages, which is replaced")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="the folder of the results")
    source.add_argument("--branch", metavar="NAME", help="a branch of results, such as origin/asv-results")
    options = parser.parse_args(arguments)

    if options.out.exists() and any(options.out.iterdir()) and not (options.out / MARK).exists():
        sys.exit(f"{options.out} has other files")
    with tempfile.TemporaryDirectory() as temporary:
        results = options.results
        if options.branch:
            results = Path(temporary)
            with tarfile.open(fileobj=BytesIO(git("archive", options.branch))) as archive:
                archive.extractall(results, filter="data")
        count = publish(results, options.out)
    print(f"{options.out}: pages of {count} results")


if __name__ == "__main__":
    main()
