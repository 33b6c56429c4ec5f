"""A BentoML service of means over 3x3 windows: bentoml serve pool_bentoml:Pool"""

from typing import Annotated

import bentoml
import numpy as np
from bentoml.exceptions import InvalidArgument
from bentoml.validators import DType

import onnxpool

onnxpool.set_num_threads(1)  # requests run side by side, in threads and workers
onnxpool.set_limits(max_output_bytes=2**24, max_work=10**7)
POOL = onnxpool.AveragePool(kernel_shape=3, strides=2)


@bentoml.service(workers=2, threads=2)
class Pool:
    @bentoml.api
    def pool(self, x: Annotated[np.ndarray, DType("float32")]) -> np.ndarray:
        try:
            return POOL(x)
        except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
            raise InvalidArgument(str(error)) from error
