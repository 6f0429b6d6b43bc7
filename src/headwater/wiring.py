"""Parts of the package that modules of lower layers need, and may not import. The package says where each part is."""

from __future__ import annotations

from collections.abc import Callable


class Part:
    """A part that is loaded when it is first needed.

    Args:
      what: the part, for messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._load: Callable[[], object] | None = None

    def comes_from(self, load: Callable[[], object]) -> None:
        """Says how the part is loaded: by ``load``, which imports it."""
        self._load = load

    def load(self) -> None:
        """Loads the part, unless it is there. A second thread waits until the first has imported it."""
        assert self._load is not None, f"the package has not said where {self._what} come from"
        self._load()


#: What fills `headwater.registry`. It imports JAX.
OPERATIONS = Part("operations")
#: What Python's operators do with tensors.
OPERATORS = Part("operators")
