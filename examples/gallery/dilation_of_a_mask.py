"""
Dilation and erosion of a mask
==============================

The maximum of the window around each pixel dilates a mask, and the minimum erodes it. An opening,
which is an erosion followed by a dilation, removes specks. A closing, which dilates first, fills holes.
"""

import matplotlib.pyplot as plt
import numpy as np

from onnxpool import ndimage

rng = np.random.default_rng(1)
y, x = np.mgrid[:120, :120]
mask = (np.hypot(x - 45, y - 60) < 28) | (np.abs(x - 85) + np.abs(y - 60) < 24)
mask ^= rng.random(mask.shape) < 0.02  # specks and holes


opened, closed = ndimage.grey_opening(mask, 3), ndimage.grey_closing(mask, 3)
pictures = {"mask": mask, "dilated": ndimage.grey_dilation(mask, 5), "eroded": ndimage.grey_erosion(mask, 5),
            "opened": opened, "closed": closed, "closed, then opened": ndimage.grey_opening(closed, 3)}

figure, axes = plt.subplots(2, 3, figsize=(5.6, 4.2), layout="constrained")
for ax, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    ax.imshow(picture, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    ax.set_title(title, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()
