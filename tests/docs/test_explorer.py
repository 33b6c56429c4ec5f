"""The window explorer, docs/explorer, gives the library's answers, in Chromium and in Node."""

import json
import math
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("ml_dtypes")

from chromium import Page, browser, program
from looks import faults
from onnxpool_conformance import oracle
from peers import Example, agrees, torch_runs

import onnxpool
from onnxpool import pictures
from onnxpool.onnx.cases import Case
from tools import export_explorer

FOLDER = export_explorer.FILE.parent
SCRIPTS = ("facts.js", "windows.js", "picture.js", "differences.js", "answer.js")
FEW, MANY = 120, 2000
NEWEST = 28
Settings = dict[str, Any]


def settings_of(seed: int, count: int) -> Iterator[Settings]:
    """Random settings. Some are refused, because of the version, of sizes that do not fit, or of a number."""
    draw = random.Random(seed)
    for _ in range(count):
        rank = draw.choice((1, 2, 2, 2, 3))
        largest = draw.choice((6, 12, 40, 300) if rank < 3 else (6, 12, 40))

        def each(low: int, high: int, of: int = rank) -> list[int]:
            return [draw.randint(low, high) for _ in range(of)]

        mode = draw.choice(("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
        padded = draw.random() < (0.6 if mode == "NOTSET" else 0.05)
        settings: Settings = {
            "operator": draw.choice(("AveragePool", "AveragePool", "MaxPool", "LpPool")),
            "opset": draw.choice((draw.randint(1, NEWEST), NEWEST, NEWEST)), "sizes": each(1, largest),
            "kernel": each(1, draw.choice((1, 3, 5, 9))), "strides": each(1, draw.choice((1, 2, 6))),
            "dilations": each(1, draw.choice((1, 1, 3))), "auto_pad": mode,
            "pads": each(0, draw.choice((1, 2, 6)), 2 * rank) if padded else [0] * 2 * rank,
            "ceil_mode": draw.randint(0, 1), "count_include_pad": draw.randint(0, 1), "window": None}
        if draw.random() < 0.03:
            name, value = draw.choice((("opset", 0), ("opset", 99), ("sizes", 0), ("kernel", 0), ("strides", -1),
                                       ("pads", -2), ("sizes", -5), ("dilations", 0)))
            settings[name] = value if name == "opset" else [value, *settings[name][1:]]
        yield settings


def attributes_of(settings: Settings) -> dict[str, Any]:
    """The attributes of the node that differ from their defaults."""
    given = {"kernel_shape": settings["kernel"], "strides": settings["strides"], "pads": settings["pads"],
             "dilations": settings["dilations"], "auto_pad": settings["auto_pad"], "ceil_mode": settings["ceil_mode"]}
    if settings["operator"] == "AveragePool":
        given["count_include_pad"] = settings["count_include_pad"]
    plain = {"strides": 1, "pads": 0, "dilations": 1, "auto_pad": "NOTSET", "ceil_mode": 0, "count_include_pad": 0}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
            if name == "kernel_shape" or set(value if isinstance(value, list) else [value]) != {plain[name]}}


def operator_of(settings: Settings) -> onnxpool.Operator:
    """The operator of some settings."""
    cls: type[onnxpool.Operator] = getattr(onnxpool, settings["operator"])
    return cls(**attributes_of(settings), opset=settings["opset"])


def case_of(settings: Settings) -> Case:
    """The query for the table of disagreements."""
    operator, shape = operator_of(settings), (1, 1, *settings["sizes"])
    plan = operator.plan(shape, "float32")
    return Case(operator, (True,), "float32", shape, plan.axes, plan.output_shape)


def rows_of(settings: Settings) -> list[str]:
    """The names of the rows that hold."""
    case = case_of(settings)
    return [row.name for row in export_explorer.ROWS if settings["operator"] in row.operators and row.holds(case)]


def check(settings: Settings, answer: dict[str, Any]) -> bool:
    """Compare an answer of the page with the library. Return whether the settings are allowed."""
    shape = (1, 1, *settings["sizes"])
    try:
        operator = operator_of(settings)
        plan = operator.plan(shape, "float32")
        refused = None
    except onnxpool.PoolError as error:
        refused = str(error)
    assert answer.get("error") == refused
    if refused is not None:
        assert answer.keys() == {"error"}
        return False
    facts = plan.explain().to_dict()
    del facts["form"], facts["route"]
    assert answer["facts"] == facts
    assert answer["svg"] == plan.explain().svg()
    assert [row["name"] for row in answer["rows"]] == rows_of(settings)
    names: dict[str, Any] = {"x": np.zeros(shape, np.float32)}
    exec(answer["call"], names)
    assert names["op"] == operator
    assert names["y"].shape == plan.output_shape
    exec(answer["node"], names)
    assert onnxpool.from_node(names["node"], {"": settings["opset"]}) == operator
    check_formulas(settings, answer, facts["axes"])
    check_results(answer, plan)
    return True


def value_of(formula: str) -> int:
    """The value of one side of an equation."""
    python = re.sub(r"⌊(.*)⌋", r"math.floor(\1)", re.sub(r"⌈(.*)⌉", r"math.ceil(\1)", formula))
    value = eval(python, {"math": math, "max": max})
    assert value == int(value)
    return int(value)


def check_formulas(settings: Settings, answer: dict[str, Any], axes: list[dict[str, Any]]) -> None:
    """Both sides of each equation are equal, and the numbers agree with the plan."""
    for shown, axis in zip(answer["formulas"], axes, strict=True):
        assert shown["axis"] == axis["axis"]
        found = {}
        for line in shown["lines"]:
            name, _, rest = line.partition(" = ")
            if name == "padding":
                left, _, right = rest.partition(" = ")
                total, _, parts = right.partition(", which is ")
                assert value_of(left) == int(total) == sum(axis["pads"])
                assert [int(part) for part in parts.split(" + ")] == axis["pads"]
            elif rest:
                sides = [value_of(side) for side in rest.split(" = ")]
                assert len(set(sides)) == 1
                found[name.rpartition(": ")[2]] = sides[0]
            else:
                assert line == f"window i begins at element i * {axis['stride']} - {axis['pads'][0]}"
        span = (axis["kernel"] - 1) * axis["dilation"] + 1
        assert found == {"span": span, "windows": axis["out"]}


def check_results(answer: dict[str, Any], plan: Any) -> None:
    """The first and the last result have the plan's elements and divisors."""
    for line in (answer["results"][0], answer["results"][-1]):
        index = [int(part) for part in re.findall(r"\[(.*?)\]", line)[0].split(", ")][2:]
        windows = [axis.window(i) for axis, i in zip(plan.axes, index, strict=True)]
        taps, divisor = (prod(getattr(window, name) for window in windows) for name in ("taps", "divisor"))
        found = re.search(r"of (\d+) elements?", line)
        assert (int(found[1]) if found else 0) == taps
        if divided := re.search(r" / (\d+)", line):
            assert int(divided[1]) == divisor


# Engines


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """The page in Chromium."""
    if program() is None:
        pytest.skip("Chromium is not installed")
    with browser() as opened:
        opened.look(1200)
        opened.open((FOLDER / "index.html").as_uri())
        yield opened
        assert opened.errors == []


def in_node(settings: list[Settings]) -> list[dict[str, Any]]:
    """The answers of the page's scripts in Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    source = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    source += ("\nconst asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
               "\nprocess.stdout.write(JSON.stringify(asked.map(answer)));")
    done = subprocess.run([node, "-e", source], input=json.dumps(settings), capture_output=True, text=True, check=True,
                          timeout=600)
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


# What the page shows after it followed a link, besides the answer.
SHOWN = """(all => all.map(one => {
    load(link(one));
    const shown = answer(settings);
    const results = Object.fromEntries([...document.querySelectorAll("#picture [data-result]")].map(
        each => [each.dataset.result, Number(each.textContent)]));
    return [shown, settingsOf(link(one)), byId("error").hidden ? null : byId("error").textContent,
            byId("answer").hidden ? null : [document.querySelector("#picture title").textContent, results,
                                            byId("call").textContent, byId("node").textContent,
                                            document.querySelectorAll("#differences li, #unusual li").length],
            Object.fromEntries(["operator", "opset", "auto_pad"].map(name => [name, byId(name).value])),
            [...document.querySelectorAll("#numbers input[type=number]")].map(each => Number(each.value))];
}))"""


def in_browser(page: Page, settings: list[Settings]) -> list[dict[str, Any]]:
    """The answers of the page, which also shows them."""
    answers = []
    for begin in range(0, len(settings), 100):
        some = settings[begin:begin + 100]
        for one, row in zip(some, page.run(f"{SHOWN}({json.dumps(some)})"), strict=True):
            answer, read, error, shown, form, numbers = row
            assert read == one
            assert error == answer.get("error")
            assert form == {name: str(one[name]) for name in ("operator", "opset", "auto_pad")}
            rank = len(one["sizes"])
            pads = one["pads"][:rank], one["pads"][rank:]
            assert numbers == [*one["sizes"], *one["kernel"], *one["strides"], *one["dilations"], *pads[0], *pads[1]]
            if error is None:
                title = f"{answer['facts']['operator']}, float32 {tuple(answer['facts']['shape'])} -> "
                assert shown[0] == title + str(tuple(answer["facts"]["output_shape"]))
                assert shown[2:] == [answer["call"], answer["node"], len(answer["rows"])]
                check_map(one, shown[1])
            answers.append(answer)
    return answers


def check_map(settings: Settings, shown: dict[str, int]) -> None:
    """The page's table has the oracle's numbers."""
    if len(settings["sizes"]) != 2:
        assert shown == {}
        return
    pads = zip(settings["pads"][:2], settings["pads"][2:], strict=True)
    axes = [oracle.axis_windows(*row, settings["auto_pad"], settings["ceil_mode"]) for row in zip(
        settings["sizes"], settings["kernel"], settings["strides"], settings["dilations"], pads, strict=True)]
    counts = settings["operator"] == "AveragePool" and settings["count_include_pad"]
    for window, number in shown.items():
        places = tuple(map(int, window.split(",")))
        assert number == prod(axis.counted[i] if counts else len(axis.taps[i])
                              for axis, i in zip(axes, places, strict=True))
    assert "0,0" in shown


def compare(ask: Callable[[list[Settings]], list[dict[str, Any]]], seed: int, count: int) -> None:
    """Compare the answers to random settings."""
    asked = list(settings_of(seed, count))
    allowed = [check(settings, answer) for settings, answer in zip(asked, ask(asked), strict=True)]
    assert count / 3 < sum(allowed) < count


def test_in_chromium(page: Page) -> None:
    """The page answers as the library does."""
    compare(lambda asked: in_browser(page, asked), 1, FEW)


def test_in_node() -> None:
    """The page's scripts answer as the library does in Node."""
    compare(in_node, 2, FEW)


@pytest.mark.slow
def test_many_in_chromium(page: Page) -> None:
    """The page answers 2,000 random settings as the library does."""
    compare(lambda asked: in_browser(page, asked), 3, MANY)


@pytest.mark.slow
def test_many_in_node() -> None:
    """The scripts answer 2,000 other settings as the library does."""
    compare(in_node, 4, MANY)


# The page


def test_a_reader_changes_settings(page: Page) -> None:
    """Fields, sliders, choices and clicks change the picture and the link. Mistakes are explained."""
    page.run("load('#operator=AveragePool&sizes=5,5&kernel=3,3&strides=2,2&pads=1,1,1,1')")
    type_in = """((label, value) => {
        const field = document.querySelector(`[aria-label="${label}"]`) ?? byId(label);
        field.value = value;
        field.dispatchEvent(new Event("input", {bubbles: true}));
        return byId("error").textContent;
    })"""
    number = "document.querySelector('#picture [data-result=\"0,0\"]').textContent"
    assert page.run(number) == "4"
    assert page.run(f"{type_in}('size, axis 3', 9)") == ""
    assert page.run("document.querySelectorAll('#picture [data-result]').length") == 15
    assert page.run("document.querySelector('[aria-label=\"size, axis 3, slider\"]').value") == "9"
    assert page.run(f"{type_in}('size, axis 3, slider', 7)") == ""
    assert page.run("document.querySelector('[aria-label=\"size, axis 3\"]').value") == "7"
    page.run("byId('count_include_pad').click()")
    assert page.run(number) == "9"
    cell = "document.querySelector('#picture [data-result=\"1,2\"]')"
    page.run(f"{cell}.dispatchEvent(new Event('click', {{bubbles: true}}))")
    assert page.run("[...document.querySelectorAll('#picture [data-window]')].map(each => each.dataset.window)") == [
        "0,0", "1,2", "2,3"]
    page.run("new Promise(after => setTimeout(after, 400))")
    assert page.run("location.hash === link(settings) && location.hash.includes('window=1,2')")
    assert "sizes=5,7" in page.run("location.hash")
    assert page.run("byId('formula').textContent.includes('y[0, 0, 1, 2]')")
    assert page.run(f"{type_in}('kernel_shape, axis 2', 9)").startswith("AveragePool-22: kernel_shape[0]=9 ")
    heights = "['error', 'answer'].map(id => byId(id).offsetHeight > 0)"
    assert page.run(heights) == [True, False]
    assert page.run(f"{type_in}('kernel_shape, axis 2', '')") == (
        "AveragePool-22: kernel_shape[0] must be an integer; pass one of at least 1")
    assert "this page computes with numbers up to" in page.run(f"{type_in}('kernel_shape, axis 2', 1e9)")
    assert page.run(f"{type_in}('kernel_shape, axis 2', 2)") == ""
    assert page.run(heights) == [False, True]
    for rank in (3, 1, 2):
        page.run(f"byId('rank').value = {rank}; byId('rank').dispatchEvent(new Event('change'))")
        assert page.run("document.querySelectorAll('#numbers input[type=number]').length") == 6 * rank
        assert page.run("byId('error').hidden")
    assert page.run(f"{type_in}('opset', 6)").endswith("introduced in AveragePool-7; leave it out or pass opset >= 7")
    page.run("byId('operator').value = 'MaxPool'; byId('operator').dispatchEvent(new Event('change'))")
    assert page.run("[byId('error').hidden, byId('count_include_pad').disabled]") == [True, True]


@pytest.mark.parametrize("mistake", [
    "", "#", "#x", "#sizes=1,2,3,4,5", "#sizes=a&opset=b&operator=__proto__", "#kernel=3", "#sizes=5&kernel=3&pads=1,1",
    "#window=7,7,7&auto_pad=no&ceil_mode=2", "#auto_pad=SAME_UPPER", "#operator=%E0%A4%A"])
def test_links_that_are_not_complete(page: Page, mistake: str) -> None:
    """Settings that a link lacks have their default values."""
    page.run(f"load({json.dumps(mistake)})")
    assert page.run("[byId('error').hidden, byId('picture').querySelectorAll('svg').length]") == [True, 1]


def test_questions_have_answers(page: Page) -> None:
    """Each link of the page shows a picture."""
    links = re.findall(r'href="(#[^"]*)"', (FOLDER / "index.html").read_text(encoding="utf-8"))
    assert len(links) == 6
    for link in links:
        page.run(f"load({json.dumps(link.replace('&amp;', '&'))})")
        assert page.run("byId('error').hidden"), link


def test_links_of_other_pages_show_what_they_name(page: Page) -> None:
    """The page shows the settings that a link names. Settings that the link does not name have no effect."""
    plain = {"dilations": {1}, "pads": {0}, "auto_pad": "NOTSET", "ceil_mode": 0, "count_include_pad": 0}
    pages = [text.read_text(encoding="utf-8") for text in (FOLDER.parent / "concepts").glob("*.md")]
    links = [link for text in pages for link in re.findall(r"\(\.\./explorer/index\.html(#[^)]*)\)", text)]
    assert len(links) >= 6
    for link in links:
        shown = page.run(f"load({json.dumps(link)}); byId('error').hidden ? settings : null")
        given = dict(part.split("=") for part in link[1:].split("&"))
        for name, value in plain.items():
            if name not in given:
                assert (set(shown[name]) if isinstance(value, set) else shown[name]) == value, (link, name)
        for name, text in given.items():
            value = shown[name]
            assert ",".join(map(str, value if isinstance(value, list) else [value])) == text, (link, name)


@pytest.mark.parametrize("link", [
    "", "#sizes=300,300&kernel=99,99&strides=1,1&pads=9,9,9,9", "#sizes=5,5&kernel=99,99",
    "#sizes=9,9,9&kernel=3,3,3&strides=2,2,2&pads=1,1,1,1,1,1"])
@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_nothing_is_wider_than_the_screen(page: Page, width: int, link: str) -> None:
    """Nothing is wider than the screen, from telephones to desktops."""
    page.look(width)
    try:
        page.run(f"load({json.dumps(link)})")
        assert page.run("document.documentElement.scrollWidth") <= width
    finally:
        page.look(1200)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_easy_to_read(page: Page, dark: bool) -> None:
    """The page's text stands out, and its fields have names, whether or not there is an error."""
    page.look(390, dark)
    try:
        for link in ("", "#operator=MaxPool&sizes=5,5&kernel=9,9", "#sizes=9,9,9&kernel=3,3,3"):
            page.run(f"load({json.dumps(link)})")
            assert faults(page) == []
        page.run("load(''); byId('form').style.color = '#777777'; document.querySelector('h1').style.width = '500px';"
                 "document.querySelector('#numbers input').ariaLabel = ''")
        for kind in ("contrast ", "the page is 5", "beyond the screen: h1", "no name: <input"):
            assert any(fault.startswith(kind) for fault in faults(page)), kind
    finally:
        page.look(1200)
        page.open((FOLDER / "index.html").as_uri())


def test_numbers_are_reached_by_keyboard(page: Page) -> None:
    """Tab reaches one number of the table, and arrow keys reach the others. The page draws the number's window."""
    page.run("load('#operator=AveragePool&sizes=30,9&kernel=3,3&strides=1,2&pads=1,1,1,1')")
    stops = "[...document.querySelectorAll('#picture [tabindex=\"0\"]')].map(each => each.dataset.at)"
    assert page.run(stops) == ["0,0"]
    page.run("byId('auto_pad').focus()")
    page.run("document.querySelector('#picture [tabindex=\"0\"]').focus()")
    press = """(key => {
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
        return [document.activeElement.dataset.at, settings.window?.join(), document.activeElement.ariaLabel];
    })"""
    assert page.run(f"{press}('ArrowRight')") == ["0,1", "0,1", "window [0, 1]: 6"]
    for row in (1, 2, 3, 4, 26):  # the page leaves out the rows between
        assert page.run(f"{press}('ArrowDown')")[:2] == [f"{row},1"] * 2
    assert page.run(f"{press}('ArrowUp')")[0] == "4,1"
    for column in (0, 0):  # the border
        assert page.run(f"{press}('ArrowLeft')")[:2] == [f"4,{column}"] * 2
    assert page.run("document.querySelectorAll('#picture [data-window=\"4,0\"]').length") == 1
    assert page.run(stops) == ["4,0"]


# Its facts


def test_facts_are_current() -> None:
    """The committed file of facts equals the output of its script."""
    assert export_explorer.FILE.read_text(encoding="utf-8") == export_explorer.text()


def test_every_row_has_a_condition() -> None:
    """Each row has a condition in JavaScript, and there are no further conditions."""
    source = (FOLDER / "differences.js").read_text(encoding="utf-8")
    conditions = re.findall(r'^  "([\w-]+)": ', source, re.MULTILINE)
    assert sorted(conditions) == sorted(row.name for row in export_explorer.ROWS)


def test_the_page_has_the_colours_of_pictures() -> None:
    """The page and pictures take their colours from one table, for light and dark pages."""
    source = (FOLDER / "explorer.css").read_text(encoding="utf-8")
    names = {"paper": "paper", "ink": "ink", "line": "line", "soft": "unread", "accent": "first", "warn": "inner"}
    found = re.findall(r"--(\w+): (#\w{6})", source)
    assert found == [(name, pictures.COLOURS[colour][dark]) for dark in (0, 1) for name, colour in names.items()]
    assert len(re.findall(r"#[0-9a-f]{3,6}\b(?=;)", source)) == len(found)


def test_the_page_needs_nothing_else() -> None:
    """Everything that the page loads lies in the page's folder."""
    source = (FOLDER / "index.html").read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script src|link rel="stylesheet" href)="([^"]*)"', source)
    assert sorted(loaded) == sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".js", ".css"))
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert re.search(r"\bfetch\(|^ *import\b|\bimport\(|url\(|@import", text, re.MULTILINE) is None, path.name


LACKING = ("torch-uneven-maximum", "torch-uneven-counted", "torch-uneven-mean", "torch-large-pads", "torch-dilations",
           "torch-norm-pads", "torch-oversized")


def test_torch_does_what_the_rows_say() -> None:
    """torch's functions lack the features that the rows name, and agree on all other nodes, except for norms with
    ceil_mode."""
    pytest.importorskip("torch")
    seen = {True: 0, False: 0, None: 0}
    draw = np.random.default_rng(5)
    for settings in settings_of(5, 600):
        settings["opset"] = NEWEST
        try:
            rows, case = rows_of(settings), case_of(settings)
        except onnxpool.PoolError:
            continue
        x = draw.standard_normal((1, 1, *settings["sizes"]), np.float32)
        attributes = attributes_of(settings)
        if case.same:  # torch takes the pads that follow
            attributes = {**attributes, "auto_pad": "NOTSET", "ceil_mode": 0,
                          "pads": tuple(axis.pads[side] for side in (0, 1) for axis in case.axes)}
        example = Example(settings["operator"], NEWEST, (x,), attributes)
        result = agrees(example, torch_runs(example), (x,))
        expected = None if set(rows) & set(LACKING) else "torch-norm-ceil" not in rows
        if expected is False and result is True:
            continue  # dropping a window that overhangs may happen not to matter
        assert result == expected, (settings, rows)
        seen[result] += 1
    assert min(seen[True], seen[None]) > 20, seen


@pytest.mark.parametrize(("operator", "counts", "value", "name"), [
    ("MaxPool", 0, -np.inf, "maximum"), ("AveragePool", 1, 0, "counted"), ("AveragePool", 0, 0, "mean")])
def test_padding_the_input_first(operator: str, counts: int, value: float, name: str) -> None:
    """Following a row's advice gives onnxpool's results. Where there is no advice, padding first does not help."""
    torch = pytest.importorskip("torch")
    settings = {"operator": operator, "opset": NEWEST, "sizes": [6], "kernel": [3], "strides": [2], "dilations": [1],
                "auto_pad": "NOTSET", "pads": [1, 0], "ceil_mode": 0, "count_include_pad": counts, "window": None}
    assert {f"torch-uneven-{name}", f"keras-pads-{name}"} <= set(rows_of(settings))
    x = -np.arange(1, 7, dtype=np.float32).reshape(1, 1, 6)
    pool = torch.nn.functional.max_pool1d if operator == "MaxPool" else torch.nn.functional.avg_pool1d
    theirs = pool(torch.nn.functional.pad(torch.from_numpy(x), (1, 0), value=value), 3, 2).numpy()
    assert np.allclose(theirs, operator_of(settings)(x)) == (name != "mean")


def test_norms_of_torch_with_an_overhang() -> None:
    """The example of a row holds: torch returns a mean of one element times a kernel of two."""
    pytest.importorskip("torch")
    x = np.array([[[1, 2, 3, 4, 5]]], np.float32)
    example = Example("LpPool", NEWEST, (x,), {"kernel_shape": [2], "strides": [2], "ceil_mode": 1})
    assert agrees(example, torch_runs(example), (x,)) is False


def test_torch_counts_padding_by_default() -> None:
    """torch has another default of count_include_pad."""
    torch = pytest.importorskip("torch")
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    theirs = torch.nn.functional.avg_pool2d(torch.from_numpy(x), 3, 2, 1).numpy()
    assert np.array_equal(theirs, onnxpool.average_pool(x, 3, strides=2, pads=1, count_include_pad=1))
    assert not np.array_equal(theirs, onnxpool.average_pool(x, 3, strides=2, pads=1))


def test_keras_does_what_the_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras layers compute all nodes that no row excludes."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    pytest.importorskip("jax")
    keras = pytest.importorskip("keras")
    draw = np.random.default_rng(6)
    agreeing = differing = 0
    for settings in settings_of(6, 120):
        settings["opset"] = NEWEST
        try:
            rows, operator = rows_of(settings), operator_of(settings)
        except onnxpool.PoolError:
            continue
        rows = [name for name in rows if name.startswith("keras")]
        # A layer has neither pads nor dilations.
        if settings["operator"] == "LpPool" or any(name.startswith(("keras-pads", "keras-dilations")) for name in rows):
            continue
        x = draw.standard_normal((1, 1, *settings["sizes"]), np.float32)
        kind = {"AveragePool": "average", "MaxPool": "max"}[settings["operator"]]
        pool = getattr(keras.ops, f"{kind}_pool")
        theirs = np.asarray(pool(x, tuple(settings["kernel"]), tuple(settings["strides"]),
                                 "same" if settings["auto_pad"].startswith("SAME") else "valid", "channels_first"))
        ours = operator(x)
        same = ours.shape == theirs.shape and np.allclose(ours, theirs, 1e-5, 1e-6)
        assert same or rows, settings
        agreeing += same
        differing += not same
    assert agreeing > 10
    assert differing > 3  # settings with a row; others agree because of their sizes
