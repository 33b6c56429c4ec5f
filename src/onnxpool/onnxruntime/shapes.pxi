# The shapes of results, told before a session runs: what onnxruntime plans with, and what its users see.

cdef class Inference:
    """A node whose result's shape is asked for."""

    cdef OrtApi api
    cdef OrtShapeInferContext* context
    cdef int element  # of X; an operator has one such function for all element types

    cdef object attribute(self, bytes name, set types):
        """An attribute of one of these types. onnxruntime does not tell a type from another, where it finds nothing."""
        cdef const OrtOpAttr* found = NULL
        cdef int64_t integers[2 * MOST_AXES]
        cdef char text[64]
        cdef float real = 0
        cdef size_t size = 0
        if not worked(self.api, get_node_attribute(self.api, self.context, name, &found)) or found == NULL:
            return None
        value = None
        if "ints" in types and self.read(found, OP_ATTR_INTS, integers, sizeof(integers), &size):
            value = tuple([integers[i] for i in range(size // sizeof(int64_t))])
        if not value and "int" in types and self.read(found, OP_ATTR_INT, integers, sizeof(int64_t), &size):
            value = integers[0]
        if not value and "float" in types and self.read(found, OP_ATTR_FLOAT, &real, sizeof(float), &size):
            value = real
        if not value and "string" in types and self.read(found, OP_ATTR_STRING, text, sizeof(text), &size):
            value = text[:size].rstrip(b"\0").decode(errors="replace")
        return value

    cdef bint read(self, const OrtOpAttr* attribute, int type, void* data, size_t room, size_t* size) noexcept:
        return worked(self.api, read_attribute(self.api, attribute, type, data, room, size))

    cdef object shape(self):
        """The shape of X: sizes, or names, or None for what is not known."""
        cdef OrtTensorTypeAndShapeInfo* info = NULL  # belongs to onnxruntime
        cdef int64_t sizes[MOST_AXES]
        cdef const char* names[MOST_AXES]
        cdef size_t rank = 0
        check(self.api, get_input_type_and_shape(self.api, self.context, 0, &info))
        check(self.api, get_element_type(self.api, info, &self.element))
        check(self.api, get_rank(self.api, info, &rank))
        if rank > MOST_AXES:
            return ()
        check(self.api, get_sizes(self.api, info, sizes, rank))
        check(self.api, get_size_names(self.api, info, names, rank))
        return tuple([sizes[i] if sizes[i] >= 0 else names[i].decode(errors="replace") or None for i in range(rank)])

    cdef int tell(self, tuple shape) except -1:
        """The shape of the result."""
        cdef OrtTensorTypeAndShapeInfo* info = NULL
        cdef int64_t sizes[MOST_AXES]
        cdef const char* names[MOST_AXES]
        cdef list texts = [size.encode() if isinstance(size, str) else b"" for size in shape]
        for i, size in enumerate(shape):
            sizes[i] = -1 if isinstance(size, str) else size
            names[i] = texts[i]
        check(self.api, create_type_and_shape(self.api, &info))
        try:
            check(self.api, set_element_type(self.api, info, self.element))
            check(self.api, set_sizes(self.api, info, sizes, len(shape)))
            check(self.api, set_size_names(self.api, info, names, len(shape)))
            check(self.api, set_output_type_and_shape(self.api, self.context, 0, info))
        finally:
            release_type_and_shape(self.api, info)
        return 0


cdef OrtStatus* infer_shape(const OrtCustomOp* op, OrtShapeInferContext* context) noexcept with gil:
    """The shape of a node's results, if it follows from what is known. What is wrong with a node, it says itself."""
    cdef Inference node = Inference()
    node.api, node.context = (<const Operator*>op).api, context
    try:
        kind = <object>(<const Operator*>op).kind
        values = {name: node.attribute(name.encode(), types) for name, types in kind.attributes.items()}
        shape = kind.inferred({name: value for name, value in values.items() if value is not None}, node.shape())
        if shape is not None:
            node.tell(shape)
    except BaseException as error:
        return refusal(node.api, error)
    return NULL
