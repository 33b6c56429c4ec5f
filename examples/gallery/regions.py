"""
RoiAlign beside RoiPool
=======================

Both turn a region of an image into a few bins. MaxRoiPool rounds the region to whole elements, so as the
region shifts, the result stays the same and then jumps. RoiAlign interpolates, and follows the shift smoothly.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

y, x = np.mgrid[:16, :16].astype(np.float32)
image = np.exp(-((x - 7.3) ** 2 + (y - 8.1) ** 2) / 12)[None, None]

shifts = np.linspace(0, 6, 121, dtype=np.float32)
corners = np.stack([2 + shifts, np.full_like(shifts, 4), 8 + shifts, np.full_like(shifts, 12)], 1)  # x1, y1, x2, y2
images = np.zeros(shifts.size, np.int64)
aligned = onnxpool.roi_align(image, corners, images, output_height=2, output_width=2, sampling_ratio=4)
rounded = onnxpool.max_roi_pool(image, np.column_stack([images.astype(np.float32), corners]), (2, 2))

figure, axes = plt.subplots(2, 1, figsize=(5.6, 6.4), layout="constrained")
axes[0].imshow(image[0, 0], cmap="gray")
for shift, style in ((0, "-"), (6, "--")):
    left, top, right, bottom = corners[0] + (shift, 0, shift, 0)
    axes[0].plot([left, right, right, left, left], [top, top, bottom, bottom, top], style, color="#d55e00", linewidth=2)
axes[0].set_title("the region moves 6 pixels to the right", fontsize=10)
axes[0].set_axis_off()
axes[1].plot(shifts, rounded[:, 0, 0, 0], color="#888888", linewidth=2, label="MaxRoiPool")
axes[1].plot(shifts, aligned[:, 0, 0, 0], color="#0072b2", linewidth=2, label="RoiAlign")
axes[1].set_xlabel("shift in pixels")
axes[1].set_title("the result in the upper left of 2 x 2 bins", fontsize=10)
axes[1].legend(loc="lower right")
plt.show()
