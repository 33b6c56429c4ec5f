"""Plain calls: if only the addresses of arrays are new to a plan, the arrays go straight to its pool. Operators keep
pools by shape, and by strides where arrays are cut out of others."""
cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from ..vectorcall cimport PyVectorcall_NARGS, VectorCall

cdef extern from *:
    """
    #include <structmember.h>
    /* Places that any thread reads without a lock. onnxpool_settle sets a place once; onnxpool_replace changes it. */
    #define onnxpool_known(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
    #define onnxpool_replace(place, value) __atomic_exchange_n(place, value, __ATOMIC_ACQ_REL)
    static int onnxpool_settle(PyObject **place, PyObject *value) {
        PyObject *none = NULL;
        return __atomic_compare_exchange_n(place, &none, value, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    /* The offset in an object of the value of an entry in its class's __slots__; 0 for other attributes. */
    static Py_ssize_t onnxpool_offset(PyObject *slot) {
        return Py_TYPE(slot) == &PyMemberDescr_Type ? ((PyMemberDescrObject *)slot)->d_member->offset : 0;
    }
    """
    PyObject* onnxpool_known(PyObject** place) noexcept
    PyObject* onnxpool_replace(PyObject** place, PyObject* value) noexcept
    bint onnxpool_settle(PyObject** place, PyObject* value) noexcept
    Py_ssize_t onnxpool_offset(object slot) noexcept

cdef enum:
    SCALARS = 4  # inputs of a quantised operator after X
    MOST_RENEWALS = 32  # how often a plan's pools are made anew


cdef class Quantisation:
    """The scales and zero points of a call, and the parameters made from them. Later calls mostly pass the same
    ones."""
    cdef Py_ssize_t count
    cdef int[SCALARS] typenum    # dtypes of arrays; -1 for other objects
    cdef int64_t[SCALARS] bits   # elements of arrays at that call, since arrays may change
    cdef tuple objects
    cdef Scales scales
    cdef object maker            # makes parameters from a window's number of taps, for `Template`

    def __cinit__(self, tuple inputs not None, rule=None, maker=None):
        cdef int i
        self.count, self.objects, self.maker = len(inputs), inputs, maker
        for i in range(self.count):
            self.typenum[i] = read_scalar(inputs[i], &self.bits[i])
        if rule is not None:
            set_scales(&self.scales, rule)

    cdef bint equals(self, tuple inputs):
        """Whether these inputs make the same parameters, as far as a quick check can tell."""
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
    """Read the element of an array with only one, and return the array's dtype. Return -1 for other objects."""
    cdef cnp.ndarray a
    if not cnp.PyArray_CheckExact(x):
        return -1
    a = x
    if cnp.PyArray_SIZE(a) != 1 or a.ndim > 1 or not cnp.PyArray_ISCARRAY_RO(a) or cnp.PyArray_ITEMSIZE(a) > 8:
        return -1
    bits[0] = 0
    memcpy(bits, cnp.PyArray_DATA(a), cnp.PyArray_ITEMSIZE(a))
    return cnp.PyArray_TYPE(a)


cdef bint is_plain(x, int ndim, const Py_ssize_t* shape, int typenum):
    """Whether x is a C-contiguous, aligned, native array of this shape and dtype."""
    cdef cnp.ndarray a
    cdef int i
    if not cnp.PyArray_CheckExact(x):
        return False
    a = x
    if a.ndim != ndim or cnp.PyArray_TYPE(a) != typenum or not cnp.PyArray_ISCARRAY_RO(a):
        return False
    for i in range(ndim):
        if a.shape[i] != shape[i]:
            return False
    return True


cdef bint is_nested(cnp.ndarray a):
    """Whether an aligned, native array that is not empty has its axes in C order, perhaps with gaps between elements,
    as arrays cut out of a C-contiguous array have."""
    cdef Py_ssize_t least = cnp.PyArray_ITEMSIZE(a)
    cdef int i
    if not cnp.PyArray_ISBEHAVED_RO(a):
        return False
    for i in range(a.ndim - 1, -1, -1):
        if a.shape[i] > 1:
            if a.strides[i] < least:
                return False
            least = a.strides[i] * a.shape[i]
    return True


cdef Py_ssize_t extent_of(cnp.ndarray a):
    """The bytes from the start of a nested array's first element to the end of its last one."""
    cdef Py_ssize_t extent = cnp.PyArray_ITEMSIZE(a)
    cdef int i
    for i in range(a.ndim):
        if a.shape[i] < 1:
            return 0
        extent += (a.shape[i] - 1) * a.strides[i]
    return extent


cdef bint overlap(cnp.ndarray a, cnp.ndarray b):
    """Whether the memory of two nested arrays overlaps."""
    return (cnp.PyArray_BYTES(a) < cnp.PyArray_BYTES(b) + extent_of(b)
            and cnp.PyArray_BYTES(b) < cnp.PyArray_BYTES(a) + extent_of(a))


cdef class PlainPool:
    """A pool for aligned, native arrays. They are C-contiguous, unless `Shapes` made the pool for other strides.

    `plain_pool` and `Shapes` make it."""
    cdef Pool pool
    cdef Quantisation quantisation  # the last call's, used in critical sections only
    cdef bint quantised, indexed  # whether further inputs are scales and zero points; whether there are indices
    cdef bint serial              # whether a second thread brings no gain
    cdef bint strided             # whether x has gaps between its elements
    cdef bint picks               # whether results are elements of x, which NumPy copies
    cdef Py_ssize_t* kept         # if so, the axes of x that the result has
    cdef Py_ssize_t* steps        # and the distances of the copied elements along these axes
    cdef Template template        # for a pool by shape: its template
    cdef int64_t taps             # and the number of taps of its windows
    cdef int ndim, y_ndim
    cdef int typenum, held_typenum, y_typenum  # dtypes of x, of its elements once cast, and of results
    cdef Py_ssize_t* x_shape  # the shape of y and the strides follow this shape in memory
    cdef Py_ssize_t* y_shape
    cdef Operand x, y, indices  # without the addresses of data

    cdef int _set(self, Pool pool, int ndim, const Py_ssize_t* x_shape, int y_ndim, const Py_ssize_t* y_shape,
                  int typenum, int held_typenum, int y_typenum, Py_ssize_t itemsize) except -1:
        cdef Py_ssize_t* strides
        self.pool, self.ndim, self.y_ndim = pool, ndim, y_ndim
        self.typenum, self.held_typenum, self.y_typenum = typenum, held_typenum, y_typenum
        self.x_shape = <Py_ssize_t*> malloc((2 * ndim + 5 * y_ndim + 1) * sizeof(Py_ssize_t))
        if self.x_shape == NULL:
            raise MemoryError("onnxpool: cannot allocate memory for a plan")
        self.y_shape, strides = self.x_shape + ndim, self.x_shape + ndim + y_ndim
        self.kept, self.steps = strides + ndim + 2 * y_ndim, strides + ndim + 3 * y_ndim
        memcpy(self.x_shape, x_shape, ndim * sizeof(Py_ssize_t))
        memcpy(self.y_shape, y_shape, y_ndim * sizeof(Py_ssize_t))
        self.x = Operand(NULL, strides, ndim, itemsize, False)
        self.y = Operand(NULL, strides + ndim, y_ndim, itemsize, False)
        self.indices = Operand(NULL, strides + ndim + y_ndim, y_ndim, sizeof(int64_t), False)
        lay_strides(strides, self.x_shape, ndim, itemsize)
        lay_strides(strides + ndim, self.y_shape, y_ndim, itemsize)
        lay_strides(strides + ndim + y_ndim, self.y_shape, y_ndim, sizeof(int64_t))
        return 0

    def __dealloc__(self):
        free(self.x_shape)

    cdef bint takes(self, x):
        """Whether x is a plain array of this dtype and shape."""
        return is_plain(x, self.ndim, self.x_shape, self.typenum)

    cdef results(self, cnp.ndarray x, out):
        """The array for the result, or a pair of arrays for the result and indices. They are new, or taken from `out`.
        None if arrays in `out` are not plain, or overlap."""
        if out is None:
            y = cnp.PyArray_EMPTY(self.y_ndim, <cnp.npy_intp*> self.y_shape, self.y_typenum, 0)
            if not self.indexed:
                return y
            return y, cnp.PyArray_EMPTY(self.y_ndim, <cnp.npy_intp*> self.y_shape, cnp.NPY_INT64, 0)
        if not self.indexed:
            return out if self.may_write(x, out, self.y_typenum) else None
        if type(out) is tuple and len(<tuple> out) == 2:
            y, indices = <tuple> out
            if (self.may_write(x, y, self.y_typenum) and self.may_write(x, indices, cnp.NPY_INT64)
                    and not overlap(y, indices)):
                return out
        return None

    cdef bint may_write(self, cnp.ndarray x, y, int typenum):
        """Whether y is a plain, writable array of this dtype with the shape of results, and does not overlap x."""
        return is_plain(y, self.y_ndim, self.y_shape, typenum) and cnp.PyArray_ISWRITEABLE(y) and not overlap(x, y)

    cdef bint recall(self, tuple inputs, Scales* scales):
        """If the last call had the same scales and zero points, copy its parameters. Return whether it had."""
        cdef bint same = False
        with cython.critical_section(self):
            if self.quantisation is not None and self.quantisation.equals(inputs):
                scales[0] = self.quantisation.scales
                same = True
        return same

    cdef remember(self, Quantisation quantisation):
        with cython.critical_section(self):
            self.quantisation = quantisation

    cdef bint run(self, cnp.ndarray x, results, int threads, const Scales* scales) except -1:
        """Reduce x into `results`. Return whether a sum that skips NaNs overflowed, so that Python must correct it."""
        cdef Operands operands
        cdef bint overflowed
        if self.picks:
            self.pick(x, results)
            return False
        if self.held_typenum != self.typenum:
            x = cnp.PyArray_Cast(x, self.held_typenum)
        memset(&operands, 0, sizeof(Operands))
        operands.x, operands.y = self.x, self.y
        operands.x.data = <char*> cnp.PyArray_DATA(x)
        if self.indexed:
            y, indices = <tuple> results
            operands.indices = self.indices
            operands.indices.data = <char*> cnp.PyArray_DATA(indices)
        else:
            y = results
            if self.held_typenum != self.y_typenum:
                y = cnp.PyArray_EMPTY(self.y_ndim, <cnp.npy_intp*> self.y_shape, self.held_typenum, 0)
        operands.y.data = <char*> cnp.PyArray_DATA(y)
        if self.quantised:
            operands.scales = scales[0]
        overflowed = self.pool._run(&operands, threads)
        if y is not results and not self.indexed:
            cnp.PyArray_CopyInto(results, y)
        return overflowed

    cdef int pick(self, cnp.ndarray x, cnp.ndarray y) except -1:
        """Copy every window's element of x, starting with the first element."""
        cdef Py_ssize_t[MOST_AXES] strides
        cdef int a
        for a in range(self.y_ndim):
            strides[a] = self.steps[a] * x.strides[self.kept[a]]
        elements = cnp.PyArray_New(cnp.ndarray, self.y_ndim, <cnp.npy_intp*> self.y_shape, self.typenum,
                                   <cnp.npy_intp*> strides, cnp.PyArray_DATA(x), 0, 0, None)
        return cnp.PyArray_CopyInto(y, elements)

    cdef int read(self, tuple inputs, Scales* scales, plan) except -1:
        """Recall the parameters for these scales and zero points, or have the plan or the template make them."""
        cdef Quantisation quantisation
        cdef tuple given
        if not self.recall(inputs, scales):
            # Copies, because another thread may change the arrays between these two readings.
            given = tuple([value.copy() if cnp.PyArray_CheckExact(value) else value for value in inputs])
            rule = self.template.rule_of(given, self.taps) if plan is None else plan._rule(given)
            quantisation = Quantisation(given, rule)
            scales[0] = quantisation.scales
            self.remember(quantisation)
        return 0


def plain_pool(Pool pool, x_shape, y_shape, dtype, held, result, *, bint quantised, bint indexed, bint serial,
               picked=()):
    """The pool for C-contiguous, aligned arrays of these shapes and this dtype.

    Parameters
    ----------
    pool : Pool, optional
        None if results are elements of x.
    x_shape, y_shape : tuple of int
        Shapes of the arrays.
    dtype, held, result : numpy.dtype
        As for a `Template`.
    quantised, indexed : bool
        Whether further inputs are scales and zero points, and whether there are indices, in an array like y.
    serial : bool
        Whether a second thread brings no gain.
    picked : sequence of (int, int)
        If results are elements of x: for each axis of the result, the axis of x, and the distance between elements.
    """
    cdef PlainPool plain = PlainPool.__new__(PlainPool)
    cdef Py_ssize_t[MOST_AXES] x_sizes, y_sizes
    for a, size in enumerate(x_shape):
        x_sizes[a] = size
    for a, size in enumerate(y_shape):
        y_sizes[a] = size
    plain._set(pool, len(x_shape), x_sizes, len(y_shape), y_sizes, dtype.num, held.num, result.num, held.itemsize)
    plain.quantised, plain.indexed, plain.serial, plain.picks = quantised, indexed, serial, pool is None
    for a, (kept, step) in enumerate(picked):
        plain.kept[<int> a], plain.steps[<int> a] = kept, step
    return plain


@cython.trashcan(True)
cdef class Pools(dict):
    """The pools of a plan, by the strides of arrays, and the pool for plain arrays, once there is one.

    Any thread may add to them. They live as long as their plan, and so does the pool for plain arrays. Calls therefore
    need not count references to either, which would make threads that change the same count wait for each other.
    """
    cdef PyObject* _plain
    cdef Pools _replaced  # the plan's pools before these, which other threads' calls may still be using
    cdef int renewals     # how often the plan's pools were replaced

    def __dealloc__(self):
        Py_XDECREF(self._plain)

    @property
    def plain(self):
        """The pool for plain arrays, or None."""
        cdef PyObject* plain = onnxpool_known(&self._plain)
        return None if plain == NULL else <object> plain

    def settle(self, PlainPool plain not None):
        """Set the pool for plain arrays, unless another thread was faster."""
        Py_INCREF(plain)
        if not onnxpool_settle(&self._plain, <PyObject*> plain):
            Py_DECREF(plain)


cdef bint limited = False  # whether there may be limits on calls


def limit_calls():
    """Check from now on whether each call exceeds a limit."""
    global limited
    limited = True


cdef call_plain(PlainPool plain, plan, x, tuple inputs, out, num_threads):
    """The result of a plan for plain arrays, or None for other arrays."""
    cdef Scales scales
    if plain.quantised != (len(inputs) > 0) or not plain.takes(x):
        return None
    if limited:
        plan._check_limits()
    results = plain.results(x, out)
    if results is None:
        return None
    if plain.quantised:
        plain.read(inputs, &scales, plan)
    plain.run(x, results, 1 if plain.serial or num_threads == 1 else plan._team(num_threads), &scales)
    return results


cdef Py_ssize_t pools_at = 0  # the offset of a plan's pools


def locate_pools(cls):
    """Decorate a class of plans: find the offset of `_pools`, because looking up an attribute counts references."""
    global pools_at
    pools_at = onnxpool_offset(cls._pools)
    if not pools_at:
        raise TypeError(f"{cls.__name__}: plans need a slot _pools")
    return cls


cdef inline PyObject** place_of_pools(plan) noexcept:
    return <PyObject**> (<char*> <PyObject*> plan + pools_at)


ctypedef object (*Caller)(object called, object x, tuple inputs, object out, object num_threads)

cdef tuple OPTIONS = ("out", "num_threads")  # interned, as the keywords of nearly all calls are


cdef bint read_options(PyObject** values, PyObject* keywords, PyObject** options):
    """Read the values of these keywords. Return whether all of them are options."""
    cdef Py_ssize_t i, k
    options[0] = options[1] = <PyObject*> None
    for i in range(PyTuple_GET_SIZE(<tuple> keywords) if keywords else 0):
        for k in range(2):
            if PyTuple_GET_ITEM(<tuple> keywords, i) == PyTuple_GET_ITEM(OPTIONS, k):
                options[k] = values[i]
                break
        else:
            return False
    return True


cdef object call_with(Caller caller, base, object called, PyObject** given, size_t flags, PyObject* keywords):
    """Call an object with x, further inputs and options, as its base class's method `__call__` does."""
    cdef (PyObject*)[2] options
    cdef Py_ssize_t i, count = PyVectorcall_NARGS(flags)
    if count == 0 or not read_options(given + count, keywords, options):
        names = <tuple> keywords if keywords else ()
        return base.__call__(called, *[<object> given[i] for i in range(count)],
                             **{name: <object> given[count + i] for i, name in enumerate(names)})
    return caller(called, <object> given[0], () if count == 1 else tuple([<object> given[i] for i in range(1, count)]),
                  <object> options[0], <object> options[1])


cdef plain_results(plan, x, tuple inputs, out, num_threads):
    """The results of a `PlainCall` for plain arrays, or None for other arguments."""
    cdef PyObject* pools = onnxpool_known(place_of_pools(plan))
    cdef PyObject* plain = NULL
    if pools != NULL:
        plain = onnxpool_known(&(<Pools> pools)._plain)
    if plain == NULL or not (num_threads is None or (type(num_threads) is int and 0 < num_threads <= INT64_MAX)):
        return None
    return call_plain(<PlainPool> plain, plan, x, inputs, out, num_threads)


cdef object run_plan(plan, x, tuple inputs, out, num_threads):
    results = plain_results(plan, x, inputs, out, num_threads)
    return plan._call(x, inputs, out, num_threads) if results is None else results


cdef object call_plan(object plan, PyObject** given, size_t flags, PyObject* keywords):
    return call_with(run_plan, PlainCall, plan, given, flags, keywords)


cdef class PlainCall:
    """Makes a plan callable in compiled code, because calling a Python method takes as long as pooling a small array.

    The plan's class has a slot `_pools`, whose offset `locate_pools` has found. The plan's methods `_rule` and `_team`
    turn other arguments into parameters. Its method `_check_limits` refuses calls that exceed a limit, and its method
    `_call` handles calls that are not plain.
    """

    _vectorcall = PyCapsule_New(<void*> call_plan, "onnxpool.vectorcall", NULL)

    def __call__(self, x, *inputs, out=None, num_threads=None):
        """Run the operator on an array of the plan's shape and dtype, as `Plan` says."""
        return run_plan(self, x, inputs, out, num_threads)

    def _renew(self):
        """Have the next calls make pools anew. Replaced pools stay in memory, so this happens a limited number of
        times."""
        cdef Pools pools = Pools()
        pools.renewals = (<Pools> onnxpool_known(place_of_pools(self))).renewals + 1
        if pools.renewals > MOST_RENEWALS:
            return
        Py_INCREF(pools)
        cdef PyObject* replaced = onnxpool_replace(place_of_pools(self), <PyObject*> pools)
        pools._replaced = <Pools> replaced
        Py_DECREF(<Pools> replaced)


cdef Py_ssize_t generation = 0  # pools by shape of an earlier generation are stale: what choices depend on has changed


def renew_shapes():
    """Plan each shape again at its next call."""
    global generation
    generation += 1


cdef void set_steps(const Request* request, Py_ssize_t* kept, Py_ssize_t* steps) noexcept:
    """Set the axes of X that the result has, and the strides of windows along them."""
    cdef int a, y = 0
    for a in range(request.ndim):
        if request.along[a] < 0 or request.keepdims:
            kept[y], steps[y] = a, request.windows[request.along[a]].stride if request.along[a] >= 0 else 1
            y += 1


cdef class Template:
    """
    What an operator does with arrays of a dtype and a number of axes.

    Parameters
    ----------
    reducer : onnxpool.planning.planner.Reducer
        The reducer of elements, after their conversion if there is one.
    dtype, held, result : numpy.dtype
        The dtypes of arrays, of the elements in loops, and of results. If the first two differ, elements are converted.
    most_converted : int
        The maximum number of elements that are converted at once.
    order : sequence of int
        All axes, as indices count them, slowest first.
    pooled : sequence of int
        The pooled axes.
    windows : sequence of (int, int, int, int, int), optional
        Kernel, stride, dilation and pads along each pooled axis. By default, one window covers these axes.
    mode : str
        The automatic padding.
    keepdims, ceil_mode, counts_pads : bool
        The attributes.
    picks, fills : bool
        Whether results of windows with one tap are elements, which NumPy copies; and whether Python sets the results of
        windows without taps.
    may_cover : bool
        Whether the reduction is another one if the only window is the whole array.
    most_taps : float
        The maximum number of taps of a window for which the reducer is right.
    divisors : (float, float)
        The smallest and the largest divisor for which the reducer is chosen.
    is_learned : callable
        Whether there is a measurement, which Python looks up, for a form and the strides of X and of results.
    maker : callable, optional
        Reads the further inputs of a quantised operator. It returns a function that makes a rule from a window's number
        of taps.
    """
    cdef Reducer reducer
    cdef object maker, is_learned
    cdef Quantisation last           # the last call's
    cdef Attributes given
    cdef int typenum, held_typenum, y_typenum
    cdef Py_ssize_t itemsize, most_converted
    cdef bint converts

    def __cinit__(self, Reducer reducer not None, dtype, held, result, Py_ssize_t most_converted, order, pooled,
                  windows, str mode, *, bint keepdims, bint ceil_mode, bint counts_pads, bint picks, bint fills,
                  bint may_cover, double most_taps, divisors, maker, is_learned):
        cdef Attributes* given = &self.given
        cdef int i, a
        self.reducer, self.maker, self.is_learned, self.itemsize = reducer, maker, is_learned, dtype.itemsize
        self.typenum, self.held_typenum, self.y_typenum = dtype.num, held.num, result.num
        self.most_converted, self.converts = most_converted, dtype != held
        given.recipe, given.ndim, given.rank = &reducer.recipe, len(order), len(pooled)
        for i, axis in enumerate(order):
            given.order[i], given.along[i] = axis, -1
        for i, axis in enumerate(pooled):
            given.along[<int> axis] = i
        given.whole, given.keepdims, given.ceil_mode = windows is None, keepdims, ceil_mode
        given.counts_pads, given.picks, given.fills, given.may_cover = counts_pads, picks, fills, may_cover
        given.most_taps, (given.least_divisor, given.most_divisor) = most_taps, divisors
        given.mode = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER").index(mode)
        for i, (kernel, stride, dilation, pad, pad_end) in enumerate(() if windows is None else windows):
            given.kernel[i], given.stride[i], given.dilation[i] = kernel, stride, dilation
            given.pad[i], given.pad_end[i] = pad, pad_end

    cdef PlainPool pool_of(self, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t serial_bytes,
                           bint learned):
        """The pool for arrays of a shape, with these strides unless they are C-contiguous. None if Python has to plan
        it. With fewer than `serial_bytes` bytes, a call gains nothing from a second thread. `learned` says whether
        there are measurements."""
        cdef Request request
        cdef Setup setup
        cdef Py_ssize_t[MOST_AXES] y_shape
        cdef double elements = 1, results = 1
        cdef int64_t taps
        cdef Pool pool = None
        cdef PlainPool plain
        cdef bint solved, picked = False
        cdef float_state saved
        cdef int a
        for a in range(self.given.ndim):
            elements *= shape[a]
        if self.converts and elements > self.most_converted:
            return None
        with nogil:
            saved = enter_default_floats()
            solved = resolve_all(&self.given, shape, strides, &request, y_shape, &taps, &picked)
            if not picked:
                solved = solved and set_up(&request, ANY, ANY, 1, &setup)
            leave_default_floats(saved)
        if not solved or (picked and self.typenum == cnp.NPY_BOOL):  # the result must be the byte 1 for any byte but 0
            return None
        for a in range(request.y_ndim):
            results *= y_shape[a]
        if self.held_typenum != self.y_typenum and results > self.most_converted:
            return None
        if learned and not picked and self.has_learned(&request):
            return None
        plain = PlainPool.__new__(PlainPool)
        if not picked:
            pool = Pool.__new__(Pool)
            pool._set_up(&setup, self.given.recipe)
        plain._set(pool, request.ndim, shape, request.y_ndim, y_shape, self.typenum, self.held_typenum, self.y_typenum,
                   self.given.recipe.itemsize)
        plain.strided = strides != NULL
        if strides != NULL:
            memcpy(<Py_ssize_t*> plain.x.strides, strides, request.ndim * sizeof(Py_ssize_t))
        if picked:
            plain.picks = True
            set_steps(&request, plain.kept, plain.steps)
        plain.indexed, plain.serial = self.given.recipe.indexed, elements * self.itemsize < serial_bytes
        plain.quantised, plain.template, plain.taps = self.maker is not None, self, taps
        return plain

    cdef bint has_learned(self, const Request* request) except -1:
        """Whether measurements decide how to compute a request."""
        cdef Form[2] forms
        cdef Problem[2] problems
        cdef int i, k
        problems_of(request, forms, problems)
        results = []
        for k in range(request.results):
            results.append([request.y[k][i] for i in range(request.y_ndim)])
        return self.is_learned(form_in(forms), [request.x[i] for i in range(request.ndim)], results)

    cdef rule_of(self, tuple inputs, int64_t taps):
        """A quantised operator's rule for windows with this number of taps."""
        cdef Quantisation last
        cdef float_state saved
        with cython.critical_section(self):
            last = self.last
        saved = enter_default_floats()
        try:
            if last is None or not last.equals(inputs):
                last = Quantisation(inputs, None, self.maker(inputs))
                with cython.critical_section(self):
                    self.last = last
            return last.maker(taps)
        finally:
            leave_default_floats(saved)


cdef enum:
    MOST_SHAPES = 64  # maximum number of shapes for which an operator keeps pools; a power of two


cdef class Shapes:
    """
    The pools of an operator, by the shape of arrays, and by strides if arrays are not C-contiguous. Any thread may use
    and change them.

    Parameters
    ----------
    serial_bytes : int
        The minimum bytes of X for which a second thread brings a gain.
    team : callable
        The number of threads for a requested number and a number of bytes.
    has_learned, has_limits : callable
        Whether there are measurements; whether limits are in force, which Python checks.
    """
    cdef Py_ssize_t serial_bytes
    cdef object team, has_learned, has_limits
    cdef list templates              # a template for each dtype and number of axes
    cdef list pools                  # a hash table in which a new pool replaces the old one at its place
    cdef Py_ssize_t generation

    def __cinit__(self, Py_ssize_t serial_bytes, team, has_learned, has_limits):
        self.serial_bytes, self.team = serial_bytes, team
        self.has_learned, self.has_limits = has_learned, has_limits
        self.templates, self.generation = [], generation
        self.pools = [None] * MOST_SHAPES

    def add(self, Template template not None):
        """From now on, plan pools for this dtype and number of axes without Python."""
        self.templates = [*self.templates, template]

    def pool(self, x):
        """For tests: the pool for an array. None if only a plan can compute it, or if NumPy copies elements."""
        cdef PlainPool plain = self.pool_of(x)
        return None if plain is None else plain.pool

    def lacks(self, int typenum, int ndim):
        """Whether no template is known for a dtype and a number of axes."""
        return self.template_of(typenum, ndim) is None

    cdef Template template_of(self, int typenum, int ndim):
        cdef Template template
        for template in self.templates:
            if template.typenum == typenum and template.given.ndim == ndim:
                return template
        return None

    cdef PlainPool pool_of(self, x):
        """The pool for an array. None if the array is not plain, or if Python has to plan it."""
        cdef cnp.ndarray a
        if not cnp.PyArray_CheckExact(x):
            return None
        a = x
        if cnp.PyArray_ISCARRAY_RO(a):
            return self.find(cnp.PyArray_TYPE(a), a.ndim, <const Py_ssize_t*> a.shape, NULL)
        if not is_nested(a):
            return None
        return self.find(cnp.PyArray_TYPE(a), a.ndim, <const Py_ssize_t*> a.shape, <const Py_ssize_t*> a.strides)

    cdef PlainPool find(self, int typenum, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides):
        """The pool for nested arrays of a dtype, a shape and, unless they are C-contiguous, strides. None if Python has
        to plan it."""
        cdef PlainPool plain
        cdef Template template = self.template_of(typenum, ndim)
        cdef size_t place = <size_t> typenum
        cdef int i
        if template is None:
            return None
        if template.converts:
            strides = NULL  # the cast of an array is C-contiguous
        for i in range(ndim):
            place = 31 * place + <size_t> shape[i]
            if strides != NULL:
                place = 31 * place + <size_t> strides[i]
        place = (place ^ place >> 6 ^ place >> 12) % MOST_SHAPES
        with cython.critical_section(self):
            if self.generation != generation:
                self.generation, self.pools = generation, [None] * MOST_SHAPES
            plain = self.pools[place]
        if (plain is not None and plain.typenum == typenum and plain.ndim == ndim
                and memcmp(plain.x_shape, shape, ndim * sizeof(Py_ssize_t)) == 0
                and plain.strided == (strides != NULL)
                and (strides == NULL or memcmp(plain.x.strides, strides, ndim * sizeof(Py_ssize_t)) == 0)):
            return plain
        plain = template.pool_of(shape, strides, self.serial_bytes, self.has_learned())
        if plain is not None:
            with cython.critical_section(self):
                self.pools[place] = plain
        return plain

    def prepared(self, tuple shape, int typenum):
        """The pool for plain arrays of a dtype and shape, and the shape of its result. None if Python has to plan it,
        if it has further inputs, or if limits are in force."""
        cdef PlainPool plain
        cdef Py_ssize_t[MOST_AXES] sizes
        cdef int i
        if len(shape) > MOST_AXES or limited and self.has_limits():
            return None
        for i in range(len(shape)):
            sizes[i] = shape[i]
        plain = self.find(typenum, len(shape), sizes, NULL)
        if plain is None or plain.quantised or plain.held_typenum != typenum or plain.picks:
            return None
        return plain.pool, tuple([plain.y_shape[i] for i in range(plain.y_ndim)])

    def shape_of(self, x):
        """The shape of the result for an array. None if the call needs a plan, or if limits are in force."""
        cdef PlainPool plain = None if limited and self.has_limits() else self.pool_of(x)
        return None if plain is None else tuple([plain.y_shape[i] for i in range(plain.y_ndim)])

    def run(self, x, tuple inputs, out):
        """Pool an array into the arrays in `out`, on this thread. Return False if this needs a plan."""
        return self.call(x, inputs, out, 1) is not None

    cdef call(self, x, tuple inputs, out, num_threads):
        """The results for a plain array, or None for other arguments."""
        cdef PlainPool plain
        cdef Scales scales
        if not (num_threads is None or (type(num_threads) is int and 0 < num_threads <= INT64_MAX)):
            return None
        if limited and self.has_limits():
            return None
        plain = self.pool_of(x)
        if plain is None or plain.quantised != (len(inputs) > 0):
            return None
        results = plain.results(x, out)
        if results is None:
            return None
        if plain.quantised:
            plain.read(inputs, &scales, None)
        serial = plain.serial or num_threads == 1
        overflowed = plain.run(x, results, 1 if serial else self.team(num_threads, cnp.PyArray_NBYTES(<cnp.ndarray> x)),
                               &scales)
        return None if overflowed else results


cdef object run_operator(operator, x, tuple inputs, out, num_threads):
    shapes = operator._shapes
    if shapes is not None:
        results = (<Shapes> shapes).call(x, inputs, out, num_threads)
        if results is not None:
            return results
    plan = operator._recent()
    if isinstance(plan, PlainCall):
        results = plain_results(plan, x, inputs, out, num_threads)
        if results is not None:
            return results
    return operator._call(x, inputs, out, num_threads)


cdef object call_operator(object operator, PyObject** given, size_t flags, PyObject* keywords):
    return call_with(run_operator, RecentCall, operator, given, flags, keywords)


cdef class RecentCall:
    """Makes an operator callable in compiled code, for plain arrays, and for arrays like the previous call's.

    The operator's slot `_shapes` has its `Shapes`, or None. Its slot `_recent` has a weak reference to the previous
    call's plan. The method `_call` handles all other calls.
    """

    _vectorcall = PyCapsule_New(<void*> call_operator, "onnxpool.vectorcall", NULL)

    def __call__(self, x, *inputs, out=None, num_threads=None):
        """Pool an array, as `Operator` says."""
        return run_operator(self, x, inputs, out, num_threads)
