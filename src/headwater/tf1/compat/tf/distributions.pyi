# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.distributions import Bernoulli as Bernoulli
from headwater.tf1.functional.distributions import Beta as Beta
from headwater.tf1.functional.distributions import Categorical as Categorical
from headwater.tf1.functional.distributions import Dirichlet as Dirichlet
from headwater.tf1.functional.distributions import DirichletMultinomial as DirichletMultinomial
from headwater.tf1.functional.distributions import Distribution as Distribution
from headwater.tf1.functional.distributions import Exponential as Exponential
from headwater.tf1.functional.distributions import FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED
from headwater.tf1.functional.distributions import Gamma as Gamma
from headwater.tf1.functional.distributions import Laplace as Laplace
from headwater.tf1.functional.distributions import Multinomial as Multinomial
from headwater.tf1.functional.distributions import NOT_REPARAMETERIZED as NOT_REPARAMETERIZED
from headwater.tf1.functional.distributions import Normal as Normal
from headwater.tf1.functional.distributions import RegisterKL as RegisterKL
from headwater.tf1.functional.distributions import ReparameterizationType as ReparameterizationType
from headwater.tf1.functional.distributions import StudentT as StudentT
from headwater.tf1.functional.distributions import Uniform as Uniform
from headwater.tf1.functional.distributions import kl_divergence as kl_divergence

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "FULLY_REPARAMETERIZED",
    "Gamma",
    "Laplace",
    "Multinomial",
    "NOT_REPARAMETERIZED",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
]
