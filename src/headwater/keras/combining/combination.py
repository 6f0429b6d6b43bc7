"""The rules that combine the workers' shares of a training or evaluation step.

All workers must use equal rules. They are determined when training starts, and a model with a loss or metric that
cannot be combined is refused then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
from jax.extend.core import Literal
from keras import StatelessScope

from headwater.keras.combining.loss_terms import Divisor, LossTerms, recorded_losses
from headwater.keras.combining.merges import ADDED, Merge, Rule, layer_rule
from headwater.keras.combining.trial import is_known_metric, needs_trial, owners, refuse_metric, try_program
from headwater.keras.internals import JAXTrainer, data_adapter_utils
from headwater.keras.recording import recorded

if TYPE_CHECKING:
    from headwater.keras.types import Tree


@dataclass(frozen=True, kw_only=True, slots=True)
class Combination:
    """Rules that combine the shares of a batch.

    Attributes:
      divisors: the divisor of each loss term.
      sums: numbers of the loss terms that are sums over the batch although Keras treats them as means.
      layers: the rule of each variable that is not trained.
      metrics: the rule of each variable of the metrics; None if there is no rule, which only a single worker may have.
      logs: names of further values that a custom ``train_step`` logs; they are averaged over rows.
    """

    divisors: Sequence[Divisor]
    sums: frozenset[int]
    layers: Sequence[Rule]
    metrics: Sequence[Rule | None]
    logs: Sequence[str]

    @property
    def factored(self) -> bool:
        """Whether the divisor of any loss term is not proportional to rows."""
        return any(divisor is not Divisor.ROWS for divisor in self.divisors)

    @property
    def linear(self) -> bool:
        """Whether the workers' metrics can be added up once, after the last batch, instead of in every step."""
        return not self.factored and all(rule == ADDED for rule in self.metrics)

    def to_text(self) -> str:
        """Formats the rules as JSON, for other workers."""
        return json.dumps(
            {
                "divisors": [divisor.value for divisor in self.divisors],
                "sums": sorted(self.sums),
                "layers": [_words(rule) for rule in self.layers],
                "metrics": [_words(rule) for rule in self.metrics],
                "logs": list(self.logs),
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


#: The program's step as a trace: its logs, and the variables that are not trained after it.
Trace = Callable[[Sequence[jax.Array]], tuple[Mapping[str, Any], Sequence[Any]]]


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
    """How the steps of ``model`` combine.

    Args:
      model: compiled and built.
      batch: some examples, as ``(x, y, sample_weight)`` of arrays.
      trace: see `Trace`; given the variables that are not trained.
      others, metrics: values of the variables that are not trained, and of the metrics.
      divided: whether workers have parts of batches.
      several: whether there are several workers.
      training: whether the program trains, for a model's own ``compute_loss``.
      eager: whether to run the step instead of tracing it.

    Raises:
      ValueError: a loss or a metric of a batch does not follow from the values for its parts; the message names it.
    """
    sums: frozenset[int] = frozenset()
    tried: Sequence[Rule | None] | None = None
    terms, logs, after = _traced(trace, others, eager=eager)
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
        terms, logs, after = _traced(trace, others, sums, eager=eager)
    averaged = terms.averaged
    rules: list[Rule | None] = []
    for at, metric in enumerate(owners(model)):
        rule: Rule | None = Rule(Merge.MEAN) if id(metric) in averaged else ADDED
        if tried is not None and not is_known_metric(metric) and tried[at] != ADDED:
            rule = tried[at]
        if rule is None and several:
            raise refuse_metric(model, at)
        rules.append(rule)
    with StatelessScope(state_mapping=list(zip(model.metrics_variables, metrics, strict=True))):
        known = set(model.get_metrics_result())
    return Combination(
        divisors=terms.divisors,
        sums=sums,
        layers=[
            layer_rule(variable, assigned=assigned)
            for variable, assigned in zip(model.non_trainable_variables, after, strict=True)
        ],
        metrics=rules,
        logs=[name for name in logs if name not in known],
    )


def losses_of(model: Any, state: Any, batch: Tree) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """Returns the logs of a training step, and the values of variables that are not trained after it.

    Gradients are computed only if a custom ``train_step`` computes them.

    Args:
      model: compiled and built.
      state: values of the trainable variables, of other variables, of the optimizer and of the metrics.
      batch: as ``(x, y, sample_weight)``.
    """
    if not keeps_train_step(model):
        with recorded(model.optimizer):
            logs, (_, after, _, _) = model.train_step(state, data_adapter_utils.pack_x_y_sample_weight(*batch))
        return logs, after
    trainable, others, optimizer, metrics = state
    _, (loss, predicted, after, counted) = model.compute_loss_and_updates(
        trainable, others, metrics, *batch, training=True, optimizer_variables=optimizer
    )
    x, y, weight = batch
    return model._update_metrics_variables(counted, loss, x, y, predicted, weight)[0], after


def keeps_train_step(model: object) -> bool:
    """Whether the ``train_step`` of ``model`` is Keras's own."""
    kind: Any = type(model)  # pyright: ignore[reportUnknownVariableType]
    return kind.train_step.__module__ == JAXTrainer.__module__


def _traced(
    trace: Trace, others: Sequence[jax.Array], sums: frozenset[int] = frozenset(), *, eager: bool
) -> tuple[LossTerms, list[str], list[bool]]:
    """Returns the loss terms of a step, the names of its logs, and the variables whose previous value has no effect.

    A step without compilation is run, not traced; then every previous value may have an effect.
    """
    names: list[str] = []
    terms = LossTerms()

    def run(values: Sequence[jax.Array]) -> list[Any]:
        nonlocal terms
        with recorded_losses(sums=sums) as terms:
            logs, after = trace(values)
        names[:] = list(logs)
        return list(after)

    if eager:
        run(others)
        return terms, names, [False] * len(others)
    jaxpr: Any = jax.make_jaxpr(run)(others).jaxpr
    return (
        terms,
        names,
        [not _reaches(jaxpr, given, out) for given, out in zip(jaxpr.invars, jaxpr.outvars, strict=True)],
    )


def _reaches(jaxpr: Any, given: object, out: object) -> bool:
    """Whether ``out`` may depend on ``given``."""
    wanted = {out} if not isinstance(out, Literal) else set()
    for equation in reversed(jaxpr.eqns):
        if wanted.intersection(equation.outvars):
            wanted.update(it for it in equation.invars if not isinstance(it, Literal))
    return given in wanted


def _outputs(model: Any, others: Sequence[Any], x: Tree) -> Tree:
    """Shapes and types of a model's predictions."""
    trainable = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in model.trainable_variables]
    return jax.eval_shape(lambda *args: model.stateless_call(*args)[0], trainable, others, x)


def _words(rule: Rule | None) -> tuple[str, bool] | None:
    return None if rule is None else (rule.merge.value, rule.state)
