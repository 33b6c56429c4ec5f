"""
Requests to the example server, many with something wrong: python tests/embedding/corrupted_requests.py --calls 1000

The server has models of one pooling node, whose attributes are those of random calls. Requests have the inputs of such
a call, or inputs with something wrong. Further ones are damaged in their JSON, their bytes or their headers. Where a
request is whole, the answer has the bits of the Python call, or is a 400 if that is refused. Any other answer is a
refusal with a message. No answer is a 5xx, none takes longer than 10 s, and the server survives.
"""

import http.client
import json
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("tests/helpers", "tests/oracle", "examples/server")]

import load  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from calls import INDICES, NHWC_MAX, QLINEAR, SeededChoices  # noqa: E402
from calls_family import WEIGHTED, draw_call  # noqa: E402
from corruption import MOST_BYTES, bad_dtype, bad_shape, bad_value, describe, parser_of, repeat  # noqa: E402
from onnx import helper  # noqa: E402
from protocol import DATATYPES, DTYPES  # noqa: E402

import onnxpool  # noqa: E402

MODELS = 40
SECONDS = 10
JSON_ODD = (None, True, 0, -1, 1, 3, 2**31, 2**63, 2**64, 1e308, 0.5, "", "x", "FP32", [], [1], [[1], [2, 3]], {},
            {"binary_data_size": 4})
HEADER_LENGTH = "Inference-Header-Content-Length"
NEWEST_OPSET = 22


class Served:
    """A model of one node, and the call that it was made of."""

    def __init__(self, name, call):
        operator = call.operator.split()[0]
        self.name, self.call = name, call
        self.names = [f"x{i}" if array is not None else "" for i, array in enumerate(call.inputs)]
        outputs = {"y": call.x.dtype} | ({"i": np.dtype(np.int64)} if call.operator == INDICES else {})
        given = {key: value for key, value in call.attributes.items() if value is not None}
        if operator in QLINEAR:
            given["channels_last"] = int(call.channels_last)
        domain = "com.microsoft" if call.opset is None else ""

        def port(name, dtype, rank):
            sizes = [f"{name}{axis}" for axis in range(rank)]
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), sizes)

        ports = [port(name, array.dtype, array.ndim) for name, array in zip(self.names, call.inputs, strict=True)
                 if array is not None]
        results = [port(name, dtype, call.x.ndim) for name, dtype in outputs.items()]
        node = helper.make_node(operator, self.names, list(outputs), name="pool", domain=domain, **given)
        opsets = [helper.make_opsetid("", call.opset or NEWEST_OPSET)] + [helper.make_opsetid(domain, 1)] * bool(domain)
        graph = helper.make_graph([node], "g", ports, results)
        self.proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        self.outputs = list(outputs)

    def expected(self, call):
        """The results of the Python call, or None if it is refused."""
        try:
            result = replace(call, style="object", num_threads=1).run(onnxpool)
        except (onnxpool.PoolError, onnxpool.PoolTypeError):
            return None
        return dict(zip(self.outputs, result if isinstance(result, tuple) else (result,), strict=True))


def plain_call(choices):
    """A call that a node can stand for."""
    call = draw_call(choices, (*WEIGHTED, "MaxUnpool"))
    per_axis = ("kernel_shape", "strides", "dilations")
    given = {key: (value,) * (call.x.ndim - 2) if key in per_axis and isinstance(value, int) else value
             for key, value in call.attributes.items()}
    inputs = [None if array is None else np.array(array, array.dtype.newbyteorder("=")) for array in call.inputs]
    while inputs[-1] is None:
        inputs.pop()
    if call.operator not in (*QLINEAR, NHWC_MAX):
        call = replace(call, opset=min(call.opset or NEWEST_OPSET, NEWEST_OPSET), channels_last=False)
    return replace(call, attributes=given, x=inputs[0], further=tuple(inputs[1:]), memory="C")


def make_models(folder, seed):
    """Files of models that the server accepts."""
    made, choices = [], SeededChoices([seed, 49])
    for _ in range(10 * MODELS):
        served = Served(f"m{len(made)}", plain_call(choices))
        path = folder / f"{served.name}.onnx"
        onnx.save(served.proto, path)
        try:
            models.Model(path)
        except Exception:  # the exceptions of onnx have no common base
            path.unlink()
            continue
        made.append(served)
        if len(made) == MODELS:
            return made
    raise RuntimeError("few calls become models")


# Requests


def encoded(choices, names, arrays, outputs):
    """The document of a request and its binary data."""
    tensors, data = [], b""
    for name, array in zip(names, arrays, strict=True):
        if array is None:
            continue
        if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("=") not in DATATYPES:
            return None
        array = array.astype(array.dtype.newbyteorder("="))
        tensor = {"name": name, "shape": list(array.shape), "datatype": DATATYPES[array.dtype]}
        listable = array.size < 300 and array.dtype.name not in ("float16", "bfloat16") and (
            array.dtype.kind != "f" or np.isfinite(array).all())
        if listable and choices.chance(40):
            tensor["data"] = (array.ravel() if choices.chance(50) else array).tolist()
            if not array.ndim:
                tensor["data"] = array.ravel().tolist()
        else:
            tensor["parameters"] = {"binary_data_size": array.nbytes}
            data += array.tobytes()
        tensors.append(tensor)
    asked = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
    return {"inputs": tensors, "outputs": asked}, data


def bad_document(choices, document):
    """A document in which one value is replaced or missing."""
    document = json.loads(json.dumps(document))
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return document
        key = choices.pick(keys)
        if isinstance(at[key], (dict, list)) and at[key] and choices.chance(75):
            at = at[key]
            continue
        if choices.chance(25):
            del at[key]
        else:
            at[key] = choices.pick(JSON_ODD)
        return document


def bad_size(choices, document):
    """A document whose tensor has one element more or less than its shape says."""
    document = json.loads(json.dumps(document))
    tensor = choices.pick(document["inputs"])
    row = tensor.get("data") or tensor["shape"]
    while row and isinstance(row[0], list):
        row = choices.pick(row)
    if row is tensor["shape"] and row:
        row[choices.integer(0, len(row) - 1)] += choices.pick((1, -1))
    elif choices.chance(50) and row:
        del row[-1]
    else:
        row.append(1)
    return document


def bad_bytes(choices, body):
    """A body with a byte changed, or a part of it missing, doubled or new."""
    place, size = choices.integer(0, len(body)), choices.pick((1, 1, 2, 7, 40))
    kind = choices.pick(("change", "cut", "end", "double", "insert"))
    if kind == "change":
        return body[:place] + bytes([choices.integer(0, 255)]) + body[place + 1:]
    if kind == "cut":
        return body[:place] + body[place + size:]
    if kind == "end":
        return body[:place]
    if kind == "double":
        return body[: place + size] + body[place:]
    return body[:place] + np.random.default_rng(place).bytes(size) + body[place:]


def bad_headers(choices, headers, size):
    """Headers with another or no length of the JSON, or an encoding."""
    kind = choices.pick(("length", "none", "encoding", "type"))
    if kind == "length":
        value = choices.pick(("0", "-1", "x", "", "1", "1e3", str(size), str(size + 1), str(2**63), "9" * 30))
        return headers | {HEADER_LENGTH: value}
    if kind == "none":
        return {name: value for name, value in headers.items() if name != HEADER_LENGTH}
    return headers | ({"Content-Encoding": "gzip"} if kind == "encoding" else {"Content-Type": "text/plain"})


def read(served, call, body, header_length):
    """The call that the bytes of a request stand for, decoded without the server's own code; None if for none."""
    try:
        length = len(body) if header_length is None else int(header_length)
        document, data = json.loads(body[:length]), body[length:]
        found, at = {}, 0
        for tensor in document["inputs"]:
            dtype, shape = DTYPES[tensor["datatype"]], tuple(tensor["shape"])
            if "data" in tensor and tensor["data"] is not None:
                wide = np.array(tensor["data"], np.float64 if dtype.kind == "f" else dtype)
                with np.errstate(over="ignore"):
                    found[tensor["name"]] = wide.astype(dtype).reshape(shape)
            else:
                size = tensor["parameters"]["binary_data_size"]
                found[tensor["name"]] = np.frombuffer(data[at:at + size], dtype).reshape(shape)
                at += size
        arrays = [found.get(name) for name in served.names]
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
        return None
    return replace(call, x=arrays[0], further=tuple(arrays[1:])) if arrays[0] is not None else None


class Client:
    """A connection to the server."""

    def __init__(self, url):
        self.address = (urlsplit(url).hostname, urlsplit(url).port)
        self.connection = None

    def ask(self, path, body, headers):
        """The status, headers and content of the answer."""
        for attempt in range(2):
            fresh = self.connection is None
            if fresh:
                self.connection = http.client.HTTPConnection(*self.address, timeout=SECONDS)
            try:
                self.connection.request("POST", path, body, headers)
                answer = self.connection.getresponse()
                content = answer.read()
                if answer.will_close:
                    self.close()
                return answer.status, answer.headers, content
            except (http.client.RemoteDisconnected, ConnectionError):
                self.close()
                if fresh or attempt:
                    raise
        raise AssertionError

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def tear(self, content):
        """Send bytes that need not be HTTP, and return the status line of the answer, if there is one."""
        with socket.create_connection(self.address, timeout=SECONDS) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            try:
                return connection.recv(1 << 16).split(b"\r\n")[0].decode("latin-1")
            except ConnectionError:
                return ""


def attempt(seed, client, served_models):
    """Send the request of a seed; the fault of the answer, the name of the outcome, and what was sent."""
    choices = SeededChoices(seed)
    served = choices.pick(served_models)
    call, kinds = served.call, []
    for _ in range(choices.pick((0, 1, 1))):
        kind = choices.pick((bad_value, bad_shape, bad_shape, bad_dtype))
        changed = kind(choices, call)
        if changed.attributes is call.attributes:
            call, kinds = changed, [kind.__name__]
    made = encoded(choices, served.names, call.inputs, served.outputs)
    if made is None:
        call, kinds = served.call, []
        made = encoded(choices, served.names, call.inputs, served.outputs)
    document, data = made
    damaged = choices.chance(45)
    path = f"/v2/models/{served.name}/infer"
    kind = choices.pick(("document", "document", "size", "bytes", "headers", "torn")) if damaged else ""
    if kind in ("document", "size"):
        document = {"document": bad_document, "size": bad_size}[kind](choices, document)
    header = json.dumps(document).encode()
    body, headers = header + data, {HEADER_LENGTH: str(len(header))} if data else {}
    if kind == "bytes":
        body = bad_bytes(choices, body)
    if kind == "headers":
        headers = bad_headers(choices, headers, len(body))

    def text():
        return f"{kinds} {kind} {served.name} {headers} {body[:300]!r}\n  {describe(call)}"

    try:
        if kind == "torn":
            first = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
            first += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            status = client.tear(bad_bytes(choices, first.encode() + b"\r\n" + body))
            code = status.split(" ")[1] if status.count(" ") >= 1 else ""
            return (f"status line {status!r}" if code.startswith("5") else None), "torn", text
        status, answer_headers, content = client.ask(path, body, headers)
    except (OSError, http.client.HTTPException) as error:
        client.close()
        return f"no answer: {type(error).__name__}: {error}", "", text
    whole = read(served, call, body, headers.get(HEADER_LENGTH))
    problem = wrong(served, whole, kind, status, answer_headers, content)
    ending = "result" if status == 200 else f"refused with {status}"
    return problem, ending, text


def wrong(served, whole, kind, status, headers, content):
    """The fault of an answer."""
    expected = served.expected(whole) if whole is not None else None
    if status != 200:
        try:
            message = json.loads(content)["error"]
        except (ValueError, KeyError, TypeError):
            return f"{status} without a message: {content[:200]!r}"
        if status >= 500:
            return f"{status}: {message}"
        fits = whole is not None and [array.ndim for array in whole.inputs if array is not None] == [
            array.ndim for array in served.call.inputs if array is not None] and [
            array.dtype for array in whole.inputs if array is not None] == [
            array.dtype for array in served.call.inputs if array is not None]
        if expected is not None and fits and not kind:
            return f"{status} where Python has a result: {message}"
        return None
    if expected is None:
        return "a result where Python has none"
    length = headers.get(HEADER_LENGTH)
    header = json.loads(content[: int(length)] if length else content)
    data, at = content[int(length):] if length else b"", 0
    for output in header["outputs"]:
        y = expected.get(output["name"])
        if y is None or output["shape"] != list(y.shape) or output["datatype"] != DATATYPES[y.dtype]:
            return f"{output['name']} is {output['datatype']}{output['shape']}, expected {y!r}"[:400]
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            same = np.array_equal(np.array(output["data"]).ravel().astype(y.dtype), y.ravel())
        else:
            same = data[at:at + size] == y.tobytes()
            at += size
        if not same:
            return f"{output['name']} has other values than the Python call"
    return None


def main(arguments=None):
    """Start the server, send the requests, and see that it is well afterwards."""
    options = parser_of(__doc__).parse_args(arguments)
    seed = options.only // 10**7 if options.only is not None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        served = make_models(Path(folder), seed)
        files = [str(Path(folder, f"{one.name}.onnx")) for one in served]
        with load.started(*files) as (process, url):
            client = Client(url)
            status = repeat(lambda seed: attempt(seed, client, served), options, MOST_BYTES)
            client.close()
            if load.measured(url)["inference_requests_under_way"] or process.poll() is not None:
                print("FINDING the server still has requests, or has ended")
                status = True
    return status


if __name__ == "__main__":
    sys.exit(main())
