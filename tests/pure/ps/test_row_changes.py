"""A save contains the rows as they were when it began, despite concurrent changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.ps.row_changes import RowChanges

ROWS = 24
SETS = st.sets(st.integers(0, ROWS - 1), max_size=8)


class Table:
    """A table whose rows change in place."""

    def __init__(self) -> None:
        self.parts = [np.zeros((ROWS, 2), np.float32), np.zeros(ROWS, np.int64)]
        self.changes = RowChanges(ROWS)

    def change(self, rows: set[int], value: int) -> None:
        numbers = np.array(sorted(rows), np.int64)
        self.changes.will_change(numbers, self.parts)
        for part in self.parts:
            part[numbers] = value

    def take(self, copy: list[np.ndarray]) -> bool:
        """Takes some rows of a save to ``copy``; whether there were any."""
        taken = self.changes.next_rows(self.parts, 5)
        if taken is None:
            return False
        numbers, arrays = taken
        for part, array in zip(copy, arrays, strict=True):
            part[numbers] = array
        return True


@given(st.lists(st.tuples(st.booleans(), SETS, st.lists(SETS, max_size=6)), max_size=6))
def test_a_copy_that_gets_every_save_is_the_table_of_the_moment_when_the_last_began(
    saves: list[tuple[bool, set[int], list[set[int]]]],
) -> None:
    table = Table()
    copy = [np.full_like(part, -1) for part in table.parts]
    value = 0
    for number, (whole, before, meanwhile) in enumerate(saves):
        value += 1
        table.change(before, value)
        wanted = [part.copy() for part in table.parts]
        table.changes.start_save(whole=whole or number == 0)
        for rows in meanwhile:
            value += 1
            table.change(rows, value)
            table.take(copy)
        while table.take(copy):
            pass
        for part, other in zip(wanted, copy, strict=True):
            np.testing.assert_array_equal(part, other)


def test_rows_that_did_not_change_are_not_saved_again_and_a_failed_save_is_made_up_for() -> None:
    table = Table()
    assert table.changes.start_save(whole=False) == ROWS
    while table.changes.next_rows(table.parts, 5) is not None:
        pass
    table.change({3, 4, 20}, 1)
    assert table.changes.start_save(whole=False) == 3
    table.changes.abandon_save()
    assert table.changes.next_rows(table.parts, 5) is None
    assert table.changes.start_save(whole=False) == ROWS
