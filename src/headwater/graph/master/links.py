"""Links from a task's master to other tasks, and the details in the status of those tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.transport.links import Link, LinkSettings
from headwater.graph.master.peers import PeerStatus

STEPS_DETAIL = "steps"
"""Key of the status detail that counts the steps a task has run for masters in other processes."""
SESSIONS_DETAIL = "sessions"
"""Key of the status detail that counts the sessions that have plans on a task."""


class TaskLink(Link):
    """A link to another task of the cluster, for this task's master.

    Args:
      owner: the claim of this task.
      met: called with the generation of each incarnation of the other task that answers.

    Attributes:
      task: the other task.
    """

    def __init__(
        self,
        link_settings: LinkSettings,
        peer: TaskName,
        address: Address,
        owner: Claim,
        met: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(link_settings, peer, address)
        self.task = peer
        self._owner = owner
        self._met = met

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        return self._wait_for(self._fetch_status, deadline_s)

    def _fetch_status(self) -> PeerStatus:
        status = self._meet()
        if self._met is not None:
            self._met(status.generation)
        return PeerStatus(
            generation=status.generation,
            devices=tuple(device.name for device in self._answer(self.control.list_devices)),
            steps=int(status.details.get(STEPS_DETAIL, b"0")),
        )

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None:
        self.control.add_plan(session, number, plan, generation=generation, owner=self._owner)

    def release(self, session: str) -> None:
        self.control.release(session)

    def reset(self, containers: Sequence[str]) -> None:
        self.control.reset_task(containers)
