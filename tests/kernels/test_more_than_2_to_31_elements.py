"""Arrays of more than 2^31 elements. Most of their pages are never written, and need no real memory."""

import numpy as np
import pytest
from support import LAYOUTS

import onnxpool

MORE = 2**31 + 8
SPOTS = (0, 2**31 - 1, 2**31, MORE - 1)  # the first element, the last one that 31 bits count, the next, and the last


def fresh(shape, dtype):
    """Zeros that take no memory until they are written."""
    try:
        return np.zeros(shape, dtype)
    except MemoryError:
        pytest.skip("the system does not provide that much address space")


@pytest.fixture
def marked():
    """Bytes that are 0 except at some places, where they are 1, 2, ..."""
    x = fresh(MORE, np.uint8)
    x[list(SPOTS)] = np.arange(1, len(SPOTS) + 1)
    return x


def laid(shape, channels_last):
    """A channels-first shape in a layout."""
    return (shape[0], *shape[2:], shape[1]) if channels_last else shape


def three(size):
    """The kernel and stride of few windows along an axis, the last of which reaches the end."""
    stride = max(1, (size - 2) // 2)
    return min(size, 2 + (size - 2) % stride), stride


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("spot", SPOTS)
def test_windows_of_one_element(marked, spot, channels_last):
    """All windowed operators of bytes find elements at both ends of an array and around element 2^31."""
    x = marked.reshape(laid((1, 1, MORE), channels_last))
    stride = max(spot, MORE)
    given = {"kernel_shape": 1, "strides": stride, "pads": (stride - spot if spot else 0, 0)}
    y, indices = onnxpool.max_pool(x, **given, channels_last=channels_last, return_indices=True)
    assert (y.ravel()[-1], indices.ravel()[-1]) == (marked[spot], spot)
    y = onnxpool.qlinear_average_pool(x, 1.0, 0, 1.0, 0, **given, channels_last=int(channels_last))
    assert y.ravel()[-1] == marked[spot]
    if channels_last:
        assert onnxpool.nhwc_max_pool(x, **given).ravel()[-1] == marked[spot]


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("spatial", [(MORE,), (2, MORE // 2), (MORE // 2, 2), (MORE // 8, 8)], ids=str)
def test_last_window(marked, spatial, channels_last):
    """The last window of a plane contains its last element, which is found with its index, for rows of any length."""
    x = marked.reshape(laid((1, 1, *spatial), channels_last))
    kernel, strides = zip(*map(three, spatial), strict=True)
    y, indices = onnxpool.max_pool(x, kernel, strides=strides, channels_last=channels_last, return_indices=True)
    assert (y.ravel()[0], indices.ravel()[0]) == (1, 0)
    assert (y.ravel()[-1], indices.ravel()[-1]) == (len(SPOTS), MORE - 1)


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("shape", [(8, 1, MORE // 8), (1, 8, MORE // 8), (MORE // 8, 1, 8), (4, 2, MORE // 8)], ids=str)
def test_last_image_and_channel(marked, shape, channels_last):
    """The last element is the maximum of the last window, whatever the number of images and channels."""
    x = marked.reshape(laid(shape, channels_last))
    x = x[-2:] if len(x) > 8 else x
    kernel, stride = three(shape[2])
    y = onnxpool.max_pool(x, kernel, strides=stride, channels_last=channels_last)
    assert y.ravel()[-1] == len(SPOTS)


@pytest.mark.parametrize("operator", ["MaxRoiPool", "RoiAlign"])
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
def test_regions_of_a_far_image(operator, channels_last):
    """Regions are found in an image that 2^31 elements precede."""
    x = fresh(laid((2049, 1, 1024, 1024), channels_last), np.float16)
    x[2048].reshape(1024, 1024)[-2:, -2:] = [[1, 2], [3, 4]]
    if operator == "MaxRoiPool":
        rois = np.array([[2048, 1022, 1022, 1023, 1023], [2047, 0, 0, 1023, 1023]], np.float16)
        y = onnxpool.max_roi_pool(x, rois, (2, 2), channels_last=channels_last)
    else:
        rois = np.array([[1022, 1022, 1024, 1024], [0, 0, 4, 4]], np.float16)
        y = onnxpool.roi_align(x, rois, np.array([2048, 0]), output_height=2, output_width=2, sampling_ratio=1,
                               channels_last=channels_last)
    assert y[0].ravel().tolist() == [1, 2, 3, 4]
    assert not y[1].any()


@pytest.mark.parametrize(("channels", "channels_last"), [
    (1, False), *(pytest.param(8, last, marks=pytest.mark.slow) for last in (False, True))])
def test_whole_means(channels, channels_last):
    """Sums of more than 2^31 extreme bytes, which do not fit into 32 bits, are exact."""
    x = fresh(laid((1, channels, MORE // channels), channels_last), np.uint8)
    y = onnxpool.qlinear_global_average_pool(x, 1.0, 255, 1.0, 255, channels_last=int(channels_last))
    assert y.shape == laid((1, channels, 1), channels_last)
    assert not y.any()
