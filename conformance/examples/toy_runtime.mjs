// A toy runtime: the windowed pools on float32, without Indices. It returns undefined for what it cannot do.

function windows(size, axis, rank, { kernel_shape, strides, dilations, pads, auto_pad = "NOTSET", ceil_mode = 0 }) {
  const kernel = kernel_shape[axis], stride = strides?.[axis] ?? 1, dilation = dilations?.[axis] ?? 1;
  const span = (kernel - 1) * dilation + 1;
  let begin = pads?.[axis] ?? 0, end = pads?.[axis + rank] ?? 0, count;
  if (auto_pad.startsWith("SAME")) {
    count = Math.ceil(size / stride);
    const needed = Math.max(0, (count - 1) * stride + span - size);
    begin = auto_pad === "SAME_UPPER" ? needed >> 1 : needed - (needed >> 1);
    end = needed - begin;
  } else {
    const steps = (size + begin + end - span) / stride;
    count = (ceil_mode ? Math.ceil(steps) : Math.floor(steps)) + 1;
    if (ceil_mode && (count - 1) * stride >= size + begin) count--;
  }
  return Array.from({ length: count }, (_, window) => {
    const taps = Array.from({ length: kernel }, (_, tap) => window * stride - begin + tap * dilation);
    const inside = taps.filter((tap) => tap >= 0 && tap < size);
    return { taps: inside, counted: taps.filter((tap) => tap < size + end).length };
  });
}

function product(lists) {
  return lists.reduce((rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])), [[]]);
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

export function run({ operator, attributes, inputs, outputs }, [{ shape, data }]) {
  const known = ["AveragePool", "MaxPool", "LpPool"].includes(operator) && inputs[0].dtype === "float32";
  if (!known || outputs.length > 1) return undefined;
  const spatial = shape.slice(2), planes = shape[0] * shape[1];
  const axes = spatial.map((length, axis) => windows(length, axis, spatial.length, attributes));
  const p = Number(attributes.p === "inf" ? Infinity : attributes.p ?? 2);
  const cells = [];
  for (let plane = 0; plane < planes; plane++) {
    for (const window of product(axes)) {
      const places = product(window.map(({ taps }) => taps));
      const taps = places.map((at) => data[at.reduce((place, k, axis) => place * spatial[axis] + k, plane)]);
      const counted = window.reduce((total, { counted }) => total * counted, 1);
      const sizes = taps.map(Math.abs);
      if (operator === "MaxPool") cells.push(Math.max(...taps));
      else if (operator === "AveragePool") {
        cells.push(sum(taps) / (attributes.count_include_pad ? counted : taps.length));
      } else cells.push(p === Infinity ? Math.max(...sizes) : sum(sizes.map((v) => v ** p)) ** (1 / p));
    }
  }
  return [{ shape: [...shape.slice(0, 2), ...axes.map((axis) => axis.length)], data: Float32Array.from(cells) }];
}
