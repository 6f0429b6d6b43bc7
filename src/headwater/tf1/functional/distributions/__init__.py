"""``tf.distributions``: probability distributions of tensors."""

from __future__ import annotations

from headwater.tf1.functional.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from headwater.tf1.functional.distributions.continuous import (
    Beta,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from headwater.tf1.functional.distributions.discrete import (
    Bernoulli,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Multinomial,
)
from headwater.tf1.functional.distributions.divergence import RegisterKL, kl_divergence

__all__ = [
    "FULLY_REPARAMETERIZED",
    "NOT_REPARAMETERIZED",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "Gamma",
    "Laplace",
    "Multinomial",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
]
