"""Comparison of the programs of tasks: the facts that they exchange, and one-line descriptions of differences."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

Said = Mapping[str, Mapping[str, str]]
"""A task's description of its program: by topic, such as "optimizer", names and values as short texts."""

#: Values with more characters are sent as digests.
_MAX_CHARACTERS = 200


def encode_topics(topics: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, str]]:
    """Encodes ``topics`` for sending: each value as a string, or as a digest if the string is long."""
    return {topic: {name: shortened(str(value)) for name, value in values.items()} for topic, values in topics.items()}


def is_program_description(value: object) -> bool:
    """Returns whether a received value is a valid `Said`."""
    if not isinstance(value, dict):
        return False
    topics: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType]
    return all(isinstance(topic, str) and _is_texts(texts) for topic, texts in topics.items())


def _is_texts(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    texts: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType]
    return all(isinstance(name, str) and isinstance(text, str) for name, text in texts.items())


def shortened(text: str) -> str:
    """Returns ``text``, or a digest of it if it is long."""
    return text if len(text) <= _MAX_CHARACTERS else f"digest {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def difference(one: str, ones: Said, other: str, others: Said) -> str:
    """Describes the first topic that two tasks both report, but differently; empty if there is none.

    Args:
      one, other: names of the two tasks.
      ones, others: their descriptions of their programs.
    """
    for topic, mine in ones.items():
        theirs = others.get(topic, mine)
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        if names:
            differences = "; ".join(
                f"{name} is {mine.get(name, 'missing')}, not {theirs.get(name, 'missing')}" for name in names[:3]
            )
            more = f"; and {len(names) - 3} more" if len(names) > 3 else ""
            return f"{one} has other {topic} than {other}: {differences}{more}"
    return ""


class Agreement:
    """Checks that all workers of a training run the same program as this task and as the first worker.

    Args:
      task: this task's name.
      program: the description of this task's program.

    Attributes:
      disagreement: the difference between the programs of two workers; empty without one. It is set only before the
          first update: at that time it is unknown which of the two programs is the intended one, so all workers have to
          end.
    """

    def __init__(self, task: str, program: Said) -> None:
        self._task = task
        self._program = program
        self._first: tuple[str, Said, int] | None = None
        self.disagreement: str = ""

    def reset(self) -> None:
        """Forgets the first worker, as another training begins: the next worker counts as the first."""
        self._first, self.disagreement = None, ""

    def differs(self, worker: str, program: Said, data: Said, updates: int) -> str:
        """Describes how a worker's program differs from the programs of other workers; returns an empty text if it does
        not.

        Args:
          worker: the worker's name.
          program, data: the worker's descriptions of its program and of its data.
          updates: the number of updates made so far.
        """
        differs = difference(worker, program, self._task, self._program)
        if differs:
            return differs
        if self._first is None:
            self._first = worker, {**program, **data}, updates
            return ""
        first, firsts, before = self._first
        differs = difference(worker, program, first, firsts)
        # After an update, the first worker's program counts as the intended one: refuse only the other worker.
        if differs and updates == before:
            self.disagreement = differs
        return differs

    def other_data(self, worker: str, data: Said) -> str:
        """Describes how a worker's data differ from the first worker's data; empty if they do not."""
        if self._first is None:
            return ""
        first, firsts, _ = self._first
        return difference(worker, data, first, firsts)
