// Settings, windows and refusals: what schemas.py, attributes.py and windows.py of onnxpool compute, for the operators,
// attributes and numbers of this page. tests/docs/test_explorer.py compares the answers with onnxpool's.

"use strict";

const LARGEST = 100000; // what this page computes with; onnxpool takes any number that an array allows

class Refusal extends Error {}

const ceilDiv = (a, b) => Math.ceil(a / b);
const floorDiv = (a, b) => Math.floor(a / b);
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);
const range = (begin, end) => Array.from({ length: Math.max(0, end - begin) }, (_, i) => begin + i);
const tuple = (numbers) => `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`;

class Axis {
  constructor(size, out, kernel, stride, dilation, pads, countsPads) {
    Object.assign(this, { size, out, kernel, stride, dilation, pads, countsPads });
    this.span = (kernel - 1) * dilation + 1;
    this.begin = Math.max(0, Math.min(out, ceilDiv(pads[0], stride))); // the windows inside X
    this.end = Math.max(this.begin, Math.min(out, floorDiv(size - this.span + pads[0], stride) + 1));
  }

  // The first element of a window, its number of elements, and the divisor of a mean.
  window(index) {
    const place = index * this.stride - this.pads[0];
    const tapsBefore = (limit) => Math.min(Math.max(ceilDiv(limit - place, this.dilation), 0), this.kernel);
    const outside = tapsBefore(0);
    const taps = Math.max(tapsBefore(this.size) - outside, 0);
    const divisor = this.countsPads ? tapsBefore(this.size + this.pads[1]) : taps;
    return { first: taps ? place + outside * this.dilation : 0, taps, divisor };
  }

  get empty() {
    return range(0, this.out).filter((index) => !this.window(index).taps).length;
  }
}

// The attributes of a node with these settings that differ from their defaults.
function given(settings) {
  const attributes = { kernel_shape: settings.kernel };
  if (settings.strides.some((n) => n !== 1)) attributes.strides = settings.strides;
  if (settings.pads.some((n) => n !== 0)) attributes.pads = settings.pads;
  if (settings.dilations.some((n) => n !== 1)) attributes.dilations = settings.dilations;
  if (settings.auto_pad !== "NOTSET") attributes.auto_pad = settings.auto_pad;
  if (settings.ceil_mode) attributes.ceil_mode = 1;
  if (settings.count_include_pad && settings.operator === "AveragePool") attributes.count_include_pad = 1;
  return attributes;
}

function checkInteger(label, name, value, minimum) {
  if (!Number.isInteger(value)) throw new Refusal(`${label}: ${name} must be an integer; pass one of at least ${minimum}`);
  if (value < minimum) {
    throw new Refusal(`${label}: ${name} must be in [${minimum}, 2^63 - 1], got ${value}; ` +
                      `pass an int of at least ${minimum}`);
  }
  if (value > LARGEST) {
    throw new Refusal(`${label}: this page computes with numbers up to ${LARGEST}, got ${name}=${value}; ` +
                      "onnxpool itself takes larger ones");
  }
}

function versionOf(settings) {
  const { operator, opset } = settings;
  checkInteger(operator, "opset", opset, 1);
  if (opset > FACTS.newest) {
    throw new Refusal(`${operator}: opset=${opset} is not known, and the newest is ${FACTS.newest}; ` +
                      `pass opset <= ${FACTS.newest} if the operator is the same there`);
  }
  return FACTS.operators[operator].filter((version) => version.since <= opset).at(-1);
}

function checkAttributes(settings, version, label) {
  for (const [name, value] of Object.entries(given(settings))) {
    if (!version.attributes.includes(name)) {
      const since = FACTS.operators[settings.operator].find((row) => row.attributes.includes(name)).since;
      throw new Refusal(`${label}: ${name}=${Array.isArray(value) ? tuple(value) : value} given, but ${name} was ` +
                        `introduced in ${settings.operator}-${since}; leave it out or pass opset >= ${since}`);
    }
    if (Array.isArray(value)) {
      value.forEach((number, i) => checkInteger(label, `${name}[${i}]`, number, name === "pads" ? 0 : 1));
    }
  }
}

function resolveAxis(label, i, settings) {
  const [size, kernel, stride, dilation] = ["sizes", "kernel", "strides", "dilations"].map((name) => settings[name][i]);
  const rank = settings.sizes.length;
  const mode = settings.auto_pad;
  const span = (kernel - 1) * dilation + 1;
  let pads = [settings.pads[i], settings.pads[i + rank]];
  let out;
  if (mode.startsWith("SAME")) {
    out = ceilDiv(size, stride);
    const total = Math.max(0, (out - 1) * stride + span - size);
    const half = floorDiv(total, 2);
    pads = mode === "SAME_UPPER" ? [half, total - half] : [total - half, half];
  } else {
    const room = size + pads[0] + pads[1] - span;
    out = (settings.ceil_mode ? ceilDiv(room, stride) : floorDiv(room, stride)) + 1;
    if (out < 1) {
      const limit = settings.ceil_mode ? `, and with ceil_mode=1 less than strides[${i}]=${stride} may be missing` : "";
      const way = mode === "VALID" ? "pass pads with auto_pad='NOTSET'" : "add pads";
      throw new Refusal(`${label}: kernel_shape[${i}]=${kernel} with dilations[${i}]=${dilation} spans ${span}, but axis ` +
                        `${i + 2} has ${size} (+${pads[0]}+${pads[1]} pads)${limit}; ${way} or shrink kernel_shape`);
    }
    if (settings.ceil_mode && (out - 1) * stride >= size + pads[0]) out -= 1; // it would start in the padding
  }
  const counts = settings.operator === "AveragePool" && Boolean(settings.count_include_pad);
  return new Axis(size, out, kernel, stride, dilation, pads, counts);
}

// The label, the version and the windows of each axis, or a Refusal.
function plan(settings) {
  const version = versionOf(settings);
  const label = `${settings.operator}-${version.since}`;
  checkAttributes(settings, version, label);
  settings.sizes.forEach((size, i) => checkInteger(label, `shape[${i + 2}]`, size, 0));
  const empty = settings.sizes.indexOf(0);
  if (empty >= 0) {
    throw new Refusal(`${label}: spatial axis ${empty + 2} is empty (size 0), but a window needs at least 1 element; ` +
                      "only the batch and channel axes may be empty");
  }
  if (settings.auto_pad !== "NOTSET" && settings.pads.some((pad) => pad !== 0)) {
    throw new Refusal(`${label}: pads=${tuple(settings.pads)} given together with auto_pad=${settings.auto_pad}; ` +
                      "leave pads out or pass auto_pad='NOTSET'");
  }
  const axes = settings.sizes.map((_, i) => resolveAxis(label, i, settings));
  return { label, version: version.since, axes, divided: settings.operator === "AveragePool" };
}

// What explain().to_dict() returns for one image with one channel, without form and route.
function facts(settings, { label, axes }) {
  return {
    operator: label, dtype: "float32", shape: [1, 1, ...settings.sizes],
    output_shape: [1, 1, ...axes.map((axis) => axis.out)], result_dtype: "float32",
    axes: axes.map((axis, i) => ({
      axis: i + 2, size: axis.size, out: axis.out, kernel: axis.kernel, stride: axis.stride, dilation: axis.dilation,
      pads: axis.pads, empty: axis.empty,
    })),
  };
}
