"""Parts of the campaign draw every argument of every public function, or the table says why they do not."""

import inspect
import random
from collections import defaultdict
from dataclasses import replace
from unittest import mock

import calls_axes
import campaign
import numpy as np
import pytest
from calls import SeededChoices, make_out
from inapplicable import InapplicableError
from oracle_axes import ALL, INTEGERS, TIMES
from relations import RELATIONS

import onnxpool
from tests.campaign import arguments, fuzz, slowest

FUZZED, GUARDED, RELATED, TIMED = 4000, 4000, 200, 4000  # draws; RELATED is per relation
FLOATS = ("float16", "bfloat16", "float32", "float64")


def seen_by_checks(calls):
    """The arguments of calls that the oracle would check, which are not computed."""
    recorder = arguments.Recorder()

    def check(call, make=make_out):
        outs = make(call.out, (2, 1, 1), np.dtype(np.float32))[0]
        style = "plan" if call.style == "tiles" else call.style
        replace(call, style=style).run(recorder, outs)
        return campaign.Outcome()

    with mock.patch.object(campaign, "check", check):
        calls()
    return recorder.seen


def seen_by_fuzz():
    """The arguments of random calls."""
    return seen_by_checks(lambda: [fuzz.compare(first) for first in range(0, FUZZED, fuzz.SHARE)])


def seen_by_guards():
    """The arguments of random calls between inaccessible pages, as the program makes them."""
    return seen_by_checks(lambda: campaign.main(["--guarded", "--calls", str(GUARDED), "--seed", "1"]))


def seen_by_relations():
    """The arguments of calls that relations compare, which are computed."""
    with arguments.recorded() as recorder:
        for relation in RELATIONS.values():
            for seed in range(RELATED):
                try:
                    relation(SeededChoices(seed))
                except (InapplicableError, AssertionError):
                    continue
    return recorder.seen


def seen_by_slowest():
    """The arguments of operators that the search would time."""
    search = slowest.Search(random.Random(1), slowest.BYTES[0])
    with arguments.recorded() as recorder:
        for _ in range(TIMED):
            try:
                slowest.made(search.drawn())
            except onnxpool.PoolError:
                continue
    return recorder.seen


SEEN = {"fuzz": seen_by_fuzz, "relations": seen_by_relations, "guards": seen_by_guards, "slowest": seen_by_slowest}


def dtypes_of(function):
    """The dtypes of x that a function accepts."""
    operators = {name: operator for operator, name in (*campaign.FUNCTIONS.items(),
                                                       *calls_axes.FUNCTIONS_ALONG_AXES.items())}
    operator = operators[function].split()[0]
    known = {name for row in onnxpool.supported() if row["operator"] == operator for name in row["dtypes"]}
    if "axes" not in inspect.signature(getattr(onnxpool, function)).parameters or "lp" in function:
        return known
    return known | {*FLOATS, *INTEGERS, *(TIMES if "average" not in function else ())}


def undrawn(part, seen):
    """What a part should have drawn, according to the table."""
    problems, alike = [], defaultdict(set)  # arguments of functions that take the same values
    for name, argument in arguments.drawn_by(part):
        values = seen.get((name, argument), set())
        required = frozenset(arguments.REQUIRED.get(argument, ()))
        if argument == "x" and not name.startswith("Plan."):
            required = frozenset(dtypes_of(name))
        alike[argument, required] |= values
        if len(values) < 2 or (argument in arguments.FLAGS and required - values):
            problems.append(f"{argument} of {name} has only the values {sorted(values)}")
    problems += [f"{argument} is never {', '.join(sorted(required - values))}"
                 for (argument, required), values in alike.items() if required - values]
    return problems


def test_the_table_covers_every_argument():
    """Each argument of each function, class and method of plans is drawn by each part, or left out for a reason."""
    assert list(arguments.gaps()) == []
    assert {ALL[name].name for name in ALL} == set(ALL)


def test_a_new_argument_would_be_missed():
    """If a function had a new argument, the comparison would report that the table does not cover it."""
    def average_pool(x, kernel_shape, *, sharpness=0):
        """A function with a new argument."""

    with mock.patch.object(onnxpool, "average_pool", average_pool):
        found = list(arguments.gaps())
    assert found == [f"{part} does not draw sharpness of average_pool, and there is no reason"
                     for part in ("fuzz", "relations", "guards")]


@pytest.mark.parametrize("part", arguments.PARTS)
def test_parts_draw_what_the_table_says(part):
    """Each argument that a part draws takes several values, including each dtype and each value of a flag."""
    assert undrawn(part, SEEN[part]()) == []


@pytest.mark.parametrize("argument", ["skipna", "dtype", "keepdims"])
def test_an_argument_that_is_not_drawn_is_missed(argument, monkeypatch):
    """If calls never passed an argument, comparing draws with the table would reveal it."""
    keywords = calls_axes.AxesCall.keywords.fget

    def without(call):
        return {name: value for name, value in keywords(call).items() if name != argument}

    monkeypatch.setattr(calls_axes.AxesCall, "keywords", property(without))
    monkeypatch.setattr(fuzz, "SHARE", 2000)
    seen = seen_by_checks(lambda: fuzz.compare(0))
    functions = {name for name, signature in arguments.signatures().items() if argument in signature.parameters}
    missed = {problem.removeprefix(f"{argument} of ").split(" has ")[0] for problem in undrawn("fuzz", seen)
              if problem.startswith(f"{argument} of ")}
    assert missed == functions
