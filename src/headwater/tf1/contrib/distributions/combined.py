"""Distributions composed of other distributions: independent elements, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import int32
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import dimension_value
from headwater.tf1.functional import arrays, indexing, linalg, math, nn, reductions
from headwater.tf1.functional.distributions.base import NOT_REPARAMETERIZED, Distribution
from headwater.tf1.functional.distributions.discrete import Categorical
from headwater.tf1.functional.distributions.divergence import RegisterKL, between

if TYPE_CHECKING:
    from headwater.shapes import TensorShape


class Independent(Distribution):
    """A batch of distributions as one distribution of arrays, whose elements are independent.

    Args:
      distribution: the batch.
      reinterpreted_batch_ndims: the number of its last batch dimensions that become dimensions of samples; all but the
        first if None.
      validate_args: accepted.

    Raises:
      ValueError: the batch has fewer dimensions, or the argument is None and the number of dimensions is unknown.

    Attributes:
      distribution: the batch of distributions.
      reinterpreted_batch_ndims: the number of batch dimensions that became dimensions of samples.
    """

    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        arguments = dict(locals())
        dims = distribution.batch_shape.ndims
        if reinterpreted_batch_ndims is None:
            if dims is None:
                raise ValueError("reinterpreted_batch_ndims must be given: the rank of the batch is not known")
            reinterpreted_batch_ndims = max(0, dims - 1)
        self.reinterpreted_batch_ndims: int = int(reinterpreted_batch_ndims)
        if dims is not None and self.reinterpreted_batch_ndims > dims:
            given = f"reinterpreted_batch_ndims({self.reinterpreted_batch_ndims})"
            raise ValueError(f"{given} cannot exceed distribution.batch_ndims({dims})")
        self.distribution: Distribution = distribution
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            arguments,
            distribution._graph_parents,
            name or f"Independent{distribution.name}",
        )

    def _batch_shape(self) -> TensorShape:
        shape = self.distribution.batch_shape
        return shape[: (shape.ndims or 0) - self.reinterpreted_batch_ndims] if shape.ndims is not None else shape

    def _batch_shape_tensor(self) -> Tensor:
        shape = self.distribution.batch_shape_tensor()
        return shape[: arrays.size(shape) - self.reinterpreted_batch_ndims]

    def _event_shape(self) -> Any:
        shape = self.distribution.batch_shape
        if shape.ndims is None:
            return None
        return shape[shape.ndims - self.reinterpreted_batch_ndims :].concatenate(self.distribution.event_shape)

    def _event_shape_tensor(self) -> Tensor:
        shape = self.distribution.batch_shape_tensor()
        return arrays.concat(
            [shape[arrays.size(shape) - self.reinterpreted_batch_ndims :], self.distribution.event_shape_tensor()], 0
        )

    def _sample_n(self, n: Any, seed: int | None) -> Tensor:
        return self.distribution.sample(n, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        return _sum_last(self.distribution.log_prob(x), self.reinterpreted_batch_ndims)

    def _entropy(self) -> Tensor:
        return _sum_last(self.distribution.entropy(), self.reinterpreted_batch_ndims)

    def _mean(self) -> Tensor:
        return self.distribution.mean()

    def _variance(self) -> Tensor:
        return self.distribution.variance()

    def _stddev(self) -> Tensor:
        return self.distribution.stddev()

    def _mode(self) -> Tensor:
        return self.distribution.mode()


def _sum_last(value: Tensor, dims: int) -> Tensor:
    return reductions.reduce_sum(value, list(range(-dims, 0))) if dims else value


@RegisterKL(Independent, Independent)
def _of_independents(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    """The sum of the divergences of elements.

    Raises:
      ValueError: their numbers of dimensions differ.
    """
    del name
    if a.reinterpreted_batch_ndims != b.reinterpreted_batch_ndims:
        raise ValueError("KL between Independents of different numbers of dimensions is not defined.")
    return _sum_last(between(a.distribution, b.distribution), a.reinterpreted_batch_ndims)


class Mixture(Distribution):
    """Mixture of distributions of several classes.

    Args:
      cat: the `Categorical` of the component; its batch shape is the components'.
      components: a distribution for each of its classes, with equal types and shapes.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.
      use_static_graph: ignored: samples are always computed from all components.

    Raises:
      TypeError: ``cat`` is not categorical.
      ValueError: there are no components, or their number is not the number of classes.

    Attributes:
      cat: the distribution of the component.
    """

    def __init__(
        self,
        cat: Distribution,
        components: Sequence[Distribution],
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        arguments = dict(locals())
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        classes = dimension_value(cat.logits.shape[-1])
        if classes is not None and classes != len(components):
            raise ValueError(f"components have length {len(components)}, but cat has {classes} classes")
        self.cat, self._components = cat, list(components)
        super().__init__(
            components[0].dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            arguments,
            cat._graph_parents,
            name,
        )

    @property
    def components(self) -> list[Distribution]:
        """The components."""
        return list(self._components)

    @property
    def num_components(self) -> int:
        """The number of components."""
        return len(self._components)

    def _batch_shape(self) -> TensorShape:
        return self.cat.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self.cat.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._components[0].event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._components[0].event_shape_tensor()

    def _at_end(self, values: Sequence[Tensor]) -> Tensor:
        """Values of the components, with the component as the last dimension."""
        return arrays.stack(list(values), -1)

    def _shares(self) -> Tensor:
        """Returns the probabilities of the components, [batch, 1 for each dimension of samples, components]."""
        found = self.cat.probs
        for _ in range(self.event_shape.ndims or 0):
            found = arrays.expand_dims(found, -2)
        return math.cast(found, self.dtype)

    def _sample_n(self, n: Any, seed: int | None) -> Tensor:
        chosen = self.cat.sample(n, seed)
        hits = indexing.one_hot(chosen, self.num_components, dtype=self.dtype)
        for _ in range(self.event_shape.ndims or 0):
            hits = arrays.expand_dims(hits, -2)
        drawn = [
            each.sample(n, None if seed is None else seed + 1 + index) for index, each in enumerate(self._components)
        ]
        return reductions.reduce_sum(self._at_end(drawn) * hits, -1)

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = self._at_end([each.log_prob(x) for each in self._components])
        return reductions.reduce_logsumexp(logs + nn.log_softmax(self.cat.logits), -1)

    def _cdf(self, x: Tensor) -> Tensor:
        return reductions.reduce_sum(self._at_end([each.cdf(x) for each in self._components]) * self.cat.probs, -1)

    def _mean(self) -> Tensor:
        return reductions.reduce_sum(self._at_end([each.mean() for each in self._components]) * self._shares(), -1)

    def _variance(self) -> Tensor:
        shares, means = self._shares(), self._at_end([each.mean() for each in self._components])
        within = self._at_end([each.variance() for each in self._components])
        mean = reductions.reduce_sum(means * shares, -1, keepdims=True)
        return reductions.reduce_sum((within + math.square(means - mean)) * shares, -1)


class MixtureSameFamily(Distribution):
    """Mixture of the distributions along the last dimension of a batch.

    Args:
      mixture_distribution: the `Categorical` of the component.
      components_distribution: the components, whose batch shape ends with their number.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: the number of classes is not the number of components.

    Attributes:
      mixture_distribution: the distribution of the component.
      components_distribution: the components.
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        arguments = dict(locals())
        classes = dimension_value(mixture_distribution.logits.shape[-1])
        parts = dimension_value(components_distribution.batch_shape[-1])
        if None not in (classes, parts) and classes != parts:
            raise ValueError(
                f"`mixture_distribution components` ({classes}) does not equal "
                f"`components_distribution.batch_shape[-1]` ({parts})"
            )
        self.mixture_distribution, self.components_distribution = mixture_distribution, components_distribution
        parents = [*mixture_distribution._graph_parents, *components_distribution._graph_parents]
        super().__init__(
            components_distribution.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, parents, name
        )

    def _batch_shape(self) -> TensorShape:
        return self.components_distribution.batch_shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return self.components_distribution.batch_shape_tensor()[:-1]

    def _event_shape(self) -> TensorShape:
        return self.components_distribution.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self.components_distribution.event_shape_tensor()

    def _axis(self) -> int:
        """The component's dimension in samples and moments of the components."""
        return -1 - (self.event_shape.ndims or 0)

    def _before_event(self, weights: Tensor) -> Tensor:
        """[..., components] with 1 for each dimension of samples at the end."""
        for _ in range(self.event_shape.ndims or 0):
            weights = arrays.expand_dims(weights, -1)
        return math.cast(weights, self.dtype)

    def _weighted(self, values: Tensor) -> Tensor:
        return reductions.reduce_sum(self._before_event(self.mixture_distribution.probs) * values, self._axis())

    def _sample_n(self, n: Any, seed: int | None) -> Tensor:
        drawn = self.components_distribution.sample(n, seed)
        sizes = arrays.concat([arrays.stack([n]), self.batch_shape_tensor()], 0)
        batch = self.mixture_distribution.batch_shape
        chosen = self.mixture_distribution.sample(n if batch.ndims else sizes, None if seed is None else seed + 1)
        hits = indexing.one_hot(math.cast(chosen, int32), self.mixture_distribution.event_size, dtype=self.dtype)
        return reductions.reduce_sum(drawn * self._before_event(hits), self._axis())

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = self.components_distribution.log_prob(arrays.expand_dims(x, self._axis()))
        return reductions.reduce_logsumexp(logs + nn.log_softmax(self.mixture_distribution.logits), -1)

    def _cdf(self, x: Tensor) -> Tensor:
        return reductions.reduce_sum(
            self.mixture_distribution.probs * self.components_distribution.cdf(arrays.expand_dims(x, self._axis())), -1
        )

    def _mean(self) -> Tensor:
        return self._weighted(self.components_distribution.mean())

    def _variance(self) -> Tensor:
        means = self.components_distribution.mean()
        mean = arrays.expand_dims(self._weighted(means), self._axis())
        return self._weighted(self.components_distribution.variance() + math.square(means - mean))

    def _covariance(self) -> Tensor:
        """Returns the covariance of vectors: [batch, k, k]."""
        means = self.components_distribution.mean()
        apart = means - arrays.expand_dims(self._weighted(means), self._axis())
        outer = linalg.matmul(arrays.expand_dims(apart, -1), arrays.expand_dims(apart, -2))
        shares = arrays.expand_dims(self._before_event(self.mixture_distribution.probs), -1)
        return reductions.reduce_sum(shares * (self.components_distribution.covariance() + outer), self._axis() - 1)


def softplus_inverse(x: TensorLike, name: str | None = None) -> Tensor:
    """Returns y with softplus(y) = x, for positive x, also where exp(x) − 1 is 0 or infinite in its type."""
    found = arrays.identity(x, name=name)
    edge = float(np.log(np.finfo(found.dtype.as_numpy_dtype).eps)) + 2.0
    small, large = found < float(np.exp(edge)), found > -edge
    inner = indexing.where(math.logical_or(small, large), arrays.ones_like(found), found)
    exact = inner + math.log(-math.expm1(-inner))
    return indexing.where(small, math.log(found), indexing.where(large, found, exact))
