"""Graph datasets that apply each example exactly once per epoch; see `accounted`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.cluster.devices import parse_device
from headwater.data import structure as nest
from headwater.data.indexed import require_examples
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.ps.accounting.ledger import Plan
from headwater.tf1.functional.control_flow import no_op
from headwater.tf1.input.composites import described, specified
from headwater.tf1.input.dataset import Dataset
from headwater.tf1.input.dataset_ops import element_attrs, next_element
from headwater.tf1.input.iterators import Iterator, dataset_factory
from headwater.tf1.variables.variables import Variable, init_scope

if TYPE_CHECKING:
    from headwater.data.spec import TensorSpec
    from headwater.graph.types import Structure
    from headwater.tf1.input.specs import RaggedTensorSpec, SparseTensorSpec


_ACCOUNTED: Final = ("headwater", "examples that are accounted for")
"""Key of the collection of `_Handed`."""
_ROUNDS: Final = ("headwater", "rounds of examples that are accounted for")
"""Collection key: tuples of the operations that take mean gradients, their `_Handed`, and the ranges of an update."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Handed:
    """Batches of one ``get_next`` operation.

    Attributes:
      name: the name of the examples.
      applied: the variable that records which examples have been applied.
      handed: the range of examples handed to a step.
      batch: the operation that makes the batch.
      size: number of examples in a full batch.
      account: the operation that records the range as applied; None until an optimizer is found.
    """

    name: str
    applied: Variable
    handed: Tensor
    batch: Operation
    size: int
    account: Operation | None = field(default=None, init=False)


def accounted(
    dataset: Dataset,
    *,
    batch_size: int,
    epochs: int | None = 1,
    seed: int | None = None,
    shuffle: bool = True,
    tries: int = 3,
    size: int | None = None,
    patience_s: float | None = None,
    device: str | None = None,
    name: str = "examples",
) -> AccountedDataset:
    """Returns batches of the job's examples; each example is applied once per epoch, even if workers are lost.

    ::

        with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=...)):
            batches = headwater.data.accounted(dataset, batch_size=64, epochs=10)
            x, y = batches.make_one_shot_iterator().get_next()
            train_op = optimizer.minimize(loss(x, y), global_step)

    The first ``ps`` hands a range of examples to each step that asks for a batch. The optimizer's update on that ``ps``
    and the record of the range are atomic: both happen, or neither. If a step ends without an update because its
    worker failed or was lost, the range is assigned again, to any worker. Steps raise OutOfRangeError when all
    epochs are applied. The record is a variable, so checkpoints and saved state of the ``ps`` contain it together with
    the parameters.

    Args:
      dataset: one example at a time: neither batched, shuffled nor repeated, and the same at every worker.
      batch_size: most examples in a batch of one worker's step.
      epochs: number of passes over all examples; None: no limit. An epoch begins when all examples of the previous
        one are assigned.
      seed: the seed of the order; by default one that the first ``ps`` has drawn.
      shuffle: whether every epoch has a different order; otherwise all epochs use the order of ``dataset``.
      tries: how often a range of examples may be lost with a worker, or fail, before it is set aside.
      size: number of examples, if the dataset does not know it.
      patience_s: seconds that a worker waits for ranges held by other workers. These ranges are then assigned again,
        and the updates of their previous holders are dropped. None: wait until the holders finish or are lost.
      device: the ``ps`` that assigns the ranges. By default the first on which a `replica_device_setter` places
        variables; without one, the current device scope.
      name: the name of the variable, and of the examples in the journal.

    Raises:
      TypeError: ``dataset`` is not a graph's dataset, or another argument has a wrong type.
      ValueError: an argument is out of range.
    """
    if not isinstance(dataset, Dataset):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"accounted() takes a tf.data.Dataset, not {type(dataset).__name__}")
    if not isinstance(shuffle, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"shuffle must be True or False, not {shuffle!r}")
    if epochs is not None and epochs < 1:
        raise ValueError(f"epochs must be at least 1, but is {epochs}")
    require_examples(dataset.node, shuffle=shuffle)
    count = dataset.node.cardinality if size is None else size
    if count < 0:
        raise ValueError(f"the dataset's {type(dataset.node).__name__} has an unknown number of examples: pass size=")
    plan = Plan(size=count, batch=batch_size, tries=tries, shuffle=shuffle, seed=seed)
    return AccountedDataset(dataset, plan, epochs or 0, patience_s or 0.0, device, name)


class AccountedDataset:
    """Batches returned by `accounted`, for a graph's iterators. Transform the examples before calling `accounted`.

    Attributes:
      element_spec: a `TensorSpec` for each component of a batch, in the structure of an example.
    """

    def __init__(
        self, dataset: Dataset, plan: Plan, epochs: int, patience_s: float, device: str | None, name: str
    ) -> None:
        self._dataset = dataset
        self._plan = plan
        self._epochs = epochs
        self._patience_s = patience_s
        self._device = device
        self._name = name
        rows = plan.batch if plan.size % plan.batch == 0 else None

        def batched(spec: object) -> RaggedTensorSpec | SparseTensorSpec | TensorSpec:
            return described(specified(spec).batched(rows))

        self.element_spec: Structure = nest.map_structure(batched, dataset.element_spec)

    @property
    def output_types(self) -> Any:
        """Element types, in the structure of an example."""
        return nest.map_structure(lambda spec: spec.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """Static shapes, in the structure of an example."""
        return nest.map_structure(lambda spec: spec.shape, self.element_spec)

    def make_one_shot_iterator(self) -> AccountedIterator:
        """Returns an iterator over the batches, which needs no initializer.

        Raises:
          ValueError: the dataset depends on a tensor of the graph.
        """
        return self._iterator({"dataset_factory": dataset_factory(self._dataset)})

    def make_initializable_iterator(self) -> AccountedIterator:
        """Returns an iterator over the batches; running its ``initializer`` sets the dataset."""
        made = self._iterator({})
        made._initializer = made.make_initializer(self._dataset)  # pyright: ignore[reportPrivateUsage]
        return made

    def _iterator(self, more: dict[str, object]) -> AccountedIterator:
        graph, plan = get_default_graph(), self._plan
        attrs = {**element_attrs(nest.flatten(self.element_spec)), "size": plan.size, "shuffle": plan.shuffle, **more}
        batches = graph.create_op("ExampleBatches", [], attrs, "ExampleBatches").outputs[0]
        worker = parse_device(no_op(name=f"{self._name}_worker").device)
        worker = worker._replace(device_type=None, device_index=None, replica=None)
        with init_scope(), graph.device(self._device or _first_ps(graph)), graph.name_scope(None):
            start = np.zeros((2, 1 + -(-plan.size // plan.batch)), np.int64)
            applied = Variable(start, trainable=False, name=f"{self._name}/applied")
        taken: dict[str, object] = {
            "shared_name": applied.op.name,
            "worker": worker.name() or "this process",
            "size": plan.size,
            "batch": plan.batch,
            "tries": plan.tries,
            "shuffle": plan.shuffle,
            "seed": -1 if plan.seed is None else plan.seed,
            "epochs": self._epochs,
            "patience_s": self._patience_s,
        }
        return AccountedIterator(batches, self._dataset.element_spec, self.element_spec, applied, taken)


class AccountedIterator(Iterator):
    """Iterates over the batches of an `AccountedDataset`: each step that runs `get_next` takes a batch."""

    def __init__(
        self, batches: Tensor, example_spec: Structure, spec: Structure, applied: Variable, taken: dict[str, object]
    ) -> None:
        super().__init__(batches, None, example_spec, "initializable")
        self._batch_spec = spec
        self._applied = applied
        self._taken = taken

    @property
    def element_spec(self) -> Any:
        return self._batch_spec

    def get_next(self, name: str | None = None) -> Structure:
        """Returns the next batch: tensors in the structure of an example. Steps raise OutOfRangeError after the last.

        A step that takes a batch has to run an optimizer's update with gradients of it, else the examples are handed
        out again.
        """
        specs = nest.flatten(self._batch_spec)
        graph = get_default_graph()
        with graph.colocate_with(self._applied.op):
            handed = graph.create_op("TakeExamples", [self._applied.op.outputs[0]], self._taken).outputs[0]
        with graph.colocate_with(self._resource.op):
            batch = graph.create_op("ExampleBatch", [self._resource, handed], element_attrs(specs), name)
        size = self._taken["batch"]
        assert isinstance(size, int)
        found = _Handed(name=self._applied.op.name, applied=self._applied, handed=handed, batch=batch, size=size)
        graph.get_collection_ref(_ACCOUNTED).append(found)
        return next_element(self._batch_spec, batch.outputs)


def _first_ps(graph: Graph) -> str | None:
    for function in reversed(graph.device_functions()):
        found: str = getattr(function, "first_ps", "")
        if found:
            return found
    return ""


# Operations added by optimizers ---------------------------------------------------------------------------------------


def account_for(gradients: Iterable[object], updates: Sequence[object]) -> list[Operation]:
    """Returns the operations that record the examples of some gradients atomically with their updates; may be empty.

    Args:
      gradients: tensors, `IndexedSlices`, or None.
      updates: the operations that apply the gradients to variables.
    """
    gradients = list(gradients)
    made: list[Operation] = []
    for entry in _reached(gradients):
        if entry.account is None:
            entry.account = _account("AccountExamples", entry, entry.handed, updates)
        made.append(entry.account)
    of_gradients = {part.op for part in _parts(gradients)}
    for takes, entry, ranges in get_default_graph().get_collection(_ROUNDS):
        if takes & of_gradients and entry.account is None:
            entry.account = _account("AccountRound", entry, ranges, updates)
            made.append(entry.account)
    return made


def _account(kind: str, entry: _Handed, ranges: Tensor, updates: Sequence[Any]) -> Operation:
    beside = [update for update in updates if getattr(update, "op", update).device == entry.applied.op.device]
    graph = entry.applied.graph
    with graph.colocate_with(entry.applied.op), graph.control_dependencies(beside or updates):
        attrs = {"shared_name": entry.name, "batch": entry.size}
        return graph.create_op(kind, [entry.applied.op.outputs[0], ranges], attrs)


class Gathered:
    """Record of examples whose gradients are gathered for one update.

    Args:
      entry: the batches of the examples.

    Attributes:
      name: the name of the examples.
      device: device of the variable that records applied examples. Gradients are gathered there, too, if only to be
        counted.
      handed: the range of examples handed to a step.
    """

    def __init__(self, entry: _Handed) -> None:
        self._entry = entry
        self.name: str = entry.name
        self.device: str = entry.applied.op.device
        self.handed: Tensor = entry.handed

    def taken(self, takes: Iterable[Operation], ranges: Tensor) -> None:
        """Makes an optimizer that updates with the outputs of ``takes`` record ``ranges`` as applied."""
        rounds = get_default_graph().get_collection_ref(_ROUNDS)
        rounds.append((frozenset(takes), self._entry, ranges))

    def round(self, required: Tensor) -> Tensor:
        """Returns the number of gradients of an update that requires ``required``; waits until these are gathered."""
        return self._here("ExampleRound", [self._entry.applied.op.outputs[0], required]).outputs[0]

    def given(self, given: Sequence[Operation]) -> Operation:
        """Reports, after ``given``, that a step's gradients are in the accumulators."""
        with self._entry.applied.graph.control_dependencies(given):
            return self._here("ExamplesGiven", [])

    def _here(self, kind: str, inputs: Sequence[Tensor]) -> Operation:
        graph = self._entry.applied.graph
        with graph.colocate_with(self._entry.applied.op):
            return graph.create_op(kind, inputs, {"shared_name": self.name})


def gathered_examples(gradients: Iterable[object]) -> Gathered | None:
    """Returns the record of the accounted examples of gradients that are gathered; None if there are none.

    Raises:
      ValueError: the examples are of several datasets.
    """
    found = _reached(gradients)
    if len(found) > 1:
        names = ", ".join(sorted(entry.name for entry in found))
        raise ValueError(f"gradients that are gathered can account for the examples of one dataset, not of {names}")
    return Gathered(found[0]) if found else None


def require_accounted(graph: Graph) -> None:
    """Raises ValueError if no optimizer uses the batches of accounted examples."""
    for entry in _entries(graph):
        if entry.account is None:
            raise ValueError(
                f"the examples {entry.name!r} are accounted for, but no optimizer applies gradients of the batch "
                f"{entry.batch.name!r}: make the train op with tensors of get_next(), or do not account for them"
            )


def _entries(graph: Graph) -> list[_Handed]:
    return graph.get_collection(_ACCOUNTED)


def _reached(gradients: Iterable[object]) -> list[_Handed]:
    """Returns the accounted batches from which gradients were computed."""
    entries = {entry.batch: entry for entry in _entries(get_default_graph())}
    if not entries:
        return []
    found: dict[Operation, _Handed] = {}
    ahead = [part.op for part in _parts(gradients)]
    seen = set(ahead)
    while ahead:
        op = ahead.pop()
        if op in entries:
            found[op] = entries[op]
        before = {tensor.op for tensor in op.inputs} - seen
        seen |= before
        ahead += before
    return list(found.values())


def _parts(gradients: Iterable[object]) -> list[Any]:
    found: list[Any] = []
    for grad in gradients:
        parts = (grad.values, grad.indices) if isinstance(grad, IndexedSlices) else (grad,)
        found += [part for part in parts if part is not None]
    return found
