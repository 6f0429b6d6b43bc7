"""Positions of outputs, for references by name (``node:output:index``) in functions of a ``GraphDef``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headwater.tensorboard_protos import NodeDef

_SPARSE: Final = "output_indices output_values output_shape"
_SET: Final = "result_indices result_values result_shape"
_SAMPLED: Final = "sampled_candidates true_expected_count sampled_expected_count"
_NORMALISED: Final = "y batch_mean batch_variance reserve_space_1 reserve_space_2"
_NORM_GRADIENT: Final = "x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4"
_PARSED: Final = "sparse_indices*{0} sparse_values*sparse_types sparse_shapes*{0} dense_values*Tdense"
_POOLED: Final = "output row_pooling_sequence col_pooling_sequence"
_QUANTIZED: Final = "output min_output max_output"

_NAMES: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "AllCandidateSampler",
            "FixedUnigramCandidateSampler",
            "LearnedUnigramCandidateSampler",
            "LogUniformCandidateSampler",
            "UniformCandidateSampler",
        ),
        _SAMPLED,
    ),
    "BroadcastGradientArgs": "r0 r1",
    "CTCBeamSearchDecoder": (
        "decoded_indices*top_paths decoded_values*top_paths decoded_shape*top_paths log_probability"
    ),
    "CTCGreedyDecoder": "decoded_indices decoded_values decoded_shape log_probability",
    "CTCLoss": "loss gradient",
    "CombinedNonMaxSuppression": "nmsed_boxes nmsed_scores nmsed_classes valid_detections",
    "ComputeAccidentalHits": "indices ids weights",
    "DecodeProtoV2": "sizes values*output_types",
    "DecodeWav": "audio sample_rate",
    **dict.fromkeys(("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation"), _SET),
    **dict.fromkeys(("DeserializeSparse", "TakeManySparseFromTensorsMap"), "sparse_indices sparse_values sparse_shape"),
    "FakeQuantWithMinMaxVarsGradient": "backprops_wrt_input backprop_wrt_min backprop_wrt_max",
    "FakeQuantWithMinMaxVarsPerChannelGradient": "backprops_wrt_input backprop_wrt_min backprop_wrt_max",
    **dict.fromkeys(("FractionalAvgPool", "FractionalMaxPool"), _POOLED),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2"), _NORMALISED),
    "FusedBatchNormV3": f"{_NORMALISED} reserve_space_3",
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2"), _NORM_GRADIENT),
    "FusedBatchNormGradV3": "x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5",
    "ListDiff": "out idx",
    "LogMatrixDeterminant": "sign log_abs_determinant",
    "LookupTableExportV2": "keys values",
    "Lu": "lu p",
    "MaxPoolWithArgmax": "output argmax",
    "Merge": "output value_index",
    "NonMaxSuppressionV4": "selected_indices valid_outputs",
    "NonMaxSuppressionV5": "selected_indices selected_scores valid_outputs",
    "ParseExample": _PARSED.format("Nsparse"),
    "ParseExampleV2": (
        f"{_PARSED.format('num_sparse')} ragged_values*ragged_value_types ragged_row_splits*ragged_split_types"
    ),
    "ParseSingleExample": _PARSED.format("num_sparse"),
    "Qr": "q r",
    **dict.fromkeys(("QuantizedAvgPool", "QuantizedConv2D", "QuantizedMaxPool"), _QUANTIZED),
    "QuantizeV2": "output output_min output_max",
    "QuantizedReluX": "activations min_activations max_activations",
    "RaggedRange": "rt_nested_splits rt_dense_values",
    "ReaderReadUpToV2": "keys values",
    "ReaderReadV2": "key value",
    "SampleDistortedBoundingBoxV2": "begin size bboxes",
    "Eig": "e v",
    "SelfAdjointEigV2": "e v",
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), "loss backprop"),
    "SparseAccumulatorTakeGradient": "indices values shape",
    "SparseAdd": "sum_indices sum_values sum_shape",
    "SparseAddGrad": "a_val_grad b_val_grad",
    **dict.fromkeys(("SparseConcat", "SparseCross", "SparseFeatureCross", "SparseSlice"), _SPARSE),
    "SparseFillEmptyRows": "output_indices output_values empty_row_indicator reverse_index_map",
    **dict.fromkeys(("SparseReorder", "SparseSparseMaximum", "SparseSparseMinimum"), "output_indices output_values"),
    "SparseReshape": "output_indices output_shape",
    "StringNGrams": "ngrams ngrams_splits",
    **dict.fromkeys(("StringSplit", "StringSplitV2"), "indices values shape"),
    "Svd": "s u v",
    "Switch": "output_false output_true",
    "TensorArrayConcatV3": "value lengths",
    "TensorArrayGradV3": "grad_handle flow_out",
    "TensorArrayV3": "handle flow",
    "TensorListPopBack": "output_handle tensor",
    **dict.fromkeys(("TopK", "TopKV2"), "values indices"),
    "UnicodeDecodeWithOffsets": "row_splits char_values char_to_byte_starts",
    "Unique": "y idx",
    "UniqueWithCounts": "y idx count",
}
"""Output names of operations with several outputs; for a list of outputs, ``*`` is followed by the attribute with the
list's length."""

_SINGLE: Final[dict[str, str]] = {
    "activations": "Elu LeakyRelu Relu Relu6 Selu Softplus Softsign",
    "backprops": """
        EluGrad FakeQuantWithMinMaxArgsGradient LeakyReluGrad Relu6Grad ReluGrad SeluGrad SoftplusGrad
        SoftsignGrad""",
    "band": "MatrixBandPart",
    "binary_examples": "DecodeJSONExample",
    "bins": "Bincount",
    "bytes": "EncodeProto",
    "contents": "EncodeJpeg EncodePng EncodeWav ReadFile",
    "crops": "CropAndResize",
    "dense": "SparseToDense",
    "diagonal": "DiagPart MatrixDiagPart MatrixDiagPartV2",
    "fact": "Fact",
    "fingerprint": "Fingerprint",
    "glimpse": "ExtractGlimpse",
    "image": """
        DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng""",
    "image_shape": "ExtractJpegShape",
    "index": "Where",
    "logsoftmax": "LogSoftmax",
    "merged": "DynamicStitch ParallelDynamicStitch",
    "offset": "ConcatOffset",
    "out": "Complex Cumprod Cumsum CumulativeLogsumexp HistogramFixedWidth",
    "output": """
        AdjustContrastv2 All Angle Any ArgMax ArgMin AsString AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul
        BatchMatMulV2 BatchToSpaceND BiasAdd BiasAddGrad BiasAddV1 Bitcast BroadcastTo CheckNumerics Cholesky
        ClipByValue Concat ConcatV2 Conj Const Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D
        Conv3DBackpropFilterV2 Conv3DBackpropInputV2 DecodeBase64 DecodeCSV DecodeCompressed DecodeRaw DepthToSpace
        DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Dequantize Diag
        Dilation2D DrawBoundingBoxes DrawBoundingBoxesV2 EditDistance Einsum EncodeBase64 EnsureShape EuclideanNorm
        ExpandDims FFT FFT2D FFT3D FFTND Fill Gather GatherNd GatherV2 HSVToRGB IFFT IFFT2D IFFT3D IFFTND IRFFT IRFFT2D
        IRFFT3D IRFFTND Identity IdentityN Imag L2Loss LRN LRNGrad LinSpace LowerBound MatrixDeterminant MatrixDiag
        MatrixDiagV2 MatrixExponential MatrixInverse MatrixLogarithm MatrixSetDiag MatrixSetDiagV2 MatrixSolve
        MatrixSquareRoot MatrixTriangularSolve Max MaxPool MaxPool3D MaxPool3DGrad MaxPoolGrad Mean Min MirrorPad
        MirrorPadGrad Multinomial NextAfter OneHot Pack Pad PadV2 ParseTensor PreventGradient Print Prod
        QuantizeAndDequantizeV2 RFFT RFFT2D RFFT3D RFFTND RGBToHSV RandomGamma RandomGammaGrad RandomPoissonV2
        RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt Range Rank Real ReduceJoin RegexFullMatch
        RegexReplace Reshape Reverse ReverseSequence ReverseV2 Roll SegmentMax SegmentMean SegmentMin SegmentProd
        SegmentSum Select SelectV2 Shape ShapeN Size Slice SpaceToBatchND SpaceToDepth SparseDenseCwiseAdd
        SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMax SparseReduceSum SparseSegmentMean SparseSegmentMeanGrad
        SparseSegmentMeanWithNumSegments SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNWithNumSegments
        SparseSegmentSum SparseSegmentSumWithNumSegments SparseSoftmax SparseTensorDenseAdd Split SplitV Squeeze
        StatelessMultinomial StatelessRandomNormal StatelessRandomUniform StatelessTruncatedNormal StaticRegexFullMatch
        StaticRegexReplace StopGradient StridedSlice StridedSliceGrad StringFormat StringJoin StringLength StringLower
        StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper
        Substr Sum Tile TridiagonalSolve TruncatedNormal UnicodeEncode UnicodeScript UnicodeTranscode Unpack
        UnravelIndex UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum
        UpperBound""",
    "outputs": """
        DynamicPartition FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel""",
    "patches": "ExtractImagePatches",
    "precision": "InTopK InTopKV2",
    "product": "Cross MatMul SparseTensorDenseMatMul",
    "r0": "BroadcastArgs",
    "resized_images": "ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor",
    "selected_indices": "NonMaxSuppressionV3 NonMaxSuppressionWithOverlaps",
    "serialized": "SerializeTensor",
    "serialized_sparse": "SerializeManySparse SerializeSparse",
    "size": "LookupTableSizeV2 SetSize",
    "softmax": "Softmax",
    "sum": "AccumulateNV2 AddN",
    "transformed_images": "ImageProjectiveTransformV2",
    "ts": "Timestamp",
    "values": "LookupTableFindV2",
    "y": """
        Abs Acos Acosh Asin Asinh Atan Atanh BesselI0e BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1
        BesselK1e BesselY0 BesselY1 Cast Ceil ComplexAbs ConjugateTranspose Cos Cosh Dawsn Digamma Erf Erfc Erfinv
        Exp Expint Expm1 Floor FresnelCos FresnelSin Inv Invert InvertPermutation IsFinite IsInf IsNan Lgamma Log
        Log1p LogicalNot Ndtri Neg OnesLike Reciprocal Rint Round Rsqrt Sigmoid Sign Sin Sinh Spence Sqrt Square
        Tan Tanh Transpose ZerosLike""",
    "z": """
        Add AddV2 ApproximateEqual Atan2 Betainc BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv
        FloorMod Greater GreaterEqual Igamma Igammac InvGrad LeftShift Less LessEqual LogicalAnd LogicalOr
        Maximum Minimum Mod Mul MulNoNan NotEqual Polygamma Pow RealDiv ReciprocalGrad RightShift RsqrtGrad
        SigmoidGrad SqrtGrad SquaredDifference Sub TanhGrad TruncateDiv TruncateMod Xdivy Xlogy Zeta""",
}
"""Operations with one output that functions of a ``GraphDef`` may contain, by the name of the output."""

_NAME_OF_SINGLE: Final = {op_type: name for name, listed in _SINGLE.items() for op_type in listed.split()}


def output_names(node: NodeDef) -> list[str] | None:
    """Returns how functions of a ``GraphDef`` refer to the outputs of ``node``: ``output:index``.

    None if the node's type does not belong to TensorFlow, or functions should not contain it.
    """
    if node.op in _NAME_OF_SINGLE:
        return [f"{_NAME_OF_SINGLE[node.op]}:{at}" for at in range(_length_of_list(node))]
    if node.op not in _NAMES:
        return None
    found: list[str] = []
    for part in _NAMES[node.op].split():
        own, _, many = part.partition("*")
        found += [f"{own}:{at}" for at in range(_length(node, many) if many else 1)]
    return found


def _length_of_list(node: NodeDef) -> int:
    """Returns the number of outputs of a type whose only output may be a list."""
    for attr in _LISTS.get(node.op, ()):
        return _length(node, attr)
    return 1


_LISTS: Final = {
    "ConcatOffset": ("N",),
    "DecodeCSV": ("OUT_TYPE",),
    "DynamicPartition": ("num_partitions",),
    "IdentityN": ("T",),
    "Meshgrid": ("N",),
    "ShapeN": ("N",),
    "Split": ("num_split",),
    "SplitV": ("num_split",),
    "Unpack": ("num",),
}


def output_index(node: NodeDef, name: str, index: int) -> int:
    """Returns the position of the output, or of entry ``index`` of the list of outputs, called ``name``.

    Raises:
      ValueError: the operation has no output of that name.
    """
    first = 0
    if node.op not in _NAMES:
        return index
    for part in _NAMES[node.op].split():
        own, _, many = part.partition("*")
        if own == name:
            return first + index
        first += _length(node, many) if many else 1
    raise ValueError(f"Node '{node.name}': {node.op} has no output '{name}'")


def _length(node: NodeDef, attr: str) -> int:
    value = node.attr[attr]
    return len(value.list.type) if value.HasField("list") else value.i
