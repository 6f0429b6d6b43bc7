"""Roots of symmetric positive matrices by Newton's iterations, which need products only."""

from __future__ import annotations

from typing import Any

from headwater.tf1.functional import math as ops
from headwater.tf1.functional.linalg import eye, matmul, norm
from headwater.tf1.functional.loops import while_loop
from headwater.tf1.functional.reductions import reduce_max, reduce_sum


def matrix_square_root(mat_a: Any, mat_a_size: int, iter_count: int = 100, ridge_epsilon: float = 1e-4) -> Any:
    """Returns the square root of a matrix (Higham, 1997, coupled Newton-Schulz iterations).

    Args:
      mat_a: a symmetric positive semidefinite matrix.
      mat_a_size: its number of rows.
      iter_count: maximum number of iterations; they end when the error grows.
      ridge_epsilon: multiple of the identity to add first.
    """
    identity = eye(mat_a_size)
    damped = mat_a + ridge_epsilon * identity
    size = ops.sqrt(reduce_sum(damped * damped))

    def condition(i: Any, y: object, old_y: object, z: object, error: Any, old_error: Any) -> Any:
        del y, old_y, z
        return ops.logical_and(i < iter_count, error < old_error)

    def turn(i: Any, y: Any, old_y: Any, z: Any, error: Any, old_error: Any) -> Any:
        del old_y, old_error
        factor = 0.5 * (3.0 * identity - matmul(z, y))
        new_y, new_z = matmul(y, factor), matmul(factor, z)
        root = new_y * ops.sqrt(size)
        residual = damped - matmul(root, root)
        return i + 1, new_y, y, new_z, ops.sqrt(reduce_sum(residual * residual)) / size, error

    scaled = damped / size
    found = while_loop(condition, turn, [0, scaled, scaled, identity, size, size + 1.0])
    return found[2] * ops.sqrt(size)


def matrix_inverse_pth_root(
    mat_g: Any, mat_g_size: int, alpha: float, iter_count: int = 100, epsilon: float = 1e-6, ridge_epsilon: float = 1e-6
) -> Any:
    """Returns ``mat_g ** alpha`` for ``alpha`` = −1/p with a whole p (Guo and Higham, 2006, section 3).

    Args:
      mat_g: a symmetric positive matrix.
      mat_g_size: its number of rows.
      alpha: −1/p.
      iter_count: maximum number of iterations.
      epsilon: greatest error of an element.
      ridge_epsilon: multiple of the identity to add first.
    """
    if mat_g_size == 1:
        return ops.pow(mat_g + ridge_epsilon, alpha)
    identity = eye(mat_g_size)

    def condition(i: Any, m: Any, x: object) -> Any:
        del x
        return ops.logical_and(i < iter_count, reduce_max(ops.abs(m - identity)) > epsilon)

    def turn(i: Any, m: Any, x: Any) -> Any:
        factor = (1 - alpha) * identity + alpha * m
        return i + 1, matmul(_whole_power(factor, -1.0 / alpha), m), matmul(x, factor)

    damped = mat_g + ridge_epsilon * identity
    scale = (1 - 1 / alpha) / (2 * norm(damped))
    return while_loop(condition, turn, [0, damped * scale, identity * ops.pow(scale, -alpha)])[2]


def _whole_power(matrix: Any, exponent: float) -> Any:
    """Returns a matrix to the power of a positive whole number, by repeated squares."""
    left = int(exponent)
    if left != exponent or left <= 0:
        raise ValueError(f"alpha must be -1/p with a whole number p, not {-1 / exponent}")
    power: Any = None
    while left:
        if left % 2:
            power = matrix if power is None else matmul(matrix, power)
        left //= 2
        if left:
            matrix = matmul(matrix, matrix)
    return power
