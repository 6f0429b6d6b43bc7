"""Eager ``tf.data``: datasets of tensors with values."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import keras
import numpy as np

from headwater.data import dataset as plain
from headwater.data import experimental as transformations
from headwater.data import readers, stored
from headwater.data import structure as nest
from headwater.data.batches import RaggedElements, Rebatch
from headwater.data.composites import SparseSpec
from headwater.data.node import INFINITE, UNKNOWN
from headwater.data.queries import RandomNumbers
from headwater.data.transforms import Counted
from headwater.dtypes import as_dtype, bool_, int32, int64
from headwater.errors import InvalidArgumentError, OutOfRangeError
from headwater.graph.graph import Graph
from headwater.graph.sparse_tensor import SparseTensor as GraphSparseTensor
from headwater.tf1.functional.arrays import stack
from headwater.tf1.input import dataset as graphs
from headwater.tf1.input import dataset_groups
from headwater.tf2 import composites
from headwater.tf2.at_once import building, register_result
from headwater.tf2.numpy_iterator import NumpyIterator
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import convert_to_tensor as as_value
from headwater.tf2.tensors import host_tensor, to_numpy
from headwater.tf2.tracing import RunsInPython, tracing

if TYPE_CHECKING:
    from headwater.data.spec import TensorSpec
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.keras.types import Tree

_Variable = keras.Variable

_log = logging.getLogger("headwater")


def _as_tensor(part: object) -> Tree:
    if not isinstance(part, np.ndarray | np.generic):
        return part
    array: object = part
    return host_tensor(array) if array.dtype.kind in "OSU" else jnp.asarray(array)


def _as_numpy(part: object) -> Tree:
    part = composites.without_values(part)
    if isinstance(part, _Variable):
        part = value_of(part)
    return np.asarray(part) if isinstance(part, jax.Array) else part


class Optional:
    """A value that may be missing.

    Args:
      values: the value; empty if it is missing.
      element_spec: the specification of the value.
    """

    def __init__(self, values: tuple[object, ...], element_spec: object) -> None:
        self._values = values
        self.element_spec = element_spec

    def has_value(self, name: str | None = None) -> Any:
        """Returns whether there is a value: a bool scalar."""
        del name
        return jnp.asarray(bool(self._values))

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
          InvalidArgumentError: it is missing.
        """
        del name
        if not self._values:
            raise InvalidArgumentError("The given optional does not have a value.")
        return self._values[0]


class DatasetIterator:
    """An iterator over the elements of a dataset, for programs and for functions that are compiled.

    Args:
      elements: yields elements of NumPy arrays.
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
        return trace.pull(self) if trace is not None else _mapped(_as_tensor, self.pull())

    def get_next(self) -> Tree:
        """The next element.

        Raises:
          StopIteration: there is none.
        """
        return next(self)

    def get_next_as_optional(self) -> Optional:
        """The next element, which is missing after the last."""
        try:
            return Optional((next(self),), self.element_spec)
        except StopIteration:
            return Optional((), self.element_spec)

    def pull(self) -> Tree:
        """Returns the next element as NumPy arrays; raises StopIteration at the end."""
        if self._back:
            return self._back.pop()
        return nest.map_structure(composites.with_values, next(self._elements))

    def put_back(self, element: object) -> None:
        """Puts ``element`` back, as the next element."""
        self._back.append(element)


def _as_tensors(element: object) -> Tree:
    """Converts the components of an element to tensors."""
    return _mapped(_as_tensor, nest.map_structure(composites.with_values, element))


def _mapped(function: Callable[[Any], object], element: object) -> Tree:
    return jax.tree_util.tree_map(function, element)


class Dataset(graphs.Dataset):
    """A sequence of elements; iteration yields them as tensors.

    Functions of `map` and similar methods are compiled if they consist of TensorFlow's functions. Other functions, such
    as lookup layers for text, are called for each element.
    """

    _preserves_cardinality: ClassVar[bool] = True
    _checks_values: ClassVar[bool] = True
    _aligns: ClassVar[bool] = True

    @classmethod
    def _plain_class(cls) -> object:
        return Dataset

    @classmethod
    def of(cls, dataset: plain.Dataset) -> Any:
        """Returns the same dataset, whose iteration yields tensors."""
        made = cls.of_node(dataset.node, dataset._structure)
        made._options = dataset.options()
        return made

    @classmethod
    def as_value(cls, value: object, dtype: Any = None) -> Tree:
        if tracing() is not None:
            raise RunsInPython("it creates a dataset")
        return super().as_value(_as_numpy(value), dtype)

    @classmethod
    def _trace(cls, function: Callable[..., object], inputs: plain.Dataset, kind: str) -> Any:
        try:
            graph = Graph()
            with graph.as_default(), building():
                made: Any
                made, structure = graphs.traced(function, inputs, kind, _with_static_shape)
            made.graph = graph  # keeps the graph, and thereby its Python functions, alive
            return made, structure
        except Exception as error:  # noqa: BLE001 - tracing with a graph's tensors may fail in any way
            _log.debug("%s runs element by element: %s", kind, error)

        def one(*parts: object) -> Tree:
            result = function(*map(_as_tensors, parts))
            return nest.map_structure(_as_numpy, nest.plain_lists(result))

        return plain.Dataset._trace.__func__(Dataset, one, inputs, kind)  # pyright: ignore[reportFunctionMemberAccess]

    def __iter__(self) -> DatasetIterator:
        if tracing() is not None:
            raise RunsInPython("it iterates over a dataset")
        return DatasetIterator(self.elements(), self)

    def elements(self) -> Iterator[Any]:
        """Yields the elements as NumPy arrays."""
        self._ready()
        return plain.Dataset.__iter__(self)

    def as_numpy_iterator(self) -> NumpyIterator:
        return NumpyIterator(self.elements())

    def cardinality(self) -> Tree:
        """Returns the number of elements: an int64, `INFINITE` (-1), or `UNKNOWN` (-2)."""
        return host_tensor(super().cardinality())

    def reduce(self, initial_state: object, reduce_func: Callable[..., object], name: str | None = None) -> Tree:
        """Returns the last result of ``reduce_func(state, element)``."""
        del name
        state = _mapped(lambda part: as_value(composites.without_values(part)), initial_state)
        for element in self.elements():
            state = reduce_func(state, _as_tensors(element))
        return _mapped(_as_tensor, state)

    def shuffle(
        self,
        buffer_size: TensorLike,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """See the base class; with the size ``UNKNOWN_CARDINALITY``, all elements are shuffled.

        Raises:
          InvalidArgumentError: ``buffer_size`` is another number below 1, or all of infinitely many elements would have
            to be shuffled.
        """
        if isinstance(buffer_size, int | np.integer) and buffer_size == UNKNOWN:
            if int(self.cardinality()) == INFINITE:
                raise InvalidArgumentError("shuffle needs a buffer_size for a dataset without an end")
            buffer_size = np.iinfo(np.int64).max
        return super().shuffle(buffer_size, seed, reshuffle_each_iteration, name)

    def get_single_element(self, name: str | None = None) -> Tree:
        """The only element.

        Raises:
          ValueError: there is none, or more than one.
        """
        del name
        found = list(self.take(2).elements())
        if len(found) != 1:
            raise ValueError("Dataset had more than one element." if found else "Dataset was empty.")
        return _as_tensors(found[0])

    # Methods that only TensorFlow 2 has ------------------------------------------------------------------------------

    def group_by_window(
        self,
        key_func: Callable[..., object],
        reduce_func: Callable[..., object],
        window_size: TensorLike | None = None,
        window_size_func: Callable[..., object] | None = None,
        name: str | None = None,
    ) -> Any:
        """Gathers elements with the same key into windows and maps each to a dataset.

        Args:
          key_func: returns the key of an element, an int64 scalar.
          reduce_func: maps a key and a dataset of at most ``window_size`` elements with this key to a dataset.
          window_size: number of elements of a window; or
          window_size_func: returns this number for a key.
        """
        del name
        return self.apply(dataset_groups.group_by_window(key_func, reduce_func, window_size, window_size_func))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., object],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: object = None,
        padding_values: object = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Batches elements of similar lengths; see ``tf.data.experimental.bucket_by_sequence_length``."""
        del name
        return self.apply(
            dataset_groups.bucket_by_sequence_length(
                element_length_func,
                bucket_boundaries,
                bucket_batch_sizes,
                padded_shapes,
                padding_values,
                pad_to_bucket_boundary,
                no_padding,
                drop_remainder,
            )
        )

    def rejection_resample(
        self,
        class_func: Callable[..., object],
        target_dist: object,
        initial_dist: object = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        """Drops random elements for a target distribution of classes; elements become (class, element)."""
        del name
        return self.apply(dataset_groups.rejection_resample(class_func, target_dist, initial_dist, seed))

    def ragged_batch(
        self,
        batch_size: TensorLike,
        drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Any:
        """Batches elements; arrays of unknown sizes become ragged tensors, and other components as in `batch`.

        Raises:
          ValueError: splits cannot be of ``row_splits_dtype``.
        """
        del name
        kind = as_dtype(row_splits_dtype)
        if kind not in (int32, int64):
            raise ValueError(f"row_splits_dtype must be int32 or int64, not {kind.name}")
        return self.changed(RaggedElements(input=self.node, wide=kind == int64)).batch(batch_size, drop_remainder)

    def sparse_batch(self, batch_size: TensorLike, row_shape: object, name: str | None = None) -> Any:
        """Batches dense elements of different sizes as sparse tensors; see ``dense_to_sparse_batch``."""
        del name
        return self.apply(transformations.dense_to_sparse_batch(batch_size, row_shape))

    def rebatch(self, batch_size: object, drop_remainder: bool = False, name: str | None = None) -> Any:
        """Divides the rows of batches into batches of another size.

        Args:
          batch_size: number of rows; or a vector of the numbers of rows of consecutive batches, which is repeated.
          drop_remainder: whether to drop a last batch with fewer rows.
        """
        del name
        sizes, drop = self.as_value(batch_size, int64), self.as_value(drop_remainder, bool_)
        return self.changed(Rebatch(input=self.node, sizes=sizes, drop_remainder=drop))

    def unique(self, name: str | None = None) -> Any:
        """Yields each element once, at its first occurrence."""
        del name
        return self.apply(transformations.unique())

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """Skips elements that fail.

        Raises:
          NotImplementedError: ``log_warning`` is true.
        """
        del name
        if log_warning:
            raise NotImplementedError("Dataset.ignore_errors: log_warning is not supported")
        return self.apply(transformations.ignore_errors())

    @classmethod
    def counter(cls, start: Any = 0, step: Any = 1, dtype: DTypeLike = int64, name: str | None = None) -> Any:
        """Returns an infinite dataset of numbers from ``start``, each ``step`` more than the previous one."""
        del name
        last = np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
        return cls.range(start, last, step, output_type=as_dtype(dtype))

    @classmethod
    def random(
        cls, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Any:
        """Returns an infinite dataset of random int64 numbers.

        Raises:
          NotImplementedError: ``rerandomize_each_iteration`` is true.
        """
        del name
        if rerandomize_each_iteration:
            raise NotImplementedError("Dataset.random: rerandomize_each_iteration is not supported")
        first, second = cls._seeds(seed)
        return cls.of_node(RandomNumbers(seed=first, seed2=second), None)

    def save(
        self, path: str, compression: str | None = None, shard_func: object = None, checkpoint_args: object = None
    ) -> None:
        """Writes all elements to files in the folder ``path``, for `load`.

        The files have the format of TensorFlow's checkpoints, which TensorFlow's ``Dataset.load`` does not read.

        Raises:
          NotImplementedError: another argument than ``path`` is given.
        """
        _refuse("save", compression=compression, shard_func=shard_func, checkpoint_args=checkpoint_args)
        self._ready()
        stored.save(self.node, path, nest.emptied(self._structure))

    @classmethod
    def load(
        cls,
        path: str,
        element_spec: object = None,
        compression: str | None = None,
        reader_func: object = None,
        wait: bool = False,
    ) -> Any:
        """Returns the dataset that `save` has written to ``path``; named tuples become tuples.

        Raises:
          NotFoundError: ``path`` holds no dataset.
          NotImplementedError: another argument than ``path`` and ``element_spec`` is given.
          ValueError: the elements do not have the structure and types of ``element_spec``.
        """
        _refuse("load", compression=compression, reader_func=reader_func, wait=wait or None)
        made = cls.of_node(*stored.load(path))
        if element_spec is not None and repr(made.element_spec) != repr(element_spec):
            raise ValueError(f"{path} holds elements of {made.element_spec}, not of element_spec {element_spec}")
        return made

    def snapshot(
        self,
        path: str,
        compression: str | None = "AUTO",
        reader_func: object = None,
        shard_func: object = None,
        name: str | None = None,
    ) -> Any:
        """Keeps the elements in files in the folder ``path``, as `cache` with a file name; later runs use the files.

        Raises:
          NotImplementedError: a function or a compression is given.
        """
        del name
        _refuse(
            "snapshot",
            compression=None if compression == "AUTO" else compression,
            reader_func=reader_func,
            shard_func=shard_func,
        )
        return self.cache(f"{path}/elements")

    def make_one_shot_iterator(self) -> Any:
        raise AttributeError("'Dataset' object has no attribute 'make_one_shot_iterator': use iter(dataset)")

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        raise AttributeError("'Dataset' object has no attribute 'make_initializable_iterator': use iter(dataset)")


def _refuse(method: str, **given: object) -> None:
    """Raises NotImplementedError if one of the arguments is not None."""
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"Dataset.{method}: {name} is not supported")


def dense_to_ragged_batch(
    batch_size: TensorLike, drop_remainder: bool = False, row_splits_dtype: DTypeLike = int64
) -> Callable[[Any], Any]:
    """`Dataset.ragged_batch`, for `Dataset.apply`."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def assert_cardinality(expected_cardinality: TensorLike) -> Callable[[Any], Any]:
    """A transformation for `Dataset.apply`: states the number of elements, which is checked while they are read."""
    return lambda dataset: dataset.changed(
        Counted(input=dataset.node, count=dataset.as_value(expected_cardinality, int64))
    )


def at(dataset: Any, index: TensorLike) -> Tree:
    """Returns the element number ``index``.

    Raises:
      OutOfRangeError: there is no such element.
    """
    place = int(to_numpy(index))
    found = list(dataset.skip(place).take(1).elements()) if place >= 0 else []
    if not found:
        raise OutOfRangeError(f"Index out of range [0, {int(dataset.cardinality())}): {place}")
    return _as_tensors(found[0])


def from_list(elements: Sequence[object], name: str | None = None) -> Any:
    """Returns a dataset of the elements, structures of the same form.

    Raises:
      ValueError: there are no elements.
    """
    del name
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty.")
    columns = zip(*(nest.flatten(element) for element in elements), strict=True)
    return Dataset.from_tensor_slices(nest.pack(elements[0], [list(column) for column in columns]))


def save(
    dataset: Any,
    path: str,
    compression: str | None = None,
    shard_func: object = None,
    checkpoint_args: object = None,
) -> None:
    """`Dataset.save`."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(path: str, element_spec: object = None, compression: str | None = None, reader_func: object = None) -> Any:
    """`Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def snapshot(
    path: str, compression: str | None = "AUTO", reader_func: object = None, shard_func: object = None
) -> Callable[[Any], Any]:
    """`Dataset.snapshot`, for `Dataset.apply`."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def _with_static_shape(tensor: Any, spec: TensorSpec) -> Any:
    """Returns a function's argument; a sparse one with constants for the known sizes in its dense shape."""
    if not isinstance(spec, SparseSpec) or not spec.dims or spec.dims == (None,) * len(spec.dims):
        return tensor
    sizes = [tensor.dense_shape[axis] if size is None else np.int64(size) for axis, size in enumerate(spec.dims)]
    return GraphSparseTensor(
        tensor.indices, tensor.values, np.array(spec.dims) if None not in spec.dims else stack(sizes)
    )


def attach() -> None:
    """Makes eager functions return datasets of this module. Idempotent."""
    register_result(graphs.Dataset, lambda found, _: Dataset.of(found))


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
