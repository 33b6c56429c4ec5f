// Written by tools/export_explorer.py.

const FACTS = {
 "newest": 28,
 "operators": {
  "AveragePool": [
   {
    "since": 1,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad"
    ]
   },
   {
    "since": 7,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad",
     "count_include_pad"
    ]
   },
   {
    "since": 10,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad",
     "ceil_mode",
     "count_include_pad"
    ]
   },
   {
    "since": 11,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad",
     "ceil_mode",
     "count_include_pad"
    ]
   },
   {
    "since": 19,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode",
     "count_include_pad"
    ]
   },
   {
    "since": 22,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode",
     "count_include_pad"
    ]
   }
  ],
  "MaxPool": [
   {
    "since": 1,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad"
    ]
   },
   {
    "since": 8,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad"
    ]
   },
   {
    "since": 10,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode"
    ]
   },
   {
    "since": 11,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode"
    ]
   },
   {
    "since": 12,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode"
    ]
   },
   {
    "since": 22,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode"
    ]
   }
  ],
  "LpPool": [
   {
    "since": 1,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad"
    ]
   },
   {
    "since": 2,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad"
    ]
   },
   {
    "since": 11,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "auto_pad"
    ]
   },
   {
    "since": 18,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode"
    ]
   },
   {
    "since": 22,
    "attributes": [
     "kernel_shape",
     "strides",
     "pads",
     "dilations",
     "auto_pad",
     "ceil_mode"
    ]
   }
  ]
 },
 "runtimes": [
  "torch",
  "Keras",
  "OpenVINO",
  "onnxruntime"
 ],
 "limits": {
  "MOST_WINDOWS": 4096,
  "LONG_SUM": 262144,
  "ORT_LARGEST_KERNEL": 32,
  "ORT_LONGEST_ROW": 2045,
  "ORT_VECTOR": 4
 },
 "ort_versions": {
  "AveragePool": 7,
  "MaxPool": 1,
  "LpPool": 2
 },
 "rows": [
  {
   "name": "torch-uneven-maximum",
   "runtime": "torch",
   "text": "pads both ends of an axis alike; pad the input with -inf first",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "torch-uneven-counted",
   "runtime": "torch",
   "text": "pads both ends of an axis alike; pad the input with zeros first",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "torch-uneven-mean",
   "runtime": "torch",
   "text": "pads both ends of an axis alike, and counts the zeros of an input that is padded first",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "torch-large-pads",
   "runtime": "torch",
   "text": "refuses pads larger than half of the kernel, however large its dilations are",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "torch-dilations",
   "runtime": "torch",
   "text": "has no dilations for means and norms",
   "values": "",
   "operators": [
    "AveragePool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "torch-oversized",
   "runtime": "torch",
   "text": "refuses kernels larger than the input without its padding, for three axes",
   "values": "",
   "operators": [
    "AveragePool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "torch-norm-pads",
   "runtime": "torch",
   "text": "has no pads for norms; pad the input with zeros first",
   "values": "",
   "operators": [
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "torch-default-count",
   "runtime": "torch",
   "text": "counts padding by default; give count_include_pad=False",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "torch-norm-ceil",
   "runtime": "torch",
   "text": "computes a norm as a mean times the kernel size, which is wrong if a window of ceil_mode overhangs",
   "values": "",
   "operators": [
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "torch-norm-range",
   "runtime": "torch",
   "text": "returns inf or 0 if powers overflow or underflow the dtype, even though the norm does not",
   "values": "range",
   "operators": [
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "torch-mean-range",
   "runtime": "torch",
   "text": "returns inf if a sum overflows the dtype, even though the mean does not",
   "values": "range",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "torch-long-sum",
   "runtime": "torch",
   "text": "may be off by more than 0.2 %, because it adds this many elements one after another in float32",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "keras-missing",
   "runtime": "Keras",
   "text": "has no norms",
   "values": "",
   "operators": [
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "keras-pads-maximum",
   "runtime": "Keras",
   "text": "pads only as SAME_UPPER does; pad the input with -inf first",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "keras-pads-counted",
   "runtime": "Keras",
   "text": "pads only as SAME_UPPER does; pad the input with zeros first",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "keras-pads-mean",
   "runtime": "Keras",
   "text": "pads only as SAME_UPPER does, and counts the zeros of an input that is padded first",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "keras-lower",
   "runtime": "Keras",
   "text": "puts the odd element of padding at the end, as SAME_UPPER does",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "keras-dilations",
   "runtime": "Keras",
   "text": "has no dilations",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "keras-ceil",
   "runtime": "Keras",
   "text": "has no ceil_mode, and drops the last window",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "keras-count",
   "runtime": "Keras",
   "text": "never counts padding",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "ort-kernel",
   "runtime": "onnxruntime",
   "text": "has no kernel for this version and dtype (1.31 and 1.32 on a CPU)",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "ort-rank",
   "runtime": "onnxruntime",
   "text": "refuses this number of spatial axes",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "ort-pads",
   "runtime": "onnxruntime",
   "text": "refuses pads as large as the undilated kernel, or larger",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "ort-empty-average",
   "runtime": "onnxruntime",
   "text": "returns 0 instead of NaN for a window that holds padding only",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "ort-empty-maximum",
   "runtime": "onnxruntime",
   "text": "returns the lowest finite number instead of -inf for a window that holds padding only",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "ort-empty-indices",
   "runtime": "onnxruntime",
   "text": "returns an index other than -1 for a window that holds padding only",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "ort-same-dilations",
   "runtime": "onnxruntime",
   "text": "ignores dilations when it computes the pads of SAME_*: other windows, or another output shape",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "ort-same-strides",
   "runtime": "onnxruntime",
   "text": "uses negative pads for SAME_* if strides exceed the kernel: other windows",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "ort-same-refused",
   "runtime": "onnxruntime",
   "text": "computes negative pads for SAME_* if strides exceed the kernel, and refuses them",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "ort-long-sum",
   "runtime": "onnxruntime",
   "text": "may be off by more than 0.2 %, because it adds this many elements one after another in float32",
   "values": "",
   "operators": [
    "AveragePool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "old-ort-ceil",
   "runtime": "onnxruntime",
   "text": "keeps the window of ceil_mode that starts in the padding: another output shape",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": "1.21"
  },
  {
   "name": "old-ort-divisor",
   "runtime": "onnxruntime",
   "text": "divides by the whole kernel even if a window of ceil_mode overhangs the padding",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": "1.29"
  },
  {
   "name": "old-ort-divisor-19",
   "runtime": "onnxruntime",
   "text": "divides by the whole kernel even if a window of ceil_mode overhangs the padding",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": "1.21"
  },
  {
   "name": "openvino-bfloat16-crash",
   "runtime": "OpenVINO",
   "text": "ends the process: bfloat16, 8 results per channel, and a multiple of 8 channels, on processors with AVX2 but without AVX-512",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-rank",
   "runtime": "OpenVINO",
   "text": "refuses more than three spatial axes",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-float64",
   "runtime": "OpenVINO",
   "text": "computes float64 in float32",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-pads",
   "runtime": "OpenVINO",
   "text": "refuses pads that are not smaller than the dilated kernel, unless count_include_pad is 1",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "openvino-oversized",
   "runtime": "OpenVINO",
   "text": "refuses ceil_mode where the kernel exceeds the padded input",
   "values": "",
   "operators": [
    "AveragePool",
    "MaxPool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-ceil-average",
   "runtime": "OpenVINO",
   "text": "divides by the whole kernel if there are pads, even if a window of ceil_mode overhangs them",
   "values": "",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "openvino-ceil",
   "runtime": "OpenVINO",
   "text": "keeps the window of ceil_mode that starts in the padding: another output shape",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-ceil-norm",
   "runtime": "OpenVINO",
   "text": "computes a norm as a mean times the kernel size, which is wrong if a window of ceil_mode overhangs",
   "values": "",
   "operators": [
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-empty-maximum",
   "runtime": "OpenVINO",
   "text": "returns the lowest finite number instead of -inf for a window that holds padding only",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-empty-indices",
   "runtime": "OpenVINO",
   "text": "returns an index other than -1 for a window that holds padding only",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-indices",
   "runtime": "OpenVINO",
   "text": "transposes the tensor of Indices for storage_order=1, instead of counting in column-major order",
   "values": "",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-long-sum",
   "runtime": "OpenVINO",
   "text": "may be off by more than 0.2 %, because it adds this many elements one after another in float32",
   "values": "",
   "operators": [
    "AveragePool",
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "ort-nan",
   "runtime": "onnxruntime",
   "text": "may lose a NaN in a window, depending on its position",
   "values": "NaN",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "ort-mean-range",
   "runtime": "onnxruntime",
   "text": "returns inf if a sum overflows float32, even though the mean does not",
   "values": "range",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "ort-infinite",
   "runtime": "onnxruntime",
   "text": "returns the lowest finite number for a window of -inf",
   "values": "infinity",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "ort-norm-range",
   "runtime": "onnxruntime",
   "text": "returns inf or 0 if powers overflow or underflow float32, even though the norm does not",
   "values": "range",
   "operators": [
    "LpPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-nan",
   "runtime": "OpenVINO",
   "text": "returns the lowest finite number for a window of NaN",
   "values": "NaN",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-infinite",
   "runtime": "OpenVINO",
   "text": "returns the lowest finite number for a window of -inf",
   "values": "infinity",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-infinite-indices",
   "runtime": "OpenVINO",
   "text": "points to the first element of the array for a window of -inf",
   "values": "infinity",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-lowest-indices",
   "runtime": "OpenVINO",
   "text": "points to the first element of the array for a window of the lowest integer",
   "values": "lowest",
   "operators": [
    "MaxPool"
   ],
   "before": ""
  },
  {
   "name": "openvino-mean-range",
   "runtime": "OpenVINO",
   "text": "returns inf if a sum overflows float32, even though the mean does not",
   "values": "range",
   "operators": [
    "AveragePool"
   ],
   "before": ""
  },
  {
   "name": "openvino-norm-range",
   "runtime": "OpenVINO",
   "text": "returns inf or 0 if powers overflow or underflow float32, even though the norm does not",
   "values": "range",
   "operators": [
    "LpPool"
   ],
   "before": ""
  }
 ],
 "pictures": {
  "WIDTH": 380,
  "MARGIN": 10,
  "LINE": 16,
  "LETTERS": {
   "heading": 52,
   "caption": 60
  },
  "CELL": 20,
  "STRIP": 16,
  "DIGIT": 7,
  "CAPTION": 108,
  "MOST_CELLS": 16,
  "MOST_ROWS": 8,
  "MOST_RESULTS": 10,
  "IMAGE_AXES": 2,
  "COLOURS": {
   "paper": [
    "#ffffff",
    "#14181d"
   ],
   "ink": [
    "#1f2328",
    "#e6edf3"
   ],
   "line": [
    "#7d858f",
    "#848d97"
   ],
   "element": [
    "#b9d7ea",
    "#2b5f82"
   ],
   "unread": [
    "#dce9f3",
    "#1b2c39"
   ],
   "counted": [
    "#f7d08a",
    "#6e4a00"
   ],
   "first": [
    "#1f62cc",
    "#b0b4ff"
   ],
   "inner": [
    "#b84500",
    "#ffb000"
   ],
   "last": [
    "#101418",
    "#24d890"
   ]
  },
  "BOXES": [
   "first",
   "inner",
   "last"
  ],
  "DOTS": [
   [
    4,
    4
   ],
   [
    10,
    5
   ],
   [
    8,
    9
   ]
  ],
  "CELLS": [
   "element",
   "unread",
   "counted",
   "padding",
   "overhang"
  ],
  "SIGNS": {
   "counted": "0",
   "overhang": "×"
  },
  "NAMES": {
   "element": "element of X",
   "unread": "element in no window",
   "counted": "padding, counts as 0",
   "padding": "padding, not counted",
   "overhang": "overhang of ceil_mode, not counted"
  },
  "PLAIN_NAMES": {
   "element": "element of X",
   "unread": "element in no window",
   "counted": "padding, counts as 0",
   "padding": "padding",
   "overhang": "overhang of ceil_mode"
  },
  "STYLES": {
   "card": {
    "shape": "rect",
    "fill": "paper",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "element": {
    "shape": "rect",
    "fill": "element",
    "stroke": "line",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "unread": {
    "shape": "rect",
    "fill": "unread",
    "stroke": "line",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "counted": {
    "shape": "rect",
    "fill": "counted",
    "stroke": "line",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "padding": {
    "shape": "rect",
    "fill": "",
    "stroke": "line",
    "dash": "3 2",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "overhang": {
    "shape": "rect",
    "fill": "",
    "stroke": "line",
    "dash": "1 3",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "result": {
    "shape": "rect",
    "fill": "",
    "stroke": "line",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "window": {
    "shape": "rect",
    "fill": "",
    "stroke": "first",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "first": {
    "shape": "rect",
    "fill": "",
    "stroke": "first",
    "dash": "",
    "weight": 2.5,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "inner": {
    "shape": "rect",
    "fill": "",
    "stroke": "inner",
    "dash": "",
    "weight": 2.5,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "last": {
    "shape": "rect",
    "fill": "",
    "stroke": "last",
    "dash": "",
    "weight": 2.5,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "tap": {
    "shape": "circle",
    "fill": "first",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "outside": {
    "shape": "circle",
    "fill": "",
    "stroke": "first",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "first-tap": {
    "shape": "circle",
    "fill": "first",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "inner-tap": {
    "shape": "circle",
    "fill": "inner",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "last-tap": {
    "shape": "circle",
    "fill": "last",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "heading": {
    "shape": "text",
    "fill": "ink",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 12,
    "anchor": "start",
    "bold": true
   },
   "caption": {
    "shape": "text",
    "fill": "ink",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 11,
    "anchor": "start",
    "bold": false
   },
   "digit": {
    "shape": "text",
    "fill": "ink",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 10,
    "anchor": "middle",
    "bold": false
   },
   "index": {
    "shape": "text",
    "fill": "ink",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 10,
    "anchor": "end",
    "bold": false
   },
   "factor": {
    "shape": "text",
    "fill": "ink",
    "stroke": "",
    "dash": "",
    "weight": 1,
    "size": 10,
    "anchor": "start",
    "bold": false
   }
  }
 }
};
