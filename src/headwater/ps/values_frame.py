"""Fields of the header of a VALUES frame, and of a frame with gradients."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.frames import Frame
from headwater.ps.accounting.ledger import Work


def carries_examples(frame: Frame | None) -> bool:
    """Returns whether a frame carries the gradient of ranges of examples, to the first ``ps``."""
    return frame is not None and frame.kind == kinds.PUSH and bool(frame.header[5]) and bool(frame.header[5][0])


def is_dropped(answer: Frame | None) -> bool:
    """Returns whether a ``ps`` has dropped a gradient. A restarted ``ps`` gives no answer, and has dropped it, too."""
    return answer is None or not answer.header[1]


_Values = tuple[
    int, bool, int, "tuple[int, int] | None", Sequence[str], "tuple[Work, int] | str | None", "bytes | None"
]


def values_header(frame: Frame, task: str) -> _Values:
    """Returns the version, whether gradients were accepted, the step number, the worker's share of a batch, the names
    of the optimizer's state, the assigned examples, and the ledger.

    Raises:
      InternalError: ``task`` has sent something else.
    """
    assigned_work: tuple[Work, int] | str | None
    share: tuple[int, int] | None
    match frame.header:
        case (int(version), bool(applied), int(step_number), its_share, names, given, bytes() | None as ledger):
            match given:
                case (int(epoch), int(start), int(stop), int(seed)):
                    assigned_work = Work(epoch, start, stop), seed
                case str() | None:
                    assigned_work = given
                case _:
                    raise bad_header(frame, task)
            match its_share:
                case (int(number), int(count)):
                    share = number, count
                case None:
                    share = None
                case _:
                    raise bad_header(frame, task)
            return version, applied, step_number, share, names, assigned_work, ledger
        case _:
            raise bad_header(frame, task)
