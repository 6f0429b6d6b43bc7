# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.distributions.combined import Independent as Independent
from headwater.tf1.contrib.distributions.combined import Mixture as Mixture
from headwater.tf1.contrib.distributions.combined import MixtureSameFamily as MixtureSameFamily
from headwater.tf1.contrib.distributions.combined import softplus_inverse as softplus_inverse
from headwater.tf1.contrib.distributions.normal_vectors import MultivariateNormalDiag as MultivariateNormalDiag
from headwater.tf1.contrib.distributions.normal_vectors import MultivariateNormalDiagWithSoftplusScale as MultivariateNormalDiagWithSoftplusScale
from headwater.tf1.contrib.distributions.normal_vectors import MultivariateNormalFullCovariance as MultivariateNormalFullCovariance
from headwater.tf1.contrib.distributions.normal_vectors import MultivariateNormalTriL as MultivariateNormalTriL
from headwater.tf1.contrib.distributions.normal_vectors import NormalWithSoftplusScale as NormalWithSoftplusScale
from headwater.tf1.contrib.distributions.relaxed import Chi2 as Chi2
from headwater.tf1.contrib.distributions.relaxed import Deterministic as Deterministic
from headwater.tf1.contrib.distributions.relaxed import ExpRelaxedOneHotCategorical as ExpRelaxedOneHotCategorical
from headwater.tf1.contrib.distributions.relaxed import Logistic as Logistic
from headwater.tf1.contrib.distributions.relaxed import OneHotCategorical as OneHotCategorical
from headwater.tf1.contrib.distributions.relaxed import Poisson as Poisson
from headwater.tf1.contrib.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli
from headwater.tf1.contrib.distributions.relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
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
    "Chi2",
    "Deterministic",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "ExpRelaxedOneHotCategorical",
    "Exponential",
    "FULLY_REPARAMETERIZED",
    "Gamma",
    "Independent",
    "Laplace",
    "Logistic",
    "Mixture",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormalDiag",
    "MultivariateNormalDiagWithSoftplusScale",
    "MultivariateNormalFullCovariance",
    "MultivariateNormalTriL",
    "NOT_REPARAMETERIZED",
    "Normal",
    "NormalWithSoftplusScale",
    "OneHotCategorical",
    "Poisson",
    "RegisterKL",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
    "softplus_inverse",
]
