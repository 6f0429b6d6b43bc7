"""Variables with values on the ``ps`` only: embedding tables and their optimizer slots.

In the scope of a parameter-server strategy, a table is created without values. Each ``ps`` initializes its own rows.
Reading such a variable returns the current values of the ``ps``; before the ``ps`` are connected, it returns the
initializer's values.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

import jax
import keras
import numpy as np

from headwater.keras.embeddings.calls import is_tracing
from headwater.keras.embeddings.initial import initial_rows
from headwater.keras.internals import BaseOptimizer, JaxVariable, in_stateless_scope
from headwater.ps.updater import Array

_Variable: Any = JaxVariable


class TableVariable(_Variable):
    """A variable with values on other tasks, unless the program has assigned values.

    `as_table` changes the class of an existing variable to this one; the class itself is never called.
    """

    #: Reads the whole variable from the ``ps``; None as long as it is not stored there.
    _source: Callable[[], Array] | None = None
    #: The name of the layer that owns these weights; None for an optimizer's slot.
    _layer: str | None = None
    #: The table that this optimizer slot belongs to.
    _of = None

    @property
    def value(self) -> Any:
        if self._layer is not None and is_tracing():
            raise ValueError(
                f"the model reads the weights of layer {self._layer!r} directly, in a layer, a loss or a metric, "
                "but only some rows are here: call the layer, or keep it whole, with table_bytes= of the strategy"
            )
        if self._value is None and not in_stateless_scope():
            if self._source is not None:
                return self._maybe_autocast(jax.numpy.asarray(self._source()))
            with jax.ensure_compile_time_eval():
                self._value = jax.numpy.asarray(self._initializer(self._shape, dtype=self._dtype))
        return super().value

    @property
    def local_values(self) -> Array | None:
        """Values that the program has assigned or read, if they are not on the ``ps`` yet."""
        return None if self._value is None else np.asarray(self._value)

    def initial(self) -> Callable[[int, int], Array]:
        """Returns a function ``(start, stop)`` that computes the initial values of these rows."""
        value = self.local_values
        if value is not None:
            return lambda start, stop: value[start:stop]
        return initial_rows(self._initializer, self._shape, self._dtype)

    def set_owner(self, layer: Any, of: object) -> None:
        """See `as_table`."""
        if layer is not None:
            self._layer = layer.name
            self._initializer = self._initializer or layer.embeddings_initializer
        if of is not None:
            self._of = of

    def is_one_of(self, tables: Sequence[object]) -> bool:
        """Returns whether this variable is one of ``tables``, or an optimizer slot of one of ``tables``."""
        return any(table is self or table is self._of for table in tables)

    def set_source(self, source: Callable[[], Array] | None) -> None:
        """Sets the function that reads the values, and drops this process's copy of them."""
        self._source, self._value = source, None

    def forget(self) -> None:
        """Drops this process's copy of the values, if they can be read or initialized again."""
        if self._source is not None or self._initializer is not None:
            self._value = None


def as_table(variable: object, *, layer: object = None, of: object = None) -> TableVariable:
    """Turns ``variable`` into a `TableVariable`; idempotent.

    Args:
      variable: a Keras variable.
      layer: the layer that owns it.
      of: the table that this optimizer slot belongs to.
    """
    if not isinstance(variable, TableVariable):
        variable.__class__ = TableVariable
    table = cast("TableVariable", variable)
    table.set_owner(layer, of)
    return table


class _Making(threading.local):
    without_values = False


_making = _Making()


@contextmanager
def _without_values() -> Generator[None]:
    """Context manager in which variables are created without values."""
    before, _making.without_values = _making.without_values, True
    try:
        yield
    finally:
        _making.without_values = before


class _Strategy(Protocol):
    @property
    def table_bytes(self) -> int: ...


def watch_tables(active: Callable[[], _Strategy | None]) -> None:
    """Patches Keras so that tables are created without values in the scope of a parameter-server strategy.

    Args:
      active: returns the parameter-server strategy of the calling thread's scope, or None.
    """
    _watch(active)


@functools.cache
def _watch(active: Callable[[], _Strategy | None]) -> None:
    embedding: Any = keras.layers.Embedding
    optimizer: Any = BaseOptimizer
    initialize, build = _Variable._initialize_with_initializer, embedding.build
    add = optimizer.add_variable_from_reference

    @functools.wraps(initialize)
    def our_initialize(self: Any, initializer: object) -> None:
        if _making.without_values:
            self._initializer = initializer
            self._value = None
        else:
            initialize(self, initializer)

    @functools.wraps(build)
    def our_build(self: Any, input_shape: object = None) -> None:
        strategy = active()
        if strategy is None or self.built or not _may_be_elsewhere(self, strategy.table_bytes):
            build(self, input_shape)
            return
        with _without_values():
            build(self, input_shape)
        as_table(self._embeddings, layer=self)

    @functools.wraps(add)
    def our_add(self: object, reference_variable: keras.Variable, *args: object, **settings: object) -> Any:
        if not isinstance(reference_variable, TableVariable):
            return add(self, reference_variable, *args, **settings)
        with _without_values():
            slot = add(self, reference_variable, *args, **settings)
        return slot if slot._initializer is None else as_table(slot, of=reference_variable)

    _Variable._initialize_with_initializer = our_initialize
    embedding.build, optimizer.add_variable_from_reference = our_build, our_add


def _may_be_elsewhere(layer: keras.layers.Layer, least_bytes: int) -> bool:
    plain = (
        type(layer) is keras.layers.Embedding
        and layer.quantization_mode is None
        and not layer.lora_rank
        and layer.embeddings_regularizer is None
        and layer.embeddings_constraint is None
    )
    # A seed generator changes its state with each use, so rows that are computed later would have other values.
    drawn = isinstance(getattr(layer.embeddings_initializer, "seed", None), keras.random.SeedGenerator)
    return plain and not drawn and 4 * layer.input_dim * layer.output_dim >= least_bytes


def make_whole(variables: Sequence[keras.Variable], tables: Sequence[object]) -> None:
    """Loads the values of all ``variables`` that were created without values, except ``tables`` and their slots."""
    for variable in variables:
        if isinstance(variable, TableVariable) and not variable.is_one_of(tables):
            _ = variable.value
            variable.__class__ = _Variable
