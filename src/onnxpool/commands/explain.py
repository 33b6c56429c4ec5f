"""``onnxpool explain``: the plan of a pool, or of each pooling node of a model."""

import argparse
from typing import Any

from .. import PoolError, PoolTypeError, __version__
from ..base import by_name
from ..explain import Explanation
from ..schemas import SCHEMAS
from . import OK
from .text import json_text, sizes

MISTAKES: tuple[type[Exception], ...] = (PoolError, PoolTypeError)


def value_of(text: str) -> Any:
    """The value of an attribute: integers, a float or a text."""
    try:
        values = tuple(map(int, text.split(",")))
        return values if len(values) > 1 else values[0]
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def pool(args: argparse.Namespace) -> Explanation:
    """The plan of an operator with attributes, for one shape and dtype."""
    given = {}
    for item in args.attributes:
        name, equals, text = item.partition("=")
        if not equals:
            raise PoolError(f"{item}: give attributes as NAME=VALUE, such as kernel_shape=3,3", attribute=item)
        given[name] = value_of(text)
    if len(args.shape) != 1:
        raise PoolError(f"{args.what}: give the shape of X once, as --shape 1,64,112,112", args.what, "shape")
    try:
        shape = sizes(args.shape[0])
    except ValueError:
        raise PoolError(f"--shape {args.shape[0]}: give --shape 1,64,112,112", args.what, "shape") from None
    operator = by_name(args.what, args.opset, given, args.channels_last)
    return operator.plan(shape, args.dtype).explain()


def nodes(args: argparse.Namespace) -> list[tuple[str, Explanation | None, str]]:
    """The name of each pooling node of a model, its plan, and why it has none."""
    from ..onnx.protos import InputError, ModelError, load, title
    from ..onnx.survey import survey
    from .options import SHAPE, read_shapes

    if args.attributes or args.channels_last or args.opset is not None:
        raise PoolError(f"{args.what} is a model, which has attributes itself; give none, or one of "
                        f"{', '.join(SCHEMAS)}", attribute="what", value=args.what)
    try:
        sites = survey(load(args.what, weights=False), read_shapes(args.shape))
        return [(title(site.node), None if site.plan is None else site.plan.explain(), site.error or site.unknown)
                for site in sites]
    except InputError as error:
        raise PoolError(f"{error}; give {SHAPE}") from error
    except ModelError as error:
        raise PoolError(str(error)) from error


def run(args: argparse.Namespace) -> int:
    """The command ``explain``."""
    if args.what in SCHEMAS:
        plan = pool(args)
        print(json_text(plan.to_dict()) if args.json else plan)
        return OK
    found = nodes(args)
    if args.json:
        print(json_text({"model": args.what, "onnxpool": __version__, "nodes": [
            {"name": name, **({"unknown": reason} if plan is None else plan.to_dict())} for name, plan, reason in found
        ]}))
        return OK
    for name, node_plan, reason in found:
        print(f"{name}: {reason if node_plan is None else node_plan}")
    return OK
