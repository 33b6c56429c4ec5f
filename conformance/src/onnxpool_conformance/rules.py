"""What decides expected values: the specification, the consensus of runtimes, or a choice of onnxpool."""

from typing import NamedTuple

TIERS = ("spec", "consensus", "choice")


class Rule(NamedTuple):
    """
    What a group of cases tests, and why their results are as expected.

    The reason of a rule of the tier `spec` is a sentence of the specification, word for word. For the tier `consensus`,
    `agreed` names runtimes that pass all cases of the rule. A decision is a section of onnxpool's
    docs/reference/decisions.md.
    """

    tier: str
    tests: str
    reason: str
    agreed: str = ""
    decision: str = ""
    quoted: bool = True  # False if the rule follows from the schema instead of a sentence


def spec(tests: str, sentence: str, decision: str = "") -> Rule:
    """A rule that a sentence of the specification decides."""
    return Rule("spec", tests, sentence, decision=decision)


def schema(tests: str, reason: str) -> Rule:
    """A rule that the schema decides: its attributes, dtypes, inputs and outputs."""
    return Rule("spec", tests, reason, quoted=False)


def consensus(tests: str, reason: str, agreed: str, decision: str = "") -> Rule:
    """A rule that the specification leaves open, and about which runtimes agree."""
    return Rule("consensus", tests, reason, agreed, decision)


def choice(tests: str, reason: str, decision: str = "") -> Rule:
    """A rule that the specification leaves open, and about which runtimes disagree."""
    return Rule("choice", tests, reason, decision=decision)


ORT, OPENVINO, TORCH = "onnxruntime 1.32.0", "OpenVINO 2026.4.1", "torch 2.13.0"
REFERENCE = "ReferenceEvaluator of onnx 1.23.2"
KERNEL = "on all values of a subset of the input tensor according to the kernel size"
PADS = "it can take any value greater than or equal to 0"
WHOLE = "with kernel size equal to the spatial dimension of input tensor."
DTYPES = "Constrain input and output types to float"
DIVISOR = "The output of each pooling window is divided by the number of elements (exclude pad when attribute " \
          "count_include_pad is zero)."
STRIDED = "output_spatial_shape[i] = ceil(input_spatial_shape[i] / strides_spatial_shape[i])"
ODD = "In case of odd number add the extra padding at the end for SAME_UPPER and at the beginning for SAME_LOWER."
ODD_SINCE_11 = "In case the padding is an odd number, the extra padding is added at the end for SAME_UPPER and at " \
               "the beginning for SAME_LOWER."
CEIL = "Whether to use ceil or floor (default) to compute the output shape."
FLAT = "The indices are computed as flatten 1-D tensor, and the indices do not consider padding."
QUANTISED = "Output = Dequantize(Input) -> AveragePool on fp32 data -> Quantize(output)"

RULES = {
    # Windows
    "average": spec("the mean of a window", f"computing the average {KERNEL}"),
    "maximum": spec("the maximum of a window", f"computing the max {KERNEL}"),
    "norm": spec("the norm of a window", f"computing the Lp norm {KERNEL}"),
    "global average": spec("the mean of a channel", f"This is equivalent to AveragePool {WHOLE}"),
    "global maximum": spec("the maximum of a channel", f"This is equivalent to MaxPool {WHOLE}"),
    "global norm": spec("the norm of a channel", f"This is equivalent to LpPool {WHOLE}"),
    "shapes": spec("batches, channels and spatial axes", "in the form of (N x C x D1 x D2 ... Dn)"),
    "floats": spec("the float types", f"{DTYPES} tensors."),
    "floats and bytes": spec("bfloat16 and integers of 8 bits", f"{DTYPES} and 8 bit tensors."),
    "p": spec("the exponent of a norm", "p value of the Lp norm used to pool over the input data"),
    # Borders
    "pads": spec("padding at the beginning and the end of each axis", PADS),
    "excluded": spec("a divisor that does not count padding", DIVISOR),
    "excluded in version 1": spec("a divisor that does not count padding", "The output of each pooling window is "
                                  "divided by the number of elements exclude pad."),
    "counted": spec("a divisor that counts padding", DIVISOR),
    "maximum without pads": spec("padding, which is not 0 for a maximum",
                                 "The output of each pooling window is maximum number of elements exclude pad."),
    "valid": spec("auto_pad=VALID", "VALID mean no padding."),
    "same": spec("auto_pad=SAME_*: the size of the result", STRIDED),
    "odd": spec("auto_pad=SAME_* with an odd number of pads", ODD),
    "odd since 11": spec("auto_pad=SAME_* with an odd number of pads", ODD_SINCE_11),
    "dilations": spec("distances between the elements of a window", "dilation value along each spatial axis of"),
    "ceil": spec("windows that overhang the end", CEIL),
    # Indices
    "indices": spec("where the maxima are", FLAT),
    "storage order": spec("indices in column-major order",
                          "The storage order of the tensor. 0 is row major, and 1 is column major."),
    # Numbers beyond the range
    "infinities": consensus("NaN and infinities in means", "Sums follow IEEE 754: inf + -inf is NaN.",
                            f"{ORT}, {OPENVINO}"),
    "wide sums": consensus("a sum of a 16-bit type beyond its range, whose mean is within it",
                           "Runtimes add in float32, and round the mean once.", f"{ORT}, {OPENVINO}"),
    "exact sums": choice("a sum beyond the range of its type, whose mean or norm is within it",
                         "The result exists, and is within the range of the type."),
    "subnormal": choice("a mean that is a subnormal number",
                        "It is rounded as any other number, and not flushed to 0."),
    # Further inputs
    "unpool": spec("elements put back where they were", "all the non-maximal values from the original input to "
                   "MaxPool are set to zero in the output of the MaxUnpool op."),
    "regions": spec("the maxima of regions of whole elements", "to apply max pooling across each RoI, to produce "
                    "output 4-D tensor of shape (num_rois, channels, pooled_shape[0], pooled_shape[1])."),
    "scale": spec("regions in another scale",
                  "Multiplicative spatial scale factor to translate ROI coordinates from their input"),
    "rounding of regions": choice("bins that share elements, and corners between elements",
                                  "As onnxruntime 1.32.0 rounds: corners to the nearest element, halves away from 0; "
                                  "bins outwards."),
    "align": spec("interpolated samples", "in each ROI bin, the value of the sampled locations are computed directly "
                  "through bilinear interpolation."),
    "samples outside": choice("samples at the borders and outside of the image",
                              "As in onnxruntime 1.32.0: a sample at most one element outside is moved to the border, "
                              "others are 0."),
    "grid": spec("the number of samples", "Number of sampling points in the interpolation grid used to compute the "
                 "output value of each pooled output bin."),
    "half pixel": spec("the shift of coordinates",
                       "Use the value 'half_pixel' to pixel shift the input coordinates by -0.5"),
    "quantised average": spec("quantised means of windows", QUANTISED),
    "quantised global average": spec("quantised means of channels", f"This is equivalent to AveragePool {WHOLE}"),
    "quantised rounding": choice("a quantised mean in the middle between two numbers",
                                 "As onnxruntime 1.32.0 rounds: QLinearAveragePool after it adds the zero point, "
                                 "QLinearGlobalAveragePool before, both to even."),
    "quantised maximum": schema("maxima of integers, channels last",
                                "onnxruntime defines it as MaxPool of x in the layout (N x D1 x ... x Dn x C)."),
    # Decisions
    "d1": spec("a last window that would start in the padding at the end",
               "Sliding windows that would start in the right padded region are ignored.", "D1"),
    "d1 silent": consensus("a last window that would start in the padding at the end, where the text is silent",
                           "The window is ignored, as version 22 of AveragePool and MaxPool says.",
                           f"{ORT}, {REFERENCE}, {TORCH}", "D1"),
    "d2": consensus("a divisor that counts pads, of a window that overhangs them",
                    "Pads count, positions beyond them do not.", f"{ORT}, {TORCH}", "D2"),
    "d2 same": spec("a divisor that counts the pads of auto_pad", DIVISOR, "D2"),
    "d3": choice("the mean of a window without elements", "The mean of nothing is NaN.", "D3"),
    "d3 counted": choice("the mean of a window that is all padding, which counts", "Padding is 0.", "D3"),
    "d4": choice("the maximum of a window without elements",
                 "The smallest number of the type: -inf, or the smallest integer. Its index is -1.", "D4"),
    "d5": choice("the norm of a window without elements", "The norm of nothing is 0.", "D5"),
    "d6": choice("NaN in a maximum", "NaN propagates; its index is that of the first one.", "D6"),
    "d7": choice("auto_pad=VALID with ceil_mode=1",
                 "As without auto_pad and with pads of 0: a last window may overhang.", "D7"),
    "d8": choice("auto_pad=SAME_* with strides larger than windows", "There is no negative padding.", "D8"),
    "d9": choice("pads of 0 beside auto_pad", "They agree with auto_pad=VALID.", "D9"),
    "d9 refused": choice("pads beside auto_pad",
                         "The specification says that pads cannot be used simultaneously with auto_pad, but not what "
                         "happens if they are.", "D9"),
    "d10": choice("a window larger than the padded input, with ceil_mode=1", "The first window may overhang.", "D10"),
    "d10 refused": choice("a window larger than the padded input", "The result would have no element.", "D10"),
    "d11": spec("pads as large as the window", PADS, "D11"),
    "d11 empty": choice("pads so large that windows have no element",
                        "Such windows have the results of D3 to D5.", "D11"),
    "d12": choice('auto_pad=""', "An empty string is what protobuf stores if nothing is set: NOTSET.", "D12"),
    "d13": choice("a global pool of an input without spatial axes",
                  "A window of the one element of each channel.", "D13"),
    "d14": choice("no images or no channels", "The result is empty, too.", "D14"),
    "d14 refused": choice("an empty spatial axis", "There is no element to pool.", "D14"),
    "d15": choice("a fractional or infinite exponent of a norm", "As the formula says; its limit is the largest |x|.",
                  "D15"),
    "d15 refused": choice("an exponent of a norm below 1", "It defines no norm.", "D15"),
    "d16": spec("the mean of samples", "through bilinear interpolation.", "D16"),
    "d16 maximum": consensus("mode=max of RoiAlign",
                             "The largest of the four weighted elements of all samples, and not of their sums.",
                             f"{ORT}, {REFERENCE}", "D16"),
    "d17": choice("indices with an output_shape",
                  "Indices refer to the inferred shape, as in onnx's node test, and its result is put into the corner.",
                  "D17"),
    "d18": spec("indices of three axes in row-major order", FLAT, "D18"),
    "d18 columns": choice("indices of three axes in column-major order",
                          "The first spatial axis varies fastest, within each channel.", "D18"),
    "d19": choice("the divisor of quantised means with ceil_mode=1", "That of AveragePool.", "D19"),
    "d20": choice("a quantised sum beyond 32 bits", "The exact mean.", "D20"),
    "d21": choice("a quantised mean without elements", "The zero point, which stands for 0.", "D21"),
    "d22 refused": choice("a flag that is neither 0 nor 1", "Runtimes disagree about other numbers.", "D22"),
    "d23": consensus("equal elements", "The index is that of the first one in row-major order.",
                     f"{ORT}, {OPENVINO}, {REFERENCE}", "D23"),
    "d24": choice("a large region whose sides are within float32", "The sample lies at its exact position.", "D24"),
    "d24 refused": choice("a region whose coordinates overflow float32", "They have no positions.", "D24"),
    "wide": choice("any windows and values", "As onnxpool decides wherever the specification is silent."),
    # Errors
    "unknown attribute": schema("an attribute that the version does not have", "The schema has no such attribute."),
    "missing attribute": schema("a required attribute that is missing", "The schema requires the attribute."),
    "type of attribute": schema("an attribute of another type", "The schema gives the attribute another type."),
    "dtype": schema("a dtype that the version does not have", "The schema does not list the dtype."),
    "outputs": schema("an output that the version does not have", "The schema has one output."),
    "inputs": schema("an input that is missing", "The schema requires the input."),
    "lengths": schema("attributes of another length than the number of spatial axes",
                      "Attributes along each spatial axis have one value for each, and pads two."),
    "negative pads": spec("negative pads", PADS),
    "positive": schema("kernels, strides and dilations below 1", "A size or a distance of 0 or less has no meaning."),
    "auto_pad": spec("another auto_pad", "auto_pad must be either NOTSET, SAME_UPPER, SAME_LOWER or VALID."),
    "mode": spec("another mode", "Two modes are supported: 'avg' and 'max'."),
    "places": spec("indices outside of the result",
                   "So the values in indices are in the range [0, N x C x D1 x ... x Dn)."),
    "images": spec("regions of images that do not exist",
                   "each element denoting the index of the corresponding image in the batch."),
}
