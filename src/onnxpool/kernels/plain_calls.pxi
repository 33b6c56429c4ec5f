"""Plain calls: if only the addresses of arrays are new to a plan, they go straight to its pool."""
cimport cython

cdef enum:
    SCALARS = 4  # inputs of a quantised operator after X


cdef class Quantisation:
    """The scales and zero points of a call, and the rule that they make: later calls mostly give the same ones."""
    cdef Py_ssize_t count
    cdef int[SCALARS] typenum    # dtypes of arrays; -1 for other objects
    cdef int64_t[SCALARS] bits   # elements of arrays, which may change
    cdef tuple objects
    cdef Rule rule

    def __cinit__(self, tuple inputs not None, rule):
        cdef int i
        self.count, self.objects = len(inputs), inputs
        for i in range(self.count):
            self.typenum[i] = read_scalar(inputs[i], &self.bits[i])
        set_rule(&self.rule, rule)

    cdef bint equals(self, tuple inputs):
        """Whether these inputs make the same rule, as far as can be seen at once."""
        cdef int64_t bits
        cdef int i
        if len(inputs) != self.count:
            return False
        for i in range(self.count):
            if self.typenum[i] >= 0:
                if read_scalar(inputs[i], &bits) != self.typenum[i] or bits != self.bits[i]:
                    return False
            elif inputs[i] is not self.objects[i] or not isinstance(inputs[i], (float, int, cnp.generic, type(None))):
                return False
        return True


cdef int read_scalar(x, int64_t* bits):
    """Read the element of an array that holds only one, and return its dtype; -1 for other objects."""
    cdef cnp.ndarray a
    if not cnp.PyArray_CheckExact(x):
        return -1
    a = x
    if cnp.PyArray_SIZE(a) != 1 or a.ndim > 1 or not cnp.PyArray_ISCARRAY_RO(a) or cnp.PyArray_ITEMSIZE(a) > 8:
        return -1
    bits[0] = 0
    memcpy(bits, cnp.PyArray_DATA(a), cnp.PyArray_ITEMSIZE(a))
    return cnp.PyArray_TYPE(a)


cdef class PlainPool:
    """A pool for C-contiguous, aligned arrays of its own dtype.

    Parameters
    ----------
    pool : Pool
    x_shape, y_shape : tuple of int
        Shapes of the arrays.
    dtype : numpy.dtype
    quantised : bool
        Whether further inputs give scales and zero points.
    serial : bool
        Whether a second thread brings no gain.
    """
    cdef Pool pool
    cdef Quantisation quantisation  # of the last call
    cdef bint quantised, serial
    cdef int ndim, y_ndim, typenum
    cdef Py_ssize_t* x_shape  # the other shape and the strides follow it in memory
    cdef Py_ssize_t* y_shape
    cdef Operand x, y  # without the addresses of data

    def __cinit__(self, Pool pool not None, x_shape, y_shape, dtype, bint quantised, bint serial):
        cdef int a
        cdef Py_ssize_t* strides
        self.pool, self.quantised, self.serial = pool, quantised, serial
        self.ndim, self.y_ndim, self.typenum = len(x_shape), len(y_shape), dtype.num
        self.x_shape = <Py_ssize_t*> calloc(2 * (self.ndim + self.y_ndim), sizeof(Py_ssize_t))
        if self.x_shape == NULL:
            raise MemoryError("onnxpool: cannot allocate memory for a plan")
        self.y_shape, strides = self.x_shape + self.ndim, self.x_shape + self.ndim + self.y_ndim
        for a in range(self.ndim):
            self.x_shape[a] = x_shape[a]
        for a in range(self.y_ndim):
            self.y_shape[a] = y_shape[a]
        self.x = Operand(NULL, strides, self.ndim, dtype.itemsize, False)
        self.y = Operand(NULL, strides + self.ndim, self.y_ndim, dtype.itemsize, False)
        lay_strides(strides, x_shape, dtype.itemsize)
        lay_strides(strides + self.ndim, y_shape, dtype.itemsize)

    def __dealloc__(self):
        free(self.x_shape)

    cdef bint takes(self, x, int ndim, const Py_ssize_t* shape):
        """Whether x is a plain array of this dtype and shape."""
        cdef cnp.ndarray a
        cdef int i
        if not cnp.PyArray_CheckExact(x):
            return False
        a = x
        if a.ndim != ndim or cnp.PyArray_TYPE(a) != self.typenum or not cnp.PyArray_ISCARRAY_RO(a):
            return False
        for i in range(ndim):
            if a.shape[i] != shape[i]:
                return False
        return True

    cdef new_result(self):
        return cnp.PyArray_EMPTY(self.y_ndim, <cnp.npy_intp*> self.y_shape, self.typenum, 0)

    cdef bint may_write(self, cnp.ndarray x, y):
        """Whether y is a plain, writable array for results that does not overlap x."""
        cdef cnp.ndarray b
        if not self.takes(y, self.y_ndim, self.y_shape):
            return False
        b = y
        return cnp.PyArray_ISWRITEABLE(b) and (
            cnp.PyArray_BYTES(x) >= cnp.PyArray_BYTES(b) + cnp.PyArray_NBYTES(b)
            or cnp.PyArray_BYTES(b) >= cnp.PyArray_BYTES(x) + cnp.PyArray_NBYTES(x))

    cdef run(self, cnp.ndarray x, cnp.ndarray y, int threads, Quantisation quantisation):
        """Reduce x into y, which must both have been checked."""
        cdef Operands operands
        memset(&operands, 0, sizeof(Operands))
        operands.x, operands.y = self.x, self.y
        operands.x.data, operands.y.data = <char*> cnp.PyArray_DATA(x), <char*> cnp.PyArray_DATA(y)
        if quantisation is not None:
            operands.rule = quantisation.rule
        self.pool._run(&operands, threads)


@cython.auto_pickle(False)  # plans define how they are pickled
cdef class PlainCall:
    """Makes a plan callable in compiled code, because calling a Python method takes as long as pooling a small array.

    The plan's list `_plain` holds a `PlainPool` once there is one. Its methods `_rule` and `_team` turn other arguments
    into parameters, and its method `_call` handles all other calls.
    """

    def __call__(self, x, *inputs, out=None, num_threads=None):
        """Run the operator on an array of the plan's shape and dtype, as `Plan` says."""
        cdef list known = self._plain
        cdef PlainPool plain
        cdef Quantisation quantisation = None
        if known and (num_threads is None or (type(num_threads) is int and num_threads > 0)):
            plain = known[0]
            if plain.quantised == (len(inputs) > 0) and plain.takes(x, plain.ndim, plain.x_shape):
                y = plain.new_result() if out is None else out
                if out is None or plain.may_write(x, y):
                    if plain.quantised:
                        quantisation = plain.quantisation
                        if quantisation is None or not quantisation.equals(inputs):
                            quantisation = plain.quantisation = Quantisation(inputs, self._rule(inputs))
                    plain.run(x, y, 1 if plain.serial else self._team(num_threads), quantisation)
                    return y
        return self._call(x, inputs, out, num_threads)
