"""Parts of the package that modules of lower layers need, and may not import. The package says where each part is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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

    def load(self) -> Any:
        """The part, which is loaded unless it is there. A second thread waits until the first has imported it."""
        assert self._load is not None, f"the package has not said where {self._what} come from"
        return self._load()


#: What fills `headwater.graph.registry`. It imports JAX.
OPERATIONS = Part("operations")
#: What Python's operators do with tensors.
OPERATORS = Part("operators")
#: Datasets of graphs whose examples are accounted for.
ACCOUNTED = Part("accounted datasets")
#: What computes at once, for programs of TensorFlow 2; see `headwater.tf2.at_once`.
AT_ONCE = Part("functions that compute at once")
#: What such programs find of Keras and of arrays; see `headwater.tf2.programs`.
EAGER_PROGRAMS = Part("parts of programs that compute at once")
