"""Tests of random histories of clusters, and of their reproducibility by seed.

``make simulate SEEDS=100000`` runs more of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]

#: Number of histories of each kind; 172 together.
_HISTORIES = {
    "copies": 4,
    "copies-in-step": 4,
    "deposits": 4,
    "deposits-examples": 4,
    "deposits-rounds": 4,
    "drains": 4,
    "ended": 4,
    "examples": 6,
    "graph-copies": 4,
    "graph-copies-examples": 4,
    "graph-copies-queues": 4,
    "graph-copies-rounds": 4,
    "graph-drains": 4,
    "graph-examples": 4,
    "graph-moves": 4,
    "graphs": 6,
    "jobs": 6,
    "jobs-ends": 4,
    "mirrored": 30,
    "moved-copies": 4,
    "moves": 4,
    "own": 4,
    "parameters": 30,
    "rounds": 16,
    "shared-batches": 6,
}


#: Regression tests: histories that broke a rule before a fix.
_FIXED = [
    ("graphs", 621811),  # a worker of another cluster connects while the current one is cut off
    ("graphs", 622065),  # a gradient on its way to two ps while the chief starts the training
    ("graphs", 621325),  # an update whose gradients one ps has lost
    ("graphs", 623542),  # a ps is restarted after the job is over
    ("graphs", 652388),  # an answer that arrived during a wait for another task
    ("graphs", 664688),  # a ps that is lost after its answer, with tensors in transit to another ps
    ("graphs", 642943),  # a chief that is lost in the midst of an update of two ps
    ("graphs", 645822),  # a worker that joins while the chief announces the start to several ps
    ("graphs", 80008026),  # a chief is back while the update that it had requested is made on two of three ps
    ("graphs", 664087),  # a worker of another cluster ends just after the restart of a ps
    ("graphs", 120007289),  # the update thread is the first to notice the loss of a ps at the end
    ("jobs", 20224),
    ("jobs", 120000511),  # a worker returns to a job that has continued without it
    ("jobs", 120012316),  # a task is asked to end while it is being started
    ("jobs", 120003940),  # a job is stopped while its places are being allocated, on hosts that then do not answer
    ("jobs", 120015515),  # a job returns to the queue while the place of a lost worker is being released
    ("jobs", 120020343),  # a worker is lost while its job ends for a restart, and another job waits for places
    ("jobs-ends", 34),  # a worker returns to ps that have ended, in a job that was restarted before
    ("mirrored", 50170),
    ("rounds", 1161),
    ("rounds", 3482),
    ("copies", 398),
    ("copies", 916),
    ("copies", 2001497),  # a ps is stopped until the chief, the workers and the other ps have ended
    ("copies", 2006300),
    ("graph-copies-rounds", 2049),  # a channel that two steps use
    ("graph-copies-rounds", 120009289),  # a worker is lost during an update, and then a ps
    ("graph-copies", 120006601),  # a previous primary learns that the job is over, and then receives a step's tensors
    ("graph-copies-queues", 120006307),  # a ps hands its task back to a ps that has just ended with the job
    ("graph-copies", 120008955),  # backup and witness end with the job while a primary requests a new backup
    ("graph-copies", 5000000),  # a step of a worker that has ended sends to a ps that has ended with the job
    ("graph-moves", 407),  # a ps joins before others, which end soon
    ("graph-moves", 12500056),  # a ps that is stopped until all others have ended
    ("graph-moves", 20000042),  # a ps that drains shortly before the end of the job
    ("graph-moves", 20000150),  # a previous primary without a session's state receives a tensor
    ("graph-moves", 41000009),  # a chief is lost, and with it the information about the replacement of a backup
    ("graph-moves", 110001442),  # a chief ends during the replacement of a backup, and then the future backup
    ("graph-moves", 110001262),  # the second to last ps drains when the last is about to be killed
    ("graph-moves", 110002266),  # a stopped previous primary continues, just before the only replica would be killed
    ("graph-copies-rounds", 20000053),  # both ps swap roles after an answer, and before a tensor has arrived
    ("moved-copies", 120007504),  # a handoff in a round with gradients of two incarnations of a worker
    ("moved-copies", 120004392),  # a worker connects to a replica that is dropped at that moment
    ("moved-copies", 12000000),  # a witness that is restarted during the replacement of a backup
    ("moved-copies", 12000096),  # a handoff in a round that one worker has left
    ("moves", 17),  # a change arrives at a previous primary that its successor has dropped as the backup
    ("moves", 2001134),  # a ps drains while a worker moves one of its shards
    ("moves", 120009358),  # a ps that is stopped and drains receives a shard after it has reported its shards
    ("moves", 120009578),  # a worker takes part in a training that the others have finished, on ps that were restarted
    ("moves", 80003753),  # a ps that has just received a shard ends with the job before it can report that
    ("examples", 105161),
    ("drains", 22),  # a handoff to a ps that is about to end; the backup ends, too, and has not announced it yet
    ("drains", 79),  # a handoff to a ps that has just announced its end
    ("drains", 251),  # the same, and the receiver has restarted by then
    ("drains", 299),
    ("drains", 12),  # a backup announces that it will never serve, just before it is promoted
    ("drains", 42),  # a replica that receives a snapshot of a draining ps does not know that it drains
    ("graph-drains", 150000088),  # a worker creates its session while all ps have ended, and asks none of them
    ("graph-drains", 7300037),  # a worker mistakes a restarted ps for its previous incarnation, as all had ended
    ("deposits", 80003064),  # a ps that ends while it waits for another one, which has just ended, too
    ("deposits", 86),  # a ps ends after a step, before a hook runs a new request
    ("deposits", 120007444),  # a ps is lost before a step has sent RUN to it, while the step waits for another ps
    ("graph-copies-examples", 20197),  # a connection is lost twice in a step that still waits when the history ends
    ("graph-copies-examples", 44),  # an update that had taken its gradients when their ps was lost
]


def _begin(counts: Mapping[str, int], first: int, *options: str) -> subprocess.Popen[str]:
    return _run(*(f"{kind}:{count}" for kind, count in counts.items()), "--first", str(first), *options)


def _run(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulation.run", *arguments],
        cwd=_REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _end(runs: Sequence[subprocess.Popen[str]]) -> str:
    outputs = [run.communicate()[0] for run in runs]
    assert not any(run.returncode for run in runs), "\n".join(outputs)
    return "".join(outputs)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_histories() -> None:
    """Runs the histories in two processes, since a process runs one thread at a time."""
    half = {kind: count // 2 for kind, count in _HISTORIES.items()}
    _end([_begin(half, first, "--step", "2") for first in (0, 1)])


@pytest.mark.slow
def test_a_history_is_the_same_alone_and_after_others() -> None:
    kinds = list(_HISTORIES)[::4]
    after_others = _begin(dict.fromkeys(kinds, 2), 1002, "--traces")
    alone = _begin(dict.fromkeys(kinds, 1), 1003, "--traces")
    output = {line for line in _end([alone]).splitlines() if "trace" in line}
    assert len(output) == len(kinds)
    assert output <= set(_end([after_others]).splitlines())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_histories_that_broke_a_rule_before_a_fix_pass() -> None:
    numbers: dict[str, list[int]] = {}
    for kind, number in _FIXED:
        numbers.setdefault(kind, []).append(number)
    halves = [
        [f"{kind}@{','.join(map(str, chosen[half::2]))}" for kind, chosen in numbers.items() if chosen[half::2]]
        for half in range(2)
    ]
    _end([_run(*half) for half in halves])


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "numbers", "defect", "message"),
    [
        ("graphs", range(80), "notice of void steps", "OutOfTime|Deadlock|lacks units|more than once"),
        ("parameters", range(240), "recognition of retries", "more than once"),
        ("own", range(400, 410), "answers in saved states", "more than once"),
        ("ended", range(4), "query for ended workers", "OutOfTime"),
        ("ended", range(8), "list of ended tasks", "OutOfTime"),
        ("rounds", range(1588, 1589), "detection of lost gradients", "OutOfTime"),
        ("graphs", range(40), "reuse of existing state", "the chief discarded the state"),
        ("graphs", range(40), "comparison of claims", "FailedPreconditionError: .* it was replaced by"),
        ("graphs", range(40), "final deadlines", "OutOfTime"),
        ("graphs", range(40), "check of read values", "a step has not seen units"),
        ("copies-in-step", range(1041, 1042), "confirmation of updates", "lacks units"),
        ("copies-in-step", range(20, 60), "recognition of retries", "more than once"),
        ("copies", range(100, 300), "confirmation of tables", "the table lacks units"),
        ("copies-in-step", range(7100394, 7100395), "rows of one moment", "t of shard 0 has units .* more than once"),
        (
            "copies",
            range(13, 14),
            "transfer of held ranges",
            "a of shard 1 has not counted these examples exactly once",
        ),
        (
            "copies-in-step",
            range(2, 3),
            "transfer of held ranges",
            "a of shard 1 has not counted these examples exactly once",
        ),
        ("graph-copies", range(150), "recorded outcomes", "a step has not seen units|more than once"),
        ("graph-copies-queues", range(80, 170), "recorded outcomes", "were dequeued more than once"),
        ("graph-copies", range(1067, 1068), "confirmation of steps", "a step has not seen units|lacks units"),
        ("graph-examples", range(3), "last rounds of few gradients", "OutOfTime"),
        ("graphs", range(80008026, 80008027), "commitment of steps", "more than once"),
        ("deposits", range(500, 512), "suspension of steps", "a step has not seen units|lacks units|more than once"),
        ("graph-examples", range(384, 385), "start before updates", "OutOfTime"),
        ("mirrored", range(40), "evidence of loss", "lost a peer, though the history has no faults"),
    ],
)
def test_histories_detect_a_defect_after_its_fix_is_reverted(
    kind: str, numbers: range, defect: str, message: str
) -> None:
    run = _begin({kind: len(numbers)}, numbers.start, "--without", defect)
    output = run.communicate()[0]
    assert run.returncode, output
    assert re.search(f"BROKEN: .*(?:{message})", output), output
