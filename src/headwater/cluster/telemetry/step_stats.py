"""Activities of one step, with devices and times, as TensorFlow's ``StepStats``.

Times are microseconds since the epoch by each task's clock; differences between clocks are not corrected.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from headwater.errors import InternalError
from headwater.tensorboard_protos import config_pb2, step_stats_pb2

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

EXECUTABLE: Final = "Executable"
"""The operation type that a label shows for an executable, which runs several compiled operations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """An activity of a device in a step.

    Attributes:
      device: the device's full name.
      name: the name of the operation; for an executable, the name of its last operation.
      type: the operation's type, or `EXECUTABLE`, or another kind of activity.
      inputs: names of the input tensors.
      start_us: the start time.
      end_us: the time when the results were available.
      output_bytes: size of the results.
    """

    device: str
    name: str
    type: str
    inputs: Sequence[str] = ()
    start_us: int
    end_us: int
    output_bytes: int = 0


class StepTrace:
    """Collects the activities of a step, from any thread.

    Args:
      graphs: whether the master of the step adds the partition of the graph of each device.

    Attributes:
      graphs: as given.
      partitions: the partitions of the graph by device, as ``GraphDef`` messages.
    """

    def __init__(self, *, graphs: bool = False) -> None:
        self.graphs: bool = graphs
        self.partitions: list[Any] = []
        self._lock = threading.Lock()
        self._activities: list[Activity] = []
        self._others: list[Any] = []

    def add(self, activity: Activity) -> None:
        """Adds an activity of this task."""
        with self._lock:
            self._activities.append(activity)

    def merge(self, encoded: npt.NDArray[np.uint8], task: str) -> None:
        """Adds the activities of another task, from its `encode`; raises InternalError for malformed bytes."""
        try:
            other = config_pb2.RunMetadata.FromString(encoded.tobytes())
        except DecodeError as error:
            raise InternalError(f"{task} sent a malformed trace: {error}") from error
        with self._lock:
            self._others.append(other.step_stats)
            self.partitions += other.partition_graphs

    def encode(self) -> npt.NDArray[np.uint8]:
        """Returns the activities and partitions as bytes."""
        message = config_pb2.RunMetadata(step_stats=self.step_stats(), partition_graphs=self.partitions)
        return np.frombuffer(message.SerializeToString(), np.uint8)

    def step_stats(self) -> Any:
        """Returns the activities as a ``StepStats`` message, by device, in the order of their start times."""
        devices: JsonObject = {}
        with self._lock:
            activities = sorted(self._activities, key=lambda activity: activity.start_us)
            for activity in activities:
                if activity.device not in devices:
                    devices[activity.device] = step_stats_pb2.DeviceStepStats(device=activity.device)
                _fill(devices[activity.device].node_stats.add(), activity)
            for other in self._others:
                for stats in other.dev_stats:
                    if stats.device in devices:
                        devices[stats.device].MergeFrom(stats)
                    else:
                        devices[stats.device] = stats
        return step_stats_pb2.StepStats(dev_stats=[devices[name] for name in sorted(devices)])


def _fill(stats: Any, activity: Activity) -> None:
    lasted = max(1, activity.end_us - activity.start_us)  # viewers do not show an activity without duration
    stats.node_name = activity.name
    stats.timeline_label = f"{activity.name} = {activity.type}({', '.join(activity.inputs)})"
    stats.scheduled_micros = stats.all_start_micros = activity.start_us
    stats.op_end_rel_micros = stats.all_end_rel_micros = lasted
    stats.scheduled_nanos = stats.all_start_nanos = activity.start_us * 1000
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = lasted * 1000
    if activity.output_bytes:
        stats.memory.add(allocator_name=activity.device, total_bytes=activity.output_bytes)
