"""The arguments of a copy; see boxes.h."""

cdef extern from "boxes.h" nogil:
    enum:
        MOST_COPIED

    ctypedef struct Copy:
        const char* from_ "from"
        char* to
        Py_ssize_t itemsize
        bint swapped
        int axes
        Py_ssize_t* n
        Py_ssize_t* from_stride
        Py_ssize_t* to_stride

    ctypedef void (*CopyLoops)(const Copy* copy) noexcept
    void copy_each(const char* source, Py_ssize_t source_stride, char* target, Py_ssize_t target_stride, Py_ssize_t n,
                   Py_ssize_t itemsize, bint swapped) noexcept
