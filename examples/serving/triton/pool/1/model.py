"""A model of means over 3x3 windows for Triton's Python backend: tritonserver --model-repository=triton"""

import triton_python_backend_utils as pb

import onnxpool

onnxpool.set_num_threads(1)  # each instance has a process of its own
onnxpool.set_limits(max_output_bytes=2**24, max_work=10**7)
POOL = onnxpool.AveragePool(kernel_shape=3, strides=2)


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x = onnxpool.from_dlpack(pb.get_input_tensor_by_name(request, "x"))
        try:
            y = POOL(x)
        except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
            return pb.InferenceResponse(error=pb.TritonError(str(error), pb.TritonError.INVALID_ARG))
        # Triton before NumPy 2 reads arrays wrongly, but DLPack correctly, except for arrays without elements.
        return pb.InferenceResponse([pb.Tensor.from_dlpack("y", y) if y.size else pb.Tensor("y", y)])
