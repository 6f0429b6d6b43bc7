"""A step that several tasks share has the same results as on one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings

from headwater.graph.session import Session
from tests.support.cluster import memory_cluster
from tests.support.random_graphs import Built, Program, build, programs


def _outcome(built: Built, target: str) -> Sequence[Any]:
    """Returns the fetches of two steps, one after the other, and the variables after each."""
    request = built.request
    feeds = dict(zip(request.feeds, built.values, strict=True))
    with Session(target, built.graph) as session:
        session.run(built.initializers)
        return [
            session.run(fetches, fed)
            for fetches, fed in [([*request.fetches, *request.targets], feeds), (built.references, None)] * 2
        ]


def agree(program: Program) -> None:
    """Raises AssertionError if the outcomes differ."""
    with memory_cluster(worker=1, ps=2) as cluster:
        shared = _outcome(build(program, placed=True), cluster.target("worker"))
    np.testing.assert_equal(shared, _outcome(build(program, placed=False), ""))


@settings(max_examples=25, deadline=None)
@given(programs)
def test_tasks_agree(program: Program) -> None:
    agree(program)
