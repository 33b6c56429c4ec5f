"""The installation, as data and as text."""

import onnxpool
from onnxpool import kernels


def test_config_is_what_show_config_prints(capsys):
    """Every value of the dict is in the text, and is the value that the library uses."""
    found = onnxpool.config()
    onnxpool.show_config()
    lines = capsys.readouterr().out.splitlines()

    assert lines == [
        f"onnxpool {found['version']}",
        f"instruction set: {found['instruction_set']} (available: {', '.join(found['available'])})",
        f"OpenMP: {found['openmp'] or 'not built in, kernels are serial'}",
        f"threads: {found['threads']} of {found['granted']} granted",
        "limits: none",
    ]
    assert (found["version"], found["instruction_set"]) == (onnxpool.__version__, kernels.isa)
    assert found["available"] == kernels.available()


def test_config_tells_the_threads_of_the_caller():
    """The number of threads is the one in the caller's context, and changing the dict changes no setting."""
    with onnxpool.num_threads(3):
        found = onnxpool.config()
    assert found["threads"] == 3

    found["available"].clear()
    assert onnxpool.config()["available"] != []


def test_no_module_hides_the_function():
    """After importing every module of the package, `onnxpool.config` is still the function."""
    import importlib
    import pkgutil

    names = [module.name for module in pkgutil.iter_modules(onnxpool.__path__)]
    for name in names:
        if name != "__main__":
            importlib.import_module(f"onnxpool.{name}")
    for name in onnxpool.__all__:
        assert name not in names
    assert callable(onnxpool.config)
