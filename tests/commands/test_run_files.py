"""The command ``onnxpool run``: inputs and outputs in files, and each way to fail."""

import json

import numpy as np
import onnx
import pytest
from model_files import BFLOAT16, BYTE, FLOAT, HALVES, RAMP, SHAPE, node, save, value
from onnx import TensorProto, helper, numpy_helper

from onnxpool import __main__ as command
from onnxpool.commands import OK


def test_outputs_are_stored_under_any_name(tmp_path, ramp, run):
    """Outputs keep their names in the file, including those that numpy.savez uses for its own parameters."""
    names = ["file", "a/b", "arr_0"]
    path = save(tmp_path / "m.onnx", [node("MaxPool", outputs=name, **HALVES) for name in names],
                outputs=[value(name, shape=None) for name in names])

    assert set(run(path, ramp)[0]) == set(names)


def test_inputs_in_other_forms(tmp_path, run):
    """bfloat16 arrays, whose .npy files keep only the element size, and foreign byte order are accepted."""
    import ml_dtypes
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool", "x", "y"), node("GlobalMaxPool", "w", "z")],
                [value("x", BFLOAT16), value("w")], [value("y", BFLOAT16, None), value("z", shape=None)])
    np.save(tmp_path / "x.npy", RAMP.astype(ml_dtypes.bfloat16))
    np.save(tmp_path / "w.npy", RAMP.astype(">f4"))

    outputs, report = run(path, f"--input=x={tmp_path / 'x.npy'}", f"--input=w={tmp_path / 'w.npy'}")

    assert outputs["y"].view(ml_dtypes.bfloat16).item() == outputs["z"].item() == 16
    assert [entry["dtype"] for entry in report["nodes"]] == ["bfloat16", "float32"]


def test_an_initializer_is_a_default(tmp_path, ramp, run):
    """An input that has an initializer may be passed, but need not be."""
    default = helper.make_tensor("x", FLOAT, SHAPE, [2.0] * 16)
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")], initializer=[default])

    assert run(path)[0]["y"].item() == 2
    assert run(path, ramp)[0]["y"].item() == 16


@pytest.mark.parametrize(("array", "line"), [
    (RAMP.astype(np.float64), "input 'x' is float64 (1,1,4,4), but the model takes float32 (1,1,4,4); "
                              "pass --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."),
    (RAMP[:, :, :3], "input 'x' is float32 (1,1,3,4), but the model takes float32 (1,1,4,4); "
                     "pass --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."),
    (RAMP[0], "input 'x' is float32 (1,4,4), but the model takes float32 (1,1,4,4); "
              "pass --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."),
])
def test_an_input_that_does_not_fit(tmp_path, refused, array, line):
    """An array of another dtype, size or rank is refused, and the error names the expected and the given type."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")])
    np.save(tmp_path / "x.npy", array)

    assert refused(path, "--input", f"x={tmp_path / 'x.npy'}") == line


def test_inputs_that_are_not_given_are_made(tmp_path, run, capsys):
    """Missing inputs are made: floats are normal, bytes fill their range, other integers are 0, open batches 1. Seeds
    reproduce them."""
    kinds = {"x": (FLOAT, ["N", 2, 40, 40]), "b": (BYTE, [1, 1, 40, 40]), "i": (TensorProto.INT64, [7]),
             "c": (TensorProto.BOOL, [99]), "h": (BFLOAT16, [3, 4])}
    path = save(tmp_path / "m.onnx", [node("Identity", name, f"y_{name}") for name in kinds],
                [value(name, *kind) for name, kind in kinds.items()],
                [value(f"y_{name}", kind, None) for name, (kind, _) in kinds.items()])

    outputs, report = run(path)
    assert report["made_inputs"]["x"] == {"dtype": "float32", "shape": [1, 2, 40, 40]}
    assert list(report["made_inputs"]) == list(kinds)
    assert abs(outputs["y_x"].mean()) < 0.2
    assert 0.8 < outputs["y_x"].std() < 1.2
    assert (outputs["y_b"].min(), outputs["y_b"].max()) == (0, 255)
    assert outputs["y_i"].tolist() == [0] * 7
    assert set(outputs["y_c"].tolist()) == {False, True}
    assert (run(path)[0]["y_x"] == outputs["y_x"]).all()
    assert (run(path, "--seed=1")[0]["y_x"] != outputs["y_x"]).any()
    assert command.main(["run", path, "--seed", "7"]) == OK
    assert "input 'x' was generated: float32 (1,2,40,40), seed 7\n" in capsys.readouterr().out


def test_a_shape_for_an_input_that_is_made(tmp_path, ramp, run, refused):
    """--shape sets open sizes. The option is refused for a passed or unknown input, and for a shape that the input
    cannot have."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")], [value("x", shape=["N", 1, "H", "W"])])

    assert run(path, "--shape=x=2,1,3,5")[1]["nodes"][0]["input_shape"] == [2, 1, 3, 5]
    advice = "; pass --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."
    assert refused(path, ramp, "--shape=x=1,1,4,4") == (
        f"a shape is given for 'x', which is not an input to generate{advice}")
    assert refused(path, "--shape=z=1,1,4,4") == f"a shape is given for 'z', which is not an input to generate{advice}"
    assert refused(path, "--shape=x=1,2,4,4") == (
        f"input 'x' is float32 (1,2,4,4), but the model takes float32 (N,1,H,W){advice}")
    assert refused(path, "--shape=x=1,b") == "--shape x=1,b: pass --shape NAME=1,3,224,224"


@pytest.mark.parametrize(("made", "line"), [
    (value("x", shape=["N", 3, None, -1]), "missing input 'x' float32 (N,3,?,?), whose sizes the model does not fix"),
    (value("x", shape=None), "missing input 'x' float32 of any shape, whose sizes the model does not fix"),
    (value("x", TensorProto.STRING, [1]), "missing input 'x' string (1), which cannot be generated"),
    (value("x", shape=[2**20, 2**9]), "missing input 'x' float32 (1048576,512): 2 GiB is too much to generate"),
    (helper.make_tensor_sequence_value_info("x", FLOAT, None),
     "missing input 'x' (not a tensor) of any shape, which cannot be generated"),
])
def test_an_input_that_cannot_be_made(tmp_path, refused, made, line):
    """A missing input that is open, too large or has no numbers is named with its dtype, shape and the options."""
    path = save(tmp_path / "m.onnx", [node("Identity")], [made])
    assert refused(path) == f"{line}; pass --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."


def test_the_bits_of_bfloat16_outputs(tmp_path, capsys):
    """The command says how to read a dtype that a .npz file cannot represent."""
    import ml_dtypes
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)], [value("x", BFLOAT16)], [value("y", BFLOAT16, None)])
    file = tmp_path / "y.npz"

    assert command.main(["run", path, f"--output={file}"]) == OK
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == (f"output 'y' is bfloat16, and {file} stores only its bits: read it with .view(ml_dtypes.bfloat16)")
    with np.load(file) as arrays:
        assert arrays["y"].view(ml_dtypes.bfloat16).shape == (1, 1, 2, 2)


def test_missing_weights(tmp_path, refused, capsys):
    """If weights are in a missing file, the error names that file, not the model."""
    tensor = numpy_helper.from_array(np.ones((1, 1, 2, 2), np.float32), "w")
    path = save(tmp_path / "m.onnx", [node("Conv", "x w")], initializer=[tensor])
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert command.main(["run", path]) == OK
    capsys.readouterr()
    (tmp_path / "weights.bin").unlink()

    assert refused(path).startswith(f"cannot read the weights of {path}: ")


def test_files_that_are_not_there(tmp_path, refused, ramp):
    """A missing model, input file or output folder is named."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")])
    gone = tmp_path / "gone"

    assert refused(str(gone)) == f"cannot read the model {gone}: No such file or directory"
    assert refused(path, f"--input=x={gone}") == f"cannot read {gone}: No such file or directory"
    assert refused(path, ramp, f"--output={gone}/y.npz") == f"cannot write {gone}/y.npz: no such directory"
    assert refused(path, ramp, f"--output={tmp_path}") == f"cannot write {tmp_path}: Is a directory"


def test_a_broken_model(tmp_path, refused):
    """A file without a model, or with only the beginning of a model, is refused."""
    path = tmp_path / "m.onnx"
    save(path, [node("GlobalMaxPool")])
    whole = path.read_bytes()
    halves = [whole[:size] for size in range(1, len(whole) // 2, 7)]
    for content in (b"", b"no model at all", bytes(range(256)), *halves):
        path.write_bytes(content)

        assert refused(str(path)).startswith(f"{path} is not an ONNX model: "), content


@pytest.mark.parametrize(("nodes", "opset", "reason"), [
    ([node("AveragePool", name="pool", kernel_shape=[2, 2], count_include_pad=1)], 1, "{path}: "
     "node 'pool': AveragePool-1: count_include_pad=1 given, but count_include_pad was introduced in AveragePool-7; "),
    ([node("MaxPool", kernel_shape=[2, 2], ceil_mode=2)], 22, "{path}: node 'y': MaxPool-22: ceil_mode"),
    ([node("LpPool", name="pool", kernel_shape=[2, 2], p=2.0)], 22, "{path}: node 'pool': LpPool-22: p"),
    ([node("MaxPool")], 22, "{path}: node 'y': MaxPool-22: kernel_shape is required"),
    ([node("Unheard")], 22, "{path}: "),
    ([node("Neg", "nowhere")], 22, "{path}: node 'y' (Neg) reads 'nowhere', but nothing before writes it"),
    ([node("Neg", outputs="z")], 22, "{path}: output 'y' is not written by any node"),
    ([node("Neg", domain="unheard")], 22, "{path}: Domain 'unheard' (node type: 'Neg') is not specified."),
    ([node("MaxPool", name="pool", kernel_shape=[9, 9])], 22, "node 'pool': MaxPool-22: kernel_shape[0]=9"),
    ([node("Cast", "x", "a", to=BYTE), node("AveragePool", "a", name="pool", **HALVES)], 22,
     "node 'pool': AveragePool-22: dtype uint8 is not accepted"),
    ([node("Cast", "x", "a", to=TensorProto.BOOL), node("Neg", "a")], 22, "node 'y' (Neg): The numpy boolean negative"),
])
def test_a_node_that_cannot_run(tmp_path, refused, ramp, nodes, opset, reason):
    """Errors in the model are reported with its path before anything runs, and later failures with the node."""
    path = save(tmp_path / "m.onnx", nodes, opset=opset, outputs=[value("y", 0, None)])

    assert refused(path, ramp).startswith(reason.format(path=path))


@pytest.mark.parametrize(("arguments", "line"), [
    (["{model}", "--input=x"], "--input x: pass --input NAME=FILE.npy"),
    (["{model}", "--input==f.npy"], "--input =f.npy: pass --input NAME=FILE.npy"),
    (["{model}", "--input=x={ramp}", "--input=x={ramp}"], "--input x={ramp}: 'x' is given twice"),
    (["{model}", "--input=x={ramp}", "--input=z={ramp}"], "the model has no input 'z'; it has 'x'"),
    (["{model}", "--input=x={model}"], "{model} is not a .npy file: "),
    (["{model}", "--input=x={pickled}"], "{pickled} is not a .npy file: Object arrays cannot be loaded"),
    (["--input=x={ramp}"], "--input needs a MODEL: the default model brings its own input"),
    (["--shape=x=1"], "--shape needs a MODEL: the default model brings its own input"),
    (["{model}", "--rtol=1"], "--rtol and --atol need --check, as nothing else is compared"),
])
def test_options_that_make_no_sense(tmp_path, refused, ramp, arguments, line):
    """An --input that is not NAME=FILE, is repeated, names no input or holds no array of numbers is refused."""
    names = {name: tmp_path / f"{name}.npy" for name in ("ramp", "pickled", "model")}
    np.save(names["pickled"], np.array([{}], dtype=object), allow_pickle=True)
    save(names["model"], [node("GlobalMaxPool")])

    assert refused(*(argument.format(**names) for argument in arguments)).startswith(line.format(**names))


def test_an_output_that_is_no_array(tmp_path, refused, ramp, capsys):
    """A sequence among the outputs is shown, and refused only if outputs are to be stored."""
    made = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    path = save(tmp_path / "m.onnx", [node("MaxPool", "x", "a", **HALVES), node("SequenceConstruct", "a a")],
                outputs=[made])

    assert command.main(["run", path, ramp, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == {"y": {"length": 2}}
    file = tmp_path / "y.npz"
    message = f"cannot write output 'y' to {file}: it is not an array of numbers"
    assert refused(path, ramp, f"--output={file}") == message
