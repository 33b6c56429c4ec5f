"""The custom operators that onnxruntime calls: each callback finds its `nodes.Kind` or `nodes.Node` and asks it."""
from cpython cimport array
from cpython.exc cimport PyErr_SetInterrupt
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject, PyTypeObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc

cimport numpy as cnp

from .abi cimport (
    API_VERSION,
    FAIL,
    INVALID_ARGUMENT,
    OP_ATTR_FLOAT,
    OP_ATTR_INT,
    OP_ATTR_INTS,
    OP_ATTR_STRING,
    OPTIONAL,
    REQUIRED,
    OrtApi,
    OrtApiBase,
    OrtCustomOp,
    OrtCustomOpDomain,
    OrtKernelContext,
    OrtKernelInfo,
    OrtOp,
    OrtOpAttr,
    OrtSessionOptions,
    OrtShapeInferContext,
    OrtStatus,
    OrtTensorTypeAndShapeInfo,
    OrtValue,
    add_domain,
    add_to_domain,
    create_attribute,
    create_domain,
    create_op,
    create_status,
    create_type_and_shape,
    get_data,
    get_element_type,
    get_error_message,
    get_float,
    get_floats,
    get_input,
    get_input_count,
    get_input_type_and_shape,
    get_int,
    get_ints,
    get_node_attribute,
    get_node_input_count,
    get_node_name,
    get_output,
    get_output_count,
    get_output_name,
    get_rank,
    get_size_names,
    get_sizes,
    get_text,
    get_type_and_shape,
    invoke_op,
    parallel_for,
    read_attribute,
    release_attribute,
    release_op,
    release_status,
    release_type_and_shape,
    set_element_type,
    set_output_type_and_shape,
    set_size_names,
    set_sizes,
)

from ..errors import PoolError, PoolTypeError
from . import nodes

cdef extern from *:
    """
    __attribute__((visibility("default"))) void *RegisterCustomOps(void *options, const void *base);
    """

cdef extern from "Python.h":
    int Py_IsInitialized() nogil

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject* subtype, cnp.PyArray_Descr* descr, int nd, cnp.npy_intp* dims,
                                cnp.npy_intp* strides, void* data, int flags, PyObject* base)
    void PyArray_UpdateFlags(cnp.ndarray array, int flags)

cnp.import_array()

cdef enum:
    MOST_PORTS = 5
    MOST_ATTRIBUTES = 16
    MOST_AXES = 64  # of a NumPy array


# Errors cross the border as statuses, either way.

cdef OrtStatus* refusal(OrtApi api, BaseException error, str where="") noexcept:
    """An exception as a status."""
    cdef bint ours = isinstance(error, (PoolError, PoolTypeError))
    text = str(error) if ours else f"{type(error).__name__}: {error}"
    cdef OrtStatus* status = create_status(api, INVALID_ARGUMENT if ours else FAIL,
                                           (where + text).encode(errors="replace"))
    if isinstance(error, KeyboardInterrupt):
        PyErr_SetInterrupt()  # at last: it is raised again where Python code runs next, which is our caller's
    return status


cdef int check(OrtApi api, OrtStatus* status) except -1:
    """Raises what a status says."""
    if status == NULL:
        return 0
    text = get_error_message(api, status).decode(errors="replace")
    release_status(api, status)
    raise RuntimeError(f"onnxruntime says: {text}")


cdef bint worked(OrtApi api, OrtStatus* status) noexcept:
    """Whether a question had an answer."""
    if status == NULL:
        return True
    release_status(api, status)
    return False


# What an operator is

cdef struct Operator:
    OrtCustomOp slots  # first: onnxruntime hands back a pointer to it
    OrtApi api
    PyObject* kind
    const char* name
    int start
    size_t inputs
    size_t outputs
    int[MOST_PORTS] input_types
    int[MOST_PORTS] input_options
    int[MOST_PORTS] output_types
    int[MOST_PORTS] output_options


include "attributes.pxi"
include "calls.pxi"
include "shapes.pxi"


cdef const char* get_name(const OrtCustomOp* op) noexcept nogil:
    return (<const Operator*>op).name

cdef const char* get_provider(const OrtCustomOp* op) noexcept nogil:
    return "CPUExecutionProvider"

cdef int get_input_type(const OrtCustomOp* op, size_t index) noexcept nogil:
    return (<const Operator*>op).input_types[index]

cdef size_t get_input_type_count(const OrtCustomOp* op) noexcept nogil:
    return (<const Operator*>op).inputs

cdef int get_output_type(const OrtCustomOp* op, size_t index) noexcept nogil:
    return (<const Operator*>op).output_types[index]

cdef size_t get_output_type_count(const OrtCustomOp* op) noexcept nogil:
    return (<const Operator*>op).outputs

cdef int get_input_option(const OrtCustomOp* op, size_t index) noexcept nogil:
    return (<const Operator*>op).input_options[index]

cdef int get_output_option(const OrtCustomOp* op, size_t index) noexcept nogil:
    return (<const Operator*>op).output_options[index]

cdef int get_memory_type(const OrtCustomOp* op, size_t index) noexcept nogil:
    return 0  # where the execution provider has its tensors

cdef int get_variadic(const OrtCustomOp* op) noexcept nogil:
    return 1  # not asked for: no input or output is variadic

cdef int get_start(const OrtCustomOp* op) noexcept nogil:
    return (<const Operator*>op).start

cdef int get_end(const OrtCustomOp* op) noexcept nogil:
    return 2**31 - 1


cdef Operator* new_operator(OrtApi api, kind) except NULL:
    """The description of an operator; it is never freed, as sessions may live as long as the process."""
    cdef Operator* op = <Operator*>calloc(1, sizeof(Operator))
    if op == NULL:
        raise MemoryError
    cdef bytes name = kind.operator.encode()
    Py_INCREF(kind)
    Py_INCREF(name)
    op.api, op.kind, op.name, op.start = api, <PyObject*>kind, name, kind.start
    op.inputs, op.outputs = len(kind.inputs), len(kind.outputs)
    for i, port in enumerate(kind.inputs):
        op.input_types[i] = nodes.ELEMENTS[port.dtype]
        op.input_options[i] = OPTIONAL if port.optional else REQUIRED
    for i, port in enumerate(kind.outputs):
        op.output_types[i] = nodes.ELEMENTS[port.dtype]
        op.output_options[i] = OPTIONAL if port.optional else REQUIRED
    op.slots.version = API_VERSION
    op.slots.GetName = get_name
    op.slots.GetExecutionProviderType = get_provider
    op.slots.GetInputType = get_input_type
    op.slots.GetInputTypeCount = get_input_type_count
    op.slots.GetOutputType = get_output_type
    op.slots.GetOutputTypeCount = get_output_type_count
    op.slots.KernelDestroy = destroy
    op.slots.GetInputCharacteristic = get_input_option
    op.slots.GetOutputCharacteristic = get_output_option
    op.slots.GetInputMemoryType = get_memory_type
    op.slots.GetVariadicInputMinArity = get_variadic
    op.slots.GetVariadicInputHomogeneity = get_variadic
    op.slots.GetVariadicOutputMinArity = get_variadic
    op.slots.GetVariadicOutputHomogeneity = get_variadic
    op.slots.CreateKernelV2 = create
    op.slots.KernelComputeV2 = compute
    if len(kind.inputs) == 1:  # up to 1.19 onnxruntime follows a null pointer for an input that is left out
        op.slots.InferOutputShapeFn = infer_shape
    op.slots.GetStartVersion = get_start
    op.slots.GetEndVersion = get_end
    return op


# How onnxruntime learns of it

wanted = None  # the kinds of operators to register, while `onnxpool.onnxruntime.register` does it
cdef dict domains = {}  # api, kinds -> the domains made of them; kept for good, like the operators


cdef public void* RegisterCustomOps(void* options, const void* base) noexcept with gil:
    """What onnxruntime looks for in a library of custom operators, which this module is."""
    cdef OrtApi api = (<const OrtApiBase*>base).GetApi(API_VERSION)
    if api == NULL or wanted is None:
        api = (<const OrtApiBase*>base).GetApi(1)  # in any release a status can be made
        return refusal(api, PoolError("use onnxpool.onnxruntime.register(session_options)"))
    try:
        key = <uintptr_t>api, tuple(wanted)
        if key not in domains:
            domains[key] = make_domains(api, wanted)
        for address in domains[key]:
            check(api, add_domain(api, <OrtSessionOptions*>options, <OrtCustomOpDomain*><uintptr_t>address))
    except BaseException as error:
        return refusal(api, error)
    return NULL


cdef list make_domains(OrtApi api, kinds):
    """A domain object for each domain, with its operators."""
    cdef OrtCustomOpDomain* domain
    made = []
    for name in sorted({kind.domain for kind in kinds}):
        check(api, create_domain(api, name.encode(), &domain))
        made.append(<uintptr_t>domain)
        for kind in kinds:
            if kind.domain == name:
                check(api, add_to_domain(api, domain, &new_operator(api, kind).slots))
    return made
