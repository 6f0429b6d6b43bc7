"""How a step travels on channels.

A master and a task talk in frames of these kinds; the tensors of each are its arrays::

    RUN      master -> task   (session, plan, step, seconds left or None,   the feeds
                               whether to trace it)
    TENSORS  either way       (step, transfer)                              a transfer between the two
    DONE     task -> master   (step,)                                       the fetches, and the trace if there is one
                              (step, transfer, its tensors' count)          likewise, then a transfer that came last
    ERROR    task -> master   (step, code, message)                         instead of DONE
    PUSH     task -> task     (session, step, transfer)                     a transfer between two tasks of which
                                                                            neither is the master
    CALL     client -> master (session, callable, seconds or None,          the feeds; answered by DONE or ERROR
                               whether to trace it)
    HOLD     client -> master (session,)                                    the session lives as long as this channel

A master that gives a step up closes the channel. Frames of a step that is over are passed over by its number.
"""

from __future__ import annotations

from typing import Final

from headwater.errors import InternalError, InvalidArgumentError, OpError, make_error
from headwater.transport.frames import Frame

RUN: Final = 1
TENSORS: Final = 2
DONE: Final = 3
ERROR: Final = 4
PUSH: Final = 5
CALL: Final = 6
HOLD: Final = 7

_MAX_MESSAGE = 1 << 14


def error_frame(step: int, error: BaseException, task: str) -> Frame:
    """An error as a frame for the master; what is none of ours becomes InternalError."""
    if not isinstance(error, OpError):
        error = InternalError(None, None, f"{type(error).__name__} on {task}: {error}")
    return Frame(ERROR, (step, error.error_code, error.message[:_MAX_MESSAGE]), ())


def raise_error(frame: Frame, task: str) -> None:
    """Raises what an ERROR frame says, with the task that sent it."""
    match frame.header:
        case (int(), int(code), str(message)):
            raise make_error(code, message if task in message else f"{message} [on {task}]")
        case _:
            raise bad_header(frame, task)


def transfer_of(frame: Frame, sender: str) -> tuple[int, int]:
    """Step and transfer of a TENSORS frame; InvalidArgumentError when its header says something else."""
    match frame.header:
        case (int(step), int(transfer)):
            return step, transfer
        case _:
            raise bad_header(frame, sender)


def bad_header(frame: Frame, sender: str) -> InvalidArgumentError:
    """The error for a frame whose header is not one of its kind."""
    return InvalidArgumentError(
        None, None, f"{sender} sent a frame of kind {frame.kind} with the header {str(frame.header)[:80]}"
    )
