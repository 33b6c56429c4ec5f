"""onnxpool's operators in sessions of onnxruntime. Importing onnxpool does not import it."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..attributes import integer
from ..errors import Place, PoolError, PoolTypeError
from ..schemas import LATEST
from . import bridge, nodes
from .nodes import NodeRecord

__all__ = ["NodeRecord", "record_nodes", "register"]

OLDEST = (1, 19)  # the first release that runs with NumPy 2
MARK = "onnxpool.operators"  # the entry of session options that records what was registered
SWITCHED_OFF = "optimization.disable_specified_optimizers"  # onnxruntime's own entry

_turn = threading.Lock()


def register(session_options: Any, ops: str | Iterable[str] = "missing", *, opset: int | None = None) -> None:
    """
    Let sessions of onnxruntime run pooling nodes on onnxpool.

    An operator is registered with all its element types: float16, bfloat16, float32 and float64, or int8 and uint8.

    Parameters
    ----------
    session_options : onnxruntime.SessionOptions
        Sessions created with these options run pooling nodes on onnxpool. Options can be registered with only once.
    ops : {"missing", "all"} or names of operators, optional
        "missing", the default, takes the nodes of the main domain for which onnxruntime has no kernel of that version,
        element type or rank. The other nodes stay with onnxruntime. "all" takes every pooling node of the main domain.
        Names, such as ``["MaxPool", "QLinearAveragePool"]``, take every node of these operators. Those of com.microsoft
        need a model that imports that domain.
    opset : int, optional
        The main domain's opset in the models. It is checked and otherwise unused, because the version of every node is
        known without it.

    Raises
    ------
    ImportError
        If onnxruntime is older than 1.19.
    PoolError
        If a name is not an operator, or if the options have been registered with before.
    PoolTypeError
        If an argument has the wrong type.

    Notes
    -----
    Nodes keep the schemas of onnxruntime, so that its checks, default values, shape inference and optimisers work as
    they always do. Two optimisers are switched off in these options: NchwcTransformer, if it would replace an operator
    that "all" or names choose, and Pad_Fusion before onnxruntime 1.32, where it changes the results of pools.

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
                            f"give an onnxruntime.SessionOptions()", attribute="session_options",
                            value=type(session_options).__name__)
    if opset is not None and integer(Place(None, "opset"), opset, 1) > LATEST[""]:
        raise PoolError(f"register: opset={opset} is not known, the newest known is {LATEST['']}; leave it out",
                        attribute="opset", value=opset)
    names = nodes.chosen(ops)
    release, delegates = release_of_onnxruntime(), ops == "missing"
    if entry(session_options, MARK) is not None:
        raise PoolError("register: these session options have onnxpool's operators already; make new options")
    with _turn:
        bridge.wanted = nodes.kinds(names, delegates)
        try:
            session_options.register_custom_ops_library(bridge.__file__)
        finally:
            bridge.wanted = None
    session_options.add_session_config_entry(MARK, " ".join(names))
    switch_off(session_options, nodes.unwanted(names, delegates, release))


@contextmanager
def record_nodes() -> Iterator[list[NodeRecord]]:
    """
    Record which nodes of the sessions created in a ``with`` block run on onnxpool.

    The list is complete when the block ends. The records count further calls for as long as their session lives.
    Pooling nodes that are not among them run on onnxruntime, without onnxpool having been asked.

    Returns
    -------
    context manager
        It yields a list of `NodeRecord`, for the sessions that this thread or task creates.

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
    made: list[NodeRecord] = []
    token = nodes.records.set(made)
    try:
        yield made
    finally:
        nodes.records.reset(token)
        made[:] = [node for node in made if node.alive]


def release_of_onnxruntime() -> tuple[int, ...]:
    """The release of onnxruntime, such as (1, 31)."""
    from onnxruntime import __version__ as version
    release = tuple(int(part) for part in version.split(".")[:2])
    if release < OLDEST:
        raise ImportError(f"onnxpool.onnxruntime needs onnxruntime {'.'.join(map(str, OLDEST))} or newer, this is "
                          f"{version}; pip install --upgrade onnxruntime")
    return release


def switch_off(session_options: Any, optimisers: Iterable[str]) -> None:
    """Switch off optimisers of the sessions, besides those that are already switched off."""
    before = entry(session_options, SWITCHED_OFF) or ""
    names = dict.fromkeys([*filter(None, before.split(";")), *optimisers])
    if names:
        session_options.add_session_config_entry(SWITCHED_OFF, ";".join(names))


def entry(session_options: Any, name: str) -> str | None:
    """An entry of session options; None if it does not exist."""
    try:
        return str(session_options.get_session_config_entry(name))
    except RuntimeError:
        return None
