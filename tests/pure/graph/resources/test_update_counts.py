"""Numbers of updates of variables, in a file, and the updates lost by a restored incarnation."""

from __future__ import annotations

from pathlib import Path

from headwater.graph.resources.update_counts import SLOTS, UpdateCounts, read_counts
from headwater.graph.server.own_state import Loss, loss_of


def test_counts_are_in_the_file_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "counts")
    counts = UpdateCounts(path, 7, [5])
    counts.numbers[0] += 1
    counts.numbers[SLOTS - 1] += 2
    found = read_counts(path, 7)
    assert found is not None
    assert (found[0], found[1], found[SLOTS - 1]) == (6, 0, 2)
    assert read_counts(path, 8) is None  # of other variables
    assert not (tmp_path / "counts.tmp").exists()


def test_invalid_file_has_no_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    assert read_counts(str(path), 7) is None
    UpdateCounts(str(path), 7)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_counts(str(path), 7) is None


def test_earlier_process_does_not_change_the_new_file(tmp_path: Path) -> None:
    path = str(tmp_path / "counts")
    former = UpdateCounts(path, 7)
    UpdateCounts(path, 7, [3])
    former.numbers[0] = 100
    found = read_counts(path, 7)
    assert found is not None
    assert found[0] == 3


def test_lost_updates_are_counted_by_variable() -> None:
    saved = {"w": (0, 10), "m": (1, 10), "b": (2, 4), "still": (3, 1)}
    loss = loss_of(saved, [12, 12, 5, 1], 0.0)
    assert loss.updates == {"w": (11, 12), "m": (11, 12), "b": (5, 5)}
    assert loss.max_lost_updates == 2
    assert str(loss).endswith(": updates 11 to 12 of w, m; update 5 of b")


def test_a_file_older_than_the_state_shows_no_loss() -> None:
    assert loss_of({"w": (0, 10)}, [8], 0.0) == Loss(at=0.0, updates={})


def test_unknown_losses_are_reported() -> None:
    loss = loss_of({"w": (0, 10)}, None, 0.0)
    assert loss.max_lost_updates == 0
    assert "not known" in str(loss)


def test_long_lists_are_cut() -> None:
    saved = {f"v{number}": (number, number) for number in range(9)}
    assert str(loss_of(saved, [100] * 9, 0.0)).endswith("of v4; and those of 4 other groups of variables")
    saved = {f"v{number}": (number, 1) for number in range(9)}
    assert str(loss_of(saved, [2] * 9, 0.0)).endswith("update 2 of v0, v1, v2, v3, v4 and 4 more")
