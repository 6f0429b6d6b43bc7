"""Backends of a server, read from a file::

    default: ssh
    local: {cpus: 4}
    ssh:
      hosts:
        - {host: trainer@a.example, labels: {zone: north}}
        - {host: trainer@b.example}

Each key, except ``default``, has the settings of that backend. Without a file, this machine is the only backend.
"""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError

from headwater.platform.backends.base import Backend, BackendError
from headwater.platform.job_file import JobFile, JobSpecError, Problem, read_job_file
from headwater.platform.lanes import BackendSource

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

# The module of each kind of backend, and the names of its classes. A module is imported when it is needed, because most
# modules need packages that are not always installed.
_BACKENDS = {
    "local": ("local", "LocalBackend", "LocalSettings"),
    "ssh": ("ssh", "SshBackend", "SshSettings"),
    "ray": ("ray", "RayBackend", "RaySettings"),
    "kubernetes": ("kubernetes", "KubernetesBackend", "KubernetesSettings"),
    "slurm": ("slurm", "SlurmBackend", "SlurmSettings"),
}
_DEFAULT = "default"


def load_backends(path: Path | None, data_dir: Path, *, local: dict[str, object] | None = None) -> list[BackendSource]:
    """Reads the backends of a server, the default one first, without connecting to any of them.

    Args:
      path: the file; None for this machine only.
      data_dir: the server's folder, in which backends with a ``state_dir`` get a subfolder.
      local: defaults for settings of this machine that the file does not give.

    Raises:
      JobSpecError: a field of the file is wrong; the message names the field and its line.
      BackendError: a package that a backend needs is not installed.
      OSError: the file cannot be read.
    """
    if path is None:
        file = JobFile(data={"local": {}}, source="backends", lines={})
    else:
        file = read_job_file(path.read_text(encoding="utf-8"), str(path))
    parts = dict(file.data)
    default = parts.pop(_DEFAULT, None)
    if not parts:
        raise JobSpecError([file.problem((), f"must have at least one of {', '.join(_BACKENDS)}")], file.source)
    if default is not None and default not in parts:
        raise JobSpecError([file.problem((_DEFAULT,), f"must be one of {', '.join(parts)}")], file.source)
    names = sorted(parts, key=lambda name: name != default)
    return [_backend(file, name, parts[name], data_dir, local if name == "local" else None) for name in names]


def _backend(
    file: JobFile, name: str, fields: object, data_dir: Path, defaults: dict[str, object] | None
) -> BackendSource:
    if name not in _BACKENDS:
        raise JobSpecError([file.problem((name,), f"is not a backend; there are {', '.join(_BACKENDS)}")], file.source)
    if fields is None:
        fields = {}
    if not isinstance(fields, dict):
        raise JobSpecError([file.problem((name,), "must be a mapping of fields")], file.source)
    module_name, backend_name, settings_name = _BACKENDS[name]
    try:
        module = importlib.import_module(f"headwater.platform.backends.{module_name}")
    except ImportError as error:
        raise BackendError(f"backend {name}: {error}: pip install 'headwater[{name}]'") from error
    settings_type = getattr(module, settings_name)
    named = cast("JsonObject", fields)
    known = {field.name for field in dataclasses.fields(settings_type)}
    unknown = [file.problem((name, field), "is not a field of this backend") for field in named if field not in known]
    if unknown:
        raise JobSpecError(unknown, file.source)
    values: dict[str, object] = {**(defaults or {}), **named}
    if "state_dir" in known:
        values.setdefault("state_dir", data_dir / name)
    try:
        settings = TypeAdapter(settings_type).validate_python(values)
    except ValidationError as error:
        raise JobSpecError([_problem(file, name, entry) for entry in error.errors()], file.source) from error
    kind: type[Backend] = getattr(module, backend_name)
    return BackendSource(name=name, kind=kind, connect=lambda: cast("Any", kind)(settings))


def _problem(file: JobFile, name: str, entry: Json) -> Problem:
    return file.problem((name, *entry["loc"]), str(entry["msg"]).removeprefix("Value error, "))
