"""Mistakes that other libraries of pooling operators made, as far as they are public, and the tests of onnxpool that
would fail if it made them too.

A record is a report or a fix, or several of the same mistake. It refers to cases, which are kinds of input with what
must happen. The letter of a case stands for its subject: A attributes, S shapes and dtypes, W windows and padding,
V values, U MaxUnpool, R MaxRoiPool, L RoiAlign, Q quantised operators; and P for what surrounds a call.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Case(NamedTuple):
    """A kind of input, with what must happen, and the tests of it: names of functions, or of their cases with `*`."""

    says: str
    tests: tuple[str, ...]


class Record(NamedTuple):
    """A mistake of another library."""

    ids: tuple[str, ...]
    component: str
    cause: str
    cases: tuple[str, ...]
    instead: str = ""  # what stands here for an operator that onnxpool lacks


def named(file: str, function: str, *cases: str) -> tuple[str, ...]:
    """The names of a test, or of some of its cases."""
    name = f"tests/{file}.py::{function}"
    return tuple(f"{name}[{case}]" for case in cases) or (name,)


def bad(*cases: str) -> tuple[str, ...]:
    """Attributes that every windowed operator refuses, in every dtype and both layouts."""
    return named("operators/test_errors_of_attributes", "test_bad_attribute_is_refused",
                 *(f"*-{case}" for case in cases))


def unusual(*cases: str) -> tuple[str, ...]:
    """Attributes that every windowed operator computes, in every dtype and both layouts."""
    return named("operators/test_errors_of_attributes", "test_unusual_attribute_of_every_operator",
                 *(f"{case}-*" for case in cases))


def bounded(*cases: str) -> tuple[str, ...]:
    """Calls that must take little time and memory."""
    return named("operators/test_errors_of_arguments", "test_work_is_bounded_by_the_data", *cases)


def finite(*cases: str) -> tuple[str, ...]:
    """Results within the range of a dtype whose plain sums are beyond it."""
    return named("operators/test_errors_of_arguments", "test_result_that_the_dtype_can_hold_is_finite", *cases)


def inputs(function: str, *cases: str) -> tuple[str, ...]:
    """Shapes and dtypes that every operator refuses or computes."""
    return named("operators/test_errors_of_inputs", function, *cases)


def decided(*cases: str) -> tuple[str, ...]:
    """Values on which libraries disagree, at every opset, in every dtype and both layouts."""
    return named("operators/test_decisions", "test_value", *(f"{case} *" for case in cases))


def indexed(function: str, *cases: str) -> tuple[str, ...]:
    """Indices of MaxPool."""
    return named("operators/test_max_pool_indices", function, *cases)


def unpooled(function: str, *cases: str) -> tuple[str, ...]:
    return named("operators/test_max_unpool", function, *cases)


def regions(function: str, *cases: str) -> tuple[str, ...]:
    """MaxRoiPool or RoiAlign."""
    return named("operators/test_regions_of_interest", function, *(f"{case}-*" for case in cases))


def quantised(function: str, *cases: str) -> tuple[str, ...]:
    return named("operators/test_quantised_average", function, *(f"{case}-*" for case in cases))


def whole_quantised(function: str) -> tuple[str, ...]:
    """QLinearGlobalAveragePool."""
    return named("operators/test_errors_of_arguments", function)


CHANGING = named("oracle/test_corrupted_calls", "test_inputs_that_change_meanwhile")
CORRUPTED = named("oracle/test_corrupted_calls", "test_corrupted_calls")
EMPTY_AXIS = inputs("test_empty_spatial_axis_is_refused")
NOTHING = inputs("test_no_images_or_no_channels_give_an_empty_result")
TOO_LARGE = named("operators/test_errors_of_arguments", "test_results_too_large_for_memory_are_refused")

CASES = {
    "A01": Case("a stride of 0 is refused", bad("stride_zero")),
    "A02": Case("a negative stride is refused", bad("stride_negative", "stride_least")),
    "A03": Case("a stride beyond the input leaves the first window", unusual("stride_beyond_any_output")),
    "A04": Case("a kernel of 0, of a negative number or of no numbers is refused",
                bad("kernel_zero", "kernel_negative", "kernel_empty")),
    "A05": Case("a kernel of 2^63 - 1 is refused, without overflow", bad("kernel_most") + bounded("kernel_of_2_to_63")),
    "A06": Case("a kernel of 2^31 that SAME_* pads takes the time of a small one", bounded("*kernel_of_2_to_31")),
    "A07": Case("a mean that counts 2^40 places of padding divides by them", bounded("mean_*counts_2_to_40_pads")),
    "A08": Case("a dilation of 0 or of a negative number is refused", bad("dilation_zero", "dilation_negative")),
    "A09": Case("a dilation for which a kernel spans more than 64 bits count is refused",
                bad("dilation_overflows", "same_pads_overflow") + bounded("dilation_of_2_to_62")),
    "A10": Case("taps farther apart than the input is long are refused, or computed if padding makes them legal",
                bad("dilated_kernel_larger") + unusual("dilated_into_the_pads", "dilated_same")
                + named("oracle/test_windows_of_an_axis", "test_windows_are_those_of_plain_loops")),
    "A11": Case("negative pads are refused", bad("pad_negative")),
    "A12": Case("pads as large as the kernel are computed", decided("empty windows *")
                + unusual("pads_larger_than_the_kernel", "pads_larger_than_the_input")),
    "A13": Case("pads smaller than the dilated kernel are computed", unusual("pads_below_the_dilated_kernel")),
    "A14": Case("pads of 2^62 are refused, without overflow",
                bad("pad_huge", "pad_most") + unpooled("test_refused", "pads beyond 64 bits-*")),
    "A15": Case("attributes with too few or too many numbers for the spatial axes are refused",
                bad("pads_3", "strides_1", "dilations_3", "kernel_of_*", "pads_empty", "strides_empty")),
    "A16": Case("too few axes are refused; any larger number is pooled",
                inputs("test_too_few_axes_are_refused") + named("operators/test_decisions", "test_shape")
                + named("operators/test_errors_of_attributes", "test_any_number_of_spatial_axes_is_pooled")),
    "A17": Case("unknown kinds of padding are refused, and those given twice; no kind is the default",
                bad("auto_pad_*", "same_with_pads", "valid_with_pads")
                + unusual("no_auto_pad", "zero_pads_with_valid")),
    "A18": Case("SAME_* with a stride beyond the kernel has no negative padding",
                unusual("same_upper_stride_3", "same_lower_stride_3") + decided("negative pad *")),
    "A19": Case("flags are 0 or 1", bad("ceil_mode_*", "count_include_pad_*", "storage_order_*", "channels_last_*")),
    "A20": Case("what is no integer is refused by its type, and integers beyond 64 bits by their value",
                bad("kernel_shape_*", "strides_*", "dilations_*", "pads_*", "*_beyond_64_bits")
                + unusual("numpy_integers", "integer_arrays")),
    "A21": Case("a kernel larger than the padded input is refused, for every stride",
                bad("kernel_larger_*")
                + named("onnx/test_kernels_larger_than_the_input", "test_formula_and_onnxpool")),
    "A22": Case("results of 2^40 elements are refused before memory is taken", TOO_LARGE),
    "A23": Case("results of some GiB for 64 elements are refused if memory is limited, and never end the process",
                TOO_LARGE + unpooled("test_too_large_for_the_machine")),
    "S01": Case("no images give an empty result", NOTHING),
    "S02": Case("no channels give an empty result", NOTHING),
    "S03": Case("windows over an empty spatial axis are refused, whatever their padding", EMPTY_AXIS),
    "S04": Case("global pools of an empty spatial axis are refused", EMPTY_AXIS),
    "S05": Case("sizes next to an empty axis are not multiplied out",
                inputs("test_empty_axis_beside_huge_ones_is_refused") + EMPTY_AXIS),
    "S06": Case("one value that is stretched over terabytes is read in place",
                bounded("input_of_*")
                + named("embedding/test_side_effects", "test_one_value_stretched_over_an_array_is_read_in_place")),
    "S07": Case("sizes beyond the integers of float32 are exact",
                inputs("test_sizes_are_not_rounded") + inputs("test_unpooled_sizes_are_not_rounded")),
    "S08": Case("elements beyond 2^31 are found where they are, and so are their indices",
                named("kernels/test_more_than_2_to_31_elements", "test_windows_of_one_element")
                + named("kernels/test_more_than_2_to_31_elements", "test_last_window")
                + named("kernels/test_more_than_2_to_31_elements", "test_last_image_and_channel")
                + named("kernels/test_more_than_2_to_31_elements", "test_regions_of_a_far_image")
                + named("kernels/test_more_than_2_to_31_elements", "test_whole_means")
                + indexed("test_beyond_32_bits") + indexed("test_places_of_a_plane_beyond_32_bits")
                + indexed("test_windows_across_more_places_than_32_bits_count")),
    "S09": Case("other dtypes are refused with the names of those that are supported",
                inputs("test_dtype_of_no_version_is_refused")),
    "S10": Case("a mean of float16 is finite if float16 can hold it",
                finite("mean_float16", "global_mean_float16") + decided("mean of large float16 *")),
    "S11": Case("a mean of bfloat16 is finite if bfloat16 can hold it",
                finite("mean_bfloat16", "global_mean_bfloat16") + decided("mean of large bfloat16 *")),
    "S12": Case("a mean of float32 is finite if float32 can hold it",
                finite("mean_float32", "global_mean_float32") + decided("mean of large float32 *")),
    "S13": Case("squares of large or small elements neither overflow nor vanish",
                finite("norm_*float*", "global_norm_*float*") + decided("norm of large *", "norm of small *")),
    "S14": Case("exponents below 1 are refused; large ones, and odd ones of negative elements, are computed",
                bad("p_*") + finite("norm_p_*", "global_norm_p_*") + decided("norm p=*")
                + named("operators/test_errors_of_attributes", "test_float_exponent_that_is_no_norm_is_refused")
                + named("operators/test_errors_of_attributes", "test_global_exponent_that_is_no_norm_is_refused")),
    "W01": Case("a maximum of no elements is -inf, or the least integer",
                decided("empty 1x1 dilated *", "empty between dilated taps *")
                + unusual("no_element_between_taps", "only_a_window_in_the_padding")
                + named("kernels/test_geometries", "test_geometry", "a tap before all elements *-max*")),
    "W02": Case("its index is -1, which MaxUnpool refuses",
                indexed("test_value", "empty window*") + indexed("test_empty_window_value")
                + unpooled("test_index_of_an_empty_window_is_refused")),
    "W03": Case("a mean of no elements is NaN, 0 if it counts padding, and the zero point if it is quantised",
                decided("empty windows avg", "empty windows cip", "empty 1x1 dilated avg", "empty 1x1 dilated cip")
                + quantised("test_value", "empty windows*")
                + named("kernels/test_geometries", "test_geometry", "a tap before all elements *-mean*")),
    "W04": Case("a last window that would start in the end padding is dropped",
                decided("ceil drop *") + unusual("a_window_that_starts_in_the_end_padding")
                + quantised("test_value", "ceil drops the last window")),
    "W05": Case("places beyond the end padding are not counted", decided("divisor overhang *", "divisor 4x4 *")
                + unusual("counted_padding_and_overhang") + quantised("test_value", "overhang does not count D19")),
    "W06": Case("padding at the end alone is counted there", decided("divisor tail pads *", "divisor 9x9 tail pads *")),
    "W07": Case("padding that SAME_LOWER adds is counted on its side",
                decided("divisor SAME_*") + decided("divisor SAME_LOWER of one axis *")),
    "W08": Case("the last divisor of a row with ceil_mode leaves out what is beyond the end padding",
                decided("divisor of 9 numbers", "divisor 9 pads *")),
    "W09": Case("padding is no zero: maxima of negative elements are negative",
                decided("negative maxima with pads *") + indexed("test_value", "type minimum*")
                + named("oracle/test_relations", "test_relation", "border-*")),
    "W10": Case("the published cases of ceil_mode have their values",
                named("onnx/test_backend_nodes", "test_backend_case", "*ceil*")
                + named("onnx/test_backend_nodes", "test_backend_case_in_the_other_layout", "*ceil*")),
    "W11": Case("dilated windows count the taps in the padding, and none beyond",
                decided("divisor dilated *") + unusual("counted_padding_of_dilated_windows")),
    "V01": Case("a NaN is the maximum at every position, for every width, with indices and without",
                decided("NaN at *", "NaN 2x2 *") + indexed("test_nan_and_peak_at_every_lane")
                + named("operators/test_decisions", "test_nan_in_every_channel")
                + named("kernels/test_geometries", "test_every_number_of_channels")
                + named("kernels/test_geometries", "test_rows_of_every_length")
                + named("kernels/test_geometries", "test_every_number_of_places_and_channels")),
    "V02": Case("windows of NaNs, or of -inf, have the index of an element",
                decided("all NaN *", "all -inf *", "-inf and NaN *") + indexed("test_value", "all NaN-*", "all -inf-*")
                + named("oracle/test_relations", "test_relation", "places-*")),
    "V03": Case("the first of equal elements wins", indexed("test_value", "ties*", "signed zeros-*")
                + indexed("test_signed_zero_is_the_first") + indexed("test_ties_at_every_width")),
    "V04": Case("the mean of inf and -inf is NaN", decided("mean of infinities *")),
    "V05": Case("subnormals are not flushed, whatever the caller has set",
                named("kernels/test_subnormals", "test_subnormals_whatever_the_caller_flushes")
                + named("embedding/test_embedding", "test_float_state")),
    "V06": Case("neither the order of channels nor the other images of a batch change a bit",
                named("kernels/test_geometries", "test_geometry")
                + regions("test_regions_are_independent")),
    "U01": Case("values go where their indices say", unpooled("test_value", "corners-*")),
    "U02": Case("an index outside the result is refused before anything is written",
                unpooled("test_bad_index_is_refused") + unpooled("test_bad_index_in_a_large_input")),
    "U03": Case("the last of several values with the same index wins, with any number of threads",
                unpooled("test_value", "duplicates-*") + unpooled("test_duplicates_at_every_thread_count")),
    "U04": Case("indices of another shape than the values are refused",
                unpooled("test_refused", "indices of another *")),
    "U05": Case("indices of another dtype than int64 are refused",
                unpooled("test_refused", *(f"indices {kind}-*" for kind in ("int32", "uint64", "float64", "bool")))),
    "U06": Case("an output_shape that is too small, negative or of another rank is refused",
                unpooled("test_refused", "output_shape (1, 1, 1, 1)-*", "output_shape (1, 1, -4, 4)-*",
                         "output_shape (4, 4)-*", "output_shape (2, 1, 4, 4)-*", "output_shape (1, 2, 4, 4)-*")),
    "U07": Case("an output_shape whose elements 64 bits cannot count, or memory cannot hold, is refused",
                unpooled("test_refused", "output_shape (1, 1, 1099511627776, 1099511627776)-*",
                         "output_shape (1, 1, 9223372036854775807, 9223372036854775807)-*")
                + unpooled("test_too_large_for_the_machine")),
    "U08": Case("indices beyond a plane that pads make smaller are refused",
                unpooled("test_refused", "pads-*", "pads swallow the plane-*")),
    "U09": Case("strides of 0 and of 2^62 are refused", unpooled("test_refused", "strides *-*")),
    "U10": Case("nothing is unpooled to nothing", unpooled("test_empty_input") + NOTHING),
    "U11": Case("an index may point into another plane, with any number of threads", unpooled("test_another_plane")),
    "U12": Case("indices that change during the call lead to no write outside the result", CHANGING),
    "U13": Case("unpooling puts the maxima of dilated windows back in place",
                named("oracle/test_relations", "test_relation", "there_and_back-*")
                + unpooled("test_way_back_from_any_pool")),
    "R01": Case("maxima of bins are those of plain loops",
                regions("test_max_roi_pool_value", "quarters", "scale", "bins overlap")),
    "R02": Case("a number that is no image of the batch is refused",
                regions("test_max_roi_pool_refused", "batch *") + regions("test_one_bad_region_among_many")),
    "R03": Case("coordinates that are not finite, or beyond what integers hold, are refused",
                regions("test_max_roi_pool_refused", "coordinate *", "beyond 2^31 *")
                + regions("test_max_roi_pool_value", "far*")),
    "R04": Case("an inverted region is one element", regions("test_max_roi_pool_value", "inverted is one pixel")),
    "R05": Case("a region outside the image is 0",
                regions("test_max_roi_pool_value", "outside is 0*", "over the edge")),
    "R06": Case("numbers of bins that are not positive, or huge, are refused",
                regions("test_max_roi_pool_refused", "pooled_shape *")),
    "R07": Case("scales that are not positive and finite are refused",
                regions("test_max_roi_pool_refused", "spatial_scale *")),
    "R08": Case("no regions give an empty result", regions("test_no_regions")),
    "R09": Case("regions of four numbers are refused", regions("test_max_roi_pool_refused", "rois of 4")),
    "L01": Case("numbers that are no image of the batch, or too many or too few of them, are refused",
                regions("test_roi_align_refused", "batch *", "two batch indices", "no batch indices")
                + regions("test_one_bad_region_among_many")),
    "L02": Case("coordinates that are not finite are refused", regions("test_roi_align_refused", "coordinate *")),
    "L03": Case("regions far outside the image are 0",
                regions("test_roi_align_value", "huge *", "far away", "far apart")),
    "L04": Case("numbers of samples without bound are refused", regions("test_roi_align_refused", "* samples")),
    "L05": Case("a negative number of samples is refused", regions("test_roi_align_refused", "sampling_ratio -1")),
    "L06": Case("numbers of bins that are not positive, or huge, are refused",
                regions("test_roi_align_refused", "output_height *", "output_width *")),
    "L07": Case("unknown modes are refused", regions("test_roi_align_refused", "mode *", "unknown coordinates")),
    "L08": Case("scales that are not finite are refused", regions("test_roi_align_refused", "spatial_scale *")),
    "L09": Case("an image without rows is refused",
                regions("test_roi_align_refused", "empty spatial axis") + EMPTY_AXIS),
    "Q01": Case("scales that are not positive and finite are refused",
                quantised("test_refused", "x_scale *", "y_scale *")
                + whole_quantised("test_scale_must_be_finite_and_positive")
                + whole_quantised("test_ratio_of_scales_must_be_finite")),
    "Q02": Case("no scale, and several scales, are refused",
                quantised("test_refused", "scale of none", "scale per channel", "missing scale")
                + whole_quantised("test_every_parameter_is_needed_and_is_one_number")),
    "Q03": Case("zero points of another dtype are refused",
                quantised("test_refused", "zero point of the other dtype", "float zero point")
                + whole_quantised("test_zero_point_must_have_the_dtype_of_the_input")),
    "Q04": Case("an empty spatial axis is refused",
                quantised("test_refused", "empty spatial axis") + whole_quantised("test_quantised_shapes")),
    "Q05": Case("no accumulator of a large window overflows",
                quantised("test_large_window")
                + named("kernels/test_more_than_2_to_31_elements", "test_whole_means")),
    "Q06": Case("results saturate at both ends", quantised("test_value", "saturates *")
                + named("operators/test_decisions", "test_quantised*")),
    "P01": Case("no call with something wrong crashes, hangs or reads or writes other memory", CORRUPTED),
    "P02": Case("nothing beyond an array is read, whatever its length",
                named("kernels/test_geometries", "test_rows_of_every_length")
                + named("kernels/test_geometries", "test_arrays_larger_than_caches")),
    "P03": Case("errors found while several threads work arrive as exceptions",
                unpooled("test_bad_index_is_refused") + unpooled("test_bad_index_in_a_large_input")
                + regions("test_one_bad_region_among_many")),
    "P04": Case("only instruction sets that the processor has are used, and all of them give the same bits",
                named("kernels/test_instruction_sets", "test_same_bits")
                + named("kernels/test_pinned_results", "test_results_are_those_of_the_file")),
    "P05": Case("shapes are computed by the same checks as results",
                named("embedding/test_side_effects", "test_plans_and_output_shapes_agree_with_calls")
                + inputs("test_empty_axis_beside_huge_ones_is_refused")),
    "P06": Case("operators are complete or do not exist, and what is refused writes nothing",
                named("embedding/test_side_effects", "test_objects_are_immutable")
                + named("operators/test_errors_of_arguments", "test_bad_out_is_refused_and_left_alone")),
    "P07": Case("plans refuse arrays of another shape",
                named("embedding/test_side_effects", "test_plans_refuse_other_arrays")),
    "P08": Case("results do not depend on what memory held before",
                named("kernels/test_geometries", "test_geometry")
                + named("kernels/test_instruction_sets", "test_same_bits")),
}

GRADIENTS = "gradients; nearest are operators with a second input that must fit the first"
FRACTIONAL = "fractional pools; nearest are regions, whose borders are data as well"
UNPOOLED = "gradients through indices; nearest is MaxUnpool, which stores where its indices say"

RECORDS = (
    Record(("CVE-2021-29570",), "TensorFlow MaxPoolGradWithArgmax",
           "an index is used for two arrays of different sizes", ("U02", "U04", "U12"), UNPOOLED),
    Record(("CVE-2021-29573",), "TensorFlow MaxPoolGradWithArgmax",
           "divides by the number of images, which may be 0", ("S01", "S02", "U10"), UNPOOLED),
    Record(("CVE-2021-29574",), "TensorFlow MaxPool3DGradGrad",
           "uses the memory of a tensor without elements", ("S01", "S03", "U10"), GRADIENTS),
    Record(("CVE-2021-29576",), "TensorFlow MaxPool3DGradGrad",
           "goes on with parameters whose construction has failed", ("U04", "P06"), GRADIENTS),
    Record(("CVE-2021-29577",), "TensorFlow AvgPool3DGrad",
           "assumes without a check that two inputs have as many images and channels", ("U04", "U06", "P07"),
           GRADIENTS),
    Record(("CVE-2021-29578",), "TensorFlow FractionalAvgPoolGrad",
           "reads more borders than it is given", ("L01", "R09", "U04"), FRACTIONAL),
    Record(("CVE-2021-29579", "CVE-2021-37674"), "TensorFlow MaxPoolGrad",
           "checks the bounds of one of two arrays; the first fix left another way open",
           ("U02", "U04", "U10", "A12"), UNPOOLED),
    Record(("CVE-2021-29580",), "TensorFlow FractionalMaxPoolGrad",
           "ends the process for an input without elements or of another rank", ("A16", "S01", "S03", "U04", "R09"),
           FRACTIONAL),
    Record(("CVE-2021-29550",), "TensorFlow FractionalAvgPool",
           "an assertion that releases leave out is all that prevents a division by 0", ("R06", "L06", "U06", "A21"),
           FRACTIONAL),
    Record(("CVE-2021-37651", "CVE-2022-21730"), "TensorFlow FractionalAvgPoolGrad",
           "borders that are negative or beyond the input are used as places", ("R02", "R03", "L01", "L03", "U02"),
           FRACTIONAL),
    Record(("CVE-2022-41897", "CVE-2022-41900", "CVE-2023-25801"), "TensorFlow FractionalMaxPool, FractionalAvgPool",
           "ratios below 1 and huge negative borders lead outside the arrays", ("R03", "R07", "L03", "L08", "P01"),
           FRACTIONAL),
    Record(("CVE-2021-29585", "CVE-2021-29586", "CVE-2021-37684"), "TensorFlow Lite pooling and its padding",
           "divides by a stride of a model before it is checked", ("A01", "A02")),
    Record(("CVE-2021-41196",), "TensorFlow and Keras max_pool3d",
           "a window of 0 or fewer elements", ("A04",)),
    Record(("CVE-2022-21725",), "TensorFlow, the cost estimator of AvgPoolGrad",
           "code that estimates costs divides by a stride of 0", ("A01", "P05")),
    Record(("CVE-2022-35941",), "TensorFlow AvgPool",
           "a negative kernel ends the process", ("A04",)),
    Record(("CVE-2022-35959",), "TensorFlow AvgPoolGrad, AvgPool3DGrad",
           "the product of a shape that the caller gives overflows", ("S05", "U07", "A22"), GRADIENTS),
    Record(("CVE-2022-35966", "CVE-2022-21739"), "TensorFlow QuantizedAvgPool, QuantizedMaxPool",
           "reads a range from a tensor without elements", ("Q01", "Q02", "Q03")),
    Record(("CVE-2023-25664",), "TensorFlow AvgPoolGrad",
           "writes beyond an array whose shape does not fit window and stride", ("U06", "U08", "P01", "P07"),
           GRADIENTS),
    Record(("CVE-2023-25669",), "TensorFlow AvgPoolGrad",
           "kernel and stride are not checked to be positive", ("A01", "A02", "A04"), GRADIENTS),
    Record(("CVE-2025-2953", "PYSEC-2025-191"), "PyTorch mkldnn_max_pool2d",
           "divides by a stride of 0", ("A01", "A02")),
    Record(("pytorch#41767", "chainer#6025", "Paddle#33036", "XNNPACK PR 11156", "MNN PR 4809", "OpenCV PR 23671",
            "onnx PR 7764"), "pooling in seven projects",
           "divides by a stride of 0", ("A01", "P05", "U09")),
    Record(("pytorch#145077",), "PyTorch avg_pool2d",
           "refuses a stride of 0, but no negative one, and no kernel of 2^63 - 1", ("A02", "A03", "A05")),
    Record(("pytorch#4986",), "PyTorch MaxPool1d",
           "a kernel larger than the input writes outside the result", ("A21",)),
    Record(("pytorch PR 1465", "pytorch#20465"), "PyTorch max_pool",
           "windows of NaNs or of -inf have the index -1, which is then used as a place", ("V02", "W02", "U02")),
    Record(("pytorch#91555",), "PyTorch max_unpool3d",
           "an exception within a parallel region ends the process", ("P03", "U02")),
    Record(("pytorch#107539", "pytorch#178483"), "PyTorch max_unpool",
           "strides and pads make the result's sizes negative", ("U06", "U08", "U09", "A11")),
    Record(("pytorch#94698",), "PyTorch avg_pool1d",
           "a shape with an axis of 0 next to a huge one", ("S03", "S05")),
    Record(("pytorch#42582", "pytorch#50960", "pytorch#73624"), "PyTorch adaptive and fractional pools",
           "the product of the result's sizes overflows, or is 0", ("R06", "L06", "U07", "A22"), FRACTIONAL),
    Record(("pytorch#68418", "pytorch#84018", "pytorch#176784", "torch-xpu-ops 4734"), "PyTorch pooling",
           "places beyond 2^31 elements overflow", ("S08",)),
    Record(("onnxruntime PR 27432",), "onnxruntime MaxUnpool",
           "writes where an index says, without a check", ("U02", "U11", "U12")),
    Record(("onnxruntime PR 27543", "onnxruntime PR 27603"), "onnxruntime RoiAlign",
           "reads the image that a number says, without a check", ("L01", "R02", "U12")),
    Record(("onnxruntime PR 27903",), "onnxruntime MaxPoolGrad",
           "uses indices as offsets", ("U02", "U12"), UNPOOLED),
    Record(("onnxruntime PR 29579",), "onnxruntime MaxPool, AveragePool, LpPool, NhwcMaxPool",
           "the lengths of attributes and the rank of the input are not compared, and sizes are truncated to 32 bits",
           ("A14", "A15", "A16", "S07", "S08")),
    Record(("onnxruntime PR 29253",), "onnxruntime MaxpoolWithMask",
           "the rank of the kernel does not fit the input", ("A15", "A16"),
           "a maximum with a mask; nearest is MaxPool"),
    Record(("onnxruntime PR 27375",), "onnxruntime AveragePool",
           "the wrong pads are read if they are not symmetric", ("W06", "W07", "W08")),
    Record(("onnxruntime#16203", "onnxruntime PR 16752", "onnxruntime PR 29629"), "onnxruntime AveragePool",
           "the divisor counts places beyond the end padding", ("W05", "W08", "W11")),
    Record(("onnxruntime#24681",), "onnxruntime AveragePool",
           "padding that auto_pad adds at the end is not counted", ("W07",)),
    Record(("onnxruntime#16351", "onnx#4958", "onnx#5235", "onnx PR 5741", "onnx PR 6650"),
           "onnxruntime and onnx, ceil_mode",
           "windows that start in the end padding have results", ("W04", "W10")),
    Record(("onnx PR 6195", "onnx PR 8037", "onnxruntime#28731"), "onnx, shape inference of convolutions and pools",
           "reads beyond the attributes if ranks differ, in each of several copies of the code",
           ("A15", "A16", "P05")),
    Record(("onnx PR 8277",), "onnx, shape inference",
           "the span of a dilated kernel, and pads, overflow", ("A09", "A14", "P05")),
    Record(("XNNPACK cc87074",), "XNNPACK unpooling",
           "reads and writes where an index says, without a check", ("U02", "U12")),
    Record(("XNNPACK 53cffb5",), "XNNPACK maximum pooling",
           "a dilation beyond the input reads before it", ("A10", "W01")),
    Record(("XNNPACK 5396935", "XNNPACK 1b27067", "XNNPACK 80e2cde", "XNNPACK 7a39ad8"), "XNNPACK pooling",
           "sizes of scratch memory are multiplied without a check", ("A06", "A22", "S06", "S08")),
    Record(("XNNPACK bf30145",), "XNNPACK, SAME padding",
           "padding is negative if the stride is larger than the kernel", ("A18",)),
    Record(("XNNPACK 32e57d1", "XNNPACK 524c06d"), "XNNPACK, sizes of results and tensors",
           "sizes are truncated to 32 bits", ("S05", "S07", "S08", "A22")),
    Record(("XNNPACK f24b7d8", "XNNPACK 7c92728"), "XNNPACK unpooling and argmax",
           "the shape of indices is not checked, and a second result has no size", ("U04", "U05", "P07")),
    Record(("XNNPACK 16c2673",), "XNNPACK means of float16",
           "the end of a row reads memory that was never written", ("P02", "P08")),
    Record(("oneDNN 41d3ce5", "oneDNN b494983"), "oneDNN pooling",
           "offsets in large tensors overflow", ("S08",)),
    Record(("oneDNN f3e6102",), "oneDNN, compiled kernels",
           "instructions that the processor lacks", ("P04",)),
    Record(("oneDNN PR 3457", "oneDNN 77e6f99", "oneDNN d4457d9"), "oneDNN maximum pooling",
           "padding counts as 0, and a window without elements is read", ("W01", "W09", "A12")),
    Record(("oneDNN 395f120",), "oneDNN global maximum",
           "NaN and -inf leave the index undefined", ("V01", "V02")),
    Record(("OpenCV PR 21336", "OpenCV PR 23671"), "OpenCV pooling",
           "attributes of a model with one axis are read for two, and a stride may be 0", ("A01", "A15", "A16")),
    Record(("ncnn#116", "ncnn#220"), "ncnn pooling",
           "odd sizes, and kernels smaller than the stride", ("A18", "A03", "P02")),
    Record(("tensorflow#125965", "pytorch#7645", "openvino#35935", "Theano#3060"), "maxima in four projects",
           "vectors and single elements differ about NaN, or NaNs have a finite maximum", ("V01", "V02")),
)


def names_of(record: Record) -> list[str]:
    """The names of the tests of a record, each once."""
    return list(dict.fromkeys(name for case in record.cases for name in CASES[case].tests))


def chosen(names: Iterable[str], tests: Iterable[str]) -> list[str]:
    """The tests, among those that pytest has collected, that any of the names means."""
    patterns = [re.compile(re.escape(name).replace(r"\*", ".*") + (r"" if "[" in name else r"(\[.*\])?"))
                for name in names]
    return [test for test in tests if any(pattern.fullmatch(test) for pattern in patterns)]
