"""`GGTOptimizer`: full-matrix adaptive steps from a window of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import int32
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.arrays import expand_dims, reshape, transpose, zeros
from headwater.tf1.functional.arrays import range as range_of
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.factorisations import svd
from headwater.tf1.functional.indexing import where
from headwater.tf1.functional.linalg import eye, matmul
from headwater.tf1.functional.reductions import reduce_min
from headwater.tf1.training.optimizers.common import SettingsOptimizer
from headwater.tf1.variables.state import assign, assign_add, assign_sub, scatter_update

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


class GGTOptimizer(SettingsOptimizer):
    """GGT (Agarwal et al., 2018): the inverse root of the sum of g·gᵀ over a window of gradients.

    m ← β·m + (1−β)·g, and M has the last r values of m as columns, divided by √min(t, r). With MᵀM = U·Σ²·Uᵀ,
    θ ← θ − η·(M·U·(Σ+σ)⁻³·Uᵀ·Mᵀ·m + the part of m outside of M's span, divided by Σ's least value if that exceeds ε).

    All variables together are one vector. Sparse gradients are refused.

    Args:
      learning_rate: η.
      beta1: β, how slowly the average of gradients changes.
      window: r, number of gradients.
      eps: ε, least singular value at which the part outside of the span counts.
      svd_eps: multiple of the identity that is added to MᵀM.
      sigma_eps: σ.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: float = 1e-4,
        svd_eps: float = 1e-6,
        sigma_eps: float = 1e-2,
    ) -> None:
        super().__init__(use_locking, name)
        self._given = {"lr": learning_rate, "beta1": beta1, "eps": eps, "svd_eps": svd_eps, "sigma_eps": sigma_eps}
        self._window = window
        self._places: dict[str, tuple[int, int]] = {}
        self._updated: list[Any] = []

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        end = 0
        for var in sorted(var_list, key=lambda var: var.name):
            size = var.shape.num_elements()
            if size is None:
                raise ValueError(f"GGTOptimizer requires a known shape of {var.name}, not {var.shape}")
            self._places[var.name] = (end, end + size)
            end += size
        first, dtype = min(var_list, key=lambda var: var.name), var_list[0].dtype.base_dtype
        self._create_non_slot_variable(ops.cast(0.0, dtype), "global_step", first)
        self._create_non_slot_variable(zeros([self._window, end], dtype), "grad_buffer", first)
        self._create_non_slot_variable(zeros([end], dtype), "moment1", first)
        self._create_non_slot_variable(zeros([end], dtype), "flat_grad", first)

    def _prepare(self) -> None:
        self._prepare_settings(**self._given)
        self._updated = []

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        self._updated.append(var)
        flat = self._get_non_slot_variable("flat_grad")
        assert flat is not None
        return scatter_update(flat, range_of(*self._places[var.name]), reshape(grad, [-1]))

    def _apply_sparse(self, grad: object, var: object) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Any:
        with control_dependencies(update_ops):
            step, moment = self._remember()
        update = self._step(*moment, step)
        changes: list[Any] = []
        for var in self._updated:
            start, end = self._places[var.name]
            change = reshape(update[start:end], var.shape)
            changes.append(assign_sub(var, self._setting("lr", var) * change))
        return group(*changes, name=name_scope)

    def _remember(self) -> tuple[Any, tuple[Any, Any]]:
        """Counts the step and updates m and the window; returns the count, and m and the window after it."""
        counter, buffer, moment, flat = (
            self._get_non_slot_variable(name) for name in ("global_step", "grad_buffer", "moment1", "flat_grad")
        )
        assert counter is not None
        assert buffer is not None
        assert moment is not None
        assert flat is not None
        beta = self._setting("beta1", moment)
        step = assign_add(counter, 1.0)
        new_moment = assign(moment, beta * moment.read_value() + (1.0 - beta) * flat.read_value())
        place = ops.floormod(ops.cast(step - 1.0, int32), self._window)
        return step, (new_moment, scatter_update(buffer, place, new_moment))

    def _step(self, moment: Any, buffer: Any, step: Any) -> Any:
        """Returns the direction of the step, a column."""
        column, dtype = expand_dims(moment, -1), moment.dtype.base_dtype
        m = transpose(buffer / ops.sqrt(ops.minimum(step, ops.cast(self._window, dtype))))
        damping = eye(self._window, dtype=dtype) * self._setting("svd_eps", moment)
        sigma, u, _ = svd(matmul(m, m, transpose_a=True) + damping)
        root = ops.sqrt(sigma)
        inside = matmul(u, matmul(m, column, transpose_a=True), transpose_a=True)

        def within(weights: object) -> Any:
            return matmul(m, matmul(u, expand_dims(weights, -1) * inside))

        head = within(1.0 / ops.pow(root + self._setting("sigma_eps", moment), 3.0))
        least = reduce_min(root)
        tail = (column - within(1.0 / sigma)) / least
        return where(least > self._setting("eps", moment), head + tail, head)
