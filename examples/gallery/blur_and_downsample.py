"""
Blur and downsample
===================

A pattern with rings that become finer towards the border. Taking every sixth pixel turns fine rings into coarse ones
that are not there (aliasing). Means of blocks, or of larger overlapping windows, leave them out.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

y, x = np.mgrid[-1:1:480j, -1:1:480j]
rings = (128 + 127 * np.cos(220 * (x**2 + y**2))).astype(np.uint8)

pictures = {
    "the image, 480 x 480": rings,
    "every 6th pixel": rings[::6, ::6],
    "means of 6 x 6 blocks": onnxpool.average_pool(rings, 6, strides=6, axes=(0, 1), dtype=rings.dtype),
    "means of 12 x 12 windows, stride 6": onnxpool.average_pool(rings, 12, strides=6, pads=3, axes=(0, 1),
                                                                dtype=rings.dtype),
}

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
plt.show()
