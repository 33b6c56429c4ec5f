"""The versions of each operator: the opset that introduced each attribute, dtype and output."""

from typing import Any, NamedTuple

MICROSOFT = "com.microsoft"
NEWEST = 22  # the newest version of any operator
COMMON = 7  # the oldest opset that runtimes in use accept; only cases about older versions have an older one


class Operator(NamedTuple):
    """An operator; operators of com.microsoft have a single version, which models of any opset can use."""

    versions: tuple[int, ...]
    attributes: dict[str, int]
    dtypes: dict[str, int]
    domain: str = ""

    def version(self, opset: int) -> int:
        """The version that a model of this opset uses."""
        return max((version for version in self.versions if version <= opset), default=self.versions[0])


FLOATS = {"float16": 1, "bfloat16": 22, "float32": 1, "float64": 1}
BYTES = {"int8": 1, "uint8": 1}
WINDOW = dict.fromkeys(("auto_pad", "kernel_shape", "pads", "strides"), 1)
REGION = {"spatial_scale": 1}

OPERATORS = {
    "AveragePool": Operator((1, 7, 10, 11, 19, 22),
                            {**WINDOW, "count_include_pad": 7, "ceil_mode": 10, "dilations": 19}, FLOATS),
    "MaxPool": Operator((1, 8, 10, 11, 12, 22), {**WINDOW, "storage_order": 8, "ceil_mode": 10, "dilations": 10},
                        {**FLOATS, **dict.fromkeys(BYTES, 12)}),
    "LpPool": Operator((1, 2, 11, 18, 22), {**WINDOW, "p": 1, "ceil_mode": 18, "dilations": 18}, FLOATS),
    "GlobalAveragePool": Operator((1, 22), {}, FLOATS),
    "GlobalMaxPool": Operator((1, 22), {}, FLOATS),
    "GlobalLpPool": Operator((1, 2, 22), {"p": 1}, FLOATS),
    "MaxUnpool": Operator((9, 11, 22), dict.fromkeys(("kernel_shape", "pads", "strides"), 9), FLOATS),
    "MaxRoiPool": Operator((1, 22), {**REGION, "pooled_shape": 1}, FLOATS),
    "RoiAlign": Operator((10, 16, 22), {
        **REGION, **dict.fromkeys(("mode", "output_height", "output_width", "sampling_ratio"), 10),
        "coordinate_transformation_mode": 16}, FLOATS),
    "QLinearGlobalAveragePool": Operator((1,), {"channels_last": 1}, BYTES, MICROSOFT),
    "QLinearAveragePool": Operator((1,), {**WINDOW, "ceil_mode": 1, "channels_last": 1, "count_include_pad": 1}, BYTES,
                                   MICROSOFT),
    "NhwcMaxPool": Operator((1,), {**WINDOW, "ceil_mode": 1, "dilations": 1}, BYTES, MICROSOFT),
}
INDICES_SINCE = 8  # the second output of MaxPool


def oldest(operator: str, attributes: dict[str, Any], dtype: str, outputs: int = 1) -> int:
    """The oldest opset in common use that has all of these."""
    known = OPERATORS[operator]
    since = [COMMON, known.versions[0], known.dtypes[dtype], *(known.attributes[name] for name in attributes)]
    return max(since) if outputs == 1 else max(*since, INDICES_SINCE)
