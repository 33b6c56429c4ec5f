"""The overhead around the kernels: the cost of a call and of the import."""

from functools import cached_property
from itertools import cycle

import numpy as np

from .once import REPEAT
from .workloads import array

KERNEL = {"kernel_shape": (2, 2), "strides": (2, 2)}


class CallOverhead:
    """
    Ways to call a pool that is too small to matter: MaxPool 2x2 on 1x3x8x8.

    There is no `setup`, because asv would then time single calls, and reading the clock takes a tenth of a call. The
    first call makes what later calls need, and is part of the warm-up.
    """

    number, repeat = 5000, REPEAT  # calls of a sample

    @cached_property
    def function(self):
        import onnxpool
        return onnxpool.max_pool

    @cached_property
    def operator(self):
        import onnxpool
        return onnxpool.MaxPool(**KERNEL)

    @cached_property
    def plan(self):
        return self.operator.plan(self.x.shape, self.x.dtype)

    @cached_property
    def x(self):
        return array((1, 3, 8, 8), "float32")

    @cached_property
    def out(self):
        return self.plan(self.x)

    def time_function(self):
        self.function(self.x, (2, 2), strides=(2, 2))

    def time_function_of_lists(self):
        self.function(self.x, [2, 2], strides=[2, 2])

    def time_object(self):
        self.operator(self.x)

    def time_plan(self):
        self.plan(self.x)

    def time_plan_into_output(self):
        self.plan(self.x, out=self.out)

    def time_plan_on_one_thread(self):
        self.plan(self.x, out=self.out, num_threads=1)


class Making:
    """Work that is done once for many calls."""

    number, repeat = 200, REPEAT
    heights = cycle(range(2, 4098))  # more shapes than any version caches plans for

    @cached_property
    def cls(self):
        import onnxpool
        return onnxpool.MaxPool

    @cached_property
    def operator(self):
        return self.cls(**KERNEL)

    def time_operator(self):
        self.cls(**KERNEL)

    def time_plan_of_a_new_shape(self):
        self.operator.plan((1, 3, next(self.heights), 8), np.float32)


class Import:
    """The time of a fresh interpreter that imports onnxpool, compared with one that imports only what onnxpool
    needs."""

    def timeraw_import(self):
        return "import onnxpool"

    def timeraw_import_numpy(self):
        return "import numpy"
