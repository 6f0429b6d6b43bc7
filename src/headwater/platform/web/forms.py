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
    given = {name: value.strip() for name, value in fields.items() if value.strip()}
    job: JsonObject = {"name": given.get("name", "")}
    kind = given.get("kind", "program")
    if "what" in given and kind in ("program", "module", "command"):
        job[kind] = _words(given["what"], "command", problems) if kind == "command" else given["what"]
    if "args" in given:
        job["args"] = _words(given["args"], "args", problems)
    if "flags" in given:
        job["flags"] = True
    job.update({name: given[name] for name in _PLAIN if name in given})
    env: JsonObject = dict(_variables("env", given, problems))
    env |= {name: {"secret": secret} for name, secret in _variables("secrets", given, problems).items()}
    if env:
        job["env"] = env
    for role, _ in ROLES:
        asked = _role(role, given)
        if asked is not None:
            job[role] = asked
    restart = {name: _value(given[f"restart.{name}"]) for name in ("policy", "limit") if f"restart.{name}" in given}
    if restart:
        job["restart"] = restart
    if "priority" in given:
        job["priority"] = _value(given["priority"])
    return job


def _role(role: str, given: Mapping[str, str]) -> Json:
    """Returns the settings of a role: a number of tasks, or a mapping; None for the default."""
    count = given.get(f"{role}.count")
    if role in ("chief", "evaluator") and count is not None:
        count = "1"
    none = count in (None, "0")
    if none and role != "workers":
        return None
    asked = {name: _value(given[f"{role}.{name}"]) for name in ("gpus", "cpus", "memory") if f"{role}.{name}" in given}
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


def _variables(field: str, given: Mapping[str, str], problems: list[Problem]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in given.get(field, "").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator:
            found[name.strip()] = value
        elif name:
            problems.append(Problem(field=field, line=None, message=f"must be NAME=VALUE lines, but one is {name!r}"))
    return found
