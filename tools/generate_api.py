"""
Print a module for the build: `operators/__init__.py`, which has the public functions and classes of operators, or
`dask/__init__.py` or `xarray/__init__.py`, which have the functions on other arrays.

    python tools/generate_api.py operators|dask|xarray
"""

import itertools
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import api_texts as texts
from uncompiled import module

attributes, schemas = module("attributes"), module("schemas")

WIDTH = 120
COMMAND = f"python tools/{Path(__file__).name}"
OURS = ("return_indices", "opset", "channels_last", "axes", "keepdims", "dtype", "skipna", "out",
        "num_threads")  # in signatures
OF_CALLS = ("out", "num_threads")  # parameters that constructors do not have
ANNOTATIONS = {"x": "ArrayLike", "opset": "int | None = None", "return_indices": "bool = False",
               "axes": "Ints | None = None", "keepdims": "bool = True", "dtype": "DTypeLike | None = None",
               "skipna": "bool = False",
               "num_threads": "int | None = None"}
OF_POSITIONS = ("opset", "channels_last", "axes", "out")  # parameters that functions on labelled arrays do not have
OF_NAMES = {"x": "Labelled", "kernel_shape": "Sizes", "strides": "PerDim | None = None", "pads": "Pads | None = None",
            "dilations": "PerDim | None = None", "p": "int | None = None", "keepdims": "bool = False"}


# Python source


def filled(head: str, items: Sequence[str], tail: str, indent: int = 0) -> str:
    """A call or signature, with continuation lines aligned to the first argument."""
    margin = " " * len(head)
    lines = [head]
    for item in (*(f"{item}," for item in items[:-1]), items[-1] + tail):
        if lines[-1] in (head, margin):
            lines[-1] += item
        elif len(lines[-1]) + 1 + len(item) <= WIDTH - indent:
            lines[-1] += f" {item}"
        else:
            lines.append(margin + item)
    return "\n".join(lines)


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def alias(name: str) -> str:
    """The name of an attribute's type, if only some strings are valid."""
    return "".join(word.capitalize() for word in name.split("_"))


class Parameter(NamedTuple):
    """A parameter in signatures and docstrings."""

    name: str
    annotation: str  # includes the default
    kind: str  # the type in docstrings
    text: str

    @property
    def declared(self) -> str:
        return f"{self.name}: {self.annotation}"

    @property
    def entry(self) -> str:
        return f"{self.name} : {self.kind}\n{indented(paragraph(self.text, 4))}"


# Docstrings


def paragraph(text: str, margin: int = 0) -> str:
    """Text wrapped for the docstring of a function or class. Literals are not broken."""
    kept = re.sub(r"``.*?``", lambda literal: literal[0].replace(" ", "\0"), " ".join(text.split()))
    lines = textwrap.fill(kept, WIDTH - 4 - margin, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def wrapped(text: str) -> str:
    """Wrapped paragraphs. Paragraphs with indented lines stay as they are."""
    parts = text.split("\n\n")
    return "\n\n".join(part if "\n    " in f"\n{part}" else paragraph(part) for part in parts)


def section(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body}"


def docstring(*parts: str) -> str:
    """The source of a docstring with these sections."""
    text = "\n\n".join(filter(None, parts))
    return f'{"r" if chr(92) in text else ""}"""\n{text}\n"""'


def listed(words: Iterable[object], last: str = "and") -> str:
    """Words as an enumeration: 1, 7 and 22."""
    *first, end = map(str, words)
    return f"{', '.join(first)} {last} {end}" if first else end


def dtypes_of(schema: Any) -> str:
    """The dtypes of all versions as text."""
    seen: tuple[str, ...] = ()
    parts = []
    for version in schema.versions:
        added = [name for name in version.dtypes if name not in seen]
        if added:
            names = listed(added, "or")
            parts.append(names if not seen else f"{names} since version {version.since}")
        seen = version.dtypes
    return "; ".join(parts)


class Operator:
    """An operator, with the source that is generated for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.schema = schemas.ALL_SCHEMAS[name]
        self.own = self.schema.domain == schemas.OWN  # not part of ONNX
        self.texts = texts.OPERATORS[name]
        self.newest = self.schema.versions[-1]
        self.function = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        known = [attribute for attribute in self.newest.attributes if attribute != "channels_last"]
        if missing := set(known).difference(texts.ATTRIBUTES):
            raise SystemExit(f"no text of {', '.join(sorted(missing))} of {name}: add it to [ATTRIBUTES] of "
                             "api_texts.toml")
        self.attributes = sorted(known, key=list(texts.ATTRIBUTES).index)
        self.required = [one for one in self.attributes if self.newest.attributes[one].required]
        self.whole = "Whole" in self.texts.bases
        self.averages = "Mean" in self.texts.bases
        inputs = self.texts.inputs or self.schema.inputs[1:]
        self.inputs = [one for one in inputs if one not in self.texts.last]

    def kinds(self, name: str) -> list[Any]:
        """The kinds of an attribute in the versions that have it."""
        return [version.attributes[name] for version in self.schema.versions if name in version.attributes]

    @property
    def ours(self) -> list[str]:
        """The parameters that are not part of ONNX."""
        left_out = {"opset": self.own, "channels_last": self.own, "axes": not self.schema.axes,
                    "keepdims": not (self.schema.axes and self.whole), "dtype": not self.averages,
                    "skipna": not self.schema.axes,
                    "return_indices": self.newest.outputs < 2}
        return [name for name in OURS if not left_out.get(name)]

    # Types

    def python_type(self, name: str, given: bool) -> str:
        """The Python type of an attribute, when given or when read."""
        kinds = self.kinds(name)
        if isinstance(kinds[-1], attributes.Ints):
            return "Ints" if given else "Sizes"
        if isinstance(kinds[-1], attributes.Choice):
            return alias(name) if given else "str"
        return "float" if any(isinstance(kind, attributes.Float) for kind in kinds) else "int"

    def literal(self, name: str) -> str:
        """The type of an attribute with a fixed set of strings."""
        kind = self.newest.attributes[name]
        return f"Literal[{', '.join(map(quoted, (*kind.values, *([''] if kind.blank else []))))}]"

    def kind(self, name: str) -> str:
        """The type of an attribute in docstrings, with its default."""
        kinds = self.kinds(name)
        newest = kinds[-1]
        if isinstance(newest, attributes.Ints):
            text = "int or two ints" if name == "pooled_shape" else texts.PER_AXIS
        elif isinstance(newest, attributes.Choice):
            text = f"{{{', '.join(map(quoted, newest.values))}}}"
        elif isinstance(newest, attributes.Flag):
            text = f"{{{', '.join(map(str, newest.values))}}}"
        else:
            text = " or ".join(sorted({kind.type for kind in kinds}, reverse=True))
        if newest.required:
            return text
        having = [version for version in reversed(self.schema.versions) if name in version.attributes]
        changes = [f" ({quoted(before.implied[name])} before version {after.since})" for after, before
                   in itertools.pairwise(having) if after.implied[name] != before.implied[name]]
        return f"{text}, default: {quoted(newest.implied)}{''.join(changes)}"

    def parameter(self, name: str, given: Mapping[str, tuple[str, str]] | None = None, required: bool = False,
                  versioned: bool = True) -> Parameter:
        """A parameter of the function or class. `given` overrides the type and text of some."""
        known = name in self.newest.attributes
        kind, text = (given or {}).get(name) or texts.SPECIAL.get((self.name, name)) or (
            (self.kind(name), texts.ATTRIBUTES[name]) if name in self.attributes else texts.PARAMETERS[name])
        annotation = ANNOTATIONS.get(name, "ArrayLike")
        if name == "axes" and self.own:
            annotation = "Ints"
        if name == "channels_last":
            default = 0 if known else self.schema.channels_last
            annotation = f"{type(default).__name__} = {default}"
            kind = self.kind(name) if known else kind
        elif name in self.attributes:
            annotation = self.python_type(name, given=True) + ("" if required else " | None = None")
        elif name in self.texts.last:
            annotation = "ArrayLike | None = None"
        elif name in self.schema.optional:
            annotation = "ArrayLike | None"
            text += " None means 0."
        elif name == "out":
            both = "return_indices" in self.ours
            annotation = f"Array | {'tuple[Array | None, Array | None] | ' if both else ''}None = None"
        if name == "x" and self.schema.axes and not given and not self.own:
            kind += "; any shape with `axes`"
        text = text.format(dtypes=dtypes_of(self.schema), latest=schemas.LATEST[self.schema.domain],
                           domain=f" in the domain {self.schema.domain}" if self.schema.domain else "")
        if self.own:
            text = text.replace("spatial axis", "pooled axis")
        first = schemas.introduced(self.name, name)
        if versioned and first and first > self.schema.versions[0].since:
            text += f" Since version {first}."
        return Parameter(name, annotation, kind, text)

    # The class

    @property
    def constructor(self) -> list[Parameter]:
        """The parameters of the class. Positional parameters come first."""
        attributes = [name for name in self.attributes if name not in self.required]
        ours = [name for name in self.ours if name not in OF_CALLS]
        return [self.parameter(name) for name in (*self.required, *attributes, *ours)]

    def class_source(self) -> str:
        inputs = ", ".join((*self.schema.inputs, "out=None", "num_threads=None"))
        doc = docstring(
            (texts.SUMMARY_OF_OWN_CLASS if self.own else texts.SUMMARY_OF_CLASS).format(
                operator=self.name, domain=self.schema.domain or "ONNX"),
            wrapped(texts.ABOUT_CLASS),
            section("Parameters", "\n".join(one.entry for one in self.constructor)),
            self.refused(),
            see_also({self.function: self.texts.short}),
            section("Notes", wrapped(texts.NOTES_OF_CLASS.format(
                function=self.function, inputs=inputs, reference="" if self.own else " [1]_"))),
            self.references(),
            section("Examples", self.texts.example_of_class),
        )
        named = "".join(f"{name}: Named[{self.python_type(name, given=False)}] = Named()\n" for name in self.attributes)
        declared = [one.declared for one in self.constructor]
        placed = len(self.required)
        init = filled("def __init__(", ["self", *declared[:placed], "*", *declared[placed:]], ") -> None:", 4)
        names = [*(name for name in self.ours if name not in OF_CALLS), *self.attributes]
        body = filled("self._set(", [f"{name}={name}" for name in names], ")", 8)
        methods = f"{init}\n{indented(body)}"
        parts = "\n\n".join(filter(None, (doc, "__slots__ = ()", named.rstrip(), methods)))
        return f"@registered\nclass {self.name}({', '.join(self.texts.bases)}):\n{indented(parts)}"

    # The function

    def arguments(self, given: Mapping[str, tuple[str, str]] | None = None,
                  versioned: bool = True) -> list[Parameter | None]:
        """The parameters of the function. None marks the beginning of keyword-only parameters."""
        placed = [self.parameter(name, given) for name in ("x", *self.inputs)]
        placed += [self.parameter(name, given, required=True) for name in self.required]
        placed += [self.parameter(name) for name in self.texts.last]
        named = ["axes"] if self.own else []  # it is required
        named += [name for name in self.attributes if name not in self.required]
        named += [name for name in self.ours if name not in named and not self.fixed(name)]
        return [*placed, None, *(self.parameter(name, given, versioned=versioned) for name in named)]

    def fixed(self, name: str) -> bool:
        """Whether calls cannot choose the value of a parameter."""
        return name == "channels_last" and bool(self.schema.channels_last)

    def signature(self, parameters: Iterable[Parameter | None], result: str, body: str = "", **instead: str) -> str:
        """The signature of the function. `instead` overrides the annotations of some parameters."""
        declared = ["*" if one is None else f"{one.name}: {instead.get(one.name, one.annotation)}"
                    for one in parameters]
        return filled(f"def {self.function}(", declared, f") -> {result}:{body}")

    def overloads(self) -> Iterable[str]:
        """Overloads for type checkers: arrays keep their dtype, and `out` has the result's dtype."""
        own = "F" if self.averages else "T"
        pairs = [(f"NDArray[{own}]", "None = None", f"NDArray[{own}]"), ("ArrayLike", "NDArray[T]", "NDArray[T]"),
                 ("ArrayLike", "None = None", "Array")]
        both = "return_indices" in self.ours
        for x, out, result in pairs:
            more = {"return_indices": "Literal[False] = False"} if both else {}
            if self.averages and x.startswith("NDArray"):
                more["dtype"] = "None = None"
            yield self.overload(result, x=x, out=out, **more)
        if both:
            indices = "NDArray[np.int64]"
            for x, values in (("NDArray[T]", "NDArray[T]"), ("ArrayLike", "Array")):
                yield self.overload(f"tuple[{values}, {indices}]", x=x, return_indices="Literal[True]",
                                    out=f"tuple[{values} | None, {indices} | None] | None = None")
            yield self.overload(f"Array | tuple[Array, {indices}]", return_indices="bool", out="Any = None")

    def overload(self, result: str, **instead: str) -> str:
        return f"@overload\n{self.signature(self.arguments(), result, ' ...', **instead)}"

    def function_source(self) -> str:
        parameters = self.arguments()
        versions = [version.since for version in self.schema.versions]
        about = (f"This is {self.schema.domain or 'ONNX'} {self.name} [1]_, version{'s' if len(versions) > 1 else ''} "
                 f"{listed(versions)}.") if not self.own else texts.NOTES["own"]
        shape = texts.RESULTS[self.texts.result]
        doc = docstring(
            self.texts.summary,
            section("Parameters", "\n".join(one.entry for one in parameters if one)),
            section("Returns", self.texts.returns.format(shape=shape) or
                    f"ndarray {shape}\n{indented(self.result)}"),
            self.refused(),
            see_also({self.name: texts.SHORT_OF_CLASS,
                      **{name: OPERATORS[name].texts.short for name in self.texts.see}}),
            section("Notes", "\n\n".join(wrapped(text) for text in (
                about, self.texts.own_notes, *(texts.NOTES[name] for name in self.texts.notes)) if text)),
            self.references(),
            section("Examples", self.texts.example),
        )
        result = "Any" if "return_indices" in self.ours else "Array"
        inputs = [f'"{name}"' for name in ("x", *self.inputs, *self.texts.last)]
        source = f"{filled('@calls_operator(', [self.name, *inputs], ')', 0)}\n{self.signature(parameters, result)}"
        return "\n\n\n".join((*self.overloads(), f"{source}\n{indented(doc)}\n    raise NotImplementedError"))

    def made(self, parameters: Iterable[Parameter | None]) -> str:
        """The statement that makes the operator of a call."""
        taken = {one.name for one in self.constructor}
        names = [one.name for one in parameters if one and one.name in taken]
        return filled("op = made(", [self.name, *(f"{name}={name}" for name in names)], ")", 4)

    @property
    def result(self) -> str:
        return texts.RESULT_OF_MEANS if self.averages else texts.RESULT

    # The function on dask arrays

    def dask_source(self) -> str:
        assert self.texts.dask
        chunks = () if self.whole else (Parameter("chunks", "Any = None", *texts.OF_DASK["chunks"]),)
        parameters: list[Parameter | None] = []
        for one in self.arguments(texts.OF_DASK):
            if one is None or one.name != "out":
                parameters.append(one)
            else:
                parameters.extend(chunks)
        shape = texts.RESULTS[self.texts.result]
        doc = docstring(
            f"{self.texts.summary.removesuffix('.')} of a dask array.",
            section("Parameters", "\n".join(one.entry for one in parameters if one)),
            section("Returns", self.texts.dask.returns.format(shape=shape) or
                    f"dask.array.Array {shape}\n{indented(self.result)}"),
            self.refused(),
            see_also({f"onnxpool.{self.function}": texts.SHORT_OF_NUMPY}),
            section("Notes", wrapped(texts.NOTES[self.texts.dask.note])),
            section("Examples", self.texts.dask.example),
        )
        signature = self.signature(parameters, "Any", x="Any", num_threads="int | None = 1")
        body = f"return pooled(x, op, {'chunks' if chunks else 'None'}, num_threads)"
        return "\n".join(("@hinted", signature, indented(doc), indented(self.made(parameters)), indented(body)))

    # The function on labelled arrays

    def xarray_source(self) -> str:
        assert self.texts.xarray
        parameters = [one for one in self.arguments(texts.OF_XARRAY, versioned=False)
                      if one is None or one.name not in OF_POSITIONS]
        if self.whole:
            parameters.insert(1, Parameter("dim", "Dims = None", *texts.OF_XARRAY["dim"]))
        else:
            parameters.insert(-1, Parameter("coord_func", 'CoordFunc = "mean"', *texts.OF_XARRAY["coord_func"]))
        indexed = "return_indices" in self.ours
        doc = docstring(
            self.texts.xarray.summary,
            section("Parameters", "\n".join(one.entry for one in parameters if one)),
            section("Returns", texts.LABELLED_PAIR if indexed else texts.LABELLED),
            self.refused(),
            see_also({f"onnxpool.{self.function}": texts.SHORT_OF_NUMPY}),
            section("Notes", wrapped(texts.NOTES["named_whole" if self.whole else "named_windows"])),
            section("Examples", self.texts.xarray.example),
        )
        taken = {one.name for one in self.constructor}.difference(self.required)
        named = [f"{one.name}={one.name}" for one in parameters if one and one.name in taken]
        fixed = ["x", self.name, *(("dim",) if self.whole else ("kernel_shape", "coord_func")), "num_threads"]
        body = filled(f"return {'reduced' if self.whole else 'windowed'}(", [*fixed, *named], ")", 4)
        source = "\n".join(("@hinted", self.signature(parameters, "Any" if indexed else "Labelled", **OF_NAMES),
                            indented(doc), indented(body)))
        overloads = (f"@overload\n{self.signature(parameters, result, ' ...', **OF_NAMES, return_indices=given)}"
                     for result, given in (("Labelled", "Literal[False] = False"),
                                           ("tuple[Labelled, Labelled]", "Literal[True]"),
                                           ("Labelled | tuple[Labelled, Labelled]", "bool")) if indexed)
        return "\n\n\n".join((*overloads, source))

    # Sections that docstrings share

    def refused(self) -> str:
        return section("Raises", "\n".join(f"{name}\n{indented(text)}" for name, text in texts.REFUSED.items()))

    def references(self) -> str:
        """The link to the definition of the operator, if it is part of ONNX."""
        if self.own:
            return ""
        link = f"ONNX operators, {self.name}: https://onnx.ai/onnx/operators/onnx__{self.name}.html"
        if self.schema.domain:
            link = (f"onnxruntime, contributed operators, {self.name}: https://github.com/microsoft/onnxruntime/blob/"
                    f"main/docs/ContribOperators.md#{self.schema.domain}.{self.name}")
        return section("References", f".. [1] {link}")


def quoted(value: object) -> str:
    """A value in source and docstrings."""
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def see_also(others: Mapping[str, str]) -> str:
    return section("See Also", "\n".join(f"{name} : {text}" for name, text in others.items()))


OPERATORS = {one.function: one for one in map(Operator, texts.OPERATORS)}


# Files


def generated(about: str, *parts: str) -> str:
    """A module with these parts."""
    head = f'# Generated by {COMMAND} from schemas.py and tools/api_texts.toml. Edit those instead.\n"""{about}"""'
    return "\n\n".join((head, "from __future__ import annotations", *parts)) + "\n"


def names(exported: Iterable[str]) -> str:
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(exported)) + "]"


def imported(module: str, members: Iterable[str]) -> str:
    """The source of an import of a neighbouring module."""
    members = sorted(members)
    line = f"from .{module} import {', '.join(members)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join((f"from .{module} import (", *(f"    {name}," for name in members), ")"))


def choices(operators: Iterable[Operator]) -> dict[str, str]:
    """The attributes with a fixed set of strings, by the name of their type."""
    return {alias(name): one.literal(name) for one in operators for name in one.attributes
            if isinstance(one.newest.attributes[name], attributes.Choice)}


def operators_source() -> str:
    needed = {"Named", "Sizes", *(base for one in OPERATORS.values() for base in one.texts.bases)}
    literals = "\n".join(f"{name} = {values}" for name, values in sorted(choices(OPERATORS.values()).items()))
    imports = "\n".join((
        "from typing import TYPE_CHECKING, Any, Literal, overload", "",
        "from ..arrays import Array, ArrayLike, DTypeLike", "from ..base import Ints, registered",
        "from ..keys import calls_operator",
        imported("behaviour", needed),
        "", "if TYPE_CHECKING:",
        "    import numpy as np", "    from numpy.typing import NDArray", "",
        "    from ..arrays import F, T", "", literals))
    exported = [name for one in OPERATORS.values() for name in (one.name, one.function)]
    body = "\n\n\n".join(source for one in OPERATORS.values() for source in (one.class_source(), one.function_source()))
    about = "A function and a class for each ONNX operator."
    return generated(about, imports, f"{names(exported)}\n\n\n{body}")


def dask_source() -> str:
    operators = [one for one in OPERATORS.values() if one.texts.dask]
    imports = "\n".join((
        "from typing import Any", "", "from numpy.typing import DTypeLike", "", "from ..base import Ints",
        "from ..hints import hinted", "from ..keys import made",
        imported(".operators", (*(one.name for one in operators), *choices(operators))), "from .graphs import pooled"))
    body = "\n\n\n".join(one.dask_source() for one in operators)
    about = f"\n{wrapped(texts.ABOUT_DASK)}\n"
    return generated(about, imports, f"{names(one.function for one in operators)}\n\n\n{body}")


def xarray_source() -> str:
    operators = [one for one in OPERATORS.values() if one.texts.xarray]
    imports = "\n".join((
        "from typing import Any, Literal, overload", "", "from numpy.typing import DTypeLike", "",
        "from ..hints import hinted", imported(".operators", (*(one.name for one in operators), *choices(operators))),
        imported("names", ("CoordFunc", "Dims", "Pads", "PerDim", "Sizes")),
        "from .pools import Labelled, reduced, windowed"))
    body = "\n\n\n".join(one.xarray_source() for one in operators)
    about = f"\n{wrapped(texts.ABOUT_XARRAY)}\n"
    return generated(about, imports, f"{names(one.function for one in operators)}\n\n\n{body}")


SOURCES = {"operators": operators_source, "dask": dask_source, "xarray": xarray_source}

if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    print(SOURCES[sys.argv[1]](), end="")
