"""The installation: version, instruction sets, OpenMP and threads."""

from typing import TypedDict

from . import kernels, threads
from .version import __version__


class Config(TypedDict):
    """
    Result of `config`.

    Attributes
    ----------
    version : str
    instruction_set : str
        Instruction set in use.
    available : list of str
        Instruction sets that this build contains and this processor supports.
    openmp : int
        OpenMP version that the kernels were built with, such as 201511, or 0 for serial kernels.
    threads : int
        Default number of threads of a call.
    granted : int
        Number of processors that this process may use.
    """

    version: str
    instruction_set: str
    available: list[str]
    openmp: int
    threads: int
    granted: int


def config() -> Config:
    """
    Return the version, the instruction sets, the OpenMP version and the number of threads.

    Returns
    -------
    dict
        Values of ``version``, ``instruction_set``, ``available``, ``openmp``, ``threads`` and ``granted``. ``openmp``
        is 0 if the kernels are serial.

    See Also
    --------
    show_config : Prints the same.
    supported : Lists the operators and their versions.

    Examples
    --------
    >>> import onnxpool
    >>> found = onnxpool.config()
    >>> found["version"] == onnxpool.__version__
    True
    >>> found["instruction_set"] in found["available"]
    True
    """
    return {
        "version": __version__,
        "instruction_set": kernels.isa,
        "available": list(kernels.available()),
        "openmp": int(kernels.cpu.openmp()),
        "threads": threads.get_num_threads(),
        "granted": threads.granted(),
    }


def show_config() -> None:
    """
    Print the version, the instruction sets, the OpenMP version and the number of threads.

    See Also
    --------
    config : Returns the same as data.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.show_config()  # doctest: +ELLIPSIS
    onnxpool ...
    """
    found = config()
    print(f"onnxpool {found['version']}")
    print(f"instruction set: {found['instruction_set']} (available: {', '.join(found['available'])})")
    print(f"OpenMP: {found['openmp'] or 'not built in, kernels are serial'}")
    print(f"threads: {found['threads']} of {found['granted']} granted")
