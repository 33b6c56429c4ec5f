"""
Peaks
=====

A pixel is a peak if it equals the maximum of the window around it. With a threshold, this finds the points of a heat
map without a loop. Two equal neighbours would both be peaks, so the script
uses Indices, which name only the first.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

rng = np.random.default_rng(4)
y, x = np.mgrid[:160, :240]
centres = rng.uniform((10, 10), (150, 230), (14, 2))
heat = sum(height * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 90)
           for (cy, cx), height in zip(centres, rng.uniform(0.4, 1, 14), strict=True))
heat = (heat + rng.normal(0, 0.01, heat.shape)).astype(np.float32)

maxima, places = onnxpool.max_pool(heat, 13, pads=6, axes=(0, 1), return_indices=True)
is_peak = (places == np.arange(heat.size).reshape(heat.shape)) & (maxima > 0.25)
rows, columns = np.nonzero(is_peak)

figure, axes = plt.subplots(2, 1, figsize=(5.6, 7.6), layout="constrained")
for ax, picture, title in zip(axes, (heat, maxima), (f"heat map, {rows.size} peaks", "maxima of 13 x 13 windows"),
                              strict=True):
    ax.imshow(picture, cmap="viridis", vmin=0)
    ax.plot(columns, rows, "o", markerfacecolor="none", markeredgecolor="#d55e00", markersize=12, markeredgewidth=2)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
plt.show()
