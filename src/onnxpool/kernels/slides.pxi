"""Slides: windows whose neighbours share columns, which stay in registers, over channels that lie side by side."""
from .elements cimport REGISTERS
from .job cimport PLAIN, Format
from .reductions cimport running_t


cdef inline void put_sum(const Quad* first, const Quad* second, Quad* third, const running_t* like, int vectors,
                         int taps) noexcept nogil:
    """T of two or three columns, as the last of them."""
    cdef Quad pair
    if taps == 3:
        pair = second[0]
        follow(first, &pair, like, vectors)
        follow(&pair, third, like, vectors)
    else:
        follow(second, third, like, vectors)


cdef inline void note_quad(const Quad* quad, Results* results, const running_t* like, bint finished,
                           int vectors) noexcept nogil:
    """What tells whether the order of taps may show in maxima: elements, or results of them."""
    if finished:
        note_maxima(&quad.first, results, like)
        if vectors == QUAD:
            note_maxima(&quad.second, results, like)
            note_maxima(&quad.third, results, like)
            note_maxima(&quad.fourth, results, like)
        return
    note_elements(&quad.first, results, like)
    if vectors == QUAD:
        note_elements(&quad.second, results, like)
        note_elements(&quad.third, results, like)
        note_elements(&quad.fourth, results, like)


cdef inline void take_column(const char* x, Quad* column, Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t rows,
                             Results* results, const running_t* like, int vectors, Format format) noexcept nogil:
    cdef Quad row
    cdef Py_ssize_t r
    if columns_first(like):
        take_line(x, column, pitch, hop, rows, like, vectors, format)
        return
    read_apart(x, pitch, column, like, False, vectors, format)
    note_quad(column, results, like, False, vectors)
    for r in range(1, rows):
        read_apart(x + r * hop, pitch, &row, like, False, vectors, format)
        note_quad(&row, results, like, False, vectors)
        follow(column, &row, like, vectors)
        column[0] = row


cdef inline void slide(const char* x, char* y, const Course* course, const running_t* by, const running_t* factor,
                       Results* results, Py_ssize_t pitch, Py_ssize_t stored, int vectors, int taps, int fresh,
                       Format format, bint finishes) noexcept nogil:
    """Windows of so many columns, of which as many are fresh in each: the others stay in registers."""
    cdef Quad first, second, third, total
    cdef Py_ssize_t window, rows = course.rows, hop = course.down, across = course.across, windows = course.windows
    cdef Py_ssize_t step = course.step, pace = course.pace
    cdef Py_ssize_t bytes = vectors * size_of(by, format) * (VECTOR // <Py_ssize_t> sizeof(running_t))
    cdef Sweep sweep = sweep_from(x, course)
    # The columns are counted from behind: two are the second and the third.
    if taps == 3:
        take_column(x, &first, pitch, hop, rows, results, by, vectors, format)
        x += across
    if fresh == 1:
        take_column(x, &second, pitch, hop, rows, results, by, vectors, format)
        x += across
    for window in range(windows):
        if course.sweeps or course.fetches and format != PLAIN:
            sweep_to(&sweep, course, (window + 1) * bytes)
        if fresh == 2:
            take_column(x, &second, pitch, hop, rows, results, by, vectors, format)
            take_line(x + across, &third, pitch, hop, rows, by, vectors, format)
        else:
            take_line(x, &third, pitch, hop, rows, by, vectors, format)
        total = third
        put_sum(&first, &second, &total, by, vectors, taps)
        if not columns_first(by):
            note_quad(&total, results, by, True, vectors)
        put_results(&total, y, stored, by, factor, results, vectors, format, finishes)
        if fresh == 2:
            first = third
        else:
            first, second = second, third
        x += step
        y += pace


cdef inline void slide_course(const char* x, char* y, const Course* course, const running_t* by,
                              const running_t* factor, Results* results, int taps, int fresh, Format format,
                              bint finishes) noexcept nogil:
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit = vectors_of(format) * width, done = 0
    cdef Py_ssize_t size = size_of(by, format), stored = size if finishes else <Py_ssize_t> sizeof(running_t)
    while done <= course.inner - QUAD * width:
        slide(x + done * size, y + done * stored, course, by, factor, results, unit * size, unit * stored, QUAD, taps,
              fresh, format, finishes)
        done += QUAD * width
    while done < course.inner:
        done = min(done, course.inner - unit)  # the last vector may overlap the one before
        slide(x + done * size, y + done * stored, course, by, factor, results, 0, 0, vectors_of(format), taps, fresh,
              format, finishes)
        done += unit


cdef inline bint slides(const Course* course, const running_t* like, Format format) noexcept nogil:
    """Whether neighbouring windows share columns, which come first, and had better be taken one behind the other for a
    few of their channels at a time: from afar only if these are all, and more of maxima that share most. To note what
    maxima are taken of is worth it only where there are many registers."""
    cdef Py_ssize_t quad = QUAD * (VECTOR // <Py_ssize_t> sizeof(running_t))
    cdef Py_ssize_t quads = 2 if columns_first(like) or course.step > course.across else 4
    return ((columns_first(like) or (format == PLAIN and REGISTERS > QUAD))
            and course.planes == 1 and 0 < course.rows <= SIDE and 1 < course.taps <= SIDE
            and course.windows > 1 and course.across > 0 and course.step < course.taps * course.across
            and course.step % course.across == 0
            and (course.inner == quad if course.waits else course.inner <= quads * quad))


cdef inline void some_slide(const char* x, char* y, const Course* course, const running_t* by, const running_t* factor,
                            Results* results, Format format, bint finishes) noexcept nogil:
    if course.taps == 2:
        slide_course(x, y, course, by, factor, results, 2, 1, format, finishes)
    elif course.step == course.across:
        slide_course(x, y, course, by, factor, results, 3, 1, format, finishes)
    else:
        slide_course(x, y, course, by, factor, results, 3, 2, format, finishes)
