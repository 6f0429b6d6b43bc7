"""Optimizers of Keras on variables of graphs, with the methods of TensorFlow 1.15's, which return operations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

import keras

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.gradients import gradients
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.keras.graphs.functions import values_in_graph
from headwater.keras.graphs.weights import allocate, stand_in
from headwater.keras.internals import BaseOptimizer
from headwater.keras.old_optimizers import SLOTS
from headwater.keras.types import Tree
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.math import cast
from headwater.tf1.variables.state import assign
from headwater.tf1.variables.variables import Variable

_keras: Tree = keras
_optimizer: Tree = BaseOptimizer
_TOUCH_ALL_ROWS = ("Adagrad", "Adam", "RMSprop")
"""Optimizers of TensorFlow 1.15 whose update by rows equals the update by the dense gradient."""


def accept_graphs_in_optimizers() -> None:
    """Gives optimizers `get_updates`, `get_gradients` and `minimize`, and `apply_gradients` for variables of graphs."""
    _optimizer.get_gradients = get_gradients
    _optimizer.get_updates = get_updates
    if not hasattr(_optimizer, "minimize"):
        _optimizer.minimize = minimize
    _optimizer.apply_gradients = _applying(_optimizer.apply_gradients)
    _optimizer.lr = property(lambda self: self.learning_rate, _set_rate)
    _optimizer.iterations = _optimizer.iterations.setter(_set_iterations)


def _set_rate(self: Tree, rate: Tree) -> None:
    self.learning_rate = rate


def _set_iterations(self: Tree, variable: Variable) -> None:
    """Counts the updates in a variable of a graph, such as the global step.

    Raises:
      RuntimeError: the optimizer has been used.
    """
    if self.built:
        raise RuntimeError("Cannot set `iterations` to a new Variable after the Optimizer weights have been created")
    stand_in(variable, self._iterations)


def get_gradients(self: Tree, loss: Tensor, params: Sequence[Variable]) -> list[Tensor | IndexedSlices]:
    """Returns the clipped gradients of ``loss`` with respect to variables.

    Raises:
      ValueError: a variable has no gradient.
    """
    computed: list[Tensor | IndexedSlices] = []
    for variable, gradient in zip(params, gradients(loss, list(params)), strict=True):
        if gradient is None:
            raise ValueError(
                f"Variable {variable.name} has `None` for gradient: the loss does not depend on it by functions "
                "that have gradients"
            )
        computed.append(gradient)
    if self.clipnorm is None and self.clipvalue is None and self.global_clipnorm is None:
        return computed
    return self._clip_gradients([convert_to_tensor(gradient) for gradient in computed])


def get_updates(self: Tree, loss: Tensor, params: Sequence[Variable]) -> list[Operation]:
    """Returns a list with the operation that updates variables by the gradients of ``loss``."""
    return [self.apply_gradients(zip(self.get_gradients(loss, params), params, strict=True))]


def minimize(
    self: Tree, loss: Callable[[], Tensor], var_list: Tree, grad_loss: Tensor | None = None, name: str | None = None
) -> Operation:
    """Returns the operation that updates variables by the gradients of a loss.

    Args:
      loss: returns the loss.
      var_list: the variables, or a function that returns these.
      grad_loss: gradient of the loss; ones if None.
      name: of the operation.
    """
    value = loss()
    variables = _listed(var_list)
    pairs = zip(gradients(value, variables, grad_loss), variables, strict=True)
    present = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    clipped = self._clip_gradients([convert_to_tensor(gradient) for gradient, _ in present])
    return self.apply_gradients(zip(clipped, (variable for _, variable in present), strict=True), name=name)


def minimizing(eager: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns a method that calls `minimize` for variables of graphs, and ``eager`` for others."""

    @functools.wraps(eager)
    def minimize_by_kind(self: Tree, loss: Tree, var_list: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        variables = _listed(var_list)
        method = minimize if any(isinstance(variable, Variable) for variable in variables) else eager
        return method(self, loss, variables, *args, **kwargs)

    return minimize_by_kind


def _listed(var_list: Tree) -> list[Tree]:
    variables: Tree = var_list() if callable(var_list) else var_list
    return list(variables)


def _applying(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def apply_gradients(self: Tree, grads_and_vars: Iterable[Tree], name: str | None = None) -> Tree:
        pairs = list(grads_and_vars)
        if not any(isinstance(variable, Variable) for _, variable in pairs):
            return original(self, pairs)
        pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        return _apply(self, [_dense(self, *pair) for pair in pairs], [variable for _, variable in pairs], name)

    return apply_gradients


def _dense(optimizer: Tree, gradient: Tree, variable: Variable) -> Tensor:
    """Returns a gradient as a tensor.

    Raises:
      NotImplementedError: the optimizer would update only the rows of a sparse gradient.
    """
    kind = next((each.__name__ for each in type(optimizer).__mro__ if each.__module__.startswith("keras.")), "")
    plain = kind == "SGD" and not optimizer.momentum
    if isinstance(gradient, IndexedSlices) and not plain and kind not in _TOUCH_ALL_ROWS:
        raise NotImplementedError(
            f"the gradient of {variable.op.name!r} is sparse, and {kind} of TensorFlow 1.15 updates only its rows: use "
            "an optimizer of tf.train"
        )
    return convert_to_tensor(gradient)


def _apply(optimizer: Tree, grads: list[Tensor], variables: list[Variable], name: str | None) -> Operation:
    """Returns the operation that updates variables of the default graph and the optimizer's own.

    Raises:
      ValueError: the optimizer was built for other variables.
    """
    stands = [stand_in(variable) for variable in variables]
    if not optimizer.built:
        # Without values, which would need memory. Nadam's variable of one number must have its value.
        has_numbers = isinstance(optimizer, _keras.optimizers.Nadam)
        with nullcontext() if has_numbers else _keras.StatelessScope(initialize_variables=False):
            optimizer.build(stands)
        optimizer._iterations._dtype = "int64"
    elif any(one is not other for one, other in zip(stands, optimizer._trainable_variables, strict=True)):
        raise ValueError(f"{optimizer.name} was built for other variables: use one optimizer for each list")
    with get_default_graph().name_scope(_scope_of(optimizer)) as scope:
        own = [allocate(each, scope, _name_of(optimizer, each, stands)) for each in optimizer.variables]
        changing = dict(zip([*stands, *optimizer.variables], [*variables, *own], strict=True))
        pairs = [(each, convert_to_tensor(variable)) for each, variable in changing.items()]
        object.__setattr__(optimizer, "_clip_gradients", list)  # clipped before, as far as TensorFlow 1.15 does
        try:
            with values_in_graph(pairs) as values:
                optimizer.apply(grads, stands)
        finally:
            object.__delattr__(optimizer, "_clip_gradients")
        with control_dependencies(list(values.values.values())):
            updates = [
                assign(changing[each], cast(values.values[id(each)], changing[each].dtype.base_dtype))
                for each in values.written.values()
            ]
        return group(*updates, name=name)


def _scope_of(optimizer: Tree) -> str:
    """Returns the optimizer's name in TensorFlow 1.15: its class unless the program has named it."""
    kind = type(optimizer).__name__
    chosen = optimizer.name.replace("_", "").rstrip("0123456789")
    return kind if chosen == kind.lower() else optimizer.name


def _name_of(optimizer: Tree, variable: Tree, stands: Sequence[Tree]) -> str:
    """Returns TensorFlow 1.15's name of a variable of an optimizer, within the optimizer's scope."""
    kind = type(optimizer).__name__
    for stand in stands:
        prefix = f"{stand.path.replace('/', '_')}_"
        if variable.name.startswith(prefix):
            slot = variable.name.removeprefix(prefix)
            return f"{stand.path}/{SLOTS.get((kind, slot), slot)}"
    if variable is getattr(optimizer, "_u_product", None):
        return "momentum_cache"
    return "iter" if variable is optimizer._iterations else variable.name
