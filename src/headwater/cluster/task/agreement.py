"""What tasks that run one program say of it to each other, and how they differ, in one line."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

Said = Mapping[str, Mapping[str, str]]
"""By topic, such as "optimizer", what a task has: names and values, in short texts."""

#: Values that are longer travel as their digest.
_LONGEST = 200


def said(topics: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, str]]:
    """``topics`` as they travel: each value as text, or as a digest where that is long."""
    return {topic: {name: shortened(str(value)) for name, value in values.items()} for topic, values in topics.items()}


def is_said(value: object) -> bool:
    """Whether what came over a wire is of this kind."""
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
    """``text``, or a digest of it where it is long."""
    return text if len(text) <= _LONGEST else f"digest {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def difference(one: str, ones: Said, other: str, others: Said) -> str:
    """How what ``one`` says differs from what ``other`` says of the topics that both speak of; empty where it does not.

    Args:
      one, other: names of two tasks.
      ones, others: what they say.
    """
    for topic, mine in ones.items():
        theirs = others.get(topic, mine)
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        if names:
            shown = "; ".join(
                f"{name} is {mine.get(name, 'missing')}, not {theirs.get(name, 'missing')}" for name in names[:3]
            )
            more = f"; and {len(names) - 3} more" if len(names) > 3 else ""
            return f"{one} has other {topic} than {other}: {shown}{more}"
    return ""


class Agreement:
    """Whether all workers of a training run one program: that of this task, and of the worker that came first.

    Args:
      task: this task's name.
      program: what it says of its own program.

    Attributes:
      disagreement: how two workers differ of which none can tell which is right, as no update was made yet: all end.
        Empty without such.
    """

    def __init__(self, task: str, program: Said) -> None:
        self._task = task
        self._program = program
        self._first: tuple[str, Said, int] | None = None
        self.disagreement: str = ""

    def begin(self) -> None:
        """Another training begins: the next worker is the first."""
        self._first, self.disagreement = None, ""

    def differs(self, worker: str, program: Said, data: Said, updates: int) -> str:
        """How a worker's program differs; empty where it does not.

        Args:
          worker: its name.
          program, data: what it says of its program and its data.
          updates: how many were made.
        """
        differs = difference(worker, program, self._task, self._program)
        if differs:
            return differs
        if self._first is None:
            self._first = worker, {**program, **data}, updates
            return ""
        first, firsts, before = self._first
        differs = difference(worker, program, first, firsts)
        if differs and updates == before:
            self.disagreement = differs
        return differs

    def other_data(self, worker: str, data: Said) -> str:
        """How a worker's data differ from those of the first one; empty where they do not."""
        if self._first is None:
            return ""
        first, firsts, _ = self._first
        return difference(worker, data, first, firsts)
