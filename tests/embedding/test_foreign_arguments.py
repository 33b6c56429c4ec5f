"""Arguments from elsewhere: subclasses, tensors of other frameworks, hostile numbers, arguments of the wrong kind."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from producer import Producer

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

X = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)

# Subclasses


class MaxPool(onnxpool.MaxPool):
    """A user's class of the same name."""


class Doubled(onnxpool.MaxPool):
    """A user's class of another name."""

    def __call__(self, x, *inputs, **keywords):
        return 2 * super().__call__(x, *inputs, **keywords)


def test_a_subclass_is_an_operator_of_its_own():
    """A subclass has the rows of its base in the table, and replaces nothing."""
    for cls in (MaxPool, Doubled):
        operator = cls(kernel_shape=2)
        assert operator.label == "MaxPool-22"
        assert operator != onnxpool.MaxPool(kernel_shape=2)
        assert type(pickle.loads(pickle.dumps(operator))) is cls
        assert repr(operator).startswith(f"{cls.__name__}(")
    assert np.array_equal(Doubled(kernel_shape=2)(X), 2 * onnxpool.max_pool(X, 2))


def test_a_subclass_does_not_replace_an_operator():
    """Nodes become the operators of this library, whatever other classes have the same names."""
    helper = pytest.importorskip("onnx.helper")
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
    assert type(onnxpool.from_node(node, {"": 12})) is onnxpool.MaxPool


# Numbers


@pytest.mark.parametrize("spatial_scale", [1, np.int8(1), np.uint64(1)])
def test_integers_are_floats_too(spatial_scale):
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    expected = onnxpool.max_roi_pool(X, rois, 2, spatial_scale=1.0)
    assert np.array_equal(onnxpool.max_roi_pool(X, rois, 2, spatial_scale=spatial_scale), expected)
    operator = onnxpool.MaxRoiPool(pooled_shape=2, spatial_scale=spatial_scale)
    assert type(operator.attributes["spatial_scale"]) is float


def test_an_exponent_of_version_1_may_be_an_integer():
    assert np.array_equal(onnxpool.lp_pool(X, 2, p=3, opset=1), onnxpool.lp_pool(X, 2, p=3.0, opset=1))


@pytest.mark.parametrize("operator", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("p", [1.5, 2.0])
def test_a_float_where_versions_differ_names_the_version_that_takes_it(operator, p):
    attributes = {"kernel_shape": 2} if operator == "LpPool" else {}
    words = rf"p must be an integer, got {p} .* or opset=1, as p is a float in {operator}-1"
    with pytest.raises(PoolTypeError, match=words):
        getattr(onnxpool, operator)(p=p, **attributes)


def test_a_value_that_no_version_takes_names_none():
    with pytest.raises(PoolTypeError, match=r"pass an int of at least 1$"):
        onnxpool.LpPool(kernel_shape=2, p="2")


@pytest.mark.parametrize("attributes", [
    {"kernel_shape": [2] * 10**6}, {"kernel_shape": np.full(10**6, 2)}, {"kernel_shape": 2, "pads": [0] * 200},
])
def test_lists_longer_than_any_array_has_axes_are_refused(attributes):
    """Lists longer than any array has axes are refused, and their numbers are neither stored nor printed."""
    tracemalloc.start()
    try:
        with pytest.raises(PoolError, match=r"has .* values, but no array has more than 64 axes"):
            onnxpool.max_pool(X, **attributes)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50_000


@pytest.mark.parametrize("number", [10**5000, -10**5000, 10**300], ids=["beyond text", "negative", "long"])
@pytest.mark.parametrize("name", ["kernel_shape", "strides", "pads", "ceil_mode", "p", "opset"])
def test_numbers_of_any_length_are_refused(name, number):
    """Numbers of any length are refused, even if Python refuses to print them. Messages have a bounded length."""
    with pytest.raises(PoolError, match=name) as caught:
        onnxpool.LpPool(**{"kernel_shape": 2, name: number})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("number", [2**1024, 10**5000], ids=["long", "beyond text"])
def test_integers_beyond_floats_are_refused(number):
    with pytest.raises(PoolError, match=r"p must be above 0 and at most 1\.79"):
        onnxpool.LpPool(kernel_shape=2, p=number, opset=1)


# Arrays


class Tensor:
    """A tensor of another framework that NumPy cannot read."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


class Shared(Tensor):
    """A tensor that can be shared."""

    def __dlpack__(self, **_):
        raise BufferError("not here")

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("error", [
    RuntimeError("requires grad"), TypeError("on cuda:0"), ValueError("odd"), BufferError("busy"), KeyError("dtype"),
], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("call", [
    lambda x: onnxpool.max_pool(x, 2),
    lambda x: onnxpool.GlobalMaxPool()(x),
    lambda x: onnxpool.MaxPool(kernel_shape=2).plan(X.shape, X.dtype)(x),
    lambda x: onnxpool.max_roi_pool(X, x, 2),
], ids=["function", "operator", "plan", "rois"])
def test_what_numpy_refuses_to_read_is_refused_with_the_way_out(call, error):
    with pytest.raises(PoolTypeError, match=r"Pool-\d+: (X|rois) is a .*Tensor, .*; pass an ndarray"):
        call(Tensor(error))
    with pytest.raises(PoolTypeError, match=r"; pass onnxpool\.from_dlpack\(x\)$"):
        call(Shared(error))


def test_running_out_of_memory_is_no_wrong_type():
    with pytest.raises(MemoryError):
        onnxpool.max_pool(Tensor(MemoryError()), 2)


def ways(call, x):
    """The expression that the error for an object suggests, for Python to evaluate."""
    with pytest.raises(PoolTypeError) as caught:
        call(x)
    return str(caught.value).rpartition("; pass ")[2]


@pytest.mark.parametrize("make", [
    lambda t, torch: t.requires_grad_(),
    lambda t, torch: t.requires_grad_() + 0,
    lambda t, torch: torch.nn.Parameter(t),
    lambda t, torch: t.bfloat16(),
    lambda t, torch: t.bfloat16().requires_grad_(),
    lambda t, torch: t.to_sparse(),
    lambda t, torch: t.to_sparse().requires_grad_(),
    lambda t, torch: torch._neg_view(-t),
    lambda t, torch: torch._neg_view(-t.bfloat16()),
    lambda t, torch: torch.complex(t, -t).conj().imag,
    lambda t, torch: torch.quantize_per_tensor(t, 1.0, 0, torch.quint8),
    lambda t, torch: t.to(torch.float8_e4m3fn),
    lambda t, torch: t.to_mkldnn(),
], ids=range(13))
@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning", "ignore:Sparse:UserWarning")  # quantised tensors
def test_the_way_out_is_right_for_tensors_of_torch(make):
    """The expression that the message suggests is accepted, and its value has the tensor's numbers."""
    torch = pytest.importorskip("torch")
    t = torch.arange(8.0).reshape(1, 1, 8)
    x = make(t.clone(), torch)
    way = ways(lambda x: onnxpool.max_pool(x, 2), x)
    assert way.startswith("onnxpool.from_dlpack(x")
    y = onnxpool.max_pool(eval(way, {"onnxpool": onnxpool, "x": x}), 2)
    assert y.astype(float).ravel().tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_conjugate_is_resolved():
    """The expression that the error suggests for a conjugate or a zero tensor of torch gives the tensor's numbers."""
    torch = pytest.importorskip("torch")
    x = torch.complex(torch.ones(1, 1, 4), torch.ones(1, 1, 4)).conj()
    way = ways(lambda x: onnxpool.max_pool(x, 2), x)
    assert eval(way, {"onnxpool": onnxpool, "x": x}).ravel().tolist() == [1 - 1j] * 4
    zeros = torch._efficientzerotensor(1, 1, 4)
    way = ways(lambda x: onnxpool.max_pool(x, 2), zeros)
    assert eval(way, {"onnxpool": onnxpool, "x": zeros}).tolist() == [[[0] * 4]]


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
def test_tensors_without_values_have_no_way():
    torch = pytest.importorskip("torch")
    fake = Shared(RuntimeError("not supported for tensor subclasses"))
    fake.fake_mode = "of torch.export"
    for x in (torch.ones(1, 1, 4, device="meta"), fake):
        assert ways(lambda x: onnxpool.max_pool(x, 2), x) == "a tensor that has values"
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert ways(lambda x: onnxpool.max_pool(x, 2), nested).startswith("one of its tensors")


def test_a_negative_bit_is_not_lost():
    """A torch tensor with a negative bit is refused, because its memory, which torch exports, holds the negated
    numbers."""
    torch = pytest.importorskip("torch")
    x = torch._neg_view(torch.ones(1, 1, 4))
    with pytest.raises(PoolTypeError, match=r"negative bit .*; pass x\.resolve_neg\(\)"):
        onnxpool.from_dlpack(x)
    assert onnxpool.from_dlpack(x.resolve_neg()).tolist() == [[[-1] * 4]]


class Elsewhere:
    """A tensor on another device, which has a method that copies it."""

    def __init__(self, method):
        setattr(self, method, lambda: X)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __dlpack__(self, **_):
        raise BufferError("not here")

    def __dlpack_device__(self):
        return 2, 0


@pytest.mark.parametrize("method", ["cpu", "get"])
def test_the_way_out_is_right_for_other_devices(method):
    """The suggested expression is right for other devices, such as in torch and CuPy."""
    x = Elsewhere(method)
    way = ways(lambda x: onnxpool.max_pool(x, 2), x)
    assert way == f"onnxpool.from_dlpack(x.{method}())"
    assert eval(way, {"onnxpool": onnxpool, "x": x}).shape == X.shape
    with pytest.raises(PoolTypeError, match=rf"CUDA \(2\), .*; move it there, by \.{method}\(\)$"):
        onnxpool.from_dlpack(x)


def test_the_way_out_is_right_for_capsules_and_values_of_onnxruntime():
    onnxruntime = pytest.importorskip("onnxruntime")
    bits = np.full((1, 1, 4), 0x3F80, np.uint16)
    value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    for x in (value, Producer(np.ones((1, 1, 4), np.float32)).capsule()):
        way = ways(lambda x: onnxpool.max_pool(x, 2), x)
        assert way == "onnxpool.from_dlpack(x)"
        assert onnxpool.max_pool(eval(way, {"onnxpool": onnxpool, "x": x}), 2).tolist() == [[[1, 1, 1]]]


@pytest.mark.parametrize(("x", "way"), [
    (np.ma.masked_array(np.ones((1, 1, 4), np.float32), False), "x.filled(...)"),
    (np.ones((1, 2)).view(np.matrix), "numpy.array(x, subok=False)"),
], ids=["masked", "matrix"])
def test_the_way_out_is_right_for_subclasses(x, way):
    assert ways(lambda x: onnxpool.max_pool(x, 2), x) == f"an ndarray, such as {way}"
    plain = eval(way.replace("...", "0"), {"numpy": np, "x": x})
    assert onnxpool.max_pool(plain, 1, axes=-1).tolist() == np.asarray(x).tolist()


@pytest.mark.parametrize("x", [None, "abc", ["a"], pytest.param(object(), id="object()"), [[1, 2], [3]], {}], ids=repr)
def test_what_is_no_array_of_numbers_is_refused_by_its_type(x):
    with pytest.raises(PoolTypeError, match=rf"X is a builtins.{type(x).__name__}, which NumPy cannot convert"):
        onnxpool.max_pool(x, 2)


# Shapes, dtypes, nodes and pickles


@pytest.mark.parametrize("shape", [4, None, 1.5])
def test_a_shape_that_is_no_sequence_is_refused(shape):
    operator = onnxpool.MaxPool(kernel_shape=2)
    for ask in (operator.output_shape, lambda shape: operator.plan(shape, "float32")):
        with pytest.raises(PoolTypeError, match="shape must be a sequence of integers, got"):
            ask(shape)


@pytest.mark.parametrize("dtype", ["junk", None, 7, "f4,,", pytest.param(object(), id="object()")], ids=repr)
def test_what_names_no_dtype_is_refused(dtype):
    with pytest.raises(PoolTypeError, match=r"^MaxPool-22: dtype "):
        onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4), dtype)


def test_bfloat16_is_known_by_its_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    plan = onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4), "bfloat16")
    assert plan.dtype == ml_dtypes.bfloat16


def test_an_array_where_an_input_would_be_is_told_from_out():
    plan = onnxpool.MaxPool(kernel_shape=2).plan(X.shape, X.dtype)
    with pytest.raises(PoolError, match=r"takes only X, got 2 inputs; .*as out="):
        plan(X, np.empty(plan.output_shape, X.dtype))


@pytest.mark.parametrize("opsets", [19, [("", 19)], None])
def test_opsets_that_are_no_dict_are_refused(opsets):
    helper = pytest.importorskip("onnx.helper")
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
    with pytest.raises(PoolTypeError, match=r"opsets is a .*; pass a dict such as .*opset_import"):
        onnxpool.from_node(node, opsets)


def test_what_is_no_node_is_refused():
    helper = pytest.importorskip("onnx.helper")
    model = helper.make_model(helper.make_graph([], "empty", [], []))
    for node in (model, "MaxPool", None):
        with pytest.raises(PoolTypeError, match=r"node is a .*; pass a NodeProto, such as an item of model.graph.node"):
            onnxpool.from_node(node, {"": 19})


@pytest.mark.parametrize(("attributes", "types"), [
    ({"kernel_shape": 2}, "INT .* INTS"), ({"kernel_shape": [2, 2], "ceil_mode": [1]}, "INTS .* INT;"),
    ({"kernel_shape": [2, 2], "ceil_mode": 1.0}, "FLOAT .* INT;"),
])
def test_attributes_of_nodes_have_the_type_of_the_schema(attributes, types):
    """An attribute of a node must have the schema's type, although Python arguments can be written in several ways."""
    helper = pytest.importorskip("onnx.helper")
    node = helper.make_node("MaxPool", ["x"], ["y"], **attributes)
    with pytest.raises(PoolTypeError, match=f"has type {types}"):
        onnxpool.from_node(node, {"": 19})


def test_a_backend_takes_models_only():
    backend = pytest.importorskip("onnxpool.onnx.backend")
    with pytest.raises(ValueError, match=r"model is a str; pass a ModelProto, such as onnx.load\(path\)"):
        backend.prepare("model.onnx")


def test_a_pickle_of_another_version_is_refused():
    """A pickled plan with an attribute that this version does not know is refused."""
    operator = onnxpool.MaxPool(kernel_shape=2)
    remake, (cls, keywords) = operator.__reduce__()
    with pytest.raises(PoolTypeError, match=r"MaxPool: cannot be unpickled: .*shape_of_the_future"):
        remake(cls, (*keywords, ("shape_of_the_future", 1)))


# Plans


def test_plans_are_equal_by_value():
    operator = onnxpool.MaxPool(kernel_shape=2)
    plan = operator.plan(X.shape, X.dtype)
    onnxpool.clear_caches()
    twin = onnxpool.MaxPool(kernel_shape=2).plan(X.shape, X.dtype)
    assert twin is not plan
    assert twin == plan
    assert hash(twin) == hash(plan)
    others = [operator.plan((1, 1, 4, 5), X.dtype), operator.plan(X.shape, np.float64),
              onnxpool.MaxPool(kernel_shape=3).plan(X.shape, X.dtype), onnxpool.GlobalMaxPool().plan(X.shape, X.dtype)]
    assert len({plan, twin, *others}) == 5
    assert plan != "plan"


@pytest.mark.parametrize("plan", [
    onnxpool.MaxPool(kernel_shape=2).plan(X.shape, X.dtype), onnxpool.MaxUnpool(kernel_shape=2).plan(X.shape, X.dtype),
    onnxpool.MaxRoiPool(pooled_shape=2).plan(X.shape, X.dtype),
], ids=lambda plan: type(plan.operator).__name__)
def test_plans_are_immutable(plan):
    for name in ("shape", "dtype", "operator", "output_shape", "new"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(plan, name, 1)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(plan, name)
    assert plan.shape == X.shape


def test_plans_of_regions_are_explained_in_words():
    """The explanation of a plan on regions describes its geometry in words."""
    plan = onnxpool.RoiAlign(output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.25).plan(X.shape, "f4")
    assert plan.explain().geometry == (
        "for each region, corners times 0.25, less 0.5: 2 x 3 bins, each the mean of 2 x 2 samples",)
    plan = onnxpool.RoiAlign(mode="max", opset=10).plan(X.shape, "f4")
    assert plan.explain().geometry == (
        "for each region, corners times 1: 1 x 1 bins, each the largest of its samples, about one for each element",)
    plan = onnxpool.MaxRoiPool(pooled_shape=2).plan(X.shape, "f4")
    assert plan.explain().geometry == (
        "for each region, corners times 1: 2 x 2 bins, each the largest of its elements",)


def converting(convert):
    """An object with this conversion to an array."""
    return type("Converting", (), {"__array__": lambda self, dtype=None, copy=None: convert()})()


def test_a_mask_is_not_lost_by_a_conversion() -> None:
    """An object that converts itself to a masked array or a matrix is refused, as masked arrays and matrices are."""
    masked = np.ma.masked_less(np.ones((1, 1, 4, 4)), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix(np.ones((4, 4)))
    for array in (masked, matrix):
        with pytest.raises(onnxpool.PoolTypeError, match=f"X is a {type(array).__name__}, which is not supported"):
            onnxpool.max_pool(converting(lambda array=array: array), 2)
    x = np.ones((1, 1, 4, 4)).view(type("Plain", (np.ndarray,), {}))
    assert type(onnxpool.max_pool(converting(lambda: x), 2)) is np.ndarray


def test_errors_of_conversions_are_chained() -> None:
    """Whatever a conversion raises is the cause of an error that names the input."""
    def fail():
        raise LookupError("gone")

    wrong = [converting(fail), converting(lambda: None), converting(lambda: [1.0]),
             *(type("Interface", (), {"__array_interface__": given})() for given in ({}, 3, {"shape": (1,)}))]
    for x in wrong:
        with pytest.raises(onnxpool.PoolTypeError, match=r"X is a .*which NumPy cannot convert") as caught:
            onnxpool.max_pool(x, 2)
        assert caught.value.__cause__ is not None or "dtype object" in str(caught.value)
