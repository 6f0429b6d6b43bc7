"""Eager ``tf.data``: datasets of tensors with values."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from headwater.data import dataset as plain
from headwater.data import readers
from headwater.data import structure as nest
from headwater.graph.graph import Graph
from headwater.tf1.input import dataset as graphs
from headwater.tf2.at_once import building
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import host_tensor
from headwater.tf2.tracing import RunsInPython, tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_Variable = keras.Variable

_log = logging.getLogger("headwater")


def _as_tensor(part: object) -> Tree:
    if not isinstance(part, np.ndarray | np.generic):
        return part
    array: object = part
    return host_tensor(array) if array.dtype.kind in "OSU" else jnp.asarray(array)


def _as_numpy(part: object) -> Tree:
    if isinstance(part, _Variable):
        part = value_of(part)
    return np.asarray(part) if isinstance(part, jax.Array) else part


class DatasetIterator:
    """An iterator over the elements of a dataset, for programs and for functions that are compiled.

    Args:
      elements: yields elements of NumPy arrays.
      dataset: the dataset.
    """

    def __init__(self, elements: Iterable[object], dataset: Any) -> None:
        self._elements = iter(elements)
        close = getattr(self._elements, "close", None)
        if close is not None:
            # Runs at the exit of the interpreter at the latest, while it is still functional.
            weakref.finalize(self, close)
        self._dataset = dataset
        self._back: list[object] = []

    @property
    def element_spec(self) -> Tree:
        """The type and shape of each component."""
        return self._dataset.element_spec

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Tree:
        trace = tracing()
        if trace is not None:
            return trace.pull(self)
        return _mapped(_as_tensor, self.pull())

    def get_next(self) -> Tree:
        """The next element.

        Raises:
          StopIteration: there is none.
        """
        return next(self)

    def pull(self) -> Tree:
        """Returns the next element as NumPy arrays; raises StopIteration at the end."""
        return self._back.pop() if self._back else next(self._elements)

    def put_back(self, element: object) -> None:
        """Puts ``element`` back, as the next element."""
        self._back.append(element)


def _mapped(function: Callable[[Any], object], element: object) -> Tree:
    return jax.tree_util.tree_map(function, element)


class Dataset(graphs.Dataset):
    """A sequence of elements; iteration yields them as tensors.

    Functions of `map` and similar methods are compiled if they consist of TensorFlow's functions. Other functions, such
    as lookup layers for text, are called for each element.
    """

    @classmethod
    def _plain_class(cls) -> object:
        return Dataset

    @classmethod
    def as_value(cls, value: object, dtype: Any = None) -> Tree:
        if tracing() is not None:
            raise RunsInPython("it creates a dataset")
        return super().as_value(_as_numpy(value), dtype)

    @classmethod
    def _traced(cls, function: Callable[..., object], inputs: plain.Dataset, kind: str) -> Any:
        try:
            graph = Graph()
            with graph.as_default(), building():
                made: Any
                made, structure = graphs.traced(function, inputs, kind)
            made.graph = graph  # keeps the graph, and thereby its Python functions, alive
            return made, structure
        except Exception as error:  # noqa: BLE001 - tracing with a graph's tensors may fail in any way
            _log.debug("%s runs element by element: %s", kind, error)

        def one(*parts: object) -> Tree:
            result = function(*(_mapped(_as_tensor, part) for part in parts))
            return nest.map_structure(_as_numpy, nest.plain_lists(result))

        return plain.Dataset._traced.__func__(Dataset, one, inputs, kind)  # pyright: ignore[reportFunctionMemberAccess]

    def __iter__(self) -> DatasetIterator:
        if tracing() is not None:
            raise RunsInPython("it iterates over a dataset")
        return DatasetIterator(self.elements(), self)

    def elements(self) -> Iterator[Any]:
        """Yields the elements as NumPy arrays."""
        self._ready()
        return plain.Dataset.__iter__(self)

    def as_numpy_iterator(self) -> Iterator[object]:
        for element in self.elements():
            yield nest.map_structure(lambda part: part[()] if isinstance(part, np.ndarray) else part, element)

    def reduce(self, initial_state: object, reduce_func: Callable[..., object], name: str | None = None) -> Tree:
        """Returns the last result of ``reduce_func(state, element)``."""
        del name
        state = _mapped(lambda part: _as_tensor(np.asarray(_as_numpy(part))), initial_state)
        for element in self.elements():
            state = reduce_func(state, _mapped(_as_tensor, element))
        return state

    def get_single_element(self, name: str | None = None) -> Tree:
        """The only element.

        Raises:
          ValueError: there is none, or more than one.
        """
        del name
        found = list(self.take(2).elements())
        if len(found) != 1:
            raise ValueError("Dataset had more than one element." if found else "Dataset was empty.")
        return _mapped(_as_tensor, found[0])

    def make_one_shot_iterator(self) -> Any:
        raise AttributeError("'Dataset' object has no attribute 'make_one_shot_iterator': use iter(dataset)")

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        raise AttributeError("'Dataset' object has no attribute 'make_initializable_iterator': use iter(dataset)")


class TFRecordDataset(readers.TFRecordDataset, Dataset):
    __doc__ = readers.TFRecordDataset.__doc__


class TextLineDataset(readers.TextLineDataset, Dataset):
    __doc__ = readers.TextLineDataset.__doc__


class FixedLengthRecordDataset(readers.FixedLengthRecordDataset, Dataset):
    __doc__ = readers.FixedLengthRecordDataset.__doc__


class Distributed:
    """One process's share of a dataset; it can be iterated any number of times.

    Args:
      dataset: yields this process's elements.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @property
    def element_spec(self) -> Tree:
        """The type and shape of each component."""
        return self.dataset.element_spec

    def __iter__(self) -> DatasetIterator:
        if tracing() is not None:
            raise RunsInPython("it iterates over a dataset")
        elements = getattr(self.dataset, "elements", None)
        return DatasetIterator(iter(self.dataset) if elements is None else elements(), self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)
