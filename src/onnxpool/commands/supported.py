"""``onnxpool supported``: operators, their versions and dtypes."""

import argparse

from .. import PoolError, schemas
from . import OK
from .operators import operator_of, unknown
from .text import json_text, print_lines, table


def run(args: argparse.Namespace) -> int:
    """The command ``supported``."""
    chosen = {}
    for text in args.operators:
        name = operator_of(text)
        if name in schemas.OWN_SCHEMAS:
            raise PoolError(f"{name} is not part of ONNX; see it with: onnxpool explain {name} --help",
                            attribute="operator", value=text)
        if name is None:
            raise unknown(text, "not a pooling operator", f"pass one or more of {', '.join(schemas.SCHEMAS)}")
        chosen[name] = text
    rows = [row for row in schemas.supported() if not chosen or row["operator"] in chosen]
    if args.json:
        print_lines(json_text(rows))
        return OK
    cells = [[f"{row['domain']}:{row['operator']}" if row["domain"] else row["operator"], str(row["version"]),
              ", ".join(row["dtypes"]), ", ".join(row["attributes"]) or "-"] for row in rows]
    print_lines(*table([["operator", "version", "dtypes", "attributes"], *cells], [False, True, False, False]))
    return OK
