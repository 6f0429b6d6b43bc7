"""The parts of a server that requests need: the manager, the store, access control, limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from headwater.platform.archive_store import ArchiveStore
from headwater.platform.auth import Auth
from headwater.platform.errors import Refused
from headwater.platform.feed import StoreChanges
from headwater.platform.job_file import Problem
from headwater.platform.limits import RateLimit
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.records import JobRecord
from headwater.platform.secret_store import StoredSecrets
from headwater.platform.spec import JobSpec
from headwater.platform.store import Store

#: The timeout of each backend in a request for machines, in seconds.
HOSTS_TIMEOUT_S = 5.0


class Platform:
    """The parts of a server.

    Args:
      store: the database of ``manager`` and ``auth``.
      manager: runs jobs, with the secrets of this server.
      auth: checks tokens and sessions.
      max_archive_bytes: maximum size of an archive.
      per_s: requests of one client per second, in the long run.
      burst: requests of one client at once.
      hosts: the names by which browsers may call the server, if it requires no token.

    Attributes:
      rate: limits the requests of a client.
      failures: limits the wrong tokens of a client.
    """

    def __init__(
        self,
        store: Store,
        manager: Manager,
        auth: Auth,
        *,
        max_archive_bytes: int = 1 << 30,
        per_s: float = 50.0,
        burst: int = 200,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]"),
    ) -> None:
        self.store = store
        self.manager = manager
        self.auth = auth
        self.archives: ArchiveStore = ArchiveStore(manager.settings.archives_dir, max_archive_bytes)
        self.feed: StoreChanges = StoreChanges(store)
        self.rate: RateLimit = RateLimit(per_s, burst)
        self.failures: RateLimit = RateLimit(0.2, 20)
        self.hosts = hosts

    @property
    def secrets(self) -> StoredSecrets:
        """The secrets that jobs may name, and that the platform never shows."""
        assert isinstance(self.manager.secrets, StoredSecrets)
        return self.manager.secrets

    @property
    def settings(self) -> ManagerSettings:
        """The settings for running jobs."""
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
          Refused: the job names an archive that was not uploaded, or a relative folder without an archive.
          NotPossible: see `Manager.submit`.
        """
        if archive is not None and not self.archives.has(archive):
            raise Refused(404, f"archive {archive} does not exist: upload it before submitting the job")
        if spec.archive is not None and archive is None:
            raise _wrong("archive", "cannot be a path: upload the file, and submit the job with its digest")
        if spec.workdir is not None and archive is None and not PurePath(spec.workdir).is_absolute():
            raise _wrong("workdir", f"must be an absolute path on the server's machine, but is {spec.workdir!r}")
        if spec.workdir is not None and archive is not None and os.pardir in PurePath(spec.workdir).parts:
            raise _wrong("workdir", "must be within the archive")
        return self.manager.submit(
            spec, owner=owner, archive=archive, workers=workers, sweep=sweep, settings=settings or {}
        )

    def current(self, records: Iterable[JobRecord]) -> list[JobRecord]:
        """Returns jobs of `store` in their current state."""
        return [self.manager.newest(record) for record in records]


def _wrong(field: str, message: str) -> Refused:
    return Refused(422, f"{field}: {message}", problems=[Problem(field=field, line=None, message=message)])
