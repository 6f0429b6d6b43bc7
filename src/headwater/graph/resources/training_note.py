"""A task's note of its variables' training; see `headwater.tf1.training.seals`."""

from __future__ import annotations

from collections.abc import Callable

from headwater.graph.resources.containers import Resources


class Note:
    """A text that a task keeps together with its variables.

    Attributes:
      text: the text; empty before it is written.
      prepares: whether a chief is about to initialise or restore the variables. Other workers wait until the chief has
        written the text.
      together: the reason why all tasks have to restore their variables together; empty if this task can restore its
        own state alone.
      on_change: called after each change, in the same thread.
    """

    def __init__(self) -> None:
        self.text: bytes = b""
        self.prepares: bool = False
        self.together: str = ""
        self.on_change: Callable[[], None] | None = None

    def change(self, text: bytes, together: str, *, prepares: bool = False) -> None:
        """Sets text, together and prepares."""
        self.text, self.together, self.prepares = text, together, prepares
        if self.on_change is not None:
            self.on_change()


def training_note_of(resources: Resources) -> Note:
    """Returns the note of the task with these resources."""
    return resources.get_or_make("", "training", Note, Note)
