"""RMSProp: gradients divided by the root of their decaying mean square."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.tf1.training.optimizers.common import OneOperationOptimizer
from headwater.tf1.variables.initializers import Ones

if TYPE_CHECKING:
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


class RMSPropOptimizer(OneOperationOptimizer):
    """RMSProp (Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning", 2012).

    s ← s + (1−ρ)·(g² − s), p ← μ·p + η·g / √(s + ε), θ ← θ − p; s starts at one, p at zero.

    Centered (Graves, 2013), the variance takes the place of the mean square: with the decaying mean
    m ← m + (1−ρ)·(g − m) the root is √(s − m² + ε).

    Here ε is inside the root and s starts at one, as in TensorFlow 1.x; Keras, PyTorch and optax start s at zero, and
    Keras and PyTorch add ε outside the root, so that their first steps are larger.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
      decay: ρ, how slowly the averages change.
      momentum: μ.
      epsilon: ε.
      centered: divide by the deviation rather than by the root of the mean square; costs memory and some time.

    Slots: ``rms`` is s, ``momentum`` is p, ``mg`` is m (centered only).
    """

    _inputs: Mapping[str, str] = {
        "lr": "learning_rate",
        "rho": "decay",
        "momentum": "momentum",
        "epsilon": "epsilon",
        "grad": "grad",
    }

    def __init__(
        self,
        learning_rate: Hyperparameter,
        decay: Hyperparameter = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: Hyperparameter = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered
        self._kind = "CenteredRMSProp" if centered else "RMSProp"
        self._updated = ("mg", "rms", "momentum") if centered else ("rms", "momentum")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            self._get_or_make_slot_with_initializer(var, Ones(dtype), var.shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        self._prepare_settings(
            learning_rate=self._learning_rate, decay=self._decay, momentum=self._momentum, epsilon=self._epsilon
        )
