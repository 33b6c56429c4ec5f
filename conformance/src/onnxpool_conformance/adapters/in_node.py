"""npm packages with onnxruntime's interface, in a Node process that answers case by case."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np


class Node:
    """A process that runs models with a package that npm has installed in the current directory."""

    def __init__(self, package: str) -> None:
        program = Path(__file__).with_suffix(".mjs")
        self.process = subprocess.Popen(["node", str(program), package], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = self.receive()["version"]

    def receive(self) -> Any:
        """What the process answers."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith(b"{"):  # other lines are output of the package
                answer = json.loads(line)
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer
        raise SystemExit(f"Node has ended with status {self.process.wait()}")

    def ask(self, model: Any, inputs: list[Any]) -> list[Any]:
        """The outputs of a model."""
        assert self.process.stdin is not None
        arrays = [{"dtype": x.dtype.name, "shape": x.shape, "data": text(x.tobytes())} for x in inputs]
        question = {"model": text(model.SerializeToString()), "inputs": arrays}
        self.process.stdin.write(f"{json.dumps(question)}\n".encode())
        self.process.stdin.flush()
        return [np.frombuffer(base64.b64decode(y["data"]), y["dtype"]).reshape(y["shape"])
                for y in self.receive()["outputs"]]


def text(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode()


class Prepared:
    """A model, and the process that runs it."""

    def __init__(self, node: Node, model: Any) -> None:
        self.node, self.model = node, model

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        return self.node.ask(self.model, inputs)
