"""The campaign's lists are up to date: seeded faults fit the compiled code, and lines of C map to lines of Cython."""

import subprocess
import sys
from collections import Counter

import pytest

from tests.campaign import faults, lines

MODULE = """
from .shared cimport doubled

LIMIT = 9


def clamp(int value):
    cdef int high = LIMIT
    if value > high:
        return high

    for i in range(3):
        value += doubled(i)
    return value
"""
SHARED = """
cdef inline int doubled(int value) noexcept:
    if value < 0:
        return 0
    return 2 * value
"""


@pytest.mark.parametrize("fault", faults.listed(), ids=lambda fault: fault.name)
def test_each_fault_changes_one_place(fault):
    """The text of a seeded fault occurs once in its file, and differs from what replaces it."""
    assert fault.occurrences() == 1
    assert fault.before != fault.after


def test_faults_have_names_of_their_own():
    """The table of faults names each fault once."""
    assert max(Counter(fault.name for fault in faults.listed()).values()) == 1


def test_lines_of_c_map_to_lines_of_cython(tmp_path):
    """Each line in a function has a place in its own file. Lines that run at import have no place."""
    pytest.importorskip("Cython")
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    for name, text in (("module.pyx", MODULE), ("shared.pxd", SHARED), ("__init__.py", "")):
        (package / name).write_text(text)
    generated = tmp_path / "module.pyx.c"
    subprocess.run([sys.executable, "-m", "cython", "-3", "src/package/module.pyx", "-o", generated], cwd=tmp_path,
                   check=True)
    places = set(lines.origins(generated, tmp_path / "src").values())
    code = {"package/module.pyx": (7, 8, 9, 10, 12, 13, 14), "package/shared.pxd": (2, 3, 4, 5)}
    assert places == {(name, number) for name, numbers in code.items() for number in numbers}


def test_ranges_of_lines():
    """Lists of lines are shortened to ranges."""
    assert lines.ranges([7, 1, 2, 3, 9, 10]) == "1-3, 7, 9-10"
