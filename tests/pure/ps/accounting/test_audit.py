"""Reports on journals, and on faults in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.telemetry.troubles import Troubles
from headwater.data.io.disk import mounted
from headwater.errors import NotFoundError
from headwater.platform.cli.audit import show_audit
from headwater.ps.accounting.audit import audit
from headwater.ps.accounting.journal import Journal
from headwater.ps.accounting.order import shuffled
from tests.support.faulty_disk import FaultyDisk

ONE, TWO = "/job:worker/task:1", "/job:worker/task:2"
PS = "/job:ps/task:0"


class Incarnation:
    """A journal of one incarnation, whose clock shows the number of its records."""

    def __init__(self, folder: Path, kind: str = "begins", update: int = 0, *, at: int = 0, run: int = 5) -> None:
        self._now = float(at)
        self.journal = Journal(str(folder), (kind, run, "params", PS, self._now, update), clock=lambda: self._now)

    def epoch(self, epoch: int, size: int = 10) -> Incarnation:
        self.journal.add("epoch", 0, epoch, size, "examples", 4, True, 7)
        return self

    def applied(self, update: int, *given: tuple[str, int, int, int]) -> Incarnation:
        self._now += 1
        self.journal.add("applied", update, self._now, 0, [list(one) for one in given])
        return self

    def over(self, epoch: int) -> Incarnation:
        self.journal.add("over", self._now, 0, epoch)
        return self

    def back(self, *span: int, aside: bool = False) -> Incarnation:
        self.journal.add("back", self._now, 0, ONE, *span, 3, aside, "it was killed")
        return self

    def end(self) -> None:
        self.journal.close()


def whole(incarnation: Incarnation, epoch: int, update: int) -> Incarnation:
    incarnation.epoch(epoch)
    incarnation.applied(update, (ONE, epoch, 0, 4)).applied(update + 1, (TWO, epoch, 4, 8), (ONE, epoch, 8, 10))
    return incarnation.over(epoch)


def shown(
    folder: Path, capsys: pytest.CaptureFixture[str], example: int | None = None, as_json: bool = False
) -> tuple[int, str]:
    code = show_audit(str(folder), example=example, as_json=as_json)
    return code, capsys.readouterr().out


def test_whole_epochs_are_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole(whole(Incarnation(tmp_path), 0, 1), 1, 3).back(1, 0, 4).epoch(2).applied(5, (ONE, 2, 0, 4)).end()
    code, text = shown(tmp_path, capsys)
    assert code == 0
    assert f"epoch 0: 10 examples, each applied once: {ONE} 6, {TWO} 4\n" in text
    assert f"epoch 1: 10 examples, each applied once: {ONE} 6, {TWO} 4; 4 were assigned again" in text
    assert f"epoch 2, not over: 4 of 10 examples applied: {ONE} 4" in text
    assert "not applied yet: [4, 10)" in text
    assert "exact: each example of every epoch that is over (2) was applied once; 1 not over" in text


def test_missing_and_repeated_examples_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incarnation = whole(Incarnation(tmp_path), 0, 1).applied(3, (TWO, 0, 3, 5)).epoch(1)
    incarnation.applied(4, (ONE, 1, 0, 4), (ONE, 1, 8, 12)).over(1).end()
    code, text = shown(tmp_path, capsys)
    assert code == 1
    assert re.search(
        rf"APPLIED 2 TIMES: \[3, 4\) by {ONE} with update 1 at 1970-.*; by {TWO} with update 3 at 1970-", text
    )
    assert f"APPLIED 2 TIMES: [4, 5) by {TWO} with update 2" in text
    assert "MISSING: [4, 8)" in text
    assert f"OUTSIDE THE EPOCH: [8, 12) by {ONE} with update 4" in text
    assert "NOT EXACT: 2 of 2 epochs are wrong" in text
    (run,) = audit(str(tmp_path)).runs.values()
    assert run.epochs[0, 0].missing() == []


def test_updates_undone_by_a_restore_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole(Incarnation(tmp_path), 0, 1).epoch(1).applied(3, (ONE, 1, 0, 4)).end()
    incarnation = Incarnation(tmp_path, "restored", 1, at=100).applied(2, (TWO, 0, 4, 10)).over(0)
    incarnation.epoch(1).applied(3, (ONE, 1, 0, 10)).over(1).end()
    code, text = shown(tmp_path, capsys)
    assert code == 0, text
    assert f"{PS} was restarted with the parameters of update 1: 2 updates, of 10 examples, do not count" in text
    assert f"epoch 0: 10 examples, each applied once: {ONE} 4, {TWO} 6" in text
    (run,) = audit(str(tmp_path)).runs.values()
    assert len(run.files) == 2


def test_undone_examples_are_missing_unless_repeated(tmp_path: Path) -> None:
    whole(Incarnation(tmp_path), 0, 1).end()
    Incarnation(tmp_path, "restored", 1, at=100).over(0).end()
    found = audit(str(tmp_path))
    assert not found.exact
    assert found.runs[5].epochs[0, 0].missing() == [(4, 10)]


def test_another_ledger_is_another_run(tmp_path: Path) -> None:
    whole(Incarnation(tmp_path), 0, 1).end()
    whole(Incarnation(tmp_path, run=6, at=100), 0, 1).end()
    found = audit(str(tmp_path))
    assert found.exact
    assert list(found.runs) == [5, 6]


def test_ranges_that_were_set_aside_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Incarnation(tmp_path).epoch(0).applied(1, (ONE, 0, 0, 8)).back(0, 8, 10, aside=True).end()
    code, text = shown(tmp_path, capsys)
    assert code == 0  # the epoch is not over
    assert "SET ASIDE: [8, 10): it was killed" in text


def test_one_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole(Incarnation(tmp_path), 0, 1).end()
    place = shuffled(7, 0, 10).tolist().index(3)
    worker, update = (ONE, 1) if place < 4 else (TWO, 2) if place < 8 else (ONE, 2)
    _, text = shown(tmp_path, capsys, example=3)
    assert f"number 3, at position {place}, applied once, by {worker} with update {update} at" in text
    assert "has no number 10: it has 10 examples" in shown(tmp_path, capsys, example=10)[1]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole(Incarnation(tmp_path), 0, 1).applied(3, (TWO, 0, 3, 5)).end()
    code, text = shown(tmp_path, capsys, as_json=True)
    found = json.loads(text)
    assert (code, found["exact"]) == (1, False)
    (epoch,) = found["runs"][0]["epochs"]
    assert [double["range"] for double in epoch["double"]] == [[3, 4], [4, 5]]
    assert epoch["workers"] == {ONE: 6, TWO: 6}


@pytest.mark.parametrize("cut", [False, True])
def test_a_damaged_file_is_named_with_its_offset(cut: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incarnation = Incarnation(tmp_path)
    incarnation.journal.flush()
    (path,) = tmp_path.iterdir()
    offset = path.stat().st_size
    whole(incarnation, 0, 1).end()
    data = bytearray(path.read_bytes())
    data[offset + 20] ^= 1
    path.write_bytes(data[: offset + 20] if cut else data)
    code, text = shown(tmp_path, capsys)
    assert code == 1
    assert re.search(rf"DAMAGED {re.escape(str(path))}: the record is (damaged|cut off) at offset {offset}", text)


@pytest.mark.parametrize("record", [["nonsense"], ["applied", 1, 2.0, 0, [[ONE, 9, 0, 1]]], ["over"], []])
def test_records_that_make_no_sense_are_named(record: list[Any], tmp_path: Path) -> None:
    incarnation = whole(Incarnation(tmp_path), 0, 1)
    incarnation.journal.add(*record)
    incarnation.end()
    (damage,) = audit(str(tmp_path)).damage
    assert re.search(r"examples\.params.*: the record at offset \d+ is not a journal record", damage)


def test_a_folder_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="has no journal of examples"):
        audit(str(tmp_path))


def test_a_full_disk_costs_no_record(tmp_path: Path) -> None:
    disk, troubles = FaultyDisk(), Troubles()
    with mounted(tmp_path, disk):
        incarnation = Incarnation(tmp_path)
        incarnation.journal = Journal(str(tmp_path), ("begins", 5, "params", PS, 0.0, 0), troubles=troubles, retry_s=0)
        incarnation.epoch(0).applied(1, (ONE, 0, 0, 4)).journal.flush()
        disk.room = 30
        incarnation.applied(2, (TWO, 0, 4, 8)).journal.flush()
        incarnation.applied(3, (TWO, 0, 8, 10)).journal.flush()
        (trouble,) = troubles.all_failures()
        assert trouble.failures == 2
        disk.room = None
        incarnation.over(0).journal.flush()
    assert not troubles.all_failures()[0].message
    found = audit(str(tmp_path))
    assert found.exact, found
    assert [entry.update for entry in found.runs[5].epochs[0, 0].entries] == [1, 2, 3]
    assert len(found.runs[5].files) == 2
