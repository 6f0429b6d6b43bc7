"""`Dataset`: input pipelines for programs, with the methods of ``tf.data.Dataset``.

Elements are structures (tuples, named tuples, dictionaries) of NumPy arrays. `map` and similar methods take Python
functions of such arrays. ``headwater.tf1.input.dataset`` has the same class for functions of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from headwater.data import structure as nest
from headwater.data.batches import Batch, PaddedBatch, Unbatch
from headwater.data.composites import as_component, is_dense
from headwater.data.functions import Filter, Interleave, Map, Scan, TakeWhile, Windows
from headwater.data.indexed import unrepeatable
from headwater.data.io.files import glob
from headwater.data.node import (
    INFINITE,
    Context,
    Element,
    Function,
    Node,
    RaisingIterator,
    block_rows,
    check_values,
    rows_of,
)
from headwater.data.options import AutoShardPolicy, Options
from headwater.data.plain import GeneratedElements, PlainFunction
from headwater.data.prefetch import AUTOTUNE, Prefetch, prefetched
from headwater.data.sharding import distributed, reads_files, with_seed
from headwater.data.sources import Generated, Range, Slices, Whole
from headwater.data.spec import TensorSpec, as_array, is_array
from headwater.data.stored import StoredCache
from headwater.data.transforms import (
    Cache,
    Concatenated,
    Picked,
    RandomIndices,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    WeightedRandomIndices,
    Zipped,
)
from headwater.dtypes import DType, as_dtype, bool_, int64, string
from headwater.errors import NotFoundError
from headwater.shapes import as_shape

if TYPE_CHECKING:
    from headwater.graph.types import Ints, TensorLike
    from headwater.shapes import TensorShape


Structure = Any
"""Tuples, named tuples and dictionaries of arrays, tensors or specs."""

DEFAULT_CYCLE: Final = 4
SAME: Final = object()
"""Default for the structure of elements: unchanged."""


def _is_auto(value: object) -> bool:
    """Returns whether ``value`` is `AUTOTUNE`, and not a tensor."""
    return isinstance(value, int) and value == AUTOTUNE


def _check_predicate(function: Function) -> None:
    """Raises ValueError unless a function returns one truth value."""
    specs = function.specs()
    if len(specs) != 1 or specs[0].dtype.base_dtype != bool_ or specs[0].dims not in ((), None):
        raise ValueError(f"`predicate` must return a scalar boolean, not {specs}")


class Dataset:
    """A sequence of elements. Each iteration computes them again; a ``for`` loop prefetches them in a thread.

    Attributes:
      node: the pipeline.
      element_spec: a `TensorSpec` for each component, in the structure of an element.
    """

    _preserves_cardinality: ClassVar[bool] = True  # see `Map`
    _aligns: ClassVar[bool] = True  # see `Zipped`
    _op_errors: ClassVar[bool] = False  # see `GeneratedElements`
    _checks_values: ClassVar[bool] = True  # if False, operations of the graph check them

    def __init__(self, node: Node, element_structure: Structure, options: Options | None = None) -> None:
        if self._checks_values:
            check_values(node)
        self.node = node
        self._structure = element_structure
        self._options = options or Options()

    # Methods that subclasses in other packages override -------------------------------------------------------------

    @classmethod
    def as_value(cls, value: object, dtype: DType | None = None) -> Any:
        """Converts a value for a field of a node."""
        return as_component(value, dtype)

    @classmethod
    def _to_program(cls, value: object) -> Any:
        """Converts a component for the program, outside of the steps of a graph."""
        return value

    @classmethod
    def _spec_to_program(cls, spec: TensorSpec) -> Any:
        """Converts the spec of a component for the program."""
        return spec

    @classmethod
    def _spec_from_program(cls, signature: Any) -> TensorSpec:
        """Converts the program's ``signature`` of a component to a spec."""
        return signature

    @classmethod
    def _trace(cls, function: Callable[..., object], inputs: Dataset, kind: str) -> tuple[Function, Structure]:
        """Returns a function of the elements of ``inputs``, and the structure of its results: specs, or a `Dataset`."""
        traced = PlainFunction(function, inputs.node, inputs.packed, kind)
        return traced, traced.structure

    def changed(self, node: Node, element_structure: Structure = SAME) -> Self:
        """Returns a dataset of ``node``, with the element structure and the options of this one."""
        dataset = object.__new__(self._plain_class())
        Dataset.__init__(
            dataset, node, self._structure if element_structure is SAME else element_structure, self._options
        )
        return dataset

    @classmethod
    def _plain_class(cls) -> Any:
        """Returns the class of datasets that methods return."""
        return Dataset

    @classmethod
    def of_node(cls, node: Node, element_structure: Structure) -> Self:
        """Returns a dataset of ``node`` with this element structure."""
        dataset = object.__new__(cls._plain_class())
        Dataset.__init__(dataset, node, element_structure)
        return dataset

    # Sources ----------------------------------------------------------------------------------------------------------

    @classmethod
    def from_tensors(cls, tensors: Structure, name: str | None = None) -> Self:
        """Returns a dataset with one element: ``tensors`` unchanged."""
        del name
        parts = tuple(cls.as_value(part) for part in nest.flatten(tensors))
        return cls.of_node(Whole(components=parts), nest.pack(nest.emptied(tensors), [None] * len(parts)))

    @classmethod
    def from_tensor_slices(cls, tensors: Structure, name: str | None = None) -> Self:
        """Returns a dataset of the slices of ``tensors`` along their first dimension.

        Raises:
          ValueError: a tensor is a scalar, or the first dimensions differ.
        """
        del name
        parts = tuple(cls.as_value(part) for part in nest.flatten(tensors))
        if not parts:
            raise ValueError("from_tensor_slices needs at least one tensor")
        sizes: set[int] = set()
        for part in parts:
            dims = TensorSpec(part.shape).dims
            if dims == ():
                raise ValueError("from_tensor_slices cannot take scalars apart; use from_tensors")
            if dims is not None and dims[0] is not None:
                sizes.add(dims[0])
        if len(sizes) > 1:
            raise ValueError(f"Dimensions {sorted(sizes)} are not compatible: first dimensions must be equal")
        return cls.of_node(Slices(components=parts), nest.pack(nest.emptied(tensors), [None] * len(parts)))

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Iterable[Structure]],
        output_types: Structure = None,
        output_shapes: Structure = None,
        args: Sequence[object] | None = None,
        output_signature: Structure = None,
        name: str | None = None,
    ) -> Self:
        """Returns a dataset of the elements of ``generator(*args)``, which is called in each iteration.

        Args:
          generator: returns an iterable of elements.
          output_types: element types, in the structure of an element.
          output_shapes: static shapes in that structure; None for unknown ones.
          args: arguments for ``generator``.
          output_signature: a `TensorSpec` for each component, in place of types and shapes.

        Raises:
          TypeError: ``generator`` cannot be called, or neither types nor a signature are given.
        """
        del name
        if not callable(generator):
            raise TypeError("`generator` must be callable.")
        if output_signature is None:
            if output_types is None:
                raise TypeError("from_generator needs output_types or output_signature")
            types = nest.plain_lists(output_types)
            shapes = [None] * len(nest.flatten(types))
            if output_shapes is not None:
                shapes = nest.leaves_like(types, nest.plain_lists(output_shapes))
            leaves = [TensorSpec(s, t) for s, t in zip(shapes, nest.flatten(types), strict=True)]
            output_signature = nest.pack(types, leaves)
        signature = nest.plain_lists(output_signature)
        specs = tuple(map(cls._spec_from_program, nest.flatten(signature)))
        make = GeneratedElements(generator, signature, specs, cls._op_errors)
        values = tuple(cls.as_value(arg) for arg in args or ())
        return cls.of_node(Generated(make=make, args=values, of=specs), nest.emptied(signature))

    @classmethod
    def range(cls, *args: TensorLike, **options: Any) -> Self:
        """Returns a dataset of integers, with the arguments of Python's `range`, as int64 or ``output_type``."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid number of arguments: {len(args)}; range takes one to three")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        values = [cls.as_value(value, int64) for value in (start, stop, step)]
        numbers = cls.of_node(Range(start=values[0], stop=values[1], step=values[2]), None)
        output_type = options.pop("output_type", None)
        if output_type is None or as_dtype(output_type) == int64:
            return numbers
        return numbers._cast(as_dtype(output_type))

    def _cast(self, dtype: DType) -> Self:
        def cast(value: Any) -> Any:
            return value.astype(dtype.numpy_dtype)

        return self.map(cast)

    @classmethod
    def list_files(
        cls,
        file_pattern: str | Sequence[str],
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Returns a dataset of the names of files that match a pattern, or one of several patterns.

        Args:
          shuffle: whether the names are in random order; None means yes.

        Raises:
          NotFoundError: no file matches.
        """
        del name
        patterns = [bytes(item).decode() for item in np.ravel(as_array(file_pattern))]
        paths = sorted({path for pattern in patterns for path in glob(pattern)})
        if not paths:
            raise NotFoundError(f"No files matched pattern: {', '.join(patterns)}")
        dataset = cls.from_tensor_slices(as_array(paths))
        return dataset if shuffle is False else dataset.shuffle(len(paths), seed=seed)

    @classmethod
    def zip(cls, *datasets: object, **options: object) -> Self:
        """Returns a dataset whose elements combine one element of each dataset, in the structure of the arguments."""
        structure = options.get("datasets", datasets[0] if len(datasets) == 1 else datasets)
        if isinstance(structure, list):
            raise TypeError("The argument to `Dataset.zip()` must be a (nested) tuple or dictionary of datasets.")
        leaves = nest.flatten(structure)
        for leaf in leaves:
            if not isinstance(leaf, Dataset):
                raise TypeError(f"The argument to `Dataset.zip()` must hold datasets, not {type(leaf).__name__}")
        merged = Options()
        for leaf in leaves:
            merged = merged.merge(leaf._options)
        dataset = cls.of_node(
            Zipped(inputs=tuple(leaf.node for leaf in leaves), aligned=cls._aligns),
            nest.pack(structure, [leaf._structure for leaf in leaves]),
        )
        dataset._options = merged
        return dataset

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Dataset],
        weights: TensorLike | Dataset | None = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
    ) -> Dataset:
        """Returns a dataset that takes each element from one of ``datasets``, drawn at random with ``weights``.

        Args:
          weights: a vector of the weights of all datasets, or a dataset of such vectors, one for each draw; equal
            weights if None.

        Raises:
          TypeError: the elements have different structures, classes or types.
        """
        _check_kinds(datasets)
        first, second = cls._seeds(seed)
        if isinstance(weights, Dataset):
            draws: Node = WeightedRandomIndices(input=weights.node, seed=first, seed2=second)
            shape = weights.node.specs[0].shape
        else:
            even = [1.0 / len(datasets)] * len(datasets)
            shares = cls.as_value(even if weights is None else weights)
            draws = RandomIndices(weights=shares, seed=first, seed2=second)
            shape = as_shape(getattr(shares, "shape", ()))
        if not shape.is_compatible_with([len(datasets)]):
            raise ValueError(f"`weights` must be a vector of length `len(datasets)`, not of shape {shape}")
        node = Picked(
            selector=draws, inputs=tuple(item.node for item in datasets), skip_empty=not stop_on_empty_dataset
        )
        return datasets[0].changed(node)

    @classmethod
    def choose_from_datasets(
        cls, datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
    ) -> Dataset:
        """Returns a dataset that takes each element from one of ``datasets``. ``choice_dataset`` has the index for each
        element.

        Raises:
          TypeError: the elements have different structures, classes or types.
        """
        _check_kinds(datasets)
        node = Picked(
            selector=choice_dataset.node,
            inputs=tuple(item.node for item in datasets),
            skip_empty=not stop_on_empty_dataset,
        )
        return datasets[0].changed(node)

    # Order and number -------------------------------------------------------------------------------------------------

    def take(self, count: TensorLike, name: str | None = None) -> Self:
        """Returns the first ``count`` elements; all if ``count`` is -1."""
        del name
        return self.changed(Take(input=self.node, count=self.as_value(count, int64)))

    def skip(self, count: TensorLike, name: str | None = None) -> Self:
        """Skips the first ``count`` elements; all if ``count`` is -1."""
        del name
        return self.changed(Skip(input=self.node, count=self.as_value(count, int64)))

    def repeat(self, count: TensorLike | None = None, name: str | None = None) -> Self:
        """Repeats the elements ``count`` times; infinitely if ``count`` is None or -1."""
        del name
        return self.changed(Repeat(input=self.node, count=self.as_value(-1 if count is None else count, int64)))

    def shard(self, num_shards: TensorLike, index: TensorLike, name: str | None = None) -> Self:
        """Returns every ``num_shards``-th element, beginning with number ``index``; all if both are `SHARD_HINT`.

        Raises:
          InvalidArgumentError: ``num_shards`` is not positive, or ``index`` is not below ``num_shards``.
        """
        del name
        count, place = self.as_value(num_shards, int64), self.as_value(index, int64)
        node = Shard(input=self.node, count=count, index=place)
        node.check()
        return self.changed(node)

    def shuffle(
        self,
        buffer_size: TensorLike,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Shuffles the elements: draws each element from the first ``buffer_size`` remaining elements.

        Args:
          seed: determines the order; if None, each process has a different, random order.
          reshuffle_each_iteration: whether each iteration has a different order; None means yes.
        """
        del name
        first, second = self._seeds(seed)
        return self.changed(
            Shuffle(
                input=self.node,
                buffer_size=self.as_value(buffer_size, int64),
                seed=first,
                seed2=second,
                reshuffle=reshuffle_each_iteration is not False,
            )
        )

    @classmethod
    def _seeds(cls, seed: object) -> tuple[Any, Any]:
        """Returns two seeds for random numbers, both 0 for a random seed."""
        if seed is None:
            return cls.as_value(0, int64), cls.as_value(0, int64)
        return cls.as_value(seed, int64), cls.as_value(1, int64)

    def cache(self, filename: TensorLike = "", name: str | None = None) -> Self:
        """Caches the elements during the first complete iteration: in memory, or in files.

        Args:
          filename: prefix of the files' names; in memory if empty. Existing files are used even if the dataset has
            changed since: delete the files when the dataset changes.
        """
        del name
        if isinstance(filename, str | bytes) and not filename:
            return self.changed(Cache(input=self.node))
        return self.changed(StoredCache(input=self.node, filename=self.as_value(filename, string)))

    def prefetch(self, buffer_size: TensorLike | None, name: str | None = None) -> Self:
        """Prefetches up to ``buffer_size`` elements in a thread; `AUTOTUNE` for a suitable number."""
        del name
        return self.changed(
            Prefetch(
                input=self.node, buffer_size=self.as_value(AUTOTUNE if buffer_size is None else buffer_size, int64)
            )
        )

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Self:
        """Appends the elements of ``dataset``.

        Raises:
          TypeError: the elements of ``dataset`` have a different structure or different types.
        """
        del name
        if not _of_one_kind(self, dataset):
            raise TypeError(
                f"Two datasets to concatenate have different types {self.element_spec} and {dataset.element_spec}"
            )
        result = self.changed(Concatenated(first=self.node, second=dataset.node))
        result._options = self._options.merge(dataset._options)
        return result

    def enumerate(self, start: TensorLike = 0, name: str | None = None) -> Self:
        """Returns pairs of a number and an element. The numbers count from ``start``."""
        del name
        numbers = type(self).range(start, np.iinfo(np.int64).max)
        return self.changed(Zipped(inputs=(numbers.node, self.node)), (None, self._structure))

    # Batches ----------------------------------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: TensorLike,
        drop_remainder: TensorLike = False,
        num_parallel_calls: TensorLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Stacks ``batch_size`` elements into one.

        Args:
          drop_remainder: whether to drop a smaller last batch.
        """
        del num_parallel_calls, deterministic, name
        return self.changed(
            Batch(
                input=self.node,
                batch_size=self.as_value(batch_size, int64),
                drop_remainder=self.as_value(drop_remainder, bool_),
            )
        )

    def padded_batch(
        self,
        batch_size: TensorLike,
        padded_shapes: Structure = None,
        padding_values: Structure = None,
        drop_remainder: TensorLike = False,
        name: str | None = None,
    ) -> Self:
        """Batches elements as `batch` does, after padding them to one shape.

        Args:
          padded_shapes: shape of each component, with None or -1 for the largest size in the batch. By default, the
            static shapes of the elements.
          padding_values: padding value of each component; 0 or an empty string by default.

        Raises:
          TypeError: a component is sparse or ragged.
          ValueError: the rank of a component is unknown, or differs from the rank of its padded shape.
        """
        del name
        specs = self.node.specs
        if not is_dense(specs):
            raise TypeError(
                "Batching of padded sparse tensors is not currently supported: Dataset.batch joins them as they are. "
                f"The element's specs are {self.element_spec}."
            )
        wanted = [spec.shape for spec in specs] if padded_shapes is None else self._component_values(padded_shapes)
        shapes: list[Any] = []
        for spec, shape in zip(specs, wanted, strict=True):
            padded_shape = self._padded_shape(shape)
            if is_array(padded_shape) and spec.dims is not None and len(padded_shape) != len(spec.dims):
                raise ValueError(
                    f"The padded shape {tuple(padded_shape)} is not compatible with the corresponding input component "
                    f"shape {spec.shape}."
                )
            shapes.append(padded_shape)
        if padding_values is None:
            fillings = [self.as_value(b"" if spec.dtype == string else 0, spec.dtype) for spec in specs]
        else:
            values = (
                self._component_values(padding_values)
                if isinstance(padding_values, tuple | dict)
                else [padding_values] * len(specs)
            )
            fillings = [
                self.as_value((b"" if spec.dtype == string else 0) if value is None else value, spec.dtype)
                for value, spec in zip(values, specs, strict=True)
            ]
        return self.changed(
            PaddedBatch(
                input=self.node,
                batch_size=self.as_value(batch_size, int64),
                shapes=tuple(shapes),
                padding=tuple(fillings),
                drop_remainder=self.as_value(drop_remainder, bool_),
            )
        )

    def _padded_shape(self, shape: TensorShape) -> Any:
        if hasattr(shape, "as_dims") and shape.as_dims is None:
            raise ValueError("padded_batch needs padded_shapes if the rank of a component is not known")
        dims: Any = shape.as_dims if hasattr(shape, "as_dims") else shape
        if type(dims) in (tuple, list):
            dims = [getattr(dim, "value", dim) for dim in dims]
            dims = np.asarray([-1 if dim is None else dim for dim in dims], np.int64)
        elif isinstance(dims, int):
            dims = np.asarray([dims], np.int64)
        return self.as_value(dims, int64)

    def _component_values(self, values: Structure) -> list[Any]:
        """Splits ``values``, in the structure of an element, into one value for each component."""
        return nest.leaves_like(self._structure, values)

    def unbatch(self, name: str | None = None) -> Self:
        """Splits each element into its slices along the first dimension.

        Raises:
          ValueError: an element has a component without dimensions.
        """
        del name
        if any(spec.dims == () for spec in self.node.specs):
            raise ValueError("unbatch: an element has a component without dimensions, which has no slices")
        return self.changed(Unbatch(input=self.node))

    def window(
        self,
        size: TensorLike,
        shift: TensorLike | None = None,
        stride: Ints = 1,
        drop_remainder: TensorLike = False,
        name: str | None = None,
    ) -> Self:
        """Returns windows of ``size`` elements, as a dataset for each component, in the structure of an element.

        Args:
          shift: distance between the starts of consecutive windows, in elements; ``size`` if None.
          stride: distance between the elements of a window in the input.
        """
        del name
        node = Windows(
            input=self.node,
            size=self.as_value(size, int64),
            shift=self.as_value(size if shift is None else shift, int64),
            stride=self.as_value(stride, int64),
            drop_remainder=self.as_value(drop_remainder, bool_),
        )
        specs = self.node.specs
        return self.changed(node, nest.pack(self._structure, [Nested(None, (spec,)) for spec in specs]))

    # Functions --------------------------------------------------------------------------------------------------------

    def map(
        self,
        map_func: Callable[..., object],
        num_parallel_calls: TensorLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Applies ``map_func`` to each element, in order.

        Args:
          map_func: takes the parts of an element that is a tuple, or else the whole element; returns an element.
          num_parallel_calls: maximum number of concurrent calls; `AUTOTUNE` for a suitable number.
        """
        del deterministic, name
        function, result = self._trace(map_func, self, "map")
        calls = self._calls(num_parallel_calls)
        node = Map(input=self.node, function=function, parallel=calls, preserve_cardinality=self._preserves_cardinality)
        return self.changed(node, result)

    def _calls(self, count: object) -> Any:
        return self.as_value(1 if count is None else 2 if _is_auto(count) else count, int64)

    def filter(self, predicate: Callable[..., object], name: str | None = None) -> Self:
        """Returns the elements for which ``predicate`` is true."""
        del name
        function, _ = self._trace(predicate, self, "filter")
        _check_predicate(function)
        return self.changed(Filter(input=self.node, function=function))

    def take_while(self, predicate: Callable[..., object], name: str | None = None) -> Self:
        """Returns the elements before the first element for which ``predicate`` is false."""
        del name
        function, _ = self._trace(predicate, self, "take_while")
        return self.changed(TakeWhile(input=self.node, function=function))

    def flat_map(self, map_func: Callable[..., object], name: str | None = None) -> Self:
        """Concatenates the datasets that ``map_func`` returns."""
        del name
        return self.interleaved(map_func, 1, 1, "flat_map")

    def interleave(
        self,
        map_func: Callable[..., object],
        cycle_length: object = AUTOTUNE,
        block_length: TensorLike = 1,
        num_parallel_calls: TensorLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Interleaves the datasets that ``map_func`` returns: takes ``block_length`` elements of each of
        ``cycle_length`` datasets in turn.

        Args:
          num_parallel_calls: maximum number of datasets whose elements are prefetched concurrently; `AUTOTUNE` for a
            suitable number.
        """
        del deterministic, name
        cycle: object = cycle_length
        if cycle_length is None or _is_auto(cycle_length):
            calls = num_parallel_calls if isinstance(num_parallel_calls, int) else 0
            cycle = max(DEFAULT_CYCLE, calls)
        return self.interleaved(map_func, cycle, block_length, "interleave", num_parallel_calls)

    def interleaved(
        self,
        function: Callable[..., object],
        cycle: object,
        block: TensorLike,
        kind: str,
        calls: TensorLike | None = None,
        ahead: int = 0,
        sloppy: bool = False,
    ) -> Self:
        """Interleaves the datasets that ``function`` returns; ``kind`` names the method in errors. See `Interleave`."""
        traced, result = self._trace(function, self, kind)
        if not isinstance(result, Dataset):
            raise TypeError(f"`map_func` must return a `Dataset` object; the function of {kind} returned {result!r}.")
        node = Interleave(
            input=self.node,
            function=traced,
            of=result.node.specs,
            cycle_length=self.as_value(cycle, int64),
            block_length=self.as_value(block, int64),
            parallel=self.as_value(1 if calls is None else calls, int64),
            ahead=ahead,
            sloppy=sloppy,
            reads_files=reads_files(result.node),
            changes=bool(unrepeatable(result.node)),
        )
        return self.changed(node, result._structure)

    def scan(self, initial_state: Structure, scan_func: Callable[..., object], name: str | None = None) -> Self:
        """Returns the outputs of ``scan_func(state, element)``, which returns the next state and an output."""
        del name
        state = tuple(self.as_value(part) for part in nest.flatten(initial_state))
        structure = nest.pack(nest.emptied(initial_state), [None] * len(state))
        both = self.changed(Zipped(inputs=(Whole(components=state), self.node)), (structure, self._structure))
        function, result = self._trace(scan_func, both, "scan")
        if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError("The scan function must return a pair comprising the new state and the output value.")
        return self.changed(Scan(input=self.node, state=state, function=function), result[1])

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """Applies ``transformation_func`` to this dataset.

        Raises:
          TypeError: the result is not a dataset.
        """
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"`transformation_func` must return a Dataset. Got type {type(result).__name__}.")
        return result

    def reduce(
        self, initial_state: Structure, reduce_func: Callable[..., object], name: str | None = None
    ) -> Structure:
        """Returns the last state of ``reduce_func(state, element)``."""
        del name
        state = nest.map_structure(as_component, initial_state)
        for element in self:
            state = nest.map_structure(as_component, reduce_func(state, element))
        return state

    # Properties and iteration -----------------------------------------------------------------------------------------

    def with_options(self, options: Options, name: str | None = None) -> Self:
        """Returns the dataset with its options overridden by the values set in ``options``."""
        del name
        dataset = self.changed(self.node)
        dataset._options = self._options.merge(options)
        return dataset

    def options(self) -> Options:
        """Returns the options in force."""
        return self._options

    def cardinality(self) -> Any:
        """Returns the number of elements: an int64, `INFINITE` (-1), or `UNKNOWN` (-2)."""
        return np.int64(self.node.cardinality)

    @property
    def element_spec(self) -> Structure:
        return self._packed_specs(self.node.specs)

    def _packed_specs(self, specs: Sequence[TensorSpec]) -> Structure:
        leaves = nest.flatten(self._structure)
        found = (self._spec_to_program(s) if leaf is None else leaf for s, leaf in zip(specs, leaves, strict=True))
        return nest.pack(self._structure, list(found))

    def __len__(self) -> int:
        """Number of elements.

        Raises:
          TypeError: the number is infinite or unknown.
        """
        count = self.node.cardinality
        if count < 0:
            raise TypeError(f"The dataset is {'infinite' if count == INFINITE else 'of unknown length'}.")
        return count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Structure]:
        return RaisingIterator(self._prefetch(self.node, Context()), self.packed)

    def packed(self, element: Element) -> Structure:
        """Packs the components of an element into the element structure."""
        return nest.pack(self._structure, [self._to_program(_wrapped(part)) for part in element])

    def _prefetch(self, node: Node, context: Context) -> Iterator[Element]:
        """Yields the elements. A thread computes the next elements while the program uses the latest."""
        if isinstance(node, Prefetch):
            return node.elements(context)
        if node.columnar:
            return rows_of(prefetched(lambda: node.blocks(context, block_rows(node.specs)), 2))
        return prefetched(lambda: node.elements(context), 2)

    def as_numpy_iterator(self) -> Iterator[Structure]:
        """Yields the elements, with NumPy scalars in place of arrays without dimensions."""
        for element in self:
            yield nest.map_structure(_as_scalar, element)

    def distributed(
        self, num_workers: int, index: int, policy: AutoShardPolicy | None = None, seed: int | None = None
    ) -> Self:
        """Returns one worker's part of this dataset, whose elements are batches that all workers share.

        Args:
          policy: how to divide the dataset; by default the policy in `options`.
          seed: the seed for shuffles that have none, so that all workers have the same order.

        Raises:
          NotFoundError: the policy is FILE and there are fewer files than workers.
        """
        chosen = self._options.experimental_distribute.policy if policy is None else policy
        node = self.node if seed is None else with_seed(self.node, seed)
        return self.changed(distributed(node, num_workers, index, chosen))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec}>"


def _of_one_kind(first: Dataset, second: Dataset) -> bool:
    """Returns whether elements of two datasets have the same structure, and components of the same classes and
    types."""
    mine, theirs = ([(spec.code, spec.dtype) for spec in each.node.specs] for each in (first, second))
    return nest.same_structure(first._structure, second._structure) and mine == theirs  # pyright: ignore[reportPrivateUsage]


def _check_kinds(datasets: Sequence[Dataset]) -> None:
    for other in datasets[1:]:
        if not _of_one_kind(datasets[0], other):
            raise TypeError(
                "All datasets must have the same type and class, not elements of "
                f"{datasets[0].element_spec} and of {other.element_spec}"
            )


class Nested:
    """In an element structure, marks a component that is itself a dataset."""

    def __init__(self, element_structure: Structure, specs: tuple[TensorSpec, ...]) -> None:
        self.element_structure = element_structure
        self.specs = specs


def _as_scalar(part: Any) -> Any:
    return part[()] if is_array(part) else part


def _wrapped(part: object) -> Any:
    """Converts a component for a program: a node becomes a dataset."""
    return Dataset(part, None) if isinstance(part, Node) else part
