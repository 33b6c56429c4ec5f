"""Figures: what a part of the campaign has counted or measured, of how many, and what it must be."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """
    A count or a measurement, with its target.

    Attributes
    ----------
    name : str
        What was counted or measured, such as "wrong results".
    value : float
    of : int
        The denominator: the number of cases.
    cases : str
        What the cases are, such as "calls".
    unit : str
        The unit of a measurement; empty for counts.
    least, most : float
        The range of values that keep the promise.
    note : str
        What a reader needs to interpret the figure.
    """

    name: str
    value: float
    of: int
    cases: str
    unit: str = ""
    least: float = -math.inf
    most: float = math.inf
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the value is in its range, and there were any cases."""
        return self.of > 0 and self.least <= self.value <= self.most

    @property
    def target(self) -> str:
        """The range in words."""
        if self.least == self.most:
            return f"must be {number(self.most)}"
        bounds = [f"at least {number(self.least)}"] * (self.least > -math.inf)
        bounds += [f"at most {number(self.most)}"] * (self.most < math.inf)
        return " and ".join(bounds) or "no target"

    def __str__(self) -> str:
        value = f"{number(self.value)} {self.unit}".rstrip()
        note = f"; {self.note}" if self.note else ""
        return f"{self.name}: {value} in {self.of:,} {self.cases} ({self.target}){note}"

    def to_json(self, **more: object) -> str:
        """One line of JSON, without infinite bounds."""
        fields = {name: value for name, value in asdict(self).items() if value not in (math.inf, -math.inf, "")}
        return json.dumps(fields | {"holds": self.holds} | more)


def number(value: float) -> str:
    """A count in full, and any other number with three digits."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def none(name: str, found: int, of: int, cases: str, note: str = "") -> Figure:
    """The figure for something that must never happen."""
    return Figure(name, found, of, cases, most=0, least=0, note=note)


def all_of(name: str, found: int, of: int, cases: str, note: str = "") -> Figure:
    """The figure for something that must hold in every case."""
    return Figure(name, found, of, cases, least=of, most=of, note=note)
