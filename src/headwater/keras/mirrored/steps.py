"""The step functions of a model whose replicas are in several processes.

A training step is two compiled functions with the exchange between them. `compute` runs the model's own `train_step`
up to its optimizer and gives the vector of `headwater.keras.mirrored.step_vector`; `apply` runs the optimizer with the
sum over all processes. So a step has one exchange, whatever the number of variables and metrics, and every process
takes the same decisions with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from keras import StatelessScope

from headwater.keras.mirrored.step_vector import TRAINING_STEP, StepVector, shapes_of
from headwater.keras.recording import gradients_of, recorded

if TYPE_CHECKING:
    import keras

    from headwater.keras.types import Tree

_stateless = StatelessScope

#: What an iterator gives when this process has no more data, while others may have.
NOTHING: tuple[object, ...] = ()

_SEED = "seed_generator_state"
# Added to seeds for each rank, so that replicas do not drop the same units: 2**32 divided by the golden ratio.
_APART = 0x9E3779B9

State = tuple[Any, Any, Any, Any]


class Replicas(Protocol):
    """All replicas that hold the same variables, as seen from one process."""

    @property
    def rank(self) -> int:
        """Which of the processes this is."""
        ...

    @property
    def processes(self) -> int:
        """How many processes there are."""
        ...

    def add_up(self, vector: object, what: str) -> Any:
        """The sum over all processes of a vector."""
        ...

    def gather(self, values: Sequence[object], what: str) -> list[Sequence[Tree]]:
        """What each process gave, by rank."""
        ...

    def broadcast(self, values: Sequence[object], what: str) -> Sequence[Any]:
        """What the process of rank 0 gave."""
        ...

    def place(self, values: object, batch: bool) -> Tree:
        """Arrays where this process's replicas compute: a batch divided between them, anything else on each."""
        ...


class Owner(Protocol):
    """Whose steps these are."""

    replicas: Replicas
    #: Whether this process is asked to end.
    stop_wanted: bool
    #: Whether any of the processes is, which all know after the same step.
    stopping: bool


def rows_of(batch: object) -> int:
    """How many examples ``batch`` has; 0 for `NOTHING`."""
    return next((int(leaf.shape[0]) for leaf in jax.tree_util.tree_leaves(batch) if np.ndim(leaf)), 0)


class TrainStep:
    """One training step of ``model`` in this process.

    Args:
      model: compiled.
      owner: tells of the replicas, and hears whether to stop.
    """

    def __init__(self, model: Any, owner: Owner) -> None:
        self._model = model
        self._owner = owner
        self._place = owner.replicas.place
        compiled = not model.run_eagerly and model.jit_compile
        self._compute = jax.jit(self.compute) if compiled else self.compute
        self._apply = jax.jit(self.apply, donate_argnums=(0, 1, 2, 3)) if compiled else self.apply
        self._floating: list[int] = []
        self._counted: list[int] = []
        self._sums: list[int] = []
        self._seeds = {index for index, variable in enumerate(model.non_trainable_variables) if _is_seed(variable)}
        self._vector: StepVector | None = None

    def __call__(self, state: State, batch: object) -> tuple[object, State]:
        """The logs and the next state; StopIteration when no process has data any more."""
        trainable, others, optimizer, metrics = self._place(state, False)
        layout = self._vector or self._make_vector(trainable, others, metrics)
        wish = np.asarray(self._owner.stop_wanted, layout.dtype)
        if rows_of(batch):
            vector = self._compute(trainable, others, optimizer, metrics, self._place(batch, True), wish)
        else:
            vector = layout.nothing(wish)
        total = self._owner.replicas.add_up(vector, TRAINING_STEP)
        examples, wishes = float(total[-3]), float(total[-1])
        self._owner.stopping = wishes > 0
        if not examples:
            raise StopIteration
        return self._apply(trainable, others, optimizer, metrics, total)

    def _make_vector(
        self, trainable: Sequence[jax.Array], others: Sequence[jax.Array], metrics: Sequence[jax.Array]
    ) -> StepVector:
        self._floating = [index for index, value in enumerate(others) if _is_floating(value)]
        self._counted = [index for index in range(len(others)) if index not in self._floating]
        summed = sums_its_loss(self._model)
        self._sums = loss_totals(self._model) if summed else []
        wide = any(np.dtype(value.dtype) == np.float64 for value in trainable)
        self._vector = StepVector(
            gradients=shapes_of(trainable),
            floating=shapes_of([others[index] for index in self._floating]),
            counted=shapes_of([others[index] for index in self._counted]),
            metrics=shapes_of(metrics),
            summed_loss=summed,
            dtype=np.dtype(np.float64 if wide else np.float32),
        )
        return self._vector

    def compute(
        self,
        trainable: Sequence[jax.Array],
        others: Sequence[jax.Array],
        optimizer: Any,
        metrics: Sequence[jax.Array],
        batch: Tree,
        wish: object,
    ) -> Tree:
        """This process's vector."""
        model, layout = self._model, self._vector
        assert layout is not None
        salted = [self._salted(index, value, self._owner.replicas.rank) for index, value in enumerate(others)]
        fresh = [jnp.zeros_like(value) for value in metrics]
        with recorded(model.optimizer) as calls:
            logs, state = model.train_step((trainable, salted, optimizer, fresh), batch)
        gradients = gradients_of(model, calls, "a mirrored strategy")
        _, after, _, changed = state
        changes = list(changed)
        own = [name for name in logs if name not in self._results(metrics)]
        if own != list(layout.logs):
            layout = self._vector = replace(layout, logs=tuple(own))
        for index in self._sums:
            # Kept as the loss times the rows of the batch; of the whole batch both are known after the exchange.
            changes[index] = changes[index] / rows_of(batch)
        return layout.pack(
            rows_of(batch),
            wish,
            gradients,
            [after[index] for index in self._floating],
            [logs[name] for name in own],
            [_change(salted[index], after[index]) for index in self._counted],
            changes,
        )

    def apply(
        self,
        trainable: Sequence[jax.Array],
        others: Sequence[jax.Array],
        optimizer: Any,
        metrics: Sequence[jax.Array],
        total: Any,
    ) -> tuple[object, State]:
        """The logs of the whole and the next state."""
        layout = self._vector
        assert layout is not None
        gradients, floating, logs, counted, changes = layout.unpack(total)
        gradients = [value.astype(old.dtype) for value, old in zip(gradients, trainable, strict=True)]
        trainable, optimizer = self._model.optimizer.stateless_apply(optimizer, gradients, trainable)
        next_others = list(others)
        for index, value in zip(self._floating, floating, strict=True):
            next_others[index] = value.astype(others[index].dtype)
        for index, value in zip(self._counted, counted, strict=True):
            next_others[index] = _changed(others[index], value)
        for index in self._sums:
            changes[index] = changes[index] * total[-3]
        metrics = [_changed(old, change) for old, change in zip(metrics, changes, strict=True)]
        results = {**self._results(metrics), **dict(zip(layout.logs, logs, strict=True))}
        return results, (trainable, next_others, optimizer, metrics)

    def _results(self, metrics: Sequence[object]) -> dict[str, Any]:
        with _stateless(state_mapping=list(zip(self._model.metrics_variables, metrics, strict=True))):
            return self._model.get_metrics_result()

    def _salted(self, index: int, value: jax.Array, rank: int) -> Any:
        if index not in self._seeds:
            return value
        return value.at[0].add(np.asarray(rank * _APART % (1 << 32), np.uint32).astype(value.dtype))


def sums_its_loss(model: object) -> bool:
    """Whether the model's loss is a sum over the batch; ValueError when it is that for some outputs only."""
    losses: list[object] = jax.tree_util.tree_leaves(getattr(model, "loss", None), is_leaf=lambda leaf: leaf is None)
    ways = {getattr(loss, "reduction", None) == "sum" for loss in losses if loss is not None}
    if len(ways) > 1:
        raise ValueError(
            "the losses of a model that several processes train must all be sums over the batch (reduction='sum') or "
            "all be means, but this model has some of both"
        )
    return ways == {True}


def loss_totals(model: Any) -> list[int]:
    """Which of the metrics' variables hold the total of a loss."""
    trackers = [model._loss_tracker, *(model._compile_loss.metrics if model._compile_loss is not None else ())]
    totals = {id(tracker.total) for tracker in trackers}
    return [index for index, variable in enumerate(model.metrics_variables) if id(variable) in totals]


def _is_floating(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, np.floating))


def _is_seed(variable: keras.Variable) -> bool:
    return str(variable.path).endswith(_SEED)


def _change(before: Any, after: Any) -> Any:
    """By how much an integer has changed, which may have passed its largest value."""
    if before.dtype == bool:
        return after.astype(np.float32) - before.astype(np.float32)
    difference = after - before
    signed = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[np.dtype(difference.dtype).itemsize]
    return jax.lax.bitcast_convert_type(difference, signed)


def _changed(value: Any, change: Any) -> Any:
    """``value`` and a change of a floating-point type."""
    if _is_floating(value):
        return value + change.astype(value.dtype)
    if value.dtype == bool:
        return value.astype(np.float32) + change > 0.5
    return value + jnp.round(change).astype(np.int32).astype(value.dtype)
