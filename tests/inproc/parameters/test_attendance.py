"""Which workers take part at a ``ps`` that goes on where another one ended."""

from __future__ import annotations

import jax
import optax

from headwater.consistency import from_text
from headwater.parameters.host import HostedParameters
from headwater.parameters.layout import make_layout
from headwater.parameters.optax_updates import OptaxUpdater, leaf_specs

FIRST, SECOND = "/job:worker/task:0", "/job:worker/task:1"


def test_a_worker_that_has_yet_to_come_is_waited_for_while_its_task_answers() -> None:
    now, answering = 0.0, {SECOND}
    layout, structure = make_layout(leaf_specs({}), 1), jax.tree.structure({})
    host = HostedParameters(
        "params",
        "/job:ps/task:0",
        0,
        layout,
        OptaxUpdater(layout, 0, structure, optax.sgd(1.0)),
        from_text("sync", 2),
        clock=lambda: now,
        answers=lambda worker: worker in answering,
    )
    with host.lock:
        host.workers.expect({FIRST, SECOND}, set(), 15.0)

    def left_at(time: float) -> set[str]:
        nonlocal now
        now = time
        host.workers.leave_absent()
        return set(host.updates.state.members)

    assert left_at(14.0) == {FIRST, SECOND}
    assert left_at(15.0) == {SECOND}
    answering.clear()
    assert left_at(29.0) == {SECOND}
    assert left_at(30.0) == set()
