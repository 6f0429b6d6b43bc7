"""From a job file to a submission: its fields, and an archive if there is one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.platform.packing import pack
from headwater.platform.spec import JobSpec, parse_job

if TYPE_CHECKING:
    from headwater.platform.client import ApiClient


def read_job(path: Path) -> JobSpec:
    """Parses the job of a file, without resolving its paths.

    Raises:
      JobSpecError: the job is invalid; lists every problem with its field and line.
      OSError, UnicodeDecodeError: the file cannot be read.
    """
    return parse_job(path.read_text(encoding="utf-8"), str(path))


def resolve_paths(spec: JobSpec, path: Path) -> JobSpec:
    """Resolves the paths in ``spec`` of the file ``path``: the working folder, unless given, is the file's folder."""
    folder = path.absolute().parent
    if spec.archive is not None:
        return spec.model_copy(update={"archive": str(folder / spec.archive)})
    return spec.model_copy(update={"workdir": str(folder / (spec.workdir or "."))})


def upload_files(client: ApiClient, spec: JobSpec, *, upload: bool) -> tuple[JobSpec, str | None]:
    """Uploads the archive of a job, or its working folder if requested; returns the adapted job and the digest.

    Raises:
      ClientError: the server refuses the archive, or the archive cannot be read.
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
