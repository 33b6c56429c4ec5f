"""docs/howto/serving.md and triton.md show the files of examples/serving, and name the versions that are tested."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVING = ROOT / "examples" / "serving"
PAGE = "\n".join((ROOT / "docs" / "howto" / name).read_text(encoding="utf-8") for name in ("serving.md", "triton.md"))
FILES = sorted(path for path in SERVING.rglob("*") if path.suffix in (".py", ".pbtxt"))


def test_the_pages_show_each_file() -> None:
    """The code blocks are the files, letter by letter, and each Python file compiles."""
    blocks = [block for language, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
              if not block.startswith(("$ ", "pip "))]
    texts = [path.read_text(encoding="utf-8") for path in FILES]
    assert sorted(blocks) == sorted(texts)
    for path, text in zip(FILES, texts, strict=True):
        if path.suffix == ".py":
            compile(text, str(path), "exec")


def test_the_pages_name_the_versions_that_are_installed_for_the_tests() -> None:
    """The table of versions has the pins of the groups in pyproject.toml."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    pins = dict(entry.split("==") for name in ("serving", "triton") for entry in groups[name] if "==" in entry)
    listed = dict(re.findall(r"^\| ([\w\[\]-]+) \| ([\d.]+)(?:,.*)? \|$", PAGE, re.MULTILINE))
    assert len(pins) == 4
    assert listed == pins


def test_the_configuration_is_one_of_triton() -> None:
    """The configuration parses as Triton's own message, and names the model's folder, tensors and files."""
    text_format = pytest.importorskip("google.protobuf.text_format")
    found = importlib.util.find_spec("tritonclient")
    if found is None or found.origin is None:
        pytest.skip("needs tritonclient")
    # The module's package needs grpc, but the module itself does not.
    place = Path(found.origin).parent / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("model_config_pb2", place)
    assert spec is not None
    assert spec.loader is not None
    messages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(messages)

    folder = SERVING / "triton" / "pool"
    config = text_format.Parse((folder / "config.pbtxt").read_text(encoding="utf-8"), messages.ModelConfig())
    assert (config.name, config.backend) == (folder.name, "python")
    tensors = [(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in (*config.input, *config.output)]
    assert tensors == [("x", messages.TYPE_FP32, [-1] * 4), ("y", messages.TYPE_FP32, [-1] * 4)]
    (group,) = config.instance_group
    assert (group.kind, group.count) == (messages.ModelInstanceGroup.KIND_CPU, 2)
    assert (folder / "1" / "model.py").is_file()
