"""
A moving average of a signal
============================

A mean of 25 neighbours smooths a noisy signal. At its ends, windows reach into the padding, which does not count:
each mean covers only the samples that exist.
"""

import matplotlib.pyplot as plt
import numpy as np

import onnxpool

time = np.linspace(0, 4 * np.pi, 400)
noisy = np.sin(time) + np.random.default_rng(0).normal(0, 0.4, time.size)

window = 25
smooth = onnxpool.average_pool(noisy, window, pads=window // 2, axes=0)
lowest, highest = (pool(noisy, window, pads=window // 2, axes=0) for pool in (onnxpool.min_pool, onnxpool.max_pool))

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
ax.fill_between(time, lowest, highest, color="#b9d7ea", label="minimum to maximum of 25 samples")
ax.plot(time, noisy, ".", color="#888888", markersize=3, label="samples")
ax.plot(time, smooth, color="#d55e00", linewidth=2, label="mean of 25 samples")
ax.set_xlabel("time")
figure.legend(loc="outside upper center", ncols=2)
plt.show()
