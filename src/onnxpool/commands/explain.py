"""``onnxpool explain``: the plan of a pool, or of each pooling node of a model."""

import argparse
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from .. import PoolError, PoolTypeError, __version__
from ..arrays import dtype_of
from ..attributes import Choice
from ..base import registry
from ..dtypes import DTYPES
from ..errors import printable
from ..explain import Explanation
from ..hints import likely
from ..schemas import ALL_SCHEMAS
from . import OK
from .arguments import RESULT_DTYPE
from .files import written
from .operators import is_path, operator_of, unknown
from .text import items, json_text, print_lines, sizes

SHORTEST = 4  # letters of a dtype name whose case is ignored; it matters in codes, such as B and b or M8[s] and m8[s]
OF_PLANS = ("shape", "dtype")  # arguments of plans, not of operators
WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


def number_of(text: str) -> Any:
    """An integer, a float, or the text if it is neither, or has more digits than Python reads as an integer."""
    for kind in (int, *(() if text.strip("-+ ").isdecimal() else (float,))):
        with suppress(ValueError):
            return kind(text)
    return text


def value_of(operator: str, name: str, text: str) -> Any:
    """The value of an attribute as a Python object. The operator will check it."""
    attribute = ALL_SCHEMAS[operator].versions[-1].attributes.get(name)
    choices = attribute.values if isinstance(attribute, Choice) else ()
    words = {**WORDS, **{choice.lower(): choice for choice in choices}}
    if text.lower() in words:
        return words[text.lower()]
    listed = items(text)
    return number_of(text) if listed is None else tuple(map(number_of, listed))


def dtype_named(label: str, text: str) -> Any:
    """A dtype's name as NumPy reads it, otherwise in lower case."""
    for spelling in (text, text.lower()) if text.isalnum() and len(text) >= SHORTEST else (text,):
        try:
            return dtype_of(label, spelling)
        except PoolTypeError:
            if spelling in DTYPES:  # ml_dtypes is not installed
                raise
    raise PoolTypeError(f"{label}: dtype must be a NumPy dtype, got {text!r}; pass one of {', '.join(DTYPES)}, or a "
                        f"code such as f4, >i2 or M8[s]", label, "dtype", value=text)


def named(items: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Attributes in the form NAME=VALUE that are not options, because no operator has them."""
    for item in items:
        name, equals, text = item.partition("=")
        if not equals:
            raise PoolError(f"{item}: pass attributes as NAME=VALUE, such as kernel_shape=3,3, and the shape of X as "
                            f"--shape 1,64,112,112", attribute=item)
        yield name.lower().replace("-", "_"), text


def pool(operator: str, args: argparse.Namespace) -> Explanation:
    """The plan of an operator with attributes, for one shape and dtype."""
    cls = registry[operator]
    given: dict[str, Any] = {}
    for name, text in (*args.settings, *named(args.attributes)):
        near = likely(name, (*cls._optional, *OF_PLANS))
        if near in OF_PLANS:
            raise PoolError(f"{operator}: there is no argument {name}; pass {near}", operator, name, value=text)
        if name in given:
            raise PoolError(f"{operator}: {name} is given twice; pass it once", operator, name, value=text)
        given[name] = text if name == RESULT_DTYPE else value_of(operator, name, text)
    result = given.pop(RESULT_DTYPE, "none")
    if result.lower() != "none":
        if "dtype" not in cls._optional:
            raise PoolError(f"{operator}: there is no argument {RESULT_DTYPE}, which only means have; leave it out",
                            operator, RESULT_DTYPE, value=result)
        given["dtype"] = dtype_named(operator, result)
    made = cls(**given)
    if len(args.shape) != 1:
        raise PoolError(f"{operator}: pass the shape of X once, as --shape 1,64,112,112", operator, "shape")
    name, _, text = args.shape[0].rpartition("=")
    try:
        shape = sizes(text)
    except ValueError:
        shape = None
    if shape is None or name.lower() not in ("", ALL_SCHEMAS[operator].inputs[0].lower()):
        raise PoolError(f"--shape {args.shape[0]}: pass --shape 1,64,112,112", operator, "shape")
    return made.plan(shape, dtype_named(made.label, "float32" if args.dtype is None else args.dtype)).explain()


def nodes(args: argparse.Namespace) -> list[tuple[str, Explanation | None, str]]:
    """For each pooling node of a model: its name, its plan, and the reason if there is no plan."""
    from ..onnx.protos import InputError, load, title
    from ..onnx.survey import survey
    from .options import SHAPE, read_shapes

    if args.attributes or args.settings or args.dtype is not None:
        raise PoolError(f"{args.what} is a model, whose nodes have attributes already; pass only {SHAPE}, or replace "
                        f"the model with one of {', '.join(ALL_SCHEMAS)}", attribute="what", value=args.what)
    try:
        sites = survey(load(args.what, weights=False), read_shapes(args.shape))
        return [(title(site.node), None if site.plan is None else site.plan.explain(), site.error or site.unknown)
                for site in sites]
    except InputError as error:
        raise InputError(f"{error}; pass {SHAPE}") from error


def draw(plan: Explanation, args: argparse.Namespace) -> None:
    """Write the picture of a plan to the given files."""
    from .. import pictures

    for option, file in (("--svg", args.svg), ("--png", args.png)):
        if file is None:
            continue
        try:
            with written(file) as opened:
                if option == "--svg":
                    opened.write(f"{plan.svg()}\n".encode())
                else:
                    pictures.png(plan.picture, opened)
        except ImportError as error:
            raise PoolError(f"--png needs the matplotlib package ({error}): pip install 'onnxpool[plot]'",
                            attribute="png", value=file) from error


def run(args: argparse.Namespace) -> int:
    """The command ``explain``."""
    operator = None if os.path.isfile(args.what) and args.what not in ALL_SCHEMAS else operator_of(args.what)
    if operator is not None:
        plan = pool(operator, args)
        draw(plan, args)
        print_lines(*[json_text(plan.to_dict())] if args.json else plan.splitlines())
        return OK
    if not is_path(args.what):
        raise unknown(args.what, "neither a pooling operator nor a file",
                      f"pass an ONNX file, or one of {', '.join(ALL_SCHEMAS)}")
    found = nodes(args)
    if args.svg is not None or args.png is not None:
        drawn = [plan for _, plan, _ in found if plan is not None]
        if len(drawn) != 1:
            raise PoolError(f"a picture shows one pool, but {args.what} has {len(drawn)} whose sizes are known; pass "
                            f"an operator and its attributes", attribute="what", value=args.what)
        draw(drawn[0], args)
    if args.json:
        print_lines(json_text({"model": args.what, "onnxpool": __version__, "nodes": [
            {"name": name, **({"unknown": reason} if plan is None else plan.to_dict())} for name, plan, reason in found
        ]}))
        return OK
    for name, node_plan, reason in found:
        print_lines(*f"{printable(name)}: {reason if node_plan is None else node_plan}".splitlines())
    return OK
