# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from typing import Any
from headwater.graph.types import Ints
from headwater.graph.types import SparseLike
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.compat.tf import rnn_cell as rnn_cell
from headwater.tf1.functional.candidates import all_candidate_sampler as all_candidate_sampler
from headwater.tf1.functional.candidates import compute_accidental_hits as compute_accidental_hits
from headwater.tf1.functional.candidates import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from headwater.tf1.functional.candidates import learned_unigram_candidate_sampler as learned_unigram_candidate_sampler
from headwater.tf1.functional.candidates import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from headwater.tf1.functional.candidates import uniform_candidate_sampler as uniform_candidate_sampler
from headwater.tf1.functional.convolution import avg_pool as avg_pool
from headwater.tf1.functional.convolution import avg_pool as avg_pool2d
from headwater.tf1.functional.convolution import avg_pool3d as avg_pool3d
from headwater.tf1.functional.convolution import avg_pool_v2 as avg_pool_v2
from headwater.tf1.functional.convolution import conv1d as conv1d
from headwater.tf1.functional.convolution import conv2d as conv2d
from headwater.tf1.functional.convolution import conv2d_backprop_filter as conv2d_backprop_filter
from headwater.tf1.functional.convolution import conv2d_backprop_input as conv2d_backprop_input
from headwater.tf1.functional.convolution import conv2d_transpose as conv2d_transpose
from headwater.tf1.functional.convolution import conv3d as conv3d
from headwater.tf1.functional.convolution import conv3d_backprop_filter as conv3d_backprop_filter
from headwater.tf1.functional.convolution import conv3d_backprop_filter as conv3d_backprop_filter_v2
from headwater.tf1.functional.convolution import conv3d_transpose as conv3d_transpose
from headwater.tf1.functional.convolution import depthwise_conv2d as depthwise_conv2d
from headwater.tf1.functional.convolution import depthwise_conv2d_native as depthwise_conv2d_native
from headwater.tf1.functional.convolution import max_pool as max_pool
from headwater.tf1.functional.convolution import max_pool2d as max_pool2d
from headwater.tf1.functional.convolution import max_pool3d as max_pool3d
from headwater.tf1.functional.convolution import max_pool_v2 as max_pool_v2
from headwater.tf1.functional.convolution import separable_conv2d as separable_conv2d
from headwater.tf1.functional.ctc import collapse_repeated as collapse_repeated
from headwater.tf1.functional.ctc import ctc_beam_search_decoder as ctc_beam_search_decoder
from headwater.tf1.functional.ctc import ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2
from headwater.tf1.functional.ctc import ctc_greedy_decoder as ctc_greedy_decoder
from headwater.tf1.functional.ctc import ctc_loss as ctc_loss
from headwater.tf1.functional.ctc import ctc_loss_v2 as ctc_loss_v2
from headwater.tf1.functional.losses import log_poisson_loss as log_poisson_loss
from headwater.tf1.functional.losses import softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2
from headwater.tf1.functional.losses import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from headwater.tf1.functional.math import log_sigmoid as log_sigmoid
from headwater.tf1.functional.nn import batch_norm_with_global_normalization as batch_norm_with_global_normalization
from headwater.tf1.functional.nn import batch_normalization as batch_normalization
from headwater.tf1.functional.nn import bias_add as bias_add
from headwater.tf1.functional.nn import crelu as crelu
from headwater.tf1.functional.nn import dropout as dropout
from headwater.tf1.functional.nn import fused_batch_norm as fused_batch_norm
from headwater.tf1.functional.nn import in_top_k as in_top_k
from headwater.tf1.functional.nn import l2_loss as l2_loss
from headwater.tf1.functional.nn import l2_normalize as l2_normalize
from headwater.tf1.functional.nn import leaky_relu as leaky_relu
from headwater.tf1.functional.nn import local_response_normalization as local_response_normalization
from headwater.tf1.functional.nn import local_response_normalization as lrn
from headwater.tf1.functional.nn import log_softmax as log_softmax
from headwater.tf1.functional.nn import moments as moments
from headwater.tf1.functional.nn import normalize_moments as normalize_moments
from headwater.tf1.functional.nn import relu6 as relu6
from headwater.tf1.functional.nn import relu_layer as relu_layer
from headwater.tf1.functional.nn import softmax as softmax
from headwater.tf1.functional.nn import sufficient_statistics as sufficient_statistics
from headwater.tf1.functional.nn import swish as swish
from headwater.tf1.functional.nn import top_k as top_k
from headwater.tf1.functional.nn import weighted_moments as weighted_moments
from headwater.tf1.functional.nn import xw_plus_b as xw_plus_b
from headwater.tf1.functional.nn import zero_fraction as zero_fraction
from headwater.tf1.functional.quantized import quantized_avg_pool as quantized_avg_pool
from headwater.tf1.functional.quantized import quantized_conv2d as quantized_conv2d
from headwater.tf1.functional.quantized import quantized_max_pool as quantized_max_pool
from headwater.tf1.functional.quantized import quantized_relu_x as quantized_relu_x
from headwater.tf1.functional.small_functions import compute_average_loss as compute_average_loss
from headwater.tf1.functional.small_functions import ctc_unique_labels as ctc_unique_labels
from headwater.tf1.functional.small_functions import fractional_avg_pool as fractional_avg_pool
from headwater.tf1.functional.small_functions import fractional_max_pool as fractional_max_pool
from headwater.tf1.functional.small_functions import scale_regularization_loss as scale_regularization_loss
from headwater.tf1.functional.small_functions import with_space_to_batch as with_space_to_batch
from headwater.tf1.functional.space_to_batch import atrous_conv2d as atrous_conv2d
from headwater.tf1.functional.space_to_batch import convolution_ as convolution
from headwater.tf1.functional.space_to_batch import depth_to_space as depth_to_space
from headwater.tf1.functional.space_to_batch import pool as pool
from headwater.tf1.functional.space_to_batch import space_to_batch as space_to_batch
from headwater.tf1.functional.space_to_batch import space_to_depth as space_to_depth
from headwater.tf1.functional.transposed import atrous_conv2d_transpose as atrous_conv2d_transpose
from headwater.tf1.functional.transposed import conv1d_transpose as conv1d_transpose
from headwater.tf1.functional.transposed import conv_transpose as conv_transpose
from headwater.tf1.functional.transposed import depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter
from headwater.tf1.functional.transposed import depthwise_conv2d_native_backprop_filter as depthwise_conv2d_native_backprop_filter
from headwater.tf1.functional.transposed import depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input
from headwater.tf1.functional.transposed import depthwise_conv2d_native_backprop_input as depthwise_conv2d_native_backprop_input
from headwater.tf1.functional.transposed import dilation2d as dilation2d
from headwater.tf1.functional.transposed import erosion2d as erosion2d
from headwater.tf1.functional.transposed import max_pool_with_argmax as max_pool_with_argmax
from headwater.tf1.rnn.networks import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
from headwater.tf1.rnn.networks import dynamic_rnn as dynamic_rnn
from headwater.tf1.rnn.networks import static_bidirectional_rnn as bidirectional_rnn
from headwater.tf1.rnn.networks import static_bidirectional_rnn as static_bidirectional_rnn
from headwater.tf1.rnn.networks import static_rnn as rnn
from headwater.tf1.rnn.networks import static_rnn as static_rnn
from headwater.tf1.rnn.networks import static_state_saving_rnn as static_state_saving_rnn
from headwater.tf1.rnn.raw import raw_rnn as raw_rnn
from headwater.tf1.variables.embedding import embedding_lookup as embedding_lookup
from headwater.tf1.variables.embedding import embedding_lookup_sparse as embedding_lookup_sparse
from headwater.tf1.variables.embedding import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse

def avg_pool1d(input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The mean of each window of a sequence [batch, width, channels]; padding does not count."""
def elu(features: TensorLike, name: str | None = ...) -> Tensor:
    """x above 0, else eˣ - 1."""
def max_pool1d(input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The maximum of each window of a sequence [batch, width, channels]."""
def nce_loss(weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: int, num_classes: int, num_true: int = ..., sampled_values: TensorLike | None = ..., remove_accidental_hits: bool = ..., partition_strategy: str = ..., name: str | None = ...) -> Tensor:
    """Noise-contrastive estimation: a sigmoid loss that distinguishes true classes from drawn ones, for each row.

Gutmann and Hyvärinen, Noise-contrastive estimation, 2010.

Args:
  weights: [num_classes, dim], or a list or partitioned variable of its parts.
  biases: [num_classes].
  labels: int64 [batch, num_true], the true classes.
  inputs: [batch, dim].
  num_sampled: number of classes to draw for the whole batch.
  sampled_values: the result of a sampler; `log_uniform_candidate_sampler`'s if None.
  remove_accidental_hits: ignore drawn classes that are true classes of a row.

Returns:
  The loss of each row.

    Before 1.0 the inputs were before the labels."""
def relu(features: TensorLike, name: str | None = ...) -> Tensor:
    """max(x, 0)."""
def sampled_softmax_loss(weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: int, num_classes: int, num_true: int = ..., sampled_values: TensorLike | None = ..., remove_accidental_hits: bool = ..., partition_strategy: str = ..., name: str | None = ..., seed: int | None = ...) -> Tensor:
    """Like `nce_loss`, with the cross entropy of a softmax over the true and the drawn classes.

Jean et al., On Using Very Large Target Vocabulary for Neural Machine Translation, 2014.

    Before 1.0 the inputs were before the labels."""
def selu(features: TensorLike, name: str | None = ...) -> Tensor:
    """The scaled exponential linear unit (Klambauer et al., 2017)."""
def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / (1 + e⁻ˣ) of every element."""
def sigmoid_cross_entropy_with_logits(_sentinel: object = ..., labels: Any = ..., logits: Any = ..., name: str | None = ...) -> Tensor:
    """-z log σ(x) - (1 - z) log(1 - σ(x)), computed as max(x, 0) - x z + log(1 + e^-|x|).

Raises:
  ValueError: labels or logits are missing, their shapes differ, or arguments are not named.

    Before 1.0 it took ``(logits, labels, name)`` in order."""
def softmax_cross_entropy_with_logits(_sentinel: TensorLike | None = ..., labels: TensorLike | None = ..., logits: TensorLike | None = ..., dim: int = ..., name: str | None = ..., axis: int | None = ...) -> Tensor:
    """Like `softmax_cross_entropy_with_logits_v2`, with no gradient into the labels.

Raises:
  ValueError: labels or logits are missing, or arguments are not named.

    Before 1.0 it took ``(logits, labels, dim, name)`` in order."""
def softplus(features: TensorLike, name: str | None = ...) -> Tensor:
    """log(1 + eˣ)."""
def softsign(features: TensorLike, name: str | None = ...) -> Tensor:
    """x / (1 + |x|)."""
def sparse_softmax_cross_entropy_with_logits(_sentinel: object = ..., labels: Any = ..., logits: Any = ..., name: str | None = ...) -> Tensor:
    """-log softmax(logits)[label] along the last dimension of the logits, for class numbers ``labels``.

Raises:
  ValueError: labels or logits are missing, their ranks do not match, or arguments are not named.

    Before 1.0 it took ``(logits, labels, name)`` in order."""
def tanh(x: SparseLike, name: str | None = ...) -> Any:
    """The hyperbolic tangent of every element."""
__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "bidirectional_dynamic_rnn",
    "bidirectional_rnn",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_loss_v2",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "dilation2d",
    "dropout",
    "dynamic_rnn",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "fused_batch_norm",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_sigmoid",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "quantized_avg_pool",
    "quantized_conv2d",
    "quantized_max_pool",
    "quantized_relu_x",
    "raw_rnn",
    "relu",
    "relu6",
    "relu_layer",
    "rnn",
    "rnn_cell",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "xw_plus_b",
    "zero_fraction",
]
