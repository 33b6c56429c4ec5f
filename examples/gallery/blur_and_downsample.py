"""
Blur and downsample
===================

The rings of this pattern become finer towards the border. Taking every sixth pixel turns fine rings into coarse
rings that do not exist (aliasing). Means of blocks suppress this aliasing, and blurring the image first suppresses it
further.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool
from onnxpool import ndimage

y, x = np.mgrid[-1:1:480j, -1:1:480j]
rings = (128 + 127 * np.cos(220 * (x**2 + y**2))).astype(np.uint8)

pictures = {
    "the image, 480 x 480": rings,
    "every 6th pixel": rings[::6, ::6],
    "means of 6 x 6 blocks": onnxpool.average_pool(rings, 6, strides=6, axes=(0, 1), dtype=rings.dtype),
    "blurred, and every 6th pixel": ndimage.uniform_filter(rings, 12)[3::6, 3::6],
}

figure, axes = plt.subplots(2, 2, figsize=(5.6, 6), layout="constrained")
for ax, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
plt.show()
