"""The elements to which MaxPool's Indices must point, from plain loops over windows."""

import math

import numpy as np

from .oracle import GeometryError, Truth, axes_of, flat_windows, widened

NOTHING = -1  # the index of an empty window


def first_extremum(plane, window, choose=max):
    """The position of the first NaN of a window, or else of its first maximal (or minimal) element, in the order of the
    window."""
    for place in window:
        if plane[place] != plane[place]:
            return place
    return choose(window, key=plane.__getitem__, default=NOTHING)  # max() and min() keep the first of equal elements


def column_major(place, spatial):
    """The position that the same element has if the first axis of its plane varies fastest."""
    columns, step = 0, math.prod(spatial)
    for size in reversed(spatial):
        step //= size
        place, position = divmod(place, size)
        columns += position * step
    return columns


def expect_indices(x, attributes, *, channels_last=False):
    """The truth about the indices of one call; raises GeometryError if the library must refuse it."""
    if x.ndim < 3:
        raise GeometryError("no spatial axis")
    first = np.moveaxis(x, -1, 1) if channels_last else x
    spatial = first.shape[2:]
    axes = axes_of("MaxPool", spatial, attributes)
    windows = flat_windows(axes, spatial)
    size = math.prod(spatial)
    planes = widened(first).reshape(math.prod(first.shape[:2]), size).tolist()
    cells = []
    for number, plane in enumerate(planes):
        for window in windows:
            place = first_extremum(plane, window)
            if place != NOTHING and attributes.get("storage_order"):
                place = column_major(place, spatial)
            cells.append(place if place == NOTHING else number * size + place)
    outputs = tuple(len(axis.taps) for axis in axes)
    shape = (x.shape[0], *outputs, x.shape[-1]) if channels_last else (*x.shape[:2], *outputs)
    return Truth("Indices", np.dtype(np.int64), shape, channels_last, cells)
