"""Assertions in helpers show their values, as in tests do; tests may require certain versions of other packages."""

import importlib.metadata
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(path for folder in ("helpers", "oracle") for path in (HERE / folder).glob("*.py"))
pytest.register_assert_rewrite(*(path.stem for path in FILES if not path.stem.startswith("test_")))


# Shells make background jobs ignore Ctrl-C. Programs that tests start must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

NAMED = dict(re.findall(r"^(\w+)==(\S+)$", (HERE / "onnx" / "versions.txt").read_text(), re.MULTILINE))


def pytest_addoption(parser: pytest.Parser) -> None:
    """For jobs that have these versions installed, and so must not skip the tests that need them."""
    parser.addoption("--named-versions", action="store_true",
                     help="fail instead of skipping where tests need the versions of tests/onnx/versions.txt")


@pytest.fixture
def needs_named_version(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Skip a test if a package's version is not the one that its table describes, or fail with --named-versions."""
    def compare(package: str) -> None:
        installed = importlib.metadata.version(package)
        if installed != NAMED[package]:
            end = pytest.fail if pytestconfig.getoption("--named-versions") else pytest.skip
            end(f"this is about {package} {NAMED[package]}, but {installed} is installed")

    return compare
