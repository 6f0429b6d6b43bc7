"""Regular expressions with RE2's syntax and semantics, on UTF-8 text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from headwater.dtypes import bool_, string
from headwater.graph.ops.define import host
from headwater.graph.ops.strings import as_bytes, each
from headwater.graph.registry import HostArray, Inference, Spec


@functools.lru_cache(maxsize=256)
def compiled(pattern: bytes) -> Any:
    """Compiles an expression; raises ValueError with RE2's reason if ``pattern`` is invalid."""
    import re2  # noqa: PLC0415  a shared library that few programs need

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"Invalid pattern: {pattern.decode(errors='replace')}, error: {shown}") from None


def _rewrite_parts(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    """Parses ``rewrite`` into strings and group numbers, up to its first invalid escape; also returns whether all
    escapes are valid."""
    first, *rest = rewrite.split(b"\\")
    parts: list[bytes | int] = [first]
    pieces = iter(rest)
    for piece in pieces:
        if piece[:1].isdigit():
            parts += [int(piece[:1]), piece[1:]]
        elif piece or (following := next(pieces, None)) is None:
            return parts, False
        else:
            parts.append(b"\\" + following)
    return parts, True


def replace(pattern: bytes, rewrite: bytes, text: bytes, everywhere: bool = True) -> bytes:
    """Returns ``text`` with its first match, or all non-overlapping matches, replaced; ``\\1`` is the first group.

    An empty match directly after another match is skipped. A reference to a group that the pattern does not have is
    replaced by nothing. If ``rewrite`` has an invalid escape, only the part before the escape is used; if only the
    first match is to be replaced, ``text`` is returned unchanged.
    """
    expression = compiled(pattern)
    parts, valid = _rewrite_parts(rewrite)
    if not valid and not everywhere:
        return text
    found: list[bytes] = []
    done = begin = 0
    last_end = -1
    while begin <= len(text) and (match := expression.search(text, begin)) is not None:
        start, end = match.span()
        if start == end == last_end:
            begin = end + _character_size(text, end)
            continue
        found.append(text[done:start])
        groups = (match.group(), *match.groups(b""), *[b""] * 9)
        found += [groups[part] if isinstance(part, int) else part for part in parts]
        done = begin = last_end = end
        if not everywhere:
            break
    return b"".join([*found, text[done:]])


def _character_size(text: bytes, at: int) -> int:
    """Returns the number of bytes of the character at ``at``; 1 if it is invalid."""
    for size in range(1, 5):
        try:
            text[at : at + size].decode()
        except UnicodeDecodeError:
            continue
        return size
    return 1


def _same_shape(inference: Inference) -> Sequence[Spec]:
    return [Spec(string, inference.inputs[0].dims)]


def _truths(inference: Inference) -> Sequence[Spec]:
    return [Spec(bool_, inference.inputs[0].dims)]


@host("StaticRegexReplace", inputs="input:string", infer=_same_shape)
def static_regex_replace(input: HostArray, *, pattern: str, rewrite: str, replace_global: bool = True) -> HostArray:
    """Replaces matches of a regular expression; ``\\1`` in ``rewrite`` is the first group."""
    expression, new = as_bytes(pattern), as_bytes(rewrite)
    compiled(expression)
    return each(lambda text: replace(expression, new, text, replace_global), input)


@host("RegexReplace", inputs="input:string, pattern:string, rewrite:string", infer=_same_shape)
def regex_replace(
    input: HostArray, pattern: HostArray, rewrite: HostArray, *, replace_global: bool = True
) -> HostArray:
    """Like `static_regex_replace`, with the expression as an input."""
    return static_regex_replace(input, pattern=pattern.item(), rewrite=rewrite.item(), replace_global=replace_global)


@host("StaticRegexFullMatch", inputs="input:string", infer=_truths)
def static_regex_full_match(input: HostArray, *, pattern: str) -> HostArray:
    """Returns whether the whole text matches a regular expression."""
    expression = compiled(as_bytes(pattern))
    return each(lambda text: expression.fullmatch(text) is not None, input, bool_)


@host("RegexFullMatch", inputs="input:string, pattern:string", infer=_truths)
def regex_full_match(input: HostArray, pattern: HostArray) -> HostArray:
    """Like `static_regex_full_match`, with the expression as an input."""
    return static_regex_full_match(input, pattern=pattern.item())
