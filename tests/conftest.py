"""Asserts of helpers show their values, as those of tests do."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(path for folder in ("helpers", "oracle") for path in (HERE / folder).glob("*.py"))
pytest.register_assert_rewrite(*(path.stem for path in FILES if not path.stem.startswith("test_")))
