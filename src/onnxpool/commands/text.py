"""Values as the commands print them."""

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON has it: no tuples, and infinity and NaN as text."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def attribute_text(value: Any) -> str:
    """An attribute's value as 3,3."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """Attributes as kernel_shape=3,3 strides=2,2."""
    return " ".join(f"{name}={attribute_text(value)}" for name, value in attributes.items())


def counted(count: int, noun: str) -> str:
    """A number of things, such as 1 warning or 2 warnings."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
