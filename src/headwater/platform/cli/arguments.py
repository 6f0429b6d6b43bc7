"""The arguments of ``headwater exec``: Python's own, and a few additional ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_INSECURE = "--insecure"
_DIALECT = "--dialect"
DIALECTS = ("auto", "1", "2")
_FLAGS = frozenset("bBdEiIOPqsSuvx")
_WITH_VALUE = frozenset("WX")
Kind = Literal["file", "module", "code", "stdin"]
_PROGRAM_KINDS: dict[str, Kind] = {"c": "code", "m": "module"}


class UsageError(Exception):
    """Wrong arguments; the message is one line that names the argument."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """A program to run, with the arguments that ``python`` would be given.

    Attributes:
      options: options of the interpreter, e.g. ``("-u", "-W", "error")``.
      insecure: whether servers may start unguarded at addresses that others can reach.
      dialect: the TensorFlow dialect of the program: ``1``, ``2`` or ``auto``; None if not given.
      kind: the kind of ``program``: a file's path, a module's name, code, or (``stdin``) nothing, since the code is
        read from standard input.
      arguments: the program's own arguments.
    """

    options: tuple[str, ...] = ()
    insecure: bool = False
    dialect: str | None = None
    kind: Kind
    program: str = ""
    arguments: tuple[str, ...] = ()

    def command_line(self) -> list[str]:
        """Returns the arguments that describe this program, without the interpreter's options."""
        lead = {"file": [self.program], "module": ["-m", self.program], "code": ["-c", self.program], "stdin": ["-"]}
        own = [*([_INSECURE] if self.insecure else ()), *([_DIALECT, self.dialect] if self.dialect else ())]
        return [*own, *lead[self.kind], *self.arguments]


def parse_arguments(arguments: Sequence[str]) -> Invocation:
    """Parses ``[OPTIONS] PROGRAM|-m MODULE|-c CODE|- [ARGUMENTS]``; short options may be joined, as in ``-uW error``.

    Raises:
      UsageError: an option does not exist or lacks its value, or there is no program.
    """
    options: list[str] = []
    insecure = False
    dialect: str | None = None
    kind: Kind | None = None
    rest = list(arguments)
    while kind is None:
        if not rest:
            raise UsageError("the program is missing: name a file, -m MODULE or -c CODE")
        argument = rest.pop(0)
        if argument == _INSECURE:
            insecure = True
        elif argument == _DIALECT or argument.startswith(f"{_DIALECT}="):
            dialect = _value(_DIALECT, argument.partition("=")[2], rest)
            if dialect not in DIALECTS:
                raise UsageError(f"{_DIALECT} must be one of {', '.join(DIALECTS)}, not {dialect!r}")
        elif argument == "--check-hash-based-pycs":
            options += [argument, _value(argument, "", rest)]
        elif argument.startswith("--"):
            raise UsageError(f"unknown option {argument}")
        elif argument == "-":
            kind = "stdin"
            rest.insert(0, "")
        elif argument.startswith("-"):
            kind = _short_options(argument, rest, options)
        else:
            kind = "file"
            rest.insert(0, argument)
    program, *own = rest
    return Invocation(
        options=tuple(options), insecure=insecure, dialect=dialect, kind=kind, program=program, arguments=tuple(own)
    )


def _short_options(argument: str, rest: list[str], options: list[str]) -> Kind | None:
    """Splits ``argument`` into ``options``; puts the program of ``-c`` or ``-m`` first into ``rest``."""
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
