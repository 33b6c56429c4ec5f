# Descriptions of nodes by onnxruntime

cdef class NodeInfo:
    """A node as described by onnxruntime."""

    cdef OrtApi api
    cdef const OrtKernelInfo* info

    cdef object value(self, bytes name, str type):
        """The value of an attribute of a given type, or None if the node does not have it."""
        cdef float real = 0
        cdef int64_t integer = 0
        cdef size_t size = 0
        if type == "int":
            return integer if worked(self.api, get_int(self.api, self.info, name, &integer)) else None
        if type == "float":
            return real if worked(self.api, get_float(self.api, self.info, name, &real)) else None
        if type == "string":
            return self.text(name, size) if worked(self.api, get_text(self.api, self.info, name, NULL, &size)) else None
        return self.integers(name, size) if worked(self.api, get_ints(self.api, self.info, name, NULL, &size)) else None

    cdef list input_dtypes(self):
        """The dtype of each input, or None for an omitted one."""
        cdef size_t count = 0
        check(self.api, get_node_input_count(self.api, self.info, &count))
        return [self.input_dtype(i) for i in range(count)]

    cdef object input_dtype(self, size_t index):
        cdef OrtTypeInfo* info = NULL
        cdef const OrtTensorTypeAndShapeInfo* tensor = NULL  # belongs to info
        cdef int element = 0
        if not worked(self.api, get_input_type(self.api, self.info, index, &info)):
            return None
        try:
            check(self.api, get_tensor_info(self.api, info, &tensor))
            check(self.api, get_element_type(self.api, tensor, &element))
        finally:
            release_type(self.api, info)
        return nodes.dtype(element)

    cdef object text(self, const char* name, size_t size):
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_text(self.api, self.info, name, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")

    cdef object integers(self, const char* name, size_t size):
        cdef array.array values = array.array("q", bytes(size * sizeof(int64_t)))
        check(self.api, get_ints(self.api, self.info, name, <int64_t*>values.data.as_longlongs, &size))
        return tuple(values)

    cdef str name(self):
        """The node's name, or the name of its first output if it has none."""
        cdef size_t size = 0
        if not worked(self.api, get_node_name(self.api, self.info, NULL, &size)):
            return ""
        if size <= 1:  # only the terminating zero
            return self.output_name(0)
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_node_name(self.api, self.info, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")

    cdef str output_name(self, size_t index):
        """The name of an output, or an empty string if the node does not have it."""
        cdef size_t count = 0, size = 0
        check(self.api, get_output_count(self.api, self.info, &count))
        if index >= count:
            return ""
        check(self.api, get_output_name(self.api, self.info, index, NULL, &size))
        cdef bytearray buffer = bytearray(size)
        check(self.api, get_output_name(self.api, self.info, index, buffer, &size))
        return bytes(buffer[:size - 1]).decode(errors="replace")
