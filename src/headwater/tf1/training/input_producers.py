"""Queues of names, numbers and slices that feed an input pipeline (TensorFlow 1.15's ``tf.train`` names)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import float32, int64, string
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape
from headwater.tf1.functional import arrays, checks, indexing, math, summary
from headwater.tf1.functional.random import random_shuffle
from headwater.tf1.input import readers
from headwater.tf1.input.queues import FIFOQueue
from headwater.tf1.training.queue_runner import QueueRunner, add_queue_runner
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import OpOrTensor, TensorLike
    from headwater.shapes import ShapeLike


def match_filenames_once(pattern: object, name: str | None = None) -> Variable:
    """Returns the names of files that match a pattern, as a local variable; its initializer searches for them."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(
            name=scope,
            initial_value=readers.matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )


def limit_epochs(tensor: TensorLike, num_epochs: int | None = None, name: str | None = None) -> Any:
    """Returns ``tensor``, which steps can compute ``num_epochs`` times; then they raise OutOfRangeError.

    The count is a local variable ``epochs``, so `local_variables_initializer` must run first.

    Args:
      num_epochs: how often; any number of times if None.

    Raises:
      ValueError: ``num_epochs`` is not positive.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = constant(0, dtype=int64)
        epochs = Variable(zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with get_default_graph().control_dependencies([epochs.count_up_to(num_epochs)]):
            return arrays.identity(tensor, name=scope)


def input_producer(
    input_tensor: TensorLike,
    element_shape: ShapeLike = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: OpOrTensor | None = None,
) -> FIFOQueue:
    """Returns a queue of the rows of a tensor, and adds a queue runner that fills it.

    Args:
      input_tensor: a tensor with at least one dimension.
      element_shape: shape of a row, if not known from the tensor.
      num_epochs: how often each row is produced; None: without end. Needs `local_variables_initializer`.
      shuffle: produce the rows in random order, a different one in each epoch.
      seed: the seed of the order.
      capacity: the capacity of the queue.
      shared_name: the name of the queue, for several sessions.
      summary_name: the name of a summary of how full the queue is.
      cancel_op: cancels the queue's pending operations.

    Raises:
      ValueError: the shape of a row is not known.
    """
    with name_scope(name, "input_producer", [input_tensor]) as scope:
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.shape.with_rank_at_least(1)[1:].merge_with(as_shape(element_shape))
        if not shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [shape], shared_name=shared_name, name=scope)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            summary.scalar(summary_name, math.cast(queue.size(), float32) * (1.0 / capacity))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: OpOrTensor | None = None,
) -> FIFOQueue:
    """A queue of strings, such as names of files; see `input_producer`.

    Raises:
      ValueError: an empty list. At run time InvalidArgumentError for a tensor without strings.
    """
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor | Variable) and not len(string_tensor):
        raise ValueError(empty)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtype=string)
        with get_default_graph().control_dependencies([checks.Assert(math.greater(arrays.size(strings), 0), [empty])]):
            strings = arrays.identity(strings)
        return input_producer(
            strings,
            element_shape=[],
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
            name=scope,
            summary_name=f"fraction_of_{capacity}_full",
            cancel_op=cancel_op,
        )


def range_input_producer(
    limit: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the integers below ``limit``; see `input_producer`."""
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(
            arrays.range(limit),
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
        )


def slice_input_producer(
    tensor_list: Sequence[TensorLike],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Returns one row of each of several tensors, with the same index; see `input_producer` for the order.

    Raises:
      ValueError: there are no tensors.
    """
    with name_scope(name, "input_producer", list(tensor_list)):
        tensors = [convert_to_tensor(tensor) for tensor in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        count = arrays.shape(tensors[0])[0]
        queue = range_input_producer(count, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [indexing.gather(tensor, index) for tensor in tensors]
