"""Plain Python control flow over tensors: ``if``, ``while``, ``for``, ``and``, ``or`` and ``not`` become operations.

What rewrites functions is loaded when a function is met that needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def call(function: Callable[..., Any], *args: object) -> Any:
    """What ``function`` gives for ``args``; it is converted where Python cannot run it because a tensor would decide.

    Raises:
      OperatorNotAllowedInGraphError: a tensor would decide, and the function cannot be converted, or is not to be.
    """
    try:
        return function(*args)
    except (
        TypeError
    ) as error:  # OperatorNotAllowedInGraphError, and what range(tensor), len(tensor) or int(tensor) raise
        first = error
    from headwater.tf1.functional.autograph import conversion  # noqa: PLC0415  see above

    if conversion.is_left_alone(function):
        raise first
    try:
        made = conversion.converted(function)
    except conversion.ConversionError as error:
        first.add_note(str(error))
        raise first from None
    return made(*args)
