"""Random plans of operators that reduce windows, and arrays for them in any memory layout."""

import random
from typing import Any

import numpy as np

import onnxpool
from onnxpool.arrays import dtype_named
from onnxpool.dtypes import BYTES, DTYPES, FLOATS


def sizes_of(rng: random.Random, rank: int, lanes: int) -> list[int]:
    """The sizes of pooled axes: a few large sizes, or many small sizes."""
    most = int((rng.choice((200, 5_000, 60_000, 2_000_000)) / lanes) ** (1 / rank)) + 1
    return [rng.choice((1, rng.randint(1, 8), rng.randint(1, max(1, most)))) for _ in range(rank)]


def windows_of(rng: random.Random, sizes: list[int]) -> dict[str, Any]:
    """The attributes of windows that fit into axes of these sizes."""
    kernel, strides, dilations, pads = [], [], [], []
    for size in sizes:
        k = rng.choice((1, 2, 2, 3, 3, 3, 5, rng.randint(1, 12), rng.randint(1, max(1, size)), size))
        d = rng.choice((1, 1, 1, 1, 2, rng.randint(1, 5), 2**rng.randint(0, 40)))
        span = (k - 1) * d + 1
        pad = rng.choice((0, 0, k // 2, rng.randint(0, 4), rng.randint(0, 2 * k)))
        lacking = max(0, span - size - 2 * pad)
        kernel.append(k)
        dilations.append(d)
        strides.append(rng.choice((1, 1, 2, 2, 3, 4, k, rng.randint(1, 9), 2**rng.randint(0, 50))))
        pads.append((pad + lacking // 2 + lacking % 2, pad + lacking // 2))
    return {"kernel_shape": tuple(kernel), "strides": tuple(strides), "dilations": tuple(dilations),
            "pads": (*[begin for begin, _ in pads], *[end for _, end in pads]), "ceil_mode": rng.randint(0, 1)}


def laid(rng: random.Random, shape: list[int], dtype: np.dtype[Any]) -> Any:
    """An array of a shape, which may be permuted, stepped, reversed or repeated. Its memory is not touched."""
    order = rng.sample(range(len(shape)), len(shape)) if rng.random() < 0.3 else list(range(len(shape)))
    steps = [rng.choice((1, 1, 1, 2)) if rng.random() < 0.2 else 1 for _ in shape]
    x = np.empty([shape[axis] * steps[axis] for axis in order], dtype)
    x = x[tuple(slice(None, None, steps[axis]) for axis in order)].transpose(np.argsort(order))
    if rng.random() < 0.1:
        x = np.flip(x, rng.randrange(x.ndim))
    if rng.random() < 0.1:
        axis = rng.randrange(x.ndim)
        x = np.broadcast_to(x[(slice(None),) * axis + (slice(0, 1),)], x.shape)
    return x


def drawn(rng: random.Random) -> tuple[Any, Any] | None:
    """A random plan and an array for it; None if no window fits."""
    name = rng.choice(("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "MinPool", "GlobalMaxPool",
                       "GlobalAveragePool", "GlobalLpPool", "QLinearAveragePool", "QLinearGlobalAveragePool"))
    rank, named = rng.choice((1, 2, 2, 2, 3, 4)), name == "MinPool" or rng.random() < 0.4
    named = named and not name.startswith("QLinear")
    lanes, batch = rng.choice((1, 3, rng.randint(1, 40), 64, 256)), rng.choice((1, 1, 2, 9))
    sizes = sizes_of(rng, rank, lanes * batch)
    dtypes = BYTES if name.startswith("QLinear") else FLOATS
    if name == "MaxPool":
        dtypes = (*FLOATS, *BYTES)
    if named:
        dtypes = tuple(DTYPES)
    dtype = dtype_named(rng.choice(dtypes if not ("Lp" in name and named) else FLOATS))
    given: dict[str, Any] = {}
    if "Global" not in name:
        given = windows_of(rng, sizes)
    if name.startswith("QLinear"):
        given.pop("dilations", None)
    if "AveragePool" in name and "Global" not in name:
        given["count_include_pad"] = rng.randint(0, 1)
    if "Lp" in name:
        given["p"] = rng.choice((1, 2, 3))
    if name in ("MinPool", "LpPool"):
        given.pop("count_include_pad", None)
    if name == "MaxPool" and rng.random() < 0.3:
        given["return_indices"] = True
    last = rng.random() < 0.5
    shape = [batch, *sizes, lanes] if last else [batch, lanes, *sizes]
    if named:
        axes = list(range(1, rank + 1) if last else range(2, rank + 2))
        if rng.random() < 0.3:
            axes = rng.sample(range(rank + 2), rank)
            for axis, size in zip(axes, sizes, strict=True):
                shape[axis] = size
        given |= {"axes": tuple(axes)}
        if dtype.kind not in "biu" and rng.random() < 0.3:
            given["skipna"] = True
        if dtype.kind in "iu" and name == "AveragePool" and rng.random() < 0.5:
            given["dtype"] = dtype.name
        if "Global" in name and rng.random() < 0.5:
            given["keepdims"] = False
    else:
        given["channels_last"] = last
    if np.prod([float(size) for size in shape]) > 1e8:
        return None
    try:
        plan = getattr(onnxpool, name)(**given).plan(tuple(shape), dtype)
    except onnxpool.PoolError:
        return None
    if np.prod([float(size) for size in plan.output_shape]) > 1e8:
        return None
    return plan, laid(rng, shape, dtype)
