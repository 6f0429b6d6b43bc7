"""Linear operators composed of others: adjoints, inverses, products, blocks, Kronecker products, low-rank updates."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import TensorShape, dimension_value
from headwater.tf1.functional import arrays, linalg, math
from headwater.tf1.functional.linear_operators.base import LinearOperator, check_sizes, makers, with_same_batch
from headwater.tf1.functional.linear_operators.diagonal import LinearOperatorDiag, LinearOperatorIdentity


class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of an operator.

    Args:
      is_non_singular: see `LinearOperator`, as for all hints; None: the hint of the operator.
      is_self_adjoint, is_positive_definite, is_square: a hint.

    Attributes:
      operator: the operator whose adjoint this is.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self.operator: LinearOperator = operator
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            _like_operator("non-singular", is_non_singular, operator.is_non_singular),
            _like_operator("self-adjoint", is_self_adjoint, operator.is_self_adjoint),
            _like_operator("positive-definite", is_positive_definite, operator.is_positive_definite),
            _like_operator("square", is_square, operator.is_square),
            name or f"{operator.name}_adjoint",
        )

    def _shape(self) -> TensorShape:
        shape = self.operator.shape
        return shape if shape.ndims is None else shape[:-2].concatenate(TensorShape([shape[-1], shape[-2]]))

    def _shape_tensor(self) -> Tensor:
        shape = self.operator.shape_tensor()
        return arrays.concat([shape[:-2], arrays.stack([shape[-1], shape[-2]])], 0)

    def _to_dense(self) -> Tensor:
        return linalg.adjoint(self.operator.to_dense())

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self.operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self.operator.solve(rhs, adjoint=not adjoint)

    def _determinant(self) -> Tensor:
        found = self.operator.determinant()
        return math.conj(found) if self.dtype.is_complex else found

    def _log_abs_determinant(self) -> Tensor:
        return self.operator.log_abs_determinant()

    def _adjoint(self) -> LinearOperator:
        return self.operator


def _hint(given: bool | None, inherited: bool | None) -> bool | None:
    return inherited if given is None else given


def _like_operator(trait: str, given: bool | None, inherited: bool | None) -> bool | None:
    """Returns a hint that the adjoint and the inverse of an operator share with it.

    Raises:
      ValueError: the given hint contradicts the operator's.
    """
    if None not in (given, inherited) and given != inherited:
        raise ValueError(f"The operator is {'' if inherited else 'not '}{trait}, which contradicts the hint")
    return _hint(given, inherited)


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator.

    Args:
      is_non_singular: True.
      is_self_adjoint: a hint; the operator's for None.
      is_positive_definite, is_square: a hint.

    Raises:
      ValueError: the operator is singular, or a hint says that its inverse is.

    Attributes:
      operator: the operator whose inverse this is.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError(f"operator and supplied hints must have `is_non_singular` of `True` or `None`: {operator}")
        self.operator: LinearOperator = operator
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            True,
            _like_operator("self-adjoint", is_self_adjoint, operator.is_self_adjoint),
            _like_operator("positive-definite", is_positive_definite, operator.is_positive_definite),
            _like_operator("square", is_square, operator.is_square),
            name or f"{operator.name}_inv",
        )

    def _shape(self) -> TensorShape:
        return self.operator.shape

    def _shape_tensor(self) -> Tensor:
        return self.operator.shape_tensor()

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self.operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self.operator.matmul(rhs, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return 1.0 / self.operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        return -self.operator.log_abs_determinant()

    def _inverse(self) -> LinearOperator:
        return self.operator


class _Several(LinearOperator):
    """Base of operators that combine a list of operators of one type."""

    _sign = ""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parts = list(operators)
        if not parts:
            raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
        for part in parts[1:]:
            if part.dtype != parts[0].dtype:
                raise TypeError(
                    f"Expected all operators to have the same dtype.  Found {[(p.name, p.dtype.name) for p in parts]}"
                )
        self._operators = parts
        if is_non_singular is False and all(part.is_non_singular for part in parts):
            raise ValueError(f"The {type(self).__name__} of non-singular operators is always non-singular.")
        hints = self._hints(parts)
        super().__init__(
            parts[0].dtype,
            [tensor for part in parts for tensor in part.graph_parents],
            _hint(is_non_singular, True if all(part.is_non_singular for part in parts) else None),
            _hint(is_self_adjoint, hints[0]),
            _hint(is_positive_definite, hints[1]),
            is_square,
            name or self._sign.join(part.name for part in parts),
        )

    def _hints(self, parts: Sequence[LinearOperator]) -> tuple[bool | None, bool | None]:
        """Returns whether it is self-adjoint, and whether it is positive definite, as far as follows from its parts."""
        found = (all(p.is_self_adjoint for p in parts), all(p.is_positive_definite for p in parts))
        return (True if found[0] else None), (True if found[1] else None)

    @property
    def operators(self) -> list[LinearOperator]:
        """The combined operators."""
        return self._operators

    def _outer(self) -> TensorShape:
        return functools.reduce(arrays.broadcast_static_shape, [part.batch_shape for part in self._operators])

    def _outer_tensor(self) -> Tensor:
        shapes = [part.batch_shape_tensor() for part in self._operators]
        return functools.reduce(arrays.broadcast_dynamic_shape, shapes)

    def _combined(self, sizes: Callable[[Sequence[Any]], Any]) -> TensorShape:
        inner = [
            sizes([dimension_value(getattr(part, side)) for part in self._operators])
            for side in ("range_dimension", "domain_dimension")
        ]
        return self._outer().concatenate(TensorShape(inner))

    def _combined_tensor(self, sizes: Callable[[Sequence[Tensor]], Tensor]) -> Tensor:
        inner = [
            sizes([getattr(part, f"{side}_tensor")() for part in self._operators])
            for side in ("range_dimension", "domain_dimension")
        ]
        return arrays.concat([self._outer_tensor(), arrays.stack(inner)], 0)


class LinearOperatorComposition(_Several):
    """The product of operators.

    Args:
      operators: from the left to the right.
      is_non_singular: see `LinearOperator`, as for all hints.
      is_self_adjoint, is_positive_definite, is_square: a hint.

    Raises:
      ValueError: there are no operators; mismatching sizes are reported when the shape is read.
      TypeError: their types differ.
    """

    _sign = "_o_"

    def _hints(self, parts: Sequence[LinearOperator]) -> tuple[bool | None, bool | None]:
        del parts
        return None, None

    def _shape(self) -> TensorShape:
        for left, right in itertools.pairwise(self._operators):
            check_sizes(left.domain_dimension, right.range_dimension)
        ends = [
            dimension_value(self._operators[0].range_dimension),
            dimension_value(self._operators[-1].domain_dimension),
        ]
        return self._outer().concatenate(TensorShape(ends))

    def _shape_tensor(self) -> Tensor:
        ends = [self._operators[0].range_dimension_tensor(), self._operators[-1].domain_dimension_tensor()]
        return arrays.concat([self._outer_tensor(), arrays.stack(ends)], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = linalg.adjoint(x) if adjoint_arg else x
        for part in self._operators if adjoint else reversed(self._operators):
            x = part.matmul(x, adjoint=adjoint)
        return x

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        for part in reversed(self._operators) if adjoint else self._operators:
            rhs = part.solve(rhs, adjoint=adjoint)
        return rhs

    def _determinant(self) -> Tensor:
        if not all(part.is_square for part in self._operators):
            return super()._determinant()
        return functools.reduce(math.multiply, [part.determinant() for part in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        if not all(part.is_square for part in self._operators):
            return super()._log_abs_determinant()
        return functools.reduce(math.add, [part.log_abs_determinant() for part in self._operators])


class LinearOperatorBlockDiag(_Several):
    """Operators along the diagonal.

    Args:
      operators: square ones, from the upper left to the lower right.
      is_non_singular: see `LinearOperator`, as for all hints.
      is_self_adjoint, is_positive_definite: a hint.
      is_square: True.

    Raises:
      ValueError: there are no operators, or one is not square.
      TypeError: their types differ.
    """

    _sign = "_ds_"

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        for part in operators:
            if part.is_square is False:
                raise ValueError(f"Can only represent a block diagonal of square matrices. Got: {part}")
        super().__init__(operators, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    def _shape(self) -> TensorShape:
        return self._combined(lambda sizes: None if None in sizes else sum(sizes))

    def _shape_tensor(self) -> Tensor:
        return self._combined_tensor(lambda sizes: functools.reduce(math.add, sizes))

    def _parts(self, x: Tensor) -> list[Tensor]:
        sizes = [dimension_value(part.domain_dimension) for part in self._operators]
        if None in sizes:
            sizes = arrays.stack([part.domain_dimension_tensor() for part in self._operators])
        return list(arrays.split(x, sizes, -2, num=len(self._operators)))

    def _stacked(self, parts: Sequence[Tensor]) -> Tensor:
        """Concatenates the parts vertically, after broadcasting their outer dimensions."""
        outer = functools.reduce(arrays.broadcast_dynamic_shape, [arrays.shape(part)[:-2] for part in parts])
        same = all(part.dims is not None and len(part.dims) == 2 for part in parts)
        spread = [
            part if same else arrays.broadcast_to(part, arrays.concat([outer, arrays.shape(part)[-2:]], 0))
            for part in parts
        ]
        return arrays.concat(spread, -2)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        parts = self._parts(linalg.adjoint(x) if adjoint_arg else x)
        pairs = zip(self._operators, parts, strict=True)
        return self._stacked([operator.matmul(part, adjoint=adjoint) for operator, part in pairs])

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        pairs = zip(self._operators, self._parts(rhs), strict=True)
        return self._stacked([operator.solve(part, adjoint=adjoint) for operator, part in pairs])

    def _determinant(self) -> Tensor:
        return functools.reduce(math.multiply, [part.determinant() for part in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        return functools.reduce(math.add, [part.log_abs_determinant() for part in self._operators])

    def _again(self, change: Callable[[LinearOperator], LinearOperator]) -> LinearOperator:
        return LinearOperatorBlockDiag([change(part) for part in self._operators], self.is_non_singular)

    def _adjoint(self) -> LinearOperator:
        return self._again(lambda part: part.adjoint())

    def _inverse(self) -> LinearOperator:
        return self._again(lambda part: part.inverse())

    def _cholesky(self) -> LinearOperator:
        return self._again(lambda part: part.cholesky())


class LinearOperatorKronecker(_Several):
    """The Kronecker product of operators.

    Args:
      operators: from the left to the right.
      is_non_singular: see `LinearOperator`, as for all hints.
      is_self_adjoint, is_positive_definite, is_square: a hint.

    Raises:
      ValueError: there are no operators.
      TypeError: their types differ.
    """

    _sign = "_x_"

    def _shape(self) -> TensorShape:
        return self._combined(lambda sizes: None if None in sizes else functools.reduce(lambda a, b: a * b, sizes))

    def _shape_tensor(self) -> Tensor:
        return self._combined_tensor(lambda sizes: functools.reduce(math.multiply, sizes))

    def _to_dense(self) -> Tensor:
        return functools.reduce(_kronecker, [part.to_dense() for part in self._operators])

    def _powers(self, of: Callable[[LinearOperator], Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Returns a value for each part, with its multiplicity: the total number of rows over the part's."""
        whole = self.range_dimension_tensor()
        found = [(of(part), part.range_dimension_tensor()) for part in self._operators]
        return [(value, math.cast(whole // rows, value.dtype)) for value, rows in found]

    def _determinant(self) -> Tensor:
        if not all(part.is_square for part in self._operators):
            return super()._determinant()
        powers = self._powers(lambda part: part.determinant())
        return functools.reduce(math.multiply, [math.pow(value, power) for value, power in powers])

    def _log_abs_determinant(self) -> Tensor:
        if not all(part.is_square for part in self._operators):
            return super()._log_abs_determinant()
        powers = self._powers(lambda part: part.log_abs_determinant())
        return functools.reduce(math.add, [value * power for value, power in powers])

    def _again(self, change: Callable[[LinearOperator], LinearOperator]) -> LinearOperator:
        return LinearOperatorKronecker([change(part) for part in self._operators], self.is_non_singular)

    def _adjoint(self) -> LinearOperator:
        return self._again(lambda part: part.adjoint())

    def _inverse(self) -> LinearOperator:
        if not all(part.is_square for part in self._operators):
            return super()._inverse()
        return self._again(lambda part: part.inverse())

    def _cholesky(self) -> LinearOperator:
        if not all(part.is_positive_definite for part in self._operators):
            return super()._cholesky()
        return self._again(lambda part: part.cholesky())


def _kronecker(left: Tensor, right: Tensor) -> Tensor:
    """[..., m, n] and [..., p, q] to [..., m p, n q]."""
    # [..., m, 1, n, 1] times [..., 1, p, 1, q]
    product = _spread(left, -1, -3) * _spread(right, -2, -4)
    one, two = arrays.shape(left), arrays.shape(right)
    rows, columns = one[-2] * two[-2], one[-1] * two[-1]
    return arrays.reshape(product, arrays.concat([arrays.shape(product)[:-4], arrays.stack([rows, columns])], 0))


def _spread(matrix: Tensor, first: int, second: int) -> Tensor:
    """Inserts two dimensions of size 1, at these positions of the result, counted from its end."""
    return arrays.expand_dims(arrays.expand_dims(matrix, first), second)


class LinearOperatorLowRankUpdate(LinearOperator):
    """``L + U D V^H``, with an operator L that is easily solved and few columns of U and V.

    Args:
      base_operator: L, [..., M, N].
      u: U, [..., M, K].
      diag_update: the diagonal of D, [..., K]; None: ones.
      v: V, [..., N, K]; None: U.
      is_diag_update_positive: whether D is positive; True if it is None.
      is_non_singular: see `LinearOperator`, as for all hints.
      is_self_adjoint, is_positive_definite, is_square: a hint.

    Raises:
      ValueError: a hint contradicts the operators or the diagonal.

    Attributes:
      base_operator: the operator L.
      u: the matrix U.
      v: the matrix V.
      is_diag_update_positive: whether D is positive.
      diag_update: the diagonal of D; None for ones.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: TensorLike,
        diag_update: TensorLike | None = None,
        v: TensorLike | None = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        dtype = base_operator.dtype
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive.")
            is_diag_update_positive = True
        with name_scope(name, "", [u, diag_update, v]):
            self.u: Tensor = convert_to_tensor(u, dtype, name="u")
            self.v: Tensor = self.u if v is None else convert_to_tensor(v, dtype, name="v")
            self.diag_update: Tensor | None = (
                None if diag_update is None else convert_to_tensor(diag_update, dtype, name="diag_update")
            )
        symmetric = v is None
        if symmetric and base_operator.is_self_adjoint and (diag_update is None or not dtype.is_complex):
            is_self_adjoint = _hint(is_self_adjoint, True)
        if symmetric and base_operator.is_positive_definite and is_diag_update_positive:
            is_positive_definite = _hint(is_positive_definite, True)
        self.base_operator: LinearOperator = base_operator
        self.is_diag_update_positive: bool | None = is_diag_update_positive
        tensors = [tensor for tensor in (self.u, self.diag_update, self.v) if tensor is not None]
        super().__init__(
            dtype,
            [*base_operator.graph_parents, *tensors],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
        )
        check_sizes(base_operator.range_dimension, self.u.shape[-2])
        check_sizes(base_operator.domain_dimension, self.v.shape[-2])

    @property
    def diag_operator(self) -> LinearOperator:
        """The diagonal D."""
        if self.diag_update is not None:
            return LinearOperatorDiag(self.diag_update, is_positive_definite=self.is_diag_update_positive)
        size = dimension_value(self.u.shape[-1])
        return LinearOperatorIdentity(arrays.shape(self.u)[-1] if size is None else size, dtype=self.dtype)

    def _shape(self) -> TensorShape:
        outer = arrays.broadcast_static_shape(self.base_operator.batch_shape, self.u.shape[:-2])
        outer = arrays.broadcast_static_shape(outer, self.v.shape[:-2])
        return outer.concatenate(self.base_operator.shape[-2:])

    def _shape_tensor(self) -> Tensor:
        outer = arrays.broadcast_dynamic_shape(self.base_operator.batch_shape_tensor(), arrays.shape(self.u)[:-2])
        return arrays.concat([outer, self.base_operator.shape_tensor()[-2:]], 0)

    def _to_dense(self) -> Tensor:
        return self.base_operator.to_dense() + linalg.matmul(self.u, self._scaled(self.v), adjoint_b=True)

    def _scaled(self, columns: Tensor) -> Tensor:
        """Multiplies each column by the conjugate of its element of D."""
        if self.diag_update is None:
            return columns
        return columns * arrays.expand_dims(math.conj(self.diag_update), -2)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = linalg.adjoint(x) if adjoint_arg else x
        left, right = (self._scaled(self.v), self.u) if adjoint else (self.u, self._scaled(self.v))
        update = linalg.matmul(left, linalg.matmul(right, x, adjoint_a=True))
        return self.base_operator.matmul(x, adjoint=adjoint) + update

    def _capacitance(self) -> Tensor:
        """``D^-1 + V^H L^-1 U``."""
        inner = linalg.matmul(*with_same_batch(self.v, self.base_operator.solve(self.u)), adjoint_a=True)
        return self.diag_operator.inverse().add_to_tensor(inner)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        # Woodbury: (L + U D V^H)^-1 = L^-1 - L^-1 U C^-1 V^H L^-1 with the capacitance C.
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        first = self.base_operator.solve(rhs, adjoint=adjoint)
        small = makers.full_matrix(self._capacitance()).solve(linalg.matmul(right, first, adjoint_a=True), adjoint)
        return first - self.base_operator.solve(linalg.matmul(left, small), adjoint=adjoint)

    def _determinant(self) -> Tensor:
        capacitance = makers.full_matrix(self._capacitance()).determinant()
        return capacitance * self.diag_operator.determinant() * self.base_operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        capacitance = makers.full_matrix(self._capacitance()).log_abs_determinant()
        return capacitance + self.diag_operator.log_abs_determinant() + self.base_operator.log_abs_determinant()


makers.adjoint = LinearOperatorAdjoint
makers.inversion = LinearOperatorInversion
makers.composition = LinearOperatorComposition
