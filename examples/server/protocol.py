"""The Open Inference Protocol, version 2: conversion between bytes and arrays, with all limits, but without HTTP."""

import json
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"{kind}{bits}": np.dtype(f"{kind.lower()}{bits}") for kind in ("UINT", "INT") for bits in (8, 16, 32, 64)},
    "FP16": np.dtype(np.float16), "FP32": np.dtype(np.float32), "FP64": np.dtype(np.float64),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
DATATYPES = {dtype: name for name, dtype in DTYPES.items()}
FORMS: dict[str, tuple[set[type], str]] = {"b": ({bool}, "true and false"), "f": ({int, float}, "numbers")}  # in JSON
BINARY_ONLY = ("FP16", "BF16")  # the binary tensor data extension defines no JSON form for them
MOST_SIZES = 2**59  # product of the sizes of an array, without zeros: eight bytes for each still fit in 63 bits


class RequestError(ValueError):
    """The reason why a request has no result; `status` is that of HTTP, 4xx if the sender can fix it."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Limits(NamedTuple):
    """The limits of a single request, and of requests in progress."""

    body_bytes: int = 64 << 20
    json_bytes: int = 4 << 20  # separate, because a number in JSON takes up to 20 times its size as a Python object
    tensor_bytes: int = 32 << 20
    rank: int = 8
    requests: int = 64
    seconds: float = 30.0


class Signature(NamedTuple):
    """
    An input or an output of a model.

    Attributes
    ----------
    name, datatype : str
    shape : tuple of (int, str or None)
        A name stands for an open size that is the same wherever the name occurs, None for any open size.
    optional : bool
        Whether the model has a value of its own for the input.
    """

    name: str
    datatype: str
    shape: tuple[int | str | None, ...]
    optional: bool = False

    def metadata(self) -> dict[str, Any]:
        """The metadata as the protocol defines it."""
        shape = [size if isinstance(size, int) else -1 for size in self.shape]
        return {"name": self.name, "datatype": self.datatype, "shape": shape}


class Wanted(NamedTuple):
    """An output that a request asks for."""

    name: str
    binary: bool


class Request(NamedTuple):
    """A request with the inputs of its model."""

    id: str | None
    feeds: dict[str, Array]
    outputs: list[Wanted]


def decode(body: bytes | bytearray, header_length: str | None, inputs: Sequence[Signature],
           outputs: Sequence[Signature], limits: Limits) -> Request:
    """
    Read an inference request.

    Parameters
    ----------
    body : bytes
    header_length : str, optional
        The header Inference-Header-Content-Length: how many bytes of the body are JSON, if not all.
    inputs, outputs : sequence of Signature
    limits : Limits

    Returns
    -------
    Request
        Its arrays are read-only views of `body` if they are binary data there.

    Raises
    ------
    RequestError
        If the request does not follow the protocol, or does not fit these inputs and outputs.
    """
    header, data = split(body, header_length)
    if len(header) > limits.json_bytes:
        raise RequestError(f"the JSON has {len(header)} bytes, but at most {limits.json_bytes} are accepted; "
                           f"send large tensors as binary data", 413)
    document = entries(parse(header), "the request")
    number = document.get("id")
    if number is not None and not isinstance(number, str):
        raise RequestError(f"id is {shown(number)}; it must be a string")
    feeds = Reader(data, inputs, limits).feeds(items(document, "inputs"))
    binary = flag(parameters_of(document, ""), "binary_data_output", "parameters")
    return Request(number, feeds, wanted(items(document, "outputs"), outputs, binary))


def split(body: bytes | bytearray, header_length: str | None) -> tuple[memoryview, memoryview]:
    """The JSON of a body, and the binary data after it."""
    view = memoryview(body).toreadonly()
    if header_length is None:
        return view, view[len(view):]
    digits = header_length.isascii() and header_length.isdigit() and len(header_length) < 20
    length = int(header_length) if digits else -1
    if not 0 < length <= len(view):
        raise RequestError(f"Inference-Header-Content-Length is {shown(header_length)}; it must be a number of bytes "
                           f"from 1 to {len(view)}, those of the body")
    return view[:length], view[length:]


def parse(text: memoryview) -> Any:
    """The value of a JSON text."""
    def refuse(constant: str) -> NoReturn:
        raise RequestError(f"JSON has no {constant}; send such tensors as binary data")

    try:
        return json.loads(bytes(text), parse_constant=refuse)
    except RequestError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise RequestError(f"the request is not JSON: {reason}") from None


class Reader:
    """Converts a request's inputs to arrays; `data` is the binary data, which they consume in order."""

    def __init__(self, data: memoryview, signatures: Sequence[Signature], limits: Limits) -> None:
        self.data = data
        self.signatures = {signature.name: signature for signature in signatures}
        self.limits = limits
        self.position = 0
        self.sizes: dict[str, tuple[int, str]] = {}  # name of an open size -> its value and the input that set it

    def feeds(self, tensors: list[dict[str, Any]]) -> dict[str, Array]:
        """An array for each input."""
        feeds: dict[str, Array] = {}
        for tensor in tensors:
            name = self.known(tensor.get("name"))
            if name in feeds:
                raise RequestError(f"input {name!r} is given twice")
            feeds[name] = self.array(self.signatures[name], tensor)
        missing = [name for name, known in self.signatures.items() if name not in feeds and not known.optional]
        if missing:
            raise RequestError(f"input {missing[0]!r} is missing; the model needs {names(self.signatures)}")
        if self.position != len(self.data):
            raise RequestError(f"the body has {len(self.data)} bytes of binary data, but the inputs' binary_data_size "
                               f"are {self.position} in all")
        return feeds

    def known(self, name: object) -> str:
        """The name of an input, which the model must have."""
        if not isinstance(name, str) or name not in self.signatures:
            raise RequestError(f"input {shown(name)} is not known; the model has {names(self.signatures)}")
        return name

    def array(self, signature: Signature, tensor: dict[str, Any]) -> Array:
        """The array of one input."""
        name = f"input {signature.name!r}"
        if tensor.get("datatype") != signature.datatype:
            raise RequestError(f"{name} has datatype {shown(tensor.get('datatype'))}, but the model takes "
                               f"{signature.datatype}")
        shape = self.shape(signature, tensor.get("shape"))
        dtype = DTYPES[signature.datatype]
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes > self.limits.tensor_bytes:
            raise RequestError(f"{name} of shape {list(shape)} has {nbytes} bytes, but at most "
                               f"{self.limits.tensor_bytes} are accepted", 413)
        parameters = parameters_of(tensor, f"{name}: ")
        if "shared_memory_region" in parameters:
            raise RequestError(f"{name} is in shared memory, which this server does not share; send its data")
        listing = tensor.get("data")
        if ("binary_data_size" in parameters) == (listing is not None):
            raise RequestError(f"{name} must have either data or the parameter binary_data_size")
        if listing is not None:
            return listed(name, listing, signature.datatype, shape)
        return self.binary(name, parameters["binary_data_size"], dtype, shape, nbytes)

    def shape(self, signature: Signature, given: object) -> tuple[int, ...]:
        """The shape given for an input, which the model must accept."""
        name = f"input {signature.name!r}"
        if not isinstance(given, list) or any(type(size) is not int or size < 0 for size in given):
            raise RequestError(f"{name} has shape {shown(given)}; it must be a list of integers from 0 on")
        if len(given) > self.limits.rank:
            raise RequestError(f"{name} has rank {len(given)}, but at most {self.limits.rank} is accepted")
        if 0 in given and math.prod(size or 1 for size in given) > MOST_SIZES:
            raise RequestError(f"{name} has shape {shown(given)}, which is too large even for an array of no elements")
        takes = f"the model takes {[size or '?' for size in signature.shape]}"
        if len(given) != len(signature.shape):
            raise RequestError(f"{name} has rank {len(given)} (shape {shown(given)}), but {takes}")
        for axis, (size, expected) in enumerate(zip(given, signature.shape, strict=True)):
            if isinstance(expected, str):
                expected, other = self.sizes.setdefault(expected, (size, signature.name))
                takes = f"input {other!r} has {expected} there"
            if expected is not None and size != expected:
                raise RequestError(f"{name} has shape {shown(given)}, whose axis {axis} is {size}; {takes}")
        return tuple(given)

    def binary(self, name: str, size: object, dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int) -> Array:
        """The array of an input that is binary data."""
        if type(size) is not int or size != nbytes:
            raise RequestError(f"{name} has binary_data_size {shown(size)}, but its shape {list(shape)} of "
                               f"{dtype.name} takes {nbytes}")
        begin, self.position = self.position, self.position + nbytes
        if self.position > len(self.data):
            raise RequestError(f"{name} needs bytes {begin} to {self.position} of the binary data, which has "
                               f"{len(self.data)}")
        octets = np.frombuffer(self.data[begin:self.position], np.uint8)
        if dtype == np.bool_ and octets.size and octets.max() > 1:
            raise RequestError(f"{name} has bytes other than 0 and 1, which are not valid as BOOL")
        return octets.view(dtype.newbyteorder("<")).reshape(shape)


def listed(name: str, data: object, datatype: str, shape: tuple[int, ...]) -> Array:
    """The array of an input that is JSON: a flat list of all elements, or lists nested according to the shape."""
    if datatype in BINARY_ONLY:
        raise RequestError(f"{name}: {datatype} cannot be represented in JSON; send binary data")
    values = flattened(name, data, shape)
    dtype = DTYPES[datatype]
    allowed, kind = FORMS.get(dtype.kind, ({int}, "integers"))
    for value in values if set(map(type, values)) - allowed else ():
        if type(value) not in allowed:
            raise RequestError(f"{name} has {shown(value)} in data; {datatype} takes {kind}")
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, np.float64).astype(dtype) if dtype.kind == "f" else np.array(values, dtype)
        if dtype.kind == "f" and not np.isfinite(array).all():
            raise OverflowError
    except OverflowError:
        raise RequestError(f"{name} has a number in data that {datatype} cannot hold") from None
    return array.reshape(shape)


def flattened(name: str, data: object, shape: tuple[int, ...]) -> list[Any]:
    """The elements of JSON data in row-major order."""
    if not isinstance(data, list):
        raise RequestError(f"{name} has {shown(data)} as data; it must be a list")
    nested = any(isinstance(row, list) for row in data)
    rows = [data]
    for axis, size in enumerate(shape if nested else (math.prod(shape),)):
        for row in rows:
            if not isinstance(row, list) or len(row) != size:
                found = f"{len(row)} elements" if isinstance(row, list) else shown(row)
                where = f" at axis {axis}" if nested else ""
                raise RequestError(f"{name} has {found}{where} in data, but its shape {list(shape)} takes {size}")
        rows = list(chain.from_iterable(rows))
    return rows


def wanted(asked: list[dict[str, Any]], outputs: Sequence[Signature], binary: bool) -> list[Wanted]:
    """The requested outputs; all of them if there is no list."""
    known = [output.name for output in outputs]
    found: dict[str, Wanted] = {}
    for output in asked:
        name = output.get("name")
        if not isinstance(name, str) or name not in known:
            raise RequestError(f"output {shown(name)} is not known; the model has {names(known)}")
        if name in found:
            raise RequestError(f"output {name!r} is asked for twice")
        parameters = parameters_of(output, f"output {name!r}: ")
        for parameter in ("classification", "shared_memory_region"):
            if parameters.get(parameter):
                raise RequestError(f"output {name!r}: {parameter} is not offered; leave it out")
        found[name] = Wanted(name, flag(parameters, "binary_data", f"output {name!r}", binary))
    return list(found.values()) if asked else [Wanted(name, binary) for name in known]


def encode(model: str, version: str, request: Request, arrays: Sequence[Array]) -> tuple[bytes, int | None]:
    """
    Write an inference response.

    Returns
    -------
    body : bytes
    header_length : int or None
        How many bytes of the body are JSON, if there is binary data after them.

    Raises
    ------
    RequestError
        If an output that is not asked for as binary data cannot be represented in JSON.
    """
    described, blobs = [], []
    for output, array in zip(request.outputs, arrays, strict=True):
        datatype = DATATYPES[array.dtype.newbyteorder("=")]
        entry: dict[str, Any] = {"name": output.name, "datatype": datatype, "shape": list(array.shape)}
        if output.binary:
            blobs.append(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
            entry["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            entry["data"] = elements(output.name, datatype, array)
        described.append(entry)
    document: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": described}
    if request.id is not None:
        document["id"] = request.id
    header = json.dumps(document).encode()
    return b"".join([header, *blobs]), len(header) if blobs else None


def elements(name: str, datatype: str, array: Array) -> list[Any]:
    """The elements of an output, for JSON."""
    if datatype in BINARY_ONLY:
        raise RequestError(f"output {name!r}: {datatype} cannot be represented in JSON; ask for binary_data")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise RequestError(f"output {name!r} has NaN or infinity, which JSON cannot represent; ask for binary_data")
    values: list[Any] = array.ravel().tolist()
    return values


def entries(value: object, what: str) -> dict[str, Any]:
    """A value that must be an object of JSON."""
    if not isinstance(value, dict):
        raise RequestError(f"{what} is {shown(value)}; it must be an object")
    return value


def parameters_of(value: dict[str, Any], what: str) -> dict[str, Any]:
    """The parameters of a request, an input or an output; null means none, as for everything optional."""
    parameters = value.get("parameters")
    return {} if parameters is None else entries(parameters, f"{what}parameters")


def items(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of objects, which is empty if it is missing or null."""
    value = document.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise RequestError(f"{key} is {shown(value)}; it must be a list")
    return [entries(item, f"{key}[{index}]") for index, item in enumerate(value)]


def flag(parameters: dict[str, Any], key: str, what: str, default: bool = False) -> bool:
    """A parameter that is true or false."""
    value = parameters.get(key, default)
    if not isinstance(value, bool):
        raise RequestError(f"{what}: {key} is {shown(value)}; it must be true or false")
    return value


def names(known: Sequence[str] | dict[str, Any]) -> str:
    """The names that exist, for a message."""
    return ", ".join(map(repr, known))


def shown(value: object) -> str:
    """A value from a client as text for a message, shortened if it is long."""
    if isinstance(value, (list, dict)) and len(value) > 16:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "an integer beyond 64 bits"
    except RecursionError:  # newer Pythons can parse JSON that is nested deeper than they can show
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:100]}..."
