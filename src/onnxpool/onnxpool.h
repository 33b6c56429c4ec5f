/* onnxpool's kernels for C and C++, on raw pointers and without the GIL. See docs/c-api.md.
 *
 * The declarations match cython_api.pxd. They form an ABI that is only ever extended. Call `onnxpool_import`
 * once, with the GIL, to look up the functions. Each source file that includes this header has its own copy.
 */
#ifndef ONNXPOOL_H
#define ONNXPOOL_H

#include <Python.h>
#include <stdint.h>

#define ONNXPOOL_ABI_VERSION 1

enum { /* operators */
    ONNXPOOL_AVERAGE_POOL = 1,
    ONNXPOOL_MAX_POOL = 2,
    ONNXPOOL_LP_POOL = 3,
    ONNXPOOL_GLOBAL_AVERAGE_POOL = 4,
    ONNXPOOL_GLOBAL_MAX_POOL = 5,
    ONNXPOOL_GLOBAL_LP_POOL = 6,
    ONNXPOOL_QLINEAR_AVERAGE_POOL = 7,
    ONNXPOOL_QLINEAR_GLOBAL_AVERAGE_POOL = 8,
    ONNXPOOL_NHWC_MAX_POOL = 9
};

enum { /* dtypes, by their numbers in ONNX */
    ONNXPOOL_FLOAT32 = 1,
    ONNXPOOL_UINT8 = 2,
    ONNXPOOL_INT8 = 3,
    ONNXPOOL_FLOAT16 = 10,
    ONNXPOOL_FLOAT64 = 11,
    ONNXPOOL_BFLOAT16 = 16
};

enum { /* auto_pad */
    ONNXPOOL_NOTSET = 0,
    ONNXPOOL_SAME_UPPER = 1,
    ONNXPOOL_SAME_LOWER = 2,
    ONNXPOOL_VALID = 3
};

enum { /* the status of a run */
    ONNXPOOL_OK = 0,
    ONNXPOOL_NULL_POINTER = 1,
    ONNXPOOL_BAD_INDICES = 2,
    ONNXPOOL_BAD_THREADS = 3,
    ONNXPOOL_NO_MEMORY = 4
};

typedef struct onnxpool_handle onnxpool_handle;

typedef struct onnxpool_geometry { /* 0 and NULL mean not given */
    int64_t size;                  /* sizeof(onnxpool_geometry) */
    int32_t operation, dtype, opset, ndim, channels_last, return_indices, storage_order, ceil_mode, count_include_pad;
    int32_t auto_pad;
    double p;
    const int64_t *shape, *kernel_shape, *strides, *pads, *dilations;
    const int64_t *x_strides, *y_strides, *indices_strides;
    float x_scale, y_scale;
    int32_t x_zero_point, y_zero_point;
} onnxpool_geometry;

static struct {
    int (*abi_version)(void);
    onnxpool_handle *(*prepare)(PyObject *plan, PyObject *inputs);
    onnxpool_handle *(*prepare_geometry)(const onnxpool_geometry *geometry);
    void (*retain)(onnxpool_handle *handle);
    void (*release)(onnxpool_handle *handle);
    int (*output_shape)(const onnxpool_handle *handle, int64_t *shape);
    int (*run)(const onnxpool_handle *handle, const void *x, void *y, int64_t *indices, int threads);
    const char *(*message)(int status);
} onnxpool;

/* Returns 0, or -1 with a Python exception set. */
static int onnxpool_import(void) {
    static const char *const names[] = {"abi_version", "prepare", "prepare_geometry", "retain",
                                        "release",     "output_shape", "run",         "message"};
    void **functions = (void **)&onnxpool;
    PyObject *module = PyImport_ImportModule("onnxpool.cython_api");
    PyObject *capsules = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;
    char name[64];
    size_t i;
    for (i = 0; capsules && i < sizeof names / sizeof *names; i++) {
        PyObject *capsule;
        PyOS_snprintf(name, sizeof name, "onnxpool_%s", names[i]);
        capsule = PyMapping_GetItemString(capsules, name);
        functions[i] = capsule ? PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)) : NULL;
        Py_XDECREF(capsule);
        if (!functions[i])
            break;
    }
    Py_XDECREF(capsules);
    Py_XDECREF(module);
    return PyErr_Occurred() ? -1 : 0;
}

#endif
