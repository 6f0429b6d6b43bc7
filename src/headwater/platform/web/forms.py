"""The form for a new job, and its conversion to a job file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from headwater.data.io.json_types import Json, JsonObject
from headwater.platform.job_file import JobSpecError, Problem
from headwater.platform.spec import JobSpec, parse_job

ROLES = (("ps", "Parameter servers"), ("workers", "Workers"), ("chief", "Chief"), ("evaluator", "Evaluator"))
"""The roles in the form: their fields in a job file, and their titles."""

DEFAULTS: Mapping[str, str] = {
    "name": "",
    "kind": "program",
    "what": "",
    "args": "",
    "ps.count": "1",
    "workers.count": "2",
}
"""The initial values of the form."""

_PLAIN = ("archive", "workdir", "checkpoint_dir", "log_dir", "data_dir", "backend")


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A job as entered in the form.

    Attributes:
      text: the corresponding job file.
      spec: the job; None if there are problems.
    """

    text: str
    spec: JobSpec | None
    problems: tuple[Problem, ...]


def draft(fields: Mapping[str, str]) -> Draft:
    """Returns the job described by a form."""
    problems: list[Problem] = []
    text = yaml.safe_dump(_job(fields, problems), sort_keys=False, allow_unicode=True, width=100)
    try:
        spec = parse_job(text, "the job")
    except JobSpecError as error:
        problems += error.problems
        spec = None
    return Draft(text=text, spec=None if problems else spec, problems=tuple(problems))


def _job(fields: Mapping[str, str], problems: list[Problem]) -> dict[str, object]:
    filled = {name: value.strip() for name, value in fields.items() if value.strip()}
    job: JsonObject = {"name": filled.get("name", "")}
    kind = filled.get("kind", "program")
    if "what" in filled and kind in ("program", "module", "command"):
        job[kind] = _words(filled["what"], "command", problems) if kind == "command" else filled["what"]
    if "args" in filled:
        job["args"] = _words(filled["args"], "args", problems)
    if "flags" in filled:
        job["flags"] = True
    job.update({name: filled[name] for name in _PLAIN if name in filled})
    env: JsonObject = dict(_variables("env", filled, problems))
    env |= {name: {"secret": secret} for name, secret in _variables("secrets", filled, problems).items()}
    if env:
        job["env"] = env
    for role, _ in ROLES:
        asked = _role(role, filled)
        if asked is not None:
            job[role] = asked
    restart = {name: _value(filled[f"restart.{name}"]) for name in ("policy", "limit") if f"restart.{name}" in filled}
    if restart:
        job["restart"] = restart
    if "priority" in filled:
        job["priority"] = _value(filled["priority"])
    return job


def _role(role: str, filled: Mapping[str, str]) -> Json:
    """Returns the settings of a role: a number of tasks, or a mapping; None for the default."""
    count = filled.get(f"{role}.count")
    if role in ("chief", "evaluator") and count is not None:
        count = "1"
    none = count in (None, "0")
    if none and role != "workers":
        return None
    asked = {
        name: _value(filled[f"{role}.{name}"]) for name in ("gpus", "cpus", "memory") if f"{role}.{name}" in filled
    }
    asked = {name: value for name, value in asked.items() if value != 0}
    plain: Json = _value(count) if count is not None else 1
    if role in ("chief", "evaluator"):
        plain = True
    return {"count": 1 if plain is True else plain, **asked} if asked else plain


def _value(text: str) -> float | int | str:
    """Returns ``text`` as a number if it is one; other values are validated by the job's rules."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _words(text: str, field: str, problems: list[Problem]) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        problems.append(Problem(field=field, line=None, message=f"cannot be split into words: {error}"))
        return []


def _variables(field: str, filled: Mapping[str, str], problems: list[Problem]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for line in filled.get(field, "").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator:
            variables[name.strip()] = value
        elif name:
            problems.append(Problem(field=field, line=None, message=f"must be NAME=VALUE lines, but one is {name!r}"))
    return variables
