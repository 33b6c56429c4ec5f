"""onnxruntime sessions whose pooling nodes run on onnxpool: errors, threads, lifetimes, choices."""

import gc
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from calls import NHWC_MAX, QLINEAR_GLOBAL
from onnx import helper
from programs import launch, program
from samples import ATTRIBUTES, data, domain_of
from samples import inputs as sample_inputs
from sessions import RELEASE, answers, feeds, layers, node_model, same, session

import onnxpool
from onnxpool import dtypes
from onnxpool.onnxruntime import nodes, record_nodes, register

# Errors


WAYS = {
    "missing": {"ops": "missing"}, "missing, opset": {"ops": "missing", "opset": 19}, "all": {"ops": "all"},
    "all, opset": {"ops": "all", "opset": 19}, "names": {"ops": ["AveragePool", "GlobalMaxPool"]},
}
KERNEL = {"kernel_shape": [2, 2]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("operator", "attributes", "what"), [
    ("AveragePool", {**KERNEL, "stride": [2, 2]}, "stride"),
    ("AveragePool", {**KERNEL, "ceilmode": 1}, "ceilmode"),
    ("AveragePool", {**KERNEL, "pad": [1, 1, 1, 1]}, "pad"),
    ("AveragePool", {**KERNEL, "storage_order": 1}, "storage_order"),
    ("AveragePool", {**KERNEL, "anything": 1.5}, "anything"),
    ("GlobalMaxPool", KERNEL, "kernel_shape"),
    ("AveragePool", {}, "kernel_shape"),
    ("AveragePool", {"kernel_shape": "x"}, "kernel_shape"),
    ("AveragePool", {"kernel_shape": [2.5, 2.5]}, "kernel_shape"),
    ("AveragePool", {"kernel_shape": helper.make_attribute("kernel_shape", [], attr_type=onnx.AttributeProto.INTS)},
     "kernel_shape"),
    pytest.param("AveragePool", {**KERNEL, "strides": [0, 1]}, "strides", marks=pytest.mark.skipif(
        RELEASE < (1, 29), reason="onnxruntime itself divides by it")),
    ("AveragePool", {**KERNEL, "strides": [1]}, "strides"),
    ("AveragePool", {**KERNEL, "auto_pad": "BOGUS"}, "auto_pad"),
    ("AveragePool", {**KERNEL, "ceil_mode": 7}, "ceil_mode"),
])
@pytest.mark.parametrize("shape", [(1, 1, 4, 4), None], ids=["shape", "no shape"])
def test_a_wrong_attribute_is_refused_when_a_session_is_made(operator, attributes, what, way, shape):
    """The error for a wrong attribute names the node and the attribute, whichever way the library is registered."""
    proto = node_model(operator, [data((1, 1, 4, 4))], {}, opset=19, shape=shape)
    for name, value in attributes.items():
        made = value if isinstance(value, onnx.AttributeProto) else helper.make_attribute(name, value)
        proto.graph.node[0].attribute.append(made)
    with pytest.raises(Exception, match=rf"(?s)pool\b.*\b{what}\b"):
        session(proto, **WAYS[way])


@pytest.mark.parametrize(("operator", "opset", "attributes"), [
    ("AveragePool", 6, {"count_include_pad": 1}), ("AveragePool", 9, {"ceil_mode": 1}),
    ("AveragePool", 11, {"dilations": [2, 2]}), ("MaxPool", 7, {"storage_order": 1}), ("LpPool", 11, {"ceil_mode": 1}),
    ("LpPool", 2, {"p": 2.0}), ("LpPool", 1, {"p": 2}),
])
def test_an_attribute_of_another_version_is_refused(operator, opset, attributes):
    """An attribute that the node's version lacks is refused, even if the opset is not passed."""
    proto = node_model(operator, [data((1, 1, 8, 8))], {**KERNEL, **attributes}, opset=opset)
    for ops in ("missing", "all", [operator]):
        with pytest.raises(Exception, match=f"(Unrecognized|Mismatched) attribute.*{next(iter(attributes))}"):
            session(proto, ops)


def test_a_session_survives_a_wrong_array():
    """An error of a run has the message of the library, and the next run is right."""
    x = data((1, 1, 5, 5))
    made = session(node_model("AveragePool", [x], {"kernel_shape": [4, 4]}, opset=19), "all")
    for wrong in (data((1, 1, 3, 5)), data((1, 1, 5)), data((1, 1, 0, 5)), data((3, 3))):
        with pytest.raises(Exception, match=r"INVALID_ARGUMENT.*'pool'.*AveragePool-19: "):
            made.run(None, {"x0": wrong})
        same(made.run(None, {"x0": x})[0], onnxpool.average_pool(x, 4))


def test_values_are_checked_too():
    """Indices and regions out of range are refused rather than followed."""
    indices = np.full((1, 1, 2, 2), 10**9)
    with pytest.raises(Exception, match=r"MaxUnpool-11: I.* is out of range"):
        answers("MaxUnpool", [data((1, 1, 2, 2)), indices], {"kernel_shape": [2, 2]}, "all", opset=11)
    rois = np.array([[7, 0, 0, 3, 3]], np.float32)
    with pytest.raises(Exception, match=r"MaxRoiPool-1: rois.* is not an image of X"):
        answers("MaxRoiPool", [data((1, 1, 4, 4)), rois], {"pooled_shape": [2, 2]}, "all", opset=13)


def test_any_exception_becomes_a_status(monkeypatch):
    """Unexpected exceptions reach the caller as onnxruntime's exception, with their type and message."""
    made = session(node_model("GlobalMaxPool", [data((1, 1, 4, 4))], {}, opset=13), "all")
    monkeypatch.setattr(nodes, "pieces", lambda *call: 1 // 0)
    with pytest.raises(Exception, match=r"ZeroDivisionError: .* by zero"):
        made.run(None, {"x0": data((1, 1, 4, 4))})


INTERRUPTED = """
import numpy as np
from sessions import node_model, session
from onnxpool.onnxruntime import nodes
x = np.ones((1, 1, 4, 4), np.float32)
made = session(node_model("GlobalMaxPool", [x], {}, opset=13), "all")
def interrupt(*call):
    raise KeyboardInterrupt
nodes.pieces = interrupt
try:
    try:
        made.run(None, {"x0": x})
    except Exception as error:
        while "KeyboardInterrupt" in str(error):
            pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_stays_one():
    """Ctrl-C while a node is running ends the run. KeyboardInterrupt follows onnxruntime's exception."""
    assert program(INTERRUPTED) == "interrupted"


# Threads


LARGE = (4, 24, 128, 128)
POOLS = ("AveragePool", "GlobalAveragePool", "LpPool", "MaxPool")


@pytest.mark.parametrize("operator", [*POOLS, QLINEAR_GLOBAL, NHWC_MAX])
def test_large_arrays_are_shared_among_threads(operator, monkeypatch):
    """Threads of onnxruntime compute parts of a call, with the same bits as one thread."""
    inputs, attributes = sample_inputs(operator), ATTRIBUTES[operator]
    inputs[0] = data((LARGE[0], *LARGE[2:], LARGE[1]) if operator == NHWC_MAX else LARGE, inputs[0].dtype)
    expected = getattr(onnxpool, operator)(**attributes)(*inputs, num_threads=1)
    taken, real = [], nodes.pieces

    def watched(*call):
        taken.append(real(*call))
        return list(taken[-1])

    monkeypatch.setattr(nodes, "pieces", watched)
    how = {"opset": 12, "domain": domain_of(operator)}
    made = node_model(operator, inputs, attributes, **how)
    for threads in (1, 2, 3):
        for parts in (1, 2, 3, 7):
            with monkeypatch.context() as patch:
                patch.setattr(onnxpool.threads, "_setting", parts)
                same(session(made, [operator], threads=threads).run(None, feeds(inputs))[0], expected)
            assert len(taken[-1]) == {(NHWC_MAX, 3): 2, (NHWC_MAX, 7): 4}.get((operator, parts), parts)


def test_an_error_in_a_part_reaches_the_caller(monkeypatch):
    """An error in a thread of onnxruntime ends the run, not the process, and later parts are not begun."""
    x = data((1, 8, 16, 16))
    good, later = nodes.pieces, []

    def one_bad(plan, inputs, out):
        call = good(plan, inputs, out)[0]
        return [call, (plan, (inputs[0][:, :, :3],), out), (lambda *_, **__: later.append(1), inputs, out)]

    monkeypatch.setattr(nodes, "pieces", one_bad)
    for threads in (2, 1):
        made = session(node_model("GlobalMaxPool", [x], {}, opset=13), "all", threads=threads)
        later.clear()
        with pytest.raises(Exception, match="GlobalMaxPool-1: this plan is for shape"):
            made.run(None, {"x0": x})
    assert later == []  # on one thread, parts run one after the other


def test_many_threads_run_one_session():
    """Concurrent runs of one session, some of them wrong, give each caller its own result."""
    proto = node_model("AveragePool", [data((1, 1, 4, 4))], {"kernel_shape": [3, 3]}, opset=19)
    made = session(proto, "all", threads=2)
    arrays = [data(shape, seed=i) for i, shape in enumerate([(1, 2, 8, 8), (2, 8, 200, 201), (1, 1, 3, 40)] * 3)]
    expected = [onnxpool.average_pool(x, 3) for x in arrays]
    start = threading.Barrier(8)

    def work(caller):
        start.wait()
        for turn in range(35):
            i = (caller + turn) % len(arrays)
            same(made.run(None, {"x0": arrays[i]})[0], expected[i])
            if turn % 7 == caller % 7:
                with pytest.raises(Exception, match="kernel_shape"):
                    made.run(None, {"x0": arrays[0][:, :, :2]})
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.parametrize("ops", ["missing", "all"])
def test_no_call_is_lost_from_a_record(ops):
    """The counters of a record are exact, although threads run the same session at once."""
    x, callers, turns = data((1, 1, 4, 4)), 4, 8000
    with record_nodes() as made:
        running = session(node_model("AveragePool", [x], {"kernel_shape": [3, 3]}, opset=19), ops)

    def work(_):
        for _ in range(turns):
            running.run(None, {"x0": x})

    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(work, range(callers)))
    assert [node.onnxpool_calls + node.onnxruntime_calls for node in made] == [callers * turns]


def test_sessions_are_made_while_others_run():
    """Threads that create sessions and threads that run them do not deadlock."""
    x = data((2, 8, 200, 201))
    proto = node_model("AveragePool", [x], {"kernel_shape": [3, 3]}, opset=19)
    expected, running = onnxpool.average_pool(x, 3), session(proto, "all", threads=2)

    def work(caller):
        for _ in range(10):
            made = running if caller % 2 else session(proto, ("all", "missing")[caller % 4 // 2], threads=2)
            np.testing.assert_allclose(made.run(None, {"x0": x})[0], expected, rtol=1e-4, atol=1e-6)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


NO_TEAM = """
import os, numpy as np
from sessions import node_model, session
x = np.ones((4, 24, 256, 256), np.float32)
made = session(node_model("AveragePool", [x], {"kernel_shape": [3, 3]}, opset=19), "all", threads=THREADS)
before = len(os.listdir("/proc/self/task"))
for _ in range(5):
    made.run(None, {"x0": x})
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize("threads", [1, 3])
def test_no_team_of_threads_in_a_session(threads):
    """Running nodes starts no threads besides onnxruntime's."""
    text = NO_TEAM.replace("THREADS", str(threads))
    assert program(text, ONNXPOOL_NUM_THREADS="4") == "0"


# Lifetimes


def test_nodes_go_with_their_session():
    """Deleting a session leaves no node behind."""
    def alive():
        gc.collect()
        return sum(type(thing) is nodes.Node for thing in gc.get_objects())

    before = alive()
    made = [session(layers(), ops) for ops in ("all", "missing") for _ in range(5)]
    assert alive() >= before + 15
    del made
    assert alive() == before


MEMORY = """
import resource, numpy as np
from sessions import node_model, session
x = np.ones((1, 8, 512, 512), np.float32)
made = session(node_model("AveragePool", [x], {"kernel_shape": [2, 2]}, opset=19), "all", threads=2)
def calls(n):
    for _ in range(n):
        made.run(None, {"x0": x})
        try:
            made.run(None, {"x0": x[:, :, :1]})
        except Exception as error:
            assert "kernel_shape" in str(error)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
first = calls(10)
print(calls(100) - first < 32 * 1024)
"""


def test_memory_stays_flat():
    """Neither results nor errors of runs are kept alive."""
    pytest.importorskip("resource", exc_type=ModuleNotFoundError)
    assert program(MEMORY) == "True"


EXITS = {
    "sessions_alive": "",
    "in_a_cycle": "made.append(made)",
    "options_gone": "del chosen; import gc; gc.collect()",
    "threads_before": "import threading; t = [threading.Thread(target=run) for _ in range(3)]; "
                      "[thread.start() for thread in t]; [thread.join() for thread in t]",
}

EXIT = """
import numpy as np, onnxruntime
from sessions import node_model, options
x = np.ones((1, 8, 256, 256), np.float32)
chosen = options("all", threads=2)
proto = node_model("AveragePool", [x], {"kernel_shape": [3, 3]}, opset=19).SerializeToString()
made = [onnxruntime.InferenceSession(proto, chosen, providers=["CPUExecutionProvider"]) for _ in range(2)]
def run():
    for _ in range(20):
        made[0].run(None, {"x0": x})
print(made[1].run(None, {"x0": x})[0].shape)
"""


@pytest.mark.parametrize("end", EXITS)
def test_a_process_ends_well(end):
    """An interpreter that ends while sessions are alive exits with 0 and prints nothing."""
    run = launch("-c", EXIT + EXITS[end])
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "(1, 8, 254, 254)", "")


# Registering


def test_operators_can_be_chosen_by_name():
    """Operators can be chosen by one name or several."""
    x = data((1, 2, 40, 41))
    for ops in ("GlobalLpPool", ["GlobalLpPool"], {"GlobalLpPool", "MaxPool"}, ("LpPool", "GlobalLpPool")):
        same(answers("GlobalLpPool", [x], {"p": 3}, ops, opset=13)[0], onnxpool.global_lp_pool(x, p=3))
    theirs = answers("GlobalLpPool", [x], {"p": 3}, None, opset=13)[0]
    same(answers("GlobalLpPool", [x], {"p": 3}, ["MaxPool"], opset=13)[0], theirs)


@pytest.mark.parametrize(("ops", "text"), [
    ("everything", "ops has 'everything', which is not a pooling operator; pass 'missing', 'all' or names"),
    (["MaxPool", "Conv"], "ops has 'Conv', which"),
    (["MaxPool", 3], "ops has 3, which"),
    ([], "ops is empty"),
])
def test_names_that_are_none(ops, text):
    """Unknown names are refused, with a list of the known names."""
    with pytest.raises(onnxpool.PoolError, match="register: " + text):
        register(onnxruntime.SessionOptions(), ops)


def test_arguments_of_another_kind():
    """An argument of another kind is refused with an error that says what the argument should be."""
    with pytest.raises(onnxpool.PoolTypeError, match=r"is a .*; pass an onnxruntime.SessionOptions\(\)"):
        register(onnxruntime.SessionOptions)
    with pytest.raises(onnxpool.PoolTypeError, match="session_options is a dict; pass an onnxruntime"):
        register({})
    with pytest.raises(onnxpool.PoolTypeError, match="ops is a int; pass 'missing', 'all' or names"):
        register(onnxruntime.SessionOptions(), 5)
    with pytest.raises(onnxpool.PoolTypeError, match="opset must be an integer"):
        register(onnxruntime.SessionOptions(), opset="19")
    with pytest.raises(onnxpool.PoolError, match="opset=99 is not known"):
        register(onnxruntime.SessionOptions(), opset=99)


def test_options_are_registered_with_once():
    """Registering options twice is refused at once, rather than by onnxruntime when a session is created."""
    chosen = onnxruntime.SessionOptions()
    register(chosen, ["MaxPool"])
    with pytest.raises(onnxpool.PoolError, match="already have onnxpool's operators; create new options"):
        register(chosen, "all")
    assert chosen.get_session_config_entry("onnxpool.operators") == "MaxPool"


@pytest.mark.parametrize(("release", "merging"), [("1.32.0", []), ("1.31.1", ["Pad_Fusion"])])
def test_optimisers_that_replace_pools_are_switched_off(release, merging, monkeypatch):
    """Optimisers that replace chosen pools are switched off, and already disabled optimisers stay off. Other operators
    disable none."""
    monkeypatch.setattr(onnxruntime, "__version__", release)
    entry = "optimization.disable_specified_optimizers"
    for ops, replacing in (("all", ["NchwcTransformer"]), (["GlobalMaxPool"], ["NchwcTransformer"]),
                           (["LpPool", "RoiAlign"], []), ("missing", [])):
        chosen = onnxruntime.SessionOptions()
        chosen.add_session_config_entry(entry, "Own")
        register(chosen, ops)
        assert chosen.get_session_config_entry(entry) == ";".join(["Own", *replacing, *merging])


def test_a_failed_registration_leaves_options_free():
    """Options for which registering failed can still be used."""
    chosen = onnxruntime.SessionOptions()
    with pytest.raises(onnxpool.PoolError):
        register(chosen, "none")
    register(chosen)


@pytest.mark.parametrize("version", ["1.18.1", "1.9.0", "0.5.0"])
def test_releases_that_are_too_old(version, monkeypatch):
    """If onnxruntime is too old, the error says which release is needed."""
    monkeypatch.setattr(onnxruntime, "__version__", version)
    with pytest.raises(ImportError, match=f"onnxruntime 1.19 or newer, but this is {version}; pip install --upgrade"):
        register(onnxruntime.SessionOptions())


def test_the_library_alone_is_refused():
    """If the library is loaded without a choice of operators, the error says how to choose."""
    from onnxpool.onnxruntime import bridge
    with pytest.raises(Exception, match=re.escape("use onnxpool.onnxruntime.register(session_options)")):
        onnxruntime.SessionOptions().register_custom_ops_library(bridge.__file__)


def test_bfloat16_without_ml_dtypes(monkeypatch):
    """If ml_dtypes is missing for bfloat16, the error says what to install."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(onnxpool.PoolTypeError, match="bfloat16 need the package ml_dtypes"):
        nodes.dtype(dtypes.DTYPES["bfloat16"].onnx)


WITHOUT = """
import sys, onnxpool
import onnxpool.onnxruntime
print([name for name in ("onnxruntime", "onnx", "ml_dtypes") if name in sys.modules])
"""


def test_onnxruntime_is_imported_by_its_users_alone():
    """Neither onnxpool nor its module for sessions imports onnxruntime before a user needs it."""
    assert program(WITHOUT) == "[]"


# Which nodes run on onnxpool


def recorded(proto, ops, **how):
    """A session, and the records of its nodes."""
    with record_nodes() as made:
        return session(proto, ops, **how), made


def who(made):
    """The records in short form."""
    return [(node.name, node.operator, node.dtype, node.runs_on, node.onnxpool_calls, node.onnxruntime_calls)
            for node in made]


def test_records_tell_who_runs_a_node():
    """With "missing", a node for which onnxruntime has a kernel is left to onnxruntime. Records count the calls by each
    library."""
    x = data((1, 2, 6, 6))
    double = recorded(node_model("AveragePool", [x.astype(float)], {"kernel_shape": [3, 3]}, opset=19), "missing")
    theirs = recorded(node_model("LpPool", [x], {"kernel_shape": [3, 3]}, opset=18), "missing", opset=18)
    ours = recorded(node_model("LpPool", [x], {"kernel_shape": [3, 3]}, opset=18), "all", opset=18)
    deep = data((1, 1, 4, 4, 4, 4))
    refused = recorded(node_model("MaxPool", [deep], {"kernel_shape": [2] * 4}, opset=12), "missing")

    for (made, _), array in ((double, x.astype(float)), (theirs, x), (ours, x), (ours, x), (refused, deep)):
        made.run(None, {"x0": array})
    assert who(double[1]) == [("pool", "AveragePool", "float64", "onnxpool", 1, 0)]
    assert who(theirs[1]) == [("pool", "LpPool", "float32", "onnxruntime", 0, 1)]
    assert who(ours[1]) == [("pool", "LpPool", "float32", "onnxpool", 2, 0)]
    assert who(refused[1]) == [("pool", "MaxPool", "float32", "onnxruntime", 1, 0)]


def test_records_tell_why_onnxruntime_does_not_run_a_node():
    """The first message of onnxruntime's kernel is kept, and the kernel is tried once for each shape."""
    deep, flat = data((1, 1, 4, 4, 4, 4)), data((1, 1, 4, 4))
    proto = node_model("MaxPool", [deep], {"kernel_shape": [2] * 4}, opset=12, shape=None)
    made, (node,) = recorded(proto, "missing")
    assert node.onnxruntime_error == ""
    for _ in range(5):
        made.run(None, {"x0": deep})
    assert "pooling size" in node.onnxruntime_error
    assert (node.onnxpool_calls, node.onnxruntime_calls) == (5, 0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: made.run(None, {"x0": deep}), range(100)))
    assert (node.onnxpool_calls, node.onnxruntime_calls) == (105, 0)
    made, (node,) = recorded(node_model("LpPool", [flat], {"kernel_shape": [3, 3]}, opset=18), "missing", opset=18)
    made.run(None, {"x0": flat})
    assert (node.onnxruntime_error, node.onnxruntime_calls) == ("", 1)
    double = flat.astype(float)
    made, (node,) = recorded(node_model("AveragePool", [double], {"kernel_shape": [3, 3]}, opset=19), "missing")
    assert node.runs_on == "onnxpool"
    assert "AveragePool" in node.onnxruntime_error


def test_values_that_are_refused_do_not_end_the_use_of_onnxruntime():
    """An error about values that both libraries report does not keep onnxruntime's kernel from later calls."""
    x = data((1, 1, 4, 4))
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    proto = node_model("MaxRoiPool", [x, rois], {"pooled_shape": [2, 2]}, opset=1)
    made, (node,) = recorded(proto, "missing")
    made.run(None, {"x0": x, "x1": rois})
    assert (node.onnxpool_calls, node.onnxruntime_calls) == (0, 1)
    wrong = rois + np.array([[7, 0, 0, 0, 0]], np.float32)
    with pytest.raises(Exception, match="rois"):
        made.run(None, {"x0": x, "x1": wrong})
    assert node.onnxruntime_error
    assert node.onnxpool_calls == 1
    made.run(None, {"x0": x, "x1": rois})
    assert (node.onnxpool_calls, node.onnxruntime_calls) == (1, 2)


def test_records_are_of_their_block():
    """Sessions created before, after, or in another thread are not in a block's list. A nested block has its own
    list."""
    proto = node_model("GlobalMaxPool", [data((1, 1, 4, 4))], {}, opset=13)
    session(proto, "all")
    with record_nodes() as outer:
        session_in_block = session(proto, "all")
        with record_nodes() as inner:
            nested = session(proto, "all")
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(session, proto, "all").result()
    after = session(proto, "all")
    assert (len(outer), len(inner)) == (1, 1)
    del session_in_block, nested, elsewhere, after


def test_records_of_sessions_that_are_not_made_are_dropped():
    """A session that is refused leaves no record, and an error leaves the block unchanged."""
    x = data((1, 1, 4, 4))
    wrong = node_model("AveragePool", [x], {"kernel_shape": [2, 2]}, opset=19)
    bad = helper.make_node("AveragePool", ["x0"], ["z"], name="bad", kernel_shape=[2, 2],
                           auto_pad="same")
    wrong.graph.node.append(bad)
    with record_nodes() as made, pytest.raises(Exception, match="node 'bad'"):
        session(wrong, "all")
    assert made == []


def test_a_node_without_a_name_has_that_of_its_output():
    """In records and errors, a node without a name has the name of its output."""
    x = data((1, 1, 4, 4))
    proto = node_model("AveragePool", [x], {"kernel_shape": [2, 2]}, opset=19)
    proto.graph.node[0].name = ""
    made, records = recorded(proto, "all")
    assert [node.name for node in records] == ["y"]
    proto.graph.node[0].attribute.append(helper.make_attribute("auto_pad", "same"))
    with pytest.raises(Exception, match="node 'y': AveragePool-19: auto_pad"):
        session(proto, "all")
    del made
