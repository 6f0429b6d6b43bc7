"""Plain Python control flow over tensors: ``if``, ``while``, ``for``, ``and``, ``or`` and ``not`` become operations.

The modules that convert functions are loaded for the first function that needs conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def call(function: Callable[..., Any], *args: object) -> Any:
    """Calls ``function`` with ``args``; converts it first if its control flow depends on a tensor.

    Raises:
      OperatorNotAllowedInGraphError: control flow depends on a tensor, and the function cannot be converted, or is
        excluded from conversion.
    """
    try:
        return function(*args)
    except TypeError as error:  # also OperatorNotAllowedInGraphError, and of range, len or int of a tensor
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
