"""Random calls of every operator give the same bits with every instruction set, whatever memory contained before.

Run as a program, this file prints a digest of all results for each operator.
"""

import hashlib
import json
import sys

import cases_axes
import numpy as np
import pytest
from calls import FUNCTIONS, SeededChoices
from calls_family import draw_call
from programs import launch
from support import INSTRUCTION_SETS

import onnxpool

pytestmark = pytest.mark.smoke

CALLS = 250
NOISE = "165"  # the byte with which glibc fills memory when it is allocated and, inverted, when it is freed


def plain(y):
    """The bytes of a result, with one pattern for every NaN."""
    y = np.ascontiguousarray(y)
    if y.dtype.kind not in "iubmM":
        with np.errstate(invalid="ignore"):  # maxima may be signalling NaNs
            y[y != y] = np.nan
    return y.tobytes()


def digest(operator):
    """A digest of the results of many random calls, in which refused calls count too."""
    summary = hashlib.sha256()
    for seed in range(CALLS):
        call = draw_call(SeededChoices(seed), (operator,))
        try:
            results = call.run(onnxpool)
        except onnxpool.PoolError:
            summary.update(b"refused")
            continue
        for y in results if isinstance(results, tuple) else (results,):
            summary.update(plain(y))
    return summary.hexdigest()


def digest_of_axes():
    """A digest of the results of random calls with named axes, on arrays of every dtype."""
    summary = hashlib.sha256()
    for seed in range(4 * CALLS):
        case = cases_axes.random_case(seed)
        try:
            results = case.make()(case.x)
        except onnxpool.PoolError:
            summary.update(b"refused")
            continue
        for y in results if case.indexed else (results,):
            summary.update(plain(y))
    return summary.hexdigest()


def digests():
    """The digests of all operators."""
    return {**{operator: digest(operator) for operator in FUNCTIONS}, "axes": digest_of_axes()}


@pytest.mark.parametrize("level", INSTRUCTION_SETS)
def test_same_bits(level):
    """Neither the instruction set nor the contents of fresh memory change a bit, and unavailable instruction sets are
    refused."""
    run = launch(__file__, ONNXPOOL_ISA=level, MALLOC_PERTURB_=NOISE)
    if level in onnxpool.kernels.available():
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout) == digests()
    else:
        assert f"ImportError: ONNXPOOL_ISA='{level}' is not available here" in run.stderr


if __name__ == "__main__":
    sys.exit(print(json.dumps(digests())))
