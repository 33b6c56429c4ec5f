"""The compiled planner decides like the tests' planner in plain Python: the same doubles, forms and tiles."""

import random
from typing import Any

import numpy as np
import pytest
from random_plans import drawn
from slow_planner import choice, solvers
from slow_planner import layout as slow

import onnxpool
from onnxpool import kernels
from onnxpool.planning import costs, layout, planner
from onnxpool.planning.kinds import ConvertedPlan, LoopPlan
from onnxpool.planning.ways import ROOMS


def requested(plan: Any, x: Any) -> tuple[Any, ...] | None:
    """The request that loops solve, and the memory of its arrays. None if there is nothing to compute."""
    plan = plan.wide if isinstance(plan, ConvertedPlan) else plan
    if not isinstance(plan, LoopPlan) or not plan._runs():
        return None
    if plan.dtype != x.dtype:
        x = np.empty(x.shape, plan.dtype)
    y = plan._result(x, None, plan.result_dtype)
    indices = plan._result(x, None, np.dtype(np.int64)) if plan.reduction.indexed else None
    return plan.request, *plan._memory(x, y, indices)


def difference(request: Any, memory: tuple[Any, ...], rng: random.Random) -> str | None:
    """What the planners decide differently."""
    forms, problems = slow.problems_of(request, *memory)
    ours = layout.planner_of(request, *memory)
    if ours.forms != [*map(slow.seen, forms)]:
        return f"forms {ours.forms}, expected {forms}"
    fitting = [[solver.name for solver in solvers.SOLVERS if solver.fits(problem)] for problem in problems]
    if ours.fitting != fitting:
        return f"solvers {ours.fitting}, expected {fitting}"
    usual = slow.usual_of(problems)
    if ours.usual != (usual.solver.name, problems.index(usual.problem), usual.cost):
        return f"choice {ours.usual}, expected {usual}"
    for i, problem in enumerate(problems):
        if ours.moved(i) != (choice.moved(problem), choice.halo(problem)):
            return f"moves {ours.moved(i)}, expected {choice.moved(problem), choice.halo(problem)}"
        for solver in solvers.SOLVERS:
            if solver.fits(problem):
                work = {unit: amount for unit, amount in ours.amounts(i, solver.name).items() if amount}
                if work != {unit: amount for unit, amount in solver.work(problem).items() if amount}:
                    return f"work {solver.name} {work}, expected {solver.work(problem)}"
                if ours.cost(i, solver.name) != solver.cost(problem):
                    return f"cost {solver.name} {ours.cost(i, solver.name)}, expected {solver.cost(problem)}"
                share = rng.choice(ROOMS)
                stages = slow.stages_for(request, problem, solver, forms[i], memory[-1], share)
                found = ours.stages(solver.name, i, share)
                if found != stages:
                    return f"stages {found}, expected {stages}"
    return None


def compared(seed: int, least: int) -> None:
    """Compare the decisions for random pools."""
    rng = random.Random(seed)
    done = 0
    while done < least:
        case = drawn(rng)
        request = case and requested(*case)
        if request:
            done += 1
            found = difference(request[0], request[1:], rng)
            assert found is None, f"{found}\n{case and case[0]}, strides {case and case[1].strides}"


@pytest.fixture(params=costs.COSTS)
def register_bytes(request, monkeypatch):
    """Put the costs for registers of this many bytes in force."""
    monkeypatch.setattr(slow, "REGISTER", request.param)
    facts = kernels.units, kernels.REGISTER, kernels.PICKS
    planner.prepare(*facts, request.param)
    yield request.param
    planner.prepare(*facts, layout.REGISTER)


@pytest.mark.parametrize(("shape", "kernel", "stride", "worse"), [
    ((64, 56, 123, 1), 2, 1, "direct"),  # 285 us against 112 (Zen 3): each row is an item
    ((64, 56, 9, 1), 2, 1, "apart"),  # 34 against 12: rows without padding are loaded as one
    ((1, 20, 301, 24), 11, 2, "stack"),  # 346 against 60: few values for each window
])
@pytest.mark.usefixtures("register_bytes")
def test_choices_that_once_took_twice_as_long(shape, kernel, stride, worse):
    """For windows along one axis of a plane, costs make the right choice with all registers."""
    plan = onnxpool.MaxPool(kernel_shape=(kernel,), strides=(stride,), axes=(2,)).plan(shape, np.float32)
    request = requested(plan, np.empty(shape, np.float32))
    assert request
    found = layout.planner_of(*request)
    solver, form, _ = found.usual
    assert worse not in (solver, "apart" if found.is_apart(form) else ""), (solver, form)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("register_bytes")
def test_compiled_decisions_are_those_of_plain_python(seed):
    compared(seed, 400)


@pytest.mark.slow
@pytest.mark.usefixtures("register_bytes")
def test_compiled_decisions_of_many_pools():
    compared(100, 50_000)
