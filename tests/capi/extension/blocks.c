/* An extension in plain C that pools without the GIL, built by test_cython_api.py. */
#include <onnxpool.h>

#include <string.h>

/* max_blocks(x, y, height, width, size): the maximum of each size x size block of a float32 image. */
static PyObject *max_blocks(PyObject *self, PyObject *arguments) {
    Py_buffer x, y;
    long long height, width, size;
    onnxpool_handle *handle = NULL;
    onnxpool_geometry geometry;
    int64_t shape[4] = {1, 1}, kernel[2], result[64];
    int status = ONNXPOOL_OK, ndim;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "y*w*LLL", &x, &y, &height, &width, &size))
        return NULL;
    shape[2] = height, shape[3] = width, kernel[0] = kernel[1] = size;
    memset(&geometry, 0, sizeof geometry);
    geometry.size = sizeof geometry;
    geometry.operation = ONNXPOOL_MAX_POOL;
    geometry.dtype = ONNXPOOL_FLOAT32;
    geometry.ndim = 4;
    geometry.shape = shape;
    geometry.kernel_shape = geometry.strides = kernel;
    handle = onnxpool.prepare_geometry(&geometry);
    if (handle) {
        ndim = onnxpool.output_shape(handle, result);
        if (ndim != 4 || x.len != height * width * 4 || y.len != result[2] * result[3] * 4) {
            PyErr_SetString(PyExc_ValueError, "buffers of another size");
        } else {
            Py_BEGIN_ALLOW_THREADS
            status = onnxpool.run(handle, x.buf, y.buf, NULL, 1);
            onnxpool.release(handle);
            Py_END_ALLOW_THREADS
            handle = NULL;
        }
        onnxpool.release(handle);
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    if (status != ONNXPOOL_OK)
        PyErr_SetString(PyExc_RuntimeError, onnxpool.message(status));
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"max_blocks", max_blocks, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "blocks", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_blocks(void) {
    return onnxpool_import() ? NULL : PyModule_Create(&definition);
}
