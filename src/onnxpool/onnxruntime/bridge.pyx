"""The custom operators that onnxruntime calls. Each callback delegates to a `nodes.Kind` or a `nodes.Node`."""
from cpython cimport array
from cpython.exc cimport PyErr_SetInterrupt
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject, PyTypeObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc

cimport numpy as cnp

from ..kernels.core.job cimport MOST_AXES
from .abi cimport (
    API_VERSION,
    FAIL,
    INVALID_ARGUMENT,
    OP_ATTR_FLOAT,
    OP_ATTR_INT,
    OP_ATTR_INTS,
    OP_ATTR_STRING,
    OrtApi,
    OrtApiBase,
    OrtCustomOp,
    OrtCustomOpDomain,
    OrtKernelContext,
    OrtKernelInfo,
    OrtOp,
    OrtOpAttr,
    OrtSessionOptions,
    OrtStatus,
    OrtTensorTypeAndShapeInfo,
    OrtTypeInfo,
    OrtValue,
    add_domain,
    add_to_domain,
    create_attribute,
    create_domain,
    create_op,
    create_status,
    get_data,
    get_element_type,
    get_error_message,
    get_float,
    get_input,
    get_input_count,
    get_input_type,
    get_int,
    get_ints,
    get_node_input_count,
    get_node_name,
    get_output,
    get_output_count,
    get_output_name,
    get_rank,
    get_sizes,
    get_tensor_info,
    get_text,
    get_type_and_shape,
    invoke_op,
    parallel_for,
    release_attribute,
    release_op,
    release_status,
    release_type,
    release_type_and_shape,
)

from _thread import allocate_lock

from ..errors import PoolError, PoolTypeError, printable
from . import nodes

cdef extern from *:
    """
    Py_EXPORTED_SYMBOL void *RegisterCustomOps(void *options, const void *base);
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
    MOST_REFUSED = 64  # shapes that a node remembers


# Statuses, which carry errors across the boundary in both directions

cdef OrtStatus* refusal(OrtApi api, BaseException error, str where="") noexcept:
    """An exception as a status."""
    cdef bint ours = isinstance(error, (PoolError, PoolTypeError))
    text = str(error) if ours else printable(f"{type(error).__name__}: {error}")
    cdef OrtStatus* status = create_status(api, INVALID_ARGUMENT if ours else FAIL,
                                           (where + text).encode(errors="replace"))
    if isinstance(error, KeyboardInterrupt):
        PyErr_SetInterrupt()  # last: it is raised again as soon as Python code runs, in our caller
    return status


cdef int check(OrtApi api, OrtStatus* status) except -1:
    """Raise an error if a status describes one."""
    text = message(api, status)
    if text:
        raise RuntimeError(f"onnxruntime says: {text}")
    return 0


cdef str message(OrtApi api, OrtStatus* status):
    """The message of a status, or "" if it describes no error."""
    if status == NULL:
        return ""
    text = get_error_message(api, status).decode(errors="replace")
    release_status(api, status)
    return printable(text) or "an error without a message"


cdef bint worked(OrtApi api, OrtStatus* status) noexcept:
    """Whether a query succeeded."""
    if status == NULL:
        return True
    release_status(api, status)
    return False


# Descriptions of operators

cdef struct CustomOperator:
    OrtCustomOp slots  # first, because onnxruntime passes back a pointer to it
    OrtApi api
    PyObject* kind
    const char* name
    int version


include "attributes.pxi"
include "calls.pxi"


cdef const char* get_name(const OrtCustomOp* op) noexcept nogil:
    return (<const CustomOperator*>op).name

cdef const char* get_provider(const OrtCustomOp* op) noexcept nogil:
    return "CPUExecutionProvider"

cdef size_t get_no_ports(const OrtCustomOp* op) noexcept nogil:
    return 0

cdef int get_version(const OrtCustomOp* op) noexcept nogil:
    return (<const CustomOperator*>op).version


# Registering a custom operator adds a schema and a kernel, but onnxpool needs only the kernel: nodes should keep the
# schema of ONNX or onnxruntime, with its defaults, its checks, and the version that optimisers look for. onnxruntime
# creates a schema from the first custom operator with each name. The first operator therefore has a version that no
# model reaches, and each further operator provides the kernel of one version. They declare no inputs or outputs,
# because onnxruntime would look up the types by names that only the unused schema has. Kernels without declarations
# accept every type.
cdef enum:
    UNREACHED = 1000  # the last version that onnxruntime allows in the domains of custom operators


cdef CustomOperator* new_operator(OrtApi api, str name, int version, kind) except NULL:
    """Allocate the description of an operator. It is never freed, because sessions may live as long as the process."""
    cdef CustomOperator* op = <CustomOperator*>calloc(1, sizeof(CustomOperator))
    if op == NULL:
        raise MemoryError
    cdef bytes text = name.encode()
    Py_INCREF(kind)
    Py_INCREF(text)
    op.api, op.kind, op.name, op.version = api, <PyObject*>kind, text, version
    op.slots.version = API_VERSION
    op.slots.GetName = get_name
    op.slots.GetExecutionProviderType = get_provider
    op.slots.GetInputTypeCount = get_no_ports
    op.slots.GetOutputTypeCount = get_no_ports
    op.slots.KernelDestroy = destroy
    op.slots.CreateKernelV2 = create
    op.slots.KernelComputeV2 = compute
    op.slots.GetStartVersion = get_version
    op.slots.GetEndVersion = get_version
    return op


# Registration with onnxruntime

wanted = None  # the kinds of operators to register, set by `onnxpool.onnxruntime.register`
cdef dict domains = {}  # (api, kinds) -> domains of these kinds, which are never freed either


cdef public void* RegisterCustomOps(void* options, const void* base) noexcept with gil:
    """The entry point of a library of custom operators, which onnxruntime looks up in this module."""
    cdef OrtApi api = (<const OrtApiBase*>base).GetApi(API_VERSION)
    if api == NULL or wanted is None:
        api = (<const OrtApiBase*>base).GetApi(1)  # every release supports version 1, which can create a status
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
    """Create a domain object for each domain, with its operators."""
    cdef OrtCustomOpDomain* domain
    made = []
    for name in sorted({kind.domain for kind in kinds}):
        check(api, create_domain(api, name.encode(), &domain))
        made.append(<uintptr_t>domain)
        own = [kind for kind in kinds if kind.domain == name]
        for operator in sorted({kind.operator for kind in own}):
            check(api, add_to_domain(api, domain, &new_operator(api, operator, UNREACHED, None).slots))
        for kind in own:
            check(api, add_to_domain(api, domain, &new_operator(api, kind.operator, kind.since, kind).slots))
    return made
