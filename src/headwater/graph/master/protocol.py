"""How a step travels on channels.

A master and a task talk in frames of these kinds; the tensors of each are its arrays::

    RUN      master -> task   (session, plan, step, seconds left or None,   the feeds
                               whether to trace it, whether it may resume)
             likewise          (..., whether it may resume, ahead)           the feeds; where ``ahead`` is a version,
                                                                            then the transfer computed from that
    TENSORS  either way       (step, transfer)                              a transfer between the two
                              (step, transfer, how many transfers have come) likewise, of a step that may resume
    DONE     task -> master   (step,)                                       the fetches, and the trace if there is one
                              (step, transfer, its tensors' count)          likewise, then a transfer that came last
                              (step, transfer, its tensors' count,          likewise, then what the next run of the
                               how many tensors follow, their version)      plan will read, which ``ahead`` asked for
    ERROR    task -> master   (step, code, message)                         instead of DONE
    TRANSFER task -> task     (session, step, transfer)                     a transfer between two tasks of which
                                                                            neither is the master
    TAKEN    task -> task     (session, step, transfer)                     none: the transfer has come
    RUN_CALLABLE               (session, callable, seconds or None,         the feeds; answered by DONE or ERROR
             client -> master  0: no trace, 1: a trace,
                               2: with graphs of its parts)
    HOLD     client -> master (session,)                                    the session lives as long as this channel
    RESUME   master -> task   as RUN, then how many transfers have come     the feeds; answered by RESUMED
    RESUMED  task -> master   (step, how many transfers have come,          none; the frames that are sent again follow
                               how many frames are sent again)
    GIVE_UP  master -> task   (step, reason)                                the master wants no answer any more

Where RUN has a version of variables, the master has read these ahead (`headwater.graph.master.ahead`), and has computed
from them what it sends after reading them. Where they are current, the task takes that, and its next frame is whatever
comes after. Otherwise it drops that, and sends the variables, as where RUN has no version. `WANTS_VALUES` is none: it
only asks for the values of the next run.

A task that has sent a transfer to another one looks for TAKEN before its step waits for anything, and before it
answers. Where the channel is lost before that, it sends the transfer again on another one: what is put on a channel
whose other end is gone is lost without a word. So a step needs nothing more of a task that has answered: where its
program ends then, no other part of the step waits for it.

A master that gives a step up says so, where the step may resume, and closes the channel. Frames of a step that is over
are passed over by its number.

A step that may resume outlives its channel. Its master opens another one and sends RESUME; the task goes on with the
step where it is, or begins it where RUN has never come, and each end sends again what the other has not received.
"""

from __future__ import annotations

from typing import Final

from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.frames import Frame

WANTS_VALUES: Final = -1
"""In a RUN frame, in place of the version of values read ahead: there are none yet, but the next run wants some."""


def transfer_of(frame: Frame, sender: str) -> tuple[int, int, int]:
    """What the header of a TENSORS frame says: step, transfer, and how many transfers its sender has received.

    Raises:
      InvalidArgumentError: it says something else.
    """
    match frame.header:
        case (int(step), int(transfer)):
            return step, transfer, 0
        case (int(step), int(transfer), int(received)) if received >= 0:
            return step, transfer, received
        case _:
            raise bad_header(frame, sender)
