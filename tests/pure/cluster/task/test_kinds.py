"""The table of kinds of frames."""

from __future__ import annotations

from headwater.cluster.task import kinds
from headwater.cluster.transport.frames import FIRST_RESERVED_KIND


def test_each_kind_has_one_name() -> None:
    named = [name for name in vars(kinds) if name.isupper() and name != "NAMES"]
    assert len(kinds.NAMES) == len(named)
    assert max(kinds.NAMES) < FIRST_RESERVED_KIND


def test_kinds_for_people() -> None:
    assert kinds.describe(kinds.PUSH) == "PUSH (69)"
    assert kinds.describe(9999) == "9999, which belongs to no service"
