"""Inputs of a model that nobody gives: random numbers of the dtype and shape that the model declares."""

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ..dtypes import BYTES
from .protos import Array, Input, InputError

MOST_BYTES = 2**30  # of an input that is made
FULL_RANGE = BYTES  # integers that are quantised values; wider ones are more often places


def made_shape(value: Input, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of an input: as given, or as declared with an open batch axis taken as 1."""
    if given is not None:
        return given
    if value.shape is None or any(not isinstance(size, int) for size in value.shape[1:]):
        raise InputError(f"missing input {value.name!r} {value}, whose sizes the model leaves open")
    return tuple(size if isinstance(size, int) else 1 for size in value.shape)


def made_input(value: Input, given: tuple[int, ...] | None, generator: np.random.Generator) -> Array:
    """
    An array for an input.

    Floats have a standard normal distribution, and booleans and integers of 8 bits a uniform one. Wider integers are 0,
    because they may be places or sizes.
    """
    if value.dtype is None or value.dtype.kind in "OSU":
        raise InputError(f"missing input {value.name!r} {value}, of which none can be made")
    shape = made_shape(value, given)
    size = math.prod(shape) * value.dtype.itemsize
    if size > MOST_BYTES:
        raise InputError(f"missing input {value.name!r} {value}: {size / 2**30:.3g} GiB are too much to be made")
    if value.dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if value.dtype.name in FULL_RANGE:
        limits = np.iinfo(value.dtype)
        return generator.integers(limits.min, limits.max, shape, dtype=value.dtype, endpoint=True)
    if value.dtype.kind in "iu":
        return np.zeros(shape, value.dtype)
    return generator.standard_normal(shape, np.float32).astype(value.dtype)


def make_inputs(inputs: Iterable[Input], given: Collection[str], shapes: Mapping[str, tuple[int, ...]],
                seed: int) -> dict[str, Array]:
    """
    Make the inputs that are not given and have no default.

    Parameters
    ----------
    inputs : iterable of Input
        Those of the model.
    given : collection of str
        The names of those that are given.
    shapes : mapping of str to tuple of int
        Shapes for some of the others.
    seed : int
        Equal seeds make equal inputs.

    Raises
    ------
    InputError
        If a shape is for no input that is made, or an input has open sizes or is no tensor of numbers.
    """
    needed = {value.name: value for value in inputs if not value.optional and value.name not in given}
    for name in shapes:
        if name not in needed:
            raise InputError(f"a shape for {name!r}, which is no input that is made")
    generator = np.random.default_rng(seed)
    return {name: made_input(value, shapes.get(name), generator) for name, value in needed.items()}
