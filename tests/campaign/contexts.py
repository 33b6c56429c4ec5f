"""A plugin of pytest that tells coverage.py which test runs, and writes how each test ended and how long it took."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

VARIABLE = "CAMPAIGN_OUTCOMES"  # names the file to write
outcomes: dict[str, tuple[str, float]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lines that run now are those of this test."""
    measured = coverage.Coverage.current()
    measured.switch_context(item.nodeid)
    yield
    measured.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the phases of a test. Any phase can fail it."""
    outcome, seconds = outcomes.get(report.nodeid, ("passed", 0.0))
    outcomes[report.nodeid] = (outcome if outcome != "passed" else report.outcome, seconds + report.duration)


def pytest_sessionfinish(session: Any) -> None:
    """Write the outcomes."""
    Path(os.environ[VARIABLE]).write_text(json.dumps(outcomes), encoding="utf-8")
