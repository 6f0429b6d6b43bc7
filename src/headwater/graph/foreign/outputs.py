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
    "SelfAdjointEigV2": "e v",
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), "loss backprop"),
    "SparseAccumulatorTakeGradient": "indices values shape",
    "SparseAdd": "sum_indices sum_values sum_shape",
    "SparseAddGrad": "a_val_grad b_val_grad",
    **dict.fromkeys(("SparseConcat", "SparseCross", "SparseSlice"), _SPARSE),
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
