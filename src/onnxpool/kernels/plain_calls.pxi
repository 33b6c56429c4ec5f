"""Plain calls: if only the addresses of arrays are new to a plan, they go straight to its pool."""
cimport cython


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

    cdef run(self, cnp.ndarray x, cnp.ndarray y, int threads, quantisation):
        """Reduce x into y, which must both have been checked."""
        cdef Operands operands
        memset(&operands, 0, sizeof(Operands))
        operands.x, operands.y = self.x, self.y
        operands.x.data, operands.y.data = <char*> cnp.PyArray_DATA(x), <char*> cnp.PyArray_DATA(y)
        self.pool._run(&operands, threads, quantisation)


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
        if known and (num_threads is None or (type(num_threads) is int and num_threads > 0)):
            plain = known[0]
            if plain.quantised == (len(inputs) > 0) and plain.takes(x, plain.ndim, plain.x_shape):
                y = plain.new_result() if out is None else out
                if out is None or plain.may_write(x, y):
                    plain.run(x, y, 1 if plain.serial else self._team(num_threads),
                              self._rule(inputs) if plain.quantised else None)
                    return y
        return self._call(x, inputs, out, num_threads)
