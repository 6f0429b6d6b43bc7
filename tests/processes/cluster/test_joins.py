"""Workers that join a running job of 200 variables do not hold up the worker that trains.

How long the longest step takes is measured in medians of the same worker's steps. The machine does other things, too:
the bound is what the worker meets beside a second one that rests, where that is more.
"""

from __future__ import annotations

import pytest

from tests.support.processes import EXEC

#: How many medians of its steps a worker's longest step may take while others join.
BOUND = 5.0
RESTS, JOINS = 0, 2
#: How many joins have to keep it, and how many rounds may fail to, for what else the machine does.
ENOUGH, MISSES = 10, 5


@pytest.mark.long
def test_no_step_waits_for_workers_that_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("benchmarks")
    from growth import by_joins

    joins, kept, missed = 0, BOUND, list[float]()
    while joins < ENOUGH:
        joined = by_joins(list(EXEC), JOINS, 15.0).told
        if joined["longest_medians"] <= kept:
            joins += joined["turns"]
            continue
        missed.append(joined["longest_medians"])
        assert len(missed) <= MISSES, f"longest steps while others joined: {missed} medians; kept: {kept}"
        kept = max(kept, by_joins(list(EXEC), RESTS, 15.0).told["longest_medians"])
