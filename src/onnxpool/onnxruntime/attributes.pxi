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
        """The node's name, or that of its first output if it has none."""
        cdef size_t size = 0
        if not worked(self.api, get_node_name(self.api, self.info, NULL, &size)):
            return ""
        if size <= 1:  # the zero at its end
            return self.output_name(0)
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_node_name(self.api, self.info, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")

    cdef str output_name(self, size_t index):
        """The name of an output; empty if the node does not have it."""
        cdef size_t count = 0, size = 0
        check(self.api, get_output_count(self.api, self.info, &count))
        if index >= count:
            return ""
        check(self.api, get_output_name(self.api, self.info, index, NULL, &size))
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_output_name(self.api, self.info, index, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")
