# Nodes of sessions: creation, calls and destruction

cdef class Kernel:
    """A node of a session, with everything that its calls need."""

    cdef OrtApi api
    cdef object node
    cdef object record
    cdef object counting  # the lock of the record's counters: threads may run the same session at once
    cdef OrtOp* theirs  # onnxruntime's own operator, if it is preferred and exists
    cdef set refused  # shapes for which it failed, but onnxpool's did not

    def __dealloc__(self):
        if self.theirs != NULL:
            release_op(self.api, self.theirs)

    cdef int count(self, str calls) except -1:
        """Add one to a counter of the record."""
        with self.counting:
            setattr(self.record, calls, getattr(self.record, calls) + 1)
        return 0

    cdef int refuse(self, str reason, shapes=None) except -1:
        """Note that onnxruntime's operator failed, and not to try it again for these shapes of inputs."""
        with self.counting:
            self.record.onnxruntime_error = self.record.onnxruntime_error or reason
            if shapes is not None:
                if len(self.refused) >= MOST_REFUSED:
                    self.refused.clear()
                self.refused.add(shapes)
        return 0

    cdef object input(self, OrtKernelContext* context, size_t index, const OrtValue** out):
        """An input as an array that shares its memory, or None if the node omits it."""
        cdef const OrtValue* value = NULL
        cdef OrtTensorTypeAndShapeInfo* info = NULL
        cdef int64_t[MOST_AXES] sizes
        cdef size_t rank = 0
        check(self.api, get_input(self.api, context, index, &value))
        out[0] = value
        if value == NULL:
            return None
        check(self.api, get_type_and_shape(self.api, value, &info))
        try:
            check(self.api, get_rank(self.api, info, &rank))
            if rank > MOST_AXES:
                raise PoolError(f"{self.node.operator.label}: an input has {rank} axes, more than {MOST_AXES}")
            check(self.api, get_sizes(self.api, info, sizes, rank))
        finally:
            release_type_and_shape(self.api, info)
        return self.array(<OrtValue*>value, sizes, rank, self.node.input_dtypes[index], cnp.NPY_ARRAY_C_CONTIGUOUS)

    cdef object output(self, OrtKernelContext* context, size_t index, tuple shape, OrtValue** out):
        """An output of the given shape, which onnxruntime allocates, as an array that shares its memory."""
        cdef int64_t[MOST_AXES] sizes
        for i in range(len(shape)):
            sizes[i] = shape[i]
        check(self.api, get_output(self.api, context, index, sizes, len(shape), out))
        return self.array(out[0], sizes, len(shape), self.node.output_dtypes[index], cnp.NPY_ARRAY_CARRAY)

    cdef object array(self, OrtValue* value, const int64_t* sizes, int rank, dtype, int flags):
        cdef void* data = NULL
        cdef cnp.npy_intp[MOST_AXES] shape
        cdef int i
        check(self.api, get_data(self.api, value, &data))
        for i in range(rank):
            shape[i] = sizes[i]
        Py_INCREF(dtype)  # the array steals this reference
        array = PyArray_NewFromDescr(<PyTypeObject*> cnp.ndarray, <cnp.PyArray_Descr*> dtype, rank, shape, NULL, data,
                                     flags, NULL)
        PyArray_UpdateFlags(array, cnp.NPY_ARRAY_ALIGNED)
        return array


cdef OrtStatus* create(const OrtCustomOp* op, OrtApi api, const OrtKernelInfo* info, void** out) noexcept with gil:
    """Called when a node of a session is created."""
    cdef NodeInfo node
    cdef Kernel kernel
    where = ""
    try:
        node, kernel = NodeInfo(), Kernel()
        node.api, node.info, kernel.api, kernel.counting, kernel.refused = api, info, api, allocate_lock(), set()
        name = node.name()
        where = f"node {name!r}: "
        kind = <object>(<const CustomOperator*>op).kind
        values = {key: node.value(key.encode(), type) for key, type in kind.attributes.items()}
        kernel.node = kind.node({key: value for key, value in values.items() if value is not None},
                                node.input_dtypes(), node.output_name(1) != "")
        reason = ""
        if kernel.node.theirs is not None:
            reason = make_theirs(kernel, info)
        kernel.record = nodes.record(name, kernel.node, kernel.theirs != NULL, reason)
    except BaseException as error:
        return refusal(api, error, where)
    Py_INCREF(kernel)
    out[0] = <void*>kernel
    return NULL


cdef str make_theirs(Kernel kernel, const OrtKernelInfo* info):
    """Make onnxruntime's own operator for a node. Return the reason if it has none for this version and element
    type."""
    cdef OrtApi api = kernel.api
    cdef OrtOpAttr* attributes[MOST_ATTRIBUTES]
    cdef const char* constraints[MOST_PORTS]
    cdef int types[MOST_PORTS]
    cdef int count = 0
    cdef size_t inputs = 0
    theirs = kernel.node.theirs
    cdef bytes name = theirs.operator.encode()
    cdef list texts = [constraint.encode() for constraint, _ in theirs.types]
    for i, (_, number) in enumerate(theirs.types):
        constraints[i], types[i] = texts[i], number
    check(api, get_node_input_count(api, info, &inputs))
    try:
        for key, value in theirs.attributes.items():
            attributes[count] = new_attribute(api, key.encode(), value)
            count += 1
        reason = message(api, create_op(api, info, name, b"", theirs.version, constraints, types, len(texts),
                                        <const OrtOpAttr* const*>attributes, count, inputs,
                                        len(kernel.node.output_dtypes), &kernel.theirs))
        if reason:
            kernel.theirs = NULL
    finally:
        for i in range(count):
            release_attribute(api, attributes[i])
    return reason


cdef OrtOpAttr* new_attribute(OrtApi api, bytes name, value) except NULL:
    cdef OrtOpAttr* attribute = NULL
    cdef array.array integers
    cdef float real
    cdef bytes text
    if isinstance(value, str):
        text = value.encode()
        check(api, create_attribute(api, name, <const char*>text, len(text), OP_ATTR_STRING, &attribute))
    elif isinstance(value, float):
        real = value
        check(api, create_attribute(api, name, &real, 1, OP_ATTR_FLOAT, &attribute))
    else:
        integers = array.array("q", value if isinstance(value, tuple) else (value,))
        check(api, create_attribute(api, name, integers.data.as_voidptr, len(integers),
                                    OP_ATTR_INTS if isinstance(value, tuple) else OP_ATTR_INT, &attribute))
    return attribute


cdef void destroy(void* kernel) noexcept nogil:
    """Called when a session is destroyed, perhaps after Python has been finalised, which frees the node anyway."""
    if Py_IsInitialized():
        forget(kernel)


cdef void forget(void* kernel) noexcept with gil:
    (<Kernel>kernel).record.alive = False
    Py_DECREF(<object>kernel)


cdef OrtStatus* compute(void* state, OrtKernelContext* context) noexcept with gil:
    """Called to run a node."""
    cdef Kernel kernel = <Kernel>state
    try:
        run(kernel, context)
    except BaseException as error:
        return refusal(kernel.api, error)
    return NULL


cdef int run(Kernel kernel, OrtKernelContext* context) except -1:
    cdef const OrtValue* given[MOST_PORTS]
    cdef OrtValue* made[MOST_PORTS]
    cdef size_t count = 0, results = len(kernel.node.output_dtypes)
    cdef OrtStatus* status
    check(kernel.api, get_input_count(kernel.api, context, &count))
    inputs = tuple([kernel.input(context, i, &given[i]) for i in range(count)])
    shape = kernel.node.shape_of(inputs[0])
    if shape is not None:
        outputs = tuple([kernel.output(context, i, shape, &made[i]) for i in range(results)])
        if kernel.node.operator._shapes.run(inputs[0], inputs[1:], outputs if results > 1 else outputs[0]):
            return kernel.count("onnxpool_calls")
    plan = kernel.node.plan(inputs[0])
    shape = kernel.node.result_shape(plan, inputs)
    outputs = tuple([kernel.output(context, i, shape, &made[i]) for i in range(results)])
    if kernel.theirs == NULL:
        return run_ours(kernel, context, plan, inputs, outputs)
    shapes = tuple([None if array is None else array.shape for array in inputs])
    if shapes in kernel.refused:
        return run_ours(kernel, context, plan, inputs, outputs)
    while given[count - 1] == NULL:
        count -= 1
    with nogil:
        status = invoke_op(kernel.api, context, kernel.theirs, given, count, made, results)
    reason = message(kernel.api, status)
    if not reason:
        return kernel.count("onnxruntime_calls")
    kernel.refuse(reason)
    run_ours(kernel, context, plan, inputs, outputs)
    return kernel.refuse(reason, shapes)  # the values of the inputs, which onnxpool accepts, were not the reason


cdef int run_ours(Kernel kernel, OrtKernelContext* context, plan, tuple inputs, tuple outputs) except -1:
    """Run a node on onnxpool."""
    cdef size_t count
    cdef OrtStatus* status
    cdef void* work
    kernel.count("onnxpool_calls")
    cdef list pieces = nodes.pieces(plan, inputs, outputs if len(outputs) > 1 else outputs[0])
    if len(pieces) == 1:
        return call(pieces[0])
    work, count = <void*>pieces, len(pieces)
    with nogil:
        status = parallel_for(kernel.api, context, call_piece, count, work)
    check(kernel.api, status)
    for piece in pieces:
        if isinstance(piece, BaseException):
            raise piece
    return 0


cdef int call(tuple piece) except -1:
    plan, inputs, out = piece
    plan(*inputs, out=out, num_threads=1)
    return 0


cdef void call_piece(void* work, size_t index) noexcept with gil:
    """Called in a thread of onnxruntime for a piece of a call. An error replaces its piece and cancels later pieces."""
    cdef list pieces = <list>work
    piece = pieces[index]
    if piece is None:
        return
    try:
        call(piece)
        pieces[index] = None  # releases the arrays, which must not outlive the call
    except BaseException as error:
        pieces[:] = [None] * len(pieces)
        pieces[index] = error
