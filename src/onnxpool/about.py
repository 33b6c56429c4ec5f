"""What is installed: version, instruction sets, OpenMP, threads."""

from typing import TypedDict

from . import kernels, threads
from .version import __version__


class Config(TypedDict):
    """
    What `config` returns.

    Attributes
    ----------
    version : str
    instruction_set : str
        The one in use.
    available : list of str
        Those that this processor and this build both have.
    openmp : int
        The version of OpenMP that the kernels were built with, such as 201511; 0 for serial kernels.
    threads : int
        What a call uses here that is not told otherwise.
    granted : int
        The processors that this process may use.
    """

    version: str
    instruction_set: str
    available: list[str]
    openmp: int
    threads: int
    granted: int


def config() -> Config:
    """
    Return the version, the instruction sets, OpenMP and the threads, as `show_config` prints them.

    Returns
    -------
    dict
        With the keys ``version``, ``instruction_set``, ``available``, ``openmp``, ``threads`` and ``granted``.
        ``openmp`` is 0 if the kernels are serial.

    See Also
    --------
    show_config : Prints the same.
    supported : The operators and versions that are known.

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
    Print the version, the instruction set in use and those available, OpenMP, and the threads.

    `config` returns the same as data.

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
