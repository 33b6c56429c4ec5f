"""Constants shared by Python and the compiled core. The build writes them to `shared_constants.h`."""

FEW = 8  # up to this many taps along an axis are added in sequence; more are added as an aligned binary tree
FULL_ROW = 64  # bytes of accumulators per row in pools of whole channels with few lanes
CACHE_LINE = 64  # bytes
LEAST_SLIDING = 32  # bytes of accumulators for windows that slide along rows
MOST_AXES = 64  # maximum axes of an array, as in NumPy
MOST_BORDER = 1 << 26  # windows of an axis that may reach into padding; no real model has more
MOST_PLACES = 1 << 30  # maximum places along several axes, and across a window's taps: 32 bits hold their sum
MOST_RUNS = 2 * FEW  # maximum runs of windows along a row: each window that overhangs an end is its own run
MOST_THREADS = 256  # maximum threads of a call; larger requests count as this many
