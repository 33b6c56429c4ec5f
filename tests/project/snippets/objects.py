"""Operators, plans, errors and settings, as programs annotate them."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import onnxpool

x: NDArray[np.float32] = np.zeros((1, 3, 8, 8), np.float32)


class Layer:
    """A layer that holds an operator, and a plan for its shape."""

    def __init__(self, op: onnxpool.Operator, shape: tuple[int, ...]) -> None:
        self.op = op
        self.plan: onnxpool.Plan = op.plan(shape, np.float32)

    def __call__(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.plan(array)


op = onnxpool.AveragePool(kernel_shape=(3, 3), strides=2, pads=1)
assert_type(op(x), NDArray[np.float32])
assert_type(op([[[[1.0]]]]), NDArray[Any])
assert_type(op.kernel_shape, int | tuple[int, ...])
assert_type(op.strides, int | tuple[int, ...])
assert_type(op.auto_pad, str)
assert_type(op.count_include_pad, int)
assert_type(op.output_shape((1, 3, 8, 8)), tuple[int, ...])
assert_type(op.opset, int)
assert_type(op.version, int)
assert_type(op.attributes, dict[str, Any])
assert_type(onnxpool.LpPool(kernel_shape=2).p, float)
assert_type(onnxpool.RoiAlign().output_height, int)
assert_type(Layer(op, x.shape)(x), NDArray[np.float32])

maxima = onnxpool.MaxPool(kernel_shape=2, return_indices=True)
y, indices = maxima(x)
assert_type(onnxpool.GlobalMaxPool()(x), NDArray[np.float32])

plan = op.plan(x.shape, "float32")
assert_type(plan, onnxpool.Plan)
assert_type(plan.shape, tuple[int, ...])
assert_type(plan.output_shape, tuple[int, ...])
assert_type(plan.dtype, np.dtype[Any])
assert_type(plan.result_shape(), tuple[int, ...])
assert_type(plan.axes[0].out, int)
assert_type(plan.channels_last, bool)
assert_type(plan.label, str)
explanation = plan.explain()
text: str = explanation
assert_type(explanation.to_dict(), dict[str, Any])
operator: Any = plan.operator
total = plan(x).sum()

try:
    onnxpool.max_pool(x, 99)
except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
    assert_type(error.operator, str | None)
    assert_type(error.attribute, str | None)
    assert_type(error.axis, int | None)
    assert_type(error.value, Any)

found = onnxpool.config()
assert_type(found["threads"], int)
assert_type(onnxpool.supported(), list[dict[str, Any]])
assert_type(onnxpool.get_num_threads(), int)
with onnxpool.num_threads(2):
    onnxpool.set_num_threads(1)
assert_type(onnxpool.from_dlpack(x), NDArray[Any])
assert_type(onnxpool.__version__, str)

image: NDArray[np.float32] = np.zeros((8, 8), np.float32)
mean = onnxpool.GlobalAveragePool(axes=(0, 1), keepdims=False)
assert_type(mean.axes, tuple[int, ...] | None)
assert_type(mean(image), NDArray[np.float32])
plan = onnxpool.MaxPool(kernel_shape=2, axes=[0, -1]).plan(image.shape, image.dtype)
for part in plan.tiles(max_bytes=100):
    assert_type(part, onnxpool.Part)
    assert_type(part.inputs, tuple[slice, ...])
    part(image[part.inputs])
assert_type(plan.tile((slice(0, 2),)), onnxpool.Part)
whole = mean.plan(image.shape, image.dtype)
partials = [share(image[share.inputs]) for share in whole.partials(3)]
assert_type(partials, list[onnxpool.Partial])
assert_type(whole.combine(partials), NDArray[Any])

# Mistakes that a type checker refuses.
print(op.kernel_shapes)  # type: ignore[attr-defined]
print(onnxpool.GlobalMaxPool().strides)  # type: ignore[attr-defined]
onnxpool.AveragePool(2, 2)  # type: ignore[call-arg]
onnxpool.AveragePool(kernel_shape=2, auto_pad="SAME")  # type: ignore[arg-type]
print(found["thread"])  # type: ignore[typeddict-item]
onnxpool.max_pool(image, 2, axes="01")  # type: ignore[arg-type]
onnxpool.MaxPool(kernel_shape=2, keepdims=False)  # type: ignore[call-arg]
