# What a node says of itself, as onnxruntime tells it.

cdef class Attributes:
    """The attributes that a node gives, as onnxruntime tells them: only if asked by name and type."""

    cdef OrtApi api
    cdef const OrtKernelInfo* info

    cdef object value(self, bytes name):
        """An attribute, or None. A list is asked for last: it is found empty where a scalar is."""
        cdef float real
        cdef int64_t integer
        cdef size_t size = 0
        if worked(self.api, get_int(self.api, self.info, name, &integer)):
            return integer
        if worked(self.api, get_float(self.api, self.info, name, &real)):
            return real
        if worked(self.api, get_text(self.api, self.info, name, NULL, &size)):
            return self.text(name, size)
        if not worked(self.api, get_ints(self.api, self.info, name, NULL, &size)):
            return None
        if size:
            return self.integers(name, size)
        check(self.api, get_floats(self.api, self.info, name, NULL, &size))
        return self.reals(name, size)

    cdef object text(self, const char* name, size_t size):
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_text(self.api, self.info, name, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")

    cdef object integers(self, const char* name, size_t size):
        cdef array.array values = array.array("q", bytes(size * sizeof(int64_t)))
        check(self.api, get_ints(self.api, self.info, name, <int64_t*>values.data.as_longlongs, &size))
        return tuple(values)

    cdef object reals(self, const char* name, size_t size):
        cdef array.array values = array.array("f", bytes(size * sizeof(float)))
        check(self.api, get_floats(self.api, self.info, name, values.data.as_floats, &size))
        return tuple(values)

    cdef str node_name(self):
        cdef size_t size = 0
        if not worked(self.api, get_node_name(self.api, self.info, NULL, &size)):
            return ""
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_node_name(self.api, self.info, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")

    cdef bint has_output(self, size_t index):
        """Whether the node has an output with this number, and a name for it."""
        cdef size_t count = 0, size = 0
        check(self.api, get_output_count(self.api, self.info, &count))
        if index >= count:
            return False
        check(self.api, get_output_name(self.api, self.info, index, NULL, &size))
        return size > 1  # with the zero at its end
