"""``tf.distribute.experimental``: older names of what is in ``tf.distribute``, and settings."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.keras.mirrored.strategy": """
        MultiWorkerMirroredStrategy=ExperimentalMultiWorkerMirroredStrategy""",
    "headwater.keras.mirrored.settings": """
        CollectiveCommunication=CommunicationImplementation CollectiveHints=CommunicationOptions
        CommunicationImplementation CommunicationOptions""",
    "headwater.keras.parameter_server.strategy": "ParameterServerStrategy",
}

_MODULES = {
    "coordinator": "headwater.compat.tf.distribute_coordinator",
    "partitioners": "headwater.compat.tf.distribute_partitioners",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
