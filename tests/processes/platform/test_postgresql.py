"""The store in a PostgreSQL server, which the test starts; skipped if PostgreSQL is not installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from headwater.platform import policy
from headwater.platform.records import Attempt, JobRecord, Sample
from headwater.platform.spec import parse_job
from headwater.platform.states import Fault, JobPhase, Note
from headwater.platform.store import Store, StoreError
from headwater.platform.tables import Base


def _program(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")]))


@pytest.fixture
def url() -> Iterator[str]:
    """Yields the URL of a new PostgreSQL server at a Unix socket in its folder."""
    pytest.importorskip("psycopg")
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed")
    # PostgreSQL refuses to run as root.
    user = None
    if os.geteuid() == 0:
        if "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
            pytest.skip("as root, PostgreSQL needs a user postgres to run as")
        user = "postgres"
    with tempfile.TemporaryDirectory(prefix="headwater-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)

        def run(*command: str) -> None:
            subprocess.run(
                command,
                user=user,
                cwd=folder,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        run(initdb, "--auth=trust", "--username=headwater", "--no-sync", f"--pgdata={folder}/data")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(pg_ctl, "start", "-w", "-D", f"{folder}/data", "-l", f"{folder}/log", "-o", options)
        try:
            yield f"postgresql+psycopg://headwater@/postgres?host={folder}"
        finally:
            run(pg_ctl, "stop", "-w", "-m", "immediate", "-D", f"{folder}/data")


def test_the_store_in_postgresql(url: str) -> None:
    store = Store(url)
    store.open()
    state = policy.initial_state(parse_job("name: a\nprogram: b\nps: 1\nworkers: 2:4"), 1e9 + 0.25)
    fault = Fault(task="worker-0", at=5.0, attempt=1, code=None, reason="lost", last_lines=("a",))
    job = JobRecord(id="a-1", owner="eve", submitted_at=1e9 + 0.25, backend="local", state=replace(state, first=fault))
    life = Attempt(task="worker-0", attempt=0, started_at=1.0)
    sample = Sample(task="ps-0", at=3.0, step=2**40, loss=0.5)
    for number in range(2):
        store.save(job, notes=[Note("queued", str(number))], attempts=[life], samples=[sample], now=7.0)
    assert store.job("a-1") == job
    assert [event.note.text for event in store.events()] == ["0", "1"]
    assert (store.attempts("a-1"), store.samples("a-1")) == ([life], [sample])
    assert store.counts() == {JobPhase.QUEUED: 1}
    other = Store(url)
    with pytest.raises(StoreError, match="another server uses"):
        other.open()
    other.close()
    store.close()

    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()

    again = Store(url)
    again.open()
    assert again.jobs() == [job]
    again.delete_job("a-1")
    assert (again.jobs(), again.events(), again.samples("a-1")) == ([], [], [])
    again.close()
