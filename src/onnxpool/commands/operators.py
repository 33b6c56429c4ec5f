"""Names of operators as users spell them."""

import os
import re

from .. import PoolError
from ..schemas import ALL_SCHEMAS


def bare(name: str) -> str:
    """A name in normalised spelling: MaxPool and max_pool both become maxpool."""
    return re.sub(r"[\W_]", "", name).lower()


NAMES = {bare(name): name for name in ALL_SCHEMAS}


def operator_of(text: str) -> str | None:
    """The operator with a name in any spelling, with or without its domain."""
    domain, _, name = text.rpartition(":")
    found = NAMES.get(bare(name))
    return found if found and domain.lower().strip(":") in ("", ALL_SCHEMAS[found].domain or "ai.onnx") else None


def is_path(text: str) -> bool:
    """Whether a text looks like the name of a file, which may be missing."""
    return os.path.exists(text) or bool(os.path.dirname(text) or re.search(r"\.\w+$", text))


def unknown(text: str, fault: str, way: str) -> PoolError:
    """The error for an unknown operator. `way` says what to pass instead if no operator has a similar name."""
    from difflib import get_close_matches  # only errors need it

    near = get_close_matches(bare(text.rpartition(":")[2]), NAMES, 1)
    return PoolError(f"{text} is {fault}; {f'did you mean {NAMES[near[0]]}?' if near else way}", attribute="operator",
                     value=text)
