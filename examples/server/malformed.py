"""Requests that a server of the model ``peaks`` must refuse, and the expected answers."""

import json
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from protocol import Limits

LIMITS = Limits(body_bytes=1 << 20, json_bytes=1 << 16, tensor_bytes=1 << 19, seconds=5.0)
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in LIMITS._asdict().items()]

INFER = "/v2/models/peaks/infer"
HEADER_LENGTH = "Inference-Header-Content-Length"


class Malformed(NamedTuple):
    """A request, and a part of the message with which it is refused."""

    kind: str
    body: bytes
    text: str
    status: int = 400
    headers: Mapping[str, str] = MappingProxyType({})
    path: str = INFER
    method: str = "POST"


def listed(**changes: Any) -> bytes:
    """A request whose tensor is JSON; it is valid without changes."""
    tensor = {"name": "heat", "shape": [1, 1, 3, 3], "datatype": "FP32", "data": list(range(9)), **changes}
    return json.dumps({"inputs": [{key: value for key, value in tensor.items() if value is not None}]}).encode()


def binary(size: Any = 36, data: bytes = bytes(36), **changes: Any) -> tuple[bytes, dict[str, str]]:
    """The body and headers of a request whose tensor is binary data; they are valid without changes."""
    header = listed(data=None, parameters={"binary_data_size": size}, **changes)
    return header + data, {HEADER_LENGTH: str(len(header))}


def asking(**output: Any) -> bytes:
    """A request for one output."""
    return json.dumps({**json.loads(listed()), "outputs": [output]}).encode()


def with_binary(kind: str, text: str, status: int = 400, **changes: Any) -> Malformed:
    """A malformed request whose tensor is binary data."""
    body, headers = binary(**changes)
    return Malformed(kind, body, text, status, headers)


GOOD = listed()
REQUESTS = [
    Malformed("no body", b"", "not JSON"),
    Malformed("cut JSON", GOOD[:-1], "not JSON"),
    Malformed("not UTF-8", b'{"inputs": "\xff\xfe"}', "not JSON"),
    Malformed("deep JSON", b"[" * 60_000, "not JSON"),
    Malformed("a deep list", b"[" * 30_000 + b"]" * 30_000, "the request is "),  # not JSON, or a list
    Malformed("a number of many digits", b'{"id": ' + b"9" * 50_000 + b"}", "not JSON"),
    Malformed("a list", b"[]", "the request is []; it must be an object"),
    Malformed("id", b'{"id": 7, "inputs": []}', "id is 7; it must be a string"),
    Malformed("no inputs", b"{}", "input 'heat' is missing"),
    Malformed("inputs no list", b'{"inputs": {"heat": 1}}', "inputs is {'heat': 1}; it must be a list"),
    Malformed("input no object", b'{"inputs": [1]}', "inputs[0] is 1; it must be an object"),
    Malformed("two of a name", json.dumps({"inputs": json.loads(GOOD)["inputs"] * 2}).encode(), "is given twice"),
    Malformed("name", listed(name="image"), "input 'image' is not known; the model has 'heat'"),
    Malformed("name no string", listed(name=["heat"]), "input ['heat'] is not known"),
    Malformed("dtype", listed(datatype="FP64"), "has datatype 'FP64', but the model takes FP32"),
    Malformed("dtype unknown", listed(datatype="FLOAT"), "has datatype 'FLOAT'"),
    Malformed("rank", listed(shape=[3, 3]), "has rank 2 (shape [3, 3]), but the model takes ['N', 'C', 'H', 'W']"),
    Malformed("rank over the limit", listed(shape=[1] * 1000), "has rank 1000, but at most 8 is accepted"),
    Malformed("no shape", listed(shape=None), "has shape None"),
    Malformed("negative size", listed(shape=[1, 1, -3, -3]), "must be a list of integers from 0 on"),
    Malformed("size no integer", listed(shape=[1, 1, 3, 3.0]), "must be a list of integers from 0 on"),
    Malformed("size true", listed(shape=[True, 1, 3, 3]), "must be a list of integers from 0 on"),
    Malformed("huge shape", listed(shape=[2**62, 2**62, 3, 3]), "at most 524288 are accepted", 413),
    Malformed("huge shape of no elements", listed(shape=[0, 1, 2**63, 3], data=[]), "too large even for an array"),
    Malformed("huge sizes of no elements", listed(shape=[0, 1, 2**40, 2**40], data=[]), "too large even for an array"),
    Malformed("tensor over the limit", listed(shape=[1, 1, 512, 257]), "has 526336 bytes, but at most 524288", 413),
    Malformed("too few elements", listed(data=[1] * 8), "has 8 elements in data, but its shape [1, 1, 3, 3] takes 9"),
    Malformed("too many elements", listed(data=[1] * 10), "has 10 elements"),
    Malformed("ragged", listed(data=[[[[1, 2, 3], [4, 5], [7, 8, 9]]]]), "has 2 elements at axis 3"),
    Malformed("too deep data", listed(data=[[[[[1], 2, 3], [4, 5, 6], [7, 8, 9]]]]), "has [1] in data"),
    Malformed("text", listed(data=["1"] * 9), "has '1' in data; FP32 takes numbers"),
    Malformed("null", listed(data=[1] * 8 + [None]), "has None in data"),
    Malformed("truth value", listed(data=[1] * 8 + [True]), "has True in data"),
    Malformed("NaN", listed(data=[float("nan")] * 9), "JSON has no NaN"),
    Malformed("beyond FP32", listed(data=[1e39] * 9), "a number in data that FP32 cannot hold"),
    Malformed("beyond FP64", listed(data=[10**400] * 9), "a number in data that FP32 cannot hold"),
    Malformed("data no list", listed(data="AAAA"), "it must be a list"),
    Malformed("no data", listed(data=None), "must have either data or the parameter binary_data_size"),
    Malformed("shared memory", listed(data=None, parameters={"shared_memory_region": "r"}), "is in shared memory"),
    Malformed("parameters", listed(parameters=[]), "parameters is []; it must be an object"),
    Malformed("data twice", listed(parameters={"binary_data_size": 36}), "must have either data or the parameter"),
    with_binary("binary size", "has binary_data_size 35, but its shape [1, 1, 3, 3] of float32 takes 36", size=35),
    with_binary("binary size no integer", "has binary_data_size '36'", size="36"),
    with_binary("negative binary size", "has binary_data_size -36", size=-36),
    with_binary("short binary data", "needs bytes 0 to 36 of the binary data, which has 35", data=bytes(35)),
    with_binary("long binary data", "the body has 37 bytes of binary data", data=bytes(37)),
    Malformed("header length no number", GOOD, "must be a number of bytes", headers={HEADER_LENGTH: "many"}),
    Malformed("header length 0", GOOD, "must be a number of bytes", headers={HEADER_LENGTH: "0"}),
    Malformed("header length negative", GOOD, "must be a number of bytes", headers={HEADER_LENGTH: "-1"}),
    Malformed("header length beyond", GOOD, "must be a number of bytes", headers={HEADER_LENGTH: str(len(GOOD) + 1)}),
    Malformed("header length huge", GOOD, "must be a number of bytes", headers={HEADER_LENGTH: "9" * 5000}),
    Malformed("header length inside", GOOD, "not JSON", headers={HEADER_LENGTH: str(len(GOOD) - 1)}),
    Malformed("output", asking(name="scores"), "output 'scores' is not known; the model has 'peaks'"),
    Malformed("classification", asking(name="peaks", parameters={"classification": 3}), "is not offered"),
    Malformed("flag", asking(name="peaks", parameters={"binary_data": 1}), "binary_data is 1; it must be true or"),
    Malformed("not representable in JSON", listed(data=[3e38] * 9), "has NaN or infinity, which JSON cannot represent"),
    Malformed("window over the tensor", listed(shape=[1, 1, 1, 9]), "AveragePool-22: kernel_shape[0]=3"),
    Malformed("large JSON", b" " * 70_000 + GOOD, f"the JSON has {70_000 + len(GOOD)} bytes, but at most 65536", 413),
    Malformed("large body", bytes(3 << 20), "the body has 3145728 bytes (limit: 1048576)", 413),
    Malformed("compressed", GOOD, "Content-Encoding 'gzip' is not accepted", 415, {"Content-Encoding": "gzip"}),
    Malformed("model", GOOD, "model 'nothing' is not known; there is 'peaks'", 404, path="/v2/models/nothing/infer"),
    Malformed("version", GOOD, "model 'peaks' has no version '2'", 404, path="/v2/models/peaks/versions/2/infer"),
    Malformed("method", b"", "Method Not Allowed", 405, method="GET"),
]

# Data sent before the connection is closed.
TORN = [
    b"",
    b"\x00\xff\r\n\r\n",
    b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{",
    b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD,
]


def tear(address: tuple[str, int], sent: bytes) -> None:
    """Send a part of a request and disconnect."""
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(sent)
