"""``headwater audit LOGDIR``: checks whether each example of an epoch was applied exactly once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from headwater.ps.accounting.audit import Audit, Entry, Epoch, Run, audit, spans_text


def show_audit(logdir: str, *, example: int | None, as_json: bool) -> int:
    """Prints the result of auditing the journals of a folder.

    Args:
      example: reports only when and by which worker this example was applied; None for all examples.
      as_json: print JSON.

    Returns:
      The exit code: 1 if a finished epoch is not exact, or a file is damaged.

    Raises:
      NotFoundError: there is no journal.
    """
    result = audit(logdir)
    if as_json:
        print(json.dumps(_to_json(result)))
        return 0 if result.exact else 1
    for number, run in result.runs.items():
        lives = f"{len(run.files)} files" if len(run.files) > 1 else "1 file"
        print(f"run {number:016x} of {run.name!r}, kept by {run.task} in {lives}")
        for back in run.rollbacks:
            print(
                f"  {_time(back.time)}: {run.task} was restarted with the parameters of update {back.update}: "
                f"{back.updates} updates, of {back.places} examples, do not count"
            )
        for epoch in run.epochs.values():
            for line in _lines(epoch) if example is None else _example_lines(epoch, example):
                print(f"  {line}")
    for damage in result.damage:
        print(f"DAMAGED {damage}")
    print(_verdict(result))
    return 0 if result.exact else 1


def _verdict(result: Audit) -> str:
    epochs = [epoch for run in result.runs.values() for epoch in run.epochs.values()]
    over = sum(epoch.over for epoch in epochs)
    open_ = f"; {len(epochs) - over} not over" if over < len(epochs) else ""
    if result.exact:
        return f"exact: each example of every epoch that is over ({over}) was applied once{open_}"
    wrong = sum(not epoch.exact for epoch in epochs)
    return f"NOT EXACT: {wrong} of {len(epochs)} epochs are wrong, {len(result.damage)} files are damaged{open_}"


def _lines(epoch: Epoch) -> list[str]:
    name = _name(epoch)
    missing, double, beyond = epoch.missing(), epoch.double(), epoch.outside_epoch()
    applied = epoch.size - sum(stop - start for start, stop in missing)
    workers = ", ".join(f"{worker} {count}" for worker, count in epoch.by_worker().items())
    again = f"; {epoch.back} were assigned again" if epoch.back else ""
    if epoch.over and epoch.exact:
        lines = [f"{name}: {epoch.size} {epoch.unit}, each applied once: {workers}{again}"]
    else:
        state = "over" if epoch.over else "not over"
        lines = [f"{name}, {state}: {applied} of {epoch.size} {epoch.unit} applied: {workers}{again}"]
        if missing:
            lines.append(f"  {'MISSING' if epoch.over else 'not applied yet'}: {spans_text(missing)}")
    for span, entries in double:
        lines.append(f"  APPLIED {len(entries)} TIMES: {spans_text([span])} {_who(entries)}")
    for entry in beyond:
        lines.append(f"  OUTSIDE THE EPOCH: {spans_text([(entry.start, entry.stop)])} {_who([entry])}")
    for span, reason in epoch.aside.items():
        if any(start < span[1] and span[0] < stop for start, stop in missing):
            lines.append(f"  SET ASIDE: {spans_text([span])}: {reason}")
    return lines


def _example_lines(epoch: Epoch, example: int) -> list[str]:
    if not 0 <= example < epoch.size:
        return [f"{_name(epoch)} has no number {example}: it has {epoch.size} {epoch.unit}"]
    if epoch.unit == "places":
        return [f"{_name(epoch)} is a subset of all examples: its journal has positions, not examples"]
    place = epoch.place_of(example)
    entries = [entry for entry in epoch.entries if entry.start <= place < entry.stop]
    times = {0: "not applied", 1: "applied once,"}.get(len(entries), f"applied {len(entries)} times,")
    return [f"{_name(epoch)}: number {example}, at position {place}, {times} {_who(entries)}".rstrip()]


def _name(epoch: Epoch) -> str:
    return f"epoch {epoch.epoch}" + (f" of training {epoch.training}" if epoch.training else "")


def _who(entries: Sequence[Entry]) -> str:
    return "; ".join(f"by {entry.worker} with update {entry.update} at {_time(entry.time)}" for entry in entries)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "milliseconds")


def _to_json(result: Audit) -> dict[str, object]:
    return {
        "exact": result.exact,
        "damage": list(result.damage),
        "runs": [_run_json(*one) for one in result.runs.items()],
    }


def _run_json(number: int, run: Run) -> dict[str, object]:
    return {
        "run": number,
        "name": run.name,
        "task": run.task,
        "files": run.files,
        "rollbacks": [asdict(back) for back in run.rollbacks],
        "epochs": [
            {
                "training": epoch.training,
                "epoch": epoch.epoch,
                "size": epoch.size,
                "unit": epoch.unit,
                "over": epoch.over,
                "exact": epoch.exact,
                "missing": epoch.missing(),
                "double": [
                    {"range": span, "entries": [entry._asdict() for entry in entries]}
                    for span, entries in epoch.double()
                ],
                "workers": epoch.by_worker(),
                "assigned again": epoch.back,
                "set aside": [[*span, reason] for span, reason in epoch.aside.items()],
            }
            for epoch in run.epochs.values()
        ],
    }
