"""What calls need, counted by plain loops over windows and bins: the bytes of their results, and their work."""

import math

from calls import INDICES, REGIONS, UNPOOL
from onnxpool_conformance.oracle import axes_of
from onnxpool_conformance.oracle_regions import bins, coordinate_type, grid, round_away
from truths import truths


def spatial(shape, channels_last):
    """The sizes of the spatial axes."""
    return shape[1:-1] if channels_last else shape[2:]


def region_elements(call, slack):
    """The elements of a channel in all bins. For RoiAlign, `slack` is added to the samples of a bin along each axis if
    data determines them."""
    given, real = call.attributes, coordinate_type(call.x.dtype)
    scale, total = real(given.get("spatial_scale", 1.0)), 0
    height, width = spatial(call.x.shape, call.channels_last)
    for row in call.further[0].astype(real):
        if call.operator == "MaxRoiPool":
            left, top, right, bottom = (round_away(float(place)) for place in row[1:] * scale)
            down, across = bins(top, bottom, given["pooled_shape"][0], height, real), bins(
                left, right, given["pooled_shape"][1], width, real)
            total += sum(map(len, down)) * sum(map(len, across))
            continue
        half = (call.opset is None or call.opset >= 16) and given.get(
            "coordinate_transformation_mode", "half_pixel") == "half_pixel"
        left, top, right, bottom = row * scale - real(0.5 if half else 0)
        pooled, ratio = (given.get("output_height", 1), given.get("output_width", 1)), given.get("sampling_ratio", 0)
        each = [max(0, grid(*ends, count, ratio, half, real)[0]) + slack * (ratio == 0)
                for ends, count in zip(((top, bottom), (left, right)), pooled, strict=True)]
        total += 4 * math.prod(each) * math.prod(pooled)
    return total


def needs(call):
    """The bytes of a legal call's results, and the minimum and maximum of its work."""
    expected = truths(call)
    nbytes = sum(truth.dtype.itemsize * math.prod(truth.shape) for truth in expected)
    count = math.prod(expected[0].shape)
    if call.operator == UNPOOL:
        return nbytes, call.x.size + count, call.x.size + count
    channels = call.x.shape[-1 if call.channels_last else 1]
    if call.operator in REGIONS:
        return nbytes, *(channels * region_elements(call, slack) + count for slack in (0, 1))
    axes = axes_of("MaxPool" if call.operator == INDICES else call.operator,
                   spatial(call.x.shape, call.channels_last), call.attributes)
    work = call.x.shape[0] * channels * math.prod(sum(map(len, axis.taps)) for axis in axes) + count
    return nbytes, work, work
