"""``onnxpool supported``: operators, their versions and dtypes."""

import argparse

from .. import PoolError, schemas
from . import OK
from .text import json_text, table

MISTAKES: tuple[type[Exception], ...] = (PoolError,)


def run(args: argparse.Namespace) -> int:
    """The command ``supported``."""
    for name in args.operators:
        if name not in schemas.SCHEMAS:
            raise PoolError(f"{name} is no pooling operator; give some of {', '.join(schemas.SCHEMAS)}",
                            attribute="operators", value=name)
    rows = [row for row in schemas.supported() if not args.operators or row["operator"] in args.operators]
    if args.json:
        print(json_text(rows))
        return OK
    cells = [[f"{row['domain']}:{row['operator']}" if row["domain"] else row["operator"], str(row["version"]),
              ", ".join(row["dtypes"]), ", ".join(row["attributes"]) or "-"] for row in rows]
    for line in table([["operator", "version", "dtypes", "attributes"], *cells], [False, True, False, False]):
        print(line)
    return OK
