"""Random windows that reach all kinds of loops: any windows, windows that slide along rows, short rows, and so on."""

import math

import ml_dtypes
import numpy as np

SLIDING = (3, 1), (3, 2), (2, 2)  # kernels and strides along rows for which there is such a loop
MOST_WORK = 300_000  # maximum elements of a channel, and maximum taps of all its windows


def random_problem(rng):
    """A shape, channels first, and windows: short and long, with gaps, and some that lie in the padding. Some windows
    have few taps along many axes, and a single one along others."""
    while True:
        few = rng.random() < 0.3
        rank = int(rng.choice([2, 3, 4, 5] if few else [1, 2, 2, 2, 3, 3, 4]))
        taps = [1, 1, 2, 3] if few else [1, 2, 2, 3, 3, 4, 5, 8, 9, 11, 16, 21]
        kernel = [int(rng.choice(taps)) for _ in range(rank)]
        dilations = [int(rng.choice([1, 1, 1, 2, 3])) for _ in kernel]
        strides = [int(rng.choice([1, 1, 2, 3, k])) for k in kernel]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        padded = rng.random() < 0.6
        pads = [int(rng.integers(0, span + (rng.random() < 0.1) * 3)) if padded else 0 for _ in "be" for span in spans]
        sizes = [int(rng.integers(1, 2 * span + 12)) for span in spans]
        rooms = np.array(sizes) + pads[:rank] + pads[rank:] - spans
        channels = int(rng.choice([1, rng.integers(2, 17), rng.integers(17, 71)]))
        shape = (int(rng.integers(1, 4)), channels, *sizes)
        windows = math.prod((rooms // strides + 1).tolist()) if (rooms >= 0).all() else 0
        if windows > 0 and math.prod(shape) + windows * (math.prod(kernel) + channels) < MOST_WORK:
            return shape, {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads,
                           "ceil_mode": int(rng.integers(2))}


def values(rng, shape, dtype, odd):
    """Elements of many magnitudes, including zeros of both signs, and some infinite, NaN or close to infinity."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 8, shape)).astype(dtype)
    x[rng.random(shape) < 0.1] = 0.0
    x[rng.random(shape) < 0.1] = -0.0
    if odd:
        largest = float(ml_dtypes.finfo(dtype).max)
        for value in (np.nan, np.inf, -np.inf, largest, largest, 1 / largest):
            x[rng.random(shape) < 0.002] = value
        x[:, 1:2] = rng.choice([-0.0, 0.0], x[:, 1:2].shape)
    return x


def sliding_problem(rng):
    """Windows of 2 or 3 taps along the last axis and one other axis, which may share columns."""
    along = (*SLIDING[rng.integers(len(SLIDING))], 1)
    other = int(rng.integers(2, 4)), int(rng.integers(1, 5)), int(rng.choice([1, 1, 2]))
    without_taps = 1, 2, 1
    axes = [[other, along], [without_taps, other, along], [other, without_taps, along]][rng.integers(3)]
    spans = [(kernel - 1) * dilation + 1 for kernel, _, dilation in axes]
    pads = [int(rng.integers(span)) for _ in "be" for span in spans]
    least = [max(1, span - begin - end) for span, begin, end in zip(spans, pads, pads[len(axes):], strict=False)]
    shape = (int(rng.integers(1, 3)), int(rng.integers(1, 300)), *[int(rng.integers(size, 12)) for size in least])
    kernels, strides, dilations = zip(*axes, strict=True)
    return shape, {"kernel_shape": kernels, "strides": strides, "dilations": dilations, "pads": pads,
                   "ceil_mode": int(rng.integers(2))}


def short_problem(rng, dtype):
    """Windows along rows of one to three axes that about fit into three registers of 64 bytes."""
    rank = int(rng.integers(1, 4))
    kernels = [int(rng.integers(1, 10 - 2 * rank)) for _ in range(rank)]
    strides, dilations = ([int(rng.choice([1, 1, 2, 3])) for _ in range(rank)] for _ in "sd")
    spans = [(kernel - 1) * dilation + 1 for kernel, dilation in zip(kernels, dilations, strict=True)]
    pads = [int(rng.integers(span)) for _ in "be" for span in spans]
    least = [max(1, span - begin - end) for span, begin, end in zip(spans, pads, pads[rank:], strict=False)]
    row = int(rng.integers(1, 200 // max(4, dtype.itemsize)))
    sizes = [*[size + int(rng.integers(4)) for size in least[:-1]], max(least[-1], row)]
    return (1, int(rng.integers(1, 4)), *sizes), {
        "kernel_shape": kernels, "strides": strides, "dilations": dilations, "pads": pads,
        "ceil_mode": int(rng.integers(2))}


def adjacent_problem(rng, register, kind):
    """Long windows along the last axis, at most two of which share a place. A register holds `register` elements."""
    least = (16 if kind == "max" else 32) * register
    kernel = least + int(rng.integers(3 * least))
    stride = kernel // 2 + int(rng.integers(1, kernel))
    pads = [int(rng.integers(kernel)) if rng.random() < 0.6 else 0 for _ in "be"]
    size = max(1, kernel - sum(pads)) + int(rng.integers(2 * kernel))
    if rng.random() < 0.5:
        return (int(rng.integers(1, 3)), int(rng.integers(1, 6)), size), {
            "kernel_shape": [kernel], "strides": [stride], "dilations": [1], "pads": pads,
            "ceil_mode": int(rng.integers(2))}
    return (1, int(rng.integers(1, 4)), 5, size), {
        "kernel_shape": [3, kernel], "strides": [int(rng.integers(1, 3)), stride], "dilations": [1, 1],
        "pads": [1, pads[0], 0, pads[1]], "ceil_mode": 0}


def stacked_problem(rng):
    """Windows of many taps along the first axis, of which they share few, over rows of at least two registers."""
    kernel, width = int(rng.integers(9, 24)), int(rng.integers(1, 4))
    stride = int(rng.integers(kernel // 2, 2 * kernel))
    pads = [int(rng.integers(kernel)) if rng.random() < 0.5 else 0 for _ in "be"]
    size = max(1, kernel - sum(pads)) + int(rng.integers(3 * kernel))
    channels, row = (int(rng.integers(1, 4)), int(rng.integers(130, 200))) if rng.random() < 0.6 else (
        int(rng.integers(64, 300)), int(rng.integers(width, 9)))
    return (1, channels, size, row), {
        "kernel_shape": [kernel, width], "strides": [stride, int(rng.integers(1, 3))], "dilations": [1, 1],
        "pads": [pads[0], 0, pads[1], 0], "ceil_mode": int(rng.integers(2))}


def far_problem(rng):
    """Taps so far apart that windows have more padding than elements."""
    rank = int(rng.integers(1, 3))
    sizes, kernel = ([int(rng.integers(low, 7)) for _ in range(rank)] for low in (1, 2))
    dilations = [int(rng.integers(80, 150)) for _ in kernel]
    pads = [int(rng.integers((k - 1) * d)) + 1 for _ in "be" for k, d in zip(kernel, dilations, strict=True)]
    rooms = [size + begin + end - (k - 1) * d - 1 for size, begin, end, k, d in zip(
        sizes, pads, pads[rank:], kernel, dilations, strict=False)]
    if min(rooms) < 0:
        return far_problem(rng)
    return (int(rng.integers(1, 3)), int(rng.integers(1, 40)), *sizes), {
        "kernel_shape": kernel, "strides": [int(rng.integers(20, 90)) for _ in kernel], "dilations": dilations,
        "pads": pads, "ceil_mode": int(rng.integers(2))}


def disjoint_problem(rng):
    """Many windows that share no place along rows. Some reach into the padding."""
    stride = int(rng.integers(2, 5))
    kernels, strides, sizes = [int(rng.integers(1, stride + 1))], [stride], [int(rng.integers(50, 3000))]
    if rng.random() < 0.5:
        kernels, strides = [int(rng.integers(1, 4)), *kernels], [int(rng.integers(1, 4)), *strides]
        sizes = [int(rng.integers(3, 9)), *sizes]
    pads = [int(rng.integers(kernel)) for _ in "be" for kernel in kernels]
    return (int(rng.integers(1, 3)), int(rng.integers(1, 9)), *sizes), {
        "kernel_shape": kernels, "strides": strides, "dilations": [1] * len(sizes), "pads": pads,
        "ceil_mode": int(rng.integers(2))}
