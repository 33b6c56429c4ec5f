"""Nothing that callers pass, or change while a call runs, makes the library crash, hang or access other memory."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from guarded import CANARY, Slot
from programs import launch, program

import onnxpool

HERE = Path(__file__).parent
ENDINGS = ("PoolError", "PoolTypeError", "result")
NEW = ("MaxPool Indices", "MaxUnpool", "QLinearAveragePool", "NhwcMaxPool", "MaxRoiPool", "RoiAlign")

# Inputs next to inaccessible pages that a second thread keeps changing from good to bad.
UNSTEADY = """
import faulthandler
import itertools
import threading

import numpy as np
import onnxpool
from guarded import Slot

faulthandler.enable()
faulthandler.dump_traceback_later(300, exit=True)
SIDE = 64
slots = [Slot(260) for _ in range(5)]
shape = (2, 8, SIDE, SIDE)
x = slots[0].hold(shape, np.dtype(np.float32), True)
places = slots[1].hold(shape, np.dtype(np.int64), True)
rois = slots[2].hold((500, 5), np.dtype(np.float32), True)
images = slots[3].hold((500,), np.dtype(np.int64), True)
out = slots[4].hold(shape, np.dtype(np.float32), True)
x[...] = 1
good = [np.arange(x.size).reshape(shape), np.tile(np.array([0, 0, 0, 9, 9], np.float32), (500, 1)), np.zeros(500, int)]
bad = [[-1, 2**62, x.size, -2**63], [np.nan, -1, 1e30, 2**31], [2, -1, 2**62, -2**63]]
arrays = places, rois, images
for array, values in zip(arrays, good, strict=True):
    array[...] = values
ended = threading.Event()


def disturb():
    turn = 0
    while not ended.is_set():
        turn += 1
        for array, values, wrong in zip(arrays, good, bad, strict=True):
            np.copyto(array, wrong[turn % len(wrong)])
            np.copyto(array, values)


calls = (
    lambda: onnxpool.max_unpool(x, places, 1, out=out),
    lambda: onnxpool.max_roi_pool(x, rois, (3, 3)),
    lambda: onnxpool.roi_align(x, rois[:, 1:], images, output_height=3, output_width=3, sampling_ratio=1),
)
thread = threading.Thread(target=disturb)
thread.start()
counts = {"refused": 0, "computed": 0}
for turn in itertools.count():
    if turn >= 200 and min(counts.values()) > 0:
        break
    for call in calls:
        try:
            call()
            counts["computed"] += 1
        except onnxpool.PoolError:
            counts["refused"] += 1
ended.set()
thread.join()
assert all(slot.untouched(array_too=False) for slot in slots)
print(min(counts.values()) > 0)
"""

STRAY = """
from guarded import PAGE, Slot
import ctypes, numpy as np
slot = Slot(1)
array = slot.hold((8,), np.dtype(np.int64), {at_end})
ctypes.c_char.from_address(array.ctypes.data + {offset}).value
"""


def corrupted(calls, seed, *operators, **variables):
    """Run a campaign of corrupted calls in a process of its own."""
    arguments = ["--calls", str(calls), "--seed", str(seed)]
    if operators:
        arguments += ["--operators", *operators]
    run = launch(str(HERE / "corruption.py"), *arguments, **variables)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert all(ending in run.stdout for ending in ENDINGS), run.stdout


@pytest.mark.parametrize("level", onnxpool.kernels.available())
def test_corrupted_calls(level):
    """Calls with something wrong, or nothing, end in an error of the library or in a result of the right shape."""
    corrupted(1500, len(level), ONNXPOOL_ISA=level)


@pytest.mark.slow
@pytest.mark.parametrize("operator", NEW)
def test_many_corrupted_calls(operator):
    """Ten thousand calls of each operator with positions, scales or regions as inputs or outputs end well."""
    corrupted(10_000, 7, operator)


def test_inputs_that_change_meanwhile():
    """Indices and regions that another thread changes during the call never lead to accesses outside the result."""
    assert program(UNSTEADY) == "True"


@pytest.mark.parametrize(("at_end", "offset"), [(True, 64), (False, -1)])
def test_guard_pages_guard(at_end, offset):
    """Reading one byte beyond an array of these tests kills the process."""
    run = launch("-c", STRAY.format(at_end=at_end, offset=offset))
    assert run.returncode == -signal.SIGSEGV, (run.returncode, sys.platform)


@pytest.mark.parametrize("at_end", [True, False])
def test_canaries_tell(at_end):
    """A byte written next to an array, or in it, is detected."""
    slot = Slot(2)
    array = slot.hold((5, 7), np.dtype(np.uint8), at_end)
    assert slot.untouched(array_too=True)
    array[2, 2] = CANARY + 1
    assert slot.untouched(array_too=False)
    assert not slot.untouched(array_too=True)
    slot.hold((5, 7), np.dtype(np.uint8), at_end)
    slot.inside[slot.place.start - 1 if at_end else slot.place.stop] = 0
    assert not slot.untouched(array_too=False)
