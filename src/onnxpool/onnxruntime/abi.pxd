"""The part of onnxruntime's C ABI that is used here, as of API version 17.

Handles are opaque. OrtApi is a table of function pointers, which later versions only extend. The number of a slot
therefore never changes, and neither does the order of the members of OrtCustomOp. Both follow onnxruntime's public
header include/onnxruntime/core/session/onnxruntime_c_api.h.
"""
from libc.stdint cimport int64_t, uint32_t

cdef extern from * nogil:
    """
    typedef struct OrtStatus OrtStatus;
    typedef struct OrtSessionOptions OrtSessionOptions;
    typedef struct OrtCustomOpDomain OrtCustomOpDomain;
    typedef struct OrtKernelInfo OrtKernelInfo;
    typedef struct OrtKernelContext OrtKernelContext;
    typedef struct OrtTypeInfo OrtTypeInfo;
    typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
    typedef struct OrtValue OrtValue;
    typedef struct OrtOp OrtOp;
    typedef struct OrtOpAttr OrtOpAttr;
    """
    ctypedef struct OrtStatus:
        pass
    ctypedef struct OrtSessionOptions:
        pass
    ctypedef struct OrtCustomOpDomain:
        pass
    ctypedef struct OrtKernelInfo:
        pass
    ctypedef struct OrtKernelContext:
        pass
    ctypedef struct OrtTypeInfo:
        pass
    ctypedef struct OrtTensorTypeAndShapeInfo:
        pass
    ctypedef struct OrtValue:
        pass
    ctypedef struct OrtOp:
        pass
    ctypedef struct OrtOpAttr:
        pass

cdef enum:
    API_VERSION = 17  # onnxruntime 1.17, the first whose custom operators can state the opset that introduced them

cdef enum:  # OrtErrorCode
    FAIL = 1
    INVALID_ARGUMENT = 2

cdef enum:  # OrtOpAttrType
    OP_ATTR_INT = 1
    OP_ATTR_INTS = 2
    OP_ATTR_FLOAT = 3
    OP_ATTR_STRING = 5

ctypedef const void* const* OrtApi

cdef struct OrtApiBase:
    OrtApi (*GetApi)(uint32_t version) noexcept nogil
    const char* (*GetVersionString)() noexcept nogil

cdef struct OrtCustomOp:  # untyped slots are unused, as there are no inputs and outputs to describe
    uint32_t version
    void* CreateKernel  # unused: unlike CreateKernelV2, it cannot report an error
    const char* (*GetName)(const OrtCustomOp* op) noexcept nogil
    const char* (*GetExecutionProviderType)(const OrtCustomOp* op) noexcept nogil
    void* GetInputType
    size_t (*GetInputTypeCount)(const OrtCustomOp* op) noexcept nogil
    void* GetOutputType
    size_t (*GetOutputTypeCount)(const OrtCustomOp* op) noexcept nogil
    void* KernelCompute  # unused: KernelComputeV2 replaces it
    void (*KernelDestroy)(void* kernel) noexcept nogil
    void* GetInputCharacteristic
    void* GetOutputCharacteristic
    void* GetInputMemoryType
    void* GetVariadicInputMinArity
    void* GetVariadicInputHomogeneity
    void* GetVariadicOutputMinArity
    void* GetVariadicOutputHomogeneity
    OrtStatus* (*CreateKernelV2)(const OrtCustomOp* op, OrtApi api, const OrtKernelInfo* info,
                                 void** kernel) noexcept nogil
    OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext* context) noexcept nogil
    void* InferOutputShapeFn
    int (*GetStartVersion)(const OrtCustomOp* op) noexcept nogil
    int (*GetEndVersion)(const OrtCustomOp* op) noexcept nogil


# Statuses; NULL is success

ctypedef OrtStatus* (*CreateStatus)(int code, const char* text) noexcept nogil
ctypedef const char* (*GetErrorMessage)(const OrtStatus* status) noexcept nogil
ctypedef void (*ReleaseStatus)(OrtStatus* status) noexcept nogil

cdef inline OrtStatus* create_status(OrtApi api, int code, const char* text) noexcept nogil:
    return (<CreateStatus>api[0])(code, text)

cdef inline const char* get_error_message(OrtApi api, const OrtStatus* status) noexcept nogil:
    return (<GetErrorMessage>api[2])(status)

cdef inline void release_status(OrtApi api, OrtStatus* status) noexcept nogil:
    (<ReleaseStatus>api[93])(status)


# Domains of custom operators

ctypedef OrtStatus* (*CreateCustomOpDomain)(const char* domain, OrtCustomOpDomain** out) noexcept nogil
ctypedef OrtStatus* (*CustomOpDomainAdd)(OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept nogil
ctypedef OrtStatus* (*AddCustomOpDomain)(OrtSessionOptions* options, OrtCustomOpDomain* domain) noexcept nogil

cdef inline OrtStatus* create_domain(OrtApi api, const char* domain, OrtCustomOpDomain** out) noexcept nogil:
    return (<CreateCustomOpDomain>api[26])(domain, out)

cdef inline OrtStatus* add_to_domain(OrtApi api, OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept nogil:
    return (<CustomOpDomainAdd>api[27])(domain, op)

cdef inline OrtStatus* add_domain(OrtApi api, OrtSessionOptions* options, OrtCustomOpDomain* domain) noexcept nogil:
    return (<AddCustomOpDomain>api[28])(options, domain)


# Tensors

ctypedef OrtStatus* (*GetTensorMutableData)(OrtValue* value, void** out) noexcept nogil
ctypedef OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo* info, int* out) noexcept nogil
ctypedef OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept nogil
ctypedef OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo* info, int64_t* sizes, size_t count) noexcept nogil
ctypedef OrtStatus* (*GetTensorTypeAndShape)(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) noexcept nogil
ctypedef void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo* info) noexcept nogil

cdef inline OrtStatus* get_data(OrtApi api, OrtValue* value, void** out) noexcept nogil:
    return (<GetTensorMutableData>api[51])(value, out)

cdef inline OrtStatus* get_element_type(OrtApi api, const OrtTensorTypeAndShapeInfo* info, int* out) noexcept nogil:
    return (<GetTensorElementType>api[60])(info, out)

cdef inline OrtStatus* get_rank(OrtApi api, const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept nogil:
    return (<GetDimensionsCount>api[61])(info, out)

cdef inline OrtStatus* get_sizes(OrtApi api, const OrtTensorTypeAndShapeInfo* info, int64_t* sizes,
                                 size_t count) noexcept nogil:
    return (<GetDimensions>api[62])(info, sizes, count)

cdef inline OrtStatus* get_type_and_shape(OrtApi api, const OrtValue* value,
                                          OrtTensorTypeAndShapeInfo** out) noexcept nogil:
    return (<GetTensorTypeAndShape>api[65])(value, out)

cdef inline void release_type_and_shape(OrtApi api, OrtTensorTypeAndShapeInfo* info) noexcept nogil:
    (<ReleaseTensorTypeAndShapeInfo>api[99])(info)

ctypedef OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo* info,
                                                const OrtTensorTypeAndShapeInfo** out) noexcept nogil
ctypedef void (*ReleaseTypeInfo)(OrtTypeInfo* info) noexcept nogil

cdef inline OrtStatus* get_tensor_info(OrtApi api, const OrtTypeInfo* info,
                                       const OrtTensorTypeAndShapeInfo** out) noexcept nogil:
    return (<CastTypeInfoToTensorInfo>api[55])(info, out)

cdef inline void release_type(OrtApi api, OrtTypeInfo* info) noexcept nogil:
    (<ReleaseTypeInfo>api[98])(info)


# Attributes, inputs and outputs of a node

ctypedef OrtStatus* (*GetAttributeFloat)(const OrtKernelInfo* info, const char* name, float* out) noexcept nogil
ctypedef OrtStatus* (*GetAttributeInt)(const OrtKernelInfo* info, const char* name, int64_t* out) noexcept nogil
ctypedef OrtStatus* (*GetAttributeText)(const OrtKernelInfo* info, const char* name, char* out,
                                        size_t* size) noexcept nogil
ctypedef OrtStatus* (*GetAttributeInts)(const OrtKernelInfo* info, const char* name, int64_t* out,
                                        size_t* size) noexcept nogil
ctypedef OrtStatus* (*GetCount)(const OrtKernelInfo* info, size_t* out) noexcept nogil
ctypedef OrtStatus* (*GetInputTypeInfo)(const OrtKernelInfo* info, size_t index, OrtTypeInfo** out) noexcept nogil
ctypedef OrtStatus* (*GetIndexedName)(const OrtKernelInfo* info, size_t index, char* out, size_t* size) noexcept nogil
ctypedef OrtStatus* (*GetName)(const OrtKernelInfo* info, char* out, size_t* size) noexcept nogil

cdef inline OrtStatus* get_float(OrtApi api, const OrtKernelInfo* info, const char* name, float* out) noexcept nogil:
    return (<GetAttributeFloat>api[85])(info, name, out)

cdef inline OrtStatus* get_int(OrtApi api, const OrtKernelInfo* info, const char* name, int64_t* out) noexcept nogil:
    return (<GetAttributeInt>api[86])(info, name, out)

cdef inline OrtStatus* get_text(OrtApi api, const OrtKernelInfo* info, const char* name, char* out,
                                size_t* size) noexcept nogil:
    return (<GetAttributeText>api[87])(info, name, out, size)

cdef inline OrtStatus* get_ints(OrtApi api, const OrtKernelInfo* info, const char* name, int64_t* out,
                                size_t* size) noexcept nogil:
    return (<GetAttributeInts>api[163])(info, name, out, size)

cdef inline OrtStatus* get_node_input_count(OrtApi api, const OrtKernelInfo* info, size_t* out) noexcept nogil:
    return (<GetCount>api[230])(info, out)

cdef inline OrtStatus* get_input_type(OrtApi api, const OrtKernelInfo* info, size_t index,
                                      OrtTypeInfo** out) noexcept nogil:
    return (<GetInputTypeInfo>api[234])(info, index, out)

cdef inline OrtStatus* get_output_count(OrtApi api, const OrtKernelInfo* info, size_t* out) noexcept nogil:
    return (<GetCount>api[231])(info, out)

cdef inline OrtStatus* get_output_name(OrtApi api, const OrtKernelInfo* info, size_t index, char* out,
                                       size_t* size) noexcept nogil:
    return (<GetIndexedName>api[233])(info, index, out, size)

cdef inline OrtStatus* get_node_name(OrtApi api, const OrtKernelInfo* info, char* out, size_t* size) noexcept nogil:
    return (<GetName>api[244])(info, out, size)


# A call of a node

ctypedef OrtStatus* (*ContextGetInputCount)(const OrtKernelContext* context, size_t* out) noexcept nogil
ctypedef OrtStatus* (*ContextGetInput)(const OrtKernelContext* context, size_t index,
                                       const OrtValue** out) noexcept nogil
ctypedef OrtStatus* (*ContextGetOutput)(OrtKernelContext* context, size_t index, const int64_t* sizes, size_t rank,
                                        OrtValue** out) noexcept nogil
ctypedef void (*Work)(void* data, size_t index) noexcept nogil
ctypedef OrtStatus* (*ContextParallelFor)(const OrtKernelContext* context, Work work, size_t count, size_t batches,
                                          void* data) noexcept nogil

cdef inline OrtStatus* get_input_count(OrtApi api, const OrtKernelContext* context, size_t* out) noexcept nogil:
    return (<ContextGetInputCount>api[88])(context, out)

cdef inline OrtStatus* get_input(OrtApi api, const OrtKernelContext* context, size_t index,
                                 const OrtValue** out) noexcept nogil:
    return (<ContextGetInput>api[90])(context, index, out)

cdef inline OrtStatus* get_output(OrtApi api, OrtKernelContext* context, size_t index, const int64_t* sizes,
                                  size_t rank, OrtValue** out) noexcept nogil:
    return (<ContextGetOutput>api[91])(context, index, sizes, rank, out)

cdef inline OrtStatus* parallel_for(OrtApi api, const OrtKernelContext* context, Work work, size_t count,
                                    void* data) noexcept nogil:
    return (<ContextParallelFor>api[274])(context, work, count, 0, data)


# onnxruntime's own operators

ctypedef OrtStatus* (*CreateOpAttr)(const char* name, const void* data, int count, int type,
                                    OrtOpAttr** out) noexcept nogil
ctypedef void (*ReleaseOpAttr)(OrtOpAttr* attribute) noexcept nogil
ctypedef OrtStatus* (*CreateOp)(const OrtKernelInfo* info, const char* name, const char* domain, int version,
                                const char** constraints, const int* types, int constraint_count,
                                const OrtOpAttr* const* attributes, int attribute_count, int input_count,
                                int output_count, OrtOp** out) noexcept nogil
ctypedef OrtStatus* (*InvokeOp)(const OrtKernelContext* context, const OrtOp* op, const OrtValue* const* inputs,
                                int input_count, OrtValue* const* outputs, int output_count) noexcept nogil
ctypedef void (*ReleaseOp)(OrtOp* op) noexcept nogil

cdef inline OrtStatus* create_attribute(OrtApi api, const char* name, const void* data, int count, int type,
                                        OrtOpAttr** out) noexcept nogil:
    return (<CreateOpAttr>api[211])(name, data, count, type, out)

cdef inline void release_attribute(OrtApi api, OrtOpAttr* attribute) noexcept nogil:
    (<ReleaseOpAttr>api[212])(attribute)

cdef inline OrtStatus* create_op(OrtApi api, const OrtKernelInfo* info, const char* name, const char* domain,
                                 int version, const char** constraints, const int* types, int constraint_count,
                                 const OrtOpAttr* const* attributes, int attribute_count, int input_count,
                                 int output_count, OrtOp** out) noexcept nogil:
    return (<CreateOp>api[213])(info, name, domain, version, constraints, types, constraint_count, attributes,
                                attribute_count, input_count, output_count, out)

cdef inline OrtStatus* invoke_op(OrtApi api, const OrtKernelContext* context, const OrtOp* op,
                                 const OrtValue* const* inputs, int input_count, OrtValue* const* outputs,
                                 int output_count) noexcept nogil:
    return (<InvokeOp>api[214])(context, op, inputs, input_count, outputs, output_count)

cdef inline void release_op(OrtApi api, OrtOp* op) noexcept nogil:
    (<ReleaseOp>api[215])(op)
