"""``tf.tpu``, as far as it is useful without TPUs: names of cores, and variables in programs with bfloat16."""

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
    """Returns a context in which `tf.get_variable` for bfloat16 makes a float32 variable and casts its value."""
    with variable_scope("", custom_getter=_cast_when_read) as scope:
        yield scope


def _cast_when_read(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if as_dtype(kwargs["dtype"]) != bfloat16:
        return getter(*args, **kwargs)
    return cast(getter(*args, **{**kwargs, "dtype": float32}), bfloat16)
