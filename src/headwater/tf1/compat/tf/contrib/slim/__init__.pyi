# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.operation import Tensor
from headwater.tf1.compat import slim_losses as losses
from headwater.tf1.compat.tf.contrib import layers as layers
from headwater.tf1.compat.tf.contrib.slim import learning as learning
from headwater.tf1.compat.tf.contrib.slim import nets as nets
from headwater.tf1.contrib.metrics import names as metrics
from headwater.tf1.contrib.slim import utils as utils
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope as add_arg_scope
from headwater.tf1.contrib.slim.arg_scope import arg_scope as arg_scope
from headwater.tf1.contrib.slim.arg_scope import arg_scoped_arguments as arg_scoped_arguments
from headwater.tf1.contrib.slim.arg_scope import current_arg_scope as current_arg_scope
from headwater.tf1.contrib.slim.arg_scope import has_arg_scope as has_arg_scope
from headwater.tf1.contrib.slim.embeddings import bow_encoder as bow_encoder
from headwater.tf1.contrib.slim.embeddings import dense_to_sparse as dense_to_sparse
from headwater.tf1.contrib.slim.embeddings import embedding_lookup_unique as embedding_lookup_unique
from headwater.tf1.contrib.slim.images import convolution2d_in_plane as conv2d_in_plane
from headwater.tf1.contrib.slim.images import convolution2d_in_plane as convolution2d_in_plane
from headwater.tf1.contrib.slim.images import images_to_sequence as images_to_sequence
from headwater.tf1.contrib.slim.images import maxout as maxout
from headwater.tf1.contrib.slim.images import sequence_to_images as sequence_to_images
from headwater.tf1.contrib.slim.images import spatial_softmax as spatial_softmax
from headwater.tf1.contrib.slim.initializers import variance_scaling_initializer as variance_scaling_initializer
from headwater.tf1.contrib.slim.initializers import xavier_initializer as xavier_initializer
from headwater.tf1.contrib.slim.initializers import xavier_initializer as xavier_initializer_conv2d
from headwater.tf1.contrib.slim.layers import bias_add as bias_add
from headwater.tf1.contrib.slim.layers import convolution1d as conv1d
from headwater.tf1.contrib.slim.layers import convolution1d as convolution1d
from headwater.tf1.contrib.slim.layers import convolution2d as conv2d
from headwater.tf1.contrib.slim.layers import convolution2d as convolution2d
from headwater.tf1.contrib.slim.layers import convolution2d_transpose as conv2d_transpose
from headwater.tf1.contrib.slim.layers import convolution2d_transpose as convolution2d_transpose
from headwater.tf1.contrib.slim.layers import convolution3d as conv3d
from headwater.tf1.contrib.slim.layers import convolution3d as convolution3d
from headwater.tf1.contrib.slim.layers import convolution3d_transpose as conv3d_transpose
from headwater.tf1.contrib.slim.layers import convolution3d_transpose as convolution3d_transpose
from headwater.tf1.contrib.slim.layers import convolution_layer as convolution
from headwater.tf1.contrib.slim.layers import embed_sequence as embed_sequence
from headwater.tf1.contrib.slim.layers import fully_connected as fully_connected
from headwater.tf1.contrib.slim.layers import separable_convolution2d as separable_conv2d
from headwater.tf1.contrib.slim.layers import separable_convolution2d as separable_convolution2d
from headwater.tf1.contrib.slim.normalization import batch_norm as batch_norm
from headwater.tf1.contrib.slim.normalization import group_norm as group_norm
from headwater.tf1.contrib.slim.normalization import instance_norm as instance_norm
from headwater.tf1.contrib.slim.normalization import layer_norm as layer_norm
from headwater.tf1.contrib.slim.normalization import unit_norm as unit_norm
from headwater.tf1.contrib.slim.plain import avg_pool2d as avg_pool2d
from headwater.tf1.contrib.slim.plain import avg_pool3d as avg_pool3d
from headwater.tf1.contrib.slim.plain import dropout as dropout
from headwater.tf1.contrib.slim.plain import flatten as flatten
from headwater.tf1.contrib.slim.plain import max_pool2d as max_pool2d
from headwater.tf1.contrib.slim.plain import max_pool3d as max_pool3d
from headwater.tf1.contrib.slim.plain import one_hot_encoding as one_hot_encoding
from headwater.tf1.contrib.slim.plain import repeat as repeat
from headwater.tf1.contrib.slim.plain import softmax as softmax
from headwater.tf1.contrib.slim.plain import stack as stack
from headwater.tf1.contrib.slim.variables import add_model_variable as add_model_variable
from headwater.tf1.contrib.slim.variables import assign_from_values as assign_from_values
from headwater.tf1.contrib.slim.variables import assign_from_values_fn as assign_from_values_fn
from headwater.tf1.contrib.slim.variables import filter_variables as filter_variables
from headwater.tf1.contrib.slim.variables import get_local_variables as get_local_variables
from headwater.tf1.contrib.slim.variables import get_model_variables as get_model_variables
from headwater.tf1.contrib.slim.variables import get_trainable_variables as get_trainable_variables
from headwater.tf1.contrib.slim.variables import get_unique_variable as get_unique_variable
from headwater.tf1.contrib.slim.variables import get_variable_full_name as get_variable_full_name
from headwater.tf1.contrib.slim.variables import get_variables as get_variables
from headwater.tf1.contrib.slim.variables import get_variables_by_name as get_variables_by_name
from headwater.tf1.contrib.slim.variables import get_variables_by_suffix as get_variables_by_suffix
from headwater.tf1.contrib.slim.variables import get_variables_to_restore as get_variables_to_restore
from headwater.tf1.contrib.slim.variables import global_variable as global_variable
from headwater.tf1.contrib.slim.variables import local_variable as local_variable
from headwater.tf1.contrib.slim.variables import model_variable as model_variable
from headwater.tf1.contrib.slim.variables import variable as variable
from headwater.tf1.feature_columns.old import bucketized_column as bucketized_column
from headwater.tf1.feature_columns.old import create_feature_spec_for_parsing as create_feature_spec_for_parsing
from headwater.tf1.feature_columns.old import crossed_column as crossed_column
from headwater.tf1.feature_columns.old import embedding_column as embedding_column
from headwater.tf1.feature_columns.old import one_hot_column as one_hot_column
from headwater.tf1.feature_columns.old import real_valued_column as real_valued_column
from headwater.tf1.feature_columns.old import sparse_column_with_hash_bucket as sparse_column_with_hash_bucket
from headwater.tf1.feature_columns.old import sparse_column_with_integerized_feature as sparse_column_with_integerized_feature
from headwater.tf1.feature_columns.old import sparse_column_with_keys as sparse_column_with_keys
from headwater.tf1.feature_columns.old_inputs import input_from_feature_columns as input_from_feature_columns
from headwater.tf1.feature_columns.old_inputs import weighted_sum_from_feature_columns as weighted_sum_from_feature_columns
from headwater.tf1.training.train_ops import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from headwater.tf1.training.train_ops import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from headwater.tf1.training.train_ops import optimize_loss as optimize_loss
from headwater.tf1.training.train_ops import summarize_activation as summarize_activation
from headwater.tf1.training.train_ops import summarize_activations as summarize_activations
from headwater.tf1.training.train_ops import summarize_collection as summarize_collection
from headwater.tf1.training.train_ops import summarize_tensor as summarize_tensor
from headwater.tf1.training.train_ops import summarize_tensors as summarize_tensors
from headwater.tf1.training.training_util import assert_global_step as assert_global_step
from headwater.tf1.training.training_util import create_global_step as create_global_step
from headwater.tf1.training.training_util import get_global_step as get_global_step
from headwater.tf1.training.training_util import get_or_create_global_step as get_or_create_global_step
from headwater.tf1.training.warm_start import assign_from_checkpoint as assign_from_checkpoint
from headwater.tf1.training.warm_start import assign_from_checkpoint_fn as assign_from_checkpoint_fn
from headwater.tf1.variables.embedding import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from headwater.tf1.variables.regularizers import apply_regularization as apply_regularization
from headwater.tf1.variables.regularizers import l1_l2_regularizer as l1_l2_regularizer
from headwater.tf1.variables.regularizers import l1_regularizer as l1_regularizer
from headwater.tf1.variables.regularizers import l2_regularizer as l2_regularizer
from headwater.tf1.variables.regularizers import sum_regularizer as sum_regularizer

def elu(inputs: object, num_outputs: int, **kwargs: object) -> Tensor:
    """`fully_connected` with the activation elu."""
def linear(inputs: object, num_outputs: int, **kwargs: object) -> Tensor:
    """`fully_connected` with the activation linear."""
def relu(inputs: object, num_outputs: int, **kwargs: object) -> Tensor:
    """`fully_connected` with the activation relu."""
def relu6(inputs: object, num_outputs: int, **kwargs: object) -> Tensor:
    """`fully_connected` with the activation relu6."""
__all__ = [
    "OPTIMIZER_CLS_NAMES",
    "OPTIMIZER_SUMMARIES",
    "add_arg_scope",
    "add_model_variable",
    "apply_regularization",
    "arg_scope",
    "arg_scoped_arguments",
    "assert_global_step",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bias_add",
    "bow_encoder",
    "bucketized_column",
    "conv1d",
    "conv2d",
    "conv2d_in_plane",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "convolution1d",
    "convolution2d",
    "convolution2d_in_plane",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
    "create_feature_spec_for_parsing",
    "create_global_step",
    "crossed_column",
    "current_arg_scope",
    "dense_to_sparse",
    "dropout",
    "elu",
    "embed_sequence",
    "embedding_column",
    "embedding_lookup_unique",
    "filter_variables",
    "flatten",
    "fully_connected",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_or_create_global_step",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "group_norm",
    "has_arg_scope",
    "images_to_sequence",
    "input_from_feature_columns",
    "instance_norm",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_norm",
    "layers",
    "learning",
    "linear",
    "local_variable",
    "losses",
    "max_pool2d",
    "max_pool3d",
    "maxout",
    "metrics",
    "model_variable",
    "nets",
    "one_hot_column",
    "one_hot_encoding",
    "optimize_loss",
    "real_valued_column",
    "relu",
    "relu6",
    "repeat",
    "safe_embedding_lookup_sparse",
    "separable_conv2d",
    "separable_convolution2d",
    "sequence_to_images",
    "softmax",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "spatial_softmax",
    "stack",
    "sum_regularizer",
    "summarize_activation",
    "summarize_activations",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "unit_norm",
    "utils",
    "variable",
    "variance_scaling_initializer",
    "weighted_sum_from_feature_columns",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]
