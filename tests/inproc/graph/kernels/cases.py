"""Random inputs for each operation that has a kernel: types, empty and 0-d arrays, broadcasting, equal indices, NaN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from headwater import dtypes
from headwater.shapes import TensorShape

_draw = np.random.default_rng(20261127)
F32, F64, F16, I32, I64 = np.float32, np.float64, np.float16, np.int32, np.int64
BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True, slots=True)
class Case:
    """One call of an operation.

    Attributes:
      op: its type.
      inputs: arrays.
      attrs: keyword attributes.
      outputs: the outputs with given gradients; empty for all.
      slopes: whether the gradient is compared, too.
    """

    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: tuple[int, ...] = ()
    slopes: bool = True

    def __str__(self) -> str:
        return f"{self.op}{[f'{value.dtype}{list(value.shape)}' for value in self.inputs]}"


def reals(*shape: int, dtype: Any = F32, low: float = -2, high: float = 2) -> Any:
    return np.asarray(_draw.uniform(low, high, shape)).astype(dtype)


def integers(*shape: int, dtype: Any = I32, low: int = -9, high: int = 10) -> Any:
    return np.asarray(_draw.integers(low, high, shape)).astype(dtype)


def complexes(*shape: int) -> Any:
    return (reals(*shape) + 1j * reals(*shape)).astype(np.complex64)


def flags(*shape: int) -> Any:
    return np.asarray(_draw.integers(0, 2, shape)).astype(bool)


def array(values: Any, dtype: Any = I32) -> Any:
    return np.array(values, dtype)


SPECIAL = array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5], F32)


_ANYWHERE = "Abs Neg Square Sign Exp Expm1 Sin Cos Tan Atan Sinh Cosh Tanh Asinh Sigmoid Snapshot"


def elementwise() -> Iterator[Case]:
    for op in _ANYWHERE.split():
        yield Case(op, (reals(3, 4),))
        yield Case(op, (SPECIAL,), slopes=False)
    for op, low, high in (
        *((op, 0.2, 3) for op in ("Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Inv")),
        *((op, -0.9, 0.9) for op in ("Asin", "Acos", "Atanh")),
        ("Acosh", 1.1, 3),
    ):
        yield Case(op, (reals(3, 4, low=low, high=high),))
        yield Case(op, (SPECIAL,), slopes=False)
    for op in ("Floor", "Ceil", "Rint", "Round", "IsNan", "IsInf", "IsFinite"):
        yield Case(op, (reals(3, 4),))
        yield Case(op, (SPECIAL,))
    for op in ("Tanh", "Exp", "Neg", "Log"):
        yield Case(op, (reals(2, 3, low=0.3, dtype=F64),))
        yield Case(op, (reals(2, 3, low=0.3, dtype=BF16),))
        yield Case(op, (reals(low=0.3),))
        yield Case(op, (reals(0, 3),))
    for op in ("Exp", "Square", "Neg", "Reciprocal", "Sqrt", "Rsqrt", "Sigmoid", "Conj"):
        yield Case(op, (complexes(2, 3),))
    for op in ("Abs", "Neg", "Square", "Sign", "Round", "Invert"):
        yield Case(op, (integers(3, 4),))
    for op in ("Sqrt", "Rsqrt", "Reciprocal"):
        yield Case(op, (array([0, 4], F32),))
        yield Case(f"{op}Grad", (array([0, np.inf, 2], F32), array([0, 0, 1], F32)))
    yield Case("LogicalNot", (flags(3),))
    arithmetic = ["Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "SquaredDifference"]
    for op in arithmetic:
        yield Case(op, (reals(3, 4), reals(3, 4, low=0.5)))
        yield Case(op, (reals(3, 1, 4), reals(2, 1, low=0.5)))
        yield Case(op, (reals(low=0.5), reals(2, 3, low=0.5)))
        yield Case(op, (reals(2, 3, dtype=F64), reals(3, low=0.5, dtype=F64)))
        yield Case(op, (reals(0, 3), reals(3, low=0.5)))
        yield Case(op, (SPECIAL[:, None], SPECIAL), slopes=False)
        if op != "RealDiv":
            yield Case(op, (integers(3, 4), integers(4, low=1)))
    for op in ("Add", "Mul", "RealDiv", "Sub"):
        yield Case(op, (complexes(2, 3), complexes(3)))
        yield Case(op, (reals(2, 3, dtype=BF16), reals(3, low=0.5, dtype=BF16)))
    yield Case("Maximum", (array([1, 2, 3], F32), array([1, 3, 2], F32)))
    for op in ("FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"):
        yield Case(op, (reals(3, 4, low=-9, high=9), reals(4, low=0.7, high=3)))
        yield Case(op, (reals(3, 4, low=-9, high=9), -reals(4, low=0.7, high=3)))
        yield Case(op, (integers(3, 4), array([1, 2, -3, 4])))
    yield Case("Pow", (reals(3, 4, low=0.2), reals(4)))
    yield Case("Pow", (array([-2, 0, 0, 3, -1.5], F32), array([2, 0, 3, 0, 3], F32)))
    yield Case("Pow", (integers(4), array([0, 1, 2, 3])))
    for op in ("DivNoNan", "MulNoNan"):
        yield Case(op, (reals(4), array([0, 1, 2, 0], F32)))
        yield Case(op, (array([0, np.inf], F32), array([0, 0], F32)), slopes=False)
    for op in ("Xdivy", "Xlogy"):
        yield Case(op, (array([0, 1, 2, 0], F32), reals(4, low=0.4)))
        yield Case(op, (array([0, 0, 1], F32), array([0, 1, 2], F32)))
    yield Case("Atan2", (reals(3, 4), reals(4, low=0.3)))
    yield Case("NextAfter", (reals(4), reals(4)))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"):
        yield Case(op, (integers(3, 4), integers(4, low=0, high=5)))
    for op in ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"):
        yield Case(op, (SPECIAL[:, None], SPECIAL))
        yield Case(op, (integers(3, 4), integers(4)))
    yield Case("Equal", (reals(3), reals(4)), {"incompatible_shape_error": False})
    for op in ("LogicalAnd", "LogicalOr"):
        yield Case(op, (flags(3, 4), flags(4)))
    yield Case("ApproximateEqual", (array([1, 2], F32), array([1, 2.1], F32)), {"tolerance": 0.01})
    yield Case("ClipByValue", (reals(3, 4), array(-0.5, F32), array(0.5, F32)))
    yield Case("ClipByValue", (reals(3, 4), reals(4, low=-1, high=0), reals(3, 1, low=0, high=1)))
    yield Case("AddN", (reals(3, 4), reals(3, 4), reals(3, 4)))
    yield Case("AccumulateNV2", (reals(3), reals(3)))
    yield Case("Select", (flags(3), reals(3, 4), reals(3, 4)))
    yield Case("Select", (flags(3, 4), reals(3, 4), reals(3, 4)))
    yield Case("Select", (flags(), reals(3, 4), reals(3, 4)))
    yield Case("SelectV2", (flags(3, 1), reals(3, 4), reals(4)))
    for source in (SPECIAL, array([1e20, -1e20, 255.7, 300, -1], F32), integers(4), flags(4), complexes(3)):
        for target in (dtypes.int32, dtypes.uint8, dtypes.bool_, dtypes.float64, dtypes.int64, dtypes.bfloat16):
            if source.dtype.kind != "c" or target in (dtypes.bool_, dtypes.float64):
                yield Case("Cast", (source,), {"DstT": target})
    yield Case("Cast", (reals(3, dtype=F64),), {"DstT": dtypes.complex64})
    yield Case("Bitcast", (reals(3),), {"type": dtypes.int32})
    yield Case("Bitcast", (integers(3, 2),), {"type": dtypes.float64})
    yield Case("Bitcast", (reals(3),), {"type": dtypes.uint8})
    yield Case("Complex", (reals(3, 4), reals(4)), {"Tout": dtypes.complex64})
    for op in ("Real", "Imag", "Angle", "ComplexAbs"):
        yield Case(op, (complexes(3),), {"Tout": dtypes.float32})
    yield Case("EnsureShape", (reals(3, 4),), {"shape": TensorShape([3, None])})


def arrays() -> Iterator[Case]:
    yield Case("Shape", (reals(3, 0),), {"out_type": dtypes.int64})
    yield Case("Shape", (reals(),))
    yield Case("ShapeN", (reals(3), reals(2, 1)))
    yield Case("Size", (reals(3, 4),))
    yield Case("Rank", (reals(3, 4),))
    yield Case("BroadcastArgs", (array([3, 1]), array([2, 1, 5])))
    yield Case("BroadcastGradientArgs", (array([3, 1]), array([2, 1, 5])))
    yield Case("Reshape", (reals(3, 4), array([2, -1])))
    yield Case("Reshape", (reals(1), array([], I32)))
    yield Case("Reshape", (reals(0, 4), array([-1, 2])))
    yield Case("ExpandDims", (reals(3, 4), array(-2)))
    yield Case("ExpandDims", (reals(3), array([0])))
    yield Case("Squeeze", (reals(1, 3, 1),))
    yield Case("Squeeze", (reals(1, 3, 1),), {"squeeze_dims": [-1]})
    yield Case("Transpose", (reals(2, 3, 4), array([2, 0, 1])))
    yield Case("ConjugateTranspose", (complexes(2, 3), array([1, 0])))
    yield Case("Tile", (reals(2, 3), array([3, 2])))
    yield Case("Tile", (reals(2, 3), array([1, 0])))
    yield Case("Pad", (reals(2, 3), array([[1, 0], [2, 1]])))
    yield Case("PadV2", (reals(2, 3), array([[1, 0], [2, 1]]), array(1.5, F32)))
    for mode in ("REFLECT", "SYMMETRIC"):
        yield Case("MirrorPad", (reals(3, 4), array([[1, 2], [0, 3]])), {"mode": mode})
        yield Case("MirrorPadGrad", (reals(6, 7), array([[1, 2], [0, 3]])), {"mode": mode})
    yield Case("ReverseV2", (reals(2, 3), array([-1])))
    yield Case("Reverse", (reals(2, 3), array([True, False], bool)))
    yield Case("Roll", (reals(2, 3), array([1, -2]), array([0, 1])))
    yield Case("Fill", (array([2, 3]), reals()))
    yield Case("ZerosLike", (integers(2, 3),))
    yield Case("OnesLike", (reals(2, 3),))
    yield Case("BroadcastTo", (reals(3, 1), array([2, 3, 4])))
    yield Case("Range", (array(2), array(11), array(3)))
    yield Case("Range", (array(2, F32), array(0, F32), array(-0.5, F32)))
    yield Case("LinSpace", (array(2, F32), array(5, F32), array(4)))
    yield Case("InvertPermutation", (array([2, 0, 1]),))
    yield Case("ConcatV2", (reals(2, 3), reals(2, 1), array(-1)))
    yield Case("Concat", (array(0), reals(2, 3), reals(0, 3)))
    yield Case("ConcatOffset", (array(1), array([2, 3]), array([2, 4])))
    yield Case("Pack", (reals(2), reals(2)), {"axis": -1})
    yield Case("Unpack", (reals(2, 3),), {"num": 3, "axis": 1})
    yield Case("Unpack", (reals(2, 3),), {"num": 3, "axis": -1}, outputs=(1,))
    yield Case("Split", (array(1), reals(2, 6)), {"num_split": 3})
    yield Case("Split", (array(-1), reals(2, 6)), {"num_split": 2}, outputs=(1,))
    yield Case("SplitV", (reals(5, 2), array([1, -1, 2]), array(0)), {"num_split": 3})
    for key in (
        {"begin": [1, 0], "end": [3, 4], "strides": [1, 2]},
        {"begin": [-1, 0], "end": [0, 2], "strides": [1, 1], "shrink_axis_mask": 1, "begin_mask": 2},
        {"begin": [0, 0, 3], "end": [0, 0, 0], "strides": [1, 1, -1], "ellipsis_mask": 1, "new_axis_mask": 2},
        {"begin": [3, 1], "end": [0, 3], "strides": [-2, 1], "end_mask": 1},
    ):
        bounds = tuple(array(key[name]) for name in ("begin", "end", "strides"))
        masks = {name: value for name, value in key.items() if name.endswith("mask")}
        yield Case("StridedSlice", (reals(4, 5), *bounds), masks)
    bounds = array([1, 0]), array([3, 4]), array([1, 2])
    yield Case("StridedSliceGrad", (array([4, 5]), *bounds, reals(2, 2)))
    yield Case("Slice", (reals(4, 5), array([1, 0]), array([2, -1])))


def indexing() -> Iterator[Case]:
    for op, more in (("Gather", ()), ("GatherV2", (array(0),))):
        yield Case(op, (reals(5, 3), array([[0, 4], [2, 2]]), *more))
        yield Case(op, (reals(5, 3), array([0, -1, 5, 9], I64), *more))
        yield Case(op, (reals(5), array(3), *more))
        yield Case(op, (reals(5, 3), array([], I32), *more))
        yield Case(op, (integers(5, 2), array([1, 1]), *more))
    yield Case("GatherV2", (reals(2, 5, 3), array([[0, 4, 1]]), array(1)))
    yield Case("GatherV2", (reals(2, 5, 3), array([[0, 4, 1], [2, 2, 9]]), array(1)), {"batch_dims": 1})
    yield Case("GatherV2", (reals(2, 5, 3, 4), array([[0, 4, 1], [2, 2, 0]]), array(2)), {"batch_dims": 1})
    yield Case("GatherV2", (reals(2, 5, 3, 4), integers(2, 5, 2, low=0, high=4), array(3)), {"batch_dims": 2})
    yield Case("GatherNd", (reals(4, 5, 2), array([[0, 1], [3, 4], [0, 1], [4, 0]])))
    yield Case("GatherNd", (reals(4), array([[[1], [0]], [[1], [3]]])))
    yield Case("ScatterNd", (array([[0], [2], [0], [7]]), reals(4, 3), array([4, 3])))
    yield Case("ScatterNd", (array([[0, 1], [0, 1]]), reals(2), array([2, 2])))
    for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub"):
        same = op == "TensorScatterUpdate"
        yield Case(op, (reals(4, 3), array([[0], [2], [3 if same else 0]]), reals(3, 3)))
        yield Case(op, (reals(4, 3), array([[0, 2], [2, 9]]), reals(2)))
    for axis in (-1, 0, 1):
        yield Case("OneHot", (array([[0, 2], [-1, 9]]), array(3), reals(), reals()), {"axis": axis})
    yield Case("ReverseSequence", (reals(3, 4, 2), array([4, 0, 2])), {"seq_dim": 1, "batch_dim": 0})
    yield Case("ReverseSequence", (reals(4, 3, 2), array([4, 1, 2], I64)), {"seq_dim": 0, "batch_dim": 1})
    yield Case("SparseToDense", (array([[0, 1], [2, 0]]), array([3, 2]), reals(2), reals()))
    yield Case("SparseToDense", (array([0, 3]), array([4]), reals(), reals()))
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        yield Case(op, (array([0, 2]), array([[1], [2]]), reals(2, 3), reals(2, 1, 3)))
    for op in ("Sum", "Prod", "Max", "Min"):
        wide = f"UnsortedSegment{op}"
        yield Case(wide, (reals(6, 3), array([0, 2, 2, -1, 0, 5]), array(4)))
        yield Case(wide, (reals(2, 3), array([[0, 2, 2], [1, 1, -1]]), array(3)))
        yield Case(wide, (reals(0, 3), array([], I32), array(2)))
    yield Case("UnsortedSegmentSum", (reals(80, 4), integers(80, low=0, high=9), array(9)))
    yield Case("UnsortedSegmentSum", (integers(6, 3), array([0, 2, 2, -1, 0, 5]), array(4)))
    yield Case("UnsortedSegmentProd", (array([0, 2, 0, 0, 3], F32), array([0, 0, 1, 1, 2]), array(3)))
    yield Case("UnsortedSegmentMax", (array([1, 2, 2, 0], F32), array([0, 0, 0, 1]), array(2)))
    for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
        yield Case(op, (reals(3, 4), array([4, 0, 4, 2]), array([0, 0, 2, 2]), array(5)))
        yield Case(op, (reals(2), array([], I32), array([], I32), array(3)))
    yield Case("SumEqualRows", (reals(6, 3), array([4, 1, 4, 0, 1, 4], I64)))
    yield Case("SumEqualRows", (reals(3), array([4, 1, 0])))
    yield Case("SumEqualRows", (reals(0, 2), array([], I32)))


def reductions() -> Iterator[Case]:
    for op in ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"):
        yield Case(op, (reals(3, 4, 2), array([-1, 0])))
        yield Case(op, (reals(3, 4), array([1])), {"keep_dims": True})
        yield Case(op, (reals(3, 4), array(0)))
        yield Case(op, (reals(3, 4), array([], I32)))
        yield Case(op, (reals(), array([], I32)))
        yield Case(op, (reals(0, 4), array([0])), slopes=op not in ("Mean", "EuclideanNorm"))
        yield Case(op, (reals(3, 4, dtype=F64), array([0, 1])))
        if op != "EuclideanNorm":
            yield Case(op, (integers(3, 4), array([1])))
            yield Case(op, (SPECIAL.reshape(2, 4), array([1])), slopes=False)
    yield Case("Prod", (array([[0, 2, 3], [0, 0, 1], [1, 2, 3]], F32), array([1])))
    yield Case("Max", (array([[1, 2, 2], [3, 3, 3]], F32), array([1])))
    yield Case("Sum", (integers(3, 4, dtype=np.uint8, low=0, high=200), array([1])))
    for op in ("All", "Any"):
        yield Case(op, (flags(3, 4), array([1])))
        yield Case(op, (flags(0, 4), array([0])), {"keep_dims": True})
    for op in ("ArgMax", "ArgMin"):
        yield Case(op, (array([[1, 3, 3], [2, 0, 0]], F32), array(1)))
        yield Case(op, (integers(3, 4), array(-2)), {"output_type": dtypes.int32})
        yield Case(op, (SPECIAL, array(0)))
    for op in ("Cumsum", "Cumprod"):
        for exclusive in (False, True):
            for reverse in (False, True):
                attrs = {"exclusive": exclusive, "reverse": reverse}
                yield Case(op, (reals(3, 4, low=0.5), array(1)), attrs)
        yield Case(op, (integers(3, 2), array(0)))
        yield Case(op, (reals(0, 2), array(0)), {"exclusive": True})


def decompositions() -> Iterator[Case]:
    for shape in ((3, 3), (2, 4, 4), (0, 0), (1, 1)):
        for dtype in (F32, F64):
            matrix = reals(*shape, dtype=dtype) + 4 * np.eye(shape[-1], dtype=dtype)
            rhs = reals(*shape[:-1], 2, dtype=dtype)
            yield Case("Cholesky", (matrix @ matrix.swapaxes(-1, -2),))
            if matrix.size:  # JAX cannot compute the determinant of an empty matrix
                yield Case("MatrixDeterminant", (matrix,))
            for adjoint in (False, True):
                yield Case("MatrixInverse", (matrix,), {"adjoint": adjoint})
                yield Case("MatrixSolve", (matrix, rhs), {"adjoint": adjoint})
                for lower in (False, True):
                    yield Case("MatrixTriangularSolve", (matrix, rhs), {"adjoint": adjoint, "lower": lower})
    yield Case("Cholesky", (array([[2, 1 - 1j], [1 + 1j, 3]], np.complex64),), slopes=False)
    yield Case("MatrixInverse", (complexes(3, 3),), slopes=False)


def images() -> Iterator[Case]:
    for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
        for settings in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
            for size in ([6, 8], [2, 3], [1, 1], [3, 9]):
                yield Case(op, (reals(2, 3, 5, 2), array(size)), settings)
        yield Case(op, (integers(1, 4, 4, 3, dtype=np.uint8, low=0, high=255), array([7, 3])))


def matrices() -> Iterator[Case]:
    for left in (False, True):
        for right in (False, True):
            attrs = {"transpose_a": left, "transpose_b": right}
            a, b = reals(4, 3) if left else reals(3, 4), reals(2, 4) if right else reals(4, 2)
            yield Case("MatMul", (a, b), attrs)
            x, y = np.stack([a, a + 1]), np.stack([b, b - 1])
            yield Case("BatchMatMulV2", (x, y), {"adj_x": left, "adj_y": right})
    yield Case("MatMul", (reals(3, 4, dtype=BF16), reals(4, 2, dtype=BF16)))
    yield Case("MatMul", (integers(3, 4), integers(4, 2)))
    yield Case("MatMul", (reals(0, 4), reals(4, 2)))
    yield Case("MatMul", (reals(3, 0), reals(0, 2)))
    yield Case("SparseMatMul", (reals(3, 4, dtype=BF16), reals(4, 2)))
    yield Case("BatchMatMul", (reals(2, 3, 4), reals(2, 4, 2)))
    yield Case("BatchMatMulV2", (reals(5, 1, 3, 4), reals(2, 4, 2)))
    yield Case("BatchMatMulV2", (complexes(2, 3, 4), complexes(2, 2, 4)), {"adj_y": True})
    yield Case("Einsum", (reals(3, 4), reals(4, 2)), {"equation": "ij,jk->ik"})
    yield Case("Einsum", (reals(2, 3, 4), reals(4, 2)), {"equation": "bij,jk->bki"})
    yield Case("Einsum", (reals(3, 4), reals(3, 4)), {"equation": "ij,ij->"})
    yield Case("Einsum", (reals(3, 4),), {"equation": "ij->i"})
    yield Case("Einsum", (reals(3, 3),), {"equation": "ii->i"}, slopes=False)
    yield Case("MatrixBandPart", (reals(2, 3, 4), array(1, I64), array(0, I64)))
    yield Case("MatrixBandPart", (reals(3, 3), array(-1), array(0)))
    yield Case("Diag", (reals(2, 3),))
    yield Case("DiagPart", (reals(2, 3, 2, 3),))
    yield Case("MatrixDiag", (reals(2, 3),))
    yield Case("MatrixDiagPart", (reals(2, 3, 4),))
    yield Case("MatrixSetDiag", (reals(2, 3, 4), reals(2, 3)))
    yield Case("MatrixInverse", (reals(2, 3, 3) + 3 * np.eye(3, dtype=F32),), {"adjoint": True})
    yield Case("MatrixDeterminant", (reals(2, 3, 3),))
    yield Case("Cross", (reals(2, 3), reals(2, 3)))


def networks() -> Iterator[Case]:
    for op in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"):
        yield Case(op, (reals(3, 4, low=-8, high=8),))
        yield Case(op, (reals(2, dtype=F64),))
        yield Case(op, (SPECIAL,), slopes=op not in ("Softsign",))
    yield Case("Relu", (integers(3),))
    yield Case("LeakyRelu", (reals(3, 4),), {"alpha": 0.4})
    for op in ("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad", "EluGrad", "SeluGrad", "LeakyReluGrad"):
        yield Case(op, (reals(3, 4), reals(3, 4, low=-1, high=8)))
    for op in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"):
        yield Case(op, (reals(3, 4, low=0.3), reals(3, 4)))
    for op in ("Softmax", "LogSoftmax"):
        yield Case(op, (reals(2, 3, 4, low=-9, high=9),))
        yield Case(op, (reals(0, 4),))
        yield Case(op, (array([[np.nan, 1, 2], [1000, 0, -1000]], F32),), slopes=False)
    labels = reals(3, 4, low=0.1)
    for outputs in ((0,), (1,), (0, 1)):
        yield Case("SoftmaxCrossEntropyWithLogits", (reals(3, 4), labels), outputs=outputs)
        yield Case("SparseSoftmaxCrossEntropyWithLogits", (reals(3, 4), array([3, 0, 1])), outputs=outputs)
    yield Case("SparseSoftmaxCrossEntropyWithLogits", (reals(3, 4), array([3, -1, 4], I64)), outputs=(0,))
    yield Case("SparseSoftmaxCrossEntropyWithLogits", (reals(0, 4), array([], I32)))
    yield Case("L2Loss", (reals(3, 4),))
    yield Case("BiasAdd", (reals(2, 3, 4), reals(4)))
    yield Case("BiasAdd", (reals(2, 3, 4), reals(3)), {"data_format": "NCHW"})
    yield Case("BiasAddV1", (reals(3, 4), reals(4)))
    yield Case("BiasAddGrad", (reals(2, 3, 4),), {"data_format": "NCHW"})
    scores = array([[1, 3, 3, 0], [np.nan, 1, 2, 3], [4, 5, 6, 7]], F32)
    yield Case("InTopK", (scores, array([1, 2, 5])), {"k": 2})
    yield Case("InTopKV2", (scores, array([2, 3, 3]), array(1)))
    for k in (1, 3):
        yield Case("TopK", (reals(2, 5),), {"k": k})
        yield Case("TopKV2", (array([[1, 3, 3, 0], [2, 2, 2, 2]], F32), array(k)), outputs=(0,))
    yield Case("TopKV2", (integers(2, 5), array(2)))
    yield Case("LRN", (reals(2, 3, 3, 6),), {"depth_radius": 2, "bias": 1.5, "alpha": 0.3, "beta": 0.75})
    norm = reals(3, low=0.5), reals(3), reals(3), reals(3, low=0.5)
    for training in (False, True):
        attrs = {"is_training": training, "epsilon": 1e-3}
        yield Case("FusedBatchNorm", (reals(4, 2, 2, 3), *norm), attrs, outputs=(0,))
        yield Case("FusedBatchNormV3", (reals(2, 3, 2, 2), *norm), attrs | {"data_format": "NCHW"}, outputs=(0,))
        yield Case("FusedBatchNormV2", (reals(4, 2, 2, 3, dtype=F16), *norm), attrs, outputs=(0,))
        for op, more in (("", ()), ("V2", ()), ("V3", (reals(3),))):
            given = reals(4, 2, 2, 3), reals(4, 2, 2, 3), norm[0], norm[2], norm[3], *more
            yield Case(f"FusedBatchNormGrad{op}", given, attrs)


def _bytes(numbers: Any, width: int = 1) -> Any:
    return np.ascontiguousarray(np.asarray(numbers, "<i8").view(np.uint8).reshape(-1, 8)[:, :width])


def routing() -> Iterator[Case]:
    places, routed = array([[0, 3], [4, 0]]), (array([2, -1, 0], I64), array([5, 1], I64))
    for halves in (False, True):
        yield Case("GatherRouted", (reals(5, 3), array([2, -1, 4], I64)), {"halves": halves})
        rows = (reals(3, 2, dtype=BF16 if halves else F32), reals(2, 2, dtype=BF16 if halves else F32))
        yield Case("JoinRouted", (places, *rows), {"halves": halves})
        yield Case("SplitRouted", (reals(2, 2, 3), places, *routed), {"halves": halves})
    yield Case("UpdateRows", (array([1, -1]),))
    for part in (0, 1):
        yield Case("RowsOfPart", (reals(2, 2, 3), places, *routed), {"part": part})
    yield Case("PackRows", (reals(2, 3), reals(1, 3)))
    yield Case("UnpackRows", (reals(5, 3), array([[2], [9], [3]], I64)), {"numbers": (0, 2)})
    sizes = array([[0, 2, 2], [0, 9, 9], [0, 2, 3]], I64)
    yield Case("UnpackRows", (reals(10), sizes), {"numbers": (0, 2), "columns": (1, 2)})
    nothing, no_weights = np.empty((0, 1), np.uint8), np.empty(0, F32)
    asked = array([4, 0, 2, -1], I64)
    numbers, counts, weights = _bytes([0, 1, 1, 2, 0], 2), _bytes([2, 0, 2]), reals(5)
    for told in ((nothing, nothing, no_weights), (numbers, counts, no_weights), (numbers, counts, weights)):
        yield Case("GatherBags", (reals(5, 3), asked, *told))
        grad = reals(3 if len(told[1]) else 4, 3)
        yield Case("SpreadBags", (grad, asked, *told))
    ids = array([0, 3, 4, 0, 1]), array([0, 0, 1, 2, 3])
    divisors = array([2, 1, 1], F32)
    for factors in (no_weights, reals(5)):
        settings = {"combiner": "mean", "weighted": bool(factors.size)}
        yield Case("JoinBags", (*ids, factors, divisors, nothing, reals(3, 2), reals(2, 2, dtype=F32)), settings)
        yield Case("JoinBags", (*ids, factors, divisors, counts, reals(3, 2), reals(3, 2)), settings)
        yield Case("SplitBags", (reals(3, 2), *ids, factors, divisors, nothing, *routed))
    yield Case("SplitBags", (reals(3, 2), *ids, no_weights, divisors, counts, *routed))
    for combiner in ("sum", "mean", "sqrtn"):
        found = reals(3, 2), reals(2, 2)
        inputs = (reals(3, 2), reals(3, 2), *ids, reals(5), divisors, *found)
        yield Case("GradientOfBagWeights", inputs, {"combiner": combiner})


def sparse() -> Iterator[Case]:
    at, shape = array([[0, 1], [0, 3], [2, 1]], I64), array([3, 4], I64)
    for adjoint_a in (False, True):
        for adjoint_b in (False, True):
            sizes = (2, 3 if adjoint_a else 4) if adjoint_b else (3 if adjoint_a else 4, 2)
            attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
            yield Case("SparseTensorDenseMatMul", (at, reals(3), shape, reals(*sizes)), attrs)
    yield Case("SparseTensorDenseMatMul", (at[:0], reals(0), shape, reals(4, 2)))
    for op in ("Add", "Mul", "Div"):
        yield Case(f"SparseDenseCwise{op}", (at, reals(3), shape, reals(1, 4, low=0.5)))
    yield Case("SparseTensorDenseAdd", (at, reals(3), shape, reals(3, 4)))


def special() -> Iterator[Case]:
    for turns in (0, 1, 5, 8):
        yield Case("RoundedTrips", (array(turns),))
    for op in ("Erf", "Erfc", "LogNdtr", "BesselI0e", "BesselI1e"):
        yield Case(op, (reals(3, 4),))
        yield Case(op, (reals(dtype=F64),))
    for op in ("Lgamma", "Digamma"):
        yield Case(op, (reals(3, 4, low=0.5, high=5),))
    yield Case("Ndtri", (reals(3, 4, low=0.1, high=0.9),))
    for op in ("Igamma", "Igammac", "Zeta"):
        yield Case(op, (reals(3, 4, low=1.5, high=3), reals(4, low=1, high=3)))
    yield Case("Betainc", (reals(3, low=1), reals(3, low=1), reals(3, low=0.2, high=0.8)))
    for reverse in (False, True):
        attrs = {"exclusive": reverse, "reverse": reverse}
        yield Case("CumulativeLogsumexp", (reals(3, 4), array(1)), attrs)


def blocks() -> Iterator[Case]:
    yield Case("SpaceToDepth", (reals(2, 4, 6, 3),), {"block_size": 2})
    yield Case("DepthToSpace", (reals(2, 2, 3, 8),), {"block_size": 2})
    borders = array([[1, 0], [2, 1]])
    yield Case("SpaceToBatchND", (reals(2, 3, 6, 2), array([2, 3]), borders))
    yield Case("BatchToSpaceND", (reals(12, 2, 3, 2), array([2, 3]), borders))
    yield Case("TensorArray", (array(3),), {"dtype": dtypes.float32, "element_shape": TensorShape([2])})
    yield Case("TensorArray", (array(3),), {"dtype": dtypes.float32})
    yield Case("TensorArrayWrite", (reals(3, 2), array(1), reals(2)))
    yield Case("TensorArrayWrite", (reals(3, 0), array(2), reals(2)))
    yield Case("TensorArrayWrite", (reals(3, 2), array(4), reals(2)), {"grows": True})
    yield Case("AdjustContrastv2", (reals(2, 3, 4, 3), array(1.5, F32)))


def convolutions() -> Iterator[Case]:
    for channels, rate, step, padding in ((2, 1, 1, "SAME"), (2, 2, 1, "VALID"), (20, 1, 2, "SAME")):
        steps, rates = [1, step, step, 1], [1, rate, rate, 1]
        attrs: dict[str, Any] = {"strides": steps, "padding": padding, "dilations": rates}
        yield Case("Conv2D", (reals(2, 7, 6, channels), reals(3, 2, channels, 4)), attrs)
        grad = reals(2, 3, 4, 4) if padding == "VALID" else reals(2, -(-7 // step), 6 // step, 4)
        sizes = array([2, 7, 6, channels])
        yield Case("Conv2DBackpropInput", (sizes, reals(3, 2, channels, 4), grad), attrs)
        yield Case("Conv2DBackpropFilter", (reals(2, 7, 6, channels), array([3, 2, channels, 4]), grad), attrs)
    yield Case("Conv2D", (reals(2, 5, 4, 3), reals(1, 1, 3, 4)), {"strides": [1] * 4, "padding": "SAME"})
    first = {"strides": [1, 1, 2, 1], "padding": "SAME", "data_format": "NCHW"}
    yield Case("Conv2D", (reals(2, 3, 5, 4), reals(3, 3, 3, 2)), first)
    for step, padding, data_format in ((1, "SAME", "NDHWC"), (2, "VALID", "NDHWC"), (1, "SAME", "NCDHW")):
        steps = [1, step, step, 1, 1] if data_format == "NDHWC" else [1, 1, step, 1, 1]
        attrs = {"strides": steps, "padding": padding, "data_format": data_format}
        volume = reals(2, 5, 4, 6, 3) if data_format == "NDHWC" else reals(2, 3, 5, 4, 6)
        yield Case("Conv3D", (volume, reals(3, 2, 2, 3, 4)), attrs)
        grad = reals(2, 5, 4, 6, 4) if padding == "SAME" else reals(2, 2, 2, 5, 4)
        if data_format == "NDHWC":
            yield Case("Conv3DBackpropInputV2", (array(list(volume.shape)), reals(3, 2, 2, 3, 4), grad), attrs)
            yield Case("Conv3DBackpropFilterV2", (volume, array([3, 2, 2, 3, 4]), grad), attrs)
    for padding in ("SAME", "VALID"):
        attrs = {"strides": [1, 2, 2, 1], "padding": padding}
        yield Case("DepthwiseConv2dNative", (reals(2, 6, 5, 3), reals(3, 2, 3, 2)), attrs)
        attrs = attrs | {"ksize": [1, 3, 2, 1]}
        image, pooled = reals(2, 6, 5, 3), reals(2, 2, 2, 3) if padding == "VALID" else reals(2, 3, 3, 3)
        for op in ("MaxPool", "AvgPool"):
            yield Case(op, (image,), attrs)
            yield Case(op, (np.round(image),), attrs | {"strides": [1, 1, 1, 1]})
            yield Case(
                f"{op}3D",
                (reals(1, 3, 4, 4, 2),),
                {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": padding},
            )
        yield Case("AvgPoolGrad", (array(image.shape), pooled), attrs)
    yield Case("MaxPool", (integers(1, 4, 4, 1),), {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"})
    once = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    image = reals(1, 4, 4, 1)
    highest = image.reshape(1, 2, 2, 2, 2, 1).max((2, 4))
    yield Case("MaxPoolGrad", (image, highest, reals(1, 2, 2, 1)), once)
    once = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    image = reals(1, 4, 4, 2, 1)
    yield Case(
        "MaxPool3DGrad", (image, image.reshape(1, 2, 2, 2, 2, 1, 2, 1).max((2, 4, 6)), reals(1, 2, 2, 1, 1)), once
    )
    yield Case("AvgPool3DGrad", (array([1, 4, 4, 2, 1]), reals(1, 2, 2, 1, 1)), once)


def large_products() -> Iterator[Case]:
    """Products that are computed in several pieces."""
    for left, right in (((300, 300), (300, 301)), ((90, 500), (500, 701)), ((9, 150, 130), (9, 130, 131))):
        op = "MatMul" if len(left) == 2 else "BatchMatMulV2"
        x, y = (reals(*shape).astype(np.float64) for shape in (left, right))
        yield Case(op, (x, y))
        flags = ("transpose_a", "transpose_b") if op == "MatMul" else ("adj_x", "adj_y")
        turned = [np.ascontiguousarray(each.swapaxes(-1, -2)) for each in (x, y)]
        yield Case(op, (turned[0], turned[1]), dict.fromkeys(flags, True))


def large_convolutions() -> Iterator[Case]:
    """Convolutions and pools that are computed in several pieces: whole images, and rows of one image."""

    def real64(*shape: int) -> Any:
        return reals(*shape).astype(np.float64)

    for shape, channels, step in (((9, 12, 11, 24), 8, 1), ((1, 48, 50, 20), 8, 1), ((5, 33, 40, 12), 24, 2)):
        attrs: dict[str, Any] = {"strides": [1, step, step, 1], "padding": "SAME"}
        filters = real64(3, 3, shape[-1], channels)
        grad = real64(shape[0], -(-shape[1] // step), -(-shape[2] // step), channels)
        yield Case("Conv2D", (real64(*shape), filters), attrs)
        yield Case("Conv2DBackpropInput", (array(list(shape)), filters, grad), attrs)
        yield Case("DepthwiseConv2dNative", (real64(*shape), real64(3, 3, shape[-1], 1)), attrs)
        yield Case("MaxPool", (real64(*shape),), attrs | {"ksize": [1, 3, 3, 1]})
        yield Case("AvgPool", (real64(*shape),), attrs | {"ksize": [1, 3, 3, 1]})
    # Few channels of a transposed convolution are added separately.
    attrs = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    yield Case("Conv2DBackpropInput", (array([2, 9, 8, 3]), real64(5, 5, 3, 6), real64(2, 5, 4, 6)), attrs)
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "ksize": [1, 3, 3, 1]}
    # Several elements of a window are equal.
    yield Case("MaxPool", (np.round(real64(3, 40, 41, 20)),), attrs)


_SCALARS = {
    "lr": 0.1, "alpha": 0.1, "l1": 0.02, "l2": 0.03, "l2_shrinkage": 0.01, "lr_power": -0.5, "rho": 0.9,
    "momentum": 0.8, "epsilon": 1e-3, "beta1_power": 0.81, "beta2_power": 0.99, "beta1": 0.9, "beta2": 0.999,
}  # fmt: skip
_APPLY = {
    "GradientDescent": "var alpha grad",
    "Momentum": "var accum lr grad momentum",
    "Adagrad": "var accum lr grad",
    "AdagradDA": "var accum accum grad lr l1 l2 global_step",
    "Adadelta": "var accum accum lr rho epsilon grad",
    "Adam": "var accum accum beta1_power beta2_power lr beta1 beta2 epsilon grad",
    "RMSProp": "var accum accum lr rho momentum epsilon grad",
    "CenteredRMSProp": "var small accum accum lr rho momentum epsilon grad",
    "Ftrl": "var accum accum grad lr l1 l2 lr_power",
    "FtrlV2": "var accum accum grad lr l1 l2 l2_shrinkage lr_power",
    "ProximalGradientDescent": "var alpha l1 l2 grad",
    "ProximalAdagrad": "var accum lr l1 l2 grad",
}
_SPARSE_APPLY = {
    "Momentum": "var accum lr grad indices momentum",
    "Adagrad": "var accum lr grad indices",
    "AdagradDA": "var accum accum grad indices lr l1 l2 global_step",
    "Adadelta": "var accum accum lr rho epsilon grad indices",
    "Adam": "var accum accum beta1_power beta2_power lr beta1 beta2 epsilon grad indices",
    "RMSProp": "var accum accum lr rho momentum epsilon grad indices",
    "CenteredRMSProp": "var small accum accum lr rho momentum epsilon grad indices",
    "Ftrl": "var accum accum grad indices lr l1 l2 lr_power",
    "FtrlV2": "var accum accum grad indices lr l1 l2 l2_shrinkage lr_power",
    "ProximalGradientDescent": "var alpha l1 l2 grad indices",
    "ProximalAdagrad": "var accum lr l1 l2 grad indices",
}


def _given(names: str, dtype: Any, rows: int | None, **other: float) -> tuple[Any, ...]:
    found: dict[str, Any] = {
        "var": lambda: reals(5, 3, dtype=dtype),
        "accum": lambda: reals(5, 3, low=0.5, dtype=dtype),
        "small": lambda: reals(5, 3, low=0, high=0.1, dtype=dtype),
        "grad": lambda: reals(5 if rows is None else rows, 3, dtype=dtype),
        "indices": lambda: array([4, 9, 0, -1, 2, 0][:rows], I64),
        "global_step": lambda: array(3, I64),
    }
    scalars = _SCALARS | other
    return tuple(found[name]() if name in found else array(scalars[name], dtype) for name in names.split())


def updates() -> Iterator[Case]:
    """Yields calls of operations that change variables; the variables are the first inputs."""
    for op, names in _APPLY.items():
        for dtype in (F32, F64):
            yield Case(f"Apply{op}", _given(names, dtype, None))
    for op, names in _SPARSE_APPLY.items():
        for rows in (5, 0):
            yield Case(f"SparseApply{op}", _given(names, F32, rows))
    for attrs in ({"use_nesterov": True}, {"use_locking": True}):
        yield Case("ApplyMomentum", _given(_APPLY["Momentum"], F32, None), attrs)
        yield Case("SparseApplyMomentum", _given(_SPARSE_APPLY["Momentum"], F32, 5), attrs)
        yield Case("ApplyAdam", _given(_APPLY["Adam"], F32, None), attrs)
    for op in ("Ftrl", "ProximalAdagrad", "AdagradDA"):
        yield Case(f"Apply{op}", _given(_APPLY[op], F32, None, l1=0, lr_power=-0.4))
    yield Case("ApplyAdagrad", _given(_APPLY["Adagrad"], F32, None), {"update_slots": False})
    for value in (reals(3, 4), integers(3, 4), reals(3, 4, dtype=BF16)):
        yield Case("AssignAdd", (value, value + value))
        yield Case("AssignSub", (value, value))
    for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
        once = kind == "Update"
        at = array([[2, 0], [7, 1 if once else 2]])
        yield Case(f"Scatter{kind}", (reals(4, 3), at, reals(2, 2, 3, low=0.5)))
        yield Case(f"Scatter{kind}", (integers(4, 3), at, integers(2, 2, 3, low=1)))
        yield Case(f"Scatter{kind}", (reals(4), array([3, -1], I64), reals(low=0.5)))
    for kind in ("Update", "Add", "Sub"):
        places = array([[0, 2], [2, 9], [1, 1]])
        yield Case(f"ScatterNd{kind}", (reals(4, 3), places, reals(3)))
        yield Case(f"ScatterNd{kind}", (reals(4, 3), array([[1], [-2]]), reals(2, 3)))
    bounds = array([1, 0]), array([3, 4]), array([1, 2])
    yield Case("StridedSliceAssign", (reals(4, 5), *bounds, reals(2, 2)))
    yield Case("StridedSliceAssign", (reals(4, 5), *bounds, reals(2)), {"shrink_axis_mask": 1})


def all_cases() -> list[Case]:
    return [case for family in FAMILIES for case in family()]


FAMILIES = (
    elementwise,
    arrays,
    indexing,
    reductions,
    decompositions,
    images,
    matrices,
    networks,
    routing,
    sparse,
    special,
    blocks,
    convolutions,
    large_convolutions,
    large_products,
)
