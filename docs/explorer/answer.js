// What the page shows for some settings, as data and text.

"use strict";

const python = (value) => (Array.isArray(value) ? tuple(value) : typeof value === "string" ? `"${value}"` : value);
const listed = (value) => (Array.isArray(value) ? `[${value.join(", ")}]` : python(value));
const written = (attributes, form) => Object.entries(attributes).map(([name, value]) => `${name}=${form(value)}`);

// How the windows of an axis follow from its numbers.
function formula(settings, axis, i) {
  const { size, kernel, stride, dilation, span, out, pads } = axis;
  const lines = [`span = (${kernel} - 1) * ${dilation} + 1 = ${span}`];
  if (settings.auto_pad.startsWith("SAME")) {
    lines.push(`windows = ⌈${size} / ${stride}⌉ = ${out}`);
    const total = pads[0] + pads[1];
    lines.push(`padding = max(0, (${out} - 1) * ${stride} + ${span} - ${size}) = ${total}, which is ` +
               `${pads[0]} + ${pads[1]}`);
  } else {
    const [open, close] = settings.ceil_mode ? ["⌈", "⌉"] : ["⌊", "⌋"];
    const free = size + pads[0] + pads[1] - span;
    const count = (settings.ceil_mode ? ceilDiv(free, stride) : floorDiv(free, stride)) + 1;
    lines.push(`windows = ${open}(${size} + ${pads[0]} + ${pads[1]} - ${span}) / ${stride}${close} + 1 = ${count}`);
    if (count > out) lines.push(`the last one would start in the padding, and is dropped: windows = ${out}`);
  }
  lines.push(`window i begins at element i * ${stride} - ${pads[0]}`);
  return { axis: i + 2, lines };
}

// How one result is computed.
function result(settings, { axes }, window) {
  const parts = axes.map((axis, i) => axis.window(window[i]));
  const taps = product(parts.map((part) => part.taps));
  const name = `y[0, 0, ${window.join(", ")}]`;
  const inside = `${taps} element${taps === 1 ? "" : "s"}`;
  if (settings.operator === "AveragePool") {
    const factors = parts.map((part) => part.divisor);
    const divisor = product(factors);
    const shown = factors.length > 1 ? `${factors.join(` ${times} `)} = ${divisor}` : `${divisor}`;
    if (!taps) return `${name} = ${divisor ? "0, the mean of padding that counts" : "NaN, the mean of nothing"}`;
    return `${name} = sum of ${inside} / ${divisor}` + (factors.length > 1 ? `, where ${shown}` : "");
  }
  if (settings.operator === "MaxPool") return `${name} = ${taps ? `maximum of ${inside}` : "-inf, the maximum of nothing"}`;
  return `${name} = ${taps ? `square root of the sum of squares of ${inside}` : "0, the norm of nothing"}`;
}

function answer(settings) {
  let planned;
  try {
    planned = plan(settings);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { error: error.message };
  }
  const { axes, label, divided } = planned;
  const data = facts(settings, planned);
  const title = `${label}, float32 ${tuple(data.shape)} -> ${tuple(data.output_shape)}`;
  const attributes = given(settings);
  const opset = settings.opset === FACTS.newest ? [] : [`opset=${settings.opset}`];
  const last = axes.map((axis) => axis.out - 1);
  const picked = settings.window?.length === axes.length && settings.window.every((index, i) => (
    Number.isInteger(index) && 0 <= index && index <= last[i])) ? settings.window : null;
  const windows = [axes.map(() => 0), ...(picked ? [picked] : []), last];
  return {
    facts: data,
    svg: svg(new Picture(title, axes, divided, picked)),
    formulas: axes.map((axis, i) => formula(settings, axis, i)),
    results: [...new Set(windows.map((window) => result(settings, planned, window)))],
    call: `import onnxpool\n\nop = onnxpool.${settings.operator}(${[...written(attributes, python), ...opset].join(", ")})\n` +
          `y = op(x)  # x.shape is ${tuple(data.shape)}, and y.shape is ${tuple(data.output_shape)}`,
    node: `import onnx\n\nnode = onnx.helper.make_node("${settings.operator}", ["x"], ["y"], ${written(attributes, listed).join(", ")})`,
    rows: differences(settings, planned),
  };
}

// Links store the settings. Settings that a link lacks have their defaults.
const DEFAULTS = {
  operator: "AveragePool", opset: FACTS.newest, sizes: [5, 5], kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1],
  dilations: [1, 1], auto_pad: "NOTSET", ceil_mode: 0, count_include_pad: 0, window: null,
};
const RANKS = [1, 2, 3];
const MODES = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];

function link(settings) {
  return `#${Object.entries(settings).filter(([, value]) => value !== null).map(
    ([name, value]) => `${name}=${Array.isArray(value) ? value.join() : value}`).join("&")}`;
}

// The settings of a link. Settings that are missing or invalid have their defaults.
function settingsOf(hash) {
  const found = new Map(hash.replace(/^#/, "").split("&").map((part) => {
    const [name, ...rest] = part.split("=");
    return [name, rest.join("=").replaceAll("%2C", ",")];
  }));
  const numbers = (name) => (/^-?\d+(,-?\d+)*$/.test(found.get(name) ?? "") ? found.get(name).split(",").map(Number) : null);
  const one = (name, known) => (known.includes(found.get(name)) ? found.get(name) : DEFAULTS[name]);
  const given = numbers("sizes");
  const sizes = given && RANKS.includes(given.length) ? given : DEFAULTS.sizes;
  const each = (name, sides, fill) => {
    const list = numbers(name);
    if (list?.length === sizes.length * sides) return list;
    return sizes.length === DEFAULTS.sizes.length && !list ? DEFAULTS[name] : Array(sizes.length * sides).fill(fill);
  };
  const mode = one("auto_pad", MODES);
  const flag = (name) => (found.get(name) === "1" ? 1 : 0);
  return {
    operator: one("operator", Object.keys(FACTS.operators)), opset: numbers("opset")?.[0] ?? DEFAULTS.opset, sizes,
    kernel: each("kernel", 1, 3), strides: each("strides", 1, 1),
    pads: found.has("pads") || mode === "NOTSET" ? each("pads", 2, 0) : Array(sizes.length * 2).fill(0),
    dilations: each("dilations", 1, 1), auto_pad: mode, ceil_mode: flag("ceil_mode"),
    count_include_pad: flag("count_include_pad"), window: numbers("window"),
  };
}
