"""Whether the parameter servers still have the state of a training, all of it and of one piece.

When a chief has initialised or restored a model, it leaves a *seal* on every task that holds variables: the same one on
all. It breaks the seals before it does so again. So equal seals mean that each of these tasks is in the same life as
then, and that no restore has been left half done. A chief that finds them, and a value in every variable, goes on with
what is there; the checkpoint is for when it is lost.

Before it gives the variables values, a chief says on each of these tasks that they are *being prepared*, until they are
sealed. Other workers do not take such a model for ready, though each variable may have a value: the chief, or its next
life, might give them all their first values once more, and updates made meanwhile would be gone.

A program may train again and again on the same servers, each time from the beginning. So a process goes on only with a
training that another process has sealed (the chief's former life), or with the very one that it has sealed itself and
goes on with after a loss.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.devices import parse_device
from headwater.errors import InvalidArgumentError
from headwater.graph.convert import convert_to_tensor
from headwater.graph.graph import Graph
from headwater.graph.session import Session
from headwater.tf1.variables.variable_lists import global_variables

if TYPE_CHECKING:
    from headwater.tensorboard_protos import ConfigProto


_logger: Final = logging.getLogger(__name__)

_GATHERING: Final = {
    "ConsistencyGive",
    "ConsistencyTake",
    "GatherGradients",
    "ResourceConditionalAccumulator",
    "SparseConditionalAccumulator",
    "StepBarrierWait",
}
"""Operations whose state on a ``ps`` belongs to one life of a training of all tasks."""
_TABLES: Final = {"MutableHashTableOfTensorsV2", "MutableHashTableV2"}
"""Operations that hold what checkpoints have and the state of a ``ps`` has not."""

RESTORE: Final = "HEADWATER_RESTORE"
"""``lost`` (the default): a chief restores what is lost; ``always``: it restores whenever it begins."""

THIS_PROCESS: Final = secrets.token_hex(8)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """What a chief leaves on a task.

    Attributes:
      training: a random name for what the chief has prepared.
      process: a random name of the chief's process.
      source: where its checkpoints are; empty without.
    """

    training: str
    process: str
    source: str

    def encode(self) -> bytes:
        """This as `decode` reads it."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(text: bytes) -> Seal | None:
        """What `encode` wrote; None where nothing was written."""
        return Seal(**json.loads(text)) if text else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Whether to go on with what the tasks hold.

    Attributes:
      keep: go on with it, which is the training of this name; None: prepare the model.
      reason: why not, in words; empty where nothing was to be expected.
    """

    keep: str | None = None
    reason: str = ""


def decide(found: Mapping[str, Seal | None], *, process: str, own: str | None, source: str, always: bool) -> Decision:
    """Whether to go on with what the tasks hold.

    Args:
      found: the seals, by the names of the tasks that hold variables.
      process: the name of this process.
      own: the training that this chief has prepared already, if any.
      source: where its checkpoints are.
      always: restore in any case.
    """
    seals = [seal for seal in found.values() if seal is not None]
    if not seals:
        return Decision()
    if always:
        return Decision(reason=f"{RESTORE}=always says so")
    without = sorted(task for task, seal in found.items() if seal is None)
    if without:
        return Decision(reason=f"{', '.join(without)} has lost the state of the training, or has never had it")
    training = seals[0].training
    if any(seal.training != training for seal in seals):
        return Decision(reason="the parameter servers hold the states of different trainings")
    if training != own:
        if any(seal.process == process for seal in seals):
            return Decision()  # this program begins another training
        if any(seal.source != source for seal in seals):
            return Decision(reason=f"the parameter servers hold a training with checkpoints in {seals[0].source!r}")
    return Decision(keep=training)


def always_restores(environ: Mapping[str, str] = os.environ) -> bool:
    """What `RESTORE` says.

    Raises:
      InvalidArgumentError: something else than ``lost`` or ``always``.
    """
    text = environ.get(RESTORE, "").strip() or "lost"
    if text not in ("lost", "always"):
        raise InvalidArgumentError(None, None, f"{RESTORE} is {text!r}, but must be 'lost' or 'always'")
    return text == "always"


def together(types: Mapping[str, str]) -> str:
    """Why no ``ps`` of a graph may go back by itself, in words; empty where it may.

    Args:
      types: the types of its operations, with the name of one of each.
    """
    gathering = sorted(types.keys() & _GATHERING)
    if gathering:
        return (
            f"{types[gathering[0]]!r} gathers gradients, or has workers wait for each other: there an update is of "
            "the same values on all ps, so all go back together"
        )
    tables = sorted(types.keys() & _TABLES)
    if tables:
        return f"{types[tables[0]]!r} is a table, which checkpoints hold alone, so all ps go back together"
    return ""


class Seals:
    """The seals on the tasks that hold the variables of a graph.

    Args:
      master: the target of the master.
      graph: the graph.
      config: a ``ConfigProto``, of its sessions.
    """

    def __init__(self, master: str, graph: Graph, config: ConfigProto) -> None:
        self._master = master
        self._graph = graph
        self._config = config
        with graph.as_default():
            devices = [parse_device(variable.device) for variable in global_variables()]
        self.tasks: list[str] = (
            sorted(
                {
                    device._replace(device_type=None, device_index=None, replica=None).name()
                    for device in devices
                    if device.job is not None
                }
            )
            if master
            else []
        )

    def read(self) -> dict[str, Seal | None]:
        """The seal on each task."""
        return {task: Seal.decode(text) for task, text in self._asked("TrainingSealRead").items()}

    def being_prepared_on(self) -> list[str]:
        """The tasks whose variables are being prepared by a chief."""
        return [task for task, prepares in self._asked("TrainingBeingPrepared").items() if prepares]

    def _asked(self, operation: str) -> dict[str, Any]:
        """What an operation gives on each task."""
        if not self.tasks:
            return {}
        with Graph().as_default() as graph:
            found: list[Any] = []
            for task in self.tasks:
                with graph.device(task):
                    found.append(graph.create_op(operation, []).outputs[0])
            with Session(self._master, graph, self._config) as sess:
                return dict(zip(self.tasks, sess.run(found), strict=True))

    def write(self, seal: Seal | None, *, prepares: bool = False) -> None:
        """Leaves a seal on all tasks; None: breaks what is there.

        Args:
          seal: the seal.
          prepares: the variables are being prepared, until there is another seal.
        """
        if not self.tasks:
            return
        why = together({operation.type: operation.name for operation in self._graph.get_operations()})
        with Graph().as_default() as graph:
            writes: list[object] = []
            for task in self.tasks:
                with graph.device(task):
                    text = convert_to_tensor(seal.encode() if seal else b"")
                    writes.append(graph.create_op("TrainingSealWrite", [text], {"together": why, "prepares": prepares}))
            with Session(self._master, graph, self._config) as sess:
                sess.run(writes)
