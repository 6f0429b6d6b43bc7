"""``tf.layers.experimental``: whether layers that are made now keep variables of their own.

Such a layer creates its variables in a name scope of its own, as layers of Keras do, and takes nothing from the
variable scopes around it: neither names nor defaults. Two layers with the same name have different variables, and
updates of moving averages are only in `Layer.updates`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_within: ContextVar[bool] = ContextVar("keras_style_scope", default=False)


class _Program:
    always = False


def keras_style() -> bool:
    """Returns whether layers that are made now keep variables of their own."""
    return _Program.always or _within.get()


def set_keras_style() -> None:
    """Makes all later layers and cells of this process keep their own variables."""
    _Program.always = True


@contextmanager
def keras_style_scope() -> Generator[None]:
    """Returns a context in which new layers and cells keep their own variables."""
    token = _within.set(True)
    try:
        yield
    finally:
        _within.reset(token)
