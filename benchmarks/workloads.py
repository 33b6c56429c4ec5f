"""The timed workloads: pools that are common in networks, and unusual ones, with their arrays and prepared calls.

Nothing here depends on the installed version of onnxpool, so that results of all versions can be compared. Renaming
or changing a workload restarts its history.
"""

from typing import Any, NamedTuple

import numpy as np

from .zoo import LAYERS

FLOATS = ["float32", "float16", "bfloat16", "float64"]
BYTES = ["int8", "uint8"]
LAYOUTS = ["first", "last"]
STARTS = ["numpy", "aligned"]  # arrays as NumPy allocates them, or at the start of a cache line, as frameworks do
CACHE_LINE = 64


class Workload(NamedTuple):
    """An operator with its attributes, on an input of shape (N, C, *spatial)."""

    operator: str
    shape: tuple[int, ...]
    attributes: dict[str, Any]
    memory: str = ""  # the memory layout of the input, if it is not contiguous: "transposed", "sliced" or "stepped"

    @property
    def dtypes(self) -> list[str]:
        """The dtypes that the operator has."""
        if self.operator.startswith(("QLinear", "Nhwc")):
            return BYTES
        return FLOATS + BYTES if self.operator == "MaxPool" else FLOATS

    @property
    def layouts(self) -> list[str]:
        """The layouts that the operator has."""
        return ["last"] if self.operator == "NhwcMaxPool" else LAYOUTS


def square(size: int, axes: int = 2) -> dict[str, Any]:
    """A window of the same size along every axis, at every position of the input."""
    return {"kernel_shape": [size] * axes, "pads": [size // 2] * 2 * axes}


POOLS = {
    "tiny_max2x2": Workload("MaxPool", (1, 3, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "stem_max3x3s2_b1": Workload(
        "MaxPool", (1, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
    "stem_max3x3s2_b8": Workload(
        "MaxPool", (8, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
    "vgg_max2x2s2_b4": Workload("MaxPool", (4, 64, 224, 224), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "sppf_max5x5s1": Workload("MaxPool", (8, 256, 20, 20), {"kernel_shape": [5, 5], "pads": [2] * 4}),
    "spp_max13x13s1": Workload("MaxPool", (8, 256, 20, 20), {"kernel_shape": [13, 13], "pads": [6] * 4}),
    "max3d_3s2": Workload(
        "MaxPool", (2, 64, 16, 56, 56), {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [1] * 6}),
    "max_dilated": Workload(
        "MaxPool", (4, 64, 64, 64), {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2] * 4}),
    "inception_avg3x3s1": Workload("AveragePool", (8, 192, 35, 35), {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "inception_avg3x3s1_include": Workload(
        "AveragePool", (8, 192, 35, 35), {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
    "densenet_avg2x2s2": Workload("AveragePool", (8, 256, 56, 56), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "avg3x3s2_ceil": Workload(
        "AveragePool", (8, 64, 113, 113), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "avg31x31s1": Workload("AveragePool", (1, 16, 256, 256), {"kernel_shape": [31, 31], "pads": [15] * 4}),
    "avg1d_k4s4": Workload("AveragePool", (8, 256, 16000), {"kernel_shape": [4], "strides": [4]}),
    "avg1d_k25s5": Workload("AveragePool", (4, 64, 16000), {"kernel_shape": [25], "strides": [5]}),
    "avg3d_2s2": Workload("AveragePool", (2, 64, 16, 56, 56), {"kernel_shape": [2] * 3, "strides": [2] * 3}),
    "avg_dilated": Workload(
        "AveragePool", (4, 64, 64, 64), {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2] * 4}),
    "gap_7x7_b1": Workload("GlobalAveragePool", (1, 2048, 7, 7), {}),
    "gap_7x7_b32": Workload("GlobalAveragePool", (32, 2048, 7, 7), {}),
    "gap_112_b8": Workload("GlobalAveragePool", (8, 64, 112, 112), {}),
    "gmp_7x7_b32": Workload("GlobalMaxPool", (32, 2048, 7, 7), {}),
    "gmp_112_b8": Workload("GlobalMaxPool", (8, 64, 112, 112), {}),
    "glp2_7x7_b32": Workload("GlobalLpPool", (32, 2048, 7, 7), {"p": 2}),
    "glp3_56_b8": Workload("GlobalLpPool", (8, 64, 56, 56), {"p": 3}),
    "lp2_3x3s2": Workload("LpPool", (8, 64, 56, 56), {"kernel_shape": [3, 3], "strides": [2, 2], "p": 2}),
    "qgap_7x7_b32": Workload("QLinearGlobalAveragePool", (32, 2048, 7, 7), {}),
    "qgap_56_b8": Workload("QLinearGlobalAveragePool", (8, 256, 56, 56), {}),
    "qavg3x3s1": Workload("QLinearAveragePool", (8, 192, 35, 35), {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "qavg2x2s2": Workload("QLinearAveragePool", (8, 256, 56, 56), {"kernel_shape": [2, 2], "strides": [2, 2]}),
}
FURTHER = {
    "nhwc_stem_max3x3s2_b1": Workload(
        "NhwcMaxPool", (1, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
    "indices_stem_max3x3s2_b1": Workload("MaxPool", (1, 64, 112, 112), {
        "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "return_indices": True}),
    "indices_sppf_max5x5s1": Workload(
        "MaxPool", (8, 256, 20, 20), {"kernel_shape": [5, 5], "pads": [2] * 4, "return_indices": True}),
    "unpool2x2s2_b4": Workload("MaxUnpool", (4, 64, 112, 112), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "rois_7x7_r512": Workload("MaxRoiPool", (2, 256, 50, 50), {"pooled_shape": [7, 7]}),
    "align_7x7_r512": Workload(
        "RoiAlign", (2, 256, 50, 50), {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
}
SHAPES = {
    "max3x3s2_odd": Workload("MaxPool", (4, 64, 57, 61), {**square(3), "strides": [2, 2]}),
    "avg3x3s1_odd": Workload("AveragePool", (4, 64, 37, 43), square(3)),
    "avg2x2s2_odd": Workload("AveragePool", (4, 64, 57, 61), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "max3x3s2_c3": Workload("MaxPool", (4, 3, 224, 224), {**square(3), "strides": [2, 2]}),
    "avg3x3s1_c3": Workload("AveragePool", (4, 3, 224, 224), square(3)),
    "max3x3s1_c1": Workload("MaxPool", (8, 1, 224, 224), square(3)),
    "avg2x2s2_c1": Workload("AveragePool", (8, 1, 224, 224), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "max5x1": Workload("MaxPool", (4, 64, 56, 56), {"kernel_shape": [5, 1], "pads": [2, 0, 2, 0]}),
    "max1x7": Workload("MaxPool", (4, 64, 56, 56), {"kernel_shape": [1, 7], "pads": [0, 3, 0, 3]}),
    "avg5x1": Workload("AveragePool", (4, 64, 56, 56), {"kernel_shape": [5, 1], "pads": [2, 0, 2, 0]}),
    "avg1x7": Workload("AveragePool", (4, 64, 56, 56), {"kernel_shape": [1, 7], "pads": [0, 3, 0, 3]}),
    "max3x3s3": Workload("MaxPool", (4, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [3, 3]}),
    "avg5x5s3": Workload("AveragePool", (4, 64, 112, 112), {"kernel_shape": [5, 5], "strides": [3, 3]}),
    "max3x3s2_asymmetric": Workload(
        "MaxPool", (4, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}),
    "avg3x3s1_asymmetric": Workload(
        "AveragePool", (8, 192, 35, 35), {"kernel_shape": [3, 3], "pads": [2, 0, 0, 1]}),
    "max2x2s1_4x4": Workload("MaxPool", (64, 512, 4, 4), {"kernel_shape": [2, 2]}),
    "avg3x3s1_5x5": Workload("AveragePool", (32, 512, 5, 5), square(3)),
    "max3x3s1_35x35": Workload("MaxPool", (8, 192, 35, 35), square(3)),
    "max5x5s1_40x40": Workload("MaxPool", (8, 128, 40, 40), square(5)),
    "avg3x3s1_28x28": Workload("AveragePool", (8, 192, 28, 28), {"kernel_shape": [3, 3]}),
    "gap_3x3": Workload("GlobalAveragePool", (64, 1024, 3, 3), {}),
    "max3x3s1_plane": Workload("MaxPool", (1, 1, 2048, 2048), square(3)),
    "max3x3s2_plane": Workload("MaxPool", (1, 1, 2048, 2048), {**square(3), "strides": [2, 2]}),
    "avg2x2s2_plane": Workload("AveragePool", (1, 1, 2048, 2048), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "gap_14x14": Workload("GlobalAveragePool", (4, 512, 14, 14), {}),
    "gap_c3": Workload("GlobalAveragePool", (8, 3, 224, 224), {}),
    "gmp_c20": Workload("GlobalMaxPool", (8, 20, 112, 112), {}),
    "gap_image": Workload("GlobalAveragePool", (1, 64, 224, 224), {}),
    "gap_plane": Workload("GlobalAveragePool", (1, 1, 2048, 2048), {}),
    "gmp_plane": Workload("GlobalMaxPool", (1, 1, 2048, 2048), {}),
    "max3x3s2_transposed": Workload("MaxPool", (4, 64, 56, 56), {**square(3), "strides": [2, 2]}, "transposed"),
    "avg3x3s1_transposed": Workload("AveragePool", (4, 64, 56, 56), square(3), "transposed"),
    "max3x3s2_sliced": Workload("MaxPool", (4, 64, 56, 56), {**square(3), "strides": [2, 2]}, "sliced"),
    "avg3x3s1_sliced": Workload("AveragePool", (4, 64, 56, 56), square(3), "sliced"),
    "gap_sliced": Workload("GlobalAveragePool", (4, 64, 56, 56), {}, "sliced"),
    "avg2x2s2_stepped": Workload(
        "AveragePool", (4, 64, 56, 56), {"kernel_shape": [2, 2], "strides": [2, 2]}, "stepped"),
    "max3d_k3s1": Workload("MaxPool", (1, 32, 32, 32, 32), square(3, 3)),
    "max4d_k3s1": Workload("MaxPool", (1, 32, 16, 16, 16, 8), square(3, 4)),
    "max5d_k3s1": Workload("MaxPool", (1, 32, 8, 8, 8, 8, 8), square(3, 5)),
    "avg3d_k2s2": Workload("AveragePool", (1, 32, 32, 32, 32), {"kernel_shape": [2] * 3, "strides": [2] * 3}),
    "avg4d_k2s2": Workload("AveragePool", (1, 32, 16, 16, 16, 8), {"kernel_shape": [2] * 4, "strides": [2] * 4}),
    "avg5d_k2s2": Workload("AveragePool", (1, 32, 8, 8, 8, 8, 8), {"kernel_shape": [2] * 5, "strides": [2] * 5}),
    "max5x5s5": Workload("MaxPool", (1, 64, 56, 56), {"kernel_shape": [5, 5], "strides": [5, 5]}),
    "max7x7s7_13x13": Workload("MaxPool", (4, 320, 13, 13), {"kernel_shape": [7, 7], "strides": [7, 7]}),
    "avg3x3s3_27x27": Workload("AveragePool", (2, 64, 27, 27), {"kernel_shape": [3, 3], "strides": [3, 3]}),
    "avg3d_k3s3_page": Workload("AveragePool", (8, 192, 16, 8, 8), {**square(3, 3), "strides": [3] * 3}),
    "max1d_k2s2": Workload("MaxPool", (4, 64, 1000), {"kernel_shape": [2], "strides": [2]}),
    "max3x3s1": Workload("MaxPool", (1, 16, 256, 256), square(3)),
    "max31x31s1": Workload("MaxPool", (1, 16, 256, 256), square(31)),
    "max127x127s1": Workload("MaxPool", (1, 16, 256, 256), square(127)),
    "avg3x3s1": Workload("AveragePool", (1, 16, 256, 256), square(3)),
    "avg127x127s1": Workload("AveragePool", (1, 16, 256, 256), square(127)),
    "max_undilated": Workload("MaxPool", (4, 64, 64, 64), square(3)),
    "avg_undilated": Workload("AveragePool", (4, 64, 64, 64), square(3)),
}
ZOO = {f"{name}_b{batch}": Workload(layer.operator, (batch, *layer.shape), layer.attributes)
       for batch in (1, 8) for name, layer in LAYERS.items()}
GROUPS = {  # in words, for tables
    "pools of networks": POOLS,
    "indices, unpooling and regions": FURTHER,
    "unusual shapes": SHAPES,
    "the zoo of layers": ZOO,
}
WORKLOADS = POOLS | FURTHER | SHAPES | ZOO
BOUNDS = {  # the most time that it may take, as a multiple of a simpler workload with as many elements
    ("max31x31s1", "max3x3s1"): 4.0,
    ("max127x127s1", "max3x3s1"): 6.0,
    ("avg31x31s1", "avg3x3s1"): 4.0,
    ("avg127x127s1", "avg3x3s1"): 6.0,
    ("max_dilated", "max_undilated"): 1.2,
    ("avg_dilated", "avg_undilated"): 1.2,
    ("max4d_k3s1", "max3d_k3s1"): 1.5,
    ("max5d_k3s1", "max3d_k3s1"): 1.5,
    ("avg4d_k2s2", "avg3d_k2s2"): 1.5,
    ("avg5d_k2s2", "avg3d_k2s2"): 1.5,
}
REGIONS = 512  # number of regions of the workloads that pool them


def array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An input with typical values of activations, or with all byte values for the integer types."""
    rng = np.random.default_rng(0)
    if dtype in BYTES:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape, np.float64 if dtype == "float64" else np.float32)
    if dtype == "bfloat16":
        import ml_dtypes
        return values.astype(ml_dtypes.bfloat16)
    return values.astype(dtype, copy=False)


def lay(x: np.ndarray, layout: str, memory: str) -> np.ndarray:
    """The same values with other axes and with the workload's memory layout."""
    if layout == "last":
        x = np.moveaxis(x, 1, -1)
    if memory == "transposed":  # the other layout's order
        order = (1, -1) if layout == "first" else (-1, 1)
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, *order)), *reversed(order))
    if memory == "sliced":  # a part of every axis of a larger array
        room, part = [size + 3 for size in x.shape], (slice(1, -2),) * x.ndim
    elif memory == "stepped":  # every other element
        room, part = [*x.shape[:-1], 2 * x.shape[-1]], (..., slice(None, None, 2))
    else:
        return np.ascontiguousarray(x)
    view = np.zeros(room, x.dtype)[part]
    view[...] = x
    return view


def aligned(a: np.ndarray) -> np.ndarray:
    """A copy that begins at the start of a cache line."""
    room = np.empty(a.nbytes + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    copy = room[start:start + a.nbytes].view(a.dtype).reshape(a.shape)
    copy[...] = a
    return copy


def further(operator: str, x: np.ndarray, shape: tuple[int, ...], layout: str) -> tuple[np.ndarray, ...]:
    """The inputs after x, whose shape with channels first is given."""
    zero = np.zeros((), x.dtype)
    if operator.startswith("QLinear"):
        return np.array(0.05, np.float32), zero, np.array(0.04, np.float32), zero
    if operator == "MaxUnpool":
        n, c, h, w = np.ogrid[tuple(slice(size) for size in shape)]
        places = ((n * shape[1] + c) * 2 * shape[2] + 2 * h) * 2 * shape[3] + 2 * w
        return (lay(places, layout, ""),)
    if operator in ("MaxRoiPool", "RoiAlign"):
        rng = np.random.default_rng(0)
        corners = np.sort(rng.uniform(0, shape[-1], (REGIONS, 2, 2)), axis=1).reshape(REGIONS, 4)
        images = rng.integers(0, shape[0], REGIONS)
        if operator == "RoiAlign":
            return corners.astype(x.dtype), images
        return (np.hstack([images[:, None], corners]).astype(x.dtype),)
    return ()


class Call:
    """A prepared workload: a plan, its inputs and the output that it writes into."""

    def __init__(self, name: str, dtype: str, layout: str, threads: str, start: str = "numpy") -> None:
        import onnxpool
        work = WORKLOADS[name]
        operator = getattr(onnxpool, work.operator, None)
        if operator is None:
            raise NotImplementedError(f"this version has no {work.operator}")  # asv leaves the benchmark out
        x = lay(array(work.shape, dtype), layout, work.memory)
        self.plan = operator(**work.attributes, channels_last=layout == "last").plan(x.shape, x.dtype)
        self.inputs, self.threads = (x, *further(work.operator, x, work.shape, layout)), int(threads)
        if start == "aligned" and not work.memory:
            self.inputs = tuple(map(aligned, self.inputs))
        self.out = self.plan(*self.inputs, num_threads=self.threads)
        if start == "aligned":
            self.out = tuple(map(aligned, self.out)) if isinstance(self.out, tuple) else aligned(self.out)
        self()  # one-time costs, such as allocations and imports, are not part of the time of a call

    @property
    def bytes(self) -> int:
        """The number of bytes read and written."""
        outs = self.out if isinstance(self.out, tuple) else (self.out,)
        return sum(a.nbytes for a in (*self.inputs, *outs))

    def __call__(self) -> None:
        self.plan(*self.inputs, out=self.out, num_threads=self.threads)
