"""Run SciPy's own tests of these functions, which SciPy installs, on those of onnxpool.

    python -m tests.ndimage.scipy_tests

Prints a line for each test that calls one of the functions and fails, and their number.
"""

import sys
from collections import defaultdict
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
        self.skipped: set[str] = set()

    def pytest_runtest_setup(self, item: Any) -> None:
        """A test begins."""
        self.current = item.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A phase of a test has ended."""
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr.reprcrash.message).partition("\n")[0][:150]
        elif report.skipped:
            self.skipped.add(report.nodeid)

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
    reasons: dict[str, list[str]] = defaultdict(list)
    for test in sorted(record.calling & set(record.failed)):
        reasons[record.failed[test]].append(test.rpartition("::")[2])
    print("\n--")
    for reason, tests in reasons.items():
        print(f"{len(tests)} failed: {', '.join(tests)}: {reason}")
    print(f"{len(record.calling)} call these functions, {len(record.calling & set(record.failed))} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
