"""Operations on datasets and iterators. They run on the host of the task that they are placed on.

A dataset's tensor (`variant`) holds a node of `headwater.data`. There is one operation type for each class of nodes;
its inputs are, in order, the source datasets, the values, and the captured values of the node's function.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from headwater.data import batches, functions, grouping, parts, prefetch, queries, sources, stored, transforms
from headwater.data.composites import Composite, element_of, flat_element, flat_specs, spec_of_code
from headwater.data.io.tfrecord import TFRecordOptions, TFRecordWriter
from headwater.data.node import Context, Element, Node, closing, raise_failures
from headwater.data.sources import spec_of_value
from headwater.data.spec import TensorSpec, fits
from headwater.dtypes import DType, bool_, int64, resource, string, variant
from headwater.errors import InvalidArgumentError, OutOfRangeError
from headwater.graph.ops.bodies import decode_body, interpret
from headwater.graph.ops.dataset_functions import BodyFunction
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.ops.queues import as_handle
from headwater.graph.registry import FunctionAttr, HostArray, Inference, Spec
from headwater.graph.registry import function_of as python_function
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.iterators import IteratorState, elements_of, iterator_of
from headwater.shapes import Dims, TensorShape, as_shape

NODES: dict[str, type[Node]] = {
    "BatchDatasetV2": batches.Batch,
    "BatchPartDataset": parts.BatchPart,
    "BatchPartsDataset": parts.BatchParts,
    "CacheDataset": transforms.Cache,
    "CacheFileDataset": stored.StoredCache,
    "ConcatenateDataset": transforms.Concatenated,
    "CSVRecordsDataset": queries.CsvRecords,
    "DescribedDataset": grouping.Described,
    "DirectedInterleaveDataset": transforms.Picked,
    "FilterDataset": functions.Filter,
    "DenseToSparseBatchDataset": batches.SparseBatch,
    "FixedLengthRecordDatasetV2": sources.FixedLengthRecords,
    "GeneratorDataset": sources.Generated,
    "GroupedDataset": grouping.Grouped,
    "IgnoreErrorsDataset": functions.IgnoreErrors,
    "InterleaveDataset": functions.Interleave,
    "MapDataset": functions.Map,
    "PaddedBatchDatasetV2": batches.PaddedBatch,
    "PrefetchDataset": prefetch.Prefetch,
    "RaggedElementsDataset": batches.RaggedElements,
    "RandomDataset": transforms.RandomIndices,
    "RandomNumbersDataset": queries.RandomNumbers,
    "RangeDataset": sources.Range,
    "RebatchDatasetV2": batches.Rebatch,
    "RepeatDataset": transforms.Repeat,
    "SavedDataset": stored.Saved,
    "ScanDataset": functions.Scan,
    "ShardDataset": transforms.Shard,
    "ShuffleDataset": transforms.Shuffle,
    "SkipDataset": transforms.Skip,
    "SqlDataset": queries.SqlRows,
    "TFRecordDataset": sources.Records,
    "TakeDataset": transforms.Take,
    "TakeWhileDataset": functions.TakeWhile,
    "TensorDataset": sources.Whole,
    "TensorSliceDataset": sources.Slices,
    "TextLineDataset": sources.Lines,
    "UnbatchDataset": batches.Unbatch,
    "UniqueDataset": queries.Unique,
    "WeightedDrawsDataset": transforms.WeightedRandomIndices,
    "WindowDataset": functions.Windows,
    "ZipDataset": transforms.Zipped,
}
"""The operation type of each kind of node."""


def settings_of(kind: type[Node]) -> tuple[str, ...]:
    """Returns the names of a node's fields that are numbers or booleans."""
    taken = {*kind.children, *kind.values, *kind.functions, "of", "make"}
    return tuple(item.name for item in fields(kind) if item.init and item.name not in taken)  # pyright: ignore[reportArgumentType]


def specs_of(
    types: Sequence[DType], shapes: Sequence[TensorShape], classes: Sequence[str] = ()
) -> tuple[TensorSpec, ...]:
    """Returns the specs of an element's components, as the attributes describe them; without ``classes``, all
    components are dense."""
    codes = tuple(code.decode() if isinstance(code, bytes) else code for code in classes) or ("dense",) * len(types)
    return _known_specs(tuple(types), tuple(as_shape(shape).as_dims for shape in shapes), codes)


@functools.lru_cache(1024)  # an iterator describes each of its elements
def _known_specs(types: tuple[DType, ...], shapes: tuple[Dims, ...], codes: tuple[str, ...]) -> tuple[TensorSpec, ...]:
    return tuple(map(spec_of_code, codes, shapes, types))


def _lowering(op_type: str, kind: type[Node]) -> Callable[..., object]:
    def lower(
        context: HostContext,
        *inputs: HostArray,
        output_types: Sequence[Any],
        output_shapes: Sequence[Any],
        output_classes: Sequence[str] = (),
        sizes: Sequence[int] = (),
        settings: Sequence[int] = (),
        f: FunctionAttr | None = None,
        token: str = "",
    ) -> HostArray:
        rest = iter(inputs)
        counts = iter(sizes)
        given: dict[str, Any] = {}
        for name in (*kind.children, *kind.values):
            count = next(counts)
            parts = tuple(
                item.item() if name in kind.children else unpacked(item) for item in itertools.islice(rest, abs(count))
            )
            given[name] = parts if count < 0 or count == 0 else parts[0]
        # A graph of an earlier version lacks settings that were added later.
        given.update(zip(settings_of(kind), settings, strict=False))
        specs = specs_of(output_types, output_shapes, output_classes)
        if any(item.name == "of" for item in fields(kind)):  # pyright: ignore[reportArgumentType]
            given["of"] = specs
        if token:
            given["make"] = _generator(context, token)
        if f is not None:
            taken = _taken(kind, given)
            given["function"] = BodyFunction(f"{op_type} {context.op_name!r}", f, taken, list(rest), _results(f, specs))
        node = kind(**given)
        node.check()
        return as_handle(node)

    return lower


def _taken(kind: type[Node], given: dict[str, Any]) -> tuple[TensorSpec, ...]:
    """Returns the inputs of a node's function."""
    specs = given["input"].specs
    return (*map(spec_of_value, given["state"]), *specs) if "state" in given else specs


def unpacked(value: HostArray) -> Any:
    """A node's value: an array, or the sparse or ragged component that ``value`` holds."""
    held = value.item() if value.dtype == object and not value.ndim else None
    return held if isinstance(held, Composite) else value


def _results(f: FunctionAttr, specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    attrs = dict(f.attrs)
    if "types" not in attrs:
        return specs
    return specs_of(attrs["types"], attrs["shapes"], attrs.get("classes", ()))


def _generator(context: HostContext, token: str) -> Callable[..., Iterator[Element]]:
    make = python_function(token)
    if make is None:
        raise InvalidArgumentError(
            f"the generator of {context.op_name!r} is a Python function of another process, or its graph "
            "is gone; from_generator works where the session is"
        )
    return make


for _op_type, _kind in NODES.items():
    host(_op_type, infer=fixed(variant, ()))(_lowering(_op_type, _kind))


@host("DatasetComponent", infer=fixed(variant, ()))
def dataset_component(*parts: HostArray, dtype: DType, shape: TensorShape, code: str) -> HostArray:
    """Packs the arrays of a sparse or ragged component into one tensor."""
    return as_handle(specs_of([dtype], [shape], [code])[0].joined(parts))


# Iterators ------------------------------------------------------------------------------------------------------------


def element_specs(inference: Inference) -> Sequence[Spec]:
    """Shape function of operations whose attributes describe an element."""
    attrs = inference.attrs
    shapes = list(map(as_shape, attrs["output_shapes"]))
    found = specs_of(attrs["output_types"], shapes, attrs.get("output_classes", ()))
    return [Spec(spec.dtype, spec.dims) for spec in flat_specs(found)]


def _state(
    context: HostContext,
    container: str,
    shared_name: str,
    output_types: Sequence[DType],
    output_shapes: Sequence[TensorShape],
) -> IteratorState:
    make = lambda: IteratorState(context.op_name)  # noqa: E731 - a short factory
    signature = {"element types": output_types, "element shapes": output_shapes}
    return context.resource(container, shared_name, IteratorState, make, signature)


@host("IteratorV2", infer=fixed(resource, ()))
def iterator(
    context: HostContext,
    *,
    output_types: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    output_classes: Sequence[str] = (),
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    return as_handle(_state(context, container, shared_name, output_types, output_shapes))


@host("MakeIterator", infer=no_outputs)
def make_iterator(context: HostContext, dataset: HostArray, iterator: HostArray) -> None:
    iterator.item().start(dataset.item(), context)


@host("OneShotIterator", infer=fixed(resource, ()))
def one_shot_iterator(
    context: HostContext,
    *,
    dataset_factory: FunctionAttr,
    output_types: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    output_classes: Sequence[str] = (),
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    state = _state(context, container, shared_name, output_types, output_shapes)
    state.start_once(lambda: interpret(decode_body(dataset_factory), context, ())[0].item(), context)
    return as_handle(state)


@host("IteratorGetNext", infer=element_specs, blocking=True)
def iterator_get_next(
    context: HostContext,
    iterator: HostArray,
    *,
    output_types: Sequence[DType],
    output_shapes: Sequence[TensorShape],
    output_classes: Sequence[str] = (),
) -> Sequence[HostArray]:
    return checked_element(iterator.item().next(context), specs_of(output_types, output_shapes, output_classes))


def checked_element(element: Element, specs: Sequence[TensorSpec]) -> tuple[Any, ...]:
    """Returns the arrays of an element; InvalidArgumentError if it does not match its description."""
    found: list[Any] = []
    for index, (part, spec) in enumerate(zip(element, specs, strict=True)):
        if isinstance(part, Node):
            found.append(as_handle(part))
            continue
        arrays = part.parts if isinstance(part, Composite) else (np.asarray(part),)
        if spec.dtype.base_dtype != variant and not _accepted(part, arrays, spec):
            raise InvalidArgumentError(
                f"component {index} of the element is of {spec_of_value(part)}, but {spec} was declared"
            )
        found += arrays
    return tuple(found)


def _accepted(part: object, arrays: Sequence[HostArray], spec: TensorSpec) -> bool:
    """Returns whether a component matches its spec."""
    if isinstance(part, Composite) and not fits(spec.dims, part.shape):
        return False
    parts = spec.parts
    return len(parts) == len(arrays) and all(each.accepts(array) for each, array in zip(parts, arrays, strict=True))


@host("IteratorToStringHandle", infer=fixed(string, ()))
def iterator_to_string_handle(resource_handle: HostArray) -> HostArray:
    return resource_handle.item().handle.encode()


@host("IteratorFromStringHandleV2", infer=fixed(resource, ()), inputs="string_handle:string")
def iterator_from_string_handle(
    string_handle: HostArray,
    *,
    output_types: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    output_classes: Sequence[str] = (),
) -> HostArray:
    return as_handle(iterator_of(string_handle.item().decode()))


@host("SerializeIterator", infer=fixed(string, ()), blocking=True)
def serialize_iterator(resource_handle: HostArray) -> HostArray:
    return resource_handle.item().saved()


@host("DeserializeIterator", infer=no_outputs, inputs="resource_handle:resource, serialized:string", blocking=True)
def deserialize_iterator(context: HostContext, resource_handle: HostArray, serialized: HostArray) -> None:
    resource_handle.item().restore(serialized.item(), context)


# Datasets as a whole --------------------------------------------------------------------------------------------------


@host("DatasetToSingleElement", infer=element_specs, blocking=True)
def dataset_to_single_element(
    context: HostContext,
    dataset: HostArray,
    *,
    output_types: Sequence[DType],
    output_shapes: Sequence[TensorShape],
    output_classes: Sequence[str] = (),
) -> Sequence[HostArray]:
    with closing(raise_failures(dataset.item().elements(Context(context)))) as elements:
        first = next(elements, None)
        if first is None:
            raise InvalidArgumentError("Dataset was empty.")
        if next(elements, None) is not None:
            raise InvalidArgumentError("Dataset had more than one element.")
    return checked_element(first, specs_of(output_types, output_shapes, output_classes))


@host("DatasetToTFRecord", infer=no_outputs, inputs="input_dataset:variant, filename:string, compression_type:string")
def dataset_to_records(
    context: HostContext, input_dataset: HostArray, filename: HostArray, compression_type: HostArray
) -> None:
    options = TFRecordOptions.of(sources.decoded_text(compression_type))
    with TFRecordWriter(sources.decoded_text(filename), options) as writer:
        inner = Context(context)
        with closing(raise_failures(input_dataset.item().elements(inner))) as elements:
            for (record,) in elements:
                context.step.check()
                writer.write(bytes(record.item()))


# Values that may be missing ------------------------------------------------------------------------------------------


class MaybeValue:
    """The value of a ``tf.data.Optional``, which may be missing.

    Attributes:
      element: the components of the value; None if there is no value.
    """

    def __init__(self, element: Element | None) -> None:
        self.element = element


@host("OptionalFromValue", infer=fixed(variant, ()))
def optional_from_value(
    *components: HostArray,
    output_types: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    output_classes: Sequence[str] = (),
) -> HostArray:
    return as_handle(MaybeValue(element_of(specs_of(output_types, output_shapes, output_classes), components)))


@host("OptionalNone", infer=fixed(variant, ()), inputs="")
def optional_none() -> HostArray:
    return as_handle(MaybeValue(None))


@host("OptionalHasValue", infer=fixed(bool_, ()))
def optional_has_value(optional: HostArray) -> Any:
    return np.bool_(optional.item().element is not None)


@host("OptionalGetValue", infer=element_specs)
def optional_get_value(
    optional: HostArray,
    *,
    output_types: Sequence[DType],
    output_shapes: Sequence[TensorShape],
    output_classes: Sequence[str] = (),
) -> Sequence[HostArray]:
    if optional.item().element is None:
        raise InvalidArgumentError("The given optional does not have a value.")
    return checked_element(optional.item().element, specs_of(output_types, output_shapes, output_classes))


@host("IteratorGetNextAsOptional", infer=fixed(variant, ()), blocking=True)
def iterator_get_next_as_optional(
    context: HostContext,
    iterator: HostArray,
    *,
    output_types: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    output_classes: Sequence[str] = (),
) -> HostArray:
    try:
        element = iterator.item().next(context)
    except OutOfRangeError:
        return as_handle(MaybeValue(None))
    specs = specs_of(output_types, output_shapes, output_classes)
    return as_handle(MaybeValue(element_of(specs, checked_element(element, specs))))


@host("DatasetCardinality", infer=fixed(int64, ()))
def dataset_cardinality(dataset: HostArray) -> np.integer:
    return np.int64(dataset.item().cardinality)


@host("ReduceDataset", infer=element_specs, blocking=True)
def reduce_dataset(
    context: HostContext,
    dataset: HostArray,
    *inputs: HostArray,
    f: FunctionAttr,
    count: int,
    output_types: Sequence[DType],
    output_shapes: Sequence[TensorShape],
    output_classes: Sequence[str] = (),
) -> Sequence[HostArray]:
    """Folds a function over the elements of a dataset; returns the last state.

    The inputs are the initial state's ``count`` components, then the function's captured values.
    """
    node = dataset.item()
    state, specs = tuple(map(unpacked, inputs[:count])), specs_of(output_types, output_shapes, output_classes)
    function = BodyFunction(f"reduce {context.op_name!r}", f, (*specs, *node.specs), inputs[count:], specs)
    inner = Context(context)
    with closing(raise_failures(elements_of(node, inner))) as elements:
        for element in elements:
            context.step.check()
            state = function(inner, (*state, *element))
    return flat_element(state)
