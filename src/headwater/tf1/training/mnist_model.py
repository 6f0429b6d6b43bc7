"""The tutorials' network for MNIST: two hidden layers, softmax, gradient descent."""

from __future__ import annotations

import math as numbers
from typing import TYPE_CHECKING, Final

from headwater.dtypes import int32
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, losses, math, nn, random, reductions, summary
from headwater.tf1.functional.default_graph import name_scope
from headwater.tf1.training.optimizers.descent import GradientDescentOptimizer
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


NUM_CLASSES: Final = 10
IMAGE_SIZE: Final = 28
IMAGE_PIXELS: Final = IMAGE_SIZE * IMAGE_SIZE


def _layer(scope: str, inputs: TensorLike, units_in: int, units: int) -> Tensor:
    with name_scope(scope):
        weights = Variable(
            random.truncated_normal([units_in, units], stddev=1.0 / numbers.sqrt(units_in)), name="weights"
        )
        biases = Variable(arrays.zeros([units]), name="biases")
        return nn.xw_plus_b(inputs, weights, biases)


def inference(images: TensorLike, hidden1_units: int, hidden2_units: int) -> Tensor:
    """Returns logits (batch, 10) of images (batch, 784), from a network with two hidden layers of these sizes."""
    hidden1 = nn.relu(_layer("hidden1", images, IMAGE_PIXELS, hidden1_units))
    hidden2 = nn.relu(_layer("hidden2", hidden1, hidden1_units, hidden2_units))
    return _layer("softmax_linear", hidden2, hidden2_units, NUM_CLASSES)


def loss(logits: TensorLike, labels: TensorLike) -> Tensor:
    """Mean cross entropy; ``labels`` are integers (batch,)."""
    classes = math.to_int64(labels)
    entropy = losses.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits, name="xentropy")
    return reductions.reduce_mean(entropy, name="xentropy_mean")


def training(loss: TensorLike, learning_rate: float) -> Operation:
    """An operation that makes one step of gradient descent and counts it; adds a summary of the loss."""
    summary.scalar("loss", loss)
    global_step = Variable(0, name="global_step", trainable=False)
    return GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)


def evaluation(logits: TensorLike, labels: TensorLike) -> Tensor:
    """Returns the number of correctly classified examples of the batch, int32."""
    return reductions.reduce_sum(math.cast(nn.in_top_k(logits, labels, 1), int32))
