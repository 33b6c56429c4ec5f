"""
The generalised mean (GeM)
==========================

GeM pooling, which image retrieval uses, lies between the mean (p = 1) and the maximum (p to infinity). It is an Lp
norm divided by a power of the number of elements: ``lp_norm / n ** (1 / p)``.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

rng = np.random.default_rng(3)
y, x = np.mgrid[:64, :64]
maps = rng.gamma(1.0, 0.1, (1, 3, 64, 64)).astype(np.float32)
for channel, (cy, cx, width) in enumerate([(20, 20, 3), (40, 30, 8), (32, 50, 20)]):  # a narrow, a wider, a wide bump
    maps[0, channel] += np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))

orders = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
gem = np.array([onnxpool.global_lp_pool(maps, p=p).ravel() / maps[0, 0].size ** (1 / p) for p in orders])
mean = onnxpool.global_average_pool(maps).ravel()
highest = onnxpool.global_max_pool(maps).ravel()
np.testing.assert_allclose(gem[0], mean, rtol=1e-5)

figure, axes = plt.subplot_mosaic([[0, 1, 2], [3, 3, 3]], figsize=(5.6, 5.2), height_ratios=(1, 1.6),
                                    layout="constrained")
colours = ("#0072b2", "#d55e00", "#009e73")
for channel, colour in enumerate(colours):
    axes[channel].imshow(maps[0, channel], cmap="gray")
    axes[channel].set_title(f"map {channel + 1}", color=colour, fontsize=10)
    axes[channel].set_axis_off()
    axes[3].semilogx(orders, gem[:, channel], "o-", color=colour, base=2)
    axes[3].axhline(highest[channel], color=colour, linestyle=":", linewidth=1)
axes[3].set_xlabel("p (dotted: the maximum)")
axes[3].set_title("generalised mean", fontsize=10)
axes[3].set_ylim(0)
plt.show()
