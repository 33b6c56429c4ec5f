"""Random inputs for models, with the dtype and shape that the model declares."""

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ..arrays import can_be
from ..constants import MOST_AXES
from ..dtypes import BYTES
from .protos import Array, Input, InputError, shape_text

MOST_BYTES = 2**30  # maximum size of a generated input
FULL_RANGE = BYTES  # these integers are usually quantised values, and wider integers indices


def made_shape(value: Input, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of an input: as given, or as declared, with 1 for an unknown batch size."""
    if given is not None:
        return given
    if value.shape is None or any(not isinstance(size, int) for size in value.shape[1:]):
        raise InputError(f"missing input {value.name!r} {value}, whose sizes the model does not fix")
    return tuple(size if isinstance(size, int) else 1 for size in value.shape)


def made_input(value: Input, given: tuple[int, ...] | None, generator: np.random.Generator) -> Array:
    """
    A random array for an input.

    Floats are normally distributed. Booleans and 8-bit integers are uniformly distributed. Wider integers are 0,
    because they may be indices or sizes.
    """
    if value.dtype is None or value.dtype.kind in "OSU":
        raise InputError(f"missing input {value.name!r} {value}, which cannot be generated")
    shape = made_shape(value, given)
    if len(shape) > MOST_AXES or not can_be(shape, value.dtype):
        raise InputError(f"missing input {value.name!r} {value} cannot have shape {shape_text(shape)}: NumPy has no "
                         f"array of that size, or of more than {MOST_AXES} axes")
    size = math.prod(shape) * value.dtype.itemsize
    if size > MOST_BYTES:
        raise InputError(f"missing input {value.name!r} {value}: {size / 2**30:.3g} GiB is too much to generate")
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
    Generate the inputs that are not given and have no default.

    Parameters
    ----------
    inputs : iterable of Input
        Inputs of the model.
    given : collection of str
        Names of the inputs that are given.
    shapes : mapping of str to tuple of int
        Shapes for generated inputs.
    seed : int
        Seed of the random numbers.

    Raises
    ------
    InputError
        If a shape does not belong to a generated input, or if an input has unknown sizes or is not a numeric tensor.
    """
    needed = {value.name: value for value in inputs if not value.optional and value.name not in given}
    for name in shapes:
        if name not in needed:
            raise InputError(f"a shape is given for {name!r}, which is not an input to generate")
    generator = np.random.default_rng(seed)
    return {name: made_input(value, shapes.get(name), generator) for name, value in needed.items()}
