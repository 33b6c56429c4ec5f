// The form of this page, and what it shows.

"use strict";

const SLIDERS = { sizes: [1, 40], kernel: [1, 11], strides: [1, 8], dilations: [1, 5], pads: [0, 8] };
const LABELS = { sizes: "size", kernel: "kernel_shape", strides: "strides", dilations: "dilations" };
const byId = (id) => document.getElementById(id);
let settings = settingsOf(location.hash);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A number of the settings, as a field and a slider.
function control(name, i, label) {
  const [min, max] = SLIDERS[name];
  const value = settings[name][i];
  const change = (event) => {
    const number = event.target.value === "" ? NaN : Number(event.target.value);
    settings[name] = settings[name].map((old, k) => (k === i ? number : old));
    for (const other of event.target.parentElement.children) if (other !== event.target) other.value = event.target.value;
    show();
  };
  const field = element("input", { type: "number", min, max: LARGEST, value, ariaLabel: label, oninput: change });
  const slider = element("input", { type: "range", min, max, value, ariaLabel: `${label}, slider`, oninput: change });
  return element("td", {}, element("span", { className: "control" }, field, slider));
}

function buildTable() {
  const rank = settings.sizes.length;
  const axes = range(0, rank);
  const row = (heading, cells) => element("tr", {}, element("th", { scope: "row", textContent: heading }), ...cells);
  byId("numbers").replaceChildren(
    element("tr", {}, element("td"), ...axes.map(
      (i) => element("th", { scope: "col", textContent: `axis ${i + 2}` }))),
    ...Object.entries(LABELS).map(
      ([name, label]) => row(label, axes.map((i) => control(name, i, `${label}, axis ${i + 2}`)))),
    row("pads, begin", axes.map((i) => control("pads", i, `pads at the beginning, axis ${i + 2}`))),
    row("pads, end", axes.map((i) => control("pads", i + rank, `pads at the end, axis ${i + 2}`))));
}

function fillForm() {
  byId("operator").value = settings.operator;
  byId("rank").value = settings.sizes.length;
  byId("opset").value = byId("opset-slider").value = settings.opset;
  byId("auto_pad").value = settings.auto_pad;
  byId("ceil_mode").checked = Boolean(settings.ceil_mode);
  byId("count_include_pad").checked = Boolean(settings.count_include_pad);
  buildTable();
}

function list(rows) {
  return element("ul", {}, ...rows.map((row) => {
    const item = element("li", {}, `${row.text}. `);
    if (row.before) item.prepend(element("span", { className: "tag", textContent: `before ${row.before}` }), " ");
    if (row.values) item.append(element("span", { className: "tag", textContent: `only for ${row.values}` }));
    return item;
  }));
}

function showDifferences(rows) {
  const ordinary = rows.filter((row) => !row.values);
  const unusual = rows.filter((row) => row.values);
  const group = (some, empty) => FACTS.runtimes.flatMap((runtime) => {
    const own = some.filter((row) => row.runtime === runtime);
    if (!own.length && !empty) return [];
    return [element("h3", { textContent: runtime }),
            own.length ? list(own) : element("p", { textContent: empty })];
  });
  byId("differences").replaceChildren(...group(ordinary, "Nothing is known to differ."));
  byId("unusual").replaceChildren(...group(unusual, ""));
  byId("unusual-part").hidden = !unusual.length;
}

function show() {
  const shown = answer(settings);
  byId("count_include_pad").disabled = settings.operator !== "AveragePool";
  byId("error").textContent = shown.error ?? "";
  byId("error").hidden = !("error" in shown);
  byId("answer").hidden = "error" in shown;
  byId("hint").hidden = settings.sizes.length !== P.IMAGE_AXES;
  if (!("error" in shown)) {
    showPicture(shown.svg);
    byId("formula").replaceChildren(
      ...shown.formulas.flatMap(({ axis, lines }) => [
        element("h3", { textContent: `Axis ${axis}` }), ...lines.map((line) => element("p", { textContent: line }))]),
      element("h3", { textContent: "Results" }), ...shown.results.map((line) => element("p", { textContent: line })));
    byId("call").textContent = shown.call;
    byId("node").textContent = shown.node;
    showDifferences(shown.rows);
  }
  keepLink();
}

// The picture. The numbers of its table are buttons, of which one is reached by Tab and the others by arrow keys.
function showPicture(source) {
  const focused = byId("picture").contains(document.activeElement);
  byId("picture").innerHTML = source;
  const cells = [...byId("picture").querySelectorAll("[data-at]")];
  if (!cells.length) return;
  byId("picture").firstElementChild.setAttribute("role", "group");
  for (const cell of cells) {
    const number = byId("picture").querySelector(`[data-result="${cell.dataset.at}"]`).textContent;
    cell.setAttribute("role", "button");
    cell.setAttribute("aria-label", `window [${cell.dataset.at.replace(",", ", ")}]: ${number}`);
    cell.setAttribute("tabindex", -1);
  }
  const current = cells.find((cell) => cell.dataset.at === settings.window?.join()) ?? cells[0];
  current.setAttribute("tabindex", 0);
  if (focused) current.focus();
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Enter: [0, 0], " ": [0, 0] };

// The next number that is shown in the direction of an arrow key; cells between that are left out are passed.
function moved(at, [down, across]) {
  const shown = [...byId("picture").querySelectorAll("[data-at]")].map((cell) => cell.dataset.at.split(",").map(Number));
  const along = down ? 0 : 1;
  const line = shown.filter((place) => place[1 - along] === at[1 - along]).map((place) => place[along]);
  const next = line.filter((place) => Math.sign(place - at[along]) === down + across);
  if (!next.length) return at;
  return at.with(along, down + across > 0 ? Math.min(...next) : Math.max(...next));
}

// Browsers ignore or refuse many changes of the address within a second, so it changes only after the last one.
let pending = 0;
function keepLink() {
  clearTimeout(pending);
  pending = setTimeout(() => history.replaceState(null, "", link(settings)), 250);
}

function change(name, value) {
  settings = { ...settings, [name]: value };
  show();
}

function changeRank(rank) {
  const old = settings.sizes.length;
  const to = (values, sides, fill) => range(0, sides).flatMap(
    (side) => range(0, rank).map((i) => (i < old ? values[side * old + i] : fill)));
  settings = {
    ...settings, sizes: to(settings.sizes, 1, 5), kernel: to(settings.kernel, 1, 3), strides: to(settings.strides, 1, 1),
    dilations: to(settings.dilations, 1, 1), pads: to(settings.pads, 2, 0), window: null,
  };
  fillForm();
  show();
}

function load(hash) {
  settings = settingsOf(hash);
  fillForm();
  show();
}

function start() {
  byId("operator").replaceChildren(...Object.keys(FACTS.operators).map((name) => element("option", { textContent: name })));
  byId("auto_pad").replaceChildren(...MODES.map((name) => element("option", { textContent: name })));
  byId("opset").max = byId("opset-slider").max = FACTS.newest;
  byId("operator").onchange = (event) => change("operator", event.target.value);
  byId("auto_pad").onchange = (event) => change("auto_pad", event.target.value);
  byId("rank").onchange = (event) => changeRank(Number(event.target.value));
  for (const id of ["opset", "opset-slider"]) {
    byId(id).oninput = (event) => {
      byId("opset").value = byId("opset-slider").value = event.target.value;
      change("opset", event.target.value === "" ? NaN : Number(event.target.value));
    };
  }
  for (const name of ["ceil_mode", "count_include_pad"]) {
    byId(name).onchange = (event) => change(name, event.target.checked ? 1 : 0);
  }
  byId("picture").onclick = (event) => { // a result that is clicked is drawn as a box
    const { at, result: of } = event.target.dataset;
    if (at ?? of) change("window", (at ?? of).split(",").map(Number));
  };
  byId("picture").onkeydown = (event) => {
    if (!(event.key in STEPS) || !event.target.dataset.at) return;
    event.preventDefault();
    change("window", moved(event.target.dataset.at.split(",").map(Number), STEPS[event.key]));
  };
  for (const button of document.querySelectorAll("button[data-copies]")) {
    button.onclick = async () => {
      const source = button.dataset.copies;
      const text = source ? byId(source).textContent : new URL(link(settings), location.href).href;
      const said = await navigator.clipboard?.writeText(text).then(() => "Copied.", () => null) ?? "Not allowed here.";
      button.nextElementSibling.textContent = said;
    };
  }
  window.onhashchange = () => load(location.hash);
  fillForm();
  show();
}

start();
