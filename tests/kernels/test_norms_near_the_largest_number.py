"""Norms that a float can hold are finite, although rounding a root or a product up would exceed the largest float."""

import math

import numpy as np
import pytest

import onnxpool

LARGEST = np.finfo(np.float64).max
POWERS = [1, 1.5, 2, 2.5, 3, 4, 5, 7, 30, 0.5, 0.01, 1000]


def equal_elements(taps: int, p: float, digits: int) -> np.ndarray:
    """Equal elements whose norm is below the largest number by a few times 2^-53 of that number."""
    return np.full(taps, LARGEST * (1 - digits * 2**-53) / taps**(1 / p))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("taps", [1, 2, 4, 7, 64])
def test_norms_that_fit(taps, p):
    x = equal_elements(taps, p, 8 + 8 * math.ceil(math.log2(taps) / min(1, p)))
    if not x.all():
        return
    opset = 22 if p == int(p) else 1
    operator = onnxpool.GlobalLpPool(axes=0, p=p, opset=opset) if opset == 22 else onnxpool.GlobalLpPool(p=p, opset=1)
    x = x if opset == 22 else x.reshape(1, 1, taps)
    plan = operator.plan(x.shape, x.dtype)
    assert np.isfinite(plan(x)).all()
    for shares in range(2, taps + 1):
        total = plan.combine(share(x[share.inputs]) for share in plan.partials(n=shares))
        assert np.isfinite(total).all(), shares


def test_halves_of_the_largest_number():
    x = np.full(4, LARGEST / 2)
    plan = onnxpool.GlobalLpPool(axes=0, keepdims=False, p=2).plan(x.shape, x.dtype)
    shares = [share(x[share.inputs]) for share in plan.partials(n=2)]
    assert plan(x) == plan.combine(shares) == LARGEST


@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_norms_that_do_not_fit(p):
    x = np.full(4, LARGEST / 4**(1 / p) * (1 + 1e-12))
    plan = onnxpool.GlobalLpPool(axes=0, keepdims=False, p=p).plan(x.shape, x.dtype)
    assert plan(x) == math.inf
    assert plan.combine(share(x[share.inputs]) for share in plan.partials(n=2)) == math.inf


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 7])
def test_exact_norms_that_fit(p):
    """Unequal elements whose exact norm is next to the largest number have a finite norm."""
    rng = np.random.default_rng(0)
    fitting = 0
    for taps in range(1, 70):
        for digits in range(-2, 4):
            x = np.full(taps, LARGEST * (1 - digits * 2**-53 if digits > 0 else 1) / taps**(1 / p))
            x[:rng.integers(1, taps + 1)] = np.nextafter(x[0], 0)
            if sum(int(value)**p for value in x.tolist()) <= int(LARGEST)**p:
                fitting += 1
                assert np.isfinite(onnxpool.GlobalLpPool(axes=0, keepdims=False, p=p)(x)), (taps, digits)
    assert fitting > 100
