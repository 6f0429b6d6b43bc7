"""The optimizers, with TensorFlow 1.15's arguments and arithmetic.

Symbols in their descriptions: θ is a variable, g its gradient, η the learning rate; other letters are defined in each
description. All operations are element by element. Sparse gradients change only the rows that they contain, unless a
description says otherwise. ``use_locking`` is accepted; updates are always atomic.
"""

from headwater.tf1.training.optimizers.adadelta import AdadeltaOptimizer
from headwater.tf1.training.optimizers.adagrad import AdagradDAOptimizer, AdagradOptimizer, ProximalAdagradOptimizer
from headwater.tf1.training.optimizers.adam import AdamOptimizer
from headwater.tf1.training.optimizers.descent import (
    GradientDescentOptimizer,
    MomentumOptimizer,
    ProximalGradientDescentOptimizer,
)
from headwater.tf1.training.optimizers.ftrl import FtrlOptimizer
from headwater.tf1.training.optimizers.rmsprop import RMSPropOptimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]
