"""The arguments of loops; see job.h."""
from libc.stdint cimport int64_t, uint64_t

cdef extern from "job.h" nogil:
    const Py_ssize_t TOO_LARGE "ONNXPOOL_TOO_LARGE"

    ctypedef struct Axis:
        Py_ssize_t size, out, kernel, stride, dilation, pad, pad_end, begin, end, span, most
        int counts_pads, wide, singly

    ctypedef struct Window:
        Py_ssize_t first, taps, skipped, divisor

    ctypedef struct Run:
        Py_ssize_t n
        Window window

    Py_ssize_t padded(const Axis* axis, Py_ssize_t windows) noexcept
    Py_ssize_t tap_distance(const Axis* axis, Py_ssize_t step) noexcept
    void elements_of(const Axis* axis, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t* low, Py_ssize_t* high) noexcept
    bint touch(const Axis* axis, Py_ssize_t begin, Py_ssize_t end) noexcept
    void touching_of(const Axis* axis, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t* low, Py_ssize_t* high) noexcept
    Window wide_window_at(const Axis* axis, Py_ssize_t window) noexcept
    Window window_at(const Axis* axis, Py_ssize_t window) noexcept
    Run run_at(const Axis* axis, Py_ssize_t window, Py_ssize_t end) noexcept

    ctypedef struct Order:
        uint64_t mask, flip, shift, truth, infinity

    ctypedef struct Scales:
        int64_t bias
        float scale, y_scale, lowest, highest
        int zero

    ctypedef struct Rule:
        double p, low, high
        Order order
        uint64_t counted, left_out, most
        int divides, careful, is_other, few
        Scales scales

    ctypedef struct Array:
        char* data
        Py_ssize_t itemsize
        bint swapped
        Py_ssize_t item, lane
        Py_ssize_t* outer
        Py_ssize_t* axis

    ctypedef struct Tile:
        const Axis* axis
        int rank, joined
        Py_ssize_t items, lanes, all_lanes, most_lanes
        const char* x
        char* y
        Py_ssize_t x_item, y_item
        const Py_ssize_t* x_stride
        const Py_ssize_t* y_stride
        const Py_ssize_t* begin
        const Py_ssize_t* end
        const Rule* rule
        char* scratch
        char* indices
        Py_ssize_t index_item
        const Py_ssize_t* index_stride
        const Py_ssize_t* pace
        int64_t base, base_item, base_lane
        const Array* strided
        Py_ssize_t far
        int share, shares
        char* totals
        Py_ssize_t parts, part_bytes

    Py_ssize_t part_bytes_of(Py_ssize_t lanes, Py_ssize_t acc_bytes) noexcept
    int bits_of(Py_ssize_t n) noexcept
    Py_ssize_t ceil_div(Py_ssize_t a, Py_ssize_t b) noexcept
    Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t unit) noexcept
    void fetch(const void* x, Py_ssize_t bytes) noexcept
    ctypedef void (*Loops)(Tile* tile) noexcept
    ctypedef Py_ssize_t (*Scratch)(const Tile* tile) noexcept

cdef extern from "shared_constants.h" nogil:  # the build writes it from constants.py
    enum:
        CACHE_LINE "ONNXPOOL_CACHE_LINE"
        FEW "ONNXPOOL_FEW"
        LEAST_SLIDING "ONNXPOOL_LEAST_SLIDING"
        MOST_AXES "ONNXPOOL_MOST_AXES"
        MOST_RUNS "ONNXPOOL_MOST_RUNS"
