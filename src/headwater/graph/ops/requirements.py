"""Requirements of operations on inputs and attributes, checked when the graph is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from headwater.dtypes import (
    VALUE_DTYPES,
    DType,
    as_dtype,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
    uint16,
)
from headwater.graph.registry import Infer, Inference, Spec
from headwater.shapes import merge_dims

_SCALAR: Final = (0, 0)
_VECTOR: Final = (1, 1)
_MATRIX: Final = (2, 2)
_IMAGES: Final = (4, 4)
_MATRICES: Final = (2, None)

Range = tuple[int, int | None]
"""The minimum and the maximum number of dimensions; None for no maximum."""

_RANKS: Final[Mapping[str, Mapping[int, Range]]] = {
    "AdjustContrastv2": {0: (3, None), 1: _SCALAR},
    "BatchDatasetV2": {1: _SCALAR},
    "BroadcastTo": {1: _VECTOR},
    "ConcatV2": {-1: _SCALAR},
    "CropAndResize": {0: _IMAGES, 1: _MATRIX, 2: _VECTOR, 3: _VECTOR},
    **{f"Decode{kind}": {0: _SCALAR} for kind in ("Bmp", "Gif", "Image", "Jpeg", "Png")},
    "DepthToSpace": {0: _IMAGES},
    "Diag": {0: (1, None)},
    "ExtractGlimpse": {0: _IMAGES, 1: _VECTOR, 2: _MATRIX},
    "ExtractImagePatches": {0: _IMAGES},
    **{
        f"{kind}FFT{suffix}": {0: (rank, None)}
        for kind in ("", "I", "IR", "R")
        for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))
    },
    "GatherNd": {1: (1, None)},
    "Fill": {0: _VECTOR, 1: _SCALAR},
    "Fingerprint": {0: (1, None), 1: _SCALAR},
    "InvertPermutation": {0: _VECTOR},
    "LRN": {0: _IMAGES},
    "ListDiff": {0: _VECTOR, 1: _VECTOR},
    "LinSpace": {0: _SCALAR, 1: _SCALAR, 2: _SCALAR},
    "MatrixDiag": {0: (1, None)},
    "MatrixDiagPart": {0: _MATRICES},
    "MatrixSetDiag": {0: _MATRICES, 1: (1, None)},
    "MatrixDiagPartV2": {0: _MATRICES},
    "Multinomial": {0: _MATRIX, 1: _SCALAR},
    **{kind: {1: _MATRIX} for kind in ("MirrorPad", "Pad", "PadV2")},
    "OneHot": {1: _SCALAR, 2: _SCALAR, 3: _SCALAR},
    "ParseSingleExample": {0: _SCALAR},
    "Range": {0: _SCALAR, 1: _SCALAR, 2: _SCALAR},
    **{f"Resize{kind}": {0: _IMAGES, 1: _VECTOR} for kind in ("Area", "Bicubic", "Bilinear", "NearestNeighbor")},
    "RegexFullMatch": {1: _SCALAR},
    "RegexReplace": {1: _SCALAR, 2: _SCALAR},
    "ReverseSequence": {1: _VECTOR},
    "ReverseV2": {1: _VECTOR},
    **{f"Segment{kind}": {1: _VECTOR} for kind in ("Max", "Mean", "Min", "Prod", "Sum")},
    "ScatterNd": {2: _VECTOR},
    "SdcaFprint": {0: _VECTOR},
    "SpaceToDepth": {0: _IMAGES},
    **{f"SparseSegment{kind}": {1: _VECTOR, 2: _VECTOR} for kind in ("Mean", "SqrtN", "Sum")},
    "SparseToDense": {1: _VECTOR},
    "StringSplit": {0: _VECTOR, 1: _SCALAR},
    "StringSplitV2": {0: _VECTOR, 1: _SCALAR},
    "TopKV2": {0: (1, None), 1: _SCALAR},
    "StatelessIf": {0: _SCALAR},
    "If": {0: _SCALAR},
    **{f"UnsortedSegment{kind}": {2: _SCALAR} for kind in ("Max", "Min", "Prod", "Sum")},
}


_INTEGERS: Final[Mapping[str, Sequence[int]]] = {
    **dict.fromkeys(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum", "ExpandDims", "ReverseV2", "Transpose"), (1,)),
    **{f"UnsortedSegment{kind}": (2,) for kind in ("Max", "Min", "Prod", "Sum")},
    "CountUpTo": (0,),
}
"""Inputs that must be int32 or int64."""

_NOT_NEGATIVE: Final[Mapping[str, int]] = {
    "Bincount": 1,
    "Fill": 0,
    "Multinomial": 1,
    "QueueDequeueManyV2": 1,
    "QueueDequeueUpToV2": 1,
    "TopKV2": 1,
    **{f"UnsortedSegment{kind}": 2 for kind in ("Max", "Min", "Prod", "Sum")},
}
"""An input whose numbers must be at least 0; checked if the graph determines them."""

_POSITIVE: Final[Mapping[str, tuple[int, str]]] = {"HistogramFixedWidth": (2, "nbins"), "LinSpace": (2, "num")}
"""An input that must be greater than 0, and its name; checked if the graph determines the value."""

_MINIMUM: Final[Mapping[str, Mapping[str, int]]] = {
    **{
        f"{kind}CandidateSampler": {"num_true": 1, "num_sampled": 1, "range_max": 1}
        for kind in ("All", "FixedUnigram", "LearnedUnigram", "LogUniform", "Uniform")
    },
    "CTCBeamSearchDecoder": {"beam_width": 1, "top_paths": 1},
    "DepthToSpace": {"block_size": 2},
    "DynamicPartition": {"num_partitions": 1},
    "ImageSummary": {"max_images": 1},
    "SpaceToDepth": {"block_size": 2},
    "Split": {"num_split": 1},
    "SplitV": {"num_split": 1},
    "StringToHashBucket": {"num_buckets": 1},
    "StringToHashBucketFast": {"num_buckets": 1},
    "StringToHashBucketStrong": {"num_buckets": 1},
}
"""The minimum of an attribute."""

_LENGTHS: Final[Mapping[str, tuple[int, int]]] = {
    "Conv2DBackpropInput": (0, 4),
    "Conv3DBackpropInputV2": (0, 5),
    "HistogramFixedWidth": (1, 2),
}
"""An input that must be a vector, and its required number of elements."""

_CHANNELS: Final[Mapping[str, int]] = {"HSVToRGB": 3, "RGBToHSV": 3}
"""The required last dimension of the first input."""

_PAIRED: Final = {f"SparseSegment{kind}": (1, 2) for kind in ("Mean", "SqrtN", "Sum")}
"""Two inputs that must have equal first dimensions."""

_NUMBERS: Final = tuple(dtype for dtype in VALUE_DTYPES if dtype.is_floating or dtype.is_integer)
_ALLOWED: Final[Mapping[str, Mapping[str, Sequence[DType]]]] = {
    "ArgMax": {"output_type": (int32, int64)},
    "ArgMin": {"output_type": (int32, int64)},
    "DecodeRaw": {"out_type": (*_NUMBERS, bool_, complex64, complex128)},
    "StringToNumber": {"out_type": (float32, float64, int32, int64)},
}
"""The element types that an attribute may have as its value."""

_IMAGE_TYPES: Final[Mapping[str, tuple[int, Sequence[DType]]]] = {
    "EncodePng": (0, (uint8, uint16)),
    "ImageSummary": (1, (uint8, float32, float16, float64)),
}
"""An input and its allowed element types."""


def with_requirements(op_type: str, infer: Infer) -> Infer:
    """Wraps ``infer``, which returns the specs of an operation's outputs, with a check of the operation's requirements.

    The check raises ValueError or TypeError.
    """
    checks = [check for check, table in _CHECKS if op_type in table]
    if not checks:
        return infer

    def checked(inference: Inference) -> Sequence[Spec]:
        for check in checks:
            check(inference)
        return infer(inference)

    return checked


def _check_ranks(inference: Inference) -> None:
    for index, (least, greatest) in _RANKS[inference.op_type].items():
        dims = inference.inputs[index].dims if -len(inference.inputs) <= index < len(inference.inputs) else None
        if dims is None:
            continue
        if len(dims) < least or (greatest is not None and len(dims) > greatest):
            wanted = f"rank {least}" if least == greatest else f"at least rank {least}"
            raise ValueError(
                f"Shape must be {wanted} but is rank {len(dims)} for input {index} of {inference.op_type!r}"
            )


def _check_lengths(inference: Inference) -> None:
    index, length = _LENGTHS[inference.op_type]
    merge_dims(inference.inputs[index].dims, (length,))


def _check_channels(inference: Inference) -> None:
    dims, wanted = inference.inputs[0].dims, _CHANNELS[inference.op_type]
    if dims and dims[-1] not in (None, wanted):
        raise ValueError(f"Dimension must be {wanted} but is {dims[-1]}")


def _check_paired(inference: Inference) -> None:
    first, second = (inference.inputs[index].dims for index in _PAIRED[inference.op_type])
    if first is not None and second is not None:
        merge_dims(first[:1], second[:1])


def _check_integers(inference: Inference) -> None:
    for index in _INTEGERS[inference.op_type]:
        _check_type(f"input {index}", inference.inputs[index].dtype.base_dtype, (int32, int64))


def _check_image_types(inference: Inference) -> None:
    index, allowed = _IMAGE_TYPES[inference.op_type]
    _check_type(f"input {index}", inference.inputs[index].dtype.base_dtype, allowed)


def _check_allowed(inference: Inference) -> None:
    for name, allowed in _ALLOWED[inference.op_type].items():
        if name in inference.attrs:
            _check_type(f"parameter {name!r}", as_dtype(inference.attrs[name]), allowed)


def _check_type(what: str, dtype: DType, allowed: Sequence[DType]) -> None:
    if dtype not in allowed:
        names = ", ".join(each.name for each in allowed)
        raise TypeError(f"Value passed to {what} has DataType {dtype.name} not in list of allowed values: {names}")


def _check_not_negative(inference: Inference) -> None:
    index = _NOT_NEGATIVE[inference.op_type]
    value = inference.constant(index)
    if value is not None and value.size and value.min() < 0:
        raise ValueError(f"Dimension size, given by input {index}, must be non-negative but is {value.min()}")


def _check_positive(inference: Inference) -> None:
    index, name = _POSITIVE[inference.op_type]
    value = inference.constant(index)
    if value is not None and value.size and value.min() < 1:
        raise ValueError(f"Requires {name} > 0: {value.min()}")


def _check_least(inference: Inference) -> None:
    for name, least in _MINIMUM[inference.op_type].items():
        value = inference.attrs.get(name, least)
        if value < least:
            raise ValueError(f"Attr {name!r} of {inference.op_type!r} Op passed {value} less than minimum {least}.")


_CHECKS: Final[Sequence[tuple[Callable[[Inference], None], Mapping[str, object]]]] = (
    (_check_ranks, _RANKS),
    (_check_lengths, _LENGTHS),
    (_check_channels, _CHANNELS),
    (_check_paired, _PAIRED),
    (_check_integers, _INTEGERS),
    (_check_image_types, _IMAGE_TYPES),
    (_check_allowed, _ALLOWED),
    (_check_not_negative, _NOT_NEGATIVE),
    (_check_positive, _POSITIVE),
    (_check_least, _MINIMUM),
)
