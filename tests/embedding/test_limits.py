"""Limits on calls: what they count, that they hold on every way to call, and that nothing is written beyond them."""

import asyncio
import itertools
import math
import sys
import threading
import time

import numpy as np
import onnx.reference
import pytest
from calls import FUNCTIONS, SeededChoices, make_out
from calls_family import WEIGHTED, draw_call
from cases_axes import varied_case
from hypothesis import given as drawing
from hypothesis import settings
from hypothesis import strategies as st
from needs import needs
from onnxpool_conformance.oracle import GeometryError
from programs import launch, program
from samples import OPERATORS, build, domain_of, inputs
from sessions import feeds, node_model, session
from support import same_bits

import onnxpool
from onnxpool import PoolError, PoolTypeError, budget, cython_api
from onnxpool.onnx import backend, reference
from onnxpool.onnxruntime import nodes
from onnxpool.windows import Axis

pytestmark = pytest.mark.smoke

CALLS = 400
FEW = {"max_output_bytes": 1}
X = np.zeros((1, 2, 30, 30), np.float32)


@pytest.fixture(autouse=True)
def _no_limits():
    yield
    onnxpool.set_limits()


def refusal(run, name):
    """The number that a call needs, according to its refusal, which also names the operator and the limit."""
    with pytest.raises(PoolError, match=rf"more than {name}=\d+; .* or raise the limit$") as caught:
        run()
    assert caught.value.attribute == name
    assert caught.value.operator
    return caught.value.value


def arrays(result):
    return result if isinstance(result, tuple) else (result,)


# What limits count


def legal_calls(count):
    """Random calls, with the bytes and the work that each needs."""
    for seed in itertools.count():
        call = draw_call(SeededChoices(seed), (*WEIGHTED, "MaxRoiPool", "RoiAlign"))
        try:
            nbytes, least, most = needs(call)
        except GeometryError:
            continue
        if min(nbytes, least) > 1:
            yield call, nbytes, least, most
            count -= 1
        if not count:
            return


def test_random_calls_need_what_plain_loops_count():
    """A call runs if both limits equal its needs. It is refused, and `out` stays untouched, if either limit is
    lower."""
    seen = set()
    for call, nbytes, least, most in legal_calls(CALLS):
        y = arrays(call.run(onnxpool))
        with onnxpool.limits(max_output_bytes=nbytes, max_work=most):
            for one, other in zip(arrays(call.run(onnxpool)), y, strict=True):
                assert same_bits(one, other), call.describe()
        outs, memories = zip(*(make_out("contiguous", one.shape, one.dtype) for one in y), strict=True)
        before = [memory.tobytes() for memory in memories]
        for name, low, high in (("max_output_bytes", nbytes, nbytes), ("max_work", least, most)):
            with onnxpool.limits(**{name: low - 1}):
                needed = refusal(lambda: call.run(onnxpool, outs if len(outs) > 1 else outs[0]), name)  # noqa: B023
            assert low <= needed <= high, call.describe()
        assert before == [memory.tobytes() for memory in memories]
        seen.add((call.operator, call.style))
    assert {operator for operator, _ in seen} == set(FUNCTIONS)
    assert {style for _, style in seen} == {"function", "object", "plan"}


@settings(deadline=None)
@drawing(st.integers(1, 40), st.integers(0, 60), st.integers(1, 25), st.integers(1, 12), st.integers(1, 30),
         st.integers(0, 50), st.integers(0, 50))
def test_taps_are_counted_without_a_look_at_each_window(size, out, kernel, stride, dilation, begin, end):
    axis = Axis(size, out, kernel, stride, dilation, (begin, end))
    assert axis.taps == sum(axis.window(i).taps for i in range(out))


def test_work_of_absurd_attributes_is_counted_at_once():
    """Windows of 2^61 taps count as windows over the whole array, and padding does not count as work."""
    start = time.perf_counter()
    with onnxpool.limits(max_work=10**6):
        needed = refusal(lambda: onnxpool.max_pool(X, 2**61, auto_pad="SAME_UPPER"), "max_work")
    assert needed == 2 * (900 * 900 + 900)  # each of 900 windows of a channel contains all elements
    with onnxpool.limits(max_work=2 * (900 + 1)):
        onnxpool.average_pool(X, 2**40, pads=2**39, strides=2**40)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("sampling_ratio", [0, 50])
def test_samples_that_data_determines_are_work(sampling_ratio):
    """RoiAlign's regions have as many samples as their sides demand."""
    rois = np.array([[0, 0, 99.5, 49.5]] * 3, np.float32)
    call = (X, rois, np.zeros(3, np.int64)), {"sampling_ratio": sampling_ratio, "output_height": 1, "output_width": 2}
    op = onnxpool.RoiAlign(**call[1])
    samples = 3 * 2 * (50 * 50)
    with onnxpool.limits(max_work=2 * (4 * samples + 3 * 2) - 1):
        refusal(lambda: op(*call[0]), "max_work")
    with onnxpool.limits(max_work=2 * (4 * samples + 3 * 2)):
        op(*call[0])


def test_calls_with_axes_do_not_count_their_own_steps():
    """A call counts once, with the bytes of its own results, even if integers are converted or overflowing means are
    computed again part by part."""
    for seed in range(300):
        case = varied_case(seed)
        op = case.make()
        y = arrays(op(case.x))
        needed = []
        for name in budget.Limits._fields:
            with onnxpool.limits(**{name: 1}):
                try:
                    op(case.x)
                except PoolError as error:
                    needed.append((name, error.value))
        assert dict(needed).get("max_output_bytes", 1) == max(1, sum(one.nbytes for one in y))
        with onnxpool.limits(**dict(needed)):
            assert all(map(same_bits, arrays(op(case.x)), y))


# Where limits hold


@pytest.mark.parametrize("name", budget.Limits._fields)
@pytest.mark.parametrize("operator", OPERATORS)
def test_calls_that_are_remembered_obey_limits_set_later(operator, name):
    """Calls of known shapes, which run in compiled code, obey limits that are set later."""
    given = inputs(operator)
    op = build(operator)
    plan = op.plan(given[0].shape, given[0].dtype)
    for run in (op, plan):
        y = [run(*given) for _ in range(3)][-1]
        with onnxpool.limits(**{name: 1}):
            refusal(lambda: run(*given), name)  # noqa: B023
            refusal(lambda: run(*given, out=y), name)  # noqa: B023
        onnxpool.set_limits(**{name: 1})
        refusal(lambda: run(*given), name)  # noqa: B023
        onnxpool.set_limits()
        assert same_bits(run(*given), y)


def test_an_array_of_another_shape_is_judged_by_its_own_plan():
    op = onnxpool.MaxPool(kernel_shape=2)
    for _ in range(3):
        op(X)
    with onnxpool.limits(max_output_bytes=100):
        op(X[:, :1, :4, :4])
        refusal(lambda: op(X), "max_output_bytes")


def test_parts_are_calls_of_their_own():
    """Tiles can compute a result that exceeds a limit, because each part is a call of its own."""
    plan = onnxpool.MaxPool(kernel_shape=3, return_indices=True).plan(X.shape, X.dtype)
    x = np.random.default_rng(0).standard_normal(X.shape, np.float32)
    y, indices = plan(x)
    with onnxpool.limits(max_output_bytes=2000, max_work=10_000):
        refusal(lambda: plan(x), "max_output_bytes")
        for part in plan.tiles(max_bytes=2000):
            one, places = part(x[part.inputs])
            assert same_bits(one, y[part.outputs])
            assert same_bits(places, indices[part.outputs])
        (part,) = plan.tiles(1)
        refusal(lambda: part(x), "max_output_bytes")
    share = next(onnxpool.GlobalAveragePool().plan(X.shape, X.dtype).partials(2))
    with onnxpool.limits(max_work=10):
        refusal(lambda: share(x[share.inputs]), "max_work")


def test_chunks_of_dask_are_calls_of_their_own():
    dask = pytest.importorskip("dask.array")
    import onnxpool.dask as pool_da

    y = pool_da.max_pool(dask.zeros((40, 40), chunks=10), 2, axes=(0, 1))
    with onnxpool.limits(max_output_bytes=10 * 10 * 8):  # has no effect on the scheduler's threads
        y.compute()
    onnxpool.set_limits(max_output_bytes=10 * 10 * 8)
    y.compute()
    onnxpool.set_limits(max_output_bytes=10 * 10 * 8 - 1)
    refusal(y.compute, "max_output_bytes")


def test_tuning_obeys_limits():
    plan = onnxpool.MaxPool(kernel_shape=3).plan((1, 2, 300, 300), np.float32)
    with onnxpool.limits(max_work=1000):
        refusal(lambda: plan.tuned(seconds=0.01), "max_work")


def test_handles_are_made_within_limits():
    """Limits apply when a handle is made. An existing handle runs without the GIL, and checks no limits."""
    plan = onnxpool.MaxPool(kernel_shape=3).plan(X.shape, X.dtype)
    with onnxpool.limits(**FEW):
        refusal(lambda: cython_api.Prepared(plan), "max_output_bytes")
    cython_api.Prepared(plan)


@pytest.mark.parametrize("operator", OPERATORS)
def test_models_obey_limits(operator):
    """Limits hold on onnx's reference evaluator, on the backend, and in onnxruntime sessions."""
    given = inputs(operator)
    attributes = build(operator).attributes
    proto = node_model(operator, given, attributes, opset=19, domain=domain_of(operator))
    named = feeds(given)
    made = session(proto, operator)
    evaluator = onnx.reference.ReferenceEvaluator(proto, new_ops=reference.new_ops())
    runs = (lambda: evaluator.run(None, named), lambda: made.run(None, named),
            lambda: backend.run_node(proto.graph.node[0], given, opset_version=19))
    for run in runs:
        run()
    onnxpool.set_limits(**FEW)
    for run in runs:
        with pytest.raises(Exception, match=r"needs \d+ bytes for results, more than max_output_bytes=1"):
            run()


def test_a_node_is_judged_before_it_is_split():
    """Sessions split a call among threads, but limits apply to the whole call."""
    x = np.ones((4, 64, 64, 32), np.float32)
    plan = onnxpool.MaxPool(kernel_shape=3, channels_last=True).plan(x.shape, x.dtype)
    node = nodes.Node(plan.operator, [x.dtype], False, False)
    with onnxpool.limits(max_output_bytes=math.prod(plan.output_shape) * 4 - 1):
        refusal(lambda: node.result_shape(plan, (x,)), "max_output_bytes")


def test_the_command_line_obeys_the_environment(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(node_model("MaxPool", [X], {"kernel_shape": [2, 2]}, opset=19, shape=X.shape).SerializeToString())
    done = launch("-m", "onnxpool", "run", str(path), ONNXPOOL_MAX_WORK="100")
    assert done.returncode != 0
    assert "more than max_work=100" in done.stderr
    assert "Traceback" not in done.stderr
    assert launch("-m", "onnxpool", "run", str(path), ONNXPOOL_MAX_WORK="100000").returncode == 0


# Which limits are in force


def in_force():
    found = onnxpool.config()
    return found["max_output_bytes"], found["max_work"]


def test_blocks_tighten_limits():
    """The tightest of all limits is in force, whichever way it was set."""
    assert in_force() == (None, None)
    onnxpool.set_limits(max_output_bytes=100)
    with onnxpool.limits(max_output_bytes=1000, max_work=10):
        assert in_force() == (100, 10)
        with onnxpool.limits(max_output_bytes=50, max_work=20):
            assert in_force() == (50, 10)
            onnxpool.set_limits(max_output_bytes=5)
            assert in_force() == (5, 10)
            onnxpool.set_limits()
            assert in_force() == (50, 10)
        assert in_force() == (1000, 10)
        with onnxpool.limits():
            assert in_force() == (1000, 10)
    assert in_force() == (None, None)


def test_blocks_apply_to_their_own_thread_and_tasks():
    found = []

    async def main():
        with onnxpool.limits(max_work=7):
            task = asyncio.create_task(asyncio.to_thread(in_force))
        return in_force(), await task

    assert asyncio.run(main()) == ((None, None), (None, 7))
    inherits = getattr(sys.flags, "thread_inherit_context", 0)
    with onnxpool.limits(max_work=7):
        thread = threading.Thread(target=lambda: found.append(in_force()))
        thread.start()
        thread.join()
    assert found == [(None, 7 if inherits else None)]


def test_a_task_that_outlives_its_block_keeps_the_limits_of_remembered_calls():
    op = onnxpool.MaxPool(kernel_shape=2)
    for _ in range(3):
        op(X)

    async def later():
        await asyncio.sleep(0)
        return refusal(lambda: op(X), "max_work")

    async def main():
        with onnxpool.limits(max_work=7):
            task = asyncio.create_task(later())
        return await task

    assert asyncio.run(main()) == 2 * 29 * 29 * 5
    op(X)


def test_the_environment_sets_limits_that_nothing_loosens():
    text = ("import onnxpool; onnxpool.set_limits(max_work=1000); found = onnxpool.config(); "
            "print(found['max_output_bytes'], found['max_work'])")
    assert program(text, ONNXPOOL_MAX_OUTPUT_BYTES="10", ONNXPOOL_MAX_WORK=" 100 ") == "10 100"
    assert program(text, ONNXPOOL_MAX_WORK="", ONNXPOOL_MAX_OUTPUT_BYTES="10000000000") == "10000000000 1000"


@pytest.mark.parametrize("value", ["0", "-1", "1e9", "many", str(2**63), "9" * 5000, "1.5", "\u0661"])
@pytest.mark.parametrize("name", ["ONNXPOOL_MAX_OUTPUT_BYTES", "ONNXPOOL_MAX_WORK"])
def test_a_variable_that_is_no_limit_is_refused(name, value):
    """An environment variable that is not a valid limit makes the import fail, because it was meant to set one."""
    done = launch("-c", "import onnxpool", **{name: value})
    assert done.returncode != 0
    assert f"ImportError: {name}={value!r} is not a limit; set it to a whole number" in done.stderr


@pytest.mark.parametrize("function", [onnxpool.limits, onnxpool.set_limits])
@pytest.mark.parametrize("name", budget.Limits._fields)
def test_values_that_are_no_limits_are_refused(function, name):
    for value in (0, -1, 2**63):
        with pytest.raises(PoolError, match=f"^onnxpool: {name} must be in"):
            function(**{name: value})
    for value in (1.5, "1", True, math.inf):
        with pytest.raises(PoolTypeError, match=f"^onnxpool: {name} must be an integer"):
            function(**{name: value})
    assert in_force() == (None, None)


def test_show_config_prints_limits(capsys):
    with onnxpool.limits(max_work=7):
        onnxpool.show_config()
    onnxpool.show_config()
    assert [line for line in capsys.readouterr().out.splitlines() if "limits" in line] == [
        "limits: max_work=7", "limits: none"]
