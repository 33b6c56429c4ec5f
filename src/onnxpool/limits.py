"""Numbers that Python and the compiled core share. The build writes them to `shared_limits.h`."""

FEW = 8  # taps along an axis that are added one after the other; more are an aligned binary tree
MOST_AXES = 64  # of an array, as many as NumPy has
MOST_THREADS = 256  # that anyone can ask for
