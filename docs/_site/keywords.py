"""
Search terms that lead to a page although the page does not contain them.

The site's search finds pages that contain all words of a query. Readers may not know the words of a page, so this file
lists the words of their questions, as users of pooling libraries write them in issues. tests/docs/test_search.py has
questions.
"""

import re
from typing import Any

KEYWORDS = {
    "compatibility": "python version supported minimum deprecation semver",
    "concepts/auto_pad": "tensorflow tf keras pytorch same padding valid output shape different vs mismatch",
    "concepts/ceil_mode": "extra column row output size shape different larger floor round up rounding torch pytorch "
                          "mismatch partial window last",
    "concepts/count_include_pad": "average avg pooling wrong incorrect border edge corner padding zeros values smaller "
                                  "lower divisor_override divide torch pytorch tensorflow different mismatch default",
    "concepts/dilation": "dilated atrous gaps dilations",
    "concepts/indices": "argmax flattened flat index unravel position return_indices unpool torch pytorch different",
    "concepts/layouts": "nhwc nchw hwc channels_last channels_first channel last first transpose memory format "
                        "tensorflow",
    "concepts/order_of_sums": "different results threads deterministic reproducible nondeterministic last bit bits "
                              "float precision mismatch numerical",
    "concepts/pads": "asymmetric padding uneven unequal left right top bottom begin end negative infinity -inf max "
                     "pooling zero torch pytorch F.pad",
    "concepts/rounding": "int8 uint8 average avg mean pooling round half even integer truncation overflow off by one",
    "concepts/windows": "kernel size stride output shape formula different wrong torch pytorch dimension too large "
                        "small calculate",
    "embedding": "denial of service dos security vulnerability untrusted malicious latency tail p99 memory limit "
                 "maximum leak cache eviction thread safe safety gil",
    "generated/operators/GlobalAveragePool": "keepdims mean spatial axes adaptive avg pool pooling",
    "generated/operators/LpPool": "p norm pooling power l2 sum",
    "generated/operators/MaxRoiPool": "roi pooling region interest torchvision roi_pool bins quantised",
    "generated/operators/MaxUnpool": "unpooling max_unpool2d output size indices wrong place torch pytorch",
    "generated/operators/RoiAlign": "roi align half pixel aligned offset bilinear interpolation torchvision roi_align "
                                    "sampling points different",
    "howto/bfloat16": "torch pytorch half float16 cast ml_dtypes dtype",
    "howto/check_in_ci": "dynamic symbolic unknown batch axis shape model lint validate",
    "howto/image": "photo picture colour color rgb grayscale hwc height width",
    "howto/masks_and_nan": "nan max pool pooling average ignore skip missing nodata invalid propagate nanmean nanmax",
    "howto/onnxruntime_sessions": "implemented unsupported kernel float64 double averagepool could find "
                                  "implementation error NOT_IMPLEMENTED",
    "howto/quantised_models": "int8 uint8 quantized quantization scale zero point average rounding qdq",
    "howto/threads": "thread safe safety gil concurrent parallel cores openmp slow num_threads multithreading "
                     "oversubscription",
    "operators": "opset version supported operators dtypes list",
    "project/contributing": "run tests build time compile code style lint commit message pull request simd avx2 avx512 "
                            "kernel loop change contribute compiler",
    "project/index": "license licence copyright security report vulnerability",
    "reference/decisions": "kernel larger than padded input undefined behaviour unspecified ambiguous specification",
    "reference/porting": "torch pytorch tensorflow keras migrate equivalent different replace",
    "start/numpy": "numpy maxpool maxpooling avgpool moving rolling sliding window maximum average mean median "
                   "variance sum gradient backward autograd gpu cuda not supported missing",
    "start/onnx": "opset version run model node",
}

OPERATORS = "generated/operators/"


def add(_app: Any, name: str, source: list[str]) -> None:
    """Add a page's words to the search index. Readers do not see them."""
    words = KEYWORDS.get(name, "").split()
    if name.startswith(OPERATORS):  # max and unpool of MaxUnpool
        words += re.findall("[A-Z][a-z]+", name.removeprefix(OPERATORS))
    if words:
        listed = ", ".join(words)
        source[0] = f'---\nmyst:\n  html_meta:\n    keywords: "{listed}"\n---\n\n{source[0]}'


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", add, priority=900)  # after links.py
    return {"parallel_read_safe": True, "parallel_write_safe": True}
