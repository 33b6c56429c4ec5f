"""The structs of planning, and how a pool is planned without Python objects."""
from libc.stdint cimport int64_t

from ..kernels.core.job cimport MOST_AXES, Axis, Rule
from ..kernels.core.units cimport Unit

cdef enum:
    ANY = -1  # stands for any solver or form
    MOST_KINDS = 16
    MOST_DTYPES = 16
    MOST_AMOUNTS = 20


cdef struct Kind:
    # A reduction, as loops are compiled for it.
    int acc_bytes, factor
    bint is_max, is_extremum, is_mean, is_norm, is_quantised, is_wide, is_ordered


cdef struct Recipe:
    # How elements of a dtype are reduced: everything that does not depend on a shape.
    int kind, dtype                  # the reduction and the dtype of the units
    int retried                      # the dtype of the units that compute suspect results again, or -1
    int itemsize, digits             # bytes of an element, and digits of a float's significand
    bint whole, indexed
    bint reports                     # whether callers recompute means whose sums overflowed
    double top                       # the largest number that the accumulators of means hold
    double few                       # the largest divisor for which means of integers are rounded in fewer steps
    Rule rule                        # complete but for `few`, `careful` and the quantisation


cdef struct Request:
    # A reduction of windows along some axes of an array, and the strides of its arrays in bytes.
    const Recipe* recipe
    int ndim, y_ndim
    int results                      # arrays of results: 2 with indices
    bint keepdims, contiguous
    Py_ssize_t[MOST_AXES] shape, place, x
    Py_ssize_t[2][MOST_AXES] y
    int[MOST_AXES] along             # the place in `windows` of the windows along an axis, or -1
    Axis[MOST_AXES] windows


cdef enum:
    NOTSET
    VALID
    SAME_UPPER
    SAME_LOWER


cdef struct Attributes:
    # What an operator does with arrays of a dtype and a number of axes.
    const Recipe* recipe
    int ndim, rank                   # number of axes, and number of pooled axes, in the order of attributes
    int[MOST_AXES] along             # the number of a pooled axis, or -1
    int[MOST_AXES] order             # the axes as indices count them, slowest first
    int mode                         # the mode of automatic padding
    bint whole, keepdims, ceil_mode, counts_pads
    bint picks                       # whether results of windows with one tap are elements
    bint fills                       # whether Python sets the results of windows without taps
    bint may_cover                   # whether the reduction is another one if the only window is the whole array
    double most_taps                 # maximum taps of windows for which the recipe is right
    double least_divisor, most_divisor  # bounds of divisors for which it is chosen
    Py_ssize_t[MOST_AXES] kernel, stride, dilation, pad, pad_end


cdef struct Dim:
    # Adjacent axes of an array that can be flattened into one dimension.
    Py_ssize_t size                  # elements of X along the dimension
    Py_ssize_t place                 # the index stride along the dimension
    int x, y                         # the axes of X and of results with its strides; -1 for one element or window


cdef struct Form:
    # x[groups, item, axes, lane].
    Dim[MOST_AXES] groups, dims
    Axis[MOST_AXES] axes             # the windows along each of `dims`, which are at least one
    int outer, rank
    Dim item, lane                   # lanes fill vectors; a single lane if loops read rows of the last axis instead
    bint apart                       # whether lanes have a larger stride than the last axis, and must be copied


cdef struct Problem:
    # The problem for which a solver is chosen: x[item, axes, lane].
    const Axis* axes
    int rank, kind, dtype
    int itemsize, acc_bytes          # bytes of an element, and of an accumulator
    int register_bytes               # the register width in bytes whose costs apply
    int joined                       # trailing axes that count as one in the order of sums
    Py_ssize_t items, lanes
    bint planar                      # whether lanes are strided channels
    bint whole                       # whether the operator has one window, which covers a whole channel


cdef struct Solver:
    # A record of Python's table of solvers, with its functions.
    bint (*fits)(const Problem* p) noexcept nogil  # NULL if all problems of its reductions fit
    void (*work)(const Problem* p, double* amounts) noexcept nogil
    bint (*singly)(const Problem* p, int a) noexcept nogil  # whether windows along an axis are reduced singly; or NULL
    int family                       # the place of the family's general solver
    int retry                        # the place of another solver, or -1
    int amounts                      # units of work
    double[MOST_AMOUNTS] cost        # the cost of each unit of work
    bint costed
    Py_ssize_t room
    Py_ssize_t least_lanes           # 0 if tiles have all lanes
    bint whole, in_place, gathers, shares, copies_in_room, rereads, divides, by_axis


cdef struct Extents:
    # The extents of a tile.
    Py_ssize_t items, lanes
    Py_ssize_t[MOST_AXES] windows


cdef struct Stage:
    # A solver with its tile for one thread, and its tile if several threads divide the work.
    int solver, kind
    const Unit* unit
    bint by_axis                     # whether rows must be contiguous
    bint gathers                     # whether loops read strided elements themselves
    bint shares                      # whether several threads can share a tile
    Extents tile, divided


cdef struct Choice:
    # A solver of a problem: its place in the table, the place of the form, and its cost.
    int solver, form
    double cost


cdef struct Setup:
    # What a pool is made from.
    Form form
    Problem problem
    int stages                       # one, or two if a second stage may have to compute suspect results again
    Stage[2] stage
    double least, largest            # sums of elements with magnitudes in this range never leave the safe range
    Rule rule


cdef const Kind* kind_at(int kind) noexcept nogil
cdef object form_in(const Form* form)
cdef object setup_in(const Setup* setup)
cdef int problems_of(const Request* r, Form* forms, Problem* problems) noexcept nogil
cdef bint resolve_all(const Attributes* given, const Py_ssize_t* shape, const Py_ssize_t* strides, Request* r,
                      Py_ssize_t* y_shape, int64_t* taps_of, bint* are_picked) noexcept nogil
cdef bint set_up(const Request* r, int solver, int form, double share, Setup* setup) noexcept nogil
cdef int read_request(Request* r, request, x, results, bint contiguous) except -1


cdef class Reducer:
    cdef Recipe recipe
