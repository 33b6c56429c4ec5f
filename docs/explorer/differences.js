// When the rows of the table of disagreements hold, for the nodes of this page: float32, one image, no Indices. The
// conditions come from onnx/disagreements.py, tools/sweep_disagreements.py (torch) and tools/export_explorer.py (Keras),
// which explain them. tests/docs/test_explorer.py compares the answers.

"use strict";

const { MOST_WINDOWS, LONG_SUM, ORT_LARGEST_KERNEL, ORT_LONGEST_ROW, ORT_VECTOR } = FACTS.limits;

const sum = (pads) => pads[0] + pads[1];
const overhang = (axis) => (axis.out - 1) * axis.stride + axis.span - axis.size - sum(axis.pads);
const room = (axis) => axis.size + sum(axis.pads) - axis.span;
const firstWindows = (axis) => range(0, Math.min(axis.out, MOST_WINDOWS));
const truncated = (a, b) => Math.trunc(a / b);

function differ(pairs) {
  if (pairs.some(([ours, theirs]) => ours.out !== theirs.out)) return true;
  const windows = pairs.map(([ours, theirs]) => [...firstWindows(ours), ours.out - 1].map(
    (index) => [ours.window(index), theirs.window(index)]));
  const same = (one, other) => one.first === other.first && one.taps === other.taps && one.divisor === other.divisor;
  return [0, 1].some((side) => (
    windows.every((along) => along.some((both) => both[side].taps)) &&
    windows.some((along) => along.some((both) => both[side].taps && !same(...both)))));
}

function cutsDivisor(axis) {
  return axis.countsPads && range(Math.max(0, axis.out - MOST_WINDOWS), axis.out).some((index) => {
    const { taps, divisor } = axis.window(index);
    return taps && divisor < axis.kernel;
  });
}

function mostTaps(axis) {
  if (axis.begin < axis.end) return axis.kernel;
  return Math.max(0, ...firstWindows(axis).map((index) => axis.window(index).taps));
}

// The windows with the pads of onnxruntime for SAME_*.
function ortAxis(axis, mode, ceil, cuts) {
  const needed = (ceilDiv(axis.size, axis.stride) - 1) * axis.stride + axis.kernel - axis.size;
  const head = truncated(needed + (mode === "SAME_LOWER" ? 1 : 0), 2);
  const free = axis.size + needed - axis.span;
  let out = (ceil ? ceilDiv(free, axis.stride) : truncated(free, axis.stride)) + 1;
  if (ceil && (out - 1) * axis.stride >= axis.size + head) out -= 1;
  const tail = needed - head;
  return new Axis(axis.size + (cuts ? Math.min(0, tail) : 0), out, axis.kernel, axis.stride, axis.dilation, [head, tail],
                  axis.countsPads);
}

class Case {
  constructor(settings, { axes, version }) {
    const { operator, auto_pad: mode, ceil_mode: ceil } = settings;
    const counts = operator === "AveragePool" && Boolean(settings.count_include_pad);
    Object.assign(this, { settings, axes, version, operator, mode, ceil, counts, rank: axes.length });
    this.same = mode.startsWith("SAME");
    this.last = axes.at(-1);
  }

  some(condition) {
    return this.axes.some(condition);
  }

  get padded() {
    return this.some((axis) => sum(axis.pads) > 0);
  }

  get explicitPads() {
    return this.mode === "NOTSET" && this.padded;
  }

  get uneven() {
    return this.some((axis) => axis.pads[0] !== axis.pads[1]);
  }

  get dilated() {
    return this.some((axis) => axis.dilation > 1 && axis.kernel > 1);
  }

  get empty() {
    return this.some((axis) => axis.empty > 0);
  }

  get drops() {
    return Boolean(this.ceil) && this.some((axis) => ceilDiv(room(axis), axis.stride) + 1 > axis.out);
  }

  get overhangs() {
    return Boolean(this.ceil) && this.some((axis) => overhang(axis) >= 1);
  }

  get negative() {
    return this.same && this.some((axis) => overhang(axis) <= -1);
  }

  get taps() {
    return product(this.axes.map((axis) => axis.kernel));
  }

  get most() {
    return product(this.axes.map(mostTaps));
  }

  get dividesByFewer() {
    return this.most > 0 && this.some(cutsDivisor);
  }

  longSum(lanes) {
    return this.taps >= LONG_SUM * lanes;
  }

  get padsReachKernel() {
    const { pads, kernel } = this.settings;
    return pads.some((pad, i) => pad && pad >= kernel[i % this.rank]);
  }

  get ortMoves() {
    const cuts = this.operator === "AveragePool" && !this.counts;
    return this.same && differ(this.axes.map((axis) => [axis, ortAxis(axis, this.mode, this.ceil, cuts)]));
  }

  get ortPlain() {
    return !this.some((axis) => axis.dilation !== 1);
  }

  get ortVectors() {
    const whole = !this.some((axis) => axis.kernel !== axis.size || axis.stride !== 1 || sum(axis.pads) > 0);
    return !whole && this.rank >= 2 && !this.some((axis) => axis.kernel > ORT_LARGEST_KERNEL) &&
           this.last.stride <= 2 && this.last.size + sum(this.last.pads) <= ORT_LONGEST_ROW;
  }

  get ortStartsFinite() {
    const inside = this.last.begin === 0 && this.last.end === this.last.out;
    return this.ortPlain && !(this.rank === 2 && this.ortVectors && inside);
  }

  get ortDropsNaN() {
    if (this.most > 1) return true;
    if (!this.most) return false;
    return this.ortVectors ? this.ortPlain && this.ortDropsAlone : this.ortStartsFinite;
  }

  get ortDropsAlone() {
    const axis = this.last;
    const beyond = this.rank === 3 ? axis.size - (axis.size % ORT_VECTOR) : axis.size;
    return firstWindows(axis).some((index) => {
      const { first, taps } = axis.window(index);
      return taps && (first >= beyond || first < index * axis.stride - axis.pads[0] + axis.span - 1);
    });
  }
}

const never = () => false; // needs Indices, another dtype or more axes than this page has
const HOLDS = {
  "ort-kernel": (c) => c.version < FACTS.ort_versions[c.operator],
  "ort-rank": never,
  "ort-pads": (c) => c.padsReachKernel,
  "ort-empty-average": (c) => c.empty && !c.counts,
  "ort-empty-maximum": (c) => c.empty,
  "ort-empty-indices": never,
  "ort-same-dilations": (c) => c.dilated && c.ortMoves,
  "ort-same-strides": (c) => !c.dilated && c.ortMoves,
  "ort-same-refused": (c) => c.negative && (
    c.operator === "AveragePool" ? c.version < 19 && !(c.ceil && c.counts) : c.ortPlain),
  "ort-long-sum": (c) => c.longSum(c.operator === "AveragePool" && c.version >= 19 ? 1 : 4),
  "old-ort-ceil": (c) => c.drops && !c.same,
  "old-ort-indices": never,
  "old-ort-divisor": (c) => c.dividesByFewer && c.version < 19,
  "old-ort-divisor-19": (c) => c.dividesByFewer && c.version >= 19,
  "ort-nan": (c) => c.ortDropsNaN,
  "ort-mean-range": (c) => c.most > 1,
  "ort-infinite": (c) => c.most > 0 && c.ortStartsFinite,
  "ort-norm-range": (c) => c.most > 0,
  "openvino-bfloat16-crash": never,
  "openvino-rank": never,
  "openvino-float64": never,
  "openvino-pads": (c) => !c.counts && c.some((axis) => Math.max(...axis.pads) >= axis.span),
  "openvino-oversized": (c) => c.some((axis) => room(axis) < 0),
  "openvino-ceil-average": (c) => c.padded && c.dividesByFewer,
  "openvino-ceil": (c) => c.drops,
  "openvino-ceil-norm": (c) => c.overhangs && !c.padded && c.most > 0,
  "openvino-empty-maximum": (c) => c.empty,
  "openvino-empty-indices": never,
  "openvino-indices": never,
  "openvino-long-sum": (c) => c.longSum(c.operator === "LpPool" ? 4 : 1),
  "openvino-nan": (c) => c.most > 0,
  "openvino-infinite": (c) => c.most > 0,
  "openvino-infinite-indices": never,
  "openvino-lowest-indices": never,
  "openvino-mean-range": (c) => c.most > 1,
  "openvino-norm-range": (c) => c.most > 0,
  "torch-uneven-maximum": (c) => c.uneven,
  "torch-uneven-counted": (c) => c.uneven && c.counts,
  "torch-uneven-mean": (c) => c.uneven && !c.counts,
  "torch-large-pads": (c) => !c.uneven && c.some((axis) => axis.pads[0] > floorDiv(axis.kernel, 2)),
  "torch-dilations": (c) => c.dilated,
  "torch-oversized": (c) => c.rank === 3 && c.some((axis) => axis.kernel > axis.size),
  "torch-norm-pads": (c) => c.padded,
  "torch-default-count": (c) => !c.counts && c.padded,
  "torch-norm-ceil": (c) => c.overhangs && c.most > 0,
  "torch-norm-range": (c) => c.most > 0,
  "torch-mean-range": (c) => c.most > 1,
  "torch-long-sum": (c) => c.longSum(1),
  "keras-missing": () => true,
  "keras-pads-maximum": (c) => c.explicitPads,
  "keras-pads-counted": (c) => c.explicitPads && c.counts,
  "keras-pads-mean": (c) => c.explicitPads && !c.counts,
  "keras-lower": (c) => c.mode === "SAME_LOWER" && c.uneven,
  "keras-dilations": (c) => c.dilated,
  "keras-ceil": (c) => !c.same && c.overhangs,
  "keras-count": (c) => c.same && c.padded && c.counts,
};

// The rows that hold for a node.
function differences(settings, planned) {
  const node = new Case(settings, planned);
  return FACTS.rows.filter((row) => row.operators.includes(settings.operator) && HOLDS[row.name](node));
}
