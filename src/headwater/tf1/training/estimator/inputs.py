"""Features and labels from arrays, and from results of input functions."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.tf1.input.dataset import Dataset
from headwater.tf1.training.session_run_hook import SessionRunHook

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import SessionLike, Structure
    from headwater.tf1.training.coordinator import Coordinator
    from headwater.tf1.training.estimator.run_config import RunConfig


class _IteratorInitializer(SessionRunHook):
    """Initialises an iterator in each new session."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator
        self._initializer: Operation | None = None

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        del coord
        session.run(self._initializer)


def arguments_of(function: Callable[..., Structure]) -> set[str]:
    """Names of the arguments of a function, a method, a partial or a callable object."""
    return set(inspect.signature(function).parameters)


def call_input_fn(input_fn: Callable[..., object], mode: str, params: Structure, config: RunConfig) -> Any:
    """Calls ``input_fn`` with the arguments mode, params and config, as far as it has parameters for them."""
    wanted = arguments_of(input_fn)
    given = {"mode": mode, "params": params, "config": config}
    return input_fn(**{name: value for name, value in given.items() if name in wanted})


def features_and_labels(result: Structure) -> tuple[Any, Any, list[SessionRunHook]]:
    """Returns features, labels (or None) and hooks from an input function's result: tensors, or a dataset.

    Raises:
      ValueError: the result is a tuple of more than two.
    """
    hooks: list[SessionRunHook] = []
    if hasattr(result, "make_initializable_iterator"):
        iterator = result.make_initializable_iterator()
        hooks.append(_IteratorInitializer(iterator))
        result = iterator.get_next()
    pair = result
    if isinstance(result, list | tuple):
        if len(pair) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return pair[0], pair[1], hooks
    return result, None, hooks


def numpy_input_fn(
    x: object,
    y: Structure = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], object]:
    """Returns an input function with batches of arrays.

    Args:
      x: an array, or a dictionary of arrays with equal first dimensions.
      y: labels, in the same form; None if there are none.
      num_epochs: number of passes over the examples; None: no limit.
      shuffle: whether examples are in random order.
      queue_capacity: number of examples to draw from for a random order.
      num_threads: accepted.

    Raises:
      ValueError: ``shuffle`` is not given, ``x`` is empty, or lengths differ.
    """
    del num_threads
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle must be provided and explicitly set as boolean, got {shuffle!r}")

    def input_fn() -> Any:
        features = OrderedDict(sorted(x.items())) if isinstance(x, Mapping) else x  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
        if isinstance(features, dict) and not features:
            raise ValueError("x cannot be an empty dict")
        arrays: list[Any] = list(features.values()) if isinstance(features, dict) else [features]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        if y is not None:
            arrays += list(y.values()) if isinstance(y, Mapping) else [y]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        if len({len(np.asarray(array)) for array in arrays}) != 1:
            raise ValueError(f"Length of tensors in x and y is mismatched: {[len(array) for array in arrays]}")
        examples = Dataset.from_tensor_slices(features if y is None else (features, y))
        return _batches(examples, batch_size, num_epochs, shuffle, queue_capacity)

    return input_fn


def _batches(examples: Structure, batch_size: int, num_epochs: int | None, shuffle: bool, capacity: int) -> object:
    if shuffle:
        examples = examples.shuffle(capacity)
    return examples.repeat(num_epochs).batch(batch_size).make_one_shot_iterator().get_next()


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], object]:
    """Like `numpy_input_fn`, for a data frame's columns and a series (or a frame) of labels."""
    del target_column
    labels = None
    if y is not None:
        labels = {name: y[name].to_numpy() for name in y.columns} if hasattr(y, "columns") else y.to_numpy()
    return numpy_input_fn(
        {str(name): _column(x[name]) for name in x.columns},
        labels,
        batch_size,
        num_epochs,
        shuffle,
        queue_capacity,
        num_threads,
    )


def _column(series: Any) -> object:
    values = series.to_numpy()
    return values.astype(str).astype(object) if values.dtype == object else values
