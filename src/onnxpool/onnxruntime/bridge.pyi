from collections.abc import Sequence

from .nodes import Kind

wanted: Sequence[Kind] | None
