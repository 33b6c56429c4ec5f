"""
ceil_mode at borders
====================

Blocks of 4 do not fill an axis of 10. Without ``ceil_mode``, the last two elements are in no window. With it, a third
window covers them, and its sum is divided by 2. ``plan.plot()`` draws the windows.
"""

import matplotlib.pyplot as plt

import onnxpool

figure, axes = plt.subplots(2, 1, figsize=(5.3, 4.6), layout="constrained")
for ax, ceil_mode in zip(axes, (0, 1), strict=True):
    op = onnxpool.AveragePool(kernel_shape=4, strides=4, ceil_mode=ceil_mode, axes=0)
    op.plan((10,), "float32").plot(ax)
    ax.set_title(f"ceil_mode={ceil_mode}", fontsize=11, loc="left")
plt.show()
