"""The rules that combine the workers' shares of a training or evaluation step.

All workers must use the same rules. The rules are determined when training starts, and at that time a model is refused
if its losses or metrics cannot be combined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.extend.core import Literal
from keras import StatelessScope

from headwater.keras.combining.loss_terms import Divisor, LossTerms, recorded_losses
from headwater.keras.combining.merges import ADDED, Merge, Rule, layer_rule
from headwater.keras.combining.trial import is_known_metric, needs_trial, owners, refuse_metric, try_program
from headwater.keras.internals import JAXTrainer, Trainer, data_adapter_utils
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
      metrics: the rule of each variable of the metrics; None for a variable without a rule, which is allowed only if
        there is a single worker.
      logs: maps the name of each log of a step to the metric whose result it is; None for other values that a custom
        ``train_step`` logs, which are averaged over rows.
    """

    divisors: Sequence[Divisor]
    sums: frozenset[int]
    layers: Sequence[Rule]
    metrics: Sequence[Rule | None]
    logs: Mapping[str, str | None]

    @property
    def needs_factors(self) -> bool:
        """Whether the divisor of any loss term is not proportional to rows."""
        return any(divisor is not Divisor.ROWS for divisor in self.divisors)

    @property
    def linear(self) -> bool:
        """Whether the workers' metrics can be added up once, after the last batch, instead of in every step."""
        added = all(rule == ADDED for rule in self.metrics)
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
                "metrics": [_words(rule) for rule in self.metrics],
                "logs": dict(self.logs),
            }
        )

    @staticmethod
    def from_text(text: str) -> Combination:
        """Parses the result of `to_text`."""
        found: Mapping[str, Any] = json.loads(text)
        return Combination(
            divisors=[Divisor(word) for word in found["divisors"]],
            sums=frozenset(found["sums"]),
            layers=[Rule(Merge(merge), state) for merge, state in found["layers"]],
            metrics=[words and Rule(Merge(words[0]), words[1]) for words in found["metrics"]],
            logs=found["logs"],
        )


#: The result of a traced step: its logs, and the values after it of the variables that are not trained and of the
#: metrics' variables.
Outcome = tuple[Mapping[str, Any], Sequence[Any], Sequence[Any]]
#: A function of these variables before the step.
Trace = Callable[[Sequence[jax.Array], Sequence[jax.Array]], Outcome]


def find_combination(
    model: Any,
    batch: Tree,
    trace: Trace,
    *,
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
      others, metrics: values of the variables that are not trained, and of the metrics.
      divided: whether workers have parts of batches.
      several: whether there are several workers.
      training: whether the program trains, for a model's own ``compute_loss``.
      eager: whether to run the step instead of tracing it.

    Raises:
      ValueError: the value of a loss or metric for a batch cannot be computed from its values for parts of the batch,
        or a log cannot be computed from the results of the metrics. The message names the loss, metric or log.
    """
    sums: frozenset[int] = frozenset()
    tried: Sequence[Rule | None] | None = None
    traced = _trace_step(model, trace, others, metrics, training=training, eager=eager)
    if needs_trial(model):
        outputs = _outputs(model, others, batch[0])
        try:
            found = try_program(model, batch, outputs, metrics, training=training)
        except ValueError:
            if divided:
                raise
        else:
            sums, tried = found.sums, found.rules
    if sums:
        traced = _trace_step(model, trace, others, metrics, sums, training=training, eager=eager)
    averaged = traced.terms.averaged
    rules: list[Rule | None] = []
    for at, metric in enumerate(owners(model)):
        rule: Rule | None = Rule(Merge.MEAN) if id(metric) in averaged else ADDED
        if tried is not None and not is_known_metric(metric) and tried[at] != ADDED:
            rule = tried[at]
        if rule is None and several:
            raise refuse_metric(model, at)
        rules.append(rule)
    return Combination(
        divisors=traced.terms.divisors,
        sums=sums,
        layers=[
            layer_rule(variable, assigned=assigned)
            for variable, assigned in zip(model.non_trainable_variables, traced.assigned, strict=True)
        ],
        metrics=rules,
        logs=traced.logs,
    )


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
    """Returns the logs of a step, with the entries of dictionaries among them at the top level."""
    found: dict[str, Any] = {}
    for name, value in logs.items():
        found |= flat_logs(value) if isinstance(value, dict) else {name: value}
    return found


def losses_of(model: Any, state: Any, batch: Tree) -> Outcome:
    """Returns the logs of a training step, and the values of variables after it, see `Outcome`.

    Gradients are computed only if a custom ``train_step`` computes them.

    Args:
      model: compiled and built.
      state: values of the trainable variables, of other variables, of the optimizer and of the metrics.
      batch: as ``(x, y, sample_weight)``.
    """
    if not keeps_train_step(model):
        with record_gradients(model.optimizer):
            logs, (_, after, _, counted) = model.train_step(state, data_adapter_utils.pack_x_y_sample_weight(*batch))
        return logs, after, counted
    trainable, others, optimizer, metrics = state
    _, (loss, predicted, after, counted) = model.compute_loss_and_updates(
        trainable, others, metrics, *batch, training=True, optimizer_variables=optimizer
    )
    x, y, weight = batch
    logs, counted = model._update_metrics_variables(counted, loss, x, y, predicted, weight)
    return logs, after, counted


def keeps_train_step(model: object) -> bool:
    """Whether the ``train_step`` of ``model`` is Keras's own."""
    kind: Any = type(model)  # pyright: ignore[reportUnknownVariableType]
    return kind.train_step.__module__ == JAXTrainer.__module__


@dataclass(frozen=True, slots=True)
class _Traced:
    """The result of a trace.

    Attributes:
      terms: the loss terms.
      logs: the names of logs, with the metric of which each is the result; None for other values.
      assigned: for each variable that is not trained, whether its previous value has no effect.
    """

    terms: LossTerms
    logs: Mapping[str, str | None]
    assigned: Sequence[bool]


def _trace_step(
    model: object,
    trace: Trace,
    others: Sequence[jax.Array],
    metrics: Sequence[jax.Array],
    sums: frozenset[int] = frozenset(),
    *,
    training: bool,
    eager: bool,
) -> _Traced:
    """Traces a step. A step that is not compiled is run instead, and every previous value is assumed to have an effect.

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
            found, after, counted = trace(values, before)
        logs, results = flat_logs(found), results_of(model, counted)
        return [*after, *logs.values(), *results.values()]

    kind: Any = type(model)
    step: Any = kind.train_step if training else kind.test_step
    # Keras's own steps log the results of the metrics.
    ordinary = step.__module__ == JAXTrainer.__module__ and kind.compute_metrics is Trainer.compute_metrics
    assigned = [False] * len(others)
    jaxpr: Any = None
    if eager:
        shown = run(others, metrics)[len(others) :]
    else:
        jaxpr = jax.make_jaxpr(run)(list(others), list(metrics)).jaxpr
        pairs = zip(jaxpr.invars, jaxpr.outvars[: len(others)], strict=False)
        assigned = [given not in _sources(jaxpr, out) for given, out in pairs]
        shown = jaxpr.outvars[len(others) :]
    if ordinary:
        return _Traced(terms, {name: name for name in logs}, assigned)
    if eager:
        again = run(others, [value + np.ones((), value.dtype) for value in metrics])[len(others) :]
        values: Any = [tuple(np.asarray(it).tobytes() for it in pair) for pair in zip(shown, again, strict=True)]
        counts = [first != second for first, second in values]
    else:
        held = set(jaxpr.invars[len(others) :])
        values = list(map(_equal_values(jaxpr), shown))
        counts = [not held.isdisjoint(_sources(jaxpr, out)) for out in shown]
    of_metrics = dict(zip(results, values[len(logs) :], strict=True))
    found: dict[str, str | None] = {}
    for name, value, counted in zip(logs, values, counts, strict=False):
        same = [metric for metric, result in of_metrics.items() if result == value]
        # If a log has the name of a metric and depends on metrics, it is the result of that metric before its last
        # update.
        if name in same or (counted and not same and name in results):
            same = [name]
        elif counted and not same:
            raise ValueError(
                f"log {name!r} of {type(model).__name__} cannot be computed by several workers: it depends on the "
                "state of metrics, of which a worker has only its own part; log the result of a metric instead"
            )
        found[name] = next(iter(same), None)
    return _Traced(terms, found, assigned)


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


def _outputs(model: Any, others: Sequence[Any], x: Tree) -> Tree:
    """Shapes and types of a model's predictions."""
    trainable = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in model.trainable_variables]
    return jax.eval_shape(lambda *args: model.stateless_call(*args)[0], trainable, others, x)


def _words(rule: Rule | None) -> tuple[str, bool] | None:
    return None if rule is None else (rule.merge.value, rule.state)
