"""Results have the bits that are pinned in a file, on every instruction set: a part of the campaign's matrix."""

import json

import pinned
from programs import launch

from onnxpool import kernels

OPERATORS = {"AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GlobalMinPool", "LpPool", "MaxPool",
             "MaxRoiPool", "MaxUnpool", "MinPool", "NhwcMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool",
             "RoiAlign"}


def test_results_are_those_of_the_file():
    """Each case has the hash of the file for all layouts, thread counts, splits and floating-point states."""
    for isa in kernels.available():
        done = launch(pinned.__file__, "--few", ONNXPOOL_ISA=isa)
        assert done.returncode == 0, done.stderr
        count, found = json.loads(done.stdout)
        assert {name: list(hashes) for name, hashes in found.items()} == {
            name: [one] for name, one in pinned.pinned().items()}, isa
        assert count > 1500


def test_cases_are_many_and_differ():
    cases = list(pinned.cases())
    assert {case.operator for case in cases} == OPERATORS
    assert len({case.name for case in cases}) == len(cases) > 200
    assert len(set(pinned.pinned().values())) > 190  # some operators have the same results


def test_inputs_are_the_same_for_every_numpy():
    """Inputs, made from raw bits by exact arithmetic, have the sum of bit patterns that Python computes."""
    number = int(pinned.raw((3,), 7)[0])
    assert number == 11530976094092348043
    x = pinned.data((4, 5), "float64", odd=False)
    first, few = int(pinned.raw((4, 5), 2).flat[0]), int(pinned.raw((4, 5), 12).flat[0])
    assert x.flat[0] == ((first >> 11) / 2**52 - 1) * 2.0 ** ((few & 15) - 8)
