"""What the operator does that undoes a maximum: the public class in `__init__.py` inherits from the one here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..windows import with_spatial
from .typed import OneResult

if TYPE_CHECKING:
    import numpy as np

    from ..execution import Plan


class Scatter(OneResult):
    """An operator that stores values at the positions that indices name."""

    __slots__ = ()

    def _addressed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The spatial shape that indices address."""
        from ..planning.unpooling import inferred_sizes

        return inferred_sizes(self.label, self.attributes, *self._spatial(shape))

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return with_spatial(shape, self._addressed(shape), self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        from ..planning.unpooling import UnpoolPlan

        return UnpoolPlan(self, shape, dtype, addressed=self._addressed(shape))
