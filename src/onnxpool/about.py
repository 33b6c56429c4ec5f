"""The installation: version, instruction sets, OpenMP, threads and limits."""

from typing import TypedDict

from . import budget, kernels, threads
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
    max_output_bytes, max_work : int, or None
        Limits on a call that is made here, or None.
    """

    version: str
    instruction_set: str
    available: list[str]
    openmp: int
    threads: int
    granted: int
    max_output_bytes: int | None
    max_work: int | None


def config() -> Config:
    """
    Return the version, the instruction sets, the OpenMP version, the number of threads and the limits on calls.

    Returns
    -------
    dict
        Values of ``version``, ``instruction_set``, ``available``, ``openmp``, ``threads``, ``granted``,
        ``max_output_bytes`` and ``max_work``. ``openmp`` is 0 if the kernels are serial, and limits are None if there
        are none.

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
    found = budget.in_force()
    return {
        "version": __version__,
        "instruction_set": kernels.isa,
        "available": list(kernels.available()),
        "openmp": int(kernels.cpu.openmp()),
        "threads": threads.get_num_threads(),
        "granted": threads.granted(),
        "max_output_bytes": budget.shown(found.max_output_bytes),
        "max_work": budget.shown(found.max_work),
    }


def show_config() -> None:
    """
    Print the version, the instruction sets, the OpenMP version, the number of threads and the limits on calls.

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
    limits = [f"{name}={limit}" for name, limit in found.items() if name in budget.Limits._fields and limit is not None]
    print(f"limits: {', '.join(limits) or 'none'}")
