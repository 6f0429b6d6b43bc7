"""The protocol of a step on channels.

A master and a task exchange frames of these kinds; the tensors of a frame are its arrays::

    RUN      master -> task   (session, plan, step, seconds left or None,   the feeds
                               whether to trace it, whether it may resume)
                               (..., whether it may resume, ahead)           the feeds; if ``ahead`` is a version,
                                                                            then the transfer computed from it
    TENSORS  either way       (step, transfer)                              a transfer between the two
                              (step, transfer, transfers received)          a transfer of a resumable step
    DONE     task -> master   (step,)                                       the fetches, and the trace if there is one
                              (step, transfer, its tensors' count)          as before, then the last transfer
                              (step, transfer, its tensors' count,          as before, then the values for the next run,
                               number of values, their version)             which ``ahead`` requested; `NO_TRANSFER`
                                                                            and 0 if there is no last transfer
    ERROR    task -> master   (step, code, message)                         instead of DONE
    TRANSFER task -> task     (session, step, transfer)                     a transfer between two tasks of which
                                                                            neither is the master
    TAKEN    task -> task     (session, step, transfer)                     none: acknowledges the transfer
    RUN_CALLABLE               (session, callable, seconds or None,         the feeds; answered by DONE or ERROR
             client -> master  0: no trace, 1: a trace,
                               2: with graphs of its parts)
    HOLD     client -> master (session,)                                    the session ends with this channel
    RESUME   master -> task   as RUN, then number of transfers received     the feeds; answered by RESUMED
    RESUMED  task -> master   (step, number of transfers received,           none; the frames that are sent again follow
                               number of frames sent again)
    GIVE_UP  master -> task   (step, reason)                                the master no longer wants an answer

If RUN has a version of variables, the master has read that version ahead (`headwater.graph.master.ahead`), and RUN
includes the transfer that it has computed from the values. If the version is current, the task accepts the transfer and
continues after it. Otherwise it drops the transfer and sends the variables, as for a RUN without a version.
`WANTS_VALUES` is not a version: it only requests the values for the next run.

A task that has sent a transfer to another task waits for TAKEN before its step waits for anything else, and before it
answers. If the channel is lost before TAKEN, the task sends the transfer again on another channel, because frames sent
on a broken channel are lost without an error. So when a task has answered, all of its transfers have arrived. The
task's program may then end, because no other part of the step waits for it.

A master that abandons a step closes the channel. If the step is resumable, the master sends GIVE_UP first; otherwise
the task would wait for the master to reconnect. Frames of a step that has ended are recognised by the number of the
step, and ignored.

A resumable step does not end with its channel. Its master opens another channel and sends RESUME. The task then
continues the step, or starts it if RUN was never received, and each end sends again the frames that the other has not
received.
"""

from __future__ import annotations

from typing import Final

from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.frames import Frame

WANTS_VALUES: Final = -1
"""In place of the version in a RUN frame without values read ahead: requests values for the next run."""
NO_TRANSFER: Final = -1
"""In place of the last transfer in a DONE frame without one. A transfer may have no tensors: control dependencies."""


def transfer_of(frame: Frame, sender: str) -> tuple[int, int, int]:
    """Parses the header of a TENSORS frame: step, transfer, and the number of transfers that its sender has received.

    Raises:
      InvalidArgumentError: the header is malformed.
    """
    match frame.header:
        case (int(step), int(transfer)):
            return step, transfer, 0
        case (int(step), int(transfer), int(received)) if received >= 0:
            return step, transfer, received
        case _:
            raise bad_header(frame, sender)
