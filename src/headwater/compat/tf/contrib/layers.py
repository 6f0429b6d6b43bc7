"""``tf.contrib.layers``: layers as functions, their initial values, regularizers, training operations."""

from __future__ import annotations

from headwater.compat.names import namespace

NAMES = {
    "headwater.variables.regularizers": """
        apply_regularization l1_l2_regularizer l1_regularizer l2_regularizer sum_regularizer""",
    "headwater.slim.layers": """
        bias_add conv1d=convolution1d conv2d=convolution2d conv2d_transpose=convolution2d_transpose
        conv3d=convolution3d conv3d_transpose=convolution3d_transpose convolution=convolution_layer convolution1d
        convolution2d convolution2d_transpose convolution3d convolution3d_transpose elu embed_sequence fully_connected
        linear relu relu6 separable_conv2d=separable_convolution2d separable_convolution2d""",
    "headwater.slim.normalization": "batch_norm instance_norm layer_norm unit_norm",
    "headwater.slim.plain": """
        avg_pool2d avg_pool3d dropout flatten max_pool2d max_pool3d one_hot_encoding repeat softmax stack""",
    "headwater.slim.initializers": """
        variance_scaling_initializer xavier_initializer xavier_initializer_conv2d=xavier_initializer""",
    "headwater.feature_columns.dense": "bucketized_column one_hot_column=indicator_column",
    "headwater.feature_columns.old": """
        create_feature_spec_for_parsing crossed_column embedding_column real_valued_column
        sparse_column_with_hash_bucket sparse_column_with_integerized_feature sparse_column_with_keys""",
    "headwater.training.train_ops": """
        OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES optimize_loss summarize_activation summarize_activations
        summarize_collection summarize_tensor summarize_tensors""",
}

__getattr__, __dir__ = namespace(__name__, NAMES)
