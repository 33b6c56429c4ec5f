"""Assertions in helpers show their values, as in tests do; tests may require other packages, or certain versions, and
skip or fail without them; on slow computers, some cases of each test run."""

import importlib.metadata
import itertools
import random
import re
import signal
import tomllib
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(path for folder in ("helpers", "oracle") for path in (HERE / folder).glob("*.py"))
pytest.register_assert_rewrite(*(path.stem for path in FILES if not path.stem.startswith("test_")))


# Shells make background jobs ignore Ctrl-C. Programs that tests start must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The files of `pytest -m packaging`. Their tests need pytest, hypothesis and NumPy, but neither other packages nor a
# network nor a compiler. Together they take about a minute.
PACKAGING = [HERE / folder / f"test_{name}.py" for folder, names in {
    "embedding": ("imports", "thread_counts"),
    "kernels": ("attributes_of_2_to_60", "exceptions", "geometries", "order_of_whole_channels", "strided_views",
                "subnormals"),
    "operators": ("attributes_by_name", "hints", "pictures", "remembered_operators", "second_calls", "ways_out"),
    "oracle": ("agreement",),
    "project": ("wheel",),
}.items() for name in names]

# Packages whose modules have other names.
PACKAGES = {"PIL": "pillow", "cv2": "opencv-python-headless", "skimage": "scikit-image"}
NAMED = dict(re.findall(r"^(\w+)==(\S+)$", (HERE / "onnx" / "versions.txt").read_text(), re.MULTILINE))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options for CI jobs that must not skip tests of the versions that they install, and for emulators."""
    parser.addoption("--named-versions", action="store_true",
                     help="fail instead of skipping where tests need the versions of tests/onnx/versions.txt")
    parser.addoption("--nothing-missing", action="store_true",
                     help="fail instead of skipping where tests need a package or a program that is not installed")
    parser.addoption("--one-in", type=int, default=1, metavar="N",
                     help="skip all but about one in N cases of each parametrised test, the same ones in each run")


def way_out(module: str) -> str:
    """The command that installs a module for which a test was skipped, if a dependency group has it."""
    project = HERE.parent / "pyproject.toml"
    groups = tomllib.loads(project.read_text(encoding="utf-8"))["dependency-groups"] if project.exists() else {}
    package = PACKAGES.get(module.partition(".")[0], module.partition(".")[0]).replace("_", "-")
    for group in sorted(groups, key=lambda group: group not in ("test", "peers")):  # search these first
        if any(isinstance(text, str) and re.split(r"[\[=<>]", text)[0].replace("_", "-") == package
               for text in groups[group]):
            return f": pip install --group {group}"
    return ""


def explained(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    """Say how to install what a skipped test needs. With --nothing-missing, let it fail."""
    if report.outcome != "skipped" or not isinstance(report.longrepr, tuple):
        return
    file, line, reason = report.longrepr
    missing = re.search(r"could not import '([\w.]+)'|(\w+) is not installed", reason)
    if missing and config.getoption("--nothing-missing"):
        report.outcome, report.longrepr = "failed", f"{report.nodeid}: {reason}"
    elif missing:
        report.longrepr = file, line, reason + way_out(missing[1] or missing[2])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    explained(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
        collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    explained(report, collector.config)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose cases at random, with their names as seeds, and at least one case of each test. Cases that a mark leaves
    out of the default run count as slow. Mark the tests for packagers, none of which is slow."""
    share = config.getoption("--one-in")
    drawn = {item: random.Random(item.nodeid).random() for item in items}
    for _, cases in itertools.groupby(items, lambda item: item.nodeid.partition("[")[0]):
        _, *others = sorted(cases, key=drawn.__getitem__)
        for item in others:
            if drawn[item] >= 1 / share:
                item.add_marker(pytest.mark.skip(reason=f"about one in {share} cases runs"))
            if (mark := item.get_closest_marker("one_in")) and drawn[item] >= 1 / mark.args[0]:
                item.add_marker("slow")
    for item in items:
        if item.path in PACKAGING and item.get_closest_marker("slow") is None:
            item.add_marker("packaging")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With -m packaging, other files are not even imported, because they may import packages that are missing."""
    if config.getoption("markexpr").split(" ")[0] != "packaging":
        return None
    return not any(file.is_relative_to(collection_path) for file in PACKAGING) or None


@pytest.fixture
def needs_named_version(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Skip a test if a package's version is not the version that the table describes, or fail with --named-versions."""
    def compare(package: str) -> None:
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed")
        if installed != NAMED[package]:
            end = pytest.fail if pytestconfig.getoption("--named-versions") else pytest.skip
            end(f"this is about {package} {NAMED[package]}, but {installed} is installed")

    return compare
