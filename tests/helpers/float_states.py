"""The floating-point state of the calling thread: rounding, flushing of subnormals, traps, and the flags of exceptions.

A state is a number: MXCSR on x86-64; on aarch64 the control register FPCR, with the flags of FPSR above its 32 bits; on
other processors the rounding mode, with glibc's numbers of traps and flags above its 2 bits, 32 bits each.
"""

import ctypes
import ctypes.util
import mmap
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

PROCESSOR = {"x86_64": "x86-64", "AMD64": "x86-64"}.get(platform.machine(), platform.machine())
EXCEPTIONS = {"ppc64le": 0x3e000000, "riscv64": 0x1f, "s390x": 0xf8}  # FE_ALL_EXCEPT; the lowest bit is inexact
DEFAULT = 0x1f80
STATES_OF_MXCSR = {
    "default": DEFAULT,
    "flush to zero": 0x9f80,
    "subnormals are zeros": 0x1fc0,
    "both": 0x9fc0,
    "down": 0x3f80,
    "up": 0x5f80,
    "towards zero": 0x7f80,
    "up, both": 0xdfc0,
    "unmasked": DEFAULT & ~0x0e80,  # invalid, division by zero, overflow and underflow raise SIGFPE
}

if sys.platform == "linux" and PROCESSOR == "x86-64":
    STATES = STATES_OF_MXCSR
    ROUNDINGS = {0x2000: 0x400, 0x4000: 0x800, 0x6000: 0xc00}  # of MXCSR, and of the x87 control word
    MXCSR = 28  # the offset of MXCSR in fenv_t
    MATH = ctypes.CDLL(ctypes.util.find_library("m"))

    def _environment() -> ctypes.Array[ctypes.c_uint8]:
        environment = (ctypes.c_uint8 * 32)()
        assert MATH.fegetenv(environment) == 0
        return environment

    def get() -> int:
        """The state of this thread."""
        return int.from_bytes(bytes(_environment()[MXCSR:MXCSR + 4]), "little")

    def put(word: int) -> None:
        """Set the state of this thread, with the same rounding in the x87 unit."""
        changed = _environment()
        changed[MXCSR:MXCSR + 4] = list(word.to_bytes(4, "little"))
        control = int.from_bytes(bytes(changed[:2]), "little") & ~0xc00 | ROUNDINGS.get(word & 0x6000, 0)
        changed[:2] = list(control.to_bytes(2, "little"))
        MATH.fesetenv(changed)

elif sys.platform == "win32" and PROCESSOR == "x86-64":
    STATES = STATES_OF_MXCSR
    # Two functions, which use the 32 bytes of their caller's stack that are theirs: store the argument and load MXCSR
    # from there; store MXCSR and load the result.
    FUNCTIONS = bytes.fromhex("894c2408 0fae542408 c3 0fae5c2408 8b442408 c3")
    KERNEL32 = ctypes.WinDLL("kernel32")
    KERNEL32.VirtualAlloc.restype = ctypes.c_void_p
    ADDRESS = KERNEL32.VirtualAlloc(None, len(FUNCTIONS), 0x3000, 0x40)  # committed, executable and writeable
    ctypes.memmove(ADDRESS, FUNCTIONS, len(FUNCTIONS))
    put = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(ADDRESS)
    get = ctypes.CFUNCTYPE(ctypes.c_uint32)(ADDRESS + FUNCTIONS.index(0xc3) + 1)

elif sys.platform == "linux" and PROCESSOR == "aarch64":
    STATES = {
        "default": 0,
        "flush to zero": 1 << 24,
        "halves flush to zero": 1 << 19,
        "both": 1 << 24 | 1 << 19,
        "down": 2 << 22,
        "up": 1 << 22,
        "towards zero": 3 << 22,
        "up, both": 1 << 22 | 1 << 24 | 1 << 19,
        "default NaNs": 1 << 25,
        "alternative halves": 1 << 26,  # their largest exponent stands for numbers
        "alternative handling": 7,  # of subnormals, NaNs and scalars, where the processor has it
        "unmasked": 0x1f00,  # exceptions trap, where the processor can do that
    }
    # glibc's functions ignore some bits, so these are functions of two instructions: msr or mrs, and ret. The kernel
    # makes instruction caches coherent when it maps a file as code.
    CODE = os.memfd_create("functions")
    for instruction in (0xd51b4400, 0xd51b4420, 0xd53b4400, 0xd53b4420):
        os.write(CODE, instruction.to_bytes(4, "little") + 0xd65f03c0.to_bytes(4, "little"))
    PAGE = np.frombuffer(mmap.mmap(CODE, 32, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC), np.uint8)
    os.close(CODE)
    SETTERS = [ctypes.CFUNCTYPE(None, ctypes.c_uint64)(PAGE.ctypes.data + offset) for offset in (0, 8)]
    GETTERS = [ctypes.CFUNCTYPE(ctypes.c_uint64)(PAGE.ctypes.data + offset) for offset in (16, 24)]

    def get() -> int:
        """The state of this thread."""
        control, flags = (int(getter()) for getter in GETTERS)
        return control | flags << 32

    def put(word: int) -> None:
        """Set the state of this thread."""
        for setter, part in zip(SETTERS, (word & 0xffffffff, word >> 32), strict=True):
            setter(part)

elif sys.platform == "linux" and PROCESSOR in EXCEPTIONS and os.confstr("CS_GNU_LIBC_VERSION"):
    # Other C libraries lack some of these functions.
    ALL, MATH = EXCEPTIONS[PROCESSOR], ctypes.CDLL("libm.so.6")
    STATES = {
        "default": 0,
        "towards zero": 1,
        "up": 3 if PROCESSOR == "riscv64" else 2,
        "down": 2 if PROCESSOR == "riscv64" else 3,
    }
    if PROCESSOR != "riscv64":  # it has no traps
        STATES["unmasked"] = (ALL & ALL - 1) << 2

    def get() -> int:
        """The state of this thread."""
        return int(MATH.fegetround() | MATH.fegetexcept() << 2 | MATH.fetestexcept(ALL) << 34)

    def put(word: int) -> None:
        """Set the state of this thread."""
        traps, flags = word >> 2 & 0xffffffff, word >> 34
        MATH.fedisableexcept(ALL & ~traps)
        MATH.feclearexcept(ALL)
        MATH.fesetexcept(flags)
        MATH.fesetround(word & 3)
        MATH.feenableexcept(traps)
        assert get() == word, (hex(get()), hex(word))

else:
    STATES = {}

needs_states = pytest.mark.skipif(not STATES, reason="knows only the states of some processors on Linux")
needs_flushing = pytest.mark.skipif("both" not in STATES, reason="only x86-64 and aarch64 flush subnormals to zero")


@contextmanager
def state(name: str) -> Iterator[None]:
    """Run a block in one of `STATES`, as far as the processor has this state. The block must leave the state and its
    flags unchanged."""
    before = get()
    put(STATES[name])
    try:
        set_to = get()
        yield
        after = get()
    finally:
        put(before)
    assert after == set_to, (hex(after), hex(set_to))


def flushes(name: str) -> bool:
    """Whether subnormals are flushed to zero in one of `STATES`."""
    least, before = np.finfo(np.float32).smallest_subnormal, get()
    put(STATES[name])
    flushed = np.multiply(least, np.float32(4)) == 0
    put(before)
    return bool(flushed)
