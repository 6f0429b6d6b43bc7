"""``tf.tpu``, as far as it says something without TPUs: names of cores, and variables in a program of bfloat16."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from headwater.dtypes import as_dtype, bfloat16, float32
from headwater.tf1.functional.math import cast
from headwater.tf1.variables.scope_settings import VariableScope
from headwater.tf1.variables.variable_scope import variable_scope


def core(num: int) -> str:
    """The name of a core of each replica, for `tf.device`."""
    return f"device:TPU_REPLICATED_CORE:{num}"


@contextmanager
def bfloat16_scope() -> Generator[VariableScope]:
    """Within it, `tf.get_variable` of bfloat16 makes a variable of float32 and gives its value as bfloat16."""
    with variable_scope("", custom_getter=_cast_when_read) as scope:
        yield scope


def _cast_when_read(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if as_dtype(kwargs["dtype"]) != bfloat16:
        return getter(*args, **kwargs)
    return cast(getter(*args, **{**kwargs, "dtype": float32}), bfloat16)
