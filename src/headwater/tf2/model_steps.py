"""Models with ``train_step(self, data)``, ``test_step(self, data)`` or ``predict_step(self, data)``, as in TensorFlow.

Keras's trainer for JAX calls ``train_step(self, state, data)``, which returns the next state, and compiles it. A method
without ``state`` changes variables instead. `attach` adapts such methods when a class of models is defined:

- without a strategy, `fit` runs the method as a `headwater.tf2.function.Function`, so that it may use several
  optimizers, and variables outside of the model;
- a strategy calls it with the state, and intercepts its gradients. There it may change the state of the model only,
  and applies gradients of all variables with the model's optimizer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import jax
import keras

from headwater.keras.graphs.optimizers import minimizing
from headwater.keras.internals import BaseOptimizer, JAXTrainer, Trainer, data_adapter_utils
from headwater.keras.models import strategy_of
from headwater.tf2.function import NEEDS_VALUES, Function
from headwater.tf2.random_state import drawing_for
from headwater.tf2.scope import RecordingScope
from headwater.tf2.tape import GradientTape
from headwater.tf2.tracing import RunsInPython, in_python, trace_of

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_utils = data_adapter_utils
_build_by_call: Callable[..., None] = vars(Trainer)["_symbolic_build"]
_NEEDS_VALUES = (RunsInPython, *NEEDS_VALUES)

#: The parts of a model's state, by the method that gets them.
_STATES = {
    "train_step": ("trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables"),
    "test_step": ("trainable_variables", "non_trainable_variables", "metrics_variables"),
    "predict_step": ("trainable_variables", "non_trainable_variables"),
}
_OWN = "_headwater_without_state"


def attach() -> None:
    """Makes Keras call the methods of a program that take ``data`` only. Idempotent."""
    model: Tree = keras.Model
    if "__init_subclass__" in vars(model):
        return

    def define(cls: object, **kwargs: object) -> None:
        super(model, cls).__init_subclass__(**kwargs)
        _adapt(cls)

    model.__init_subclass__ = classmethod(define)
    _adapt_subclasses(model)
    trainer: Any = JAXTrainer
    for name, step in (("train_step", _train_step), ("test_step", _test_step), ("predict_step", _predict_step)):
        setattr(trainer, name, _or_without_state(getattr(trainer, name), step))
    for name in ("train", "test", "predict"):
        maker = f"make_{name}_function"
        setattr(model, maker, _making(getattr(trainer, maker), f"{name}_step", f"{name}_function"))
    model._symbolic_build = _symbolic_build
    for kind, name, value in (
        (model, "compiled_loss", _compiled_loss),
        (model, "compiled_metrics", property(_CompiledMetrics)),
    ):
        if not hasattr(kind, name):
            setattr(kind, name, value)
    optimizer: Tree = BaseOptimizer
    optimizer.minimize = minimizing(_minimize)


def _adapt(cls: object) -> None:
    for name in _STATES:
        method = inspect.getattr_static(cls, name)
        if _takes_data_only(method):
            setattr(cls, name, _with_state(name, method))


def _adapt_subclasses(cls: Any) -> None:
    """Adapts classes that the program has defined already."""
    for kind in cls.__subclasses__():
        _adapt(kind)
        _adapt_subclasses(kind)


def _takes_data_only(method: object) -> bool:
    """Returns whether a method has one parameter beside ``self``."""
    if isinstance(method, staticmethod | classmethod) or hasattr(method, _OWN) or not callable(method):
        return False
    parameters = list(inspect.signature(method).parameters.values())
    required = [it for it in parameters if it.default is it.empty]
    return len(required) == 2 and all(it.kind is it.POSITIONAL_OR_KEYWORD for it in required)


def _with_state(name: str, method: Any) -> Callable[..., Tree]:
    """Returns a method that also accepts the state before the data, and then returns the next state, too."""
    plain = getattr(method, "python_function", method)

    @functools.wraps(plain)
    def step(self: Any, *args: Tree) -> Tree:
        if len(args) == 1:
            return plain(self, *args)
        state, data = args
        return _stateless(self, name, plain, state, data)

    setattr(step, _OWN, plain)
    vars(step)["as_function"] = functools.partial(_as_function, name=name)
    return step


def _or_without_state(method: Callable[..., Tree], step: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns Keras's ``method``, which calls ``step`` if a program calls it without the state."""

    @functools.wraps(method)
    def either(self: object, *args: object) -> Tree:
        return step(self, *args) if len(args) == 1 else method(self, *args)

    return either


def _own_step(model: object, name: str) -> Tree:
    """Returns the program's method that takes ``data`` only; None if the model has none of this name."""
    return getattr(getattr(type(model), name), _OWN, None)


# Keras's own steps, for programs that call `super().train_step(data)` -------------------------------------------------


def _train_step(model: Tree, data: Tree) -> Tree:
    x, y, sample_weight = _utils.unpack_x_y_sample_weight(data)
    with GradientTape() as tape:
        predicted = _call(model, x, training=True)
        loss = model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    variables = model.trainable_variables
    model.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables, strict=True))
    return _logs(model, loss, x, y, predicted, sample_weight)


def _test_step(model: Tree, data: Tree) -> Tree:
    x, y, sample_weight = _utils.unpack_x_y_sample_weight(data)
    predicted = _call(model, x, training=False)
    loss = model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=False)
    return _logs(model, loss, x, y, predicted, sample_weight)


def _predict_step(model: object, data: Tree) -> Tree:
    return _call(model, _utils.unpack_x_y_sample_weight(data)[0], training=False)


def _call(model: Tree, x: Tree, *, training: bool) -> Tree:
    return model(x, training=training) if model._call_has_training_arg else model(x)


def _logs(model: Tree, loss: object, x: Tree, y: Tree, predicted: Tree, sample_weight: Tree) -> Tree:
    rows = jax.tree_util.tree_leaves(x)[0].shape[0]
    model._loss_tracker.update_state(loss, sample_weight=rows)
    return model.compute_metrics(x, y, predicted, sample_weight)


# Steps with a state, for strategies -----------------------------------------------------------------------------------


def _variables_of(model: Tree, name: str) -> list[list[Any]]:
    found: list[list[Any]] = []
    for kind in _STATES[name]:
        variables = model.optimizer.variables if kind == "optimizer_variables" else getattr(model, kind)
        found.append(list(variables))
    return found


def _stateless(model: object, name: str, method: Callable[..., Tree], state: Sequence[Any], data: Tree) -> Tree:
    """Runs a program's step with these values of the model's variables.

    Returns:
      Its result, and the next state; for a ``predict_step`` the values of the variables that are not trained.

    Raises:
      ValueError: the step changes another variable, or does not compute gradients of all variables.
    """
    parts = _variables_of(model, name)
    variables = [variable for part in parts for variable in part]
    scope = RecordingScope(variables, [value for part in state for value in part])
    applying = _applying(model, scope) if name == "train_step" else nullcontext()
    try:
        with scope, trace_of([], converting=False), drawing_for(model), applying:
            result = method(model, data)
    except RunsInPython as error:
        raise ValueError(
            f"{type(model).__name__}.{name} cannot be compiled, as the scope of a strategy needs: {error}"
        ) from None
    known = {id(variable) for variable in variables}
    for variable in scope.written.values():
        if id(variable) not in known:
            raise ValueError(
                f"{type(model).__name__}.{name} changes variable {variable.path!r}, which is not part of the model: in "
                "the scope of a strategy, fit supports the optimizer of compile and variables of the model; use "
                "a custom training loop with strategy.run"
            )
    after = tuple([scope.current(variable) for variable in part] for part in parts)
    return result, after[1] if name == "predict_step" else after


@contextmanager
def _applying(model: Tree, scope: RecordingScope) -> Generator[None]:
    """A context in which the model's optimizer calls its ``stateless_apply``, which strategies replace."""
    optimizer = model.optimizer

    def apply(grads: Sequence[Any], trainable_variables: Any = None) -> None:
        known = optimizer._trainable_variables
        given = dict(zip(map(id, trainable_variables or known), grads, strict=True))
        missing = [variable.path for variable in known if given.get(id(variable)) is None]
        if missing:
            raise ValueError(
                f"{type(model).__name__}.train_step applies no gradient of {', '.join(missing)}: in the scope of a "
                "strategy, the optimizer of compile applies gradients of all trainable variables at once; set "
                "trainable=False on layers that are not trained, or use a custom training loop with strategy.run"
            )
        object.__delattr__(optimizer, "apply")
        values, state = optimizer.stateless_apply(
            [scope.current(variable) for variable in optimizer.variables],
            [given[id(variable)] for variable in known],
            [scope.current(variable) for variable in known],
        )
        object.__setattr__(optimizer, "apply", apply)
        for update in zip([*known, *optimizer.variables], [*values, *state], strict=True):
            scope.add_update(update)

    # Bypasses Keras's own __setattr__, which would track the function.
    object.__setattr__(optimizer, "apply", apply)
    try:
        yield
    finally:
        vars(optimizer).pop("apply", None)


# Steps as functions, in one process -----------------------------------------------------------------------------------


def _making(make: Callable[..., Tree], name: str, attribute: str) -> Callable[..., Tree]:
    """Returns a ``make_train_function`` or the like, which makes a function of the program's step if there is one."""

    @functools.wraps(make)
    def maker(self: Any, force: bool = False) -> Tree:
        if _own_step(self, name) is None:
            return make(self, force)
        if getattr(self, attribute) is None or force:
            step = _as_function(self, name)
            setattr(self, attribute, self._make_function(step, concatenate_outputs=name == "predict_step"))
        return getattr(self, attribute)

    return maker


def _as_function(model: Tree, name: str) -> Callable[[Sequence[Any], Tree], Tree]:
    """Returns the program's step as a function of state and data, compiled unless the model runs eagerly."""
    method = _own_step(model, name)

    def run(data: Tree) -> Tree:
        with in_python() if model.run_eagerly else nullcontext():
            return method(model, data)

    run.__name__ = f"{type(model).__name__}.{name}"
    function = run if model.run_eagerly else Function(run)

    def step(state: Sequence[Any], data: Tree) -> Tree:
        for part, values in zip(_variables_of(model, name), state, strict=True):
            for variable, value in zip(part, values, strict=False):
                variable._value = value
        result = function(data)
        return result, tuple([variable.value for variable in part] for part in _variables_of(model, name))

    return step


def _symbolic_build(model: Tree, iterator: Any = None, data_batch: Tree = None) -> None:
    """Builds a model by tracing its own step, which may call layers that `call` does not, or have no `call`."""
    has_call = type(model).call is not keras.Model.call
    if _own_step(model, "train_step") is not None:
        own = "train_step"
    elif _own_step(model, "test_step") is not None and not has_call:
        own = "test_step"
    else:
        _build_by_call(model, iterator, data_batch)
        return
    if data_batch is None:
        _, _, data = next(iter(iterator))
        data_batch = data[0] if isinstance(data, list | tuple) else next(data)
    try:
        _trace(model, _own_step(model, own), data_batch)
    except _NEEDS_VALUES:
        pass  # the first step converts the method, or runs it as Python, and builds the model
    except Exception:
        if not has_call:
            raise
        _build_by_call(model, None, data_batch)  # evaluation with other data than training
    if strategy_of(model) is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    model._post_build()


def _trace(model: Tree, method: Callable[..., Tree], data: Tree) -> None:
    """Traces a step, so that layers, metrics and optimizers create their variables."""
    if strategy_of(model) is not None:
        # The strategy needs the optimizer's state in the order of the model's variables.
        object.__setattr__(model.optimizer, "apply", lambda *_: None)

    def run(data: Tree) -> None:
        with RecordingScope(), trace_of([], converting=False):
            method(model, data)

    try:
        with keras.StatelessScope():  # at its end Keras initialises new variables
            jax.eval_shape(run, data)
    finally:
        vars(model.optimizer).pop("apply", None)


# Names of Keras 2 -----------------------------------------------------------------------------------------------------


class _CompiledMetrics:
    def __init__(self, model: Tree) -> None:
        self._metrics = model._compile_metrics

    @property
    def metrics(self) -> list[Any]:
        """The metrics of `compile`."""
        return [] if self._metrics is None else list(self._metrics.metrics)

    def update_state(self, y: Tree, y_pred: Tree, sample_weight: Tree = None) -> None:
        """Updates the metrics of `compile`."""
        if self._metrics is not None:
            self._metrics.update_state(y, y_pred, sample_weight)


def _compiled_loss(
    self: Any, y: Tree, y_pred: Tree, sample_weight: Tree = None, regularization_losses: Sequence[Any] | None = None
) -> Tree:
    """Returns the loss of `compile`, plus the regularization losses."""
    loss = sum(regularization_losses or (), self._compile_loss(y, y_pred, sample_weight))
    self._loss_tracker.update_state(loss, sample_weight=jax.tree_util.tree_leaves(y_pred)[0].shape[0])
    return loss


def _minimize(self: Tree, loss: Tree, variables: list[Tree], tape: GradientTape | None = None) -> Tree:
    """Computes the gradients of a loss, or of the result of a function, and applies them."""
    if callable(loss):
        with GradientTape() as tape:
            loss = loss()
    if tape is None:
        raise ValueError("minimize: a loss that is a tensor needs the tape that has recorded it: give tape")
    return self.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
