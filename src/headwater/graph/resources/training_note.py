"""A task's note of the training whose variables it holds; see `headwater.tf1.training.seals`."""

from __future__ import annotations

from collections.abc import Callable

from headwater.graph.resources.containers import Resources


class Note:
    """A text that a task keeps for as long as its variables.

    Attributes:
      text: empty before it is written.
      prepares: whether a chief is about to give the variables their values, or has begun to: others wait until it has
        written the text.
      together: why this task's variables are restored together with those of other tasks only; empty where it may go
        back by itself.
      on_change: called after each change, by who made it.
    """

    def __init__(self) -> None:
        self.text: bytes = b""
        self.prepares: bool = False
        self.together: str = ""
        self.on_change: Callable[[], None] | None = None

    def change(self, text: bytes, together: str, *, prepares: bool = False) -> None:
        """Writes all three."""
        self.text, self.together, self.prepares = text, together, prepares
        if self.on_change is not None:
            self.on_change()


def note_of(resources: Resources) -> Note:
    """The note of the task with these resources."""
    return resources.get_or_make("", "training", Note, Note)
