"""Arguments as people type them: spellings, orders and mistakes, and shell completion."""

import inspect
import itertools
import math
import os
import random
import re
import shlex
import subprocess
import sys

import command_line
import numpy as np
import onnx
import pytest
from calls import FUNCTIONS
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser

import onnxpool
from onnxpool import schemas
from onnxpool.attributes import Choice, Flag, Float, Ints
from onnxpool.base import registry
from onnxpool.commands import CANNOT, OK, arguments
from onnxpool.dtypes import DTYPES

pytestmark = pytest.mark.smoke

AVERAGE = (onnxpool.AveragePool(kernel_shape=(3, 3), strides=(2, 2)), (1, 3, 7, 7), "float32")
MAX = (onnxpool.MaxPool(kernel_shape=3), (1, 3, 7, 7), "float32")
SQUARE = (onnxpool.MaxPool(kernel_shape=(3, 3)), (1, 3, 7, 7), "float32")
IMAGE = (onnxpool.MaxPool(kernel_shape=2, axes=(0, 1)), (480, 640, 3), "float32")
LAST = (onnxpool.MaxPool(kernel_shape=2, axes=(-2, -1)), (5, 6, 7), "float32")
SAME = (onnxpool.MaxPool(kernel_shape=3, auto_pad="SAME_UPPER", ceil_mode=1, opset=12), (1, 3, 7, 7), "float64")
GLOBAL = (onnxpool.GlobalMaxPool(axes=-1, keepdims=False), (2, 3, 4), "float32")
QUANTISED = (onnxpool.QLinearAveragePool(kernel_shape=2, channels_last=1), (1, 4, 4, 2), "uint8")

# Words after `onnxpool explain`, and the plan that they mean.
TYPED = [
    ("AveragePool --shape 1,3,7,7 kernel_shape=3,3 strides=2,2", AVERAGE),
    ("AveragePool kernel_shape=3,3 strides=2,2 --shape 1,3,7,7", AVERAGE),
    ("AveragePool kernel_shape=3,3 --shape=1,3,7,7 strides=2,2", AVERAGE),
    ("--shape 1,3,7,7 AveragePool --strides 2,2 --kernel-shape 3,3", AVERAGE),
    ("kernel_shape=3,3 AveragePool --strides=2,2 --shape 1,3,7,7", AVERAGE),
    ("strides=2,2 --shape 1,3,7,7 kernel_shape=3,3 AveragePool", AVERAGE),
    ("averagepool '--kernel_shape=(3, 3)' '--strides=[2, 2]' --shape '[1, 3, 7, 7]'", AVERAGE),
    ("average_pool kernel_shape=[3, 3] strides=[2,2] --shape 1 3 7 7", AVERAGE),
    ("AVERAGEPOOL kernel_shape=3x3 strides=2X2 --shape 1x3x7x7", AVERAGE),
    ("Average-Pool kernel_shape='3, 3' strides='2 2' --shape X=1,3,7,7", AVERAGE),
    ("ai.onnx:AveragePool --kernel 3 3 --stride 2 2 --SHAPE 1,3,7,7", AVERAGE),
    ("AveragePool Kernel_Shape=3,3 STRIDES=2,2 --shape=1,3,7,7 --dtype Float32", AVERAGE),
    ("AveragePool kernel-shape=3,3 strides=2, 2 shape=1,3,7,7 dtype=float32", AVERAGE),
    ("AveragePool 'kernel_shape=(3,3)' 'strides=(2,2,)' --shape '(1,3,7,7)' --dtype f4", AVERAGE),
    ("maxpool kernel_shape=3 --shape 1,3,7,7", MAX),
    ("max_pool --kernel-shape 3 --shape 1,3,7,7 strides=none", MAX),
    ("MAXPOOL --shape 1,3,7,7 --kernel_shape 3 --channels-last false", MAX),
    ("MaxPool kernel_shape= 3 --shape 1,3,7,7 --ceil-mode 0", MAX),
    ("Max_Pool kernel_shape=[3,3] --shape 1,3,7,7", SQUARE),
    ("MaxPool --shape 1 3 7 7 --kernel_shape 3 3", SQUARE),
    ("MaxPool kernel_shape=2 axes=0,1 --shape 480,640,3", IMAGE),
    ("--axes 0 1 MaxPool kernel_shape=2 --shape 480,640,3", IMAGE),
    ("MaxPool AXES=[0,1] kernel_shape=2 --shape 480x640x3", IMAGE),
    ("MaxPool kernel_shape=2 axes=-2,-1 --shape 5,6,7", LAST),
    ("MaxPool kernel_shape=2 --axes -2,-1 --shape 5,6,7", LAST),
    ("--axes -2 -1 MaxPool kernel_shape=2 --shape 5,6,7", LAST),
    ("--axes=-2,-1 --shape 5,6,7 MaxPool kernel_shape=2", LAST),
    ("maxpool 'axes=(-2,-1)' kernel_shape=2 --shape 5,6,7", LAST),
    ("MaxPool kernel_shape=3 auto_pad=SAME_UPPER ceil_mode=1 opset=12 --dtype float64 --shape 1,3,7,7", SAME),
    ("--ceil-mode MaxPool --auto-pad same_upper --opset 12 kernel_shape=3 --shape 1,3,7,7 --dtype FLOAT64", SAME),
    ("--opset=12 ceil_mode=True MaxPool --auto_pad=Same_Upper kernel_shape=3 --shape 1,3,7,7 --dtype double", SAME),
    ("GlobalMaxPool axes=-1 keepdims=0 --shape 2,3,4", GLOBAL),
    ("global_max_pool --keepdims False --axes -1 --shape 2,3,4", GLOBAL),
    ("com.microsoft:QLinearAveragePool kernel_shape=2 channels_last=1 --shape 1,4,4,2 --dtype uint8", QUANTISED),
    ("--channels-last qlinear_average_pool kernel_shape=2 --shape 1,4,4,2 --dtype uint8", QUANTISED),
]


def ended(words):
    """The exit status of the command line, its output, and the last line of standard error."""
    status, out, err = command_line.ended(words)
    return status, out.removesuffix("\n"), err.rstrip("\n").rpartition("\n")[2]


@pytest.mark.parametrize(("typed", "meant"), TYPED, ids=[typed for typed, _ in TYPED])
def test_what_is_typed(typed, meant):
    """Each spelling and order shows the plan of the intended operator."""
    operator, shape, dtype = meant
    assert ended(["explain", *shlex.split(typed)]) == (OK, operator.plan(shape, dtype).explain(), "")


# Words after `onnxpool`, and text that the message contains.
MISTAKES = [
    ("explain MaxPool kernel_size=3 --shape 1,3,7,7", "MaxPool: there is no argument kernel_size; pass kernel_shape"),
    ("explain MaxPool kernel_shape=3 stride=2 --shape 1,3,7,7", "MaxPool: there is no argument stride; pass strides"),
    ("explain MaxPool kernel_shap=3 --shape 1,3,7,7", "MaxPool: there is no argument kernel_shap; pass kernel_shape"),
    ("explain MaxPool kernelshape=3 --shape 1,3,7,7", "MaxPool: there is no argument kernelshape; pass kernel_shape"),
    ("explain MaxPool kernel_shape=3 dtpye=int8", "MaxPool: there is no argument dtpye; pass dtype"),
    ("explain MaxPool Kernel-Size=3 --shape 1,3,7,7", "MaxPool: there is no argument kernel_size; pass kernel_shape"),
    ("explain maxpool kernel_shape=3 axis=1 --shape 1,3,7,7", "MaxPool: there is no argument axis; pass axes"),
    ("explain MaxPool kernel_shape=3 p=2 --shape 1,3,7,7", "MaxPool: there is no argument p; it takes kernel_shape, "),
    ("explain MaxPool kernel_shape=3 junk=2 --shape 1,3,7,7", "MaxPool: there is no argument junk; it takes "),
    ("explain MaxPool kernel_shape=3 shpae=1,3,7,7", "MaxPool: there is no argument shpae; pass shape"),
    ("explain MaxPool --kernel-size 3 --shape 1,3,7,7", "no option --kernel-size; did you mean --kernel-shape?"),
    ("explain MaxPool --kernelshape=3 --shape 1,3,7,7", "no option --kernelshape; did you mean --kernel-shape?"),
    ("explain MaxPool --padding 1 kernel_shape=3", "there is no option --padding; did you mean --pads?"),
    ("explain MaxPool kernel_shape=3 --shpae 1,3,7,7", "there is no option --shpae; did you mean --shape?"),
    ("explain MaxPool kernel_shape=3 -shape 1,3,7,7", "there is no option -shape; did you mean --shape?"),
    ("explain MaxPool kernel_shape=3 --bogus", "there is no option --bogus; onnxpool explain --help lists the options"),
    ("explain MaxPool kernel_shape=3 --s 1,3,7,7", "--s may be any of --shape, --svg, --sampling-ratio, "),
    ("explain MaxPool kernel_shape=3 --shape", "--shape has no value; pass --shape [NAME=]SIZE,SIZE,..."),
    ("explain --dtype --shape 1,3,7,7 MaxPool kernel_shape=3", "--dtype has no value; pass --dtype DTYPE"),
    ("explain --shape 1,3,7,7", "the following arguments are required: WHAT"),
    ("explain MaxPool kernel_shape=3 kernel_shape=4 --shape 1,3,7,7", "MaxPool: kernel_shape is given twice"),
    ("explain MaxPool kernel_shape=3 --kernel-shape 4 --shape 1,3,7,7", "MaxPool: kernel_shape is given twice"),
    ("explain MaxPool kernel_shape=3 --shape Y=1,3,7,7", "--shape Y=1,3,7,7: pass --shape 1,64,112,112"),
    ("explain MaxPool 1,3,7,7 kernel_shape=3", "1,3,7,7: pass attributes as NAME=VALUE, such as kernel_shape=3,3, and"),
    ("explain MaxPool AveragePool --shape 1,3,7,7", "AveragePool: pass attributes as NAME=VALUE"),
    ("explain MaxPool kernel_shape=abc --shape 1,3,7,7",
     "MaxPool-22: kernel_shape must be an integer or a sequence of integers, got 'abc' of type str"),
    ("explain MaxPool kernel_shape=3,x --shape 1,3,7,7",
     "MaxPool-22: kernel_shape[1] must be an integer, got 'x' of type str"),
    ("explain MaxPool kernel_shape=3,1.5 --shape 1,3,7,7",
     "MaxPool-22: kernel_shape[1] must be an integer, got 1.5 of type float"),
    ("explain MaxPool kernel_shape= --shape 1,3,7,7", "MaxPool-22: kernel_shape must be an integer or a sequence of "),
    ("explain MaxPool kernel_shape=[] --shape 1,3,7,7", "MaxPool-22: kernel_shape is empty"),
    ("explain MaxPool kernel_shape=-1 --shape 1,3,7,7", "MaxPool-22: kernel_shape must be in [1, 2^63 - 1], got -1"),
    ("explain MaxPool --kernel-shape -1 --shape 1,3,7,7", "MaxPool-22: kernel_shape must be in [1, 2^63 - 1], got -1"),
    ("explain MaxPool kernel_shape=3 ceil_mode=yes --shape 1,3,7,7", "MaxPool-22: ceil_mode must be 0 or 1, got 'yes'"),
    ("explain MaxPool kernel_shape=3 auto_pad=SAME --shape 1,3,7,7", "MaxPool-22: auto_pad must be one of NOTSET, "),
    ("explain MaxPool kernel_shape=3 opset=x --shape 1,3,7,7", "MaxPool: opset must be an integer, got 'x' of type "),
    ("explain MaxPool kernel_shape=3 --opset 0 --shape 1,3,7,7", "MaxPool: opset must be in [1, 2^63 - 1], got 0"),
    ("explain MaxPool kernel_shape=3 --opset 99 --shape 1,3,7,7", "MaxPool: opset=99 is not known"),
    ("explain LpPool kernel_shape=3 p=2.5 --shape 1,3,7,7", "LpPool-22: p must be an integer, got 2.5 of type float"),
    ("explain MaxPool --shape 1,3,7,7", "MaxPool-22: kernel_shape is required"),
    ("explain MaxPol kernel_shape=3 --shape 1,3,7,7", "MaxPol is neither a pooling operator nor a file; did you mean "),
    ("explain avgpool kernel_shape=3 --shape 1,3,7,7", "avgpool is neither a pooling operator nor a file; did you "),
    ("explain max_pool2d kernel_shape=3 --shape 1,3,7,7", "max_pool2d is neither a pooling operator nor a file; did "),
    ("explain Conv --shape 1,3,7,7", "Conv is neither a pooling operator nor a file; pass an ONNX file, or one of Av"),
    ("explain com.microsoft:MaxPool --shape 1,3,7,7", "com.microsoft:MaxPool is neither a pooling operator nor a "),
    ("explain maxpool.onnx", "cannot read the model maxpool.onnx: No such file or directory"),
    ("explain models/maxpool", "cannot read the model models/maxpool: No such file or directory"),
    ("explain m.onnx kernel_shape=3", "m.onnx is a model, whose nodes have attributes already; pass only --shape"),
    ("explain m.onnx --opset 3", "m.onnx is a model, whose nodes have attributes already"),
    ("explain m.onnx x=1,3,7,7", "m.onnx is a model, whose nodes have attributes already; pass only --shape"),
    ("check none.onnx", "cannot read the model none.onnx: No such file or directory"),
    ("check MaxPool", "MaxPool is an operator; pass an ONNX file, or see onnxpool explain MaxPool"),
    ("run max_pool", "max_pool is an operator; pass an ONNX file, or see onnxpool explain MaxPool"),
    ("bench averagepool", "averagepool is an operator; pass an ONNX file, or see onnxpool explain AveragePool"),
    ("check m.onnx --josn", "onnxpool check: error: there is no option --josn; did you mean --json?"),
    ("run m.onnx --inptu x=x.npy", "onnxpool run: error: there is no option --inptu; did you mean --input?"),
    ("bench m.onnx --thraeds 2", "onnxpool bench: error: there is no option --thraeds; did you mean --threads?"),
    ("config --jsno", "onnxpool config: error: there is no option --jsno; did you mean --json?"),
    ("supported --jsno", "onnxpool supported: error: there is no option --jsno; did you mean --json?"),
    ("supported maxpol", "maxpol is not a pooling operator; did you mean MaxPool?"),
    ("run m.onnx x=1,3,7,7", "unexpected argument x=1,3,7,7; pass --shape x=1,3,7,7 or --input x=FILE.npy"),
    ("check m.onnx n.onnx", "unexpected argument n.onnx"),
    ("config now", "unexpected argument now"),
    ("run m.onnx --seed x", "argument --seed: pass an integer of at least 0, not 'x'"),
    ("bench m.onnx --threads 0", "argument --threads: pass an integer of at least 1, not '0'"),
    ("run m.onnx --rtol -1 --check", "argument --rtol: pass a number of at least 0, such as 1e-3, not '-1'"),
    ("explian MaxPool", "there is no command explian; did you mean onnxpool explain?"),
    ("chckk m.onnx", "there is no command chckk; did you mean onnxpool check?"),
    ("help", "there is no command help; did you mean onnxpool --help?"),
    ("version", "there is no command version; did you mean onnxpool --version?"),
    ("MaxPool kernel_shape=3", "there is no command MaxPool; did you mean onnxpool explain MaxPool?"),
    ("m.onnx", "there is no command m.onnx; pass one of run, check, fix, explain, bench, config, supported"),
    ("--verison", "there is no option --verison; did you mean --version?"),
    ("config --version", "onnxpool config: error: there is no option --version; onnxpool config --help lists the "),
    ("--josn", "there is no option --josn; did you mean --json?"),
    ("--json", "pass a command: one of run, check, fix, explain, bench, config, supported"),
    ("", "pass a command: one of run, check, fix, explain, bench, config, supported"),
]


@pytest.mark.parametrize(("typed", "message"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_mistakes(typed, message, model, monkeypatch):
    """Each mistake gets an error that suggests a correction, in the library's words if the library reports the same
    mistake."""
    monkeypatch.chdir(model.parent)
    status, out, err = ended(shlex.split(typed))
    assert (status, out) == (CANNOT, "")
    assert err.startswith("onnxpool")
    assert message in err


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that leaves a size open."""
    path = tmp_path_factory.mktemp("models") / "m.onnx"
    onnx.save(parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 2, H] x) => (float[a, b, c] y) {
            y = AveragePool <kernel_shape = [3], strides = [2], ceil_mode = 1> (x)
        }"""), path)
    return path


def test_a_file_before_an_operator_in_other_spelling(model, monkeypatch):
    """`maxpool` is the file of that name, and `MaxPool` is the operator."""
    monkeypatch.chdir(model.parent)
    (model.parent / "maxpool").write_bytes(model.read_bytes())
    (model.parent / "MaxPool").write_bytes(model.read_bytes())
    (model.parent / "axes=0.onnx").write_bytes(model.read_bytes())
    expected = ended(["explain", str(model)])
    assert expected[0] == OK
    assert ended(["explain", "maxpool"]) == ended(["explain", "axes=0.onnx"]) == expected
    assert ended(["check", "maxpool"]) == ended(["check", str(model)])
    operator, shape, dtype = MAX
    plan = operator.plan(shape, dtype)
    assert ended(["explain", "MaxPool", "kernel_shape=3", "--shape", "1,3,7,7"]) == (OK, plan.explain(), "")


def test_a_file_whose_name_begins_with_a_dash(model, monkeypatch):
    """Every argument after -- is an operand, even if it begins with a dash."""
    monkeypatch.chdir(model.parent)
    (model.parent / "-m.onnx").write_bytes(model.read_bytes())
    assert ended(["explain", "--json", "--", "-m.onnx"])[:1] == (OK,)


# Commands, as groups of words that stay together.
GROUPS = [
    ["explain", "AveragePool", "--shape 1 3 7 7", "kernel_shape=3,3", "--strides 2", "--ceil-mode", "--json"],
    ["explain", "maxpool", "--axes -2 -1", "kernel_shape=2", "--dtype float64", "shape=5,6,7"],
    ["explain", "MODEL", "--shape x=1,2,9", "--json"],
    ["check", "MODEL", "--shape x=1,2,9", "--runtime openvino", "--runtime reference", "--values", "--json"],
    ["fix", "MODEL /dev/null", "--runtime openvino", "--runtime reference", "--json"],
    ["supported", "MaxPool", "lp_pool", "--json"],
    ["config", "--json"],
]


@pytest.mark.parametrize("most", [60, pytest.param(math.inf, marks=pytest.mark.slow)])
@pytest.mark.parametrize("groups", GROUPS, ids=[" ".join(groups) for groups in GROUPS])
def test_any_order_prints_the_same(groups, most, model):
    """Arguments may come in any order, options also before the command."""
    first, *others = groups
    orders = [[first, *order] for order in itertools.permutations(others)]
    orders = random.Random(0).sample(orders, min(len(orders), most))
    orders += [[option, first, *(other for other in others if other is not option)] for option in others
               if option.startswith("--")]
    printed = {ended(" ".join(order).replace("MODEL", str(model)).split()) for order in orders}
    ((status, out, err),) = printed
    assert status in (OK, 1)
    assert out
    assert err == ""


@pytest.mark.parametrize("groups", [
    ["run", "m.onnx", "--input x=x.npy", "--shape z=1,2", "--seed 3", "--check", "--rtol 1e-4"],
    ["bench", "m.onnx", "--input x=x.npy", "--shape z=1,2", "--threads 2", "--json"],
])
def test_any_order_is_read_the_same(groups):
    """Commands that report times understand the same arguments in any order."""
    first, *others = groups
    orders = [random.Random(seed).sample(others, len(others)) for seed in range(150)]
    read = {str(sorted(vars(arguments.read(" ".join([first, *order]).split())).items())) for order in orders}
    assert len(read) == 1


def values(kind):
    """Values for a kind of attribute, some of them wrong."""
    wrong = st.sampled_from(["junk", 0, -1, 2.5, (1, 2, 3)])
    if isinstance(kind, Choice):
        return st.sampled_from(kind.values) | wrong
    if isinstance(kind, Ints):
        small = st.integers(0, 3)
        return small | st.tuples(small, small) | st.tuples(small, small, small, small) | wrong
    if isinstance(kind, Float):
        return st.sampled_from([0.5, 1.0, 2]) | wrong
    return st.integers(0, 3) | (st.booleans() if isinstance(kind, Flag) else wrong)


LISTS = ("{}".format, lambda value: f"[{value}]", lambda value: f"({value})".replace(",", ", "),
         lambda value: value.replace(",", "x"), lambda value: value.replace(",", " "))


@st.composite
def calls(draw):
    """An operator, arguments of its class, and words that mean the same."""
    name = draw(st.sampled_from(sorted(registry)))
    kinds = schemas.ALL_SCHEMAS[name].versions[-1].attributes
    ours = {"opset": st.integers(0, 25), "channels_last": st.booleans(), "return_indices": st.booleans(),
            "keepdims": st.booleans(), "axes": st.sampled_from([(2, 3), (-2, -1), -1, (0, 9)])}
    if name in schemas.OWN_SCHEMAS:
        del ours["opset"], ours["channels_last"]
    taken = draw(st.lists(st.sampled_from([*kinds, *ours]), unique=True))
    if name in schemas.OWN_SCHEMAS and "axes" not in taken:
        taken.append("axes")
    given = {argument: draw(values(kinds[argument]) if argument in kinds else ours[argument]) for argument in taken}
    words = []
    for argument, value in given.items():
        text = str(value)
        if isinstance(value, tuple):
            text = draw(st.sampled_from(LISTS))(",".join(map(str, value)))
        spelt = draw(st.sampled_from([argument, argument.upper(), argument.replace("_", "-")]))
        words.append(draw(st.sampled_from([[f"{spelt}={text}"], [f"--{spelt}={text}"], [f"--{spelt}", text],
                                           [f"--{spelt}", *text.split()]])))
    for word in ([draw(st.sampled_from([name, name.lower(), name.upper()]))], ["--shape", "1,2,5,6"]):
        words.insert(draw(st.integers(0, len(words))), word)
    return name, given, ["explain", *itertools.chain.from_iterable(words)]


@settings(max_examples=300, deadline=None)
@given(calls())
def test_answers_are_those_of_python(call):
    """For all attributes, in any spelling and order, the plan or the message is the same as in Python."""
    name, given, words = call
    try:
        expected = (OK, registry[name](**given).plan((1, 2, 5, 6), "float32").explain(), "")
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
        expected = (CANNOT, "", f"onnxpool: {error}")
    assert ended(words) == expected


def codes():
    """Spellings of dtypes that NumPy has: names, characters, and codes with sizes, units and byte orders."""
    yield from {name for name in np.sctypeDict if isinstance(name, str)}.union(np.typecodes["All"]) - {"a"}  # not new
    for order, code in itertools.product(("", "<", ">", "=", "|"), ("?", "i1", "i2", "u8", "f2", "f4", "f8", "M8[s]",
                                                                    "m8[25us]", "c8", "M8")):
        yield order + code
    for name, unit in itertools.product(("datetime64", "timedelta64", "M8", "m8"), ("Y", "M", "W", "D", "h", "m", "s",
                                                                                  "ms", "us", "ns", "25s")):
        yield f"{name}[{unit}]"


@pytest.mark.parametrize("text", sorted({*codes(), *DTYPES, "Float32", "DOUBLE", "BFloat16", "Bool"}))
def test_dtypes_are_those_of_numpy(text):
    """Each spelling means the dtype that Python calls understand, or is refused with a list of accepted dtypes."""
    operator = onnxpool.MaxPool(kernel_shape=2, axes=0)
    meant = {"Float32": "float32", "DOUBLE": "float64", "BFloat16": "bfloat16", "Bool": "bool"}.get(text, text)
    try:
        expected = (OK, operator.plan((9,), meant).explain(), "")
    except onnxpool.PoolTypeError as error:
        expected = (CANNOT, "", f"onnxpool: {error}")
    assert expected[0] == OK or "float64" in expected[2]  # among those that are accepted
    assert ended(["explain", "MaxPool", "kernel_shape=2", "axes=0", "--shape", "9", "--dtype", text]) == expected


@pytest.mark.parametrize("text", ["foo", "M8[S]", "DATETIME64[s]", "E", "F4", "float33", "f4 f4", "", "none", "[f4]"])
def test_dtypes_that_are_none(text):
    """Text that NumPy does not know as a dtype is refused. Case matters in codes."""
    status, out, err = ended(["explain", "MaxPool", "kernel_shape=2", "axes=0", "--shape", "9", f"--dtype={text}"])
    assert (status, out) == (CANNOT, "")
    assert f"dtype must be a NumPy dtype, got {text!r}; pass one of float16, bfloat16, float32, " in err


def test_a_dtype_without_its_package(monkeypatch):
    """If the package of a dtype is missing, the message says what to install."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for text in ("bfloat16", "BFloat16"):
        err = ended(["explain", "GlobalMaxPool", "--shape", "1,1,4", "--dtype", text])[2]
        assert "arrays of bfloat16 need the package ml_dtypes" in err


@pytest.mark.parametrize("text", ["uint16", "<u2", "f4", "float64", "none", "Float32"])
@pytest.mark.parametrize("words", ["--result-dtype={}", "result_dtype={}", "Result-Dtype={}"])
def test_the_dtype_of_means(words, text):
    """`dtype` is an argument of means, whereas --dtype is the dtype of X."""
    dtype = None if text == "none" else np.dtype(text if text != "Float32" else "f4")
    plan = onnxpool.AveragePool(kernel_shape=2, axes=0, dtype=dtype).plan((9,), "uint16")
    typed = ["explain", "AveragePool", "kernel_shape=2", "axes=0", "--shape", "9", "--dtype", "u2", words.format(text)]
    assert ended(typed) == (OK, plan.explain(), "")


@pytest.mark.parametrize("typed", [
    "explain MaxPool kernel_shape=2 --shape 1,1,4 --dtype f4 --dtype f8",
    "explain MaxPool kernel_shape=2 --shape 1,1,4 dtype=f4 --DTYPE=f4",
    "explain MaxPool kernel_shape=2 --shape 1,1,4 --shape X=1,1,5",
    "explain MaxPool kernel_shape=2 --kernel-shape=2 --shape 1,1,4",
    "explain MaxPool kernel-shape=2 KERNEL_SHAPE=2 --shape 1,1,4",
    "explain MaxPool kernel_shape=2 --shape 1,1,4 --ceil-mode --ceil-mode 0",
    "explain AveragePool kernel_shape=2 axes=0 --shape 4 result_dtype=f4 --result-dtype f8",
    "explain MaxPool kernel_shape=2 --shape 1,1,4 --svg a.svg --svg b.svg",
    "explain MaxPool kernel_shape=2 --shape 1,1,4 --png a.png png=b.png",
    "explain m.onnx --shape x=1,2,5 --shape x=1,2,6", "check m.onnx --shape x=1,2,5 --shape x=1,2,5",
    "check m.onnx --runtime onnxruntime --runtime ONNXRuntime=1.20",
    "run m.onnx --seed 1 --seed=2", "run m.onnx --seed 1 seed=1", "run m.onnx --rtol 1 --check --rtol 1",
    "run m.onnx --atol 1 --check atol=1", "run m.onnx --output a.npz --out b.npz",
    "run m.onnx --input x=a.npy --input x=b.npy", "bench m.onnx --threads 1 --threads 2",
    "bench m.onnx --tune a --tune b", "--print-completion bash --print-completion zsh",
    "--version --print-completion bash",
])
def test_what_is_given_twice_is_not_dropped(typed, model, monkeypatch):
    """Passing an argument twice is an error, whether or not both values are equal, in any spelling."""
    monkeypatch.chdir(model.parent)
    before = os.listdir()
    status, out, err = ended(shlex.split(typed))
    assert (status, out) == (CANNOT, "")
    assert "twice" in err or "once" in err or "are given together; pass one of them" in err
    assert os.listdir() == before


def test_every_argument_of_python_can_be_given():
    """Arguments of functions are options, attributes or operands, except for arguments that do not belong to a plan."""
    _, commands = arguments.parser()
    of_calls = {"x", "indices", "out", "num_threads", *(name.lower() for schema in schemas.ALL_SCHEMAS.values()
                                             for name in schema.inputs)}
    for function in map(onnxpool.__dict__.get, FUNCTIONS.values()):
        for name in inspect.signature(function).parameters.keys() - of_calls:
            assert f"--{'result-dtype' if name == 'dtype' else name.replace('_', '-')}" in commands["explain"].known
    for word in ("num_threads=2", "--num-threads=2", "out=x", "--out=x", "rois=1", "dtype_=f4"):
        status, out, err = ended(["explain", "MaxPool", "kernel_shape=2", "--shape", "1,1,4", word])
        assert (status, out) == (CANNOT, "")
        assert "there is no" in err or "--out may be any of --output-height" in err


def test_options_are_those_of_the_operators():
    """Each argument of each class is an option of explain, and appears in its help."""
    _, commands = arguments.parser()
    text = commands["explain"].format_help()
    for cls in registry.values():
        for argument in cls._optional:
            name = "result_dtype" if argument == "dtype" else argument
            assert f"--{name.replace('_', '-')}" in commands["explain"].known
            assert f"  --{name.replace('_', '-')} " in text


@pytest.mark.parametrize("shell", arguments.SHELLS)
def test_completion(shell):
    """With shtab, the printed shell script has commands and options."""
    pytest.importorskip("shtab")
    status, out, err = ended(["--print-completion", shell])
    assert (status, err) == (OK, "")
    assert "explain" in out
    assert "kernel-shape" in out
    assert "supported" in out
    if shell == "bash":
        asked = 'COMP_WORDS=(onnxpool explain --ker); COMP_CWORD=2; _shtab_onnxpool 2>/dev/null; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", f"{out}\n{asked}"], stdout=subprocess.PIPE, text=True, timeout=60,
                              check=False)
        assert done.stdout.split() == ["--kernel-shape"]


@pytest.mark.parametrize("words", [
    "check {}", "run {}", "bench {}", "explain {}", "run --output {}", "bench --tune {}", "explain MaxPool --svg {}",
    "explain --png {}", "run m.onnx --input {}",
])
def test_completion_of_files(words, tmp_path):
    """File names are completed wherever a command takes one."""
    pytest.importorskip("shtab")
    (tmp_path / "weights.any").touch()
    script = ended(["--print-completion", "bash"])[1]
    line = ["onnxpool", *words.format("weig").split()]
    asked = (f"COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}; _shtab_onnxpool 2>/dev/null; "
             'echo "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], stdout=subprocess.PIPE, text=True, timeout=60,
                          check=False, cwd=tmp_path)
    assert done.stdout.split() == ["weights.any"]


def test_every_option_that_names_a_file_is_completed():
    """The scripts of all shells complete the same options with file names."""
    pytest.importorskip("shtab")
    script = ended(["--print-completion", "bash"])[1]
    for name, files in {"run": ["pos_0", "__input", "__output"], "check": ["pos_0"], "explain": ["pos_0", "__svg",
                        "__png"], "bench": ["pos_0", "__input", "__tune"]}.items():
        for place in files:
            assert re.search(rf"^_shtab_onnxpool_{name}_{place}_COMPGEN=_shtab_compgen_files$", script, re.MULTILINE)


def test_completion_without_shtab(monkeypatch):
    """Without shtab, the message says what to install."""
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, out, err = ended(["--print-completion", "bash"])
    assert (status, out) == (CANNOT, "")
    assert err.startswith("onnxpool: --print-completion needs the shtab package (")
    assert err.endswith("): pip install 'onnxpool[completion]'")
