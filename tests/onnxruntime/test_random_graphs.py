"""Random graphs give the same values, or the same error, whichever way sessions are made."""

from collections import Counter

import pytest
from graph_campaign import check
from random_graphs import draw

QUICK, LONG = 60, 3000


def run(seeds):
    """The graphs for which a session computes something else, and the number of graphs of each kind."""
    outcomes = {seed: check(draw(seed)) for seed in seeds}
    failures = [f"seed {seed}: {outcome.problems}" for seed, outcome in outcomes.items() if outcome.problems]
    return failures, Counter(outcome.kind for outcome in outcomes.values())


def test_random_graphs():
    """Sessions agree on a few graphs of every kind. `python -m tests.campaign sessions` compares any number."""
    failures, kinds = run(range(QUICK))
    assert failures == []
    assert kinds["the same"] > QUICK // 2
    assert kinds["wrong attribute"]
    assert kinds["refused by onnxruntime"]


@pytest.mark.slow
def test_many_random_graphs():
    """Sessions agree on many graphs, whose seeds no other run uses."""
    failures, kinds = run(range(QUICK, QUICK + LONG))
    assert failures == []
    assert kinds["refused by onnxpool"]
