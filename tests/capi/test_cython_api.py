"""Pooling without the GIL, from Cython, C, Numba and ctypes: the same bits, and a stable ABI."""

import ctypes
import re
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import native
import numpy as np
import pytest
from building import build, compile_c
from calls import INDICES, POOLS, QLINEAR, SeededChoices, draw_pool, gapped
from onnxpool_conformance.oracle import DTYPES
from programs import program
from support import ROOT

import onnxpool
from onnxpool import cython_api

# The ABI. Nothing here ever changes, but there may be additions.

SIGNATURES = {
    "onnxpool_abi_version": "int (void)",
    "onnxpool_prepare": "HANDLE *(PyObject *, PyObject *)",
    "onnxpool_prepare_geometry": "HANDLE *(GEOMETRY const *)",
    "onnxpool_retain": "void (HANDLE *)",
    "onnxpool_release": "void (HANDLE *)",
    "onnxpool_output_shape": "int (HANDLE const *, int64_t *)",
    "onnxpool_run": "int (HANDLE const *, void const *, void *, int64_t *, int)",
    "onnxpool_message": "char const *(int)",
}
STRUCTS = {
    "HANDLE": "struct __pyx_t_8onnxpool_10cython_api_onnxpool_handle",
    "GEOMETRY": "struct __pyx_t_8onnxpool_10cython_api_onnxpool_geometry",
}
OFFSETS = {
    "size": 0, "operation": 8, "dtype": 12, "opset": 16, "ndim": 20, "channels_last": 24, "return_indices": 28,
    "storage_order": 32, "ceil_mode": 36, "count_include_pad": 40, "auto_pad": 44, "p": 48, "shape": 56,
    "kernel_shape": 64, "strides": 72, "pads": 80, "dilations": 88, "x_strides": 96, "y_strides": 104,
    "indices_strides": 112, "x_scale": 120, "y_scale": 124, "x_zero_point": 128, "y_zero_point": 132,
}
CONSTANTS = {
    "ABI_VERSION": 1,
    "AVERAGE_POOL": 1, "MAX_POOL": 2, "LP_POOL": 3, "GLOBAL_AVERAGE_POOL": 4, "GLOBAL_MAX_POOL": 5,
    "GLOBAL_LP_POOL": 6, "QLINEAR_AVERAGE_POOL": 7, "QLINEAR_GLOBAL_AVERAGE_POOL": 8, "NHWC_MAX_POOL": 9,
    "FLOAT32": 1, "UINT8": 2, "INT8": 3, "FLOAT16": 10, "FLOAT64": 11, "BFLOAT16": 16,
    "NOTSET": 0, "SAME_UPPER": 1, "SAME_LOWER": 2, "VALID": 3,
    "OK": 0, "NULL_POINTER": 1, "BAD_INDICES": 2, "BAD_THREADS": 3, "NO_MEMORY": 4,
}
PROBE = f"""
from onnxpool.cython_api cimport {", ".join(f"ONNXPOOL_{name}" for name in CONSTANTS)}
from onnxpool.cython_api cimport onnxpool_abi_version, onnxpool_geometry
cdef onnxpool_geometry g
size, offsets = sizeof(g), {{ {", ".join(f"'{name}': <char*> &g.{name} - <char*> &g" for name in OFFSETS)} }}
constants = {{ {", ".join(f"'{name}': ONNXPOOL_{name}" for name in CONSTANTS)} }}
version = onnxpool_abi_version()
"""


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The example extension."""
    return build(Path(__file__).parent / "extension" / "frames.pyx", tmp_path_factory.mktemp("frames"))


def test_exported_functions_stay() -> None:
    """The capsules have the names and signatures that existing extensions were built with."""
    expected = {}
    for name, signature in SIGNATURES.items():
        for short, struct in STRUCTS.items():
            signature = signature.replace(short, struct)
        expected[name] = signature

    assert {name: native.capsule_name(capsule).decode() for name, capsule in native.CAPSULES.items()} == expected


def test_layout_and_numbers_stay(tmp_path: Path) -> None:
    """An extension sees the same struct offsets and the same numbers, and there are no further numbers."""
    source = tmp_path / "probe.pyx"
    source.write_text(PROBE)
    probe = build(source, tmp_path)
    declared = Path(cython_api.__file__).with_name("cython_api.pxd").read_text()

    assert (probe.size, probe.offsets) == (136, OFFSETS)
    assert probe.constants == CONSTANTS
    assert set(re.findall(r"^    ONNXPOOL_(\w+) =", declared, re.MULTILINE)) == set(CONSTANTS)
    assert probe.version == native.version() == 1


def test_the_header_says_the_same(tmp_path: Path) -> None:
    """The header gives C and C++ the same struct offsets, numbers and functions."""
    header = Path(cython_api.__file__).with_name("onnxpool.h").read_text()
    claims = [f"offsetof(onnxpool_geometry, {name}) == {offset}" for name, offset in OFFSETS.items()]
    claims += [f"ONNXPOOL_{name} == {number}" for name, number in CONSTANTS.items()]
    claims += ["sizeof(onnxpool_geometry) == 136"]
    source = tmp_path / "claims.c"
    source.write_text("#include <onnxpool.h>\n#include <assert.h>\n#include <stddef.h>\n"
                      + "".join(f'static_assert({claim}, "{claim}");\n' for claim in claims))

    for language in ("c", "c++") if shutil.which("c++") else ("c",):
        compile_c(source, "-x", language, "-fsyntax-only", folder=tmp_path)
    assert set(re.findall(r"\bONNXPOOL_(\w+)(?: =|\s+1$)", header, re.MULTILINE)) == set(CONSTANTS)
    listed = re.search(r"names\[\] = \{(.*?)\}", header, re.DOTALL)
    assert listed is not None
    members = re.findall(r"^    \w.*\(\*(\w+)\)\(", header, re.MULTILINE)
    assert re.findall(r'"(\w+)"', listed[1]) == members
    assert {f"onnxpool_{name}" for name in members} == set(SIGNATURES)


def test_the_page_lists_the_fields_in_their_order() -> None:
    """The page lists the fields in order, so that the struct can be declared from it."""
    page = (ROOT / "docs" / "c-api.md").read_text()
    rows = re.findall(r"^\| ([^|]*) \| `([^`]*)` \|", page.partition("\n| field | type |")[2], re.MULTILINE)
    fields = [(name, kind) for names, kind in rows for name in re.findall(r"`(\w+)`", names)]
    types = {ctypes.c_int64: "int64_t", ctypes.c_int32: "int32_t", ctypes.c_double: "double", ctypes.c_float: "float"}

    assert fields == [(name, types.get(kind, "const int64_t *")) for name, kind in native.Geometry._fields_]


def test_ctypes_sees_the_same_layout() -> None:
    """The mirror struct of the other tests has the frozen offsets."""
    assert {name: getattr(native.Geometry, name).offset for name, _ in native.Geometry._fields_} == OFFSETS


# Results


def attributes_of(call: Any) -> dict[str, Any]:
    """The fields of a geometry for the attributes of a random call."""
    spatial = call.x.ndim - 2
    fields = {}
    for name, value in call.attributes.items():
        if name == "auto_pad":
            fields[name] = native.AUTO_PADS[value]
        elif name in ("kernel_shape", "strides", "dilations") and isinstance(value, int):
            fields[name] = [value] * spatial
        else:
            fields[name] = value
    return fields


def geometry_of(call: Any, y: Any, indices: Any) -> native.Geometry:
    """The geometry of a random call, for arrays in any memory layout."""
    fields = attributes_of(call)
    fields |= {"x_strides": call.x.strides, "y_strides": y.strides}
    if call.operator == INDICES:
        fields |= {"return_indices": 1, "indices_strides": indices.strides}
    if call.operator in QLINEAR:
        x_scale, x_zero, y_scale, y_zero = (0 if value is None else value.item() for value in call.further)
        fields |= {"x_scale": x_scale, "x_zero_point": x_zero, "y_scale": y_scale, "y_zero_point": y_zero}
    return native.geometry(
        call.operator.split()[0], call.x.shape, call.x.dtype.name, opset=call.opset or 0,
        channels_last=int(call.channels_last), **fields,
    )


CALLS = 60


@pytest.mark.smoke
@pytest.mark.parametrize("operator", [*POOLS, INDICES])
def test_raw_pointers_give_the_bits_of_the_python_call(operator: str) -> None:
    """Random calls through a geometry and raw pointers, in any memory layout, give Python's results, or its error."""
    ran = refused = 0
    for seed in range(CALLS):
        call = draw_pool(SeededChoices([seed, len(operator)]), operator)
        if call.memory == "byte-swapped":
            continue
        try:
            expected = call.run(onnxpool)
        except onnxpool.PoolError as error:
            message = str(error)
            with pytest.raises(onnxpool.PoolError, match=re.escape(message)):
                native.prepare_geometry(geometry_of(call, call.x, call.x))
            refused += 1
            continue
        shape = (expected[0] if operator == INDICES else expected).shape
        y, around = gapped(shape, call.x.dtype) if seed % 2 else (np.empty(shape, call.x.dtype),) * 2
        indices = gapped(shape, np.dtype(np.int64))[0]
        margins = around.copy()
        handle = native.prepare_geometry(geometry_of(call, y, indices))
        assert native.shape_of(handle) == shape
        place = indices.ctypes.data if operator == INDICES else None
        assert native.run(handle, call.x.ctypes.data, y.ctypes.data, place, seed % 3) == native.OK
        native.release(handle)
        if operator == INDICES:
            assert indices.tobytes() == expected[1].tobytes(), call.describe()
            expected = expected[0]
        assert y.tobytes() == expected.tobytes(), call.describe()
        if seed % 2:
            y[...] = margins[(slice(None, None, 2),) * y.ndim]
            assert around.tobytes() == margins.tobytes()
        ran += 1
    assert ran > CALLS // 2


BFLOAT16 = DTYPES["bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("threads", [0, 1, 2, 10**6])
def test_plans_become_handles(dtype: Any, threads: int) -> None:
    """A handle made from a plan gives the plan's bits on arrays large enough for a team."""
    x = (np.random.default_rng(3).standard_normal((4, 16, 90, 111)) * 20).astype(np.int8).astype(dtype)
    plan = onnxpool.MaxPool(kernel_shape=3, strides=2, return_indices=True).plan(x.shape, x.dtype)
    y, indices = np.empty(plan.output_shape, dtype), np.empty(plan.output_shape, np.int64)

    prepared = cython_api.Prepared(plan)
    status = native.run(prepared.address, x.ctypes.data, y.ctypes.data, indices.ctypes.data, threads)

    expected = plan(x)
    assert status == native.OK
    assert (y.tobytes(), indices.tobytes()) == (expected[0].tobytes(), expected[1].tobytes())


def test_quantised_plans_become_handles() -> None:
    """The further inputs of a quantised plan are passed, and checked, when its handle is made."""
    x = np.random.default_rng(1).integers(0, 255, (2, 3, 6, 7), np.uint8)
    plan = onnxpool.QLinearAveragePool(kernel_shape=2).plan(x.shape, x.dtype)
    further = (np.float32(0.1), np.uint8(3), np.float32(0.02), np.uint8(9))
    y = np.empty(plan.output_shape, np.uint8)

    assert native.run(cython_api.Prepared(plan, *further).address, x.ctypes.data, y.ctypes.data, None, 1) == native.OK
    assert y.tobytes() == plan(x, *further).tobytes()
    with pytest.raises(onnxpool.PoolError, match="y_scale must be finite"):
        cython_api.Prepared(plan, *further[:2], np.float32(0), further[3])
    with pytest.raises(onnxpool.PoolError, match="got 1 inputs"):
        cython_api.Prepared(plan)
    with pytest.raises(onnxpool.PoolError, match="takes only X"):
        cython_api.Prepared(onnxpool.GlobalMaxPool().plan(x.shape, np.float32), *further)
    with pytest.raises(onnxpool.PoolError, match="takes only X"):
        native.prepare_geometry(native.geometry("GlobalMaxPool", (1, 1, 2), "float32", x_scale=1.0))


def test_bfloat16_needs_no_import_before() -> None:
    """A geometry of bfloat16 works even if ml_dtypes has not been imported before."""
    text = "import native; print(native.shape_of(native.prepare_geometry("
    text += "native.geometry('GlobalMaxPool', (2, 3, 4), 'bfloat16'))))"

    assert program(text) == "(2, 3, 1)"


def test_a_missing_ml_dtypes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ml_dtypes, bfloat16 is refused, and the error says what to install."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(onnxpool.PoolTypeError, match="pip install ml_dtypes"):
        native.prepare_geometry(native.geometry("GlobalMaxPool", (2, 3, 4), "bfloat16"))


# Without the GIL


@pytest.mark.parametrize("threads", [1, 4])
def test_example_extension(frames: ModuleType, threads: int) -> None:
    """An extension that cimports the functions gives the same bits, including in a team of its own."""
    x = np.random.default_rng(0).standard_normal((9, 3, 40, 50), np.float32)
    expected = onnxpool.max_pool(x, 4, strides=4)
    pooled = np.empty_like(expected)

    frames.max_frames(x, pooled, 4, threads)

    assert pooled.tobytes() == expected.tobytes()
    with pytest.raises(onnxpool.PoolError, match=r"MaxPool-22: kernel_shape\[0\]=41 .* axis 2 has 40"):
        frames.max_frames(x, pooled, 41)
    with pytest.raises(ValueError, match="pooled must have shape"):
        frames.max_frames(x, pooled, 5)


def test_example_extension_in_c(tmp_path: Path) -> None:
    """A C extension finds the functions through the header and gives the same bits."""
    blocks = build(Path(__file__).parent / "extension" / "blocks.c", tmp_path)
    image = np.random.default_rng(4).standard_normal((33, 41), np.float32)
    expected = onnxpool.max_pool(image[None, None], 4, strides=4)
    y = np.empty_like(expected)

    blocks.max_blocks(image, y, 33, 41, 4)

    assert y.tobytes() == expected.tobytes()
    with pytest.raises(onnxpool.PoolError, match=r"kernel_shape\[0\]=34"):
        blocks.max_blocks(image, y, 33, 41, 34)
    with pytest.raises(ValueError, match="another size"):
        blocks.max_blocks(image, y, 33, 41, 5)


def test_runs_leave_the_gil_to_others() -> None:
    """While a long run is in progress in one thread, another thread runs Python."""
    x = np.zeros((64, 64, 96, 96), np.float32)
    plan = onnxpool.AveragePool(kernel_shape=7, strides=1).plan(x.shape, x.dtype)
    y = np.empty(plan.output_shape, np.float32)
    prepared = cython_api.Prepared(plan)
    statuses: list[int] = []
    arguments = (prepared.address, x.ctypes.data, y.ctypes.data, None, 1)
    thread = threading.Thread(target=lambda: statuses.append(native.run(*arguments)))
    turns = 0

    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += not statuses

    assert statuses == [native.OK]
    assert turns > 1


def test_one_handle_for_many_threads() -> None:
    """Threads that share a handle get the same bits as a single thread."""
    random = np.random.default_rng(7)
    inputs = [random.standard_normal((2, 8, 33, 35), np.float32) for _ in range(8)]
    plan = onnxpool.LpPool(kernel_shape=3, p=3).plan(inputs[0].shape, np.float32)
    expected = [plan(x, num_threads=1).tobytes() for x in inputs]
    prepared = cython_api.Prepared(plan)

    def work(caller: int) -> list[int]:
        wrong = []
        for turn in range(100):
            x = inputs[(caller + turn) % len(inputs)]
            y = np.full(plan.output_shape, np.nan, np.float32)
            status = native.run(prepared.address, x.ctypes.data, y.ctypes.data, None, turn % 3)
            if (status, y.tobytes()) != (native.OK, expected[(caller + turn) % len(inputs)]):
                wrong.append(turn)
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert [turn for wrong in pool.map(work, range(8)) for turn in wrong] == []


def test_numba_calls_without_the_gil() -> None:
    """A function compiled by Numba calls the capsule's function on the data of arrays."""
    numba = pytest.importorskip("numba")
    address = numba.extending.get_cython_function_address("onnxpool.cython_api", "onnxpool_run")
    pointer = ctypes.c_size_t
    run = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, pointer, pointer, ctypes.c_int)(address)

    @numba.njit(nogil=True)
    def pool_all(handle: int, batch: Any, pooled: Any) -> int:
        status = 0
        for i in range(len(batch)):
            status |= run(handle, batch[i].ctypes.data, pooled[i].ctypes.data, 0, 1)
        return status

    batch = np.random.default_rng(2).standard_normal((5, 1, 4, 20, 30))
    plan = onnxpool.AveragePool(kernel_shape=(3, 2), pads=1, count_include_pad=1).plan(batch[0].shape, batch.dtype)
    pooled = np.empty((5, *plan.output_shape))
    prepared = cython_api.Prepared(plan)

    assert pool_all(prepared.address, batch, pooled) == native.OK
    for x, y in zip(batch, pooled, strict=True):
        assert y.tobytes() == plan(x).tobytes()
