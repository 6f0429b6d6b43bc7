"""`ShampooOptimizer`: preconditioning with one matrix per dimension of a variable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import float32
from headwater.graph.convert import name_scope
from headwater.tf1.contrib.opt import matrix_functions
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.arrays import expand_dims, shape, transpose, zeros, zeros_like
from headwater.tf1.functional.conditions import cond
from headwater.tf1.functional.factorisations import svd
from headwater.tf1.functional.indexing import gather, scatter_nd, where
from headwater.tf1.functional.linalg import eye, matmul, tensordot
from headwater.tf1.functional.reductions import reduce_sum
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.variables.state import assign, assign_add, assign_sub, scatter_add

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.tf1.variables.variables import Variable

_log = logging.getLogger(__name__)
Scheduled = float | Callable[[Any], Any]
"""A number, or a function of the step."""


class ShampooOptimizer(Optimizer):
    """Shampoo (Gupta, Koren and Singer, 2018).

    For each dimension i of n: Gᵢ ← d·Gᵢ + w·(g·gᵀ over the other dimensions), and Hᵢ = (Gᵢ/size + ε)^(−α/n). The
    gradient is multiplied by every Hᵢ; then θ ← θ − η·g. A dimension larger than ``max_matrix_size`` has the diagonal
    of Gᵢ only. Settings marked * are numbers or functions of the step.

    Args:
      global_step: the step, a variable, tensor or number.
      max_matrix_size: greatest size of a dimension with a full matrix.
      gbar_decay, gbar_weight: * of the moving average of gradients; 0 and 1: the gradient itself.
      mat_gbar_decay, mat_gbar_weight: * d and w.
      learning_rate: * η.
      svd_interval: * number of steps between computations of Hᵢ.
      precond_update_interval: * number of steps between updates of Gᵢ.
      epsilon: ε.
      alpha: * α.
      use_iterative_root: compute powers by Newton's iterations rather than by a singular value decomposition.

    Slots: ``gbar``, ``Gbar_i`` and, with an interval, ``H_i``.
    """

    def __init__(
        self,
        global_step: object = 0,
        max_matrix_size: int = 768,
        gbar_decay: Scheduled = 0.0,
        gbar_weight: Scheduled = 1.0,
        mat_gbar_decay: Scheduled = 1.0,
        mat_gbar_weight: Scheduled = 1.0,
        learning_rate: Scheduled = 1.0,
        svd_interval: Scheduled = 1,
        precond_update_interval: Scheduled = 1,
        epsilon: float = 1e-4,
        alpha: Scheduled = 0.5,
        use_iterative_root: bool = False,
        use_locking: bool = False,
        name: str = "Shampoo",
    ) -> None:
        super().__init__(use_locking, name)
        self._global_step = ops.cast(global_step, float32)
        self._max_matrix_size = max_matrix_size
        self._gbar_decay = gbar_decay
        self._gbar_weight = gbar_weight
        self._mat_gbar_decay = mat_gbar_decay
        self._mat_gbar_weight = mat_gbar_weight
        self._learning_rate = learning_rate
        self._svd_interval = svd_interval
        self._precond_update_interval = precond_update_interval
        self._epsilon = epsilon
        self._alpha = alpha
        self._use_iterative_root = use_iterative_root

    @property
    def _keeps_powers(self) -> bool:
        return callable(self._svd_interval) or self._svd_interval > 1

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            with var.graph.colocate_with(var.op):
                self._zeros_slot(var, "gbar", self._name)
                for i, size in enumerate(_sizes(var)):
                    initial = zeros([size, size] if size <= self._max_matrix_size else [size])
                    if size <= self._max_matrix_size and self._keeps_powers:
                        self._get_or_make_slot(var, eye(size), f"H_{i}", self._name)
                    self._get_or_make_slot(var, initial, f"Gbar_{i}", self._name)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        return self._apply_gradient(grad, var, None)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        if _sizes(var)[0] <= self._max_matrix_size or self._gbar_decay != 0.0:
            dense = scatter_nd(expand_dims(grad.indices, 1), grad.values, shape(var, out_type=grad.indices.dtype))
            return self._apply_gradient(dense, var, None)
        return self._apply_gradient(grad.values, var, grad.indices)

    def _apply_gradient(self, grad: object, var: Any, indices: Any) -> Any:
        """Updates ``var``; with ``indices``, ``grad`` has the rows at these."""
        step = self._global_step + 1
        conditioned = self._average_gradient(grad, var, indices, step)
        sizes = _sizes(var)
        exponent = -_at(self._alpha, step) / len(sizes)
        for i, size in enumerate(sizes):
            if size <= self._max_matrix_size:
                power = self._matrix_power(grad, var, i, exponent, step)
                conditioned = tensordot(conditioned, power, axes=([0], [0]), name=f"precond_{i}")
            else:
                power = self._diagonal_power(grad, var, i, exponent, step, indices)
                conditioned = transpose(conditioned, perm=[*range(1, len(sizes)), 0]) * power
        change = _at(self._learning_rate, step) * conditioned
        return assign_sub(var, change) if indices is None else scatter_add(var, indices, -change)

    def _average_gradient(self, grad: object, var: Any, indices: object, step: Any) -> Any:
        if indices is None:
            weighted = _at(self._gbar_weight, step) * grad
            return _weighted(self.get_slot(var, "gbar"), self._gbar_decay, step, weighted)
        if self._gbar_decay != 0.0:
            _log.warning("Not applying momentum for variable: %s", var.name)
        return grad

    def _matrix_power(self, grad: Any, var: Any, i: int, exponent: object, step: object) -> Any:
        """Updates Gᵢ, and returns Hᵢ, a matrix."""
        slot, rank, size = self.get_slot(var, f"Gbar_{i}"), len(var.shape), _sizes(var)[i]
        axes = [axis for axis in range(rank) if axis != i]
        every = _at(self._precond_update_interval, step)
        weight = _at(self._mat_gbar_weight, step) * every

        def updated() -> Any:
            outer = tensordot(grad, grad, axes=(axes, axes), name=f"grad_outer_{i}")
            return _weighted(slot, self._mat_gbar_decay, step, weight * outer)

        matrix = cond(ops.floormod(step, every) < 1, updated, slot.read_value) / float(size)
        if not self._keeps_powers:
            return self._power(matrix, size, exponent)
        kept = self.get_slot(var, f"H_{i}")
        due = ops.floormod(step, _at(self._svd_interval, step)) < 1
        return cond(due, lambda: assign(kept, self._power(matrix, size, exponent)), kept.read_value)

    def _diagonal_power(self, grad: Any, var: Any, i: int, exponent: Any, step: Any, indices: Any) -> Any:
        """Updates the diagonal of Gᵢ, and returns the diagonal of Hᵢ."""
        slot, rank, size = self.get_slot(var, f"Gbar_{i}"), len(var.shape), _sizes(var)[i]
        axes = [axis for axis in range(rank) if axis != i]
        outer = grad * grad
        if axes:
            outer = reduce_sum(outer, axis=axes) / (1.0 if indices is not None else float(size))
        weighted = _at(self._mat_gbar_weight, step) * outer
        if i == 0 and indices is not None:
            if self._mat_gbar_decay != 1.0:
                raise ValueError(f"a sparse gradient of {var.name} requires mat_gbar_decay=1.0")
            diagonal = gather(scatter_add(slot, indices, weighted), indices)
        else:
            diagonal = _weighted(slot, self._mat_gbar_decay, step, weighted)
        return where(ops.greater(diagonal, 0), ops.pow(diagonal, exponent), zeros_like(diagonal))

    def _power(self, matrix: Any, size: int, exponent: Any) -> Any:
        """Returns (matrix + ε)^exponent."""
        with name_scope("matrix_iterative_power"):
            if self._use_iterative_root:
                root = matrix_functions.matrix_square_root(matrix, size, 100, self._epsilon)
                return matrix_functions.matrix_inverse_pth_root(
                    root, size, 2 * exponent, 100, epsilon=1e-6, ridge_epsilon=0.0
                )
            if size == 1:
                return ops.pow(matrix + self._epsilon, exponent)
            sigma, u, v = svd(matrix + self._epsilon * eye(size), full_matrices=True)
            return matmul(v * ops.pow(ops.maximum(sigma, self._epsilon), exponent), transpose(u))


def _sizes(var: Any) -> list[int]:
    """Returns the sizes of a variable's dimensions, which must be known."""
    return [int(size) for size in var.shape.as_list()]


def _at(setting: object, step: object) -> Any:
    return setting(step) if callable(setting) else setting


def _weighted(slot: object, decay: object, step: object, value: object) -> Any:
    """Updates ``slot`` to decay·slot + value and returns the result; a decay of 0 needs no slot."""
    if decay == 0.0:
        return value
    if decay == 1.0:
        return assign_add(slot, value)
    return assign_add(slot, (_at(decay, step) - 1) * slot + value)
