"""The results that MaxUnpool must return, from a plain loop that puts each value where its index points."""

import math

import numpy as np

from .oracle import Copied, GeometryError, Truth, native, native_order, patterns_of, per_axis, widened


def inferred(spatial, attributes):
    """The spatial shape to which indices refer."""
    rank = len(spatial)
    kernel = per_axis(attributes["kernel_shape"], rank, None)
    strides = per_axis(attributes.get("strides"), rank, 1)
    pads = per_axis(attributes.get("pads"), 2 * rank, 0)
    rows = zip(spatial, kernel, strides, pads[:rank], pads[rank:], strict=True)
    return tuple((size - 1) * stride + window - begin - end for size, window, stride, begin, end in rows)


def expect_unpool(inputs, attributes, *, channels_last=False):
    """The truth about one call; raises GeometryError if the library must refuse it."""
    x, indices, *rest = inputs
    if x.ndim < 3 or 0 in (x.shape[1:-1] if channels_last else x.shape[2:]):
        raise GeometryError("no spatial axis, or an empty one")
    if indices.shape != x.shape:
        raise GeometryError("indices and x have different shapes")
    values, places = (np.moveaxis(a, -1, 1) if channels_last else a for a in (x, indices))
    inner = (*values.shape[:2], *inferred(values.shape[2:], attributes))
    if min(inner[2:]) < 1:
        raise GeometryError(f"the inferred shape {inner} has an empty spatial axis")
    outer = inner
    if rest and rest[0] is not None:
        shape = tuple(rest[0].tolist())
        if len(shape) != x.ndim:
            raise GeometryError("output_shape and x have different ranks")
        outer = (shape[0], shape[-1], *shape[1:-1]) if channels_last else shape
        if outer[:2] != inner[:2] or any(big < small for big, small in zip(outer, inner, strict=True)):
            raise GeometryError(f"output_shape {outer} does not hold {inner}")
    size = math.prod(inner)
    flat = [0.0] * size
    patterns = patterns_of(native_order(values).ravel())
    rows = zip(widened(values).ravel().tolist(), patterns, places.ravel().tolist(), strict=True)
    for value, bits, place in rows:
        if not 0 <= place < size:
            raise GeometryError(f"index {place} outside {inner}")
        flat[place] = Copied({bits}) if value != value else value
    y = np.zeros(outer, object)
    y[tuple(map(slice, inner))] = np.reshape(np.array(flat, object), inner)
    shape = (outer[0], *outer[2:], outer[1]) if channels_last else outer
    return Truth("MaxUnpool", native(x.dtype), shape, channels_last, y.ravel().tolist())
