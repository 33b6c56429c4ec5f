"""THE TABLE of operators: the attributes, dtypes and outputs of each version. Only this module knows opset numbers.

Each row of a history lists what its version changed. The rows follow the ONNX operator schemas and, for the domain
com.microsoft, onnxruntime's contributed operators.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from . import dtypes
from .attributes import FLOAT32_MAX, Attribute, Choice, Flag, Float, Int, Ints, integer, shown
from .dtypes import BYTES, DTYPES, EXACT
from .errors import Place, PoolError, PoolTypeError

OWN = "onnxpool"  # domain of operators that ONNX does not have
LATEST = {"": 28, "com.microsoft": 1, OWN: 1}  # the newest known opset of each domain

FLOATS = tuple(name for name in dtypes.FLOATS if DTYPES[name].numpy)
BFLOAT = tuple(name for name in dtypes.FLOATS if not DTYPES[name].numpy)  # allowed since later versions
QUANTISED_INPUTS = ("X", "x_scale", "x_zero_point", "y_scale", "y_zero_point")


class Version(NamedTuple):
    """A version of an operator, with everything that depends on it."""

    operator: str
    since: int
    attributes: dict[str, Attribute]
    dtypes: tuple[str, ...]
    outputs: int
    implied: dict[str, Any]  # the values of attributes that are left out or that the version lacks

    @property
    def label(self) -> str:
        """The name used in messages, such as AveragePool-19."""
        return f"{self.operator}-{self.since}"


class Schema(NamedTuple):
    """An operator with all its versions, oldest first."""

    operator: str
    domain: str
    inputs: tuple[str, ...]
    versions: tuple[Version, ...]
    optional: tuple[str, ...]  # inputs that a call may leave out
    axes: bool  # whether calls may choose the pooled axes, which ONNX does not support
    channels_last: bool  # whether arrays are (N, *spatial, C) by definition


def since(version: int, attributes: dict[str, Attribute] | None = None, *, dtypes: tuple[str, ...] = (),
          outputs: int = 1, fixed: dict[str, Any] | None = None) -> Version:
    """
    A row: the attributes that a version adds or redefines, the dtypes it adds, and its minimum number of outputs.

    Versions before the one that adds an attribute use the attribute's default there, unless `fixed` has another value.
    `fixed` also has the values of attributes that no version has.
    """
    return Version("", version, attributes or {}, dtypes, outputs, fixed or {})


def history(operator: str, *rows: Version, domain: str = "", inputs: tuple[str, ...] = ("X",),
            optional: tuple[str, ...] = (), axes: bool = False, channels_last: bool = False) -> Schema:
    """An operator, each of whose versions accumulates the rows up to its own."""
    versions: list[Version] = []
    attributes: dict[str, Attribute] = {}
    dtypes: tuple[str, ...] = ()
    outputs = 1
    earliest = {name: kind.implied for row in reversed(rows) for name, kind in row.attributes.items()}
    for row in rows:
        attributes = {**attributes, **row.attributes}
        dtypes += row.dtypes
        outputs = max(outputs, row.outputs)
        implied = {**earliest, **{name: kind.implied for name, kind in attributes.items()}, **row.implied}
        versions.append(Version(operator, row.since, attributes, dtypes, outputs, implied))
    return Schema(operator, domain, inputs, tuple(versions), optional, axes, channels_last)


PER_AXIS = Ints(minimum=1, omitted=1)
PADS = Ints(minimum=0, omitted=0)
KERNEL = Ints(minimum=1, required=True)
CEIL_MODE = Flag()  # `windows.resolve_axis` says what its values mean
FLOAT_P, INT_P = Float(2.0), Int(2, minimum=1)
SCALE = Float(1.0, limit=FLOAT32_MAX)
WINDOWS: dict[str, Attribute] = {
    "kernel_shape": KERNEL,
    "strides": PER_AXIS,
    "pads": PADS,
    "auto_pad": Choice("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", blank=True),
}

SCHEMAS = {schema.operator: schema for schema in (
    history(
        "AveragePool",
        since(1, WINDOWS, dtypes=FLOATS),
        since(7, {"count_include_pad": Flag()}),
        since(10, {"ceil_mode": CEIL_MODE}),
        since(11),
        since(19, {"dilations": PER_AXIS}),
        since(22, dtypes=BFLOAT),
        axes=True,
    ),
    history(
        "MaxPool",
        since(1, WINDOWS, dtypes=FLOATS),
        since(8, {"storage_order": Flag()}, outputs=2),
        since(10, {"ceil_mode": CEIL_MODE, "dilations": PER_AXIS}),
        since(11),
        since(12, dtypes=BYTES),
        since(22, dtypes=BFLOAT),
        axes=True,
    ),
    history(
        "LpPool",
        since(1, {**WINDOWS, "kernel_shape": Ints(minimum=1), "p": FLOAT_P}, dtypes=FLOATS),
        since(2, {"kernel_shape": KERNEL, "p": INT_P}),
        since(11),
        since(18, {"ceil_mode": CEIL_MODE, "dilations": PER_AXIS}),
        since(22, dtypes=BFLOAT),
        axes=True,
    ),
    history(
        "MaxUnpool",
        since(9, {"kernel_shape": KERNEL, "strides": PER_AXIS, "pads": PADS}, dtypes=FLOATS),
        since(11),
        since(22, dtypes=BFLOAT),
        inputs=("X", "I", "output_shape"), optional=("output_shape",),
    ),
    history(
        "MaxRoiPool",
        since(1, {"pooled_shape": KERNEL, "spatial_scale": SCALE}, dtypes=FLOATS),
        since(22, dtypes=BFLOAT),
        inputs=("X", "rois"),
    ),
    history(
        "RoiAlign",
        since(10, {
            "mode": Choice("avg", "max"), "output_height": Int(1, minimum=1), "output_width": Int(1, minimum=1),
            "sampling_ratio": Int(0, minimum=0), "spatial_scale": SCALE,
        }, dtypes=FLOATS, fixed={"coordinate_transformation_mode": "output_half_pixel"}),
        since(16, {"coordinate_transformation_mode": Choice("half_pixel", "output_half_pixel")}),
        since(22, dtypes=BFLOAT),
        inputs=("X", "rois", "batch_indices"),
    ),
    history("GlobalAveragePool", since(1, dtypes=FLOATS), since(22, dtypes=BFLOAT), axes=True),
    history("GlobalMaxPool", since(1, dtypes=FLOATS), since(22, dtypes=BFLOAT), axes=True),
    history("GlobalLpPool", since(1, {"p": FLOAT_P}, dtypes=FLOATS), since(2, {"p": INT_P}), since(22, dtypes=BFLOAT),
            axes=True),
    history(
        "QLinearAveragePool",
        since(1, {**WINDOWS, "ceil_mode": CEIL_MODE, "channels_last": Flag(), "count_include_pad": Flag()},
              dtypes=BYTES, fixed={"dilations": 1}),
        domain="com.microsoft", inputs=QUANTISED_INPUTS, optional=("x_zero_point", "y_zero_point"),
    ),
    history(
        "NhwcMaxPool",
        since(1, {**WINDOWS, "ceil_mode": CEIL_MODE, "dilations": PER_AXIS}, dtypes=BYTES),
        domain="com.microsoft", inputs=("x",), channels_last=True,
    ),
    history(
        "QLinearGlobalAveragePool",
        since(1, {"channels_last": Flag()}, dtypes=BYTES),
        domain="com.microsoft", inputs=QUANTISED_INPUTS,
    ),
)}


# Operators that ONNX does not have. They pool given axes only.
OWN_SCHEMAS = {schema.operator: schema for schema in (
    history(
        "MinPool",
        since(1, {**WINDOWS, "ceil_mode": CEIL_MODE, "dilations": PER_AXIS, "storage_order": Flag()},
              dtypes=tuple(DTYPES), outputs=2),
        domain=OWN, axes=True,
    ),
    history("GlobalMinPool", since(1, dtypes=tuple(DTYPES)), domain=OWN, axes=True),
)}
ALL_SCHEMAS = {**SCHEMAS, **OWN_SCHEMAS}


def resolve(operator: str, opset: object) -> Version:
    """The version of an operator in an opset: the newest one that is not newer than the opset."""
    schema = ALL_SCHEMAS[operator]
    latest = LATEST[schema.domain]
    number = integer(Place(operator, "opset"), latest if opset is None else opset, 1)
    if number > latest:
        raise PoolError(f"{operator}: opset={number} is not known, and the newest is {latest}; "
                        f"pass opset <= {latest} if the operator is the same there", operator, "opset", value=number)
    known = [version for version in schema.versions if version.since <= number]
    if not known:
        raise PoolError(f"{operator}: opset={number} has no {operator}, which was introduced in opset "
                        f"{schema.versions[0].since}; pass opset >= {schema.versions[0].since}", operator, "opset",
                        value=number)
    return known[-1]


def introduced(operator: str, attribute: str) -> int | None:
    """The first version with an attribute."""
    return next((v.since for v in ALL_SCHEMAS[operator].versions if attribute in v.attributes), None)


def foreign(version: Version, name: str, value: object) -> PoolError:
    """The error for an attribute that a version lacks."""
    first = introduced(version.operator, name)
    if first is None:
        return PoolError(f"{version.label}: unknown attribute {name}={shown(value)}; "
                         f"it has {', '.join(version.attributes) or 'none'}", version.label, name, value=value)
    return PoolError(f"{version.label}: {name}={shown(value)} given, but {name} was introduced in "
                     f"{version.operator}-{first}; leave it out or pass opset >= {first}",
                     version.label, name, value=value)


def elsewhere(version: Version, name: str, value: object) -> str:
    """The end of an error message: another version that accepts this value, or nothing if there is none."""
    for other in ALL_SCHEMAS[version.operator].versions:
        kind = other.attributes.get(name)
        if kind is None or type(kind) is type(version.attributes[name]):
            continue
        try:
            kind.check(Place(None, name), value)
        except (PoolError, PoolTypeError):
            continue
        return f", or opset={other.since}, as {name} is a {kind.type} in {other.label}"
    return ""


def check_attributes(version: Version, given: dict[str, Any]) -> dict[str, Any]:
    """The given attributes, without None, checked against the version."""
    checked = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in version.attributes:
            raise foreign(version, name, value)
        try:
            checked[name] = version.attributes[name].check(Place(version.label, name), value)
        except PoolTypeError as error:
            raise PoolTypeError(f"{error}{elsewhere(version, name, value)}", version.label, name,
                                value=error.value) from None
    for name, attribute in version.attributes.items():
        if attribute.required and name not in checked:
            raise PoolError(f"{version.label}: {name} is required; pass {name}", version.label, name)
    return checked


def check_dtype(version: Version, name: str, more: Collection[str] = ()) -> None:
    """Refuse a dtype that is neither allowed by the version nor in `more`."""
    if name in version.dtypes or name in more:
        return
    first = next((v.since for v in ALL_SCHEMAS[version.operator].versions if name in v.dtypes), None)
    accepted = ", ".join(dict.fromkeys((*version.dtypes, *more)))
    if first:
        raise PoolTypeError(f"{version.label}: dtype {name} is accepted from {version.operator}-{first} on, but here "
                            f"only {accepted}; cast to one of these or pass opset >= {first}",
                            version.label, "X", value=name)
    raise PoolTypeError(f"{version.label}: dtype {name} is not accepted, only {accepted}; {cast(version, name)}",
                        version.label, "X", value=name)


def cast(version: Version, name: str) -> str:
    """The end of an error message about a dtype that the version does not allow: what to do instead."""
    wide, quantised = EXACT.get(name), f"QLinear{version.operator}"
    if wide in version.dtypes:
        more = ""
        if name == "uint16" and "bfloat16" in version.dtypes:
            more = "; if these are the bits of bfloat16, pass x.view(ml_dtypes.bfloat16)"
        elif quantised in SCHEMAS and name in SCHEMAS[quantised].versions[-1].dtypes:
            more = f"; {quantised} takes it with a scale and a zero point"
        return f"cast to {wide}, which represents every {name} exactly{more}"
    if name in ("int64", "uint64") and "float64" in version.dtypes:
        return "cast to float64, which is exact for integers up to 2^53"
    if name.startswith("complex"):
        return "pass its real part, its imaginary part or its magnitude"
    return "cast to one of these"


def check_outputs(version: Version, count: int) -> None:
    """Refuse more outputs than the version has."""
    if count <= version.outputs:
        return
    first = next((v.since for v in ALL_SCHEMAS[version.operator].versions if count <= v.outputs), None)
    if first is None:
        raise PoolError(f"{version.label}: {count} outputs requested, but there are {version.outputs}; request fewer",
                        version.label, "return_indices", value=count)
    raise PoolError(f"{version.label}: return_indices given, but Indices were introduced in {version.operator}-{first}"
                    f"; leave it out or pass opset >= {first}", version.label, "return_indices", value=True)


def supported() -> list[dict[str, Any]]:
    """
    List all ONNX operators and versions, with their attributes and dtypes.

    Returns
    -------
    list of dict
        One entry per version, with ``operator``, ``domain``, ``version``, ``attributes``, ``dtypes`` and ``outputs``.
        ``attributes`` maps each name to a dict of ``type``, ``required`` and ``default``.

    See Also
    --------
    config : Describes the installation.
    from_node : Makes the operator of an ONNX node.

    Examples
    --------
    >>> import onnxpool
    >>> [row["version"] for row in onnxpool.supported() if row["operator"] == "AveragePool"]
    [1, 7, 10, 11, 19, 22]
    """
    return [
        {
            "operator": schema.operator,
            "domain": schema.domain,
            "version": version.since,
            "attributes": {
                name: {"type": kind.type, "required": kind.required, "default": kind.default}
                for name, kind in version.attributes.items()
            },
            "dtypes": list(version.dtypes),
            "outputs": version.outputs,
        }
        for schema in SCHEMAS.values() for version in schema.versions
    ]
