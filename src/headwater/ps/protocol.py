"""How a worker and a ``ps`` talk about parameters.

A worker keeps one channel to each ``ps``. It sends one frame and gets one answer, in turns; while an answer is long in
coming, WAIT frames say why. The tensors of each are its arrays::

    HELLO   (set, worker, signature, consistency, when it was started, in seconds since 1970, life,
            trainings that are over as far as it knows or -1, life of the ``ps`` whose values it has read
            or 0, the version of these)     answered by
                                            WELCOME (generation of the values or 0, version, trainings that are over,
                                            epoch, seed, life)
    FILL    (version, tables, ledger, over)   all values but those of tables: blocks, then the optimizer's state; the
                                            rows of ``tables`` have been written, others begin; ``over``: a worker
                                            brings them, as the chief's program has ended; answered by DONE (generation
                                            of the values)
    READY   ()                              likewise, once there are values
    PULL    (everything, extras, wish, work, keeps, number)   answered by VALUES
    PUSH    (version, weight, extras, wish, knobs, work, keeps, number)   gradients of the optimized blocks, changes of
                                            the others that ``extras`` numbers, rows of tables; answered by VALUES
    REST    (wish,)                         the worker has no data: no other waits for it; answered by DONE, on the
                                            first ``ps`` once it is of use to ask again
    HOLDS   (ranges,)                       answered by DONE (whether the worker still has these ranges of examples)
    ROWS    ()                              row numbers, one array for each table; answered by DONE with the rows
    ROWS    (form,)                         the same, with rows in another form (`headwater.ps.row_travel`)
    READ_ROWS   (table, start, stop, parts)   answered by DONE with these rows of a table: the values (part 0), or what
                                            the optimizer keeps of them (from part 1 on); no ``parts``: all
    WRITE_ROWS  (table, start)              values of rows from ``start`` on, then what the optimizer keeps of them,
                                            unless that begins; answered by DONE
    ASSIGN  ()                              values of all blocks but tables; the optimizer's state, unless that stays as
                                            it is; answered by DONE
    BEGIN   (number of the training, epoch or -1)   the chief says with which epoch a training begins; answered by DONE
                                            (that epoch), for others (-1) once the chief has said it
    FINISH  (number of the training,)       answered by DONE once no worker takes part any more, or that is over
    STOP    ()                              no worker gets another step; answered by DONE
    FOLLOW  (number of the training, epoch)   answered by DONE (whether training is over) once that epoch is over
    SUMS    (epoch, wait)                   answered by DONE with what workers have added to the sums of that epoch;
                                            with ``wait``, once no other worker is in the midst of one of its steps
    AGREE   (program, data)                 what the worker says of both, see `headwater.cluster.task.agreement`;
    answered by
                                            DONE (how its data differ from those of other workers, or an empty text), or
                                            by ERROR where its program is another one
    VALUES  (version, applied, ticket, share, names, handed out, ledger)   the blocks' values; where everything was
                                            asked for, the optimizer's state too, whose names these are; nothing of
                                            tables
    DONE    (…)
    WAIT    (reason,)
    RELEASE ()                              the answer to WAIT of a worker whose gradients another ``ps`` has not taken:
                                            it is to go on without the update, which may wait for its next step
    ERROR   (0, code, message)              as in `headwater.cluster.task.answers`

A ``ps`` asks another one::

    ROUND_SUM (set, (worker, life, number)…)   answered by DONE (its part of a sum over all ``ps``), see
                                            `headwater.ps.round_sums`

``set`` names a set of parameters; a task can host several. ``wish`` is None, or (number of the training, epoch,
steps of the epoch or -1, a step that there are no data for or -1): the worker asks for its next step of that epoch; the
answer's ``ticket`` is its number, or -1 when the epoch is over, -2 when training is; ``share`` is which part of the
batch the worker is to compute, as (number, of how many), or None where the worker knows by itself. ``knobs`` are
scalars that the worker's program may change meanwhile, such as the learning rate.

A wish has a fifth element where examples are accounted for: (first epoch, size, batch, tries, shuffle, seed or None,
unit), see `headwater.ps.accounting.ledger.Plan`; the epoch in its second place is the last one then. The ticket is the
number of a batch, or -3 while other workers hold what is left; *handed out* is (epoch, start, stop, seed), or a text
that says which ranges were set aside. ``work`` is None, or (the ranges whose gradient this is, the ranges that are
given back with the reason of each). An update and the account of its ranges are one thing on the first ``ps``: it drops
a gradient of which it has handed out a range to another worker meanwhile. With ``keeps`` the answer brings the
``ledger`` as it was when the values were read, for the chief to fill that ``ps`` with, should it be lost.

A worker numbers what it asks for in PULL and PUSH. Where it has lost the channel before the answer came, it asks again
with the same number; a ``ps`` that has done it answers again and does nothing again. ``life`` is a random number that
stands for this start of the worker's program, or of the ``ps``. A ``ps`` that comes back with its own state has values
of the same generation as before, so it is asked again, and says what of it was done; it is another life.
"""

from __future__ import annotations

from typing import Final

#: Instead of a step's number: the epoch is over; training is.
EPOCH_OVER: Final = -1
TRAINING_OVER: Final = -2
#: Other workers hold the rest of the examples, and may be lost; some examples were set aside.
NOTHING_YET: Final = -3
SET_ASIDE: Final = -4
#: Instead of a number of steps: it is not known yet.
UNKNOWN_STEPS: Final = -1
#: The set that all tables that grow are, for the witness and for other tasks; no set of parameters has this name.
TABLES: Final = "+tables"
