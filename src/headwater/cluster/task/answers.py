"""Answers shared by all services: errors as frames, and errors about malformed frames."""

from __future__ import annotations

import logging

from headwater.cluster.task.kinds import ERROR, describe
from headwater.cluster.transport.frames import Frame
from headwater.errors import InternalError, InvalidArgumentError, OpError, ResourceExhaustedError, make_error

_log = logging.getLogger("headwater")

_MAX_MESSAGE = 1 << 14


def error_frame(step: int, error: BaseException, task: str) -> Frame:
    """Returns an error as a frame. Errors other than `OpError` become InternalError (logged) or ResourceExhaustedError.

    Args:
      step: number of the step that failed; 0 if there are no steps of graphs.
      task: the name of the task where it occurred.
    """
    if isinstance(error, MemoryError):
        error = ResourceExhaustedError(f"{task} has no memory: {error or 'it cannot allocate'}")
    if not isinstance(error, OpError):
        _log.error("%s could not answer", task, exc_info=error)
        error = InternalError(f"{type(error).__name__} on {task}: {error}")
    return Frame(ERROR, (step, error.error_code, error.message[:_MAX_MESSAGE]), ())


def raise_error(frame: Frame, task: str) -> None:
    """Raises the error that an ERROR frame carries; the message names ``task``, which sent the frame."""
    match frame.header:
        case (int(), int(code), str(message)):
            raise make_error(code, message if task in message else f"{message} [on {task}]")
        case _:
            raise bad_header(frame, task)


def bad_header(frame: Frame, sender: str) -> InvalidArgumentError:
    """Returns the error for a frame with a malformed header or of an unexpected kind."""
    return InvalidArgumentError(
        f"{sender} sent a frame of kind {describe(frame.kind)} with the header {str(frame.header)[:80]}"
    )
