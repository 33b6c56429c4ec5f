"""torch: its functions on tensors that are the problem's arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .problem import Prepared, Problem


def tensor(a: np.ndarray, layout: str) -> Any:
    """The same bytes as a tensor with channels first."""
    import torch
    t = torch.from_numpy(a.view(np.uint16)).view(torch.bfloat16) if a.dtype.name == "bfloat16" else torch.from_numpy(a)
    return t.movedim(-1, 1) if layout == "last" else t


def array(t: Any, like: np.ndarray, layout: str) -> np.ndarray:
    """A tensor as an array with the axes of the problem."""
    import torch
    t = t.movedim(1, -1) if layout == "last" else t
    return t.view(torch.uint16).numpy().view(like.dtype) if like.dtype.name == "bfloat16" else t.numpy()


def whole(problem: Problem, t: Any) -> Callable[[], Any] | None:
    """A function that reduces each channel of each image to one value."""
    import torch
    axes = tuple(range(2, t.ndim))
    return {
        "GlobalAveragePool": lambda: torch.mean(t, dim=axes, keepdim=True),
        "GlobalMaxPool": lambda: torch.amax(t, dim=axes, keepdim=True),
        "GlobalLpPool": lambda: torch.linalg.vector_norm(
            t, problem.work.attributes.get("p", 2), dim=axes, keepdim=True),
    }.get(problem.work.operator)


def windowed(problem: Problem, t: Any) -> Callable[[], Any] | None:
    """A function that pools windows over up to three axes, with symmetric padding, or with none for norms."""
    from torch.nn import functional
    axes = t.ndim - 2
    given = problem.work.attributes
    pads, ceil = problem.attribute("pads", 0), bool(given.get("ceil_mode"))
    if axes > 3 or "kernel_shape" not in given or pads[:axes] != pads[axes:]:
        return None
    window = given["kernel_shape"], problem.attribute("strides")
    pads, dilations = pads[:axes], problem.attribute("dilations")
    operator = problem.work.operator
    if operator == "MaxPool":
        pool = getattr(functional, f"max_pool{axes}d")
        return lambda: pool(t, *window, pads, dilations, ceil, given.get("return_indices", False))
    if operator == "AveragePool" and max(dilations) == 1:
        pool = getattr(functional, f"avg_pool{axes}d")
        return lambda: pool(t, *window, pads, ceil, bool(given.get("count_include_pad")))
    if operator == "LpPool" and max(pads) == 0 and max(dilations) == 1:
        pool = getattr(functional, f"lp_pool{axes}d")
        return lambda: pool(t, given.get("p", 2), *window, ceil)
    if operator == "MaxUnpool":
        pool, size = getattr(functional, f"max_unpool{axes}d"), problem.answer.size // np.prod(t.shape[:2])
        places = tensor(problem.inputs[1] % size, problem.layout)  # torch counts within a plane
        return lambda: pool(t, places, *window, pads)
    return None


def torch(problem: Problem) -> Prepared | None:
    """A function in inference mode, which allocates its result in torch's own way."""
    import torch
    torch.set_num_threads(problem.threads)
    t = tensor(problem.inputs[0], problem.layout)
    pool = whole(problem, t) or windowed(problem, t)
    if pool is None:
        return None

    def call() -> Any:
        with torch.inference_mode():
            return pool()

    def result(y: Any) -> np.ndarray:
        return array(y[0] if isinstance(y, tuple) else y, problem.answer, problem.layout)
    return Prepared(call, result)
