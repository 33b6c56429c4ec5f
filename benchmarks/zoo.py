"""The zoo: pooling layers of about 60 networks at their usual input sizes, without a batch.

It tests the choice of routes, because nobody tuned a loop to it. `draw` makes random layers of the same kind.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

MOST = 4_000_000  # elements of a random layer
Sizes = int | tuple[int, ...]  # one for all axes, or one for each


class Layer(NamedTuple):
    """An operator with its attributes, on an input of shape (N, *shape)."""

    operator: str
    shape: tuple[int, ...]  # channels and spatial axes
    attributes: dict[str, Any]


def layer(operator: str, *shape: int, kernel: Sizes = 0, strides: Sizes = 1, pads: Sizes = 0, **more: Any) -> Layer:
    """A layer. Without a kernel, the operator is a global pool. Pads are the same at both ends unless all are given."""
    axes = len(shape) - 1

    def each(values: Sizes) -> list[int]:
        return [values] * axes if isinstance(values, int) else list(values)

    if not kernel:
        return Layer(operator, shape, more)
    ends = each(pads) if len(each(pads)) == 2 * axes else each(pads) * 2
    return Layer(operator, shape, {"kernel_shape": each(kernel), "strides": each(strides), "pads": ends, **more})


LAYERS = {
    # AlexNet, VGG, ResNet, ResNet-D, ResNeXt heads
    "alexnet_1": layer("MaxPool", 64, 55, 55, kernel=3, strides=2),
    "alexnet_2": layer("MaxPool", 192, 27, 27, kernel=3, strides=2),
    "alexnet_5": layer("MaxPool", 256, 13, 13, kernel=3, strides=2),
    "vgg_1": layer("MaxPool", 64, 224, 224, kernel=2, strides=2),
    "vgg_2": layer("MaxPool", 128, 112, 112, kernel=2, strides=2),
    "vgg_3": layer("MaxPool", 256, 56, 56, kernel=2, strides=2),
    "vgg_4": layer("MaxPool", 512, 28, 28, kernel=2, strides=2),
    "vgg_5": layer("MaxPool", 512, 14, 14, kernel=2, strides=2),
    "resnet_stem": layer("MaxPool", 64, 112, 112, kernel=3, strides=2, pads=1),
    "resnet50_head7": layer("AveragePool", 2048, 7, 7, kernel=7),
    "resnet50_gap": layer("GlobalAveragePool", 2048, 7, 7),
    "resnet18_gap": layer("GlobalAveragePool", 512, 7, 7),
    "resnetd_2": layer("AveragePool", 256, 56, 56, kernel=2, strides=2, ceil_mode=1),
    "resnetd_3": layer("AveragePool", 512, 28, 28, kernel=2, strides=2, ceil_mode=1),
    "resnetd_4": layer("AveragePool", 1024, 14, 14, kernel=2, strides=2, ceil_mode=1),
    # DenseNet
    "densenet_t1": layer("AveragePool", 128, 56, 56, kernel=2, strides=2),
    "densenet_t2": layer("AveragePool", 256, 28, 28, kernel=2, strides=2),
    "densenet_t3": layer("AveragePool", 512, 14, 14, kernel=2, strides=2),
    "densenet_gap": layer("GlobalAveragePool", 1024, 7, 7),
    # GoogLeNet and Inception v3
    "googlenet_1": layer("MaxPool", 64, 112, 112, kernel=3, strides=2, ceil_mode=1),
    "googlenet_2": layer("MaxPool", 192, 56, 56, kernel=3, strides=2, ceil_mode=1),
    "googlenet_3a": layer("MaxPool", 192, 28, 28, kernel=3, pads=1),
    "googlenet_3": layer("MaxPool", 480, 28, 28, kernel=3, strides=2, ceil_mode=1),
    "googlenet_4a": layer("MaxPool", 480, 14, 14, kernel=3, pads=1),
    "googlenet_4e": layer("MaxPool", 528, 14, 14, kernel=3, pads=1),
    "googlenet_4": layer("MaxPool", 832, 14, 14, kernel=2, strides=2, ceil_mode=1),
    "googlenet_5a": layer("MaxPool", 832, 7, 7, kernel=3, pads=1),
    "googlenet_aux": layer("AveragePool", 512, 14, 14, kernel=5, strides=3),
    "googlenet_head": layer("AveragePool", 1024, 7, 7, kernel=7),
    "incv3_1": layer("MaxPool", 64, 147, 147, kernel=3, strides=2),
    "incv3_2": layer("MaxPool", 192, 71, 71, kernel=3, strides=2),
    "incv3_5b": layer("AveragePool", 192, 35, 35, kernel=3, pads=1),
    "incv3_5c": layer("AveragePool", 256, 35, 35, kernel=3, pads=1),
    "incv3_6a": layer("MaxPool", 288, 35, 35, kernel=3, strides=2),
    "incv3_6b": layer("AveragePool", 768, 17, 17, kernel=3, pads=1),
    "incv3_7a": layer("MaxPool", 768, 17, 17, kernel=3, strides=2),
    "incv3_7b": layer("AveragePool", 1280, 8, 8, kernel=3, pads=1),
    "incv3_7c": layer("AveragePool", 2048, 8, 8, kernel=3, pads=1),
    "incv3_head": layer("AveragePool", 2048, 8, 8, kernel=8),
    # SqueezeNet, ShuffleNet, MobileNet, EfficientNet (squeeze and excite)
    "squeezenet_1": layer("MaxPool", 96, 109, 109, kernel=3, strides=2, ceil_mode=1),
    "squeezenet_4": layer("MaxPool", 256, 54, 54, kernel=3, strides=2, ceil_mode=1),
    "squeezenet_8": layer("MaxPool", 512, 27, 27, kernel=3, strides=2, ceil_mode=1),
    "squeezenet_gap": layer("GlobalAveragePool", 1000, 13, 13),
    "shufflenet_stem": layer("MaxPool", 24, 112, 112, kernel=3, strides=2, pads=1),
    "shufflenet_2": layer("AveragePool", 24, 56, 56, kernel=3, strides=2, pads=1),
    "shufflenet_3": layer("AveragePool", 240, 28, 28, kernel=3, strides=2, pads=1),
    "shufflenet_4": layer("AveragePool", 480, 14, 14, kernel=3, strides=2, pads=1),
    "mobilenet_gap": layer("GlobalAveragePool", 1280, 7, 7),
    "mbv3_se_72": layer("GlobalAveragePool", 72, 28, 28),
    "mbv3_se_120": layer("GlobalAveragePool", 120, 28, 28),
    "mbv3_se_480": layer("GlobalAveragePool", 480, 14, 14),
    "mbv3_se_672": layer("GlobalAveragePool", 672, 14, 14),
    "mbv3_se_960": layer("GlobalAveragePool", 960, 7, 7),
    "effb0_se_32": layer("GlobalAveragePool", 32, 112, 112),
    "effb0_se_96": layer("GlobalAveragePool", 96, 56, 56),
    "effb0_se_144": layer("GlobalAveragePool", 144, 56, 56),
    "effb0_se_144s": layer("GlobalAveragePool", 144, 28, 28),
    "effb0_se_240": layer("GlobalAveragePool", 240, 28, 28),
    "effb0_se_480": layer("GlobalAveragePool", 480, 14, 14),
    "effb0_se_672": layer("GlobalAveragePool", 672, 14, 14),
    "effb0_se_1152": layer("GlobalAveragePool", 1152, 7, 7),
    # NASNet, PNASNet
    "nasnet_1": layer("AveragePool", 168, 42, 42, kernel=3, pads=1),
    "nasnet_2": layer("AveragePool", 336, 21, 21, kernel=3, pads=1),
    "nasnet_3": layer("AveragePool", 672, 11, 11, kernel=3, pads=1),
    "pnas_5x5": layer("MaxPool", 216, 42, 42, kernel=5, strides=2, pads=2),
    "pnas_7x7": layer("MaxPool", 432, 21, 21, kernel=7, strides=2, pads=3),
    "pnas_3x3": layer("MaxPool", 270, 83, 83, kernel=3, strides=2, pads=1),
    # YOLO, SPP
    "yolov5_sppf": layer("MaxPool", 256, 20, 20, kernel=5, pads=2),
    "yolov8x_sppf": layer("MaxPool", 320, 20, 20, kernel=5, pads=2),
    "yolov3_spp5": layer("MaxPool", 512, 19, 19, kernel=5, pads=2),
    "yolov3_spp9": layer("MaxPool", 512, 19, 19, kernel=9, pads=4),
    "yolov3_spp13": layer("MaxPool", 512, 19, 19, kernel=13, pads=6),
    "yolov7_mp1": layer("MaxPool", 128, 160, 160, kernel=2, strides=2),
    "yolov7_mp3": layer("MaxPool", 512, 40, 40, kernel=2, strides=2),
    "tiny_yolo_6": layer("MaxPool", 512, 13, 13, kernel=2, pads=(0, 0, 1, 1)),
    # Segmentation
    "pspnet_1": layer("AveragePool", 2048, 60, 60, kernel=60),
    "pspnet_2": layer("AveragePool", 2048, 60, 60, kernel=30, strides=30),
    "pspnet_3": layer("AveragePool", 2048, 60, 60, kernel=20, strides=20),
    "pspnet_6": layer("AveragePool", 2048, 60, 60, kernel=10, strides=10),
    "deeplab_gap": layer("GlobalAveragePool", 2048, 33, 33),
    "unet_1": layer("MaxPool", 64, 568, 568, kernel=2, strides=2),
    "unet_2": layer("MaxPool", 128, 280, 280, kernel=2, strides=2),
    "unet_3": layer("MaxPool", 256, 136, 136, kernel=2, strides=2),
    "unet_4": layer("MaxPool", 512, 64, 64, kernel=2, strides=2),
    # Volumes and video
    "c3d_1": layer("MaxPool", 64, 16, 112, 112, kernel=(1, 2, 2), strides=(1, 2, 2)),
    "c3d_2": layer("MaxPool", 128, 16, 56, 56, kernel=2, strides=2),
    "c3d_5": layer("MaxPool", 512, 2, 7, 7, kernel=2, strides=2, pads=(0, 0, 0, 0, 1, 1)),
    "i3d_1": layer("MaxPool", 64, 32, 112, 112, kernel=(1, 3, 3), strides=(1, 2, 2), pads=(0, 1, 1)),
    "i3d_branch": layer("MaxPool", 192, 16, 28, 28, kernel=3, pads=1),
    "i3d_head": layer("AveragePool", 1024, 8, 7, 7, kernel=(2, 7, 7)),
    "r3d_gap": layer("GlobalAveragePool", 512, 2, 7, 7),
    "unet3d_1": layer("MaxPool", 32, 64, 64, 64, kernel=2, strides=2),
    "unet3d_3": layer("MaxPool", 128, 16, 16, 16, kernel=2, strides=2),
    "vol_avg": layer("AveragePool", 16, 48, 48, 48, kernel=2, strides=2),
    # Text lines
    "crnn_1": layer("MaxPool", 64, 32, 100, kernel=2, strides=2),
    "crnn_2": layer("MaxPool", 128, 16, 50, kernel=2, strides=2),
    "crnn_3": layer("MaxPool", 256, 8, 25, kernel=2, strides=(2, 1), pads=(0, 1)),
    "crnn_4": layer("MaxPool", 512, 4, 26, kernel=2, strides=(2, 1), pads=(0, 1)),
    "ocr_2x1": layer("MaxPool", 256, 16, 80, kernel=(2, 1), strides=(2, 1)),
    "ppocr_head": layer("AveragePool", 480, 3, 80, kernel=(3, 2), strides=(3, 2)),
    "ppocr_se": layer("GlobalAveragePool", 48, 24, 160),
    # Sound and series
    "panns_1": layer("AveragePool", 64, 1001, 64, kernel=2, strides=2),
    "panns_3": layer("AveragePool", 256, 250, 16, kernel=2, strides=2),
    "panns_5": layer("AveragePool", 1024, 62, 4, kernel=2, strides=2),
    "vggish_1": layer("MaxPool", 64, 96, 64, kernel=2, strides=2),
    "yamnet_gap": layer("GlobalAveragePool", 1024, 3, 2),
    "m5_1": layer("MaxPool", 128, 3998, kernel=4, strides=4),
    "m5_3": layer("MaxPool", 256, 249, kernel=4, strides=4),
    "ecg_2": layer("MaxPool", 64, 5000, kernel=2, strides=2),
    "inception_time": layer("MaxPool", 32, 1000, kernel=3, pads=1),
    "series_avg": layer("AveragePool", 64, 2048, kernel=2, strides=2),
    "series_gap": layer("GlobalAveragePool", 128, 1000),
    "text_cnn": layer("GlobalMaxPool", 128, 120),
    "pointnet": layer("GlobalMaxPool", 1024, 1024),
    "pointnet_window": layer("MaxPool", 1024, 1024, kernel=1024),
    # PoolFormer, attention, GeM
    "poolformer_1": layer("AveragePool", 64, 56, 56, kernel=3, pads=1),
    "poolformer_2": layer("AveragePool", 128, 28, 28, kernel=3, pads=1),
    "poolformer_3": layer("AveragePool", 320, 14, 14, kernel=3, pads=1),
    "poolformer_4": layer("AveragePool", 512, 7, 7, kernel=3, pads=1),
    "cbam_avg_56": layer("GlobalAveragePool", 256, 56, 56),
    "cbam_max_56": layer("GlobalMaxPool", 256, 56, 56),
    "cbam_max_28": layer("GlobalMaxPool", 512, 28, 28),
    "gem_7": layer("GlobalLpPool", 2048, 7, 7, p=3),
    "gem_24x32": layer("GlobalLpPool", 1024, 24, 32, p=3),
    "lppool_2": layer("LpPool", 64, 56, 56, kernel=2, strides=2, pads=2),
    # Few channels
    "rgb_max3": layer("MaxPool", 3, 224, 224, kernel=3, strides=2, pads=1),
    "rgb_avg2": layer("AveragePool", 3, 224, 224, kernel=2, strides=2),
    "grey_avg3": layer("AveragePool", 1, 512, 512, kernel=3, pads=1),
    "grey_avg4": layer("AveragePool", 1, 1024, 1024, kernel=4, strides=4),
    "mask_max5": layer("MaxPool", 1, 512, 512, kernel=5, pads=2),
    "rgb_gap": layer("GlobalAveragePool", 3, 224, 224),
    "nms_3x3": layer("MaxPool", 80, 128, 128, kernel=3, pads=1),
    "nms_17": layer("MaxPool", 17, 64, 64, kernel=3, pads=1),
    # Quantised layers
    "q_resnet_gap": layer("QLinearGlobalAveragePool", 2048, 7, 7),
    "q_mobilenet_gap": layer("QLinearGlobalAveragePool", 1280, 7, 7),
    "q_se_240": layer("QLinearGlobalAveragePool", 240, 28, 28),
    "q_se_96": layer("QLinearGlobalAveragePool", 96, 56, 56),
    "q_densenet": layer("QLinearAveragePool", 256, 28, 28, kernel=2, strides=2),
    "q_incv3": layer("QLinearAveragePool", 192, 35, 35, kernel=3, pads=1),
    "q_head7": layer("QLinearAveragePool", 2048, 7, 7, kernel=7),
    "q_rgb2": layer("QLinearAveragePool", 3, 224, 224, kernel=2, strides=2),
    "q_grey4": layer("QLinearAveragePool", 1, 512, 512, kernel=4, strides=4),
    "q_panns": layer("QLinearAveragePool", 64, 250, 64, kernel=2, strides=2),
    "q_aux": layer("QLinearAveragePool", 768, 17, 17, kernel=5, strides=3),
    "q_shuffle": layer("QLinearAveragePool", 24, 56, 56, kernel=3, strides=2, pads=1),
}


def draw(rng: np.random.Generator, layers: Sequence[Layer] = tuple(LAYERS.values())) -> Layer:
    """
    A random layer: the window of one layer, the channels of a second and the sizes of a third.

    Channels and sizes are changed by up to a fifth, so that few are multiples of a register. Square planes stay square,
    and windows that cover the axes of their layer cover the new layer's axes.
    """
    def like(value: int) -> int:
        return value if value < 4 else int(rng.integers(value - value // 5, value + value // 5, endpoint=True))

    while True:
        window, other, place = (layers[rng.integers(len(layers))] for _ in range(3))
        if len(place.shape) != len(window.shape):
            continue
        changed = {size: like(size) for size in place.shape[1:]}
        sizes = tuple(changed[size] for size in place.shape[1:])
        attributes = dict(window.attributes)
        if "kernel_shape" in attributes:
            attributes["kernel_shape"] = [
                size if taps == whole > 3 else taps
                for size, taps, whole in zip(sizes, attributes["kernel_shape"], window.shape[1:], strict=True)]
            if any(taps > size for taps, size in zip(attributes["kernel_shape"], sizes, strict=True)):
                continue
        drawn = Layer(window.operator, (like(other.shape[0]), *sizes), attributes)
        if np.prod(drawn.shape) <= MOST:
            return drawn
