"""The step functions of a model with replicas in several processes.

Each process computes a *share* of the batch: some of its rows. A training step consists of two compiled functions with
an exchange between them. `compute` runs the model's own `train_step` on the share, but does not apply the gradients: it
packs them, the metrics and the logs into one vector (`headwater.keras.mirrored.step_vector`). The processes then add up
their vectors, and `apply` runs the optimizer with the sum. So a step has one exchange, whatever the number of variables
and metrics. All processes get bitwise equal sums, so their variables stay equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from keras.optimizers import LossScaleOptimizer

from headwater.keras.combining.combination import (
    Combination,
    Outcome,
    find_combination,
    flat_logs,
    keeps_train_step,
    losses_of,
    results_of,
)
from headwater.keras.combining.loss_terms import Divisor, factors_of, recorded_losses
from headwater.keras.combining.merges import Merge, Rule
from headwater.keras.internals import data_adapter_utils
from headwater.keras.mirrored.step_vector import TRAINING_STEP, Item, StepVector, item_of
from headwater.keras.recording import gradients_of, record_gradients
from headwater.keras.synchronized import Exchange, synchronized_layers

if TYPE_CHECKING:
    import keras

    from headwater.graph.registry import HostArray
    from headwater.keras.mirrored.model import MirroredModel
    from headwater.keras.types import Tree

_utils = data_adapter_utils

#: The element that an iterator returns when this process has no more data, while other processes may still have some.
NOTHING: tuple[object, ...] = ()

_SEED = "seed_generator_state"
# Process r adds r times this number (2**32 divided by the golden ratio) to each seed, so that dropout layers drop
# different units in each process.
_APART = 0x9E3779B9

State = tuple[Any, Any, Any, Any]


class Replicas(Protocol):
    """All replicas that hold the same variables, as seen from one process."""

    @property
    def rank(self) -> int:
        """The rank of this process."""
        ...

    @property
    def processes(self) -> int:
        """The number of processes."""
        ...

    def add_up(self, vector: object, what: str) -> Any:
        """Returns the sum of a vector over all processes."""
        ...

    def gather(self, values: Sequence[object], what: str) -> list[Sequence[Tree]]:
        """Returns the values of each process, by rank."""
        ...

    def broadcast(self, values: Sequence[object], what: str) -> Sequence[Any]:
        """Returns the values of rank 0."""
        ...

    def place(self, values: object, batch: bool) -> Tree:
        """Returns ``values`` as arrays on the devices of this process's replicas.

        Args:
          values: the values.
          batch: whether to divide the values among the devices by rows; otherwise each device has a copy.
        """
        ...


def rows_of(batch: object) -> int:
    """Returns the number of examples in ``batch``; 0 for `NOTHING`."""
    return next((int(leaf.shape[0]) for leaf in jax.tree_util.tree_leaves(batch) if np.ndim(leaf)), 0)


class SharedStep:
    """Base class of training and evaluation steps: agrees on the rules that combine the results of all shares.

    Args:
      model: a compiled model.
      owner: provides the replicas; a step sets its ``stopping``.
    """

    _training = True

    def __init__(self, model: Any, owner: MirroredModel) -> None:
        self._model = model
        self._owner = owner
        self._place = owner.replicas.place
        self._compiled: bool = not model.run_eagerly and model.jit_compile
        self._divisors: Any = jax.jit(self.divisors) if self._compiled else self.divisors
        self._combination: Combination | None = None
        self._known: tuple[object, Combination] | None = None
        self._run = -1
        self._exchange: Exchange | None = None

    @property
    def combination(self) -> Combination:
        """The rules that combine shares; available after `prepare`."""
        assert self._combination is not None
        return self._combination

    def prepare(self, state: Any, batch: object) -> bool:
        """Agrees with all processes on the rules; does nothing after the first step of a run.

        Returns:
          Whether the rules have changed.

        Raises:
          ValueError: shares cannot be combined, see `find_combination`. Raised in all processes.
          StopIteration: no process has a batch.
        """
        if self._run == self._owner.run:
            return False
        self._run = self._owner.run
        own = error = ""
        if rows_of(batch):
            structure = jax.tree_util.tree_structure(batch)
            if self._known is None or self._known[0] != structure:
                data = _utils.unpack_x_y_sample_weight(batch)
                try:
                    combination = find_combination(
                        self._model,
                        data,
                        lambda others, metrics, data: self._outcome((state[0], others, *state[2:-1], metrics), data),
                        trainable=lambda: state[0],
                        others=state[1],
                        metrics=state[-1],
                        divided=True,
                        several=True,
                        training=self._training,
                        eager=not self._compiled,
                    )
                    self._known = structure, combination
                except ValueError as refused:
                    error = str(refused)
            if not error:
                assert self._known is not None
                own = self._known[1].to_text()
        texts = [np.frombuffer(text.encode(), np.uint8) for text in (own, error)]
        reads = np.asarray(self._owner.reads_batch_logs)
        gathered = self._owner.replicas.gather([*texts, reads], "how shares combine")
        self._owner.reads_batch_logs = any(bool(part[2]) for part in gathered)
        owns, errors = ([bytes(np.asarray(part[at])).decode() for part in gathered] for at in (0, 1))
        if any(errors):
            raise ValueError(next(text for text in errors if text))
        text = next((text for text in owns if text), "")
        if not text:
            raise StopIteration
        before, self._combination = self._combination, Combination.from_text(text)
        self._owner.layer_rules = self._combination.layers
        return before != self._combination

    def factors(self, state: Tree, batch: object) -> HostArray | None:
        """Returns the factors of this process's loss terms, see `headwater.keras.combining.loss_terms`; None if no loss
        term needs a factor.

        Raises:
          StopIteration: no process has a batch.
        """
        combination = self.combination
        if not combination.needs_factors:
            return None
        rows = rows_of(batch)
        count = sum(divisor is not Divisor.ROWS for divisor in combination.divisors)
        own = np.zeros(count + 1)
        if rows:
            own[:count] = np.asarray(self._exchanging(self._divisors, state, batch), np.float64)
            own[count] = rows
        else:
            self._join_exchanges()
        whole = self._owner.replicas.add_up(own, "divisors of losses")
        if not whole[-1]:
            raise StopIteration
        return factors_of(combination.divisors, own[:-1], np.asarray(whole[:-1]), (rows or 1) / whole[-1])

    def divisors(self, state: Tree, batch: Tree) -> Any:
        """Returns the divisors of the loss terms in this process.

        Terms whose divisor is proportional to the number of rows are omitted.
        """
        with recorded_losses(sums=self.combination.sums) as terms, self._synchronize(batch):
            self._outcome(state, _utils.unpack_x_y_sample_weight(batch))
        return jnp.stack([jnp.asarray(value, np.float32) for value in terms.denominators])

    def _outcome(self, state: object, batch: Tree) -> Outcome:
        """Returns the logs and values of a step; ``batch`` is ``(x, y, weights)``."""
        raise NotImplementedError

    def _synchronize(self, batch: Tree) -> AbstractContextManager[None]:
        """Returns the context for tracing a step, in which layers with synchronized statistics exchange them."""
        return nullcontext() if self._exchange is None else self._exchange.of_rows(rows_of(batch))

    def _exchanging(self, function: Any, *args: object) -> Any:
        """Calls ``function``, which runs the model; if layers synchronize statistics, handles their exchanges."""
        return function(*args) if self._exchange is None else self._exchange.run(function, *args)

    def _join_exchanges(self) -> None:
        """Takes part in the exchanges of `_exchanging` in the other processes; called if this process has no examples.

        Without this, the other processes would wait for this one.
        """
        if self._exchange is not None:
            self._exchange.join_exchanges()

    def _vector_of(self, items: Sequence[Item], wide: bool) -> StepVector:
        replicas = self._owner.replicas
        dtype = np.dtype(np.float64 if wide else np.float32)
        return StepVector(items=items, rank=replicas.rank, processes=replicas.processes, dtype=dtype)

    def _forget(self, *functions: Any) -> None:
        """Drops the compiled forms of functions, so that they are compiled again with the current rules."""
        if self._compiled:
            for function in (*functions, self._divisors):
                function.clear_cache()

    @property
    def _rules(self) -> list[Rule]:
        """The rule of each variable of the metrics."""
        return [rule for rule in self.combination.metrics if rule is not None]

    def _results(self, metrics: Sequence[object], averaged: Sequence[object]) -> dict[str, Any]:
        """Returns the logs for the global batch."""
        return self.combination.logs_from(results_of(self._model, metrics), averaged)


class TrainStep(SharedStep):
    """One training step of ``model`` in this process."""

    def __init__(self, model: Any, owner: MirroredModel) -> None:
        super().__init__(model, owner)
        self._compute = jax.jit(self.compute) if self._compiled else self.compute
        # A metric of a layer within a layer is in the list of metrics twice, and cannot be donated twice.
        self._apply = jax.jit(self.apply, donate_argnums=(0, 1, 2)) if self._compiled else self.apply
        self._exchange = Exchange(owner.replicas) if synchronized_layers(model) else None
        self._seeds = {index for index, variable in enumerate(model.non_trainable_variables) if _is_seed(variable)}
        self._vector: StepVector | None = None

    def __call__(self, state: State, batch: object) -> tuple[object, State]:
        """Returns the logs and the next state; raises StopIteration when no process has further data."""
        trainable, others, optimizer, metrics = state = self._place(state, False)
        if self.prepare(state, batch):
            self._vector = self._make_vector(trainable, others, metrics)
            self._forget(self._compute, self._apply)
        layout = self._vector
        assert layout is not None
        stop_wanted = np.asarray(self._owner.stop_wanted, layout.dtype)
        batch = self._place(batch, True)
        factors = self.factors(state, batch)
        if rows_of(batch):
            vector = self._exchanging(self._compute, trainable, others, optimizer, metrics, batch, stop_wanted, factors)
        else:
            self._join_exchanges()
            vector = layout.pack_empty(stop_wanted)
        total = self._owner.replicas.add_up(vector, TRAINING_STEP)
        examples, wishes = float(total[-3]), float(total[-1])
        self._owner.stopping = wishes > 0
        if not examples:
            raise StopIteration
        return self._apply(trainable, others, optimizer, metrics, total)

    def _make_vector(
        self, trainable: Sequence[jax.Array], others: Sequence[jax.Array], metrics: Sequence[jax.Array]
    ) -> StepVector:
        combination = self.combination
        items = [
            *(item_of(Merge.MEAN, value) for value in trainable),
            *(item_of(rule.merge, value) for rule, value in zip(combination.layers, others, strict=True)),
            *(item_of(rule.merge, value) for rule, value in zip(self._rules, metrics, strict=True)),
            *(Item(Merge.MEAN) for _ in combination.averaged),
        ]
        return self._vector_of(items, any(np.dtype(value.dtype) == np.float64 for value in trainable))

    def compute(
        self,
        trainable: Sequence[jax.Array],
        others: Sequence[jax.Array],
        optimizer: Sequence[Any],
        metrics: Sequence[jax.Array],
        batch: Tree,
        stop_wanted: object,
        factors: object = None,
    ) -> Tree:
        """Computes this process's vector."""
        model, layout, combination = self._model, self._vector, self.combination
        assert layout is not None
        salted = [self._add_rank(index, value, self._owner.replicas.rank) for index, value in enumerate(others)]
        starts = [rule.start(value) for rule, value in zip(self._rules, metrics, strict=True)]
        recording = recorded_losses(factors, combination.sums)
        scales = keeps_train_step(model) and isinstance(model.optimizer, LossScaleOptimizer)
        processes = self._owner.replicas.processes if scales else 1
        if scales:  # as if the whole batch were here, so that numbers overflow where they do in one process
            optimizer = [
                value / processes if variable is model.optimizer.dynamic_scale else value
                for variable, value in zip(model.optimizer.variables, optimizer, strict=True)
            ]
        with record_gradients(model.optimizer) as calls, recording, self._synchronize(batch):
            logs, (_, after, _, counted) = model.train_step((trainable, salted, optimizer, starts), batch)
        logs = flat_logs(logs)
        gradients: list[Any] = gradients_of(model, calls, "a mirrored strategy")
        return layout.pack(
            rows_of(batch),
            stop_wanted,
            [
                *(gradient * processes for gradient in gradients),
                *(rule.contribution(*pair) for rule, *pair in zip(combination.layers, salted, after, strict=True)),
                *(rule.contribution(*pair) for rule, *pair in zip(self._rules, starts, counted, strict=True)),
                *(logs[name] for name in combination.averaged),
            ],
        )

    def apply(
        self,
        trainable: Sequence[jax.Array],
        others: Sequence[jax.Array],
        optimizer: object,
        metrics: Sequence[jax.Array],
        total: object,
    ) -> tuple[object, State]:
        """Applies the summed vector; returns the logs for the global batch, and the next state."""
        layout, combination = self._vector, self.combination
        assert layout is not None
        values = iter(layout.unpack(total))
        gradients = [next(values).astype(old.dtype) for old in trainable]
        trainable, optimizer = self._model.optimizer.stateless_apply(optimizer, gradients, trainable)
        others = [rule.apply_merge(old, next(values)) for rule, old in zip(combination.layers, others, strict=True)]
        metrics = [rule.apply_merge(old, next(values)) for rule, old in zip(self._rules, metrics, strict=True)]
        return self._results(metrics, list(values)), (trainable, others, optimizer, metrics)

    def _outcome(self, state: object, batch: Tree) -> Outcome:
        return losses_of(self._model, state, batch)

    def _add_rank(self, index: int, value: jax.Array, rank: int) -> object:
        if index not in self._seeds:
            return value
        return value.at[0].add(np.asarray(rank * _APART % (1 << 32), np.uint32).astype(value.dtype))


class TestStep(SharedStep):
    """An evaluation step with an exchange in each batch.

    Most models need only one exchange, after the last batch. This class is for models with losses or metrics whose
    totals per process cannot be combined afterwards, and for callbacks that read the logs of each batch.
    """

    __test__ = False
    _training = False

    def __init__(self, model: object, owner: MirroredModel) -> None:
        super().__init__(model, owner)
        self._compute = jax.jit(self.compute) if self._compiled else self.compute
        self._merge = jax.jit(self.merge) if self._compiled else self.merge
        self._vector: StepVector | None = None

    def __call__(self, state: object, batch: object) -> tuple[object, Any]:
        """Returns the logs and the next state; raises StopIteration when no process has further data."""
        trainable, others, metrics = self._place(state, False)
        if self._vector is None or self._changed:
            self._changed = False
            layers = ((self.combination.layers[at], others[at]) for at in self.combination.changed)
            merged = itertools.chain(layers, zip(self._rules, metrics, strict=True))
            items = [item_of(rule.merge, value) for rule, value in merged]
            self._vector = self._vector_of([*items, *(Item(Merge.MEAN) for _ in self.combination.averaged)], wide=False)
            self._forget(self._compute, self._merge)
        batch = self._place(batch, True)
        factors = self.factors(state, batch)
        if rows_of(batch):
            values = self._compute(trainable, others, metrics, batch, factors)
            vector = self._vector.pack(rows_of(batch), 0.0, [np.asarray(value) for value in values])
        else:
            vector = self._vector.pack_empty(0.0)
        total = self._owner.replicas.add_up(vector, "metrics of an evaluation")
        if not float(total[-3]):
            raise StopIteration
        logs, others, metrics = self._merge(others, metrics, self._vector.unpack(total))
        return logs, (trainable, others, metrics)

    def prepare(self, state: object, batch: object) -> bool:
        changed = super().prepare(state, batch)
        self._changed = self._changed or changed
        return changed

    _changed = False

    def compute(
        self,
        trainable: object,
        others: Sequence[jax.Array],
        metrics: Sequence[jax.Array],
        batch: Tree,
        factors: object = None,
    ) -> Tree:
        """Returns this process's contributions to state of layers, metrics and logs."""
        starts = [rule.start(value) for rule, value in zip(self._rules, metrics, strict=True)]
        with recorded_losses(factors, self.combination.sums):
            logs, (_, after, counted) = self._model.test_step((trainable, others, starts), batch)
        logs, combination = flat_logs(logs), self.combination
        return [
            *(combination.layers[at].contribution(others[at], after[at]) for at in combination.changed),
            *(rule.contribution(*pair) for rule, *pair in zip(self._rules, starts, counted, strict=True)),
            *(logs[name] for name in combination.averaged),
        ]

    def merge(self, others: Sequence[jax.Array], metrics: Sequence[jax.Array], values: Sequence[object]) -> Tree:
        """Returns the logs, the state of layers and the metrics for the global batch, from the merged contributions of
        all processes."""
        remaining = iter(values)
        after = list(others)
        for at in self.combination.changed:
            after[at] = self.combination.layers[at].apply_merge(others[at], next(remaining))
        metrics = [rule.apply_merge(old, next(remaining)) for rule, old in zip(self._rules, metrics, strict=True)]
        return self._results(metrics, list(remaining)), after, metrics

    def _outcome(self, state: object, batch: Tree) -> Outcome:
        logs, (_, others, counted) = self._model.test_step(state, _utils.pack_x_y_sample_weight(*batch))
        return logs, others, counted


def _is_seed(variable: keras.Variable) -> bool:
    return str(variable.path).endswith(_SEED)
