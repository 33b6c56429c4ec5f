"""Examples in the documentation run, and its tables match the library."""

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import onnxpool
from onnxpool import schemas

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(onnxpool.__path__, "onnxpool.")
    if ".kernels." not in module.name and not module.name.endswith("__main__")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str) -> None:
    """Every example in a docstring has the result shown."""
    threads = onnxpool.get_num_threads()
    result = doctest.testmod(importlib.import_module(module))
    onnxpool.set_num_threads(threads)
    assert result.failed == 0


def test_every_operator_has_an_example() -> None:
    """Each public function shows a call and its result."""
    functions = [name for name in onnxpool.__all__ if name.islower() and name[0] != "_"]
    finder = doctest.DocTestFinder(recurse=False)
    without = [name for name in functions if not any(test.examples for test in finder.find(getattr(onnxpool, name)))]
    assert without == []


PAGES = sorted(page.relative_to(ROOT).as_posix() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
               if "generated" not in page.parts and re.search(r"^>>> ", page.read_text(), re.MULTILINE))
# Not every platform has wheels of these packages.
OPTIONAL = ("dask", "ml_dtypes", "numba", "onnx", "onnx_ir", "onnxruntime", "onnxscript", "scipy", "skimage", "spox",
            "torch", "xarray", "zarr")


@pytest.mark.parametrize("page", PAGES)
def test_examples_in_pages_run(page: str) -> None:
    """Every example in the README and the guides has the result shown, if the packages that they import are there."""
    imports = re.findall(r"^>>> (?:import|from) .*$", (ROOT / page).read_text(), re.MULTILINE)
    for package in sorted({*OPTIONAL} & {*re.findall(r"\w+", " ".join(imports))}):
        pytest.importorskip(package)
    threads = onnxpool.get_num_threads()
    result = doctest.testfile(str(ROOT / page), module_relative=False)
    onnxpool.set_num_threads(threads)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_cython_example_is_part_of_an_extension() -> None:
    """The page on Cython shows lines of the extension that the tests build."""
    shown = re.findall(r"```cython\n(.*?)```", (ROOT / "docs/c-api.md").read_text(), re.DOTALL)

    assert [example in (ROOT / "tests/capi/extension/frames.pyx").read_text() for example in shown] == [True]


def test_the_page_on_operators_lists_what_is_supported() -> None:
    """The page's table lists each operator with its versions."""
    text = (ROOT / "docs" / "operators.md").read_text()
    listed = re.findall(r"^\| `\w+` \| (?:com\.microsoft )?(\w+)[^|]* \| ([\d, ]+) \|", text, re.MULTILINE)
    versions: dict[str, list[int]] = {}
    for row in onnxpool.supported():
        versions.setdefault(row["operator"], []).append(row["version"])
    assert {name: [int(v) for v in numbers.split(",")] for name, numbers in listed} == versions


def test_calls_in_the_tables_of_operators_run() -> None:
    """Each call in the tables returns an array whose rank is the rank of its input."""
    text = (ROOT / "docs" / "operators.md").read_text()
    names = {name: getattr(onnxpool, name) for name in onnxpool.__all__}
    rows = re.findall(r"^\| [^|]* \| \((.*)\) \| `(.*)` \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for axes, call in rows:
        rank = len(list(filter(None, axes.split(","))))
        assert eval(call, names | {"x": np.zeros((9,) * rank)}).ndim == rank, call


@pytest.mark.parametrize("processor", ["zen3", "zen5"])
def test_the_readme_tells_the_speeds_of_the_race(processor: str) -> None:
    """The README's table has the single-threaded medians and the counts of slower rows from the pages of results."""
    readme, results = ((ROOT / page).read_text() for page in ("README.md", f"benchmarks/results/{processor}.md"))
    name, (names,) = f"Zen {processor[-1]}", re.findall(r"^\| processor \| channels \| (.*) \|$", readme, re.MULTILINE)
    rows = dict(re.findall(rf"^\| {name} \| (first|last) \| (.*) \|$", readme, re.MULTILINE))
    told = {(dtype, layout): median for layout, row in rows.items()
            for dtype, median in zip(names.split(" | "), row.split(" | "), strict=True)}
    zoo = results.partition(": the zoo of layers")[2].partition("\n## ")[0]
    medians = re.findall(r"^\| (\w+) \| (\w+) \| numpy \| 1 \| \d+ \| ([\d.]+x) \|", zoo, re.MULTILINE)
    assert told == {(dtype, layout): median for dtype, layout, median in medians}
    (slower,) = re.findall(r"^## Slower than a peer by more than 3 %: (.*)$", results, re.MULTILINE)
    assert f"{slower} rows ({name})" in readme


def test_the_readme_lists_the_versions_of_operators() -> None:
    """The README lists the operators of ONNX and of com.microsoft, with all of their versions."""
    told = {name: versions for names, versions in re.findall(
        r"^\| ([A-Z]\w+(?:, \w+)*)(?: \(com.microsoft\))? \| ([\d, ]+) \|$", (ROOT / "README.md").read_text(),
        re.MULTILINE)
        for name in names.split(", ")}
    assert told == {name: ", ".join(str(version.since) for version in schema.versions)
                    for name, schema in schemas.ALL_SCHEMAS.items() if schema.domain != schemas.OWN}


def test_the_readme_tells_the_times_of_arrays() -> None:
    """The README's times of arrays are as in docs/reference/array_peers.md, for float32 on one thread."""
    page, rows = (ROOT / "docs" / "reference" / "array_peers.md").read_text(), {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == ["task", "package"]:
            column = max(cells.index(one) if one in cells else 0 for one in ("float32 (N,)", "float32 (H, W)"))
        elif "onnxpool" in cells[1:2]:
            own = rows.setdefault(cells[0], {})
            own["onnxpool"] = cells[column]
        elif not cells[0] and len(cells) > 2 and rows:
            own[cells[1]] = cells[column]
    known = {"means of 4x4 blocks": "means of blocks, k = 4", "3x3 dilation": "dilation, k = 3",
             "15x15 dilation": "dilation, k = 15", "15x15 box filter": "zeros around x, k = 15",
             "moving maximum of 100 numbers": "maxima, k = 100"}
    told = re.findall(r"^\| ([^|]*) \| ([\d.]+ ms) \| ([^|]*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [task for task, _, _ in told] == [*known]
    for task, time, others in told:
        for one in others.split(", "):
            package, _, times = one.rpartition(" ")
            assert f"{rows[known[task]][package]}x" == times, task
        assert rows[known[task]]["onnxpool"] == time, task


def test_the_readme_tells_the_results_of_the_conformance_suite() -> None:
    """The README's results are as in docs/conformance.md, which `tools/run_conformance.py` writes, for the tier
    `spec`."""
    page, readme = ((ROOT / path).read_text() for path in ("docs/conformance.md", "README.md"))
    (cases,) = set(re.findall(r"^\| runtime \| spec \((\d+)\) \|", page, re.MULTILINE))
    assert f"Of {cases} [cases that the specification decides]" in " ".join(readme.split())
    for runtime in ("onnxpool", "onnxruntime"):
        version, passed = re.findall(rf"^\| {runtime} (\S+) \| (\d+)", page, re.MULTILINE)[0]
        name = runtime if runtime == "onnxpool" else f"{runtime} {version}"
        assert f"{name} passes {passed}" in readme


def test_the_readme_tells_how_long_builds_and_tests_take_as_contributing_does() -> None:
    """The README and CONTRIBUTING.md give the same times of builds and tests, because either may be read first."""
    readme, contributing = (" ".join((ROOT / page).read_text().split()) for page in ("README.md", "CONTRIBUTING.md"))
    told = re.findall(r"(\d+ to \d+) minutes", readme)
    assert len(told) == 2
    assert all(times in contributing for times in told)


def test_the_index_names_all_pages() -> None:
    """docs/README.md has a line for each page."""
    listed = re.findall(r"^\| \[[^]]*\]\(([^)]*\.md)\)", (ROOT / "docs" / "README.md").read_text(), re.MULTILINE)
    pages = sorted(page.name for page in (ROOT / "docs").glob("*.md"))
    folders = sorted(page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").glob("*/index.md")
                     if page.parent.name not in ("generated", "project"))  # listed separately
    assert sorted(["README.md", "index.md", *(page for page in listed if "/" not in page)]) == pages
    assert sorted(page for page in listed if page.endswith("/index.md")) == folders


def kinds_of_pages() -> dict[str, str]:
    """The kind of each page that docs/README.md lists: the title of its section, or the word before a colon."""
    text, kinds = (ROOT / "docs" / "README.md").read_text(), {}
    for title, section in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        for page, words in re.findall(r"^\| \[[^]]*\]\(([^)]*\.md)\) \| (.*) \|$", section, re.MULTILINE):
            kinds[page] = words.partition(":")[0].lower() if title == "Project" else title.lower()
    return kinds


def test_pages_have_a_kind_and_only_references_are_long() -> None:
    """Folders have pages of one kind, except for project/. Pages other than references have at most 1,500 words."""
    folders = {"start": "tutorials", "howto": "how to", "concepts": "concepts", "reference": "reference"}
    kinds = kinds_of_pages()
    assert set(kinds.values()) == {"tutorials", "how to", "concepts", "concept", "reference"}
    included = {"README.md", "index.md", "project/index.md", "project/changelog.md", "project/contributing.md"}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.relative_to(ROOT / "docs")
        if page.parts[0] in ("generated", "_site", "_templates") or page.as_posix() in included:
            continue
        kind = kinds.get(page.as_posix()) or folders[page.parts[0]]
        assert page.name == "index.md" or kind == folders.get(page.parts[0], kind), page
        assert kind == "reference" or len(path.read_text().split()) <= 1500, page


def test_the_page_on_compatibility_says_what_is_public() -> None:
    """The page lists all public names and no others; tab completion offers the same names."""
    text = (ROOT / "docs" / "compatibility.md").read_text()
    names = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| [^|]* \| (`[^|]*) \|$", text.partition("These modules")[0],
                                                     re.MULTILINE)))
    assert sorted(names) == sorted(onnxpool.__all__) == sorted(dir(onnxpool))


def test_the_page_on_compatibility_says_what_is_supported() -> None:
    """The page has the oldest versions of pyproject.toml, and the newest opsets of the table of versions."""
    text = (ROOT / "docs" / "compatibility.md").read_text()
    oldest = dict(re.findall(r"^\| (\w+)[^|]* \| ([\d.]+) \| [\d.]+ \|$", text, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["onnx"],
              *project["optional-dependencies"]["onnxruntime"],
              *(name.replace("[array]", "") for name in project["optional-dependencies"]["dask"]),
              *project["optional-dependencies"]["xarray"]]
    assert oldest == {"Python": project["requires-python"].removeprefix(">="),
                      **dict(requirement.split(">=") for requirement in wanted)}
    assert f"{schemas.LATEST['']} for ONNX, {schemas.LATEST['com.microsoft']} for com.microsoft" in text
