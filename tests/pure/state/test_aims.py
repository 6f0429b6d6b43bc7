"""Desired placement of a shard's replicas."""

from __future__ import annotations

import pytest

from headwater.state.aims import Move, Placement, Step, feasible_placement, next_step
from headwater.state.views import Copy, View

ALONE = View(3, Copy(0, 7), None)
MOVING = View(4, Copy(0, 7), Copy(2, 9))
MOVED = View(5, Copy(2, 9), Copy(0, 7))


@pytest.mark.parametrize(
    ("view", "aim", "staying", "settled", "step"),
    [
        (ALONE, None, [0, 1, 2], Placement(0, None), Step(Move.STAY)),
        (ALONE, Placement(2, None), [0, 1, 2], Placement(2, None), Step(Move.BRING, 2)),
        (MOVING, Placement(2, None), [0, 1, 2], Placement(2, None), Step(Move.HAND_OFF)),
        (MOVED, Placement(2, None), [0, 1, 2], Placement(2, None), Step(Move.DROP)),
        (MOVING, Placement(0, None), [0, 1, 2], Placement(0, None), Step(Move.DROP)),
        (ALONE, None, [1, 2], Placement(1, None), Step(Move.BRING, 1)),
        (MOVING, Placement(2, None), [0, 1], Placement(0, None), Step(Move.DROP)),
        (ALONE, Placement(1, None), [], Placement(0, None), Step(Move.STAY)),
    ],
    ids=[
        "stays",
        "is sent",
        "is handed off",
        "is dropped at its previous place",
        "stays after all",
        "leaves a ps that shuts down",
        "is not sent to a ps that shuts down",
        "stays where all shut down",
    ],
)
def test_a_shard_with_one_replica(
    view: View, aim: Placement | None, staying: list[int], settled: Placement, step: Step
) -> None:
    assert feasible_placement(view, aim, None, staying) == settled
    assert next_step(view, settled) == step
