from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "elements.h" nogil:
    ctypedef struct float_state:
        pass
    enum:
        REGISTERS
        WIDTH
    ctypedef struct lanes_t:
        pass
    lanes_t load_lanes(const void* x) noexcept
    void store_lanes(lanes_t lanes, void* y) noexcept
    lanes_t larger_floats(lanes_t earlier, lanes_t later) noexcept
    lanes_t larger_doubles(lanes_t earlier, lanes_t later) noexcept
    lanes_t lanes_from(lanes_t first, lanes_t second, Py_ssize_t distance, int size) noexcept
    lanes_t first_columns_16() noexcept
    lanes_t first_columns_32() noexcept
    lanes_t first_columns_64() noexcept
    lanes_t all_columns_16(Py_ssize_t column) noexcept
    lanes_t all_columns_32(Py_ssize_t column) noexcept
    lanes_t all_columns_64(Py_ssize_t column) noexcept
    lanes_t next_columns_16(lanes_t columns, lanes_t width, lanes_t row) noexcept
    lanes_t next_columns_32(lanes_t columns, lanes_t width, lanes_t row) noexcept
    lanes_t next_columns_64(lanes_t columns, lanes_t width, lanes_t row) noexcept
    lanes_t from_column_16(lanes_t lanes, lanes_t columns, lanes_t least, lanes_t outside) noexcept
    lanes_t from_column_32(lanes_t lanes, lanes_t columns, lanes_t least, lanes_t outside) noexcept
    lanes_t from_column_64(lanes_t lanes, lanes_t columns, lanes_t least, lanes_t outside) noexcept
    lanes_t to_column_16(lanes_t lanes, lanes_t columns, lanes_t most, lanes_t outside) noexcept
    lanes_t to_column_32(lanes_t lanes, lanes_t columns, lanes_t most, lanes_t outside) noexcept
    lanes_t to_column_64(lanes_t lanes, lanes_t columns, lanes_t most, lanes_t outside) noexcept
    lanes_t held_lanes(lanes_t lanes) noexcept
    void copy_vector(void* y, const void* x) noexcept
    bint gains_by_fetching() noexcept
    void part(const void* x, void* even, void* odd, int itemsize) noexcept
    void part_lanes(lanes_t* first, lanes_t* second, int itemsize) noexcept
    bint MOSTLY(bint condition) noexcept
    void fetch(const char* x) noexcept
    void fetch_lines(const char* x, Py_ssize_t n) noexcept
    void touch_lines(const char* x, Py_ssize_t n) noexcept
    void widen_float16_row(const uint16_t* x, float* y, Py_ssize_t n) noexcept
    void narrow_float16_row(const float* x, uint16_t* y, Py_ssize_t n) noexcept
    void widen_bfloat16_row(const uint16_t* x, float* y, Py_ssize_t n) noexcept
    void narrow_bfloat16_row(const float* x, uint16_t* y, Py_ssize_t n) noexcept
    void widen_bfloat16_half(const uint16_t* x, float* y, bint odd) noexcept
    void load_once(const void* x, void* y) noexcept
    void widen_bfloat16_pairs(const uint16_t* x, float* y, Py_ssize_t n) noexcept
    void narrow_bfloat16_halves(const float* even, const float* odd, uint16_t* y) noexcept
    void narrow_bfloat16_pairs(const float* x, uint16_t* y, Py_ssize_t n) noexcept
    uint16_t float16_of_key(int16_t key, int nans) noexcept
    void keys_of_row(const uint16_t* x, int16_t* y, Py_ssize_t n, int nans) noexcept
    void square_float16_row(const uint16_t* x, double* y, Py_ssize_t n) noexcept
    void square_bfloat16_row(const uint16_t* x, double* y, Py_ssize_t n) noexcept
    void square_float_row(const float* x, double* y, Py_ssize_t n) noexcept
    void square_double_row(const double* x, double* y, Py_ssize_t n) noexcept
    float round_to_odd(double value) noexcept
    enum:
        MOST_DIVISOR
    float mean_float(float x, float d, float r) noexcept
    float quotient_float(float x, float d, float r) noexcept
    double quotient_double(double x, double d, double r) noexcept
    uint32_t INFINITE_FLOAT, TINY_FLOAT, TINY_SQUARE, MODERATE_LEAST, MODERATE_MOST
    uint32_t bits_of_float(float value) noexcept
    uint64_t INFINITE_DOUBLE, TINY_DOUBLE
    uint32_t magnitude_of_float(float value) noexcept
    uint64_t magnitude_of_double(double value) noexcept
    void join_vectors(const void* x, Py_ssize_t bytes, const void* y, void* joined) noexcept
    void widen_bytes(const void* x, int32_t* y, bint is_signed) noexcept
    void copy_bytes(const char* source, char* target, Py_ssize_t n) noexcept
    void copy_rows(const char* source, Py_ssize_t source_stride, char* target, Py_ssize_t target_stride,
                   Py_ssize_t rows, Py_ssize_t size) noexcept
    void move_elements(const char* source, Py_ssize_t source_stride, char* target, Py_ssize_t target_stride,
                       Py_ssize_t n, Py_ssize_t itemsize, bint swapped) noexcept
    float_state enter_default_floats() noexcept
    void leave_default_floats(float_state saved) noexcept

cdef extern from "byte_sums.h" nogil:
    int64_t sum_bytes(const uint8_t* x, Py_ssize_t n, bint is_signed) noexcept
    void sum_rows(const uint8_t* x, Py_ssize_t hop, Py_ssize_t rows, int32_t* y, Py_ssize_t n, uint16_t* pairs,
                  bint is_signed) noexcept

cdef extern from "transpose.h" nogil:
    void transpose(const char* source, Py_ssize_t source_stride, char* target, Py_ssize_t target_stride,
                   Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t itemsize) noexcept
