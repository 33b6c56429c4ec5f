"""Plans that measure themselves: all ways give the same bits, the fastest is used, and what was learned is data."""

import gc
import itertools
import json
import math
import os
import subprocess
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from samples import data
from sessions import node_model
from support import built_solvers, same_bits

import onnxpool
from benchmarks.zoo import draw
from onnxpool import PoolError, PoolTypeError
from onnxpool import __main__ as command
from onnxpool.onnxruntime import register
from onnxpool.planning import layout, ways
from onnxpool.planning.kinds import CopyPlan

pytestmark = pytest.mark.smoke

MOST = 20_000  # elements of a random layer
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64,
          "uint8": np.uint8, "int8": np.int8}
SCALES = (np.float32(0.05), 0, np.float32(0.04), 0)


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    """Each test begins and ends without anything learned."""
    monkeypatch.setattr(ways, "learned", {})
    for module in ("onnxpool.planning.layout", "onnxpool.tuning"):
        __import__(module)
        monkeypatch.setattr(sys.modules[module], "learned", ways.learned)
    onnxpool.clear_caches()
    yield
    onnxpool.clear_caches()


def layers(count, seed):
    """Random layers of the zoo, small, in both layouts, with an array and the further inputs for each dtype."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        layer = draw(rng)
        channels, *sizes = layer.shape
        while channels * math.prod(sizes) > MOST:
            channels = max(1, channels // 2)
            if channels == 1:
                break
        name = list(DTYPES)[number % len(DTYPES)]
        operator = layer.operator
        if name in ("uint8", "int8"):
            operator = {"AveragePool": "QLinearAveragePool", "GlobalAveragePool": "QLinearGlobalAveragePool",
                        "GlobalMaxPool": "MaxPool"}.get(operator, operator)
            if operator in ("LpPool", "GlobalLpPool"):
                continue
        elif operator.startswith("QLinear"):
            operator = operator.removeprefix("QLinear")
        attributes = layer.attributes
        if operator == "MaxPool" and "kernel_shape" not in attributes:
            attributes = {"kernel_shape": sizes}
        if operator == "MaxPool" and number % 3 == 0:
            attributes = {**attributes, "return_indices": True}
        last = bool(number % 2)
        shape = (2, *sizes, channels) if last else (2, channels, *sizes)
        x = rng.standard_normal(shape) * 40
        x = x.astype(DTYPES[name]) if name not in ("uint8", "int8") else np.abs(x).astype(np.int8).view(DTYPES[name])
        made = getattr(onnxpool, operator)(**attributes, channels_last=last)
        yield made, x, SCALES if operator.startswith("QLinear") else ()


def test_all_ways_give_the_same_bits():
    """On random layers of the zoo, each fitting solver, each form and each size of tiles gives the same bits."""
    seen = set()
    for operator, x, inputs in layers(240, seed=3):
        plan = operator.plan(x.shape, x.dtype)
        expected = plan(x, *inputs, num_threads=1)
        if isinstance(plan, CopyPlan):
            continue
        outs = expected if isinstance(expected, tuple) else (expected,)
        memory = plan._memory(x, outs[0], outs[1] if len(outs) > 1 else None)
        for way, pool in layout.pools_of(plan.request, *memory).items():
            y = [np.full_like(out, 77) for out in outs]
            pool.run(x, y[0], 2, plan._rule(inputs) if inputs else None, y[1] if len(outs) > 1 else None)
            assert all(map(same_bits, y, outs)), (plan, way)
            seen.add((way.solver, way.adjacent, way.room))
    assert {solver for solver, _, _ in seen} == built_solvers() - {"folded"}  # rows of images are too short for it
    assert {room for _, _, room in seen} >= {0.25, 0.5, 1.0, 2.0}
    assert {adjacent for _, adjacent, _ in seen} == {False, True}


def ticking(monkeypatch, times, passing=0.0):
    """Calls with given times, an endless list of bursts for each. Returns the calls, and a list of the calls timed."""
    timed, clock = [], itertools.count(0, passing)
    calls = [(lambda place=place: place) for place in range(len(times))]
    bursts = {call: itertools.cycle(own) for call, own in zip(calls, times, strict=True)}

    def burst(call):
        timed.append(call())
        return next(bursts[call])

    monkeypatch.setattr(ways, "burst", burst)
    monkeypatch.setattr(ways.time, "perf_counter", lambda: next(clock))
    return calls, timed


@pytest.mark.parametrize(("times", "place"), [
    ([[10], [9], [8]], 2), ([[10], [9.9], [9.95]], 0), ([[10, 9], [9.2, 8], [20]], 1), ([[10]], 0),
    ([[10, 8, 8], [9], [9]], 0), ([[10], [11, 11, 2], [9]], 1)])
def test_the_best_time_of_several_rounds_wins(monkeypatch, times, place):
    """The usual way is kept unless another way is clearly faster."""
    calls, _ = ticking(monkeypatch, times, passing=0.001)
    assert ways.fastest(calls, 0.2) == place


def test_slow_ways_are_dropped_and_time_is_kept(monkeypatch):
    """A way that takes twice as long is timed once. When the time is over, only the usual way is still timed."""
    calls, timed = ticking(monkeypatch, [[10], [30], [9.5]], passing=0.01)
    assert ways.fastest(calls, 0.2) == 2
    assert timed.count(1) == 1
    assert 10 < timed.count(0) + timed.count(2) < 25
    calls, timed = ticking(monkeypatch, [[10], [1]], passing=1)
    assert ways.fastest(calls, 0.2) == 0
    assert timed == [0]


def test_a_burst_is_the_mean_of_calls(monkeypatch):
    """A burst takes the mean of as many calls as fit into its time."""
    clock = itertools.count(0, ways.BURST / 4)
    monkeypatch.setattr(ways.time, "perf_counter", lambda: next(clock))
    made = []
    assert ways.burst(lambda: made.append(1)) == pytest.approx(ways.BURST / 4)
    assert len(made) == 4


@pytest.fixture
def plan(monkeypatch):
    """A plan for which `passes` with the smallest tiles is the fastest way."""
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: len(calls) - 1)
    return onnxpool.AveragePool(kernel_shape=3, pads=1, channels_last=True).plan((1, 40, 40, 64), np.float32)


def test_the_fastest_way_is_used(plan):
    """A plan uses the fastest way although it has run before, and so do later plans, but only for arrays of the same
    strides."""
    x = np.random.default_rng(0).standard_normal(plan.shape, np.float32)
    y = plan(x)
    usual = plan._row_major_pool().setup
    assert plan.tuned() is plan
    (way,) = ways.learned.values()
    setup = plan._row_major_pool().setup
    assert (setup.solver, setup.stages) != (usual.solver, usual.stages)
    assert setup.stages == layout.setup_of(plan.request, *plan._memory(x, y, None), way).stages
    assert same_bits(plan(x), y)
    onnxpool.clear_caches()
    assert plan.operator.plan(plan.shape, plan.dtype)._row_major_pool().setup.stages == setup.stages
    assert same_bits(plan(np.asfortranarray(x)), y)
    other = onnxpool.AveragePool(kernel_shape=3, pads=1, channels_last=True).plan((1, 41, 40, 64), np.float32)
    assert other._row_major_pool().setup.stages[0].tile.windows[0] != setup.stages[0].tile.windows[0]


def test_a_given_way_is_used_whatever_was_learned(plan):
    """A plan uses a given way even if another was learned, so that measurements can compare ways."""
    x = np.zeros(plan.shape, np.float32)
    memory = plan._memory(x, plan(x), None)
    stages = {way: layout.setup_of(plan.request, *memory, way).stages for way in layout.pools_of(plan.request, *memory)}
    plan.tuned()
    assert len(set(stages.values())) > 2
    for way, own in stages.items():
        assert layout.setup_of(plan.request, *memory, way).stages == own


def test_tiles_grow_with_their_room(plan):
    """Tiles grow with their room, at most to the whole problem."""
    x = np.zeros((2, 80, 80, 256), np.float32)
    large = plan.operator.plan(x.shape, x.dtype)
    memory = large._memory(x, large(x), None)
    tiles = [layout.setup_of(large.request, *memory, ways.Way("passes", False, room, 0)).stages[0].tile
             for room in ways.ROOMS]
    counted = {room: tile.items * math.prod(tile.windows) * tile.lanes
               for room, tile in zip(ways.ROOMS, tiles, strict=True)}
    assert len(set(counted.values())) > 2
    assert sorted(counted) == sorted(counted, key=counted.__getitem__)


def test_what_was_learned_is_found_for_problems_of_two_forms(monkeypatch):
    """If a problem can have the form of rows and that of adjacent lanes, its way is stored and looked up under the same
    form."""
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: len(calls) - 1)
    found = 0
    for operator, x, inputs in layers(60, seed=5):
        plan = operator.plan(x.shape, x.dtype)
        if isinstance(plan, CopyPlan):
            continue
        y = plan(x, *inputs)
        outs = y if isinstance(y, tuple) else (y, None)
        memory = plan._memory(x, *outs)
        if len(layout.planner_of(plan.request, *memory).forms) == 1:
            continue
        ways.learned.clear()
        plan.tuned(x)
        (way,) = ways.learned.values()
        assert layout.setup_of(plan.request, *memory).stages == layout.setup_of(plan.request, *memory, way).stages
        found += layout.key_of(plan.request, *memory) in ways.learned
    assert found > 3


def test_a_known_problem_is_not_measured_again(plan, monkeypatch):
    """A known problem is measured again only with another number of threads."""
    measured = []
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: measured.append(len(calls)) or 0)
    large = onnxpool.MaxPool(kernel_shape=2).plan((1, 64, 100, 100), np.float32)
    for threads in (1, 1, 2, 2, 1):
        large.tuned(num_threads=threads)
    assert len(measured) == 3
    large.tuned(np.ones(large.shape, np.float32), num_threads=1)
    assert len(measured) == 3
    large.tuned(np.asfortranarray(np.ones(large.shape, np.float32)), num_threads=1)
    assert len(measured) == 4


def test_plans_with_one_way_return_themselves(monkeypatch):
    """Tuning measures nothing, and returns the plan, for copies, for regions and for empty arrays."""
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: pytest.fail("measured"))
    for operator, shape, dtype in [
            (onnxpool.MaxPool(kernel_shape=1, strides=2), (1, 1, 8, 8), "float32"),
            (onnxpool.MaxRoiPool(pooled_shape=2), (1, 1, 8, 8), "float32"),
            (onnxpool.MaxUnpool(kernel_shape=2), (1, 1, 8, 8), "float32"),
            (onnxpool.MaxPool(kernel_shape=2), (0, 1, 8, 8), "float32")]:
        plan = operator.plan(shape, dtype)
        assert plan.tuned() is plan
    assert not ways.learned


@pytest.mark.parametrize(("arguments", "error", "place"), [
    ({"seconds": 0}, PoolError, "seconds"), ({"seconds": math.nan}, PoolError, "seconds"),
    ({"seconds": math.inf}, PoolError, "seconds"), ({"seconds": "1"}, PoolTypeError, "seconds"),
    ({"seconds": True}, PoolTypeError, "seconds"), ({"seconds": np.True_}, PoolTypeError, "seconds"),
    ({"seconds": 10**400}, PoolError, "seconds"), ({"seconds": -10**400}, PoolError, "seconds"),
    ({"seconds": Fraction(10**400)}, PoolError, "seconds"), ({"seconds": np.float32("inf")}, PoolError, "seconds"),
    ({"seconds": np.array([1.0])}, PoolTypeError, "seconds"),
    ({"seconds": np.timedelta64(1, "s")}, PoolTypeError, "seconds"), ({"seconds": 1j}, PoolTypeError, "seconds"),
    ({"num_threads": 0}, PoolError, "num_threads"),
    ({"x": np.ones((1, 40, 40, 63), np.float32)}, PoolError, "X"),
    ({"x": np.ones((1, 40, 40, 64))}, PoolTypeError, "X")])
def test_wrong_arguments_are_refused(plan, arguments, error, place):
    """Wrong arguments are refused before anything is measured."""
    with pytest.raises(error) as caught:
        plan.tuned(**arguments)
    assert caught.value.attribute == place
    assert caught.value.operator == ("AveragePool" if place != "num_threads" else None)
    assert not ways.learned


@pytest.mark.parametrize("seconds", [
    np.float32(0.01), np.float16(0.01), np.float64(0.01), np.longdouble(0.01), Fraction(1, 100), np.array(0.01), 1,
    np.int8(1), np.array(1)], ids=repr)
def test_any_real_number_of_seconds(plan, monkeypatch, seconds):
    """Any real number of Python or NumPy is accepted as seconds, and converted to a float."""
    given = []
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: given.append(seconds) or 0)
    assert plan.tuned(seconds=seconds) is plan
    assert given == [float(seconds)]
    assert type(given[0]) is float


def test_plans_too_large_to_measure():
    """The default array must fit in memory, and no array has more than 64 axes."""
    for shape in ((2**20, 2**20), (2**30, 2**30)):
        with pytest.raises(PoolError, match="does not fit in the memory of this machine; tune a plan of a smaller"):
            onnxpool.MaxPool(kernel_shape=2, axes=0).plan(shape, "float32").tuned()
    for method in ("plan", "output_shape"):
        with pytest.raises(PoolError, match="X has 65 axes, but no array has more than 64; pass fewer"):
            getattr(onnxpool.MaxPool(kernel_shape=1, axes=0), method)((1,) * 65, *["float32"] * (method == "plan"))


def test_wisdom_is_data(plan):
    """Wisdom survives JSON. Another process that loads the wisdom, directly or through the environment, has the same
    ways."""
    plan.tuned()
    text = json.dumps(onnxpool.wisdom())
    expected = dict(ways.learned)
    ways.learned.clear()
    assert onnxpool.load_wisdom(json.loads(text)) == 1
    assert ways.learned == expected
    assert plan.operator.plan(plan.shape, plan.dtype)._row_major_pool().setup.stages != ()


def test_wisdom_is_loaded_at_import(plan, tmp_path):
    """Wisdom is loaded from the file that ONNXPOOL_WISDOM names."""
    plan.tuned()
    path = tmp_path / "wisdom.json"
    path.write_text(json.dumps(onnxpool.wisdom()))
    stages = plan._row_major_pool().setup.stages
    program = ("import onnxpool; "
               f"print(onnxpool.{plan!r}._row_major_pool().setup.stages)")
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True,
                         env=os.environ | {"ONNXPOOL_WISDOM": str(path), "ONNXPOOL_ISA": onnxpool.kernels.isa})
    assert ran.stdout.strip() == str(stages)


@pytest.mark.parametrize("content", [
    None, "", "[]", "{", '{"version": "0"}', "\x00\xff", pytest.param("[" * 100_000, id="deep")])
def test_a_file_that_cannot_be_used_is_ignored(tmp_path, content):
    """A file that cannot be used causes a warning that names the file, or what differs, and the import succeeds."""
    path = tmp_path / "wisdom.json"
    if content is not None:
        path.write_text(content)
    ran = subprocess.run([sys.executable, "-c", "import onnxpool; print(len(onnxpool.wisdom()['ways']))"],
                         capture_output=True, text=True, check=True, env=os.environ | {"ONNXPOOL_WISDOM": str(path)})
    assert ran.stdout.strip() == "0"
    assert "RuntimeWarning: onnxpool: wisdom is ignored: " in ran.stderr
    assert ("version" if content and "version" in content else str(path)) in ran.stderr


@pytest.mark.parametrize("name", ["version", "processor", "instruction_set"])
def test_wisdom_of_another_machine_is_ignored(plan, name):
    """Wisdom of another machine is ignored with a warning that says what differs."""
    plan.tuned()
    found = onnxpool.wisdom()
    ways.learned.clear()
    for changed in ({**found, name: "other"}, {key: value for key, value in found.items() if key != name}):
        with pytest.warns(RuntimeWarning, match=f"wisdom is ignored: its {name} is"):
            assert onnxpool.load_wisdom(changed) == 0
    assert not ways.learned


@pytest.mark.parametrize("entry", [
    ["passes", False, 1.0], ["none", False, 1.0, 1], ["passes", 0, 1.0, 1], ["passes", False, 3.0, 1],
    ["passes", False, "1", 1], ["passes", False, 1.0, 0], ["passes", False, 1.0, 1e9], [[], {}, None, None], None,
    "abcd", {"step": "passes"}])
def test_an_entry_that_is_no_way_is_ignored(entry):
    """An entry that describes no way is ignored, and other entries are loaded."""
    found = onnxpool.wisdom() | {"ways": {"[1]": entry, "[2]": ["direct", False, 1, 1]}}
    with pytest.warns(RuntimeWarning, match="1 of 2 entries"):
        assert onnxpool.load_wisdom(found) == 1
    assert ways.learned == {"[2]": ways.Way("direct", False, 1.0, 1)}


def test_a_form_that_changes_bits_is_not_used():
    """Edited data cannot swap the rows and the lanes of a whole channel, which are added in different orders."""
    plan = onnxpool.GlobalAveragePool().plan((2, 21, 8, 8), np.float32)
    x = np.random.default_rng(0).standard_normal(plan.shape, np.float32)
    y, usual = plan(x), plan._row_major_pool().setup
    for adjacent in (False, True):
        ways.learned[layout.key_of(plan.request, *plan._memory(x, y, None))] = ways.Way("whole", adjacent, 1.0, 1)
        onnxpool.clear_caches()
        again = plan.operator.plan(plan.shape, plan.dtype)
        assert again._row_major_pool().setup.form.apart == usual.form.apart
        assert same_bits(again(x), y)


def test_a_way_that_does_not_fit_is_not_used(plan):
    """Costs choose as usual if the learned way does not fit, as when someone has edited the data."""
    usual = plan._row_major_pool().setup.stages
    plan.tuned()
    (key,) = ways.learned
    ways.learned[key] = ways.Way("whole", False, 1.0, 1)
    onnxpool.clear_caches()
    again = plan.operator.plan(plan.shape, plan.dtype)
    assert again._row_major_pool().setup.stages == usual


@pytest.mark.parametrize("data", [None, [], "{}"])
def test_wisdom_must_be_a_mapping(data):
    """Wisdom must be a mapping, and other arguments are refused."""
    with pytest.raises(PoolTypeError, match="must be a mapping"):
        onnxpool.load_wisdom(data)


@pytest.mark.parametrize("shape", [(1, 64, 15, 15), (2, 64, 90, 90)])
def test_nodes_of_sessions_are_tuned(monkeypatch, shape):
    """Each new shape is measured once, with the array of the first run, which several threads share in parts."""
    measured = []
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: measured.append(len(calls)) or len(calls) - 1)
    options = onnxruntime.SessionOptions()
    register(options, "all", tune=True)
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    model = node_model("AveragePool", [x], {"kernel_shape": [3, 3]}, opset=22)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feed = {session.get_inputs()[0].name: x}
    expected = onnxpool.average_pool(x, 3)
    for _ in range(3):
        (y,) = session.run(None, feed)
        assert same_bits(y, expected)
        assert len(measured) == 1
    assert len(ways.learned) == 1


def test_tune_must_be_a_bool():
    """The option `tune` must be a bool. If it is refused, the options can still be registered."""
    options = onnxruntime.SessionOptions()
    with pytest.raises(PoolTypeError, match="tune must be a bool"):
        register(options, tune=1)
    register(options, tune=False)


def test_bench_tunes(tmp_path, capsys, monkeypatch):
    """`onnxpool bench --tune FILE` shows the times before and after, and writes what it learned."""
    import onnx
    monkeypatch.setattr(ways, "fastest", lambda calls, seconds: len(calls) - 1)
    path, file = tmp_path / "m.onnx", tmp_path / "w.json"
    onnx.save(node_model("AveragePool", [data((1, 64, 15, 15))], {"kernel_shape": [3, 3]}, opset=22), path)
    assert command.main(["bench", str(path), "--tune", str(file), "--shape", "x0=1,64,15,15"]) == 0
    head, row, *_ = capsys.readouterr().out.splitlines()
    assert "tuned us" in head
    assert all(float(number) > 0 for number in row.split()[-4:])
    assert json.loads(file.read_text()) == onnxpool.wisdom()
    assert len(ways.learned) == 1
    assert command.main(["bench", str(path), "--tune", str(tmp_path / "none" / "w.json")]) == 2
    assert "no such directory" in capsys.readouterr().err



def test_replaced_pools_are_bounded():
    """A plan keeps a bounded number of replaced pools, which threads may still use."""
    x = np.ones((1, 40, 17, 17), np.float32)
    plan = onnxpool.MaxPool(kernel_shape=3).plan(x.shape, x.dtype)
    y = plan(x)
    plan.tuned(seconds=1e-3, num_threads=1)
    (key, way), = ways.learned.items()
    before = sum(type(one).__name__ == "Pools" for one in gc.get_objects())
    for turn in range(100):
        ways.learned[key] = way._replace(room=[0.5, 2.0][turn % 2])
        assert same_bits(plan.tuned(num_threads=1)(x), y)
    assert sum(type(one).__name__ == "Pools" for one in gc.get_objects()) - before <= 40
