"""A case: a node with its inputs, what decides its results, and the results."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .oracle import Truth, expect
from .oracle_indices import expect_indices
from .oracle_regions import expect_max_roi_pool, expect_roi_align
from .oracle_unpool import expect_unpool
from .rules import RULES, Rule
from .versions import OPERATORS

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Case:
    """
    A node with its inputs; None is an omitted input.

    A case with an `error` must be refused, whatever the values of its inputs. The text says what is wrong.
    """

    name: str
    rule: str
    operator: str
    opset: int
    inputs: tuple[Array | None, ...]
    attributes: dict[str, Any]
    outputs: int = 1
    error: str = ""

    @property
    def decided(self) -> Rule:
        """What decides the results."""
        return RULES[self.rule]

    @property
    def tier(self) -> str:
        """How binding the results are."""
        return self.decided.tier

    @property
    def version(self) -> int:
        """The version of the operator."""
        return OPERATORS[self.operator].version(self.opset)

    @property
    def x(self) -> Array:
        """The first input."""
        x = self.inputs[0]
        assert x is not None
        return x

    @property
    def channels_last(self) -> bool:
        """Whether the last axis of x has the channels."""
        return self.operator == "NhwcMaxPool" or bool(self.attributes.get("channels_last"))

    @cached_property
    def truths(self) -> tuple[Truth, ...]:
        """The truth about each output."""
        return truths(self.operator, self.inputs, self.attributes, self.opset, self.outputs > 1,
                      channels_last=self.channels_last)

    def expected(self) -> list[Array]:
        """The outputs; none if the case must be refused."""
        return [] if self.error else [np.asarray(truth.result()) for truth in self.truths]


def truths(operator: str, inputs: tuple[Array | None, ...], attributes: dict[str, Any], opset: int | None,
           indices: bool, *, channels_last: bool) -> tuple[Truth, ...]:
    """The truth about each output of a node; raises GeometryError if a runtime must refuse it."""
    layout = {"channels_last": channels_last}
    if operator == "MaxPool" and indices:
        values = expect(operator, inputs, attributes, **layout)
        return values, expect_indices(inputs[0], attributes, **layout)
    if operator == "MaxUnpool":
        return (expect_unpool(inputs, attributes, **layout),)
    if operator == "MaxRoiPool":
        return (expect_max_roi_pool(inputs, attributes, **layout),)
    if operator == "RoiAlign":
        return (expect_roi_align(inputs, attributes, opset, **layout),)
    return (expect(operator, inputs, attributes, **layout),)
