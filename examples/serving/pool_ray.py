"""A Ray Serve deployment of means over 3x3 windows: serve run pool_ray:app"""

import asyncio

import numpy as np
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

import onnxpool


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 1})
class Pool:
    def __init__(self):  # in the process of each replica
        onnxpool.set_num_threads(1)
        onnxpool.set_limits(max_output_bytes=2**24, max_work=10**7)
        self.pool = onnxpool.AveragePool(kernel_shape=3, strides=2)

    async def __call__(self, request: Request) -> JSONResponse:
        try:
            x = np.array(await request.json(), np.float32)
            y = await asyncio.to_thread(self.pool, x)
            return JSONResponse(y.tolist())
        except (OverflowError, RecursionError, TypeError, ValueError) as error:  # of onnxpool, or of the JSON
            return JSONResponse({"error": str(error)}, 400)


app = Pool.bind()
