"""Memory between inaccessible pages: reading or writing one byte too far kills the process."""

import ctypes
import math
import mmap
import sys

import numpy as np
from numpy.lib.array_utils import byte_bounds

PAGE = mmap.PAGESIZE
CANARY = 0xA5

if sys.platform == "win32":
    NO_ACCESS, READ, READ_WRITE = 1, 2, 4
    system = ctypes.WinDLL("kernel32", use_last_error=True)
    system.VirtualProtect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ulong, ctypes.c_void_p)

    def protect(address, size, access):
        """Set the permissions of some pages."""
        if not system.VirtualProtect(address, size, access, ctypes.byref(ctypes.c_ulong())):
            raise ctypes.WinError(ctypes.get_last_error())

else:
    NO_ACCESS, READ, READ_WRITE = 0, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
    system = ctypes.CDLL(None, use_errno=True)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def protect(address, size, access):
        """Set the permissions of some pages."""
        if system.mprotect(address, size, access):
            raise OSError(ctypes.get_errno(), "mprotect")


class Slot:
    """Some pages of memory, with an inaccessible page before and after them."""

    def __init__(self, pages):
        self.size = pages * PAGE
        self.memory = mmap.mmap(-1, self.size + 2 * PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.inside = np.frombuffer(self.memory, np.uint8, self.size, PAGE)
        protect(self.address, PAGE, NO_ACCESS)
        protect(self.address + PAGE + self.size, PAGE, NO_ACCESS)
        self.place = slice(0, 0)

    def take(self, start, size):
        """Use these bytes for an array. Bytes around them become canaries."""
        self.place = slice(start, start + size)
        self.around[...] = CANARY

    @property
    def around(self):
        """The bytes of the array, and the bytes within a page before and after the array."""
        return self.inside[max(0, self.place.start - PAGE) : self.place.stop + PAGE]

    def hold(self, shape, dtype, at_end, fill=CANARY):
        """An array that ends at the page after the slot, or begins at the page before. Bytes around the array are
        canaries."""
        size = math.prod(shape) * dtype.itemsize
        self.take(self.size - size if at_end else 0, size)
        self.inside[self.place] = fill
        return self.inside[self.place].view(dtype).reshape(shape)

    def fits(self, array):
        """Whether a copy with the same strides has room here."""
        low, high = byte_bounds(array) if array.size else (0, 0)
        return high - low <= self.size - array.dtype.alignment

    def copy(self, array, at_end):
        """
        A copy with the same strides, of which the last or first byte lies next to a page.

        If the elements of the array are not aligned, elements of the copy are misaligned by as much. Bytes between
        elements are canaries.
        """
        if not array.size:
            return self.hold(array.shape, array.dtype, at_end)
        low, high = byte_bounds(array)
        start = self.size - (high - low) if at_end else 0
        shift = (low - start) % array.dtype.alignment
        start += shift - array.dtype.alignment if at_end and shift else shift
        self.take(start, high - low)
        there = np.ndarray(array.shape, array.dtype, self.inside, start + array.ctypes.data - low, array.strides)
        there[...] = array
        there.flags.writeable = array.flags.writeable
        return there

    def freeze(self):
        """Forbid writing."""
        protect(self.address + PAGE, self.size, READ)

    def thaw(self):
        """Allow writing."""
        protect(self.address + PAGE, self.size, READ_WRITE)

    def untouched(self, *, array_too):
        """Whether the canaries around the array, and perhaps in it, are intact."""
        before = self.inside[max(0, self.place.start - PAGE) : self.place.start]
        behind = self.inside[self.place.stop : self.place.stop + PAGE]
        own = self.inside[self.place] if array_too else self.inside[:0]
        return all(bool((part == CANARY).all()) for part in (before, behind, own))


def moved(values, slots, choose_end):
    """The values, and the slots for plain arrays among them. Arrays that fit are copied to slots."""
    used, found = [], []
    for value in values:
        slot = slots[len(used)]
        if type(value) is np.ndarray and not value.dtype.hasobject and slot.fits(value):
            found.append(slot.copy(value, choose_end()))
            used.append(slot)
        else:
            found.append(value)
    return found, used
