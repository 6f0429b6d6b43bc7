"""Protocol of a worker and a ``ps`` for sets of parameters.

A worker keeps one channel to each ``ps``. It sends one frame and gets one answer, in turn; while an answer takes long,
WAIT frames give the reason. The tensors of each frame are its arrays::

    HELLO   (set, worker, signature, consistency, start of the worker's process in seconds since 1970, incarnation of
            its program, number of finished trainings that it knows of or -1, read incarnation, read version,
            description or None)
                                            the read ones name the values that the worker has read here: the incarnation
                                            of the ``ps`` (0: none were read), and their version. The description tells
                                            a ``ps`` how to host a set that its program does not create. Answered by
                                            WELCOME (generation of the values or 0, version, finished trainings,
                                            epoch, seed, incarnation of the ``ps``)
    FILL    (version, tables, ledger, over)   all values except tables: blocks, then the optimizer's state; the rows
                                            of ``tables`` have been written, rows of other tables are initialized.
                                            ``over``: the chief's program has ended, so another worker sends the
                                            values. Answered by DONE (generation of the values)
    READY   ()                              answered by the same DONE, once there are values
    PULL    (everything, extras, step_request, work, keeps, number)   answered by VALUES
    PUSH    (version, weight, extras, step_request, hyperparameters, work, part, keeps, number)
                                            gradients of the optimized blocks, changes of other variables with the
                                            numbers ``extras``, rows of tables; answered by VALUES
    REST    (step_request,)                         the worker has no data, so no other worker waits for it. Answered by
                                            DONE; the first ``ps`` delays its answer until the worker should ask again
    HOLDS   (ranges,)                       answered by DONE (whether the worker still has these ranges of examples)
    ROWS    ()                              row numbers, one array for each table; answered by DONE with the rows
    ROWS    (form,)                         the same, with rows in another form (`headwater.ps.row_encoding`)
    READ_ROWS   (table, start, stop, parts)   answered by DONE with these rows of a table: the values (part 0), or
                                            their optimizer state (part 1 and up); no ``parts``: all
    WRITE_ROWS  (table, start)              values of rows from ``start`` on, then their optimizer state, unless
                                            that is initialized; answered by DONE
    ASSIGN  ()                              values of all blocks except tables; the optimizer's state, unless that
                                            is unchanged; answered by DONE
    BEGIN   (number of the training, epoch or -1, may stop, resumes)   the chief sets the epoch with which a training
                                            begins, whether it may stop the training at the end of any epoch, and
                                            whether it resumes its epoch after a restart. Other workers send epoch -1,
                                            and wait until the chief has set it. Answered by DONE (that epoch)
    FINISH  (number of the training,)       answered by DONE once no worker takes part, or the training is over
    STOP    ()                              no worker gets another step, and no further synchronous update is made;
                                            answered by DONE
    FOLLOW  (number of the training, epoch)   answered by DONE (whether training is over, the newest epoch that is
                                            over or -1) once that epoch is over
    SUMS    (epoch, wait)                   answered by DONE with the workers' contributions to the sums of that
                                            epoch; with ``wait``, once no other worker is computing one of its steps
    AGREE   (program, data)                 the worker's descriptions, see `headwater.cluster.task.agreement`;
                                            answered by DONE (the difference between its data and the data of other
                                            workers, or an empty text), or by ERROR if it runs another program
    VALUES  (version, applied, step_number, share, names, assigned, ledger)   the blocks' values except tables; if
                                            everything was requested, also the optimizer's state, with these names; in
                                            synchronous training, after a PUSH with sums, also the sums of the epoch
                                            over all finished updates
    DONE    (…)
    WAIT    (reason,)
    RELEASE ()                              a worker's answer to WAIT if another ``ps`` has dropped its gradients:
                                            the worker continues without the awaited update, which may itself wait for
                                            the worker's next gradient
    ERROR   (0, code, message)              as in `headwater.cluster.task.answers`

A ``ps`` asks another ``ps``::

    ROUND_SUM (set, (worker, incarnation, number)…)   answered by DONE (its part of a sum over all ``ps``); see
                                            `headwater.ps.round_sums`

``set`` names a set of parameters; a task can host several. ``step_request`` is None, or (number of the training, epoch,
steps of the epoch or -1, the first step without data or -1): the worker asks for its next step of that epoch. In the
answer, ``step_number`` is the step's number, or -1 when the epoch is over, -2 when the training is; ``share`` is the
part of the batch that the worker must compute, as (number of the part, number of parts), or None if the worker knows it
already. ``part`` is None, or (incarnation, number of a batch, positions, positions of the batch): an update is made of
gradients of the whole batch, see `headwater.ps.consistency.Part`. ``hyperparameters`` are scalars that the worker's
program may change between steps, such as the learning rate.

A step request has a fifth element where examples are accounted for: (first epoch, size, batch, tries, shuffle, seed or
None, unit, whether batches follow one another, part of a batch or None), see `headwater.ps.accounting.ledger.Plan`; its
second element is then the last epoch. The step number is the number of a batch, or -3 while other workers hold the
remaining examples; *assigned* is (epoch, start, stop, seed), or a text that names the ranges that were set aside.
``work`` is None, or (the ranges from which the gradient was computed, the ranges that are returned, with the reason of
each). On the first ``ps`` an update and the record of its ranges are atomic: it drops a gradient if one of its ranges
was handed to another worker meanwhile. With ``keeps`` the answer contains the ``ledger`` as of the time when the values
were read, so that the chief can restore that ``ps`` from it.

A worker numbers its PULL and PUSH requests. If it has lost the channel before the answer arrived, it repeats the
request with the same number; these requests are idempotent: a ``ps`` that has already handled the number only answers
again. ``incarnation`` is a random number of the worker's program or of the ``ps``. A restarted ``ps`` that recovers its
own state has a new incarnation, but its values keep their generation. Therefore workers repeat unanswered requests to
it, and it answers according to the recovered state.
"""

from __future__ import annotations

from typing import Final

#: Sent instead of a step's number: the epoch is over.
EPOCH_OVER: Final = -1
#: Sent instead of a step's number: the training is over.
TRAINING_OVER: Final = -2
#: Sent instead of a step's number: other workers hold the remaining examples, and may be lost.
NOTHING_YET: Final = -3
#: Sent instead of a step's number: some examples were set aside.
SET_ASIDE: Final = -4
#: Sent instead of a number of steps that is not known yet.
UNKNOWN_STEPS: Final = -1
#: The set name of all dynamic tables, for the witness and for other tasks; no set of parameters has this name.
TABLES: Final = "+tables"
