"""
Argmax and back
===============

``return_indices=True`` tells where each maximum lies, and ``max_unpool`` puts the maxima back there. The rest of the
image is zero: what remains is a sparse image that keeps the place of each maximum.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

rng = np.random.default_rng(7)
image = rng.random((1, 1, 12, 12)).astype(np.float32)

maxima, indices = onnxpool.max_pool(image, 3, strides=3, return_indices=True)
back = onnxpool.max_unpool(maxima, indices, 3, strides=3)
assert np.count_nonzero(back) == maxima.size

rows, columns = np.unravel_index(indices[0, 0].ravel(), image.shape[2:])
figure, axes = plt.subplots(1, 3, figsize=(5.6, 2.2), layout="constrained")
titles = ("3 x 3 blocks", "maxima", "max_unpool")
for ax, picture, title in zip(axes, (image, maxima, back), titles, strict=True):
    ax.imshow(picture[0, 0], cmap="viridis", vmin=0, vmax=1)
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
axes[0].plot(columns, rows, "s", markerfacecolor="none", markeredgecolor="#d55e00", markersize=9, markeredgewidth=2)
for line in range(3, 12, 3):
    axes[0].axhline(line - 0.5, color="white")
    axes[0].axvline(line - 0.5, color="white")
plt.show()
