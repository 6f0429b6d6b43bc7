"""How many dimensions operations need their inputs to have, so that a wrong one is refused when the graph is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headwater.registry import Infer, Inference, Spec

_SCALAR: Final = (0, 0)
_VECTOR: Final = (1, 1)
_MATRIX: Final = (2, 2)
_IMAGES: Final = (4, 4)
_MATRICES: Final = (2, None)

Range = tuple[int, int | None]
"""The least and the greatest number of dimensions; None where there is no greatest."""

_RANKS: Final[Mapping[str, Mapping[int, Range]]] = {
    "CropAndResize": {0: _IMAGES, 1: _MATRIX, 2: _VECTOR, 3: _VECTOR},
    "DepthToSpace": {0: _IMAGES},
    "ExtractImagePatches": {0: _IMAGES},
    "Fill": {0: _VECTOR, 1: _SCALAR},
    "Fingerprint": {0: (1, None), 1: _SCALAR},
    "InvertPermutation": {0: _VECTOR},
    "LRN": {0: _IMAGES},
    "LinSpace": {0: _SCALAR, 1: _SCALAR, 2: _SCALAR},
    "MatrixBandPart": {0: _MATRICES},
    "MatrixDiag": {0: (1, None)},
    "MatrixDiagPart": {0: _MATRICES},
    "MatrixDiagPartV2": {0: _MATRICES},
    "Multinomial": {0: _MATRIX, 1: _SCALAR},
    "OneHot": {1: _SCALAR, 2: _SCALAR, 3: _SCALAR},
    "Range": {0: _SCALAR, 1: _SCALAR, 2: _SCALAR},
    **{f"Resize{kind}": {0: _IMAGES, 1: _VECTOR} for kind in ("Area", "Bicubic", "Bilinear", "NearestNeighbor")},
    "ReverseSequence": {1: _VECTOR},
    "ReverseV2": {1: _VECTOR},
    **{f"Segment{kind}": {1: _VECTOR} for kind in ("Max", "Mean", "Min", "Prod", "Sum")},
    "SdcaFprint": {0: _VECTOR},
    "SpaceToDepth": {0: _IMAGES},
    **{f"SparseSegment{kind}": {1: _VECTOR, 2: _VECTOR} for kind in ("Mean", "SqrtN", "Sum")},
    "SparseToDense": {1: _VECTOR},
    "StatelessIf": {0: _SCALAR},
    "If": {0: _SCALAR},
    **{f"UnsortedSegment{kind}": {2: _SCALAR} for kind in ("Max", "Min", "Prod", "Sum")},
}


def with_ranks(op_type: str, infer: Infer) -> Infer:
    """``infer``, which gives the specs of an operation's outputs, after a look at the ranks of its inputs.

    The function raises ValueError where one does not fit.
    """
    ranks = _RANKS.get(op_type)
    if ranks is None:
        return infer

    def checked(inference: Inference) -> Sequence[Spec]:
        for index, (least, greatest) in ranks.items():
            dims = inference.inputs[index].dims
            if dims is None:
                continue
            if len(dims) < least or (greatest is not None and len(dims) > greatest):
                wanted = f"rank {least}" if least == greatest else f"at least rank {least}"
                raise ValueError(f"Shape must be {wanted} but is rank {len(dims)} for input {index} of {op_type!r}")
        return infer(inference)

    return checked
