// Pictures of windows: pictures.py of onnxpool in JavaScript. It draws the same SVG, letter by letter.

"use strict";

const P = FACTS.pictures; // sizes, colours, styles and names, from pictures.py

class Cut {
  constructor(low, head, tail, high) {
    Object.assign(this, { low, head, tail, high });
  }

  static of(low, high, most) {
    if (high - low <= most) return new Cut(low, high, high, high);
    const head = Math.max(1, floorDiv(most, 2));
    return new Cut(low, low + head, high - Math.max(0, most - 1 - head), high);
  }

  static around([low, high], part, most) {
    if (high - low <= most) return Cut.of(low, high, most);
    return Cut.of(Math.max(low, part[0] - 1), Math.min(high, Math.max(part[1], part[0] + 1) + 1), most);
  }

  get missing() {
    return this.tail - this.head;
  }

  get cells() {
    return this.head - this.low + (this.missing > 0 ? 1 : 0) + this.high - this.tail;
  }

  get numbers() {
    return [...range(this.low, this.head), ...range(this.tail, this.high)];
  }

  has(number) {
    return (this.low <= number && number < this.head) || (this.tail <= number && number < this.high);
  }

  left(number) {
    if (number < this.head) return Math.max(0, number - this.low);
    return Math.min(this.cells, this.head - this.low + (number < this.tail ? 0.5 : 1 + number - this.tail));
  }

  right(number) {
    return this.left(number) + (this.has(number) ? 1 : 0);
  }
}

const mark = (kind, x, y, width, height, data = []) => ({ kind, x, y, width, height, text: "", data });
const words = (kind, x, y, text, data = []) => ({ kind, x, y, width: 0, height: 0, text: String(text), data });
const length = (number) => String(number).length;
const times = P.SIGNS.overhang;

function broken(line, letters) {
  const parts = [""];
  for (const word of line.split(" ")) {
    const last = parts.at(-1);
    if (last && last.length + 1 + word.length > letters) parts.push(word);
    else parts[parts.length - 1] += (last ? " " : "") + word;
  }
  return parts;
}

class Picture {
  constructor(title, axes, divided, picked = null) {
    Object.assign(this, { title, axes, divided, picked });
    this.marks = [];
    this.y = P.MARGIN;
  }

  drawing() {
    this.texts("heading", [this.title]);
    this.texts("caption", this.axes.map((_, i) => this.caption(i)));
    this.y += 6;
    if (this.axes.length === P.IMAGE_AXES) this.image();
    else this.strips();
    this.legend();
    const height = this.y + P.MARGIN;
    return { marks: [mark("card", 0, 0, P.WIDTH, height), ...this.marks], height };
  }

  texts(kind, lines) {
    for (const part of lines.flatMap((line) => broken(line, P.LETTERS[kind]))) {
      this.marks.push(words(kind, P.MARGIN, this.y + 11, part));
      this.y += P.LINE;
    }
  }

  caption(i) {
    const axis = this.axes[i];
    const way = this.axes.length === P.IMAGE_AXES ? [" (down)", " (across)"][i] : "";
    const gaps = axis.dilation > 1 ? `dilation ${axis.dilation}, ` : "";
    return `axis ${i + 2}${way}: kernel ${axis.kernel}, stride ${axis.stride}, ${gaps}` +
           `pads ${axis.pads[0]}+${axis.pads[1]}, ${axis.size} → ${axis.out}`;
  }

  counted(axis, index) {
    return this.divided ? axis.window(index).divisor : axis.window(index).taps;
  }

  strips() {
    const several = this.axes.length > 1;
    const notes = this.axes.flatMap((axis, i) => this.strip(i + 2, axis, several));
    if (this.divided && several) {
      notes.push(`A sum is divided by the product of these numbers: ${this.product(() => 0)} in the first window, ` +
                 `${this.product((axis) => axis.out - 1)} in the last.`);
    }
    this.texts("caption", notes);
  }

  product(index) {
    const numbers = this.axes.map((axis) => axis.window(index(axis)).divisor);
    return `${numbers.join(` ${times} `)} = ${product(numbers)}`;
  }

  image() {
    const pair = this.axes;
    const { y } = this;
    const left = P.DIGIT * length(pair[0].size - 1) + 6;
    const room = floorDiv(P.WIDTH - 2 * P.MARGIN - left, P.CELL);
    const cuts = [cutOf(pair[0], P.MOST_CELLS), cutOf(pair[1], Math.min(P.MOST_CELLS, room))];
    const ends = pair.map((axis) => Cut.of(0, axis.out, P.MOST_RESULTS).numbers.map((i) => this.counted(axis, i)));
    const wide = Math.max(...ends[0].flatMap((a) => ends[1].map((b) => length(a * b))));
    const cell = Math.max(P.CELL, P.DIGIT * wide + 4);
    const margin = 6 + P.DIGIT * Math.max(...ends[0].map(length));
    const columns = Math.max(1, Math.min(P.MOST_RESULTS, floorDiv(P.WIDTH - 2 * P.MARGIN - margin, cell)));
    const results = [Cut.of(0, pair[0].out, P.MOST_RESULTS), Cut.of(0, pair[1].out, columns)];
    const boxes = chosen(pair, cuts, results, this.picked);
    this.padded(cuts, boxes, P.MARGIN + left, y);
    let bottom = y + 2 * P.LINE + cuts[0].cells * P.CELL;
    let [right, top] = [P.MARGIN + Math.max(left + cuts[1].cells * P.CELL, P.CAPTION) + 18, y];
    if (right + margin + Math.max(results[1].cells * cell, P.DIGIT * 13) > P.WIDTH - P.MARGIN) {
      [right, top] = [P.MARGIN, bottom + 10];
    }
    this.map(results, boxes, cell, right, margin, top);
    bottom = Math.max(bottom, top + 2 * P.LINE + results[0].cells * P.CELL);
    this.y = bottom + 6;
    this.texts("caption", pair.flatMap((axis, i) => leftOut(i + 2, cuts[i], extent(axis), results[i])));
  }

  map([rows, columns], boxes, cell, left, margin, top) {
    const { marks, axes: pair } = this;
    marks.push(words("caption", left, top + 11, this.divided ? "divisors" : "elements in windows"));
    const x = left + margin;
    const y = top + 2 * P.LINE;
    for (const j of columns.numbers) {
      marks.push(words("digit", x + (columns.left(j) + 0.5) * cell, y - 4, this.counted(pair[1], j),
                       [["axis", 1], ["factor", j]]));
    }
    for (const i of rows.numbers) {
      marks.push(words("index", x - 4, y + rows.left(i) * P.CELL + 14, this.counted(pair[0], i),
                       [["axis", 0], ["factor", i]]));
    }
    for (const i of rows.numbers) {
      for (const j of columns.numbers) {
        const place = [x + columns.left(j) * cell, y + rows.left(i) * P.CELL];
        marks.push(mark("result", ...place, cell, P.CELL, [["at", `${i},${j}`]]));
        marks.push(words("digit", place[0] + cell / 2, place[1] + 14, this.counted(pair[0], i) * this.counted(pair[1], j),
                         [["result", `${i},${j}`]]));
      }
    }
    for (const i of columns.missing ? rows.numbers : []) {
      marks.push(words("digit", x + (columns.head + 0.5) * cell, y + rows.left(i) * P.CELL + 14, "…"));
    }
    for (const j of rows.missing ? columns.numbers : []) {
      marks.push(words("digit", x + (columns.left(j) + 0.5) * cell, y + (rows.head + 0.5) * P.CELL + 4, "…"));
    }
    boxes.forEach(([i, j], k) => {
      if (rows.has(i) && columns.has(j)) {
        marks.push(mark(P.BOXES[k], x + columns.left(j) * cell + 2, y + rows.left(i) * P.CELL + 2, cell - 4, P.CELL - 4,
                        [["of", `${i},${j}`]]));
      }
    });
  }

  padded(cuts, boxes, x, top) {
    const { marks, axes: pair } = this;
    const [rows, columns] = cuts;
    marks.push(words("caption", P.MARGIN, top + 11, "X with its padding"));
    const y = top + 2 * P.LINE;
    const kinds = pair.map((axis, i) => new Map(cuts[i].numbers.map((place) => [place, cellOf(axis, place)])));
    const ends = pair.map((axis, i) => [...new Set([0, axis.size - 1].filter((place) => cuts[i].has(place)))]);
    for (const place of ends[1]) {
      const across = Math.min(x + (columns.left(place) + 0.5) * P.CELL,
                              P.WIDTH - P.MARGIN - P.DIGIT * length(place) / 2);
      marks.push(words("digit", across, y - 4, place, [["column", place]]));
    }
    for (const place of ends[0]) {
      marks.push(words("index", x - 4, y + rows.left(place) * P.CELL + 14, place, [["row", place]]));
    }
    const cells = [];
    P.CELLS.forEach((kind, rank) => {
      for (const row of rows.numbers) {
        for (const column of columns.numbers) {
          if (Math.max(P.CELLS.indexOf(kinds[0].get(row)), P.CELLS.indexOf(kinds[1].get(column))) === rank) {
            cells.push(mark(kind, x + columns.left(column) * P.CELL, y + rows.left(row) * P.CELL, P.CELL, P.CELL,
                            [["cell", `${row},${column}`]]));
          }
        }
      }
    });
    marks.push(...cells);
    for (const { kind, x: across, y: down } of cells) {
      if (kind in P.SIGNS) marks.push(words("digit", across + P.CELL / 2, down + 14, P.SIGNS[kind]));
    }
    for (const row of columns.missing ? rows.numbers : []) {
      marks.push(words("digit", x + (columns.head - columns.low + 0.5) * P.CELL, y + rows.left(row) * P.CELL + 14, "…"));
    }
    for (const column of rows.missing ? columns.numbers : []) {
      marks.push(words("digit", x + (columns.left(column) + 0.5) * P.CELL, y + (rows.head - rows.low + 0.5) * P.CELL + 4,
                       "…"));
    }
    boxes.forEach((window, k) => this.box(cuts, window, k, x, y));
  }

  box(cuts, window, k, x, y) {
    const pair = this.axes;
    const [rows, columns] = cuts;
    const begins = pair.map((axis, i) => window[i] * axis.stride - axis.pads[0]);
    const lasts = pair.map((axis, i) => begins[i] + axis.span - 1);
    const inset = 2 + 2 * k;
    const left = x + columns.left(begins[1]) * P.CELL + inset;
    const top = y + rows.left(begins[0]) * P.CELL + inset;
    const right = x + columns.right(lasts[1]) * P.CELL - inset;
    const bottom = y + rows.right(lasts[0]) * P.CELL - inset;
    this.marks.push(mark(P.BOXES[k], left, top, Math.max(1, right - left), Math.max(1, bottom - top), [
      ["window", window.join()], ["begin", begins.join()], ["end", lasts.map((last) => last + 1).join()]]));
    if (!pair.some((axis) => axis.dilation > 1 && axis.kernel > 1)) return;
    const taps = pair.map((axis, i) => cuts[i].numbers.filter(
      (place) => begins[i] <= place && place <= lasts[i] && (place - begins[i]) % axis.dilation === 0));
    for (const row of taps[0]) {
      for (const column of taps[1]) {
        this.marks.push(mark(`${P.BOXES[k]}-tap`, x + columns.left(column) * P.CELL + P.DOTS[k][0],
                             y + rows.left(row) * P.CELL + P.DOTS[k][1], 4, 4, [["tap", `${row},${column}`]]));
      }
    }
  }

  strip(number, axis, several) {
    const { marks } = this;
    const left = P.MARGIN + P.DIGIT * length(Math.max(axis.out - 1, 0)) + 6;
    const most = Math.max(axis.window(0).divisor, axis.window(axis.out - 1).divisor,
                          Math.min(axis.kernel, ceilDiv(axis.size, axis.dilation)));
    const right = this.divided ? P.DIGIT * (3 + length(most)) : 0;
    const cut = cutOf(axis, Math.max(3, Math.min(P.MOST_CELLS, floorDiv(P.WIDTH - P.MARGIN - left - right, P.STRIP))));
    if (several) {
      marks.push(words("caption", P.MARGIN, this.y + 11, `axis ${number}`));
      this.y += P.LINE;
    }
    const cells = cut.numbers.map((place) => mark(cellOf(axis, place), left + cut.left(place) * P.STRIP, this.y, P.STRIP,
                                                  P.STRIP, [["axis", number], ["cell", place]]));
    marks.push(...cells);
    for (const { kind, x } of cells) {
      if (kind in P.SIGNS) marks.push(words("digit", x + P.STRIP / 2, this.y + 12, P.SIGNS[kind]));
    }
    if (cut.missing) marks.push(words("digit", left + (cut.head - cut.low + 0.5) * P.STRIP, this.y + 12, "…"));
    this.y += P.STRIP + 2;
    let shown = 0;
    for (const index of [...drawnWindows(axis, cut), axis.out]) {
      if (shown < index) {
        marks.push(words("factor", left, this.y + 12, `… ${index - shown} more window${index - shown > 1 ? "s" : ""}`));
        this.y += P.STRIP;
      }
      if (index === axis.out) break;
      shown = index + 1;
      this.row(number, axis, index, cut, left);
      if (this.divided) {
        marks.push(words("factor", left + cut.cells * P.STRIP + 6, this.y + 12, `÷ ${axis.window(index).divisor}`,
                         [["axis", number], ["divisor", index]]));
      }
      this.y += P.STRIP;
    }
    this.y += 6;
    return leftOut(number, cut, extent(axis));
  }

  row(number, axis, index, cut, x) {
    const begin = index * axis.stride - axis.pads[0];
    const last = begin + axis.span - 1;
    const name = [["axis", number], ["window", index]];
    this.marks.push(words("index", x - 5, this.y + 12, index));
    this.marks.push(mark("window", x + cut.left(begin) * P.STRIP + 1, this.y + 2,
                         (cut.right(last) - cut.left(begin)) * P.STRIP - 2, P.STRIP - 4,
                         [...name, ["begin", begin], ["end", last + 1]]));
    for (const place of cut.numbers) {
      if (begin <= place && place <= last && (place - begin) % axis.dilation === 0) {
        this.marks.push(mark(0 <= place && place < axis.size ? "tap" : "outside", x + cut.left(place) * P.STRIP + 4,
                             this.y + 4, 8, 8, [...name, ["tap", place]]));
      }
    }
  }

  legend() {
    const kinds = new Set(this.marks.map(({ kind }) => kind));
    const names = this.divided ? P.NAMES : P.PLAIN_NAMES;
    const entries = P.CELLS.filter((kind) => kinds.has(kind)).map((kind) => [kind, names[kind], P.SIGNS[kind] ?? ""]);
    for (const { kind, data } of this.marks.filter((each) => P.BOXES.includes(each.kind))) {
      for (const [name, value] of data) {
        if (name === "window") entries.push([kind, `window [${value.replace(",", ", ")}]`, ""]);
      }
    }
    if (kinds.has("tap") || kinds.has("first-tap")) entries.push(["tap", "tap of a window", ""]);
    if (kinds.has("outside")) entries.push(["outside", "tap outside X", ""]);
    let x = P.MARGIN;
    let y = this.y + 8;
    for (const [kind, name, sign] of entries) {
      const wide = 20 + 6.5 * name.length + 8;
      if (x + wide > P.WIDTH - P.MARGIN && x > P.MARGIN) [x, y] = [P.MARGIN, y + 18];
      this.marks.push(P.STYLES[kind].shape === "circle" ? mark(kind, x + 3, y + 3, 8, 8) : mark(kind, x, y, 14, 14));
      if (sign) this.marks.push(words("digit", x + 7, y + 11, sign));
      this.marks.push(words("caption", x + 20, y + 11, name));
      x += wide;
    }
    this.y = y + 18;
  }
}

function extent(axis) {
  const last = (axis.out - 1) * axis.stride - axis.pads[0] + axis.span;
  return [Math.min(0, -axis.pads[0]), Math.max(axis.size + axis.pads[1], last)];
}

function cutOf(axis, most) {
  const cut = Cut.of(...extent(axis), most);
  const hidden = axis.size > 0 && cut.head <= 0 && axis.size <= cut.tail;
  return hidden ? Cut.around(extent(axis), [0, axis.size], most) : cut;
}

function isRead(axis, place) {
  const distance = place + axis.pads[0];
  const low = Math.max(0, ceilDiv(distance - axis.span + 1, axis.stride));
  const high = Math.min(axis.out - 1, floorDiv(distance, axis.stride), low + axis.dilation - 1);
  return range(low, high + 1).some((index) => (distance - index * axis.stride) % axis.dilation === 0);
}

function cellOf(axis, place) {
  if (0 <= place && place < axis.size) return isRead(axis, place) ? "element" : "unread";
  if (place >= axis.size + axis.pads[1]) return "overhang";
  return axis.countsPads ? "counted" : "padding";
}

function leftOut(number, cut, whole, result = null) {
  const notes = [];
  const total = whole[1] - whole[0];
  const missing = total - (cut.high - cut.low - cut.missing);
  if (missing) notes.push(`Axis ${number}: ${missing} of ${total} positions are not drawn${cut.missing ? " (…)" : ""}.`);
  if (result?.missing) notes.push(`Axis ${number}: ${result.missing} of ${result.high} windows are not shown.`);
  return notes;
}

// The windows that are drawn as boxes. On this page, the reader may pick the one in the middle.
function chosen(pair, cuts, results, picked) {
  const inner = picked ?? pair.map((axis, i) => {
    const index = Math.max(axis.begin, 1);
    const begin = index * axis.stride - axis.pads[0];
    const fits = index < Math.min(axis.end, axis.out - 1) && results[i].has(index);
    return fits && cuts[i].has(begin) && cuts[i].has(begin + axis.span - 1) ? index : 0;
  });
  const windows = [[0, 0], inner, pair.map((axis) => axis.out - 1)];
  return windows.filter((window, k) => windows.findIndex((other) => other.join() === window.join()) === k);
}

function drawnWindows(axis, cut) {
  const reaching = (place) => Math.max(0, floorDiv(place + axis.pads[0] - axis.span, axis.stride) + 1);
  const behind = (place) => Math.min(axis.out, ceilDiv(place + axis.pads[0], axis.stride));
  const [begin, end, half] = [reaching(cut.low), behind(cut.high), floorDiv(P.MOST_ROWS, 2)];
  const last = Math.max(begin, Math.min(behind(cut.head), begin + half));
  return [...range(begin, last), ...range(Math.max(cut.missing ? reaching(cut.tail) : begin, end - half, last), end)];
}

const escaped = (text) => text.replace(/[&<>"']/g, (letter) => (
  { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#x27;" })[letter]);

function attributesOf(style) {
  const [fill, stroke] = [style.fill, style.stroke].map((name) => (name ? P.COLOURS[name][0] : "none"));
  return ` fill="${fill}"` + (style.stroke ? ` stroke="${stroke}"` : "") +
         (style.weight > 1 ? ` stroke-width="${style.weight}"` : "") +
         (style.dash ? ` stroke-dasharray="${style.dash}"` : "") +
         (style.shape === "text" ? ` font-size="${style.size}"` : "") +
         (style.anchor === "start" ? "" : ` text-anchor="${style.anchor}"`) + (style.bold ? ' font-weight="bold"' : "");
}

function darkRules() {
  const rules = Object.entries(P.STYLES).map(([kind, style]) => {
    const colours = ["fill", "stroke"].filter((name) => style[name]).map((name) => `${name}:${P.COLOURS[style[name]][1]}`);
    return `.onnxpool .${kind}{${colours.join(";")}}`;
  });
  return `@media (prefers-color-scheme:dark){${rules.join("")}}`;
}

function drawn({ kind, x, y, width, height, text, data }) {
  const facts = data.map(([name, value]) => ` data-${name}="${value}"`).join("");
  const { shape } = P.STYLES[kind];
  if (shape === "rect") return `<rect x="${x}" y="${y}" width="${width}" height="${height}"${facts}/>`;
  if (shape === "circle") {
    const radius = width / 2;
    return `<circle cx="${x + radius}" cy="${y + radius}" r="${radius}"${facts}/>`;
  }
  return `<text x="${x}" y="${y}"${facts}>${escaped(text)}</text>`;
}

function svg(picture) {
  const { marks, height } = picture.drawing();
  const title = escaped(picture.title);
  const groups = [];
  for (const each of marks) {
    if (groups.at(-1)?.kind === each.kind) groups.at(-1).parts.push(drawn(each));
    else groups.push({ kind: each.kind, parts: [drawn(each)] });
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="onnxpool" viewBox="0 0 ${P.WIDTH} ${height}" width="${P.WIDTH}" ` +
    `height="${height}" style="max-width:100%;height:auto" font-family="sans-serif" role="img" aria-label="${title}">`,
    `<title>${title}</title>`, `<style>${darkRules()}</style>`,
    ...groups.map(({ kind, parts }) => `<g class="${kind}"${attributesOf(P.STYLES[kind])}>${parts.join("")}</g>`),
    "</svg>",
  ].join("\n");
}
