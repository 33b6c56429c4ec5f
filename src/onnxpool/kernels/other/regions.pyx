"""MaxRoiPool and RoiAlign: a region of a plane is divided into bins, and each bin of an axis lists its taps.

Maxima and averages of a region are separable: the columns of each bin are reduced in every row, and then the rows of
each bin. Only RoiAlign's maximum, which compares weighted corners, has to visit every sample. Channels are the
innermost loop in every layout. If channels are not adjacent, rows are gathered, so that vectors are full. Averages are
computed in double and rounded once.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, ceil, fabs, floor, round
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cimport numpy as cnp

from .images cimport Images, read_row, write_row
from ..core.floats cimport enter_default_floats, float_state, leave_default_floats
from ..core.interrupts cimport Interrupts, interrupted, raised_by_handler, run_together
from ..core.job cimport TOO_LARGE
from ..core.team cimport Team, enter_team, leave_team

from ...dtypes import DTYPES

cnp.import_array()


cdef extern from "half.h" nogil:
    void round_to_odd_row(const double* x, float* y, Py_ssize_t n) noexcept


cdef enum:
    ROW = 1 << 14  # values of a region's row that are processed at a time
    FEWEST_CHANNELS = 64  # minimum number of channels processed at a time

cdef enum Kind:
    ROI_MAX         # MaxRoiPool
    ALIGN_AVG       # RoiAlign
    ALIGN_MAX

# The type of coordinates, and of the values to which rows are converted when they are read.
ctypedef fused real_t:
    float
    double


cdef struct Tap:
    Py_ssize_t at, after       # elements; `after` only for a corner pair
    double weight, rest        # weights of the two elements


cdef struct Bins:
    Py_ssize_t* first          # bin b has the taps first[b] .. first[b + 1] - 1
    Tap* taps
    Py_ssize_t low, high       # the range of elements that taps refer to


cdef struct RegionCall:
    Kind kind
    Images x, y
    Py_ssize_t height, width, channels, pooled_height, pooled_width
    double scale, offset
    bint at_least_one
    Py_ssize_t sampling                  # samples of a bin along an axis; 0: each region sets the number,
    Py_ssize_t most_down, most_across    # up to these numbers down and across
    Py_ssize_t chunk                     # channels that are processed together
    Py_ssize_t height_taps, width_taps   # maximum number of taps of all bins of an axis
    Py_ssize_t row, scratch              # bytes of a row of values, and of all scratch memory of a thread


cdef struct Scratch:
    Bins rows, columns
    char* elements             # a row of elements, gathered or to be scattered
    char* values               # a row of values, widened or narrowed
    char* out                  # a row of bins
    # Neighbouring bins and samples share rows, so the latest even row and the latest odd row are held as lines. For
    # corners, rows are held as they were read. Otherwise, their columns are already reduced to bins.
    Py_ssize_t held[2]         # the places of these rows, or -1
    const char* held_line[2]   # the addresses of their lines, in the array or in `line`
    char* line[2]


cdef void add_weight(Bins* bins, Py_ssize_t b, Py_ssize_t* count, Py_ssize_t at, double weight) noexcept nogil:
    """Add a weight to an element's tap. Samples advance, so an element that already has a tap is one of the last four.

    A weight of 0 becomes a tap of its own, because its product with an infinity is NaN, as in the formula.
    """
    cdef Py_ssize_t i
    for i in range(max(bins.first[b], count[0] - 4), count[0]):
        if bins.taps[i].at == at and (bins.taps[i].weight == 0) == (weight == 0):
            bins.taps[i].weight += weight
            return
    bins.taps[count[0]] = Tap(at, at, weight, 0)
    count[0] += 1


cdef inline bint interpolated(real_t place, Py_ssize_t size, Py_ssize_t* low, Py_ssize_t* high,
                              real_t* part) noexcept nogil:
    """Find the two elements beside a sample, and the weight of the second one. False if it is outside the plane."""
    if place < -1 or place > size:
        return False
    place = max(place, <real_t> 0)
    if place >= size - 1:
        low[0] = high[0] = size - 1
        part[0] = 0
    else:
        low[0] = <Py_ssize_t> place
        high[0] = low[0] + 1
        part[0] = place - low[0]
    return True


cdef void add_sample(Bins* bins, Py_ssize_t b, Py_ssize_t* count, real_t place, Py_ssize_t size,
                     bint pairs) noexcept nogil:
    """Add the taps of a sample between two elements. Outside the plane, a sample has no weight."""
    cdef Py_ssize_t low, high
    cdef real_t part
    if not interpolated(place, size, &low, &high, &part):
        if pairs:
            bins.taps[count[0]] = Tap(0, 0, 0, 0)
            count[0] += 1
        return
    if pairs:
        bins.taps[count[0]] = Tap(low, high, <real_t> 1 - part, part)
        count[0] += 1
    else:
        add_weight(bins, b, count, low, 1 - <double> part)
        add_weight(bins, b, count, high, part)


cdef inline real_t way_to(real_t bin_size, Py_ssize_t i, Py_ssize_t samples) noexcept nogil:
    """The distance from the start of a bin to its sample i. If the product overflows, the division comes first."""
    cdef real_t way = (i + <real_t> 0.5) * bin_size / samples
    return way if fabs(way) < <real_t> INFINITY else (i + <real_t> 0.5) / samples * bin_size


cdef inline Py_ssize_t cut_samples(const RegionCall* job, real_t begin, real_t end, Py_ssize_t pooled, Py_ssize_t most,
                                   real_t* start, real_t* bin_size) noexcept nogil:
    """Find where the first bin starts, and the length of a bin. Return the number of a bin's samples along the axis,
    which is at most `most` unless an attribute sets it."""
    cdef real_t scale = <real_t> job.scale, offset = <real_t> job.offset, length
    start[0] = begin * scale - offset
    end = end * scale - offset
    length = end - start[0]
    if job.at_least_one:
        length = max(length, <real_t> 1)
    bin_size[0] = length / pooled
    if job.sampling == 0:
        return <Py_ssize_t> max(<real_t> 0, min(<real_t> most, <real_t> ceil(bin_size[0])))
    return job.sampling


cdef inline real_t sample_at(real_t start, real_t bin_size, Py_ssize_t b, Py_ssize_t i,
                             Py_ssize_t samples) noexcept nogil:
    """The place of sample i of bin b."""
    return start + b * bin_size + way_to(bin_size, i, samples)


cdef void align_bins(Bins* bins, const RegionCall* job, real_t begin, real_t end, Py_ssize_t pooled,
                     Py_ssize_t size, Py_ssize_t most) noexcept nogil:
    cdef real_t start, bin_size
    cdef Py_ssize_t b, i, count = 0, samples = cut_samples(job, begin, end, pooled, most, &start, &bin_size)
    for b in range(pooled):
        bins.first[b] = count
        for i in range(samples):
            add_sample(bins, b, &count, sample_at(start, bin_size, b, i, samples), size, job.kind == ALIGN_MAX)
    bins.first[pooled] = count
    if job.kind == ALIGN_AVG:
        # Divided here, so that no sum overflows unless the mean does.
        for i in range(count):
            bins.taps[i].weight /= samples


cdef inline real_t cut_elements(const RegionCall* job, real_t begin, real_t end, Py_ssize_t pooled,
                                Py_ssize_t* start) noexcept nogil:
    """Find the element at which a region starts. Return the length of a bin."""
    cdef real_t scale = <real_t> job.scale
    cdef Py_ssize_t stop = <Py_ssize_t> round(end * scale)
    start[0] = <Py_ssize_t> round(begin * scale)
    return <real_t> max(stop - start[0] + 1, 1) / pooled


cdef inline void elements_of(Py_ssize_t start, real_t bin_size, Py_ssize_t b, Py_ssize_t size, Py_ssize_t* low,
                             Py_ssize_t* high) noexcept nogil:
    """The elements of bin b: [low, high)."""
    low[0] = min(max(<Py_ssize_t> floor(b * bin_size) + start, 0), size)
    high[0] = min(max(<Py_ssize_t> ceil((b + 1) * bin_size) + start, 0), size)


cdef void roi_bins(Bins* bins, const RegionCall* job, real_t begin, real_t end, Py_ssize_t pooled,
                   Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t b, i, count = 0, start, low, high
    cdef real_t bin_size = cut_elements(job, begin, end, pooled, &start)
    for b in range(pooled):
        bins.first[b] = count
        elements_of(start, bin_size, b, size, &low, &high)
        for i in range(low, high):
            bins.taps[count] = Tap(i, i, 1, 0)
            count += 1
    bins.first[pooled] = count


cdef void set_bins(Bins* bins, const RegionCall* job, real_t begin, real_t end, Py_ssize_t pooled,
                   Py_ssize_t size, Py_ssize_t most) noexcept nogil:
    cdef Py_ssize_t i
    if job.kind == ROI_MAX:
        roi_bins(bins, job, begin, end, pooled, size)
    else:
        align_bins(bins, job, begin, end, pooled, size, most)
    bins.low, bins.high = size, 0
    for i in range(bins.first[pooled]):
        bins.low = min(bins.low, bins.taps[i].at)
        bins.high = max(bins.high, bins.taps[i].after + 1)
    bins.low = min(bins.low, bins.high)


cdef inline real_t larger(real_t a, real_t b) noexcept nogil:
    """The larger value, the first of two equal values, or a NaN if there is one. Each step compiles to an
    instruction."""
    cdef real_t result = b if b > a else a
    return b if b != b else result


cdef inline void take_larger(const real_t* x, real_t* y, Py_ssize_t n, bint fresh) noexcept nogil:
    cdef const real_t* earlier = x if fresh else y
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = larger(earlier[j], x[j])


cdef inline void add_weighted(const real_t* x, double* y, Py_ssize_t n, double weight, bint fresh) noexcept nogil:
    cdef Py_ssize_t j
    if fresh:
        for j in range(n):
            y[j] = x[j] * weight
    else:
        for j in range(n):
            y[j] = y[j] + x[j] * weight


cdef void reduce_columns(const RegionCall* job, const Bins* columns, const real_t* row, char* line,
                         Py_ssize_t channels) noexcept nogil:
    """The bins of one row: line[pooled_width, channels]."""
    cdef Py_ssize_t c, k, begin
    cdef const real_t* x
    for c in range(job.pooled_width):
        begin = columns.first[c]
        if begin == columns.first[c + 1]:
            memset(line, 0, channels * (sizeof(double) if job.kind == ALIGN_AVG else sizeof(real_t)))
        for k in range(begin, columns.first[c + 1]):
            x = row + (columns.taps[k].at - columns.low) * channels
            if job.kind == ALIGN_AVG:
                add_weighted(x, <double*> line, channels, columns.taps[k].weight, k == begin)
            else:
                take_larger(x, <real_t*> line, channels, k == begin)
        line += channels * (sizeof(double) if job.kind == ALIGN_AVG else sizeof(real_t))


cdef const char* line_of(real_t* unused, const RegionCall* job, const char* plane, Py_ssize_t row, Py_ssize_t channels,
                         Scratch* scratch) noexcept nogil:
    cdef const Bins* columns = &scratch.columns
    cdef int slot = row & 1
    cdef bint corners = job.kind == ALIGN_MAX
    cdef char* line = scratch.line[slot]
    cdef const char* values
    if scratch.held[slot] != row:
        scratch.held[slot], scratch.held_line[slot] = row, line
        values = read_row(&job.x, plane + row * job.x.row + columns.low * job.x.place, columns.high - columns.low,
                          channels, line if corners and not job.x.half else scratch.elements,
                          line if corners else scratch.values)
        if corners:
            scratch.held_line[slot] = values
        else:
            reduce_columns(job, columns, <const real_t*> values, line, channels)
    return scratch.held_line[slot]


cdef void separable_bins(real_t* unused, const RegionCall* job, const char* plane, Py_ssize_t b, Py_ssize_t channels,
                         Scratch* scratch) noexcept nogil:
    """One row of bins. Columns have been reduced first, so the first of equal maxima in row-major order wins."""
    cdef const Bins* rows = &scratch.rows
    cdef Py_ssize_t i, n = job.pooled_width * channels
    cdef const char* line
    for i in range(rows.first[b], rows.first[b + 1]):
        line = line_of(unused, job, plane, rows.taps[i].at, channels, scratch)
        if job.kind == ALIGN_AVG:
            add_weighted(<const double*> line, <double*> scratch.out, n, rows.taps[i].weight, i == rows.first[b])
        else:
            take_larger(<const real_t*> line, <real_t*> scratch.out, n, i == rows.first[b])


cdef void add_corners(const real_t* upper, const real_t* lower, Py_ssize_t after, real_t* y, Py_ssize_t n,
                      const Tap* row, const Tap* column, bint fresh) noexcept nogil:
    """The largest of a sample's four weighted corners. `after` is the distance from left to right corners."""
    cdef Py_ssize_t j
    cdef real_t a = <real_t> (row.weight * column.weight), b = <real_t> (row.weight * column.rest)
    cdef real_t c = <real_t> (row.rest * column.weight), d = <real_t> (row.rest * column.rest), corner = 0
    if (row.weight == 0 and row.rest == 0) or (column.weight == 0 and column.rest == 0):  # the sample is outside
        for j in range(n):
            y[j] = corner if fresh else larger(y[j], corner)
        return
    for j in range(n):
        corner = larger(larger(upper[j] * a, upper[j + after] * b), larger(lower[j] * c, lower[j + after] * d))
        y[j] = corner if fresh else larger(y[j], corner)


cdef void corner_bins(real_t* unused, const RegionCall* job, const char* plane, Py_ssize_t b, Py_ssize_t channels,
                      Scratch* scratch) noexcept nogil:
    """Compute one row of bins. Each bin is the maximum over its samples of their largest weighted corner."""
    cdef const Bins* rows = &scratch.rows
    cdef const Bins* columns = &scratch.columns
    cdef Py_ssize_t i, c, k, left
    cdef const real_t* upper
    cdef const real_t* lower
    cdef const Tap* column
    for i in range(rows.first[b], rows.first[b + 1]):
        upper = <const real_t*> line_of(unused, job, plane, rows.taps[i].at, channels, scratch)
        lower = <const real_t*> line_of(unused, job, plane, rows.taps[i].after, channels, scratch)
        for c in range(job.pooled_width):
            for k in range(columns.first[c], columns.first[c + 1]):
                column = &columns.taps[k]
                left = (column.at - columns.low) * channels
                add_corners(upper + left, lower + left, (column.after - column.at) * channels,
                            <real_t*> scratch.out + c * channels, channels, &rows.taps[i], column,
                            i == rows.first[b] and k == columns.first[c])


cdef inline void set_plain_nans(real_t* values, Py_ssize_t n) noexcept nogil:
    """Set all NaNs to the same bits, whatever computation returned them."""
    cdef Py_ssize_t j
    for j in range(n):
        values[j] = values[j] if values[j] == values[j] else <real_t> NAN


cdef const char* narrowed(real_t* unused, const RegionCall* job, Scratch* scratch, Py_ssize_t n) noexcept nogil:
    """Convert the row of bins to values. Averages of floats are doubles up to here; 16-bit results are rounded once."""
    cdef double* sums = <double*> scratch.out
    cdef float* values = <float*> scratch.values
    cdef Py_ssize_t j
    if job.kind == ALIGN_AVG:
        set_plain_nans(sums, n)
    elif job.kind == ALIGN_MAX:
        set_plain_nans(<real_t*> scratch.out, n)
    if sizeof(real_t) == sizeof(double) or job.kind != ALIGN_AVG:
        return scratch.out
    if job.y.half:
        round_to_odd_row(sums, values, n)
        return scratch.values
    for j in range(n):
        values[j] = <float> sums[j]
    return scratch.values


cdef void pool_region(const real_t* roi, const RegionCall* job, Py_ssize_t region, Py_ssize_t image,
                      Scratch* scratch) noexcept nogil:
    cdef real_t* unused = NULL
    cdef Py_ssize_t channel = 0, channels, b
    cdef const char* plane
    cdef char* target
    set_bins(&scratch.rows, job, roi[1], roi[3], job.pooled_height, job.height, job.most_down)
    set_bins(&scratch.columns, job, roi[0], roi[2], job.pooled_width, job.width, job.most_across)
    while channel < job.channels:
        channels = min(job.chunk, job.channels - channel)
        plane = job.x.data + image * job.x.image + channel * job.x.channel
        target = job.y.data + region * job.y.image + channel * job.y.channel
        scratch.held[0] = scratch.held[1] = -1
        for b in range(job.pooled_height):
            memset(scratch.out, 0, job.pooled_width * channels * sizeof(double))  # bins without taps
            if job.kind == ALIGN_MAX:
                corner_bins(unused, job, plane, b, channels, scratch)
            else:
                separable_bins(unused, job, plane, b, channels, scratch)
            write_row(&job.y, narrowed(unused, job, scratch, job.pooled_width * channels), target + b * job.y.row,
                      job.pooled_width, channels, scratch.elements)
        channel += channels


cdef void lay_scratch(const RegionCall* job, char* memory, Scratch* scratch) noexcept nogil:
    scratch.elements, scratch.values, scratch.out = memory, memory + job.row, memory + 2 * job.row
    scratch.line[0], scratch.line[1] = memory + 3 * job.row, memory + 4 * job.row
    scratch.rows.taps = <Tap*> (memory + 5 * job.row)
    scratch.columns.taps = scratch.rows.taps + job.height_taps
    scratch.rows.first = <Py_ssize_t*> (scratch.columns.taps + job.width_taps)
    scratch.columns.first = scratch.rows.first + job.pooled_height + 1


cdef void run_region(const RegionCall* job, const void* rois, const int64_t* images, Py_ssize_t region,
                     char* memory) noexcept nogil:
    cdef float_state saved = enter_default_floats()
    cdef Scratch scratch
    lay_scratch(job, memory, &scratch)
    if job.x.size == sizeof(double):
        pool_region(<const double*> rois + 4 * region, job, region, images[region], &scratch)
    else:
        pool_region(<const float*> rois + 4 * region, job, region, images[region], &scratch)
    leave_default_floats(saved)


cdef struct Tasks:
    const RegionCall* job
    const void* rois
    const int64_t* images
    Py_ssize_t count
    int threads
    char* memory
    Interrupts* signals


cdef void run_regions(void* tasks) noexcept nogil:
    cdef const Tasks* own = <const Tasks*> tasks
    cdef Py_ssize_t r
    for r in prange(own.count, num_threads=own.threads, schedule="dynamic", use_threads_if=own.threads > 1):
        if not interrupted(own.signals):
            run_region(own.job, own.rois, own.images, r, own.memory + threadid() * own.job.scratch)


cdef Images images_of(cnp.ndarray source, int half, bint channels_last):
    cdef int channel = 3 if channels_last else 1, first = 1 if channels_last else 2
    return Images(<char*> cnp.PyArray_DATA(source), half,
                  not cnp.PyArray_ISNOTSWAPPED(source), cnp.PyArray_ISALIGNED(source), cnp.PyArray_ITEMSIZE(source),
                  source.strides[0], source.strides[first], source.strides[first + 1], source.strides[channel])


cdef Py_ssize_t most_taps(const RegionCall* job, Py_ssize_t pooled, Py_ssize_t size, Py_ssize_t most) noexcept nogil:
    """The maximum number of taps of all bins of an axis."""
    cdef double each
    if job.kind == ROI_MAX:  # neighbouring bins share at most the element at their border
        return <Py_ssize_t> min(<double> size + pooled, <double> TOO_LARGE)
    each = job.sampling if job.sampling else most  # corners take one tap per sample
    if job.kind == ALIGN_AVG:
        each = min(2 * each, 2.0 * size + 2)  # averages take two, but at most two per element: see add_weight
    return <Py_ssize_t> min(pooled * each, <double> TOO_LARGE)


cdef void set_sizes(RegionCall* job, Py_ssize_t* x_shape, Py_ssize_t* y_shape, bint channels_last) noexcept nogil:
    cdef int first = 1 if channels_last else 2
    cdef Py_ssize_t most
    job.height, job.width, job.channels = x_shape[first], x_shape[first + 1], x_shape[3 if channels_last else 1]
    job.pooled_height, job.pooled_width = y_shape[first], y_shape[first + 1]
    most = max(job.width, job.pooled_width)
    job.chunk = min(job.channels, max(FEWEST_CHANNELS, ROW // most))
    job.row = (most * job.chunk * sizeof(double) + 63) // 64 * 64
    job.height_taps = most_taps(job, job.pooled_height, job.height, job.most_down)
    job.width_taps = most_taps(job, job.pooled_width, job.width, job.most_across)
    if (<double> job.pooled_height + job.pooled_width + <double> job.height_taps + job.width_taps
            + <double> most * job.chunk > TOO_LARGE / 64.0):
        job.scratch = TOO_LARGE
        return
    job.scratch = ((job.pooled_height + job.pooled_width + 2) * sizeof(Py_ssize_t)
                   + (job.height_taps + job.width_taps) * sizeof(Tap) + 5 * job.row + 63) // 64 * 64


cdef int set_division(RegionCall* job, cut, Py_ssize_t most_down, Py_ssize_t most_across) except -1:
    job.kind = {"roi_max": ROI_MAX, "align_avg": ALIGN_AVG, "align_max": ALIGN_MAX}[cut.kind]
    job.scale, job.offset, job.at_least_one = cut.scale, cut.offset, cut.at_least_one
    job.sampling, job.most_down, job.most_across = cut.sampling, most_down, most_across
    return 0


cdef list bins_between(const RegionCall* job, real_t begin, real_t end, Py_ssize_t pooled, Py_ssize_t size,
                       Py_ssize_t most):
    cdef Py_ssize_t b, i, samples, low = 0, high = 0, first
    cdef real_t start, bin_size, place, part = 0
    bins = []
    if job.kind == ROI_MAX:
        bin_size = cut_elements(job, begin, end, pooled, &first)
        for b in range(pooled):
            elements_of(first, bin_size, b, size, &low, &high)
            bins.append((low, high))
        return bins
    samples = cut_samples(job, begin, end, pooled, most, &start, &bin_size)
    for b in range(pooled):
        row = []
        for i in range(samples):
            place = sample_at(start, bin_size, b, i, samples)
            if interpolated(place, size, &low, &high, &part):
                row.append((place, low, high, part))
            else:
                row.append((place, None, None, None))
        bins.append((start + b * bin_size, start + (b + 1) * bin_size, row))
    return bins


def bins_along(cut, begin, end, Py_ssize_t pooled, Py_ssize_t size, Py_ssize_t most, bint double_precision):
    """The bins of a region along an axis of this size, as the loops find them. `cut` is a `planning.regions.Regions`.

    For MaxRoiPool, a bin is its range of elements [low, high). For RoiAlign, a bin has a start, an end, and samples. A
    sample is a place, the two elements beside it and the weight of the second one. Samples outside the plane have None
    for elements and weight.
    """
    cdef RegionCall job
    set_division(&job, cut, most, most)
    if double_precision:
        return bins_between(&job, <double> begin, <double> end, pooled, size, most)
    return bins_between(&job, <float> begin, <float> end, pooled, size, most)


def pool_regions(cut, cnp.ndarray x, cnp.ndarray y, cnp.ndarray rois, cnp.ndarray images, tuple most,
                 bint channels_last, int threads):
    """Pool region r, (x1, y1, x2, y2) = rois[r], of image images[r] into y[r]. `cut` is a `Regions`, and `most` is the
    maximum number of samples of a bin along each axis.

    All arguments have been checked."""
    cdef int half = DTYPES[x.dtype.name].digits if cnp.PyArray_ITEMSIZE(x) == 2 else 0
    cdef RegionCall job
    cdef Py_ssize_t count = rois.shape[0]
    cdef char* memory
    cdef Tasks tasks
    cdef Interrupts signals
    cdef Team team
    job.x, job.y = images_of(x, half, channels_last), images_of(y, half, channels_last)
    set_division(&job, cut, most[0], most[1])
    set_sizes(&job, <Py_ssize_t*> x.shape, <Py_ssize_t*> y.shape, channels_last)
    memset(&signals, 0, sizeof(Interrupts))
    team = enter_team(threads if count > 1 else 1)
    memory = <char*> malloc(team.threads * job.scratch) if job.scratch < TOO_LARGE else NULL
    if memory == NULL:
        leave_team(&team)
        raise MemoryError(f"onnxpool: cannot allocate {team.threads * job.scratch} bytes of scratch memory")
    tasks = Tasks(&job, cnp.PyArray_DATA(rois), <const int64_t*> cnp.PyArray_DATA(images), count, team.threads, memory,
                  &signals)
    with nogil:
        if team.threads == 1:
            run_regions(&tasks)
        elif not run_together(run_regions, &tasks, &signals):
            team.threads = tasks.threads = 1
            run_regions(&tasks)
    leave_team(&team)
    free(memory)
    raised_by_handler(&signals)
