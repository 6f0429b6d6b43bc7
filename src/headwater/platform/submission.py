"""From a job file to what a server is handed: its fields, and an archive where there is one."""

from __future__ import annotations

import tempfile
from pathlib import Path

from headwater.platform.client import ApiClient
from headwater.platform.packing import pack
from headwater.platform.spec import JobSpec, parse_job


def read_job(path: Path) -> JobSpec:
    """The job of a file, as it is written there.

    Raises:
      JobSpecError: with every problem that was found, each with its field and line.
      OSError, UnicodeDecodeError: the file cannot be read.
    """
    return parse_job(path.read_text(encoding="utf-8"), str(path))


def placed(spec: JobSpec, path: Path) -> JobSpec:
    """``spec`` of the file ``path``: its working folder, unless it names one, is the file's own."""
    folder = path.absolute().parent
    if spec.archive is not None:
        return spec.model_copy(update={"archive": str(folder / spec.archive)})
    return spec.model_copy(update={"workdir": str(folder / (spec.workdir or "."))})


def hand_in(client: ApiClient, spec: JobSpec, *, upload: bool) -> tuple[JobSpec, str | None]:
    """Hands in the archive of a job, or its working folder where asked to; the job as it is then, and the digest.

    Raises:
      ClientError: the server refuses it, or the archive cannot be read.
      OSError, ValueError: the working folder cannot be packed.
    """
    if spec.archive is not None:
        return spec, client.upload(Path(spec.archive))
    if not upload:
        return spec, None
    with tempfile.TemporaryDirectory(prefix="headwater-submit-") as folder:
        archive = Path(folder, "files.tar.gz")
        pack(Path(spec.workdir or "."), archive)
        return spec.model_copy(update={"workdir": None}), client.upload(archive)
