"""
A pyramid
=========

The levels of a pyramid are means of blocks of 2, 4, 8 and more pixels. ``ceil_mode=1`` keeps the last rows and
columns of odd sizes, and ``dtype`` keeps the dtype of the image.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

y, x = np.mgrid[0:1:301j, 0:1.5:451j]
image = np.stack([np.sin(40 * x * y), np.cos(25 * x - 10 * y), np.sin(30 * np.hypot(x - 0.7, y - 0.5)),
                  np.ones_like(x * y)], -1)  # red, green, blue, opaque
image = (127.5 + 127.5 * image).astype(np.uint8)

levels = {1: image, **{f: onnxpool.average_pool(image, f, strides=f, axes=(0, 1), ceil_mode=1, dtype=image.dtype)
                       for f in (2, 4, 8, 16)}}

canvas = np.zeros((301, 451 + 4 + 226, 4), np.uint8)  # transparent
canvas[:, :451] = image
top = 0
for level in list(levels.values())[1:]:
    height, width = level.shape[:2]
    canvas[top:top + height, 455:455 + width] = level
    top += height + 3

figure, ax = plt.subplots(figsize=(5.6, 2.9), layout="constrained")
ax.imshow(canvas, interpolation="nearest")
ax.set_title("levels " + ", ".join(f"{level.shape[1]} x {level.shape[0]}" for level in levels.values()), fontsize=10)
ax.set_axis_off()
plt.show()
