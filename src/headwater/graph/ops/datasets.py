"""Operations on datasets and iterators. They run on the host of the task that they are placed on.

A dataset's tensor (`variant`) holds a node of `headwater.data`. Each kind of node has an operation of its own, whose
inputs are, in order: the datasets it takes elements from, its values, and what its function uses from outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from headwater.data import batches, functions, grouping, parts, prefetch, queries, sources, stored, transforms
from headwater.data.io.tfrecord import TFRecordOptions, TFRecordWriter
from headwater.data.node import Context, Element, Node, closing
from headwater.data.spec import TensorSpec
from headwater.dtypes import DType, bool_, int64, resource, string, variant
from headwater.errors import InvalidArgumentError, OutOfRangeError
from headwater.graph.ops.bodies import decode_body, interpret
from headwater.graph.ops.dataset_functions import BodyFunction
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.ops.queues import as_handle
from headwater.graph.registry import FunctionAttr, HostArray, Inference, Spec
from headwater.graph.registry import function_of as python_function
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.iterators import IteratorState, ahead, iterator_of
from headwater.shapes import TensorShape, as_shape

NODES: dict[str, type[Node]] = {
    "BatchDatasetV2": batches.Batch,
    "BatchPartDataset": parts.BatchPart,
    "BatchPartsDataset": parts.BatchParts,
    "CacheDataset": transforms.Cache,
    "CacheFileDataset": stored.StoredCache,
    "ConcatenateDataset": transforms.Concatenated,
    "CSVRecordsDataset": queries.CsvRecords,
    "DirectedInterleaveDataset": transforms.Picked,
    "FilterDataset": functions.Filter,
    "FixedLengthRecordDatasetV2": sources.FixedLengthRecords,
    "GeneratorDataset": sources.Generated,
    "GroupedDataset": grouping.Grouped,
    "IgnoreErrorsDataset": functions.IgnoreErrors,
    "InterleaveDataset": functions.Interleave,
    "MapDataset": functions.Map,
    "PaddedBatchDatasetV2": batches.PaddedBatch,
    "PrefetchDataset": prefetch.Prefetch,
    "RandomDataset": transforms.Draws,
    "RandomNumbersDataset": queries.RandomNumbers,
    "RangeDataset": sources.Range,
    "RepeatDataset": transforms.Repeat,
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
    "WindowDataset": functions.Windows,
    "ZipDataset": transforms.Zipped,
}
"""The operation type of each kind of node."""


def settings_of(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a node that are plain numbers and truth values."""
    taken = {*kind.children, *kind.values, *kind.functions, "of", "make"}
    return tuple(item.name for item in fields(kind) if item.init and item.name not in taken)  # pyright: ignore[reportArgumentType]


def specs_of(types: Sequence[DType], shapes: Sequence[TensorShape]) -> tuple[TensorSpec, ...]:
    """The two attributes that say what an element is."""
    return tuple(TensorSpec(shape, dtype) for dtype, shape in zip(types, shapes, strict=True))


def _lowering(op_type: str, kind: type[Node]) -> Callable[..., object]:
    def lower(
        context: HostContext,
        *inputs: HostArray,
        output_types: Sequence[Any],
        output_shapes: Sequence[Any],
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
            parts = tuple(item.item() if name in kind.children else item for item in itertools.islice(rest, abs(count)))
            given[name] = parts if count < 0 or count == 0 else parts[0]
        given.update(zip(settings_of(kind), settings, strict=True))
        specs = specs_of(output_types, output_shapes)
        if any(item.name == "of" for item in fields(kind)):  # pyright: ignore[reportArgumentType]
            given["of"] = specs
        if token:
            given["make"] = _generator(context, token)
        if f is not None:
            taken = _taken(kind, given)
            given["function"] = BodyFunction(f"{op_type} {context.op_name!r}", f, taken, list(rest), _results(f, specs))
        return as_handle(kind(**given))

    return lower


def _taken(kind: type[Node], given: dict[str, Any]) -> tuple[TensorSpec, ...]:
    """What a node's function takes."""
    specs = given["input"].specs
    return (*(TensorSpec(item.shape, _dtype(item)) for item in given["state"]), *specs) if "state" in given else specs


def _dtype(array: HostArray) -> Any:
    return string if array.dtype == object else array.dtype


def _results(f: FunctionAttr, specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    attrs = dict(f.attrs)
    if "types" not in attrs:
        return specs
    return specs_of(attrs["types"], attrs["shapes"])


def _generator(context: HostContext, token: str) -> Callable[..., Iterator[Element]]:
    make = python_function(token)
    if make is None:
        raise InvalidArgumentError(
            None,
            None,
            f"the generator of {context.op_name!r} is a Python function of another process, or its graph "
            "is gone; from_generator works where the session is",
        )
    return make


for _op_type, _kind in NODES.items():
    host(_op_type, infer=fixed(variant, ()))(_lowering(_op_type, _kind))


# Iterators ------------------------------------------------------------------------------------------------------------


def element_specs(inference: Inference) -> Sequence[Spec]:
    """What operations give whose attributes say what an element is."""
    attrs = inference.attrs
    return [
        Spec(dtype, as_shape(shape).as_dims)
        for dtype, shape in zip(attrs["output_types"], attrs["output_shapes"], strict=True)
    ]


def _state(
    context: HostContext, container: str, shared_name: str, output_types: object, output_shapes: object
) -> IteratorState:
    make = lambda: IteratorState(context.op_name)  # noqa: E731 - it is one
    signature = {"element types": output_types, "element shapes": output_shapes}
    return context.resource(container, shared_name, IteratorState, make, signature)


@host("IteratorV2", infer=fixed(resource, ()))
def iterator(
    context: HostContext,
    *,
    output_types: Sequence[DType] = (),
    output_shapes: object = (),
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
    output_shapes: object = (),
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    state = _state(context, container, shared_name, output_types, output_shapes)
    state.start_once(lambda: interpret(decode_body(dataset_factory), context, ())[0].item(), context)
    return as_handle(state)


@host("IteratorGetNext", infer=element_specs, blocking=True)
def iterator_get_next(
    context: HostContext, iterator: HostArray, *, output_types: Any, output_shapes: Any
) -> Sequence[HostArray]:
    return checked_element(iterator.item().next(context), output_types, output_shapes)


def checked_element(element: Element, types: Sequence[Any], shapes: Sequence[Any]) -> tuple[Any, ...]:
    """The parts of an element as arrays; InvalidArgumentError for one that is not as promised."""
    found: list[Any] = []
    for index, (part, dtype, shape) in enumerate(zip(element, types, shapes, strict=True)):
        if isinstance(part, Node):
            found.append(as_handle(part))
            continue
        array = np.asarray(part)
        if dtype.base_dtype != variant and not TensorSpec(shape, dtype).accepts(array):
            raise InvalidArgumentError(
                None,
                None,
                f"component {index} of the element has type {array.dtype} and shape {array.shape}, where type "
                f"{dtype.name} and shape {as_shape(shape)} were promised",
            )
        found.append(array)
    return tuple(found)


@host("IteratorToStringHandle", infer=fixed(string, ()))
def iterator_to_string_handle(context: HostContext, resource_handle: HostArray) -> HostArray:
    del context
    return resource_handle.item().handle.encode()


@host("IteratorFromStringHandleV2", infer=fixed(resource, ()), inputs="string_handle:string")
def iterator_from_string_handle(
    context: HostContext, string_handle: HostArray, *, output_types: Sequence[DType] = (), output_shapes: object = ()
) -> HostArray:
    del context
    return as_handle(iterator_of(string_handle.item().decode()))


# Datasets as a whole --------------------------------------------------------------------------------------------------


@host("DatasetToSingleElement", infer=element_specs, blocking=True)
def dataset_to_single_element(
    context: HostContext, dataset: HostArray, *, output_types: Any, output_shapes: Any
) -> Sequence[HostArray]:
    with closing(dataset.item().elements(Context(context))) as elements:
        first = next(elements, None)
        if first is None:
            raise InvalidArgumentError(None, None, "Dataset was empty.")
        if next(elements, None) is not None:
            raise InvalidArgumentError(None, None, "Dataset had more than one element.")
    return checked_element(first, output_types, output_shapes)


@host("DatasetToTFRecord", infer=no_outputs, inputs="input_dataset:variant, filename:string, compression_type:string")
def dataset_to_records(
    context: HostContext, input_dataset: HostArray, filename: HostArray, compression_type: HostArray
) -> None:
    options = TFRecordOptions.of(sources.decoded_text(compression_type))
    with TFRecordWriter(sources.decoded_text(filename), options) as writer:
        inner = Context(context)
        with closing(input_dataset.item().elements(inner)) as elements:
            for (record,) in elements:
                context.step.check()
                writer.write(bytes(record.item()))


# Values that may be missing ------------------------------------------------------------------------------------------


class MaybeValue:
    """A value, or none.

    Attributes:
      element: its components; None for none.
    """

    def __init__(self, element: Element | None) -> None:
        self.element = element


@host("OptionalFromValue", infer=fixed(variant, ()))
def optional_from_value(context: HostContext, *components: HostArray) -> HostArray:
    del context
    return as_handle(MaybeValue(components))


@host("OptionalNone", infer=fixed(variant, ()), inputs="")
def optional_none(context: HostContext) -> HostArray:
    del context
    return as_handle(MaybeValue(None))


@host("OptionalHasValue", infer=fixed(bool_, ()))
def optional_has_value(context: HostContext, optional: HostArray) -> Any:
    del context
    return np.bool_(optional.item().element is not None)


@host("OptionalGetValue", infer=element_specs)
def optional_get_value(
    context: HostContext, optional: HostArray, *, output_types: Any, output_shapes: Any
) -> Sequence[HostArray]:
    del context
    if optional.item().element is None:
        raise InvalidArgumentError(None, None, "The given optional does not have a value.")
    return checked_element(optional.item().element, output_types, output_shapes)


@host("IteratorGetNextAsOptional", infer=fixed(variant, ()), blocking=True)
def iterator_get_next_as_optional(
    context: HostContext, iterator: HostArray, *, output_types: Any = (), output_shapes: Any = ()
) -> HostArray:
    try:
        element = iterator.item().next(context)
    except OutOfRangeError:
        return as_handle(MaybeValue(None))
    return as_handle(MaybeValue(checked_element(element, output_types, output_shapes)))


@host("DatasetCardinality", infer=fixed(int64, ()))
def dataset_cardinality(context: HostContext, dataset: HostArray) -> np.integer:
    del context
    return np.int64(dataset.item().cardinality)


@host("ReduceDataset", infer=element_specs, blocking=True)
def reduce_dataset(
    context: HostContext,
    dataset: HostArray,
    *inputs: HostArray,
    f: FunctionAttr,
    count: int,
    output_types: Any,
    output_shapes: Any,
) -> Sequence[HostArray]:
    """The last state of those that a function gives for a state and each element.

    The inputs are the first state's ``count`` components, then what the function uses from outside.
    """
    node = dataset.item()
    state, specs = inputs[:count], specs_of(output_types, output_shapes)
    function = BodyFunction(f"reduce {context.op_name!r}", f, (*specs, *node.specs), inputs[count:], specs)
    inner = Context(context)
    with closing(ahead(node, inner)) as elements:
        for element in elements:
            context.step.check()
            state = function(inner, (*state, *element))
    return tuple(state)
