"""How a step travels on channels.

A master and a task talk in frames of these kinds; the tensors of each are its arrays::

    RUN      master -> task   (session, plan, step, seconds left or None,   the feeds
                               whether to trace it)
    TENSORS  either way       (step, transfer)                              a transfer between the two
    DONE     task -> master   (step,)                                       the fetches, and the trace if there is one
                              (step, transfer, its tensors' count)          likewise, then a transfer that came last
    ERROR    task -> master   (step, code, message)                         instead of DONE
    TRANSFER task -> task     (session, step, transfer)                     a transfer between two tasks of which
                                                                            neither is the master
    RUN_CALLABLE               (session, callable, seconds or None,         the feeds; answered by DONE or ERROR
             client -> master  whether to trace it)
    HOLD     client -> master (session,)                                    the session lives as long as this channel

A master that gives a step up closes the channel. Frames of a step that is over are passed over by its number.
"""

from __future__ import annotations

from headwater.task.answers import bad_header
from headwater.transport.frames import Frame


def transfer_of(frame: Frame, sender: str) -> tuple[int, int]:
    """Step and transfer of a TENSORS frame; InvalidArgumentError when its header says something else."""
    match frame.header:
        case (int(step), int(transfer)):
            return step, transfer
        case _:
            raise bad_header(frame, sender)
