"""
Dilation and erosion of a mask
==============================

The maximum of the window around each pixel dilates a mask, and the minimum erodes it. An opening,
which is an erosion followed by a dilation, removes specks. A closing, which dilates first, fills holes.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

rng = np.random.default_rng(1)
y, x = np.mgrid[:120, :120]
mask = (np.hypot(x - 45, y - 60) < 28) | (np.abs(x - 85) + np.abs(y - 60) < 24)
mask ^= rng.random(mask.shape) < 0.02  # specks and holes


def dilated(a: np.ndarray, size: int = 5) -> np.ndarray:
    """The maximum around each pixel."""
    return onnxpool.max_pool(a, size, pads=size // 2, axes=(0, 1))


def eroded(a: np.ndarray, size: int = 5) -> np.ndarray:
    """The minimum around each pixel."""
    return onnxpool.min_pool(a, size, pads=size // 2, axes=(0, 1))


opened, closed = dilated(eroded(mask, 3), 3), eroded(dilated(mask, 3), 3)
pictures = {"mask": mask, "dilated": dilated(mask), "eroded": eroded(mask), "opened": opened, "closed": closed,
            "closed, then opened": dilated(eroded(closed, 3), 3)}

figure, axes = plt.subplots(2, 3, figsize=(5.6, 4.2), layout="constrained")
for ax, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    ax.imshow(picture, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()
