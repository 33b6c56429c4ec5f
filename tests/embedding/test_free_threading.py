"""Python builds without the GIL: importing onnxpool does not switch it on."""

import sysconfig

import pytest
from programs import program

IMPORTS = """
import sys
import onnxpool, onnxpool.cython_api, onnxpool.dlpack, onnxpool.onnxruntime
from onnxpool import kernels

compiled = [name for name, module in sys.modules.items()
            if name.startswith("onnxpool.") and not module.__file__.endswith(".py")]
print(sys._is_gil_enabled(), len(compiled))
"""


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this build of Python always has the GIL")
def test_the_gil_stays_off() -> None:
    """Every extension module declares that it is safe without the GIL; otherwise, importing the module would switch the
    GIL on."""
    enabled, count = program(IMPORTS, PYTHON_GIL="").split()
    assert enabled == "False"
    assert int(count) >= 10
