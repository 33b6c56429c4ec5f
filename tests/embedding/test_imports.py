"""Importing the library: the modules that it loads, the modules that the first plan loads, and forks in between."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from float_states import STATES, needs_states
from programs import launch, program

import onnxpool

pytestmark = pytest.mark.smoke

AFTER_IMPORT = """
import sys, numpy
before = set(sys.modules)
import onnxpool
print(*sorted(set(sys.modules) - before))
"""

AFTER_A_CALL = """
import sys, numpy
x = numpy.ones((1, 1, 8, 8), numpy.float32)
before = set(sys.modules)
import onnxpool
onnxpool.average_pool(x, 2)
print(*sorted(set(sys.modules) - before))
"""


def test_import_loads_what_a_first_call_needs_and_no_more() -> None:
    """A server's first call imports nothing. Modules for rare plans and names are loaded later."""
    imported, called = (set(program(text).split()) for text in (AFTER_IMPORT, AFTER_A_CALL))
    assert imported == called
    assert {"onnxpool.kernels", "onnxpool.planning.kinds"} <= imported
    others = {name for name in imported if name.partition(".")[0] in {"numpy", *sys.stdlib_module_names}}
    assert others <= {"__future__", "_bisect", "bisect"}
    later = {"about", "dlpack", "explain", "onnx", "pictures", "planning.regions", "planning.unpooling", "tuning",
             "version"}
    assert imported.isdisjoint(f"onnxpool.{name}" for name in later)


@pytest.mark.parametrize("text", ["", " ", "\t\n "])
def test_empty_variables_are_not_set(text: str) -> None:
    """Empty variables count as unset, as in other programs."""
    names = ("ONNXPOOL_ISA", "ONNXPOOL_NUM_THREADS", "ONNXPOOL_WISDOM", "ONNXPOOL_MAX_OUTPUT_BYTES",
             "ONNXPOOL_MAX_WORK")
    read = {name for file in Path(onnxpool.__file__).parent.rglob("*.py")
            for name in re.findall(r"[\"`](ONNXPOOL_[A-Z_]+[A-Z])[\"`]", file.read_text())}
    assert read <= set(names)
    code = "import onnxpool; print(onnxpool.config(), len(onnxpool.wisdom()['ways']))"
    unset = {name: value for name, value in os.environ.items() if name not in names}
    expected, found = (subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                                      env=variables, check=False, timeout=120)
                       for variables in (unset, unset | dict.fromkeys(names, text)))
    assert (found.returncode, found.stderr, found.stdout) == (0, "", expected.stdout)


def test_the_name_of_an_instruction_set_may_have_spaces_around_it() -> None:
    """The name of an instruction set may have spaces around it, like a number of threads."""
    isa = onnxpool.kernels.isa
    assert launch("-c", "import onnxpool; print(onnxpool.kernels.isa)", ONNXPOOL_ISA=f" {isa} ").stdout == f"{isa}\n"


def test_every_public_name_is_there_at_once() -> None:
    """Names whose modules are imported later can be read, listed and imported like any other name."""
    assert program("""
import onnxpool
from onnxpool import *
from onnxpool import Part, config
names = [name for name in onnxpool.__all__ if getattr(onnxpool, name).__doc__]
assert sorted(names) == sorted(onnxpool.__all__) == dir(onnxpool)
assert Part is onnxpool.parts.Part and config is onnxpool.about.config
try:
    onnxpool.nothing
except AttributeError as error:
    print(error)
""") == "module 'onnxpool' has no attribute 'nothing'"


IN_A_STATE = """
import hashlib, sys
from float_states import state
from scenarios_state import delicate
calls = [(operator, arrays) for operator, arrays in delicate() if "Roi" not in repr(operator)]  # no float attribute
with state(sys.argv[1]):
    results = [operator(*arrays) for operator, arrays in calls]
    shapes = [operator.output_shape(arrays[0].shape) for operator, arrays in calls]
print(hashlib.sha256(b"".join(y.tobytes() for y in results)).hexdigest(), shapes)
"""


@needs_states
def test_first_plans_do_not_see_the_floating_point_state_of_the_caller() -> None:
    """Modules that the first plan imports compute their constants in the default state, and the caller's flags stay."""
    names = ("default", "up" if "up, both" not in STATES else "up, both", "unmasked")
    found = {name: launch("-c", IN_A_STATE, name) for name in names if name in STATES}
    assert {name: (done.returncode, done.stderr) for name, done in found.items()} == dict.fromkeys(found, (0, ""))
    assert len({done.stdout for done in found.values()}) == 1


FORKED = """
import os, signal, sys, threading, time, warnings
import numpy as np, onnxpool

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn about forks of a process with threads

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["MODULE"]:
            begun.set()
            time.sleep(0.5)

begun = threading.Event()
sys.meta_path.insert(0, Slow())
x, region = np.ones((1, 1, 8, 8), np.float32), np.zeros((1, 5), np.float32)
use = {"onnxpool.planning.regions": lambda: onnxpool.max_roi_pool(x, region, 2),
       "onnxpool.onnx.nodes": lambda: onnxpool.from_node}[os.environ["MODULE"]]
thread = threading.Thread(target=use)
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    use()
    os._exit(0)
thread.join()
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="there is no fork")
@pytest.mark.parametrize("module", ["onnxpool.planning.regions", "onnxpool.onnx.nodes"])
def test_fork_while_a_thread_imports(module: str) -> None:
    """A forked child does not wait for an import that another thread had begun."""
    assert program(FORKED, MODULE=module) == "0"
