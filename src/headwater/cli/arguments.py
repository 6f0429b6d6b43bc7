"""The arguments of ``headwater exec``, which are those of ``python``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_FLAGS = frozenset("bBdEiIOPqsSuvx")
_WITH_VALUE = frozenset("WX")
_PROGRAM_KINDS: dict[str, Literal["code", "module"]] = {"c": "code", "m": "module"}


class UsageError(Exception):
    """Arguments that cannot be right; the message is one line that names the argument."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """A program to run, as ``python`` would be told.

    Attributes:
      options: options of the interpreter, e.g. ``("-u", "-W", "error")``.
      kind: what ``program`` is: a file's path, a module's name, code, or (``stdin``) nothing: code comes from there.
      arguments: the program's own.
    """

    options: tuple[str, ...] = ()
    kind: Literal["file", "module", "code", "stdin"]
    program: str = ""
    arguments: tuple[str, ...] = ()

    def command_line(self) -> list[str]:
        """The arguments that describe this program, without the interpreter's options."""
        lead = {"file": [self.program], "module": ["-m", self.program], "code": ["-c", self.program], "stdin": ["-"]}
        return [*lead[self.kind], *self.arguments]


def parse_arguments(arguments: Sequence[str]) -> Invocation:
    """Reads ``[OPTIONS] PROGRAM|-m MODULE|-c CODE|- [ARGUMENTS]``; short options may be joined, as in ``-uW error``.

    Raises:
      UsageError: an option that ``python`` does not have, one without its value, or no program.
    """
    options: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "-":
            return Invocation(options=tuple(options), kind="stdin", arguments=tuple(rest))
        if argument == "--check-hash-based-pycs":
            options += [argument, _value(argument, "", rest)]
        elif argument.startswith("--"):
            raise UsageError(f"unknown option {argument}")
        elif argument.startswith("-"):
            kind = _short_options(argument, rest, options)
            if kind is not None:
                program = rest.pop(0)
                return Invocation(options=tuple(options), kind=kind, program=program, arguments=tuple(rest))
        else:
            return Invocation(options=tuple(options), kind="file", program=argument, arguments=tuple(rest))
    raise UsageError("which program? Name a file, -m MODULE or -c CODE")


def _short_options(argument: str, rest: list[str], options: list[str]) -> Literal["code", "module"] | None:
    """Takes ``argument`` apart into ``options``; leaves the program of ``-c`` or ``-m`` first in ``rest``."""
    for position, letter in enumerate(argument[1:], start=1):
        joined = argument[position + 1 :]
        if letter in _FLAGS:
            options.append(f"-{letter}")
        elif letter in _WITH_VALUE:
            options += [f"-{letter}", _value(f"-{letter}", joined, rest)]
            return None
        elif letter in _PROGRAM_KINDS:
            rest.insert(0, _value(f"-{letter}", joined, rest))
            return _PROGRAM_KINDS[letter]
        else:
            raise UsageError(f"unknown option -{letter} in {argument!r}")
    return None


def _value(option: str, joined: str, rest: list[str]) -> str:
    if joined:
        return joined
    if not rest:
        raise UsageError(f"option {option} needs a value")
    return rest.pop(0)
