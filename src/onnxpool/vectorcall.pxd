"""CPython's vectorcall protocol: calls with arrays of arguments, which need neither a tuple nor a dictionary."""
from cpython.object cimport PyObject

ctypedef object (*VectorCall)(object called, PyObject** given, size_t flags, PyObject* keywords)

cdef extern from *:
    """
    /* Let objects of a type be called with arrays of arguments, through the function at this offset in each object. */
    static void onnxpool_take_vectors(PyTypeObject *type, Py_ssize_t offset) {
        type->tp_vectorcall_offset = offset;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    }
    """
    void take_vectors "onnxpool_take_vectors"(object type, Py_ssize_t offset) noexcept

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t flags) noexcept
    object PyVectorcall_Call(object called, tuple given, dict named)
    object PyObject_Vectorcall(object called, PyObject** given, size_t count, PyObject* keywords)
