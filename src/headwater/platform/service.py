"""All that a request needs, in one place: the manager, the store, who may do what, bounds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath

from headwater.platform.archive_store import ArchiveStore
from headwater.platform.auth import Auth
from headwater.platform.errors import Refused
from headwater.platform.feed import Feed
from headwater.platform.job_file import Problem
from headwater.platform.limits import RateLimit
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.records import JobRecord
from headwater.platform.secret_store import StoredSecrets
from headwater.platform.spec import JobSpec
from headwater.platform.states import JobPhase
from headwater.platform.store import Store

#: How long a request for machines waits for one backend, in seconds.
HOSTS_S = 5.0


class Platform:
    """A server's parts.

    Args:
      manager: runs jobs, with secrets of this server.
      auth: says who may.
      max_archive_bytes: larger archives are refused.
      per_s: requests of one client in a second, in the long run.
      burst: requests of one client at once.
      hosts: the names by which browsers may call the server, where it asks for no token.

    Attributes:
      rate: how often a client may ask.
      failures: how often a client may show a wrong token.
    """

    def __init__(
        self,
        manager: Manager,
        auth: Auth,
        *,
        max_archive_bytes: int = 1 << 30,
        per_s: float = 50.0,
        burst: int = 200,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]"),
    ) -> None:
        self.manager = manager
        self.auth = auth
        self.archives: ArchiveStore = ArchiveStore(manager.settings.archives_dir, max_archive_bytes)
        self.feed: Feed = Feed(manager.store)
        self.rate: RateLimit = RateLimit(per_s, burst)
        self.failures: RateLimit = RateLimit(0.2, 20)
        self.hosts = hosts

    @property
    def store(self) -> Store:
        """What is remembered."""
        return self.manager.store

    @property
    def secrets(self) -> StoredSecrets:
        """What jobs may name, and the platform never shows."""
        assert isinstance(self.manager.secrets, StoredSecrets)
        return self.manager.secrets

    @property
    def settings(self) -> ManagerSettings:
        """How jobs are run."""
        return self.manager.settings

    def submit(
        self,
        spec: JobSpec,
        *,
        owner: str,
        archive: str | None = None,
        workers: int | None = None,
        sweep: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> JobRecord:
        """Queues a job.

        Raises:
          Refused: it names an archive that was not handed in, or a folder relative to nothing.
          NotPossible: as `Manager.submit`.
        """
        if archive is not None and not self.archives.has(archive):
            raise Refused(404, f"there is no archive {archive}: hand it in first")
        if spec.archive is not None and archive is None:
            raise _wrong("archive", "must be handed in first, and named by its digest with the request")
        if spec.workdir is not None and archive is None and not PurePath(spec.workdir).is_absolute():
            raise _wrong("workdir", f"must be an absolute path on the server's machine, but is {spec.workdir!r}")
        if spec.workdir is not None and archive is not None and os.pardir in PurePath(spec.workdir).parts:
            raise _wrong("workdir", "must be within the archive")
        return self.manager.submit(
            spec, owner=owner, archive=archive, workers=workers, sweep=sweep, settings=settings or {}
        )

    def jobs(
        self,
        *,
        live: bool | None = None,
        phase: JobPhase | None = None,
        name: str | None = None,
        owner: str | None = None,
        before: float | None = None,
        limit: int | None = None,
    ) -> list[JobRecord]:
        """Jobs as they are now, the latest first; the arguments are those of `Store.jobs`."""
        stored = self.store.jobs(live=live, phase=phase, name=name, owner=owner, before=before, limit=limit)
        return [self.manager.newest(record) for record in stored]


def _wrong(field: str, message: str) -> Refused:
    return Refused(422, f"{field}: {message}", problems=[Problem(field=field, line=None, message=message)])
