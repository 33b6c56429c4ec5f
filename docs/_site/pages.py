"""Write the generated pages of the site into docs/generated: operators, the command line, disagreements, the API."""

import argparse
import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import api_texts as texts
import generate_api
import numpy as np

import onnxpool
from onnxpool import schemas
from onnxpool.commands import arguments
from onnxpool.onnx.cases import RUNTIMES
from onnxpool.onnx.disagreements import TABLE
from onnxpool.operators import __all__ as operators

DOCS = Path(__file__).parents[1]
DOMAINS = {"": "ONNX", "com.microsoft": "com.microsoft", schemas.OWN: "not part of ONNX"}

# The formula of each operator. Pages of operators with windows also have the formula for the number of windows.
FORMULAS = {
    "AveragePool": "y[i] = sum(x[i * stride - begin + t * dilation] for t in range(kernel)) / divisor[i]",
    "MaxPool": "y[i] = max(x[i * stride - begin + t * dilation] for t in range(kernel))",
    "MinPool": "y[i] = min(x[i * stride - begin + t * dilation] for t in range(kernel))",
    "LpPool": "y[i] = sum(abs(x[i * stride - begin + t * dilation]) ** p for t in range(kernel)) ** (1 / p)",
    "GlobalAveragePool": "y = sum(x[i] for i in range(size)) / size",
    "GlobalMaxPool": "y = max(x[i] for i in range(size))",
    "GlobalMinPool": "y = min(x[i] for i in range(size))",
    "GlobalLpPool": "y = sum(abs(x[i]) ** p for i in range(size)) ** (1 / p)",
    "QLinearAveragePool": "mean = sum((x[i * stride - begin + t] - x_zero_point) * x_scale for t in range(kernel)) "
                          "/ divisor[i]\ny[i] = clip(round(mean / y_scale) + y_zero_point)",
    "QLinearGlobalAveragePool": "mean = sum((x[i] - x_zero_point) * x_scale for i in range(size)) / size\n"
                                "y = clip(round(mean / y_scale) + y_zero_point)",
    "NhwcMaxPool": "y[i] = max(x[i * stride - begin + t * dilation] for t in range(kernel))",
    "MaxUnpool": "y[indices[i]] = x[i]      # all other elements are 0",
    "MaxRoiPool": "y[r, c, i, j] = max(x[b, c, rows(i), columns(j)])  # the elements of a bin of region r of image b",
    "RoiAlign": "y[r, c, i, j] = mean(x[b, c](v, u) for v, u in samples(i, j))  # interpolated; max with mode=\"max\"",
}
STARRED = re.compile(r"(?<=, )\*(?=(?:spatial|out|ones|bins)\b)")
TAPS = "Only taps inside the input count: taps in the padding are left out."



class Drawn(NamedTuple):
    """A call whose picture is drawn: attributes, the shape of x, and further inputs with their dtypes."""

    attributes: dict[str, Any]
    shape: tuple[int, ...]
    inputs: tuple[tuple[Any, str], ...] = ()


DRAWN = {
    "AveragePool": Drawn({"kernel_shape": 3, "strides": 2, "pads": 1}, (1, 1, 7, 8)),
    "MaxPool": Drawn({"kernel_shape": 3, "strides": 2, "dilations": 2}, (1, 1, 9, 10)),
    "MinPool": Drawn({"kernel_shape": 3, "pads": 1, "axes": (0, 1)}, (5, 6)),
    "LpPool": Drawn({"kernel_shape": 2, "strides": 2, "ceil_mode": 1}, (1, 1, 5, 8)),
    "GlobalAveragePool": Drawn({}, (1, 1, 5, 6)),
    "GlobalMaxPool": Drawn({}, (1, 1, 5, 6)),
    "GlobalMinPool": Drawn({"axes": (0, 1)}, (5, 6)),
    "GlobalLpPool": Drawn({}, (1, 1, 5, 6)),
    "QLinearAveragePool": Drawn({"kernel_shape": 3, "strides": 2, "pads": 1}, (1, 1, 7, 8)),
    "QLinearGlobalAveragePool": Drawn({}, (1, 1, 5, 6)),
    "NhwcMaxPool": Drawn({"kernel_shape": 3, "strides": 2}, (1, 7, 9, 1)),
    "MaxUnpool": Drawn({"kernel_shape": 2, "strides": 2}, (1, 1, 2, 3), (([[[[7, 2, 10], [12, 20, 17]]]], "int64"),)),
    "MaxRoiPool": Drawn({"pooled_shape": (3, 2)}, (1, 1, 8, 10), (([[0, 1, 0, 7, 6]], "float32"),)),
    "RoiAlign": Drawn({"output_height": 3, "output_width": 2, "sampling_ratio": 2}, (1, 1, 8, 10),
                      (([[1, 0.5, 7.5, 7]], "float32"), ([0], "int64"))),
}


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", r"\|").replace("\n", " ")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)


def prose(text: str) -> str:
    """Text of a docstring as Markdown."""
    text = text.replace("``", "`")
    return re.sub(r"::\n\n((?:    .*\n?)+)", lambda block: f":\n\n```text\n{dedented(block[1])}\n```\n", text)


def dedented(block: str) -> str:
    """Lines without their margin."""
    return "\n".join(line[4:] for line in block.rstrip().splitlines())


def default(kind: Any) -> str:
    """The default of an attribute."""
    if kind.required:
        return "required"
    return "none" if kind.implied is None else f"`{kind.implied!r}`"


def allowed(kind: Any) -> str:
    """The values that an attribute accepts."""
    if hasattr(kind, "values"):
        return ", ".join(f"`{value!r}`" for value in kind.values)
    if kind.type == "float":
        return "above 0"
    return f"at least {kind.minimum}"


def changes(before: Any, version: Any) -> Iterator[str]:
    """What a version changed, according to the table of versions."""
    for name, kind in version.attributes.items():
        old = before.attributes.get(name)
        if old is None:
            yield f"the attribute `{name}`"
        elif old is not kind:
            yield (f"`{name}` is {kind.type}, {default(kind)} (before: {old.type}, {default(old)})")
    added = [name for name in version.dtypes if name not in before.dtypes]
    if added:
        yield f"the {'dtype' if len(added) == 1 else 'dtypes'} {', '.join(added)}"
    if version.outputs > before.outputs:
        yield "the output Indices"


def sections(schema: Any) -> Iterator[str]:
    """A section for each version, the newest first."""
    for place, version in reversed(list(enumerate(schema.versions))):
        last = schema.versions[place + 1].since - 1 if place + 1 < len(schema.versions) else None
        latest = schemas.LATEST[schema.domain]
        yield f"## Version {version.since}"
        yield f"In opset{'s' if (last or latest) > version.since else ''} {version.since}" + (
            f" to {last or latest}." if (last or latest) > version.since else ".")
        if place:
            news = list(changes(schema.versions[place - 1], version))
            old = schema.versions[place - 1].since
            yield (f"New since version {old}: {'; '.join(news)}." if news else
                   f"Calls and results are as in version {old}: ONNX changed only the text.")
        if version.attributes:
            yield "\n".join(table(("attribute", "type", "values", "default", "meaning"), (
                (f"`{name}`", kind.type, allowed(kind), default(kind),
                 "Whether channels are the last axis." if name == "channels_last" else texts.ATTRIBUTES[name])
                for name, kind in version.attributes.items())))
        else:
            yield "No attributes."
        yield f"Dtypes: {', '.join(version.dtypes)}."


def picture_of(name: str) -> tuple[str, str]:
    """A call that explains an operator with a picture of two axes, and the picture."""
    attributes, shape, inputs = DRAWN[name]
    dtypes = schemas.ALL_SCHEMAS[name].versions[-1].dtypes
    dtype = "float32" if "float32" in dtypes else "uint8"
    given = ", ".join(f"{key}={value!r}" for key, value in attributes.items())
    further = ", ".join(f"np.array({value!r}, {kind!r})" for value, kind in inputs)
    plan = getattr(onnxpool, name)(**attributes).plan(shape, dtype)
    return (f"onnxpool.{name}({given}).plan({shape}, {dtype!r}).explain({further}).svg()",
            plan.explain(*(np.array(value, kind) for value, kind in inputs)).svg())


def operator_page(name: str) -> str:
    """The page of an operator."""
    one = generate_api.Operator(name)
    schema, words = schemas.ALL_SCHEMAS[name], texts.OPERATORS[name]
    parts = [f"# {name}", words.summary,
             f"Domain: {DOMAINS[schema.domain]}. Function: {{py:func}}`onnxpool.{one.function}`. "
             f"Class: {{py:class}}`onnxpool.{name}`. Inputs: "
             + ", ".join(f"{wanted} (optional)" if wanted in schema.optional else wanted for wanted in schema.inputs)
             + f". Versions: {', '.join(str(version.since) for version in schema.versions)}."]
    if schema.domain == "":
        parts[-1] += f" [Its page in the ONNX documentation](https://onnx.ai/onnx/operators/onnx__{name}.html)."
    call, svg = picture_of(name)
    (DOCS / "generated" / "pictures" / f"{name}.svg").write_text(f"{svg}\n", encoding="utf-8")
    parts += [f"![The picture that explain draws of {name} over two axes](../pictures/{name}.svg)",
              f"Drawn by `{call}`."]
    formula = f"```python\n{FORMULAS[name]}\n```"
    parts += ["## Formula", formula if DRAWN[name].inputs else f"Along one axis:\n\n{formula}"]
    if "kernel_shape" in schema.versions[-1].attributes and name != "MaxUnpool":
        parts.append(TAPS)
    parts += [prose(texts.NOTES[note]) for note in words.notes]
    if words.own_notes:
        parts.append(prose(words.own_notes))
    parts += ["## Example", f"```python\n{words.example_of_class}\n```", *sections(schema)]
    return "\n\n".join(parts) + "\n"


def operators_index() -> str:
    """The list of operators."""
    rows = []
    for name, schema in schemas.ALL_SCHEMAS.items():
        dtypes = generate_api.dtypes_of(schema)
        rows.append((f"[{name}]({name}.md)", DOMAINS[schema.domain],
                     ", ".join(str(version.since) for version in schema.versions), dtypes))
    listed = "\n".join(table(("operator", "domain", "versions", "dtypes"), rows))
    pages = "\n".join(schemas.ALL_SCHEMAS)
    return (f"# Operators, version by version\n\nThese pages are made from the table in `schemas.py`, which also "
            f"checks the calls.\n\n{listed}\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n")


def command_pages() -> str:
    """The page about the command line, from its parser."""
    top, commands = arguments.parser()
    parts = ["# Command line", "`pip install onnxpool` installs the command `onnxpool`. This page is made from its "
             "help texts, which `onnxpool COMMAND --help` prints.", *help_of("onnxpool", top)]
    for name, command in commands.items():
        parts += [f"## onnxpool {name}", *help_of(name, command)]
    return "\n\n".join(parts) + "\n"


def help_of(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """The texts and options of a parser."""
    if name != "onnxpool":
        yield from (paragraph.strip() for paragraph in (parser.description or "").strip().split("\n\n"))
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if "--help" not in action.option_strings
                   and not isinstance(action, argparse._SubParsersAction)]
        if not actions:
            continue
        if group.description:
            yield group.description.strip()
        yield "\n".join(table(("argument", "meaning"), ((shown(action), (action.help or "").replace("%%", "%"))
                                                       for action in actions)))
    for part in (parser.epilog or "").strip().split("\n\n"):
        heading, _, body = part.partition("\n")
        yield f"{heading.capitalize()}\n\n```text\n{body}\n```" if body else heading


def shown(action: argparse.Action) -> str:
    """An option or operand as code."""
    value = str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{option}`" for option in action.option_strings) + (f" `{value}`" if action.nargs != 0 else "")


def disagreements_page() -> str:
    """The page about runtimes, from the table that `onnxpool check` reads."""
    parts = ["# What runtimes disagree about",
             "onnxruntime, OpenVINO, onnx's ReferenceEvaluator and onnx's shape inference do not always follow the "
             "specification, or one another. This page is made from the table that `onnxpool check MODEL` reads, which "
             "also has the exact condition of each row. [Decisions](../reference/decisions.md) says what onnxpool does "
             "in these cases, and why. [Cases of the decisions](../reference/decision_cases.md) show some of them. "
             "`--ignore NAME` silences a row.",
             "A row with *values* shows only with such values in the input: `onnxpool check --values` lists it.",
             f"There are {len(TABLE)} rows: " + ", ".join(
                 f"{sum(row.runtime == runtime for row in TABLE)} about {runtime}" for runtime in RUNTIMES.values())
             + "."]
    for runtime in RUNTIMES.values():
        rows = [row for row in TABLE if row.runtime == runtime]
        parts += [f"## {runtime}", "\n".join(table(("name", "what it does", "operators", "values", "fixed in"), (
            (f"`{row.name}`", row.text, ", ".join(row.operators) if len(row.operators) < 8 else "most", row.values,
             ".".join(map(str, row.before))) for row in rows)))]
    parts += ["## By operator", "\n".join(table(("operator", *RUNTIMES.values()), (
        (name, *(", ".join(f"`{row.name}`" for row in TABLE if name in row.operators and row.runtime == runtime)
                 for runtime in RUNTIMES.values()))
        for name in schemas.SCHEMAS)))]
    return "\n\n".join(parts) + "\n"


def api_page() -> str:
    """The index of the API, with the groups of the page on compatibility."""
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8").partition("These modules")[0]
    groups = [(purpose[0].upper() + purpose[1:], re.findall(r"`(\w+)`", names))
              for purpose, names in re.findall(r"^\| ([^|]*) \| (`[^|]*) \|$", page, re.MULTILINE)]
    groups = [(purpose, [f"onnxpool.{name}" for name in names if name[0] != "_"]) for purpose, names in groups]
    for module, words in (("ndimage", "Filters of scipy.ndimage"), ("dask", "dask arrays"),
                          ("xarray", "Labelled arrays of xarray")):
        names = importlib.import_module(f"onnxpool.{module}").__all__
        groups.append((words[0].upper() + words[1:], [f"onnxpool.{module}.{name}" for name in names]))
    groups += [("onnx: models, nodes and the reference evaluator", [
        "onnxpool.onnx.reference.new_ops", "onnxpool.onnx.reference.Evaluator", "onnxpool.onnx.reference.NodeError",
        "onnxpool.onnx.checks.check_model", "onnxpool.onnx.models.Model"]),
        ("onnxruntime sessions", [f"onnxpool.onnxruntime.{name}" for name in
                                  importlib.import_module("onnxpool.onnxruntime").__all__]),
        ("Explanations", ["onnxpool.explain.Explanation"]), ("Routes of the loops", ["onnxpool.kernels.routes"])]
    parts = ["Python API\n==========", "Made from the docstrings. :doc:`/compatibility` says what is public, and for "
             "how long."]
    for heading, names in groups:
        listed = "\n".join(f"   {name}" for name in names)
        parts.append(f"{heading}\n{'-' * len(heading)}\n\n.. autosummary::\n   :toctree: api\n\n{listed}")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """The generated pages."""
    return {**{f"operators/{name}.md": operator_page(name) for name in schemas.ALL_SCHEMAS},
            "operators/index.md": operators_index(), "command-line.md": command_pages(),
            "disagreements.md": disagreements_page(), "api.rst": api_page()}


def write(_app: Any, _settings: Any) -> None:
    """Write only pages that changed, so that Sphinx does not read the others again."""
    (DOCS / "generated" / "pictures").mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        file = DOCS / "generated" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def escape_stars(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Escape the stars of shapes, as in (N, C, *spatial), which docutils takes for emphasis."""
    lines[:] = [STARRED.sub(r"\\*", line) for line in lines]


def skip_fields(_app: Any, _what: str, _name: str, member: Any, _skip: bool, _options: Any) -> bool | None:
    """Leave out the fields of named tuples, which docstrings describe as parameters."""
    return True if (member.__doc__ or "").startswith("Alias for field number") else None


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx. Pages are written before it looks for them."""
    missing = {name for name in operators if name[0].isupper()} ^ set(schemas.ALL_SCHEMAS)
    assert not missing, missing
    app.connect("autodoc-process-docstring", escape_stars, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
