"""The rules that combine the workers' shares of a training or evaluation step.

All workers must use the same rules. The rules are determined when training starts, and at that time a model is refused
if its losses or metrics cannot be combined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.extend.core import Literal
from keras import StatelessScope

from headwater.keras.combining.loss_terms import Divisor, LossTerms, recorded_losses
from headwater.keras.combining.merges import ADDED, Merge, Rule, declared_merge, layer_rule
from headwater.keras.combining.trial import (
    FoundStates,
    is_known_metric,
    needs_trial,
    owners,
    refuse_metric,
    try_program,
    try_step,
)
from headwater.keras.internals import OWN_MODULES, JAXTrainer, Trainer, data_adapter_utils
from headwater.keras.metrics_in_calls import metrics_in_call, refusing_metrics_in_call
from headwater.keras.programs import list_paths
from headwater.keras.recording import record_gradients

if TYPE_CHECKING:
    from headwater.keras.types import Tree


@dataclass(frozen=True, kw_only=True, slots=True)
class Combination:
    """Rules that combine the shares of a batch.

    Attributes:
      divisors: the divisor of each loss term.
      sums: numbers of the loss terms that are sums over the batch although Keras treats them as means.
      layers: the rule of each variable that is not trained.
      changed: positions, in ``layers``, of the variables that a step changes.
      metrics: the rule of each variable of the metrics; None for a variable without a rule, which is allowed only if
        there is a single worker.
      logs: maps the name of each log of a step to the metric whose result it is; None for other values that a custom
        ``train_step`` logs, which are averaged over rows.
    """

    divisors: Sequence[Divisor]
    sums: frozenset[int]
    layers: Sequence[Rule]
    changed: Sequence[int]
    metrics: Sequence[Rule | None]
    logs: Mapping[str, str | None]

    @property
    def needs_factors(self) -> bool:
        """Whether the divisor of any loss term is not proportional to rows."""
        return any(divisor is not Divisor.ROWS for divisor in self.divisors)

    @property
    def linear(self) -> bool:
        """Whether the workers' metrics can be added up once, after the last batch, instead of in every step."""
        added = all(rule == ADDED for rule in self.metrics) and not self.changed
        return added and not self.needs_factors and all(name == metric for name, metric in self.logs.items())

    @property
    def averaged(self) -> list[str]:
        """The names of the logs that are averaged over rows."""
        return [name for name, metric in self.logs.items() if metric is None]

    def logs_from(self, results: Mapping[str, Any], averaged: Iterable[Any]) -> dict[str, Any]:
        """Returns the logs of a step, from the results of the metrics and the averaged values."""
        values = iter(averaged)
        return {name: next(values) if metric is None else results[metric] for name, metric in self.logs.items()}

    def to_text(self) -> str:
        """Formats the rules as JSON, for other workers."""
        return json.dumps(
            {
                "divisors": [divisor.value for divisor in self.divisors],
                "sums": sorted(self.sums),
                "layers": [_words(rule) for rule in self.layers],
                "changed": list(self.changed),
                "metrics": [_words(rule) for rule in self.metrics],
                "logs": dict(self.logs),
            }
        )

    @staticmethod
    def from_text(text: str) -> Combination:
        """Parses the result of `to_text`."""
        rules: Mapping[str, Any] = json.loads(text)
        return Combination(
            divisors=[Divisor(word) for word in rules["divisors"]],
            sums=frozenset(rules["sums"]),
            layers=[Rule(Merge(merge), state) for merge, state in rules["layers"]],
            changed=rules["changed"],
            metrics=[words and Rule(Merge(words[0]), words[1]) for words in rules["metrics"]],
            logs=rules["logs"],
        )


#: The result of a traced step: its logs, and the values after it of the variables that are not trained and of the
#: metrics' variables.
Outcome = tuple[Mapping[str, Any], Sequence[Any], Sequence[Any]]
#: A function of these variables before the step, and of a batch as ``(x, y, sample_weight)``.
Trace = Callable[[Sequence[jax.Array], Sequence[jax.Array], Any], Outcome]


def find_combination(
    model: Any,
    batch: Tree,
    trace: Trace,
    *,
    trainable: Callable[[], Sequence[Any]],
    others: Sequence[Any],
    metrics: Sequence[Any],
    divided: bool,
    several: bool,
    training: bool,
    eager: bool = False,
) -> Combination:
    """Determines the rules that combine the workers' shares of the steps of ``model``.

    Args:
      model: a Keras model, compiled and built.
      batch: some examples, as ``(x, y, sample_weight)`` of arrays.
      trace: see `Trace`.
      trainable: returns values of the trainable variables.
      others, metrics: values of the variables that are not trained, and of the metrics' variables.
      divided: whether workers have parts of batches.
      several: whether there are several workers.
      training: whether the program trains, for a model's own ``compute_loss``.
      eager: whether to run the step instead of tracing it.

    Raises:
      ValueError: the value of a loss or metric for a batch cannot be computed from its values for parts of the batch,
        or a log cannot be computed from the results of the metrics. The message names the loss, metric or log.
    """
    sums: frozenset[int] = frozenset()
    tried: FoundStates | None = None
    traced = _trace_step(model, trace, batch, others, metrics, training=training, eager=eager)
    if needs_trial(model):
        outputs = _outputs(model, others, metrics, batch[0])
        try:

            def held() -> list[tuple[object, object]]:
                variables = [*model.trainable_variables, *model.non_trainable_variables]
                return list(zip(variables, (*trainable(), *others), strict=True))

            result = try_program(model, batch, outputs, metrics, held, training=training)
        except ValueError:
            if divided:
                raise
        else:
            sums, tried = result.sums, result.states
    if sums:
        traced = _trace_step(model, trace, batch, others, metrics, sums, training=training, eager=eager)
    averaged = traced.terms.averaged
    metrics_of = owners(model)
    # The values of these metrics for the parts of a batch may not add up to their value for the batch.
    uncertain = [
        at
        for at, metric in enumerate(metrics_of)
        if traced.metrics[at] is not Use.UNCHANGED and (not is_known_metric(metric) or id(metric) in averaged)
    ]
    unseen = [at for at in uncertain if tried is None or not tried.changed[at]]
    custom = _custom_state(model, traced.others) if divided else []
    stepped: tuple[FoundStates, FoundStates] | None = None
    if several and (unseen or custom):

        def step(values: Sequence[jax.Array], data: Tree) -> Sequence[Any]:
            others_now = list(others)
            for at, value in zip(custom, values[len(metrics) :], strict=True):
                others_now[at] = value
            _, after, counted = trace(others_now, values[: len(metrics)], data)
            return [*counted, *(after[at] for at in custom)]

        states = {at: others[at] for at in custom}
        stepped = try_step(model, batch, step, metrics, states, eager=eager)
    rules: list[Rule | None] = []
    for at, metric in enumerate(metrics_of):
        rule: Rule | None = Rule(Merge.MEAN) if id(metric) in averaged else ADDED
        if at in uncertain:
            known = is_known_metric(metric)
            declared = declared_merge(metric, model.metrics_variables[at])
            shown = next((it for it in (tried, stepped and stepped[0]) if it is not None and it.changed[at]), None)
            if shown is not None:
                rule = shown.rules[at] or (rule if known else None)
            elif declared is not None:
                rule = Rule(declared, state=True)
            elif not known and traced.metrics[at] is not Use.ADDED_TO:
                rule = None
            if not several and not known:
                rule = None  # the worker keeps its state, whose variables may depend on each other
        if rule is None and several:
            raise refuse_metric(model, at)
        rules.append(rule)
    layers = [
        layer_rule(variable, assigned=traced.others[at] is Use.ASSIGNED)
        for at, variable in enumerate(model.non_trainable_variables)
    ]
    if stepped is not None:
        for at, rule, changed in zip(custom, stepped[1].rules, stepped[1].changed, strict=True):
            layers[at] = rule if rule is not None and changed else layers[at]
    return Combination(
        divisors=traced.terms.divisors,
        sums=sums,
        layers=layers,
        changed=[at for at, use in enumerate(traced.others) if use is not Use.UNCHANGED],
        metrics=rules,
        logs=traced.logs,
    )


def _custom_state(model: Any, uses: Sequence[Use]) -> list[int]:
    """Returns the positions of the variables that are not trained, belong to layers of the program, declare no
    aggregation, and are changed by a step."""
    owned = {
        id(variable)
        for layer in model._flatten_layers()
        if not type(layer).__module__.startswith(OWN_MODULES)
        for variable in layer._non_trainable_variables
        if getattr(variable, "aggregation", "none") in (None, "none")
    }
    variables = enumerate(model.non_trainable_variables)
    return [at for at, variable in variables if id(variable) in owned and uses[at] is not Use.UNCHANGED]


def require_no_state_of_rows(model: Any) -> None:
    """Checks that a model has no layer with a state for each row of a batch, such as a stateful RNN; called if workers
    divide batches.

    Raises:
      ValueError: there is such a layer.
    """
    for layer in model._flatten_layers():
        if getattr(layer, "stateful", False):
            raise ValueError(
                f"layer {layer.name!r} is stateful: it keeps a state for each row of a batch, and several workers "
                "divide the rows of each batch; use one worker"
            )


def results_of(model: Any, metrics: Sequence[Any]) -> dict[str, Any]:
    """Returns the results of a model's metrics with these values of their variables."""
    with StatelessScope(state_mapping=list(zip(model.metrics_variables, metrics, strict=True))):
        return flat_logs(model.get_metrics_result())


def flat_logs(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the logs of a step without nested dictionaries: their entries are at the top level."""
    flat: dict[str, Any] = {}
    for name, value in logs.items():
        flat |= flat_logs(value) if isinstance(value, dict) else {name: value}
    return flat


def losses_of(model: Any, state: Any, batch: Tree) -> Outcome:
    """Returns the logs of a training step, and the values of variables after it, see `Outcome`.

    Gradients are computed only if a custom ``train_step`` computes them.

    Args:
      model: compiled and built.
      state: values of the trainable variables, of other variables, of the optimizer and of the metrics.
      batch: as ``(x, y, sample_weight)``.
    """
    if not keeps_train_step(model):
        with record_gradients(model.optimizer), refusing_metrics_in_call(model, state[-1]):
            logs, state_after = model.train_step(state, data_adapter_utils.pack_x_y_sample_weight(*batch))
        _require_unchanged(model, state, state_after)
        return logs, state_after[1], state_after[3]
    trainable, others, optimizer, metrics = state
    _, (loss, predicted, after, counted) = model.compute_loss_and_updates(
        trainable, others, metrics, *batch, training=True, optimizer_variables=optimizer
    )
    x, y, weight = batch
    logs, counted = model._update_metrics_variables(counted, loss, x, y, predicted, weight)
    return logs, after, counted


def _require_unchanged(model: Any, before: Any, after: Any) -> None:
    """Checks the result of a ``train_step`` whose ``stateless_apply`` has changed nothing, see `record_gradients`.

    Raises:
      ValueError: the step has changed trainable variables or the optimizer's variables in another way.
    """
    variables = [*model.trainable_variables, *model.optimizer.variables]
    values = zip((*before[0], *before[2]), (*after[0], *after[2]), strict=True)
    if changed := [variable for variable, pair in zip(variables, values, strict=True) if pair[0] is not pair[1]]:
        raise ValueError(
            f"train_step of {type(model).__name__} changes {list_paths(changed)} "
            "other than by self.optimizer.stateless_apply. Workers cannot share such changes: use one optimizer and "
            "constraints of variables, or train in one process"
        )


def keeps_train_step(model: object) -> bool:
    """Returns whether the ``train_step`` of ``model`` is Keras's own."""
    kind: Any = type(model)  # pyright: ignore[reportUnknownVariableType]
    return kind.train_step.__module__ == JAXTrainer.__module__


class Use(Enum):
    """The use of a variable's value before a step."""

    UNCHANGED = "unchanged"
    ASSIGNED = "assigned"  # the value after the step does not depend on it
    ADDED_TO = "added to"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Traced:
    """The result of a trace.

    Attributes:
      terms: the loss terms.
      logs: the names of logs, with the metric of which each is the result; None for other values.
      others: the use of each variable that is not trained.
      metrics: the use of each variable of the metrics.
    """

    terms: LossTerms
    logs: Mapping[str, str | None]
    others: Sequence[Use]
    metrics: Sequence[Use]


def _trace_step(
    model: object,
    trace: Trace,
    batch: Tree,
    others: Sequence[jax.Array],
    metrics: Sequence[jax.Array],
    sums: frozenset[int] = frozenset(),
    *,
    training: bool,
    eager: bool,
) -> _Traced:
    """Traces a step. With ``eager``, runs it instead; then the use of changed variables is unknown.

    Raises:
      ValueError: a log depends on previous values of metrics, but is not the result of a metric. Such a log would be
        wrong with several workers, because the metrics of a worker then contain only its share of the present step.
    """
    terms = LossTerms()
    logs: dict[str, Any] = {}
    results: dict[str, Any] = {}

    def run(values: Sequence[jax.Array], before: Sequence[jax.Array]) -> Sequence[Any]:
        nonlocal terms, logs, results
        with recorded_losses(sums=sums) as terms:
            metric_of_log, after, counted = trace(values, before, batch)
        logs, results = flat_logs(metric_of_log), results_of(model, counted)
        return [*after, *counted, *logs.values(), *results.values()]

    kind: Any = type(model)
    step: Any = kind.train_step if training else kind.test_step
    # Keras's own steps log the results of the metrics.
    ordinary = step.__module__ == JAXTrainer.__module__ and kind.compute_metrics is Trainer.compute_metrics
    count = len(others) + len(metrics)
    jaxpr: Any = None
    if eager:
        outputs = run(others, metrics)
        uses = [
            Use.UNCHANGED if after is before else Use.OTHER
            for before, after in zip((*others, *metrics), outputs[:count], strict=True)
        ]
    else:
        jaxpr = jax.make_jaxpr(run)(list(others), list(metrics)).jaxpr
        outputs = jaxpr.outvars
        uses = [_use(jaxpr, *pair) for pair in zip(jaxpr.invars, outputs[:count], strict=True)]
    shown = outputs[count:]
    used = uses[: len(others)], uses[len(others) :]
    if ordinary:
        return _Traced(terms, {name: name for name in logs}, *used)
    if eager:
        again = run(others, [value + np.ones((), value.dtype) for value in metrics])[count:]
        values: Any = [tuple(np.asarray(it).tobytes() for it in pair) for pair in zip(shown, again, strict=True)]
        counts = [first != second for first, second in values]
    else:
        held = set(jaxpr.invars[len(others) :])
        values = list(map(_equal_values(jaxpr), shown))
        counts = [not held.isdisjoint(_sources(jaxpr, out)) for out in shown]
    of_metrics = dict(zip(results, values[len(logs) :], strict=True))
    metric_of_log: dict[str, str | None] = {}
    for name, value, counted in zip(logs, values, counts, strict=False):
        same = [metric for metric, result in of_metrics.items() if result == value]
        # If a log has the name of a metric and depends on metrics, it is the result of that metric before its last
        # update.
        if name in same or (counted and not same and name in results):
            same = [name]
        elif counted and not same:
            raise ValueError(
                f"log {name!r} of {type(model).__name__} cannot be computed by several workers: it depends on the "
                "state of metrics, and each worker has only its part of that state; log the result of a metric instead"
            )
        metric_of_log[name] = next(iter(same), None)
    return _Traced(terms, metric_of_log, *used)


def _use(jaxpr: Any, before: object, after: object) -> Use:
    """Returns how a program that replaces the value ``before`` of a variable by ``after`` uses ``before``."""
    if after is before:
        return Use.UNCHANGED
    if before not in _sources(jaxpr, after):
        return Use.ASSIGNED
    adds = any(after in it.outvars and before in it.invars for it in jaxpr.eqns if str(it.primitive) == "add")
    return Use.ADDED_TO if adds else Use.OTHER


def _sources(jaxpr: Any, out: object) -> set[Any]:
    """Returns the variables on which ``out`` may depend."""
    wanted = {out} if not isinstance(out, Literal) else set()
    for equation in reversed(jaxpr.eqns):
        if wanted.intersection(equation.outvars):
            wanted.update(it for it in equation.invars if not isinstance(it, Literal))
    return wanted


def _equal_values(jaxpr: Any) -> Callable[[Any], object]:
    """Returns a function that maps variables to equal objects if they are computed by the same expression."""
    same: dict[Any, object] = {}
    first: dict[object, Sequence[object]] = {}

    def value(it: object) -> object:
        return str(it) if isinstance(it, Literal) else same.get(it, it)

    for equation in jaxpr.eqns:
        expression = equation.primitive, str(equation.params), *map(value, equation.invars)
        same.update(zip(equation.outvars, first.setdefault(expression, equation.outvars), strict=True))
    return value


def _outputs(model: Any, others: Sequence[Any], metrics: Sequence[Any], x: Tree) -> Tree:
    """Returns the shapes and types of a model's predictions."""
    trainable = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in model.trainable_variables]
    with metrics_in_call(model, list(metrics)):
        return jax.eval_shape(lambda *args: model.stateless_call(*args)[0], trainable, others, x)


def _words(rule: Rule | None) -> tuple[str, bool] | None:
    return None if rule is None else (rule.merge.value, rule.state)
