"""onnxpool's operators in onnxruntime sessions. Importing onnxpool does not import this module."""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any

from ..attributes import integer
from ..errors import Place, PoolError, PoolTypeError
from ..schemas import LATEST
from . import bridge, nodes
from .nodes import NodeRecord

__all__ = ["NodeRecord", "record_nodes", "register"]

OLDEST = (1, 19)  # the first release that supports NumPy 2
MARK = "onnxpool.operators"  # the session option that stores which operators are registered
SWITCHED_OFF = "optimization.disable_specified_optimizers"  # a session option of onnxruntime

_turn = threading.Lock()


def register(session_options: Any, ops: str | Iterable[str] = "missing", *, opset: int | None = None,
             tune: bool = False) -> None:
    """
    Let onnxruntime sessions run pooling nodes on onnxpool.

    Each operator is registered with all its dtypes: float16, bfloat16, float32 and float64, or int8 and uint8.

    Parameters
    ----------
    session_options : onnxruntime.SessionOptions
        Options of the sessions, which can be passed to this function only once.
    ops : {"missing", "all"} or names of operators, optional
        Nodes that run on onnxpool. "missing", the default, selects the nodes of the main domain for whose version,
        element type or rank onnxruntime has no kernel. "all" selects every pooling node of the main domain. Names, such
        as ``["MaxPool", "QLinearAveragePool"]``, select every node of these operators. Operators of com.microsoft need
        a model that imports that domain.
    opset : int, optional
        Opset of the main domain in the models. It is validated but otherwise unused, because onnxruntime determines the
        version of every node.
    tune : bool
        Whether nodes that run on onnxpool measure the fastest way when they meet a new shape, as `Plan.tuned` does. The
        first run with a shape then takes up to 0.1 s longer per node. Problems that the wisdom covers with one thread
        are not measured again.

    Raises
    ------
    ImportError
        If onnxruntime is older than 1.19.
    PoolError
        If a name is not an operator, or if the options were passed to this function before.
    PoolTypeError
        If an argument has the wrong type.

    Notes
    -----
    Nodes keep the schemas of onnxruntime, so its checks, default values, shape inference and optimisers work as usual.
    Two optimisers are switched off in these options: NchwcTransformer, if it would replace an operator selected by
    "all" or by name, and, before onnxruntime 1.32, Pad_Fusion, which changes the results of pools.

    Examples
    --------
    >>> import numpy as np, onnx.parser, onnxruntime, onnxpool.onnxruntime
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 19]>
    ...     g (double[1,1,4,4] x) => (double[1,1,2,2] y) { y = AveragePool <kernel_shape = [3,3]> (x) }''')
    >>> options = onnxruntime.SessionOptions()
    >>> onnxpool.onnxruntime.register(options)
    >>> session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    >>> session.run(None, {"x": np.arange(16.0).reshape(1, 1, 4, 4)})[0].tolist()
    [[[[5.0, 6.0], [9.0, 10.0]]]]
    """
    if isinstance(session_options, type) or not hasattr(session_options, "register_custom_ops_library"):
        raise PoolTypeError(f"register: session_options is a {type(session_options).__name__}; "
                            f"pass an onnxruntime.SessionOptions()", attribute="session_options",
                            value=type(session_options).__name__)
    if opset is not None and integer(Place(None, "opset"), opset, 1) > LATEST[""]:
        raise PoolError(f"register: opset={opset} is not known, and the newest is {LATEST['']}; leave it out",
                        attribute="opset", value=opset)
    if not isinstance(tune, bool):
        raise PoolTypeError(f"register: tune must be a bool, got {tune!r}; pass True or False", attribute="tune",
                            value=tune)
    names = nodes.chosen(ops)
    release, delegates = release_of_onnxruntime(), ops == "missing"
    if entry(session_options, MARK) is not None:
        raise PoolError("register: these session options already have onnxpool's operators; create new options")
    with _turn:
        bridge.wanted = nodes.kinds(names, delegates, tune)
        try:
            session_options.register_custom_ops_library(bridge.__file__)
        finally:
            bridge.wanted = None
    session_options.add_session_config_entry(MARK, " ".join(names))
    switch_off(session_options, nodes.unwanted(names, delegates, release))


class Recording(ContextDecorator):
    """The context manager that `record_nodes` returns."""

    def __enter__(self) -> list[NodeRecord]:
        made: list[NodeRecord] = []
        nodes.records.push(self, made)
        return made

    def __exit__(self, *error: object) -> None:
        made = nodes.records.pop(self)
        made[:] = [node for node in made if node.alive]


def record_nodes() -> AbstractContextManager[list[NodeRecord]]:
    """
    Record which nodes run on onnxpool, for the sessions created in a ``with`` block.

    The list is complete when the block ends. Its records count calls for as long as their session exists. Pooling nodes
    that are not in the list run on onnxruntime alone.

    Returns
    -------
    context manager
        Context manager that yields a list of `NodeRecord`, for the sessions that this thread or task creates. It can be
        entered repeatedly, and yields a new list each time.

    Examples
    --------
    >>> import numpy as np, onnx.parser, onnxruntime, onnxpool.onnxruntime
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 19]>
    ...     g (double[1,1,4,4] x) => (double[1,1,2,2] y) { y = AveragePool <kernel_shape = [3,3]> (x) }''')
    >>> options = onnxruntime.SessionOptions()
    >>> onnxpool.onnxruntime.register(options)
    >>> with onnxpool.onnxruntime.record_nodes() as nodes:
    ...     session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    >>> y = session.run(None, {"x": np.ones((1, 1, 4, 4))})
    >>> [(node.name, node.operator, node.runs_on, node.onnxpool_calls) for node in nodes]
    [('y', 'AveragePool', 'onnxpool', 1)]
    """
    return Recording()


def release_of_onnxruntime() -> tuple[int, ...]:
    """The installed release of onnxruntime, such as (1, 31)."""
    from onnxruntime import __version__ as version
    release = tuple(int(part) for part in version.split(".")[:2])
    if release < OLDEST:
        raise ImportError(f"onnxpool.onnxruntime needs onnxruntime {'.'.join(map(str, OLDEST))} or newer, but this is "
                          f"{version}; pip install --upgrade onnxruntime")
    return release


def switch_off(session_options: Any, optimisers: Iterable[str]) -> None:
    """Switch off optimisers, in addition to the ones that are already off."""
    before = entry(session_options, SWITCHED_OFF) or ""
    names = dict.fromkeys([*filter(None, before.split(";")), *optimisers])
    if names:
        session_options.add_session_config_entry(SWITCHED_OFF, ";".join(names))


def entry(session_options: Any, name: str) -> str | None:
    """The value of a session option, or None if it is not set."""
    try:
        return str(session_options.get_session_config_entry(name))
    except RuntimeError:
        return None
