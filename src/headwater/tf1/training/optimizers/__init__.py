"""The optimizers, with TensorFlow 1.15's arguments and arithmetic.

Symbols in their descriptions: θ is a variable, g its gradient, η the learning rate; every other letter is named where
it is used. All operations are element by element. Sparse gradients change the rows they have and no others, unless an
optimizer says otherwise.
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
