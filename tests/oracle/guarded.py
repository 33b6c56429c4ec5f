"""Memory between inaccessible pages: reading or writing one byte too far kills the process."""

import ctypes
import math
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
NO_ACCESS, READ, READ_WRITE = 0, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
CANARY = 0xA5

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Slot:
    """Some pages of memory, with an inaccessible page before and after them."""

    def __init__(self, pages):
        self.size = pages * PAGE
        self.memory = mmap.mmap(-1, self.size + 2 * PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.inside = np.frombuffer(self.memory, np.uint8, self.size, PAGE)
        self.protect(0, PAGE, NO_ACCESS)
        self.protect(PAGE + self.size, PAGE, NO_ACCESS)
        self.place = slice(0, 0)

    def protect(self, offset, size, access):
        """Set the permissions of some pages."""
        if libc.mprotect(self.address + offset, size, access):
            raise OSError(ctypes.get_errno(), "mprotect")

    def hold(self, shape, dtype, at_end, fill=CANARY):
        """An array that ends at the page after it, or begins at the page before it; bytes around it are canaries."""
        size = math.prod(shape) * dtype.itemsize
        start = self.size - size if at_end else 0
        self.place = slice(start, start + size)
        self.inside[max(0, start - PAGE) : start + size + PAGE] = CANARY
        self.inside[self.place] = fill
        return self.inside[self.place].view(dtype).reshape(shape)

    def freeze(self):
        """Forbid writing."""
        self.protect(PAGE, self.size, READ)

    def thaw(self):
        """Allow writing."""
        self.protect(PAGE, self.size, READ_WRITE)

    def untouched(self, *, array_too):
        """Whether the canaries around the array, and perhaps in it, are intact."""
        around = self.inside[max(0, self.place.start - PAGE) : self.place.start]
        behind = self.inside[self.place.stop : self.place.stop + PAGE]
        own = self.inside[self.place] if array_too else self.inside[:0]
        return all(bool((part == CANARY).all()) for part in (around, behind, own))
