"""Kullback-Leibler divergences between two distributions, registered by their classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from headwater.graph.convert import name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, math, nn, reductions, special
from headwater.tf1.functional.checks import Assert
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.distributions import base
from headwater.tf1.functional.distributions.base import Distribution
from headwater.tf1.functional.distributions.continuous import Beta, Gamma, Normal
from headwater.tf1.functional.distributions.discrete import Bernoulli, Categorical, Dirichlet

Divergence = Callable[..., Tensor]
_F = TypeVar("_F", bound=Divergence)
_known: dict[tuple[type, type], Divergence] = {}


class RegisterKL:
    """Decorator: registers a function that computes the divergence of two classes of distributions.

    Args:
      dist_cls_a: the first kind.
      dist_cls_b: the second kind.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: _F) -> _F:
        """Registers the function, which takes both distributions and ``name``.

        Raises:
          TypeError: it is not a function.
          ValueError: a function is already registered for these classes.
        """
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _known:
            raise ValueError(
                f"KL({self._key[0].__name__} || {self._key[1].__name__}) has already been registered to: "
                f"{_known[self._key]}"
            )
        _known[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """The divergence of the second distribution from the first, in nats.

    Args:
      distribution_a: the first.
      distribution_b: the second.
      allow_nan_stats: whether it may be NaN; else a step that finds NaN fails.

    Raises:
      NotImplementedError: no divergence of these classes is registered.
    """
    with name_scope(name, "KullbackLeibler", []):
        found = between(distribution_a, distribution_b)
        if allow_nan_stats:
            return found
        fine = math.logical_not(reductions.reduce_any(math.is_nan(found)))
        text = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN values "
            "(and was called with allow_nan_stats=False). Values:"
        )
        return with_dependencies([Assert(fine, [text, found])], found)


def between(first: Distribution, second: Distribution) -> Tensor:
    """Returns the divergence, computed by the function registered for the nearest base classes.

    Raises:
      NotImplementedError: there is no such function.
    """
    kinds = [
        (one + two, key)
        for one, a in enumerate(inspect.getmro(type(first)))
        for two, b in enumerate(inspect.getmro(type(second)))
        if (key := (a, b)) in _known
    ]
    if not kinds:
        raise NotImplementedError(
            f"No KL(distribution_a || distribution_b) registered for distribution_a type {type(first).__name__} and "
            f"distribution_b type {type(second).__name__}"
        )
    return _known[min(kinds, key=lambda kind: kind[0])[1]](first, second, name=None)


base.divergence.between = between


@RegisterKL(Normal, Normal)
def _of_normals(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    del name
    ratio = math.square(a.scale) / math.square(b.scale)
    return math.square(a.loc - b.loc) / (2.0 * math.square(b.scale)) + 0.5 * (ratio - 1.0 - math.log(ratio))


@RegisterKL(Gamma, Gamma)
def _of_gammas(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    del name
    return (
        (a.concentration - b.concentration) * special.digamma(a.concentration)
        + special.lgamma(b.concentration)
        - special.lgamma(a.concentration)
        + b.concentration * math.log(a.rate)
        - b.concentration * math.log(b.rate)
        + a.concentration * (b.rate / a.rate - 1.0)
    )


@RegisterKL(Beta, Beta)
def _of_betas(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    del name

    def log_beta(of: Beta) -> Tensor:
        return (
            special.lgamma(of.concentration1)
            + special.lgamma(of.concentration0)
            - special.lgamma(of.total_concentration)
        )

    return (
        log_beta(b)
        - log_beta(a)
        - special.digamma(a.concentration1) * (b.concentration1 - a.concentration1)
        - special.digamma(a.concentration0) * (b.concentration0 - a.concentration0)
        + special.digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
    )


@RegisterKL(Bernoulli, Bernoulli)
def _of_bernoullis(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    del name
    one = nn.softplus(-b.logits) - nn.softplus(-a.logits)
    zero = nn.softplus(b.logits) - nn.softplus(a.logits)
    return math.sigmoid(a.logits) * one + math.sigmoid(-a.logits) * zero


@RegisterKL(Categorical, Categorical)
def _of_categoricals(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    del name
    apart = nn.log_softmax(a.logits) - nn.log_softmax(b.logits)
    return reductions.reduce_sum(nn.softmax(a.logits) * apart, -1)


@RegisterKL(Dirichlet, Dirichlet)
def _of_dirichlets(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    del name
    first, second = a.concentration, b.concentration
    apart = special.digamma(first) - arrays.expand_dims(special.digamma(a.total_concentration), -1)
    return reductions.reduce_sum((first - second) * apart, -1) - special.lbeta(first) + special.lbeta(second)
