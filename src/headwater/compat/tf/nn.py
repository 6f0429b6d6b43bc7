"""``tf.nn``: neural networks."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.nn": """
        batch_normalization bias_add crelu dropout elu fused_batch_norm in_top_k l2_loss l2_normalize leaky_relu
        local_response_normalization log_softmax lrn=local_response_normalization moments normalize_moments relu relu6
        relu_layer selu softmax softplus softsign sufficient_statistics swish top_k weighted_moments xw_plus_b
        zero_fraction""",
    "headwater.functional.losses": """
        log_poisson_loss softmax_cross_entropy_with_logits_v2 weighted_cross_entropy_with_logits""",
    "headwater.compat.tf.old": """
        sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits
        sparse_softmax_cross_entropy_with_logits""",
    "headwater.functional.convolution": """
        avg_pool avg_pool2d=avg_pool avg_pool3d avg_pool_v2=avg_pool conv1d conv2d conv2d_backprop_filter
        conv2d_backprop_input conv2d_transpose conv3d conv3d_transpose depthwise_conv2d
        depthwise_conv2d_native=depthwise_conv2d
        max_pool max_pool2d=max_pool max_pool3d max_pool_v2=max_pool separable_conv2d""",
    "headwater.functional.blocks": """
        atrous_conv2d avg_pool1d convolution=convolution_ depth_to_space max_pool1d pool space_to_batch
        space_to_depth""",
    "headwater.variables.embedding": "embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse",
    "headwater.functional.math": "log_sigmoid sigmoid tanh",
    "headwater.rnn.networks": """
        bidirectional_dynamic_rnn bidirectional_rnn=static_bidirectional_rnn dynamic_rnn rnn=static_rnn
        static_bidirectional_rnn static_rnn""",
}

_MODULES = {"rnn_cell": "headwater.compat.tf.rnn_cell"}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
