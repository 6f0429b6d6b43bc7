"""Optimizers outside of the graph: each evaluation of the loss is a run of the session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.optimize

from headwater.graph.context import get_default_session
from headwater.graph.gradients import gradients
from headwater.tf1.functional.arrays import concat, placeholder, reshape, zeros_like
from headwater.tf1.variables.variable_lists import trainable_variables

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor

_log = logging.getLogger(__name__)
Evaluate = Callable[[Any], Any]
_UNBOUNDED = (-np.inf, np.inf)


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.shape.as_list())


def _gradients(tensor: Any, var_list: Sequence[Any]) -> list[Any]:
    found = gradients(tensor, var_list)
    return [zeros_like(var) if grad is None else grad for grad, var in zip(found, var_list, strict=True)]


def _pack(tensors: Sequence[Any]) -> Tensor:
    flat = [reshape(tensor, [-1]) for tensor in tensors]
    return flat[0] if len(flat) == 1 else concat(flat, 0)


class ExternalOptimizerInterface:
    """Base of optimizers that see all variables as one vector. Subclasses define `_minimize`.

    Args:
      loss: the scalar to minimise.
      var_list: variables to change; all trainable ones if None.
      equalities: tensors that shall be zero.
      inequalities: tensors that shall not be negative.
      var_to_bounds: for a variable its lower and upper bounds, numbers or arrays of its shape.
      optimizer_kwargs: settings for `_minimize`.
    """

    def __init__(
        self,
        loss: object,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = loss
        self._equalities = list(equalities or [])
        self._inequalities = list(inequalities or [])
        self._vars = trainable_variables() if var_list is None else list(var_list)
        self._packed_bounds = None if var_to_bounds is None else self._bounds(var_to_bounds)
        self._update_placeholders = [placeholder(var.dtype.base_dtype) for var in self._vars]
        self._var_updates = [
            var.assign(reshape(value, _shape(var)))
            for var, value in zip(self._vars, self._update_placeholders, strict=True)
        ]
        self._packed_var = _pack(self._vars)
        self._packed_loss_grad = _pack(_gradients(loss, self._vars))
        self._packed_equality_grads = [_pack(_gradients(each, self._vars)) for each in self._equalities]
        self._packed_inequality_grads = [_pack(_gradients(each, self._vars)) for each in self._inequalities]
        ends = list(accumulate((int(np.prod(_shape(var))) for var in self._vars), initial=0))
        self._packing_slices = [slice(start, end) for start, end in pairwise(ends)]
        self.optimizer_kwargs = optimizer_kwargs

    def _bounds(self, var_to_bounds: Mapping[Any, tuple[Any, Any]]) -> list[tuple[float, float]]:
        packed: list[tuple[float, float]] = []
        for var in self._vars:
            bounds = var_to_bounds.get(var, _UNBOUNDED)
            lower, upper = ((np.zeros(_shape(var)) + bound).ravel().tolist() for bound in bounds)
            packed += zip(lower, upper, strict=True)
        return packed

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., object] | None = None,
        loss_callback: Callable[..., object] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes the loss and assigns the result to the variables.

        Args:
          session: the session; the default one if None.
          feed_dict: values for all evaluations.
          fetches: tensors to evaluate with the loss, for ``loss_callback``.
          step_callback: called after each step with the vector of variables.
          loss_callback: called after each evaluation of the loss with the values of ``fetches``.
          run_kwargs: arguments of the `session.run` that assigns the result.
        """
        session = session or get_default_session()
        fed: dict[Any, Any] = dict(feed_dict or {})
        fetched: list[Any] = list(fetches or [])

        def function(tensors: list[Any], callback: Callable[..., object] | None = None) -> Evaluate:
            return self._evaluation(tensors, session, fed, fetched, callback)

        packed = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=function([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[function([each]) for each in self._equalities],
            equality_grad_funcs=[function([each]) for each in self._packed_equality_grads],
            inequality_funcs=[function([each]) for each in self._inequalities],
            inequality_grad_funcs=[function([each]) for each in self._packed_inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or _nothing,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        values = [packed[part] for part in self._packing_slices]
        session.run(self._var_updates, dict(zip(self._update_placeholders, values, strict=True)), **run_kwargs)

    def _minimize(
        self,
        initial_val: object,
        loss_grad_func: Evaluate,
        equality_funcs: Sequence[Evaluate],
        equality_grad_funcs: Sequence[Evaluate],
        inequality_funcs: Sequence[Evaluate],
        inequality_grad_funcs: Sequence[Evaluate],
        packed_bounds: Sequence[tuple[float, float]] | None,
        step_callback: Callable[..., object],
        optimizer_kwargs: Mapping[str, Any],
    ) -> Any:
        """Returns the vector of variables with the least loss, starting from ``initial_val``."""
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() method."
        )

    def _evaluation(
        self,
        tensors: list[Any],
        session: Any,
        feed_dict: Mapping[Any, Any],
        fetches: Sequence[Any],
        callback: Callable[..., object] | None,
    ) -> Evaluate:
        """Returns a function of the vector of variables that evaluates ``tensors``."""

        def evaluate(x: Any) -> list[Any]:
            parts = zip(self._vars, self._packing_slices, strict=True)
            fed = {var: x[part].reshape(_shape(var)) for var, part in parts}
            values = session.run([*tensors, *fetches], {**fed, **feed_dict})
            if callback is not None:
                callback(*values[len(tensors) :])
            return values[: len(tensors)]

        return evaluate


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes with `scipy.optimize.minimize`.

    ::

        optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100})
        with tf.Session() as session:
            optimizer.minimize(session)

    ``method`` and other arguments of SciPy's function are keyword arguments; the default method is L-BFGS-B, or SLSQP
    must be chosen for constraints.

    Raises:
      ValueError: an argument of SciPy's function that is set here (``bounds``: use ``var_to_bounds``).
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Evaluate,
        equality_funcs: Sequence[Evaluate],
        equality_grad_funcs: Sequence[Evaluate],
        inequality_funcs: Sequence[Evaluate],
        inequality_grad_funcs: Sequence[Evaluate],
        packed_bounds: Sequence[tuple[float, float]] | None,
        step_callback: Callable[..., object],
        optimizer_kwargs: Mapping[str, Any],
    ) -> Any:
        def loss_and_gradient(x: object) -> tuple[Any, Any]:
            loss, gradient = loss_grad_func(x)
            return float(loss), gradient.astype("float64")

        def of(kind: str, funcs: Sequence[Evaluate], grads: Sequence[Evaluate]) -> list[dict[str, Any]]:
            return [
                {"type": kind, "fun": _first(fun), "jac": _first(grad)} for fun, grad in zip(funcs, grads, strict=True)
            ]

        given = dict(optimizer_kwargs)
        settings: dict[str, Any] = {
            "jac": True,
            "callback": step_callback,
            "method": given.pop("method", self._DEFAULT_METHOD),
            "constraints": of("eq", equality_funcs, equality_grad_funcs)
            + of("ineq", inequality_funcs, inequality_grad_funcs),
            "bounds": packed_bounds,
        }
        for name in settings.keys() & given.keys():
            if name == "bounds":
                raise ValueError("Bounds must be set using the var_to_bounds argument")
            raise ValueError(f"Optimizer keyword arg '{name}' is set automatically and cannot be injected manually")
        minimize = cast("Any", scipy.optimize).minimize
        result: Any = minimize(loss_and_gradient, initial_val.astype("float64"), **settings, **given)
        _log.info(
            "Optimization terminated with: %s; objective function value %f; %s iterations; %s evaluations",
            result.message,
            result.fun,
            result.get("nit"),
            result.get("nfev"),
        )
        return result["x"]


def _nothing(*values: object) -> None:
    """Ignores a step."""


def _first(evaluate: Evaluate) -> Evaluate:
    """Returns the function of a constraint: SciPy takes a vector of float64, not a list of one."""

    def first(x: object) -> Any:
        return np.asarray(evaluate(x)[0], "float64").reshape(-1)

    return first
