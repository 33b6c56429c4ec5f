"""The parts of a release agree with each other: files, versions, addresses, and the links between pages."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import onnxpool
from tools import measure_build

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "onnxpool"
FOLDERS = ("benchmarks", "docs", "examples", "licenses", "src", ".github")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")
                if "generated" not in page.parts)])
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))
HOME = "https://github.com/onnxpool/onnxpool"
SITE = "https://{}.github.io/{}/".format(*HOME.split("/")[-2:])  # where docs.yml publishes the documentation
PEERS = ("Cython", "PIL", "bottleneck", "cv2", "dask", "matplotlib", "ml_dtypes", "numba", "onnx", "onnxruntime",
         "openvino", "pandas", "scipy", "shtab", "skimage", "starlette", "torch", "xarray", "zarr")
COLLECT = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
import pytest
codes = [pytest.main(["-m", chosen, "--collect-only", "-q", "-p", "no:cacheprovider"]) for chosen in sys.argv[2:]]
print(*map(int, codes))
"""


def test_every_module_is_installed() -> None:
    """No Python file and no stub is missing from the lists in meson.build."""
    written = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py*")
               if path.suffix in {".py", ".pyi"}}
    installed = Path(onnxpool.__file__).parent
    assert sorted(name for name in written if not (installed / name).is_file()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    """Each link to another file of the repository has a target."""
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_links_of_the_readme_work_on_a_package_index() -> None:
    """The README has only absolute links."""
    links = re.findall(r"\]\(([^)\s]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://")] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "pyproject.toml"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_addresses_of_files_lead_to_files(page: Path) -> None:
    """Each address of a file on the main branch names a file of the repository."""
    raw = HOME.replace("github.com", "raw.githubusercontent.com")
    files = re.findall(rf"(?:{HOME}/(?:blob|tree)|{raw})/main/([^)\s\"#]*)", page.read_text(encoding="utf-8"))
    assert [file for file in files if not (ROOT / file).exists()] == []
    plain = re.findall(rf"{SITE}([^)\s\"#>]*)", page.read_text(encoding="utf-8"))  # links to files that the site copies
    assert [file for file in plain if not (ROOT / "docs" / file).exists()] == []


def test_one_address_everywhere() -> None:
    """Metadata, citation and pages name the same home page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [url for url in project["urls"].values() if not url.startswith((HOME, SITE))] == []
    assert f"\nrepository-code: {HOME}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    named = {address for page in PAGES for address in re.findall(r"https://github\.com/[\w.-]+/onnxpool\b",
                                                                 page.read_text(encoding="utf-8"))}
    assert named == {HOME}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_workflows_name_what_there_is(workflow: Path) -> None:
    """Files, folders and dependency groups that a workflow names exist, and each action is pinned to a commit."""
    text = workflow.read_text(encoding="utf-8")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    files = re.findall(r"(?<![\w/])(?:\./)?((?:tests|tools|\.ci|\.github)/[\w./-]+\w)", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert set(re.findall(r"--group ([\w-]+)", text)) <= set(groups)
    assert [use for use in re.findall(r"uses: (\S+)", text) if not re.fullmatch(r"\./\S+|\S+@[0-9a-f]{40}", use)] == []


def test_packagers_need_no_peers() -> None:
    """`pytest -m packaging` collects tests of the loops, operators and oracle without any peer, and no slow tests."""
    command = [sys.executable, "-c", COLLECT, ",".join(PEERS), "packaging and slow", "packaging"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == f"{pytest.ExitCode.NO_TESTS_COLLECTED.value} 0", done.stdout
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(tests) > 1000
    assert {Path(test).parts[1] for test in tests} >= {"kernels", "operators", "oracle", "project"}


def test_oldest_versions_are_those_of_the_table() -> None:
    """The page on support has each dependency's minimum, and the metadata lists each Python version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| (\w+)(?:, [^|]*)? \| (\d[\d.]*) \|", page, re.MULTILINE))
    required = itertools.chain(project["dependencies"], *project["optional-dependencies"].values())
    minima = dict(re.match(r"(\w+)(?:\[\w+\])?>=([\d.]+)$", text).groups() for text in required)  # type: ignore[union-attr]
    assert {package: minima[package] for package in table if package != "Python"} == {
        package: oldest for package, oldest in table.items() if package != "Python"}
    assert set(table) >= {"Python", "numpy", "onnx", "onnxruntime", "dask", "xarray", "ml_dtypes"}
    assert project["requires-python"] == f">={table['Python']}"
    versions = {text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)}
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]["build"]
    assert {f"3.{tag[3:5]}" for tag in wheels} == versions
    assert min(versions, key=lambda version: int(version[2:])) == table["Python"]


def test_the_time_of_a_build_is_divided_into_stages(tmp_path: Path) -> None:
    """The time of a build is divided into stages, and a step that writes two files counts once."""
    (tmp_path / "build.ninja").touch()
    os.utime(tmp_path / "build.ninja", (130, 130))
    rows = ["# ninja log v7", "0\t4000\t1\tpool.c\ta", "0\t4000\t1\tpool.h\ta", "4000\t9000\t1\tpool.o\tb",
            "4000\t9500\t1\tpre.gch\tc", "9500\t9750\t1\tpool.so\td"]
    (tmp_path / ".ninja_log").write_text("\n".join(rows) + "\n")
    assert measure_build.stages(tmp_path, 100, 141) == {
        "build tools, configure": 30, "Cython": 4, "C": 10.5, "link": 0.25, "install": 1.25}


def release_notes(tag: str) -> "subprocess.CompletedProcess[str]":
    """The output of tools/release_notes.py for a tag."""
    tool = ROOT / "tools" / "release_notes.py"
    return subprocess.run([sys.executable, str(tool), tag], capture_output=True, text=True, check=False)


def test_a_tag_of_another_version_is_refused() -> None:
    """A release does not start from a tag that meson.build does not know."""
    refused = release_notes("v99.0.0")
    assert refused.returncode == 1
    assert "meson.build has version" in refused.stderr


def test_versions_agree() -> None:
    """CITATION.cff and CHANGELOG.md have the version of the build."""
    assert f"\nversion: {onnxpool.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == onnxpool.__version__
