# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.nn.functions import alpha_dropout as alpha_dropout
from headwater.tf1.contrib.nn.functions import deprecated_flipped_sigmoid_cross_entropy_with_logits as deprecated_flipped_sigmoid_cross_entropy_with_logits
from headwater.tf1.contrib.nn.functions import deprecated_flipped_softmax_cross_entropy_with_logits as deprecated_flipped_softmax_cross_entropy_with_logits
from headwater.tf1.contrib.nn.functions import deprecated_flipped_sparse_softmax_cross_entropy_with_logits as deprecated_flipped_sparse_softmax_cross_entropy_with_logits
from headwater.tf1.contrib.nn.functions import nth_element as nth_element
from headwater.tf1.contrib.nn.functions import sampled_sparse_softmax_loss as sampled_sparse_softmax_loss
from headwater.tf1.contrib.nn.functions import scaled_softplus as scaled_softplus
from headwater.tf1.functional.transposed import conv1d_transpose as conv1d_transpose

__all__ = [
    "alpha_dropout",
    "conv1d_transpose",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "nth_element",
    "sampled_sparse_softmax_loss",
    "scaled_softplus",
]
