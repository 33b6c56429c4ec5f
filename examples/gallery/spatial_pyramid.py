"""
Features of a spatial pyramid
=============================

Spatial pyramid pooling turns maps of any size into a vector of fixed length: the maxima of 1 x 1, 2 x 2 and 4 x 4
bins, one after another. Here, the four maps contain the strength of an image's edges in four directions.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import onnxpool


def spatial_pyramid(maps: np.ndarray, bins: tuple[int, ...] = (1, 2, 4)) -> np.ndarray:
    """The maxima of bins x bins windows of each map (H, W, channels)."""
    parts = []
    for count in bins:
        strides = [math.floor(size / count) for size in maps.shape[:2]]
        kernel = [size - (count - 1) * stride for size, stride in zip(maps.shape[:2], strides, strict=True)]
        parts.append(onnxpool.max_pool(maps, kernel, strides=strides, axes=(0, 1)).reshape(-1, maps.shape[2]))
    return np.concatenate(parts)


y, x = np.mgrid[:90, :130].astype(np.float32)
image = np.where(x < 60, np.sin(x / 2), np.sin(y / 2)) + np.where(y > 60, 1.5 * np.sin((x + y) / 3), 0)
down, right = np.gradient(image)
maps = np.stack([np.abs(right), np.abs(down), np.abs(right + down), np.abs(right - down)], -1).astype(np.float32)
features = spatial_pyramid(maps)
assert features.shape == spatial_pyramid(maps[:71, :100]).shape == (21, 4)

figure, axes = plt.subplots(2, 1, figsize=(5.6, 6), layout="constrained")
axes[0].imshow(image, cmap="gray")
axes[0].set_title("image", fontsize=10)
axes[0].set_axis_off()
shown = axes[1].imshow(features.T, aspect="auto", cmap="viridis")
axes[1].set_yticks(range(4), ["across", "down", "diagonal", "other diagonal"])
axes[1].set_xticks([0, 2.5, 12.5], ["1 x 1", "2 x 2", "4 x 4"])
for edge in (0.5, 4.5):
    axes[1].axvline(edge, color="white", linewidth=2)
axes[1].set_title("21 bins of each of 4 maps", fontsize=10)
figure.colorbar(shown, label="maximum")
plt.show()
