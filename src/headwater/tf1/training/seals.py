"""Seals: detect whether the parameter servers still hold the complete, consistent state of a training.

When a chief has initialised or restored a model, it writes the same *seal* on every task that holds variables. It
removes the seals before it initialises or restores again. So equal seals mean that none of these tasks has lost its
state since, and that no restore was left unfinished. A chief that finds equal seals, and a value in every variable,
continues with this state; it restores the checkpoint only if state was lost.

Before it assigns values, a chief marks the variables on each of these tasks as *being prepared*, until they are sealed.
Other workers do not consider such a model ready, though each variable may have a value: the chief, or its next
incarnation, might initialise all variables again, and updates made meanwhile would be lost.

A program may train repeatedly on the same servers, each time from the beginning. So a process continues only with a
training that another process has sealed (the chief's previous incarnation), or with a training that it has sealed
itself and resumes after a loss.
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
"""Operations that synchronise all ``ps``: after a loss all ``ps`` have to return to the same checkpoint."""
_TABLES: Final = {"MutableHashTableOfTensorsV2", "MutableHashTableV2"}
"""Operations whose state is in checkpoints but not in the saved state of a ``ps``: all ``ps`` restore together."""

RESTORE: Final = "HEADWATER_RESTORE"
"""``lost`` (the default): a chief restores only if state was lost; ``always``: it restores whenever it starts."""

THIS_PROCESS: Final = secrets.token_hex(8)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """Record that a chief writes on a task whose variables are ready.

    Attributes:
      training: a random name of the prepared training.
      process: a random name of the chief's process.
      source: folder or path of its checkpoints; empty without checkpoints.
    """

    training: str
    process: str
    source: str

    def encode(self) -> bytes:
        """Serialises the seal for `decode`."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(text: bytes) -> Seal | None:
        """Parses the result of `encode`; None if empty."""
        return Seal(**json.loads(text)) if text else None


@dataclass(frozen=True, kw_only=True, slots=True)
class SealDecision:
    """Decision whether to continue with the state that the tasks hold.

    Attributes:
      keep: name of the training to continue; None: prepare the model.
      reason: why the training cannot be continued; empty if there is none.
    """

    keep: str | None = None
    reason: str = ""


def decide(
    found: Mapping[str, Seal | None], *, process: str, own: str | None, source: str, always: bool
) -> SealDecision:
    """Decides whether to continue with the state that the tasks hold.

    Args:
      found: the seals, by the names of the tasks that hold variables.
      process: the name of this process.
      own: the training that this chief has prepared already, if any.
      source: folder or path of its checkpoints.
      always: restore in any case.
    """
    seals = [seal for seal in found.values() if seal is not None]
    if not seals:
        return SealDecision()
    if always:
        return SealDecision(reason=f"{RESTORE}=always says so")
    without = sorted(task for task, seal in found.items() if seal is None)
    if without:
        return SealDecision(reason=f"{', '.join(without)} has lost the state of the training, or has never had it")
    training = seals[0].training
    if any(seal.training != training for seal in seals):
        return SealDecision(reason="the parameter servers hold the states of different trainings")
    if training != own:
        if any(seal.process == process for seal in seals):
            return SealDecision()  # this program begins another training
        if any(seal.source != source for seal in seals):
            return SealDecision(reason=f"the parameter servers hold a training with checkpoints in {seals[0].source!r}")
    return SealDecision(keep=training)


def always_restores(environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether the environment variable `RESTORE` is ``always``.

    Raises:
      InvalidArgumentError: its value is neither ``lost`` nor ``always``.
    """
    text = environ.get(RESTORE, "").strip() or "lost"
    if text not in ("lost", "always"):
        raise InvalidArgumentError(f"{RESTORE} is {text!r}, but must be 'lost' or 'always'")
    return text == "always"


def together(types: Mapping[str, str]) -> str:
    """Returns why a ``ps`` of a graph may not restore its state independently of other ``ps``; empty if it may.

    Args:
      types: the types of the graph's operations, with the name of one operation of each.
    """
    gathering = sorted(types.keys() & _GATHERING)
    if gathering:
        return (
            f"{types[gathering[0]]!r} synchronises workers, so its updates need values of the same step on all ps: all "
            "ps have to restore together"
        )
    tables = sorted(types.keys() & _TABLES)
    if tables:
        return f"{types[tables[0]]!r} is a table, which only checkpoints contain: all ps have to restore together"
    return ""


class Seals:
    """The seals on the tasks that hold the variables of a graph.

    Args:
      master: the target of the master.
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
        """Returns the seal on each task."""
        return {task: Seal.decode(text) for task, text in self._asked("TrainingSealRead").items()}

    def being_prepared_on(self) -> list[str]:
        """Returns the tasks whose variables are being prepared by a chief."""
        return [task for task, prepares in self._asked("TrainingBeingPrepared").items() if prepares]

    def _asked(self, operation: str) -> dict[str, Any]:
        """Returns the results of an operation without inputs on each task, by task."""
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
        """Writes a seal on all tasks.

        Args:
          seal: the seal; None: remove existing seals.
          prepares: mark the variables as being prepared until the next seal.
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
