"""Evaluates losses, metrics and layers of a program on a few examples: on all, and on two parts of unequal size.

For Keras's own losses, metrics and layers, the rules are known. For others, only a trial shows whether the value for a
batch can be computed from the values for its parts, and by which rule. `try_program` uses random predictions and the
program's targets; `try_step` runs whole steps, for state that is changed in ``call`` or in a custom ``train_step``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from headwater.keras.combining.loss_terms import Divisor, recorded_losses
from headwater.keras.combining.merges import ADDED, AVERAGED, COUNTED, Merge, Rule, combined, declared_merge
from headwater.keras.internals import OWN_MODULES, Trainer

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_tree = keras.tree

#: Numbers of rows of the two parts.
_PARTS = (2, 3)
#: Number of draws of positive numbers, and number of draws that include negative numbers, which test only metrics.
_DRAWS = 5
_SIGNED_DRAWS = 5
#: Number of draws of whole steps.
_STEP_DRAWS = 6
_CLOSE: Any = {"rtol": 1e-3, "atol": 1e-5, "equal_nan": True}

_RULES = (
    ADDED,
    Rule(Merge.MEAN),
    # The first rule that fits is used. The order matters: all workers have the same state before a step, so a rule for
    # changes and the same rule for states may both fit.
    Rule(Merge.MAX),
    Rule(Merge.MIN),
    Rule(Merge.MAX, state=True),
    Rule(Merge.MIN, state=True),
    Rule(Merge.MEAN, state=True),
    Rule(Merge.SUM, state=True),
)

#: Keras's losses that may depend on all rows of a batch jointly.
_TOGETHER = ("Circle", "Dice", "Tversky")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialResult:
    """The result of a trial.

    Attributes:
      sums: numbers of the loss terms that are sums over the batch although Keras treats them as means.
      states: the result for the variables of the model's metrics.
    """

    sums: frozenset[int]
    states: FoundStates


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundStates:
    """The result of a trial for some variables.

    Attributes:
      rules: the rule of each variable; None if no rule reproduces the value for the batch.
      changed: whether the trial has changed the variable.
    """

    rules: Sequence[Rule | None]
    changed: Sequence[bool]


def owners(model: Any) -> list[Any]:
    """Returns the metric that owns each variable of the model's metrics."""
    metric_of: dict[int, Any] = {}

    def visit(metric: Any) -> None:
        for variable in metric._variables:
            metric_of[id(variable)] = metric
        for part in metric._metrics:
            visit(part)

    for metric in model.metrics:
        visit(metric)
    return [metric_of.get(id(variable)) for variable in model.metrics_variables]


def needs_trial(model: Any) -> bool:
    """Returns whether a compiled model has custom losses or metrics."""
    kind: Any = type(model)
    if kind.compute_loss is not Trainer.compute_loss or kind.compute_metrics is not Trainer.compute_metrics:
        return True
    loss: Any = model._compile_loss
    terms = [] if loss is None else [term[1] for term in getattr(loss, "_flat_losses", None) or []]
    if any(not _is_known(term, "fn") or type(term).__name__ in _TOGETHER for term in terms):
        return True
    return not all(is_known_metric(metric) for metric in owners(model))


def is_known_metric(metric: Any) -> bool:
    """Returns whether a metric and its function are Keras's own, and the metric declares no merge; True for None."""
    if metric is None:
        return True
    return _is_known(metric, "_fn") and all(declared_merge(metric, variable) is None for variable in metric.variables)


def _is_known(part: object, function: str) -> bool:
    """Returns whether a loss or a metric, and the function that it calls, are Keras's own and compute a value for each
    row."""
    kind: Any = type(part)
    update = getattr(kind, "update_state", kind)
    called: object = getattr(part, function, None)
    module = getattr(called, "__module__", None) or type(called).__module__
    if (getattr(part, "_fn_kwargs", None) or {}).get("axis", -1) != -1:
        return False  # the axis may be the rows
    return update.__module__.startswith(OWN_MODULES) and (called is None or module.startswith(OWN_MODULES))


def try_program(
    model: Any,
    batch: Tree,
    outputs: Tree,
    metrics: Sequence[Any],
    held: Callable[[], list[tuple[object, object]]],
    *,
    training: bool,
) -> TrialResult:
    """Tries a model's losses and metrics.

    Args:
      model: compiled and built.
      batch: some examples, as ``(x, y, sample_weight)`` of arrays.
      outputs: shapes and types of the model's predictions for these examples.
      metrics: values of the metrics' variables.
      held: returns the model's variables and their values, which its losses and metrics may use.
      training: whether the program trains.

    Raises:
      ValueError: the loss of a batch does not follow from the losses of its parts.
    """
    rng = np.random.default_rng(0)
    kinds: list[Divisor] = []

    def run(state: Sequence[jax.Array], data: Any) -> tuple[Any, ...]:
        x, y, predicted, weight = data
        mapping = [*held(), *zip(model.metrics_variables, state, strict=True)]
        model._losses_override = [jnp.zeros(())]
        try:
            with recorded_losses() as terms, keras.StatelessScope(state_mapping=mapping) as scope:
                loss = model._compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight, training=training)
                model.compute_metrics(x, y, predicted, weight)
        finally:
            model._losses_override = []
        kinds[:] = terms.divisors
        after = [_current(scope, *pair) for pair in zip(model.metrics_variables, state, strict=True)]
        return loss, list(terms.values), list(terms.denominators), after

    def run_all(old: Sequence[jax.Array], parts: Sequence[object]) -> list[Any]:
        fresh = [jnp.zeros_like(value) for value in old]
        return [run(start, part) for part in parts for start in (old, fresh)]

    compiled = jax.jit(run_all)
    initial: Any = [jnp.asarray(value) for value in metrics]
    old = initial
    terms_fit: list[list[bool]] = []
    totals_fit: list[bool] = []
    judge, states = _Judge(model), _of_metrics(model)
    for number in range(_DRAWS + _SIGNED_DRAWS):
        whole = _draw(rng, batch, outputs, sum(_PARTS), signed=number >= _DRAWS, least=number % 4 == 0)
        parts = [_tree.map_structure(lambda leaf, at=at: leaf[at], whole, none_is_leaf=False) for at in _slices()]
        results = jax.device_get(compiled(old, [whole, *parts]))
        one, _, *shares = results
        terms_fit.append([])
        for term, kind in enumerate(kinds if number < _DRAWS else ()):
            values = [float(np.sum(share[1][term])) for share in shares[::2]]
            total = float(np.sum(one[1][term]))
            at = sum(before is not Divisor.ROWS for before in kinds[:term])
            weights = [float(share[2][at]) for share in shares[::2]] if kind is Divisor.OWN else list(_PARTS)
            mean = float(np.dot(values, weights)) / (sum(weights) or 1.0)
            summed = kind is Divisor.NONE
            terms_fit[-1].append(bool(np.isclose(sum(values) if summed else mean, total, **_CLOSE)))
            if not summed and not terms_fit[-1][-1]:
                judge.term(term, sums=bool(np.isclose(sum(values), total, **_CLOSE)))
        if number < _DRAWS and not any(kind is Divisor.OWN for kind in kinds):
            mean = float(np.average([float(np.sum(share[0])) for share in shares[::2]], weights=_PARTS))
            totals_fit.append(bool(np.isclose(mean, float(np.sum(one[0])), **_CLOSE)))
        states.record(old, one[3], [it[3] for it in shares])
        # Alternate between the initial state and the state after this draw: a metric that keeps an extreme value may
        # not change in later draws, and an unchanged metric would fit every rule.
        old = initial if number % 2 else one[3]
    sums = judge.sums()
    if type(model).compute_loss is not Trainer.compute_loss and not kinds and not all(totals_fit):
        raise ValueError(_refusal(f"compute_loss of {type(model).__name__}", "its value"))
    return TrialResult(sums=sums, states=states.found())


#: A step of a trial: the values of variables after it, given their values before it and a batch.
Step = Callable[[Sequence[jax.Array], Any], Sequence[object]]


def try_step(
    model: Any, batch: Tree, step: Step, metrics: Sequence[object], layers: Mapping[int, jax.Array], *, eager: bool
) -> tuple[FoundStates, FoundStates]:
    """Tries whole steps.

    Args:
      model: compiled and built.
      batch: some examples, as ``(x, y, sample_weight)`` of arrays.
      step: a step of the metrics' variables and the variables of ``layers``.
      metrics: values of the metrics' variables.
      layers: values of the variables of layers to try, by their position in the model's variables that are not trained.
      eager: whether to run the step instead of compiling it.

    Returns:
      The results for the metrics' variables, and for the variables of layers.
    """
    rng = np.random.default_rng(0)
    run: Step = step if eager else jax.jit(step)
    of_metrics = _of_metrics(model)
    of_layers = _States([None] * len(layers), [_layer_rules(value.dtype) for value in layers.values()], changes=False)
    count = len(metrics)
    initial = old = [jnp.asarray(value) for value in (*metrics, *layers.values())]
    for number in range(_STEP_DRAWS):
        x, y, _, weight = _draw(rng, batch, None, sum(_PARTS), signed=False, least=False, varied=True)
        whole = x, y, weight
        parts = [_tree.map_structure(lambda leaf, at=at: leaf[at], whole, none_is_leaf=False) for at in _slices()]
        fresh = [*map(jnp.zeros_like, old[:count]), *old[count:]]
        one, _, *shares = [jax.device_get(run(start, part)) for part in (whole, *parts) for start in (old, fresh)]
        of_metrics.record(old[:count], one[:count], [it[:count] for it in shares])
        of_layers.record(old[count:], one[count:], [it[count:] for it in shares])
        old = initial if number % 2 else [jnp.asarray(value) for value in one]
    return of_metrics.found(), of_layers.found()


class _Judge:
    """Decides which loss terms are sums."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._terms: dict[int, list[bool]] = {}

    def term(self, number: int, *, sums: bool) -> None:
        """Records a draw in which a loss term was not a mean; ``sums`` is whether it was a sum."""
        self._terms.setdefault(number, []).append(sums)

    def sums(self) -> frozenset[int]:
        """Numbers of the terms that are sums.

        Raises:
          ValueError: a term is neither a sum nor a mean.
        """
        flat: Any = getattr(self._model._compile_loss, "_flat_losses", None) or []
        for number, matches in self._terms.items():
            if not all(matches):
                name = flat[number][1].name if number < len(flat) else f"number {number}"
                raise ValueError(_refusal(f"loss {name!r}", "its value"))
        return frozenset(self._terms)


class _States:
    """Eliminates rules of variables that contradict the results of the draws.

    Args:
      declared: the merge that is declared for each variable, or None.
      possible: the candidate rules of each variable.
      changes: whether rules for changes start from zero, see `Rule.start`, rather than from the present value.
    """

    def __init__(self, declared: Sequence[Merge | None], possible: Sequence[list[Rule]], *, changes: bool) -> None:
        self._declared = declared
        self._possible = possible
        self._changes = changes
        self._changed = [False] * len(possible)

    def record(self, old: Sequence[object], whole: Sequence[object], shares: Sequence[Sequence[object]]) -> None:
        """Drops rules that a draw contradicts.

        Args:
          old: values before the step.
          whole: values after a step with the whole batch.
          shares: for each part of the batch, values after a step from ``old``, and after a step from zero.
        """
        for at, possible in enumerate(self._possible):
            before, after = jnp.asarray(old[at]), [it[at] for it in shares]
            self._changed[at] |= bool(np.any(np.asarray(whole[at]) != np.asarray(before)))
            if self._declared[at] is not None:
                # If a new value depends on the previous value, the rule must merge changes, not values.
                if np.any(np.asarray(old[at])) and not _close(after[0], after[1]):
                    possible[:] = [rule for rule in possible if not rule.state]
                continue
            possible[:] = [rule for rule in possible if self._fits(rule, before, whole[at], after)]

    def found(self) -> FoundStates:
        """The result of all draws."""
        return FoundStates(rules=[_final_rule(possible) for possible in self._possible], changed=self._changed)

    def _fits(self, rule: Rule, old: object, whole: object, after: Sequence[object]) -> bool:
        """Returns whether a rule gives the value ``whole``."""
        start = rule.start(old) if self._changes else old
        contributions = [rule.contribution(start, jnp.asarray(value)) for value in after[0 if rule.state else 1 :: 2]]
        return _close(
            rule.apply_merge(old, jnp.asarray(combined(rule.merge, contributions, _PARTS), np.float32)), whole
        )


def _of_metrics(model: Any) -> _States:
    """Returns the candidates for the variables of a model's metrics."""
    declared = [
        None if metric is None else declared_merge(metric, variable)
        for metric, variable in zip(owners(model), model.metrics_variables, strict=True)
    ]
    possible = [
        _rules_of(variable) if merge is None else [Rule(merge, state=True), Rule(merge)]
        for merge, variable in zip(declared, model.metrics_variables, strict=True)
    ]
    return _States(declared, possible, changes=True)


def _layer_rules(dtype: Any) -> list[Rule]:
    """Returns the candidate rules for a variable of a layer that declares no aggregation."""
    extremes = [Rule(Merge.MAX, state=True), Rule(Merge.MIN, state=True)]
    if np.dtype(dtype) == np.dtype(bool):
        return extremes
    return [AVERAGED if jnp.issubdtype(dtype, np.floating) else COUNTED, ADDED, *extremes]


def _close(value: object, expected: object) -> bool:
    return np.allclose(np.asarray(value, float), np.asarray(expected, float), **_CLOSE)


def _final_rule(possible: Sequence[Rule]) -> Rule | None:
    """Returns the rule to use; None if no rule is left, or if the examples were too similar to distinguish the largest
    value from the smallest."""
    merges = {rule.merge for rule in possible}
    if possible and possible[0].merge is Merge.MAX and Merge.MIN in merges:
        return None
    return possible[0] if possible else None


def _rules_of(variable: Any) -> list[Rule]:
    """Returns the candidate rules for a variable. For booleans, the mean is excluded, because rounding would yield the
    value of the larger part."""
    return [rule for rule in _RULES if variable.dtype != "bool" or rule.merge is not Merge.MEAN]


def refuse_metric(model: Any, at: int) -> ValueError:
    """Returns the error for a variable of a metric that no rule merges."""
    metric, variable = owners(model)[at], model.metrics_variables[at]
    name = metric.name if metric is not None else variable.path
    return ValueError(
        _refusal(f"metric {name!r}", f"its variable {variable.name!r}")
        + "; or declare how workers' values are merged: add_variable(aggregation='mean') or 'only_first_replica', or "
        "an attribute merge of the metric, 'sum', 'mean', 'first', 'max' or 'min'"
    )


def _refusal(what: str, value: str) -> str:
    return (
        f"{what} cannot be computed by several workers: {value} for a batch does not follow from the values for the "
        "parts of the batch that workers have; make it a sum or a mean over examples, or use one worker"
    )


def _current(scope: Any, variable: object, before: object) -> object:
    value = scope.get_current_value(variable)
    return before if value is None else value


def _slices() -> list[slice]:
    return [slice(0, _PARTS[0]), slice(_PARTS[0], sum(_PARTS))]


def _draw(
    rng: np.random.Generator, batch: Tree, outputs: Tree, rows: int, *, signed: bool, least: bool, varied: bool = False
) -> Tree:
    """Returns random rows of a batch, with random predictions; inputs are varied only with ``varied``."""
    x, y, weight = batch
    known = len(next(np.asarray(leaf) for leaf in _tree.flatten((x, y)) if leaf is not None))
    chosen = rng.permutation(known)[:rows] if known >= rows else rng.integers(0, known, rows)
    leaves = [np.asarray(leaf) for leaf in _tree.flatten(y) if leaf is not None]
    if signed and leaves:
        # There are few class numbers, so both parts often have the same extremes. Use one extreme in the whole first
        # part, and the opposite one in the last row.
        sums = leaves[0].reshape(known, -1).astype(np.float64).sum(axis=1)
        chosen[: _PARTS[0]] = np.argmin(sums) if least else np.argmax(sums)
        chosen[-1] = np.argmax(sums) if least else np.argmin(sums)

    def select_rows(leaf: Tree) -> Tree:
        return np.asarray(leaf)[chosen]

    def vary(leaf: Tree) -> Tree:
        """Varies the values of rows, as there may be fewer examples than rows; class numbers must not change."""
        taken = select_rows(leaf)
        if not np.issubdtype(taken.dtype, np.floating):
            return taken
        return taken * rng.uniform(0.5, 1.5, np.shape(taken)).astype(taken.dtype)

    def target(leaf: Tree) -> Tree:
        varied = vary(leaf)
        if not (signed and np.issubdtype(varied.dtype, np.floating)):
            return varied
        return varied * rng.choice((-1, 1), np.shape(varied)).astype(varied.dtype)

    def predict(leaf: Tree) -> Tree:
        return rng.uniform(-0.95 if signed else 0.05, 0.95, (rows, *leaf.shape[1:])).astype(leaf.dtype)

    inputs = _tree.map_structure(vary if varied else select_rows, x, none_is_leaf=False)
    targets = _tree.map_structure(target, y, none_is_leaf=False)
    weights = _tree.map_structure(vary, weight, none_is_leaf=False)
    return inputs, targets, _tree.map_structure(predict, outputs, none_is_leaf=False), weights
