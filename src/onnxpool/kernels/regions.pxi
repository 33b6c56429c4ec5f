"""Regions: MaxRoiPool and RoiAlign. A region of a plane is cut into bins, and every bin of an axis knows its taps.

Maxima and averages of a region are separable like any pool: in each row the columns of each bin, then the rows. Only
RoiAlign's maximum, of weighted corners, has to visit each sample.
"""
from libc.math cimport ceil, floor, round
from libc.stdlib cimport calloc

ctypedef fused real_t:
    float
    double

ctypedef fused region_t:
    MaxF32
    MaxF64
    SumF64

cdef enum RegionKind:
    ROI_MAX         # MaxRoiPool
    ALIGN_AVG       # RoiAlign
    ALIGN_MAX


cdef struct Tap:
    Py_ssize_t at, after       # elements; `after` only for a corner pair
    double weight, rest        # of each of them


cdef struct Bins:
    Py_ssize_t* first          # of bin b: its taps are first[b] .. first[b + 1] - 1
    Tap* taps
    Py_ssize_t low, high       # the elements that any tap names
    Py_ssize_t samples         # of each bin


cdef struct Regions:
    RegionKind kind
    Array x, y
    Py_ssize_t height, width, channels, inner, chunk, pooled_height, pooled_width, sampling, grid_limit
    double scale, offset
    bint at_least_one, narrow              # narrow: values are floats
    Py_ssize_t height_taps, width_taps, scratch, row


cdef void add_weight(Bins* bins, Py_ssize_t b, Py_ssize_t* count, Py_ssize_t at, double weight) noexcept nogil:
    """Samples advance, so an element that was met before is one of the last four taps.

    A weight of 0 stays a tap of its own: times an infinity it is NaN, as in the formula.
    """
    cdef Py_ssize_t i
    for i in range(max(bins.first[b], count[0] - 4), count[0]):
        if bins.taps[i].at == at and (bins.taps[i].weight == 0) == (weight == 0):
            bins.taps[i].weight += weight
            return
    bins.taps[count[0]] = Tap(at, at, weight, 0)
    count[0] += 1


cdef void add_sample(Bins* bins, Py_ssize_t b, Py_ssize_t* count, real_t place, Py_ssize_t size,
                     bint pairs) noexcept nogil:
    """A sample between two elements; outside of the plane it is worth nothing."""
    cdef Py_ssize_t low, high
    cdef real_t part
    if place < -1 or place > size:
        if pairs:
            bins.taps[count[0]] = Tap(0, 0, 0, 0)
            count[0] += 1
        return
    place = max(place, <real_t> 0)
    low = <Py_ssize_t> place
    if low >= size - 1:
        low = high = size - 1
        part = 0
    else:
        high = low + 1
        part = place - low
    if pairs:
        bins.taps[count[0]] = Tap(low, high, <real_t> 1 - part, part)
        count[0] += 1
    else:
        add_weight(bins, b, count, low, 1 - <double> part)
        add_weight(bins, b, count, high, part)


cdef void align_bins(Bins* bins, const Regions* job, real_t begin, real_t end, Py_ssize_t pooled,
                     Py_ssize_t size) noexcept nogil:
    cdef real_t scale = <real_t> job.scale, offset = <real_t> job.offset, length, bin_size
    cdef Py_ssize_t b, i, count = 0
    begin = begin * scale - offset
    end = end * scale - offset
    length = end - begin
    if job.at_least_one:
        length = max(length, <real_t> 1)
    bin_size = length / pooled
    bins.samples = job.sampling
    if job.sampling == 0:
        bins.samples = <Py_ssize_t> max(<real_t> 0, min(<real_t> job.grid_limit, <real_t> ceil(bin_size)))
    for b in range(pooled):
        bins.first[b] = count
        for i in range(bins.samples):
            add_sample(bins, b, &count, begin + b * bin_size + (i + <real_t> 0.5) * bin_size / bins.samples, size,
                       job.kind == ALIGN_MAX)
    bins.first[pooled] = count
    if job.kind == ALIGN_AVG:
        # Divided here, so that no sum overflows where the mean would not.
        for i in range(count):
            bins.taps[i].weight /= bins.samples


cdef void roi_bins(Bins* bins, const Regions* job, real_t begin, real_t end, Py_ssize_t pooled,
                   Py_ssize_t size) noexcept nogil:
    cdef real_t scale = <real_t> job.scale, limit = 1 << 28, bin_size
    cdef Py_ssize_t b, i, count = 0, start, stop, low, high
    start = <Py_ssize_t> round(max(-limit, min(limit, begin * scale)))
    stop = <Py_ssize_t> round(max(-limit, min(limit, end * scale)))
    bin_size = <real_t> max(stop - start + 1, 1) / pooled
    for b in range(pooled):
        bins.first[b] = count
        low = min(max(<Py_ssize_t> floor(b * bin_size) + start, 0), size)
        high = min(max(<Py_ssize_t> ceil((b + 1) * bin_size) + start, 0), size)
        for i in range(low, high):
            bins.taps[count] = Tap(i, i, 1, 0)
            count += 1
    bins.first[pooled] = count


cdef void bound(Bins* bins, Py_ssize_t pooled, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    bins.low, bins.high = size, 0
    for i in range(bins.first[pooled]):
        bins.low = min(bins.low, bins.taps[i].at)
        bins.high = max(bins.high, bins.taps[i].after + 1)
    bins.low = min(bins.low, bins.high)


cdef inline region_t weighted(region_t value, double weight) noexcept nogil:
    if region_t is SumF64:
        value.value = value.value * weight
    return value


cdef void add_tap(const region_t* x, region_t* y, Py_ssize_t n, double weight, bint fresh) noexcept nogil:
    cdef Py_ssize_t j
    if fresh:
        for j in range(n):
            y[j] = weighted(x[j], weight)
    else:
        for j in range(n):
            y[j] = combine(y[j], weighted(x[j], weight))


cdef const region_t* region_row(const Regions* job, const char* plane, const Bins* columns, Py_ssize_t row,
                                Py_ssize_t inner, region_t* wide, Scratch* scratch) noexcept nogil:
    """A row over the columns of the region; averages of floats are taken in double, `wide` being room for the row."""
    cdef Py_ssize_t j, length = columns.high - columns.low
    cdef const char* values = read_row(&job.x, plane + row * job.x.axis[0] + columns.low * job.x.axis[1], job.x.axis[1],
                                       length, inner, scratch)
    if region_t is SumF64:
        if job.narrow:
            for j in range(length * inner):
                wide[j].value = (<const float*> values)[j]
            return wide
    return <const region_t*> values


cdef const char* narrow_values(const Regions* job, region_t* values, Py_ssize_t n) noexcept nogil:
    """Averages that were taken in double, as floats in their place; 16-bit results are rounded only once."""
    cdef Py_ssize_t j
    cdef float* narrow = <float*> values
    if region_t is SumF64:
        if job.narrow:
            for j in range(n):
                narrow[j] = <float> values[j].value if job.y.format == PLAIN else round_to_odd(values[j].value)
    return <const char*> values


cdef void separable_bin_row(const Regions* job, const char* plane, const Bins* rows, const Bins* columns, Py_ssize_t b,
                            Py_ssize_t inner, region_t* out, region_t* part, region_t* wide,
                            Scratch* scratch) noexcept nogil:
    """One row of bins: out[pooled_width, inner]. Columns come first, so equal maxima resolve in row-major order."""
    cdef Py_ssize_t i, c, j, k
    cdef const region_t* row
    for j in range(job.pooled_width * inner):
        out[j].value = 0
    for i in range(rows.first[b], rows.first[b + 1]):
        row = region_row(job, plane, columns, rows.taps[i].at, inner, wide, scratch)
        for c in range(job.pooled_width):
            for k in range(columns.first[c], columns.first[c + 1]):
                add_tap(row + (columns.taps[k].at - columns.low) * inner, part, inner, columns.taps[k].weight,
                        k == columns.first[c])
            if columns.first[c] < columns.first[c + 1]:
                add_tap(part, out + c * inner, inner, rows.taps[i].weight, i == rows.first[b])


cdef inline region_t scaled(region_t value, region_t weight) noexcept nogil:
    value.value = value.value * weight.value
    return value


cdef void add_corners(const region_t* upper, const region_t* lower, Py_ssize_t after, region_t* y, Py_ssize_t n,
                      const Tap* row, const Tap* column, bint fresh) noexcept nogil:
    """The largest of a sample's four weighted corners; `after` is from the left ones to the right ones."""
    cdef Py_ssize_t j
    cdef region_t a, b, c, d, corner
    a.value, b.value = row.weight * column.weight, row.weight * column.rest
    c.value, d.value = row.rest * column.weight, row.rest * column.rest
    if (row.weight == 0 and row.rest == 0) or (column.weight == 0 and column.rest == 0):
        corner.value = 0  # the sample is outside
        for j in range(n):
            y[j] = corner if fresh else combine(y[j], corner)
        return
    for j in range(n):
        corner = combine(combine(scaled(upper[j], a), scaled(upper[j + after], b)),
                         combine(scaled(lower[j], c), scaled(lower[j + after], d)))
        y[j] = corner if fresh else combine(y[j], corner)


cdef void corner_bin_row(const Regions* job, const char* plane, const Bins* rows, const Bins* columns, Py_ssize_t b,
                         Py_ssize_t inner, region_t* out, region_t* upper, Scratch* scratch) noexcept nogil:
    """As `separable_bin_row`: the maximum over all samples of the largest of four weighted corners."""
    cdef Py_ssize_t i, c, j, k, left, n = (columns.high - columns.low) * inner
    cdef const region_t* lower
    cdef region_t* target
    cdef const Tap* row
    cdef const Tap* column
    for j in range(job.pooled_width * inner):
        out[j].value = 0
    for i in range(rows.first[b], rows.first[b + 1]):
        row = &rows.taps[i]
        memcpy(upper, region_row(job, plane, columns, row.at, inner, out, scratch), n * sizeof(region_t))
        lower = region_row(job, plane, columns, row.after, inner, out, scratch)
        for c in range(job.pooled_width):
            target = out + c * inner
            for k in range(columns.first[c], columns.first[c + 1]):
                column = &columns.taps[k]
                left = (column.at - columns.low) * inner
                add_corners(upper + left, lower + left, (column.after - column.at) * inner, target, inner, row, column,
                            i == rows.first[b] and k == columns.first[c])


cdef void pool_region(region_t* like, const Regions* job, Py_ssize_t region, Py_ssize_t image, const Bins* rows,
                      const Bins* columns, char* memory) noexcept nogil:
    cdef Scratch scratch
    cdef region_t* sums = <region_t*> (memory + 2 * job.row)
    cdef region_t* out = <region_t*> (memory + 3 * job.row)
    cdef region_t* wide = <region_t*> (memory + 4 * job.row)
    cdef Py_ssize_t channel = 0, inner, b
    cdef const char* plane
    cdef char* target
    scratch.elements = memory
    scratch.values = memory + job.row
    while channel < job.channels:
        inner = min(job.chunk, job.channels - channel)
        plane = job.x.data + image * job.x.image + channel * job.x.inner
        target = job.y.data + region * job.y.image + channel * job.y.inner
        for b in range(job.pooled_height):
            if job.kind == ALIGN_MAX:
                corner_bin_row(job, plane, rows, columns, b, inner, out, sums, &scratch)
            else:
                separable_bin_row(job, plane, rows, columns, b, inner, out, sums, wide, &scratch)
            write_row(&job.y, narrow_values(job, out, job.pooled_width * inner), target + b * job.y.axis[0],
                      job.y.axis[1], job.pooled_width, inner, &scratch)
        channel += inner


cdef void run_region(const Regions* job, const real_t* roi, Py_ssize_t region, Py_ssize_t image,
                     char* memory) noexcept nogil:
    cdef float_state saved = enter_default_floats()
    cdef Bins rows, columns
    rows.samples = columns.samples = 1
    rows.first = <Py_ssize_t*> memory
    columns.first = rows.first + job.pooled_height + 1
    rows.taps = <Tap*> (columns.first + job.pooled_width + 1)
    columns.taps = rows.taps + job.height_taps
    memory = <char*> (columns.taps + job.width_taps)
    if job.kind == ROI_MAX:
        roi_bins(&rows, job, roi[1], roi[3], job.pooled_height, job.height)
        roi_bins(&columns, job, roi[0], roi[2], job.pooled_width, job.width)
    else:
        align_bins(&rows, job, roi[1], roi[3], job.pooled_height, job.height)
        align_bins(&columns, job, roi[0], roi[2], job.pooled_width, job.width)
    bound(&rows, job.pooled_height, job.height)
    bound(&columns, job.pooled_width, job.width)
    if job.kind == ALIGN_AVG:
        pool_region(<SumF64*> NULL, job, region, image, &rows, &columns, memory)
    elif real_t is float:
        pool_region(<MaxF32*> NULL, job, region, image, &rows, &columns, memory)
    else:
        pool_region(<MaxF64*> NULL, job, region, image, &rows, &columns, memory)
    leave_default_floats(saved)


cdef void describe_regions(Array* array, cnp.ndarray source, Format format, bint channels_last):
    """Channels are the innermost loop whatever the layout: rows of other arrays are gathered, and vectors are full."""
    cdef int channel = 3 if channels_last else 1, first = 1 if channels_last else 2
    array.data = <char*> cnp.PyArray_DATA(source)
    array.format, array.itemsize = format, cnp.PyArray_ITEMSIZE(source)
    array.swapped = not cnp.PyArray_ISNOTSWAPPED(source)
    array.aligned = cnp.PyArray_ISALIGNED(source)
    array.image = source.strides[0]
    array.inner, array.channel = source.strides[channel], 0
    array.axis[0], array.axis[1] = source.strides[first], source.strides[first + 1]


def pool_regions(str kind, cnp.ndarray x, cnp.ndarray y, cnp.ndarray rois, cnp.ndarray images, str dtype, double scale,
                 double offset, bint at_least_one, Py_ssize_t sampling, Py_ssize_t grid_limit, bint channels_last,
                 int threads):
    """Pools region r of image images[r], (x1, y1, x2, y2) = rois[r], into y[r]; everything was checked."""
    cdef Regions job
    cdef Py_ssize_t r, count = rois.shape[0], most
    cdef const float* rois_f32 = <const float*> cnp.PyArray_DATA(rois)
    cdef const double* rois_f64 = <const double*> cnp.PyArray_DATA(rois)
    cdef const int64_t* image = <const int64_t*> cnp.PyArray_DATA(images)
    cdef int first = 1 if channels_last else 2
    cdef bint wide = dtype == "float64"
    cdef char* memory
    cdef const Regions* fixed = &job
    cdef Interrupts signals
    job.kind = {"roi_max": ROI_MAX, "align_avg": ALIGN_AVG, "align_max": ALIGN_MAX}[kind]
    describe_regions(&job.x, x, FORMATS.get(dtype, PLAIN), channels_last)
    describe_regions(&job.y, y, FORMATS.get(dtype, PLAIN), channels_last)
    job.height, job.width = x.shape[first], x.shape[first + 1]
    job.pooled_height, job.pooled_width = y.shape[first], y.shape[first + 1]
    job.channels = x.shape[3 if channels_last else 1]
    job.scale, job.offset, job.at_least_one, job.narrow = scale, offset, at_least_one, not wide
    job.sampling, job.grid_limit = sampling, grid_limit
    most = max(job.width, job.pooled_width)
    job.chunk = min(job.channels, max(64, REGION_ROW // most))
    job.row = most * job.chunk * sizeof(double)
    # A bin has a tap for each sample, or two for each element at most (see add_weight).
    job.height_taps = job.pooled_height * (grid_limit if kind == "align_max" else 2 * job.height + 2)
    job.width_taps = job.pooled_width * (grid_limit if kind == "align_max" else 2 * job.width + 2)
    job.scratch = parts((job.pooled_height + job.pooled_width + 2) * sizeof(Py_ssize_t)
                        + (job.height_taps + job.width_taps) * sizeof(Tap) + 5 * job.row, 64) * 64
    threads = enter_team(threads if count > 1 else 1)
    memory = <char*> calloc(threads, job.scratch)
    if memory == NULL:
        leave_team(threads)
        raise MemoryError(f"onnxpool: no {threads * job.scratch} bytes of scratch memory")
    memset(&signals, 0, sizeof(Interrupts))
    with nogil:
        for r in prange(count, num_threads=threads, schedule="dynamic", use_threads_if=threads > 1):
            if interrupted(&signals):
                pass
            elif wide:
                run_region(fixed, rois_f64 + 4 * r, r, image[r], memory + threadid() * job.scratch)
            else:
                run_region(fixed, rois_f32 + 4 * r, r, image[r], memory + threadid() * job.scratch)
    leave_team(threads)
    free(memory)
    raised_by_handler(&signals)
