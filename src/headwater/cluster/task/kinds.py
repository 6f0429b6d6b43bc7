"""Table of all kinds of frames that tasks and clients send each other.

The service named above each block handles these frames; the module named beside it documents their headers and tensors.
The kind of a channel's first frame selects the service. Kinds from
`headwater.cluster.transport.frames.FIRST_RESERVED_KIND` on belong to the transport itself.
"""

from __future__ import annotations

from typing import Final

# Answers of any service: `headwater.cluster.task.answers`
DONE: Final = 3
ERROR: Final = 4

# Steps of graphs: `headwater.graph.master.protocol`
RUN: Final = 1
TENSORS: Final = 2
TRANSFER: Final = 5
RUN_CALLABLE: Final = 6
HOLD: Final = 7
RESUME: Final = 8
RESUMED: Final = 9
GIVE_UP: Final = 10
TAKEN: Final = 11

# ... and of replicated tasks: `headwater.graph.server.replicas.copy`
OPEN_COPY: Final = 32
COPY_PLAN: Final = 33
COPY_RELEASE: Final = 34
COPY_RESET: Final = 35
REPEAT: Final = 36
REPLACE: Final = 37
PASSED: Final = 38
SEAL: Final = 39
# ... and between their processes: `headwater.graph.server.replicas.processes`
PROCESSES: Final = 40

# Collectives of mirrored groups: `headwater.keras.collectives`
OPEN_COLLECTIVE: Final = 16
PART: Final = 19
SUM: Final = 20
VALUE: Final = 21
LOST: Final = 22


# The task itself: `headwater.cluster.task.shell`
LEAVES: Final = 48

# Parameters: `headwater.ps.protocol`
HELLO: Final = 64
WELCOME: Final = 65
FILL: Final = 66
READY: Final = 67
PULL: Final = 68
PUSH: Final = 69
ROWS: Final = 70
ASSIGN: Final = 71
FINISH: Final = 72
STOP: Final = 73
VALUES: Final = 74
WAIT: Final = 75
FOLLOW: Final = 76
AGREE: Final = 77
SUMS: Final = 78
READ_ROWS: Final = 79
WRITE_ROWS: Final = 80
RELEASE: Final = 81
REST: Final = 82
HOLDS: Final = 83
BEGIN: Final = 100
# ... and between ``ps`` tasks: `headwater.ps.round_sums`
ROUND_SUM: Final = 91
# ... and about shards that move: `headwater.ps.shards.directory`
WHERE: Final = 92
MOVE: Final = 93
# ... and between replicas of the state of a ``ps``: `headwater.state.feed`, `headwater.ps.replicas.shard`
VIEW: Final = 84
BACKUP: Final = 85
STATE: Final = 86
UPDATE_BACKUP: Final = 87
MEMORY: Final = 88
NEW_VIEW: Final = 89
RESIGNS: Final = 90

# State that the chief keeps for a ``ps`` until it has restarted: `headwater.cluster.task.deposited_states`
DEPOSIT_STATE: Final = 112
FETCH_STATE: Final = 113
DROP_STATE: Final = 114
DEPOSIT_PART: Final = 115
FETCH_PART: Final = 116

# Calls of a coordinator: `headwater.keras.coordinator.calls`
OPEN_CALLS: Final = 96
CALL: Final = 97
END_CALLS: Final = 98

# Embedding tables: `headwater.ps.tables.protocol`
OPEN_TABLES: Final = 128
LOOK_UP: Final = 129
UPDATE: Final = 130
SAVE_TABLE: Final = 131
DESCRIBE_TABLE: Final = 132
READ_TABLE: Final = 133
WRITE_TABLE: Final = 134
SETTLE: Final = 136
# ... and between replicas of tables: `headwater.ps.replicas.tables`
EVICT: Final = 135
ROUND: Final = 137

NAMES: Final = {number: name for name, number in list(globals().items()) if name.isupper()}
"""The name of each kind by its number."""


def describe(kind: int) -> str:
    """Returns the name and number of a kind, for messages."""
    return f"{NAMES[kind]} ({kind})" if kind in NAMES else f"{kind}, which belongs to no service"
