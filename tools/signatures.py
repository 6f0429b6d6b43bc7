"""Compares how Headwater's names are called with how TensorFlow 1.15's are: arguments, their order, their defaults.

TensorFlow's are facts, which ``tools/record_signatures.py`` wrote. A difference that stays is in
``tools/data/signature_differences.txt`` with its reason. ``python tools/signatures.py`` prints the differences that
have no reason, and reasons without a difference; it fails where there is one.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import tf
from headwater.dtypes import DType

DATA = Path(__file__).resolve().parent / "data"
REQUIRED = "(none)"
"""What stands for the default of an argument that has none."""

_ARGUMENT = re.compile(
    r"((?:[^,\[\]()<>'\"]|\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\]|<[^<>]*>|'[^']*'|\"[^\"]*\")+)(?:, |$)"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """How something is called.

    Attributes:
      positional: names and defaults, as text, of the arguments that have a place.
      named: names and defaults of those that are only given by name.
      more: whether it takes any number of arguments, `*args`, and arguments of any name, `**kwargs`.
    """

    positional: dict[str, str]
    named: dict[str, str]
    more: tuple[bool, bool]


def parsed(text: str) -> Signature:
    """The signature that ``text`` tells of, such as ``x, y, name=None``."""
    positional: dict[str, str] = {}
    named: dict[str, str] = {}
    more = [False, False]
    place = positional
    for argument in _ARGUMENT.findall(text):
        name, _, default = argument.partition("=")
        if name.startswith("**"):
            more[1] = True
        elif name.startswith("*"):
            more[0], place = len(name) > 1, named
        else:
            place[name] = default or REQUIRED
    return Signature(positional, named, (more[0], more[1]))


def of_ours(function: Callable[..., Any], skips_first: bool) -> Signature:
    """The signature of a function, method or class of Headwater's.

    Raises:
      ValueError: Python cannot tell.
    """
    parameters = list(inspect.signature(function).parameters.values())[1 if skips_first else 0 :]
    kinds = {kind: [p for p in parameters if p.kind is kind] for kind in inspect._ParameterKind}  # pyright: ignore[reportPrivateUsage]
    by_place = kinds[inspect.Parameter.POSITIONAL_ONLY] + kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return Signature(
        {parameter.name: _written(parameter.default) for parameter in by_place},
        {parameter.name: _written(parameter.default) for parameter in kinds[inspect.Parameter.KEYWORD_ONLY]},
        (bool(kinds[inspect.Parameter.VAR_POSITIONAL]), bool(kinds[inspect.Parameter.VAR_KEYWORD])),
    )


def _written(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return REQUIRED
    if isinstance(default, DType):
        return f"tf.{default.name}"
    if isinstance(default, tuple | list):
        items: list[Any] = list(default)
        inner = ", ".join(map(_written, items))
        return f"({inner})" if isinstance(default, tuple) else f"[{inner}]"
    if default is None or isinstance(default, bool | int | float | str | bytes):
        return repr(default)
    return f"<{getattr(default, '__name__', type(default).__name__)}>"


def differences(ours: Signature, theirs: Signature) -> Iterator[str]:
    """What a program that calls TensorFlow's could notice, in words."""
    known = ours.positional | ours.named
    for name, default in (theirs.positional | theirs.named).items():
        if name not in known:
            yield f"lacks {name}" if not ours.more[1] else f"takes {name} among others"
        elif not _same(known[name], default):
            yield f"{name}={known[name]} for {default}"
    order = [name for name in theirs.positional if name in known]
    wrong = [name for name, mine in zip(order, ours.positional, strict=False) if name != mine]
    if (wrong or len(ours.positional) < len(order)) and not (ours.more[0] and not ours.positional):
        yield f"order {', '.join(ours.positional)}"
    for name, default in (ours.positional | ours.named).items():
        if default == REQUIRED and name not in theirs.positional | theirs.named and not theirs.more[1]:
            yield f"needs {name}"
    for mine, other, name in zip(ours.more, theirs.more, ("*", "**"), strict=True):
        if other and not mine:
            yield f"lacks {name}"


def _same(mine: str, other: str) -> bool:
    if mine == other:
        return True
    # A default that is an object: that ours has one is all that can be compared.
    if "<" in other:
        return mine != REQUIRED
    # A sequence is written as a tuple or a list, a number with or without a point.
    return mine.replace("(", "[").replace(")", "]").replace(",]", "]") == other.replace("(", "[").replace(")", "]") or (
        _number(mine) is not None and _number(mine) == _number(other)
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def compared() -> dict[str, list[str]]:
    """For each recorded name that Headwater has, what differs; names without a difference have an empty list."""
    recorded: Mapping[str, str] = json.loads((DATA / "tensorflow_1_15_signatures.json").read_text())
    found: dict[str, list[str]] = {}
    for name, text in recorded.items():
        theirs = parsed(text)
        try:
            found[name] = list(differences(_ours(name), theirs))
        except AttributeError:
            continue
        except ValueError:
            found[name] = ["Python cannot tell"]
    return found


def _ours(name: str) -> Signature:
    words = name.split(".")[1:]
    holder: Any = functools.reduce(getattr, words[:-1], tf)
    value = getattr(holder, words[-1])
    if not callable(value):
        raise ValueError(name)
    static = inspect.getattr_static(holder, words[-1]) if isinstance(holder, type) else None
    return of_ours(value, skips_first=inspect.isfunction(static))


def lacking() -> Iterator[str]:
    """Public methods of TensorFlow's classes that the classes of Headwater lack."""
    recorded: Mapping[str, str] = json.loads((DATA / "tensorflow_1_15_signatures.json").read_text())
    names = set((DATA / "tensorflow_1_15_names.txt").read_text().split())
    for name in recorded.keys() - names:
        holder = name.rpartition(".")[0]
        try:
            _ours(holder)
        except (AttributeError, ValueError):
            continue
        try:
            _ours(name)
        except AttributeError:
            yield name
        except ValueError:
            continue


def reasons() -> dict[str, str]:
    """The reason for each difference, by the difference: ``tf.name: lacks x``."""
    lines = (DATA / "signature_differences.txt").read_text().splitlines()
    pairs = (line.split(" # ") for line in lines if line and not line.startswith("#"))
    return {difference.strip(): reason.strip() for difference, reason in pairs}


def unexplained() -> list[str]:
    """Differences without a reason, and reasons without a difference."""
    there = {f"{name}: {difference}" for name, listed in compared().items() for difference in listed}
    known = reasons()
    return sorted(there - known.keys()) + [f"no such difference: {text}" for text in sorted(known.keys() - there)]


def main() -> int:
    """Prints what has no reason, or how many have one; 1 where there is something."""
    found = unexplained()
    print("\n".join(found) or f"signatures differ in {len(reasons())} ways, each with a reason")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
