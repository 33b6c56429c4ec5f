"""Run SciPy's own tests of these functions, which SciPy installs, on those of onnxpool.

    python -m tests.ndimage.scipy_tests

Prints a line for each test that calls one of the functions and fails, and their number.
"""

import sys
from typing import Any

import pytest
import scipy._lib._array_api as array_api
import scipy.ndimage

from onnxpool import ndimage

MODULES = ("test_filters", "test_morphology")


class Record:
    """A plugin that records which tests call the functions, and which of these fail."""

    def __init__(self) -> None:
        self.current = ""
        self.calling: set[str] = set()
        self.failed: dict[str, str] = {}

    def pytest_runtest_setup(self, item: Any) -> None:
        """A test begins."""
        self.current = item.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A phase of a test has ended."""
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr.reprcrash.message).partition("\n")[0][:150]

    def recorded(self, function: Any, own: Any) -> Any:
        """A function of onnxpool in place of SciPy's."""
        def call(*arguments: Any, **given: Any) -> Any:
            self.calling.add(self.current)
            return own(*arguments, **given)

        call.__name__ = function.__name__
        array_api.xp_capabilities_table[call] = array_api.xp_capabilities_table[function]
        return call


def main() -> int:
    """Run the tests."""
    record = Record()
    for name in ndimage.__all__:
        setattr(scipy.ndimage, name, record.recorded(getattr(scipy.ndimage, name), getattr(ndimage, name)))
    pytest.main(["--pyargs", *[f"scipy.ndimage.tests.{name}" for name in MODULES], "-q", "-p", "no:cacheprovider",
                 "-p", "no:randomly", "-p", "no:xdist", "--tb=line", "-W", "ignore", "--no-header", "-c", "/dev/null",
                 "--rootdir", "/"], plugins=[record])
    failed = sorted(record.calling & set(record.failed))
    print("\n--")
    for test in failed:
        print(f"{test.rpartition('::')[2].removesuffix('[numpy]')}: {record.failed[test]}")
    print(f"{len(record.calling)} tests call these functions, {len(failed)} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
