"""Run SciPy's own tests of these functions on onnxpool's functions.

    python -m tests.ndimage.scipy_tests [SDIST]

The program takes the tests that are installed with SciPy, or tests from an sdist, such as scipy-1.17.1.tar.gz, or a
clone. It prints a line for each test that calls one of the functions and fails, and their number.
"""

import shutil
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import scipy._lib._array_api as array_api
import scipy.ndimage

from onnxpool import ndimage

MODULES = ("test_filters", "test_morphology")
OPTIONS = ("-q", "--tb=line", "-W", "ignore", "--no-header", "-c", "/dev/null", "--rootdir", "/",
           *[part for name in ("cacheprovider", "randomly", "xdist") for part in ("-p", f"no:{name}")])


class Record:
    """A plugin that records which tests call the functions, and which of these fail."""

    def __init__(self) -> None:
        self.current = ""
        self.calling: set[str] = set()
        self.called: set[str] = set()
        self.failed: dict[str, str] = {}

    def pytest_runtest_setup(self, item: Any) -> None:
        """Note that a test begins."""
        self.current = item.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how a phase of a test has ended."""
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr.reprcrash.message).partition("\n")[0][:150]

    def recorded(self, function: Any, own: Any) -> Any:
        """A function of onnxpool in place of SciPy's."""
        def call(*arguments: Any, **given: Any) -> Any:
            self.calling.add(self.current)
            self.called.add(own.__name__)
            return own(*arguments, **given)

        call.__name__ = function.__name__
        array_api.xp_capabilities_table[call] = array_api.xp_capabilities_table[function]
        return call


def from_sdist(sdist: Path, work: Path) -> list[str]:
    """pytest arguments that select the tests of an sdist or a clone. The tests are copied to a folder."""
    if sdist.is_file():
        with tarfile.open(sdist) as archive:
            archive.extractall(work, [one for one in archive if "/scipy/ndimage/tests/" in one.name
                                      or one.name.endswith("/scipy/conftest.py")], filter="data")
        sdist = next(work.iterdir())
    package = work / "tests_of_scipy"  # a name that differs from onnxpool's own tests
    shutil.copytree(sdist / "scipy" / "ndimage" / "tests", package)
    shutil.copy(sdist / "scipy" / "conftest.py", work)
    return [str(package / f"{name}.py") for name in MODULES]


def main(sdist: str | None = None) -> int:
    """Run the tests."""
    if sdist is None and find_spec("scipy.ndimage.tests") is None:
        print(f"SciPy is installed without its tests; pass scipy-{scipy.__version__}.tar.gz, which is among the files "
              f"on https://pypi.org/project/scipy/{scipy.__version__}")
        return 1
    record = Record()
    for name in ndimage.__all__:
        setattr(scipy.ndimage, name, record.recorded(getattr(scipy.ndimage, name), getattr(ndimage, name)))
    with tempfile.TemporaryDirectory() as work:
        selected = ["--pyargs", *[f"scipy.ndimage.tests.{name}" for name in MODULES]]
        pytest.main([*(selected if sdist is None else from_sdist(Path(sdist), Path(work))), *OPTIONS], plugins=[record])
    failed = sorted(record.calling & set(record.failed))
    print("\n--")
    for test in failed:
        print(f"{test.rpartition('::')[2].removesuffix('[numpy]')}: {record.failed[test]}")
    print(f"{len(record.calling)} tests call {len(record.called)} of {len(ndimage.__all__)} functions, "
          f"{len(failed)} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
