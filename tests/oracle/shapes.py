"""The shapes of a call's results, by arithmetic alone, however absurd its attributes are."""

import math
from operator import index

import numpy as np
from calls import INDICES, QLINEAR, REGIONS, UNPOOL
from onnxpool_conformance.oracle import SLIDING, GeometryError, native, per_axis, placement
from onnxpool_conformance.oracle_regions import MOST_REACH, MOST_SAMPLES, check_finite, coordinate_type, scaled
from onnxpool_conformance.oracle_unpool import inferred


def require(condition, reason):
    """Refuse the call unless a condition holds."""
    if not condition:
        raise GeometryError(reason)


def check_places(places, count):
    """Refuse numbers that are not indices below a count."""
    require(places.size == 0 or (places.min() >= 0 and places.max() < count), "a bad index")


def check_quantisation(x, further):
    """Refuse scales that are not valid."""
    for scale in (further[0], further[2]):
        require(np.asarray(scale).dtype.kind == "f", "a scale that is no float")
        number = np.asarray(scale).astype(np.float32)
        require(number.size == 1 and np.isfinite(number).all() and (number > 0).all(), "a bad scale")


def window_counts(call, spatial):
    """The number of windows along each axis."""
    attributes = {name: value for name, value in call.attributes.items() if value is not None}
    rank = len(spatial)
    require(rank > 0, "no spatial axis")
    kernel = per_axis(attributes["kernel_shape"], rank, None)
    strides = per_axis(attributes.get("strides"), rank, 1)
    dilations = per_axis(attributes.get("dilations"), rank, 1)
    pads = per_axis(attributes.get("pads"), 2 * rank, 0)
    auto_pad = attributes.get("auto_pad") or "NOTSET"
    require(auto_pad == "NOTSET" or not any(pads), "pads together with auto_pad")
    spans = [(window - 1) * dilation + 1 for window, dilation in zip(kernel, dilations, strict=True)]
    rows = zip(spatial, spans, strides, zip(pads[:rank], pads[rank:], strict=True), strict=True)
    return tuple(placement(*row, auto_pad, attributes.get("ceil_mode") or 0)[2] for row in rows)


def unpooled_shape(call, first):
    """The channels-first shape of MaxUnpool."""
    indices, *rest = call.further
    require(indices.shape == call.x.shape and native(indices.dtype) == np.int64, "other indices than x")
    inner = (*first[:2], *inferred(first[2:], call.attributes))
    require(min(inner[2:]) > 0, "an empty result")
    check_places(indices, math.prod(inner))
    if not rest or rest[0] is None:
        return inner
    require(native(rest[0].dtype) == np.int64, "an output_shape that is no int64")
    shape = rest[0].tolist()
    outer = (shape[0], shape[-1], *shape[1:-1]) if call.channels_last else tuple(shape)
    fits = len(outer) == len(inner) and all(big >= small for big, small in zip(outer, inner, strict=True))
    require(fits and outer[:2] == inner[:2], "output_shape")
    return outer


def region_shape(call, first):
    """The channels-first shape of an operator on regions."""
    rois, *places = call.further
    require(len(first) == 4, "not two spatial axes")
    require(native(rois.dtype) == native(call.x.dtype), "the dtype of rois differs from that of x")
    check_finite(rois)
    real = coordinate_type(native(rois.dtype))
    for roi in rois.astype(real):
        scaled(roi[-4:], real(call.attributes.get("spatial_scale") or 1.0),
               MOST_REACH if call.operator == "MaxRoiPool" else math.inf)
    if call.operator == "MaxRoiPool":
        require(rois.ndim == 2 and rois.shape[1] == 5, "rois")
        images = rois[:, 0].astype(float)
        require((images == np.floor(images)).all(), "an image that is no whole number")
        check_places(images, first[0])
        height, width = call.attributes["pooled_shape"]
    else:
        require(rois.ndim == 2 and rois.shape[1] == 4 and places[0].shape == (len(rois),), "rois")
        require(native(places[0].dtype) == np.int64, "batch indices that are no int64")
        check_places(places[0], first[0])
        names = {"output_height": 1, "output_width": 1, "sampling_ratio": 0}
        given = [call.attributes.get(name) for name in names]
        pairs = zip(given, names.values(), strict=True)
        height, width, ratio = (index(default if value is None else value) for value, default in pairs)
        require(len(rois) == 0 or height * width * ratio**2 <= MOST_SAMPLES, "too many samples")
    return (len(rois), first[1], height, width)


def result_shapes(call):
    """The shape of each result; raises GeometryError, or another error, if the call has to be refused."""
    x = call.x
    require(x.ndim >= 2, "no batch and channel axes")
    first = (x.shape[0], x.shape[-1], *x.shape[1:-1]) if call.channels_last else x.shape
    require(0 not in first[2:], "an empty spatial axis")
    if call.operator in QLINEAR:
        check_quantisation(x, call.further)
    if call.operator == UNPOOL:
        shape = unpooled_shape(call, first)
    elif call.operator in REGIONS:
        shape = region_shape(call, first)
    elif call.operator in (*SLIDING, INDICES):
        shape = (*first[:2], *window_counts(call, first[2:]))
    else:
        shape = (*first[:2], *(1 for _ in first[2:]))
    if call.channels_last:
        shape = (shape[0], *shape[2:], shape[1])
    return (shape, shape) if call.operator == INDICES else (shape,)
