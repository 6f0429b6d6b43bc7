"""``tf.distribute.experimental``: older names of what is in ``tf.distribute``, and settings."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.keras.mirrored.strategy": """
        CollectiveCommunication=CommunicationImplementation CollectiveHints=CommunicationOptions
        CommunicationImplementation CommunicationOptions
        MultiWorkerMirroredStrategy=ExperimentalMultiWorkerMirroredStrategy""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
