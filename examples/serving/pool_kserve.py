"""A KServe model of means over 3x3 windows: python pool_kserve.py --workers=2"""

import asyncio

from kserve import Model, ModelServer
from kserve.errors import InvalidInput
from kserve.utils.utils import get_predict_input, get_predict_response

import onnxpool

onnxpool.set_num_threads(1)  # requests run side by side, in threads and workers
onnxpool.set_limits(max_output_bytes=2**24, max_work=10**7)
POOL = onnxpool.AveragePool(kernel_shape=3, strides=2)


class Pool(Model):
    async def predict(self, payload, headers=None, response_headers=None):
        try:
            y = await asyncio.to_thread(POOL, get_predict_input(payload))
        except (LookupError, TypeError, ValueError) as error:  # of onnxpool, or of a payload that is no array
            raise InvalidInput(str(error)) from error
        return get_predict_response(payload, y, self.name)


if __name__ == "__main__":
    model = Pool("pool")
    model.load()
    ModelServer().start([model])
