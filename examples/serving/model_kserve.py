"""ONNX models on KServe, with their pooling nodes on onnxpool: python model_kserve.py first.onnx second.onnx"""

import argparse
import asyncio
from pathlib import Path

import onnxruntime
from kserve import InferOutput, InferResponse, Model, ModelServer, model_server
from kserve.errors import InvalidInput
from kserve.utils.numpy_codec import from_np_dtype
from kserve.utils.utils import generate_uuid
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

import onnxpool.onnxruntime

onnxpool.set_limits(max_output_bytes=2**24, max_work=10**7)


class Onnx(Model):
    def __init__(self, path):
        super().__init__(path.stem)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # requests run side by side, in threads and workers
        options.log_severity_level = 4  # errors in a request are reported to its client instead
        onnxpool.onnxruntime.register(options, ops="all")
        self.session = onnxruntime.InferenceSession(path, options)
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.ready = True

    async def predict(self, payload, headers=None, response_headers=None):
        try:
            feeds = {tensor.name: tensor.as_numpy() for tensor in payload.inputs}
            arrays = await asyncio.to_thread(self.session.run, self.outputs, feeds)
        except (InvalidArgument, AttributeError, TypeError, ValueError) as error:  # of a node, or of the payload
            raise InvalidInput(str(error)) from error
        outputs = [InferOutput(name, list(y.shape), from_np_dtype(y.dtype), data=y)
                   for name, y in zip(self.outputs, arrays, strict=True)]
        return InferResponse(payload.id or generate_uuid(), self.name, outputs,
                             requested_outputs=payload.request_outputs, use_binary_outputs=payload.use_binary_outputs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    parser.add_argument("models", nargs="+", type=Path)
    ModelServer().start([Onnx(path) for path in parser.parse_args().models])
