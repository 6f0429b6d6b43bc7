"""Failures of computations: integer divisions by zero, indices out of range, singular matrices.

An operation within an executable cannot raise an error. Instead, the executable returns an additional boolean for each
operation that could fail, and the runtime checks these booleans after the run (`headwater.graph.runtime.compile`).
Updates of rows skip missing rows, as gradients of tables require. Compiled loops and branches return the booleans of
their operations (`headwater.graph.ops.inner_faults`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from headwater.errors import InternalError, InvalidArgumentError, OpError
from headwater.graph.kernels.rows import outside
from headwater.graph.ops.common import array_module, as_ints, normal_axis
from headwater.graph.ops.slices import dropped_places
from headwater.graph.ops.unsupported_windows import unsupported
from headwater.graph.registry import CHECKED, lookup
from headwater.lazy_jax import jnp

_Attrs = Mapping[str, Any]


def _some(values: Any) -> Any:
    """Returns whether any of the values is true; None if all are known to be false."""
    if isinstance(values, np.generic):
        return np.True_ if values else None
    if isinstance(values, np.ndarray):
        return np.True_ if values.any() else None
    return jnp.any(values)


def _divided(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    x, y = inputs
    if not np.issubdtype(y.dtype, np.integer) or not x.size:
        return None
    return _some(y == 0)


def _outside(indices: Any, sizes: Any) -> Any:
    if type(indices) is np.ndarray and type(sizes) is int:
        return None if outside(indices, sizes) is None else np.True_
    return _some((indices < 0) | (indices >= sizes))


def _gathered(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    params, indices = inputs[:2]
    axis = normal_axis(as_ints(inputs[2])[0], params.ndim) if len(inputs) > 2 else 0
    return _outside(indices, params.shape[axis])


def _gathered_elements(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    params, indices = inputs
    if not params.ndim:
        raise InvalidArgumentError("params must be at least a vector")
    if indices.size and not params.size:
        said = f"Requested more than 0 entries, but params is empty.  Params shape: {list(params.shape)}"
        raise InvalidArgumentError(said)
    return _outside(indices, np.asarray(params.shape[: indices.shape[-1]], np.int64))


def _require_place(indices: Any, updates: Any, shape: Sequence[int]) -> None:
    if 0 in shape and (indices.size or updates.size):
        raise InvalidArgumentError("Indices and updates specified for empty output shape")
    needed = [*indices.shape[:-1], *shape[indices.shape[-1] :]]
    if list(updates.shape) != needed:
        said = f"Must have updates.shape = {needed} for indices of shape {list(indices.shape)}, got updates.shape: "
        raise InvalidArgumentError(f"{said}{list(updates.shape)}")


def _scattered(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    indices, updates, shape = inputs
    _require_place(indices, updates, as_ints(shape))
    return _outside(indices, np.asarray(as_ints(shape)[: indices.shape[-1]], np.int64))


def _updated_elements(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    value, indices, updates = inputs[:3]
    if value is None:
        return None
    _require_place(indices, updates, value.shape)
    return _outside(indices, np.asarray(value.shape[: indices.shape[-1]], np.int64))


def _sliced(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    value, begin, size = inputs
    sizes = np.asarray(as_ints(size), np.int64)
    return _some((begin < 0) | (begin + np.maximum(sizes, 0) > np.asarray(value.shape, np.int64)))


def _indexed(inputs: Sequence[Any], attrs: _Attrs) -> object:
    value, begin = inputs[:2]
    places = dropped_places(attrs, begin.shape[0], value.ndim)
    if not places:
        return None
    picked = begin[np.array([position for position, _ in places])]
    sizes = np.array([value.shape[axis] for _, axis in places], np.int64)
    return _some((picked < -sizes) | (picked >= sizes))


def _updated_rows(inputs: Sequence[Any], attrs: _Attrs) -> object:
    value, indices = inputs[:2]
    return _outside(indices, value.shape[0]) if attrs.get(CHECKED) and value is not None else None


def _segmented(inputs: Sequence[Any], attrs: _Attrs) -> object:
    _, ids, count = inputs
    if not attrs.get(CHECKED):
        return None
    if isinstance(ids, np.ndarray):  # faster than an array of comparisons
        return np.True_ if ids.size and ids.max() >= int(count) else None
    return _some(ids >= int(count))


def _spread(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    grad, indices, ids, count = inputs
    return _some((indices < 0) | (indices >= int(count)) | (ids < 0) | (ids >= grad.shape[0]))


def _labelled(inputs: Sequence[Any], attrs: _Attrs) -> object:
    features, labels = inputs
    if features.shape[:-1] != labels.shape:
        said = "logits and labels must have the same first dimension, got logits shape {} and labels shape {}"
        raise InvalidArgumentError(said.format(list(features.shape), list(labels.shape)))
    return _outside(labels, features.shape[-1]) if attrs.get(CHECKED) else None


def _ranked(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    predictions, targets = inputs[:2]
    if predictions.shape[:1] != targets.shape:
        said = f"First dimension of predictions {len(predictions)} must match length of targets {targets.size}"
        raise InvalidArgumentError(said)
    return None


def _placed(inputs: Sequence[Any], attrs: _Attrs) -> object:
    places, shape, values, default = inputs[:4]
    sizes = np.asarray(as_ints(shape), np.int64)
    places = places.reshape((-1, len(sizes)))
    if values.shape not in ((), (len(places),)):
        found = ",".join(map(str, values.shape))
        said = f"sparse_values has incorrect shape [{found}], should be [] or [{len(places)}]"
        raise InvalidArgumentError(said)
    if default.shape:
        raise InvalidArgumentError(f"default_value should be a scalar, not of shape {default.shape}")
    checked = attrs.get("validate_indices", True)
    if isinstance(places, np.ndarray):
        _check_places(places, sizes, checked)
        return None
    outside = _outside(places, sizes)
    if not checked or len(places) < 2:
        return outside
    steps = np.cumprod([1, *sizes[:0:-1]])[::-1]
    order = (places * steps).sum(-1)
    unordered = _some(order[1:] <= order[:-1])
    if outside is None or unordered is None:
        return unordered if outside is None else outside
    return outside | unordered


def _check_places(places: np.ndarray, sizes: np.ndarray, ordered: bool) -> None:
    """Raises InvalidArgumentError, naming an index, unless all are within ``sizes`` and, if ``ordered``, ascend."""
    outside = ((places < 0) | (places >= sizes)).any(1)
    wrong = outside
    if ordered and len(places) > 1:
        steps = np.cumprod([1, *sizes[:0:-1]])[::-1]
        wrong = outside | (np.diff((places * steps).sum(-1), prepend=-1) <= 0)
    if wrong.any():
        at = int(wrong.argmax())
        said = f"is out of bounds: need 0 <= index < [{','.join(map(str, sizes))}]"
        if not outside[at]:
            said = "is repeated" if (places[at] == places[at - 1]).all() else "is out of order"
        raise InvalidArgumentError(f"indices[{at}] = [{','.join(map(str, places[at]))}] {said}")


def _multiplied(inputs: Sequence[object], attrs: _Attrs) -> object:
    del attrs
    return _outside(inputs[0], np.asarray(as_ints(inputs[2]), np.int64))


def _reversed(inputs: Sequence[Any], attrs: _Attrs) -> object:
    value, lengths = inputs
    batch = value.shape[attrs.get("batch_dim", 0)]
    if len(lengths) != batch:
        raise InvalidArgumentError(f"len(seq_lens) != input.dims({batch}), ({len(lengths)} vs. {batch})")
    return _some((lengths < 0) | (lengths > value.shape[attrs["seq_dim"]]))


def _written(inputs: Sequence[Any], attrs: _Attrs) -> object:
    array, index, _ = inputs
    return _some(index < 0) if attrs.get("grows") else _outside(index, array.shape[0])


def _permuted(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    ordered = np.sort(inputs[0]) if isinstance(inputs[0], np.ndarray) else jnp.sort(inputs[0])
    return _some(ordered != np.arange(len(ordered), dtype=ordered.dtype))


def _square(matrix: Any) -> bool:
    return matrix.ndim > 1 and matrix.shape[-1] == matrix.shape[-2]


def _linalg(matrix: object) -> Any:
    """Returns the module that factorises a matrix: NumPy for host arrays of types that LAPACK supports, because JAX
    would compile a program for each shape."""
    return np if isinstance(matrix, np.ndarray) and matrix.dtype.itemsize > 2 else jnp


def _singular(inputs: Sequence[Any], attrs: _Attrs) -> object:
    """Returns whether a pivot is 0 or NaN, as TensorFlow's kernels check; the transposed matrix has the same
    determinant."""
    del attrs
    matrix = inputs[0]
    if not matrix.size or not _square(matrix):
        return None
    xp = _linalg(matrix)
    with np.errstate(all="ignore"):  # some builds of LAPACK warn of NaN, others do not
        sign, log = xp.linalg.slogdet(matrix)
    return _some((sign == 0) | xp.isnan(log))


def _zero_on_diagonal(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    return _some(~(abs(inputs[0].diagonal(0, -2, -1)) > 0))


def _not_positive_definite(inputs: Sequence[Any], attrs: _Attrs) -> object:
    """Returns whether the factor has NaN although the lower triangle of the input, the only part that is read, has
    none."""
    del attrs
    matrix = inputs[0]
    if not _square(matrix):
        return None
    if _linalg(matrix) is np:
        with contextlib.suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):
            np.linalg.cholesky(matrix)
            return None
    factor = lookup("Cholesky").lower(matrix)
    return _some(jnp.isnan(factor).any((-2, -1)) & ~jnp.isnan(jnp.tril(matrix)).any((-2, -1)))


def _not_a_number(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    xp = array_module(inputs[0])
    return _some(xp.isnan(xp.tril(inputs[0])))


def _unsolved(inputs: Sequence[Any], attrs: _Attrs) -> object:
    """Returns whether the solution of a tridiagonal system of finite numbers is not finite."""
    solution = lookup("TridiagonalSolve").lower(*inputs, **attrs)
    return _some(~jnp.isfinite(solution)) & jnp.isfinite(inputs[0]).all() & jnp.isfinite(inputs[1]).all()


def _band_too_wide(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    matrix, lower, upper = inputs
    if matrix.ndim < 2:
        said = f"input must be at least 2-dim, received shape: {list(matrix.shape)}"
        raise InvalidArgumentError(said)
    return _some((lower > matrix.shape[-2]) | (upper > matrix.shape[-1]))


def _other_rank(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    return np.True_ if len(inputs[1]) != inputs[0].ndim else None


def _unlike(inputs: Sequence[Any], attrs: _Attrs) -> object:
    """Returns whether the shapes of the inputs of Select violate its static checks."""
    del attrs
    condition, x, y = (value.shape for value in inputs)
    fits = not condition or condition == x or (len(condition) == 1 and condition == x[:1])
    return None if fits and x == y else np.True_


def _rate(place: int) -> Callable[[Sequence[Any], _Attrs], object]:
    """Returns whether the learning rate, input ``place``, is not positive."""
    return lambda inputs, attrs: _some(inputs[place] <= 0)


def _unordered(inputs: Sequence[Any], attrs: _Attrs) -> object:
    del attrs
    *_, low, high = inputs
    return _some(low >= high)


def _no_interval(inputs: Sequence[Any], attrs: _Attrs) -> object:
    *_, deviation, low, high = inputs
    del attrs
    return _some((low >= high).any() | (deviation <= 0).any())


_SEGMENTS: Final = tuple(f"UnsortedSegment{kind}" for kind in ("Max", "Min", "Prod", "Sum"))

_FAULTS: Final[Mapping[str, Callable[[Sequence[Any], _Attrs], object]]] = {
    **dict.fromkeys(("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"), _divided),
    "Gather": _gathered,
    "GatherV2": _gathered,
    "GatherNd": _gathered_elements,
    "ScatterNd": _scattered,
    "SparseTensorDenseAdd": lambda inputs, attrs: _outside(inputs[0], np.asarray(inputs[3].shape, np.int64)),
    **dict.fromkeys(("ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate"), _updated_elements),
    "Cholesky": _not_positive_definite,
    "InvertPermutation": _permuted,
    **dict.fromkeys(("InTopK", "InTopKV2"), _ranked),
    **dict.fromkeys(("Lu", "MatrixInverse", "MatrixSolve"), _singular),
    **dict.fromkeys(("ApplyFtrl", "ApplyFtrlV2"), _rate(4)),
    **dict.fromkeys(("SparseApplyFtrl", "SparseApplyFtrlV2"), _rate(5)),
    **dict.fromkeys(("ApplyProximalAdagrad", "SparseApplyProximalAdagrad"), _rate(2)),
    "LRN": lambda inputs, attrs: np.True_ if inputs[0].ndim != 4 else None,
    "MatrixBandPart": _band_too_wide,
    "Select": _unlike,
    "Tile": _other_rank,
    "MatrixTriangularSolve": _zero_on_diagonal,
    "SelfAdjointEigV2": _not_a_number,
    "TridiagonalSolve": _unsolved,
    **dict.fromkeys(("RandomUniformInt", "StatelessRandomUniformInt"), _unordered),
    "StatelessParameterizedTruncatedNormal": _no_interval,
    "ReverseSequence": _reversed,
    **{f"Scatter{kind}": _updated_rows for kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")},
    "Slice": _sliced,
    "SparseSoftmaxCrossEntropyWithLogits": _labelled,
    **dict.fromkeys(
        ("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul", "SparseTensorDenseMatMul"), _multiplied
    ),
    "SparseToDense": _placed,
    **dict.fromkeys(("StridedSlice", "StridedSliceAssign"), _indexed),
    "TensorArrayWrite": _written,
    **{f"TensorScatter{kind}": _updated_elements for kind in ("Add", "Max", "Min", "Sub", "Update")},
    **dict.fromkeys(_SEGMENTS, _segmented),
    **dict.fromkeys([f"SparseSegment{kind}Grad" for kind in ("Sum", "Mean", "SqrtN")], _spread),
}


_GRADIENT_FAULTS: Final[Mapping[str, Callable[[Sequence[Any], _Attrs], object]]] = {
    "LogMatrixDeterminant": _singular,
    "MatrixDeterminant": _singular,
}
"""Failures of gradients of forward operations that cannot fail themselves."""

_MESSAGES: Final = {
    **{
        f"{kind}Apply{name}": "lr is not a positive scalar"
        for kind in ("", "Sparse")
        for name in ("Ftrl", "FtrlV2", "ProximalAdagrad")
    },
    "LRN": "in must be 4-dimensional",
    "MatrixBandPart": "num_lower and num_upper must be negative, or at most the numbers of rows and columns",
    "Select": "condition, 'then' and 'else' must have the same size and shape",
    "Tile": "Expected multiples argument to be a vector of length equal to the rank of the input",
    "Cholesky": "Cholesky decomposition was not successful. The input might not be valid.",
    **dict.fromkeys(("Lu", "MatrixInverse", *_GRADIENT_FAULTS), "Input is not invertible."),
    **dict.fromkeys(("MatrixSolve", "MatrixTriangularSolve"), "Input matrix is not invertible."),
    "SelfAdjointEigV2": "Self-adjoint eigen decomposition was not successful. The input might not be valid.",
    "TridiagonalSolve": "The matrix is not invertible.",
    **dict.fromkeys(("RandomUniformInt", "StatelessRandomUniformInt"), "Need minval < maxval"),
    "StatelessParameterizedTruncatedNormal": "Invalid parameters",
    "InvertPermutation": "an element is out of range or duplicated",
    "ReverseSequence": "a length is negative or greater than the dimension",
    "SparseSoftmaxCrossEntropyWithLogits": "Received a label value which is outside the valid range of classes",
    "SparseToDense": "indices are out of bounds, repeated, or out of order",
    **dict.fromkeys(_SEGMENTS, "a segment id is out of range [0, num_segments)"),
}


def _forward_of(attrs: _Attrs) -> tuple[str, _Attrs]:
    """Returns the type and attributes of the forward operation of a ``Vjp``."""
    forward = attrs["f"]
    return forward.name, dict(forward.attrs)


def can_fail(op_type: str, attrs: _Attrs) -> bool:
    """Returns whether `fault_of` may report a failure of an operation."""
    if op_type == "Vjp":
        forward, attrs = _forward_of(attrs)
        return forward in _GRADIENT_FAULTS or can_fail(forward, attrs)
    return op_type in _FAULTS or unsupported(op_type, attrs) is not None


def fault_of(op_type: str, inputs: Sequence[object], attrs: _Attrs) -> Any:
    """Returns whether the operation fails with these inputs, as a boolean array; None if it cannot fail.

    Args:
      inputs: traced or known arrays.
    """
    if op_type == "Vjp":
        inputs = inputs[: len(attrs["wanted"])]
        forward, attrs = _forward_of(attrs)
        find = _GRADIENT_FAULTS.get(forward)
        return find(inputs, attrs) if find is not None else fault_of(forward, inputs, attrs)
    find = _FAULTS.get(op_type)
    if find is None:
        return None if unsupported(op_type, attrs) is None else np.True_
    return find(inputs, attrs)


def error_of(op_type: str, name: str, attrs: _Attrs) -> OpError:
    """Returns the error of an operation for which `fault_of` has reported a failure."""
    where = f"[in {op_type} operation {name!r}]"
    if op_type == "Vjp":
        op_type, attrs = _forward_of(attrs)
    refused = unsupported(op_type, attrs)
    if refused is not None:
        return type(refused)(f"{refused.message} {where}")
    said = _MESSAGES.get(op_type)
    if said is not None:
        return InvalidArgumentError(f"{said} {where}")
    if _FAULTS[op_type] is not _divided:
        return InvalidArgumentError(f"an index or slice is out of bounds {where}")
    # TensorFlow's message on CPUs.
    kind = InternalError if op_type.startswith("Truncate") else InvalidArgumentError
    return kind(f"Integer division by zero {where}")
