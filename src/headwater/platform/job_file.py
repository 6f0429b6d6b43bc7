"""Job files: parses YAML to plain data and the line of every field.

Scalars follow the core schema of YAML 1.2: ``2:8``, ``yes`` and ``2026-01-01`` are text. JSON is YAML, too. A file
cannot create objects of any other type, and its expanded size is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

MAX_CHARACTERS = 1 << 20
_MAX_NODES = 20_000
_MAX_DEPTH = 20

Path = tuple[str | int, ...]
"""The path of a value in a file, e.g. ``("workers", "count")``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A mistake in a job.

    Attributes:
      field: the field, e.g. ``"workers.count"``; empty for the job as a whole.
      line: the line of the field in the file, from 1; None without a file.
      message: the mistake.
    """

    field: str
    line: int | None
    message: str


class JobSpecError(ValueError):
    """An invalid job; the message has one line for each problem, with the file, its line and the field.

    Attributes:
      source: the file's name in messages.
      problems: all problems found, at least one.
    """

    def __init__(self, problems: Sequence[Problem], source: str = "job.yaml") -> None:
        self.source = source
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(self._line, self.problems)))

    def _line(self, problem: Problem) -> str:
        place = f"{self.source}:{problem.line}" if problem.line is not None else self.source
        return f"{place}: {problem.field}: {problem.message}" if problem.field else f"{place}: {problem.message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFile:
    """The content of a job file.

    Attributes:
      data: its mapping, of plain values.
      source: its name in error messages.
      lines: for the path of each value, its line, from 1.
    """

    data: JsonObject
    source: str
    lines: Mapping[Path, int] = field(repr=False)

    def problem(self, path: Path, message: str) -> Problem:
        """Returns a problem with the value at ``path``, or with the nearest enclosing value if it is missing."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        return Problem(field=format_path(path), line=self.lines.get(known), message=message)


def format_path(path: Path) -> str:
    """Formats ``path``: ``("kubernetes", "volumes", 0, "claim")`` is ``kubernetes.volumes[0].claim``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def read_job_file(text: str, source: str = "job.yaml") -> JobFile:
    """Parses YAML or JSON.

    Args:
      text: the file's content.
      source: its name in error messages.

    Raises:
      JobSpecError: the text is not YAML, is not a mapping, contains a key twice, or is too large.
    """
    if len(text) > MAX_CHARACTERS:
        raise JobSpecError([_whole(None, f"has {len(text)} characters, more than {MAX_CHARACTERS}")], source)
    try:
        node = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else None
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise JobSpecError([_whole(line, f"is not YAML: {what}")], source) from error
    except yaml.YAMLError as error:  # a character that is not allowed in YAML
        raise JobSpecError([_whole(None, f"is not YAML: {' '.join(str(error).split())}")], source) from error
    except RecursionError as error:
        raise JobSpecError([_whole(None, "is nested too deeply")], source) from error
    if not isinstance(node, MappingNode):
        raise JobSpecError([_whole(1, "must be a mapping of fields, such as 'name: linear'")], source)
    reader = _Reader(source)
    return JobFile(data=reader.read(node, ()), source=source, lines=reader.lines)


class _CoreLoader(yaml.SafeLoader):
    """Resolves plain scalars by the core schema of YAML 1.2, which lacks the surprising types of 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, _pattern, _first in (
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _CoreLoader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType]
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first
    )


class _Reader:
    """Converts nodes to plain values, and records their lines."""

    def __init__(self, source: str) -> None:
        self.lines: dict[Path, int] = {}
        self._source = source
        self._nodes = 0

    def read(self, node: Node, path: Path) -> Json:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._nodes += 1
        # Aliases are counted each time they are expanded, which bounds the result rather than the file.
        if self._nodes > _MAX_NODES or len(path) > _MAX_DEPTH:
            raise self._error(node, path, "is too large or nested too deeply")
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            items = cast("list[Node]", node.value)
            return [self.read(item, (*path, number)) for number, item in enumerate(items)]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        mapping: dict[str, object] = {}
        for key_node, value_node in cast("list[tuple[Node, Node]]", node.value):
            if not isinstance(key_node, ScalarNode):
                raise self._error(key_node, path, "has a key that is not text")
            key = cast("str", key_node.value)
            if key in mapping:
                raise self._error(key_node, (*path, key), "is given twice")
            self.lines[*path, key] = key_node.start_mark.line + 1
            mapping[key] = self.read(value_node, (*path, key))
        return mapping

    def _scalar(self, node: ScalarNode, path: Path) -> Json:
        text = cast("str", node.value)
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        match tag:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int" if len(text) <= 40:
                return int(text, 0 if text[:2] in ("0o", "0x") else 10)
            case "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case _:
                raise self._error(node, path, f"has a type that job files do not support: {node.tag}")

    def _error(self, node: Node, path: Path, message: str) -> JobSpecError:
        problem = Problem(field=format_path(path), line=node.start_mark.line + 1, message=message)
        return JobSpecError([problem], self._source)


def _whole(line: int | None, message: str) -> Problem:
    return Problem(field="", line=line, message=message)
