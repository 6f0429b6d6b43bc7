"""Base of all distributions: probabilities, samples and moments, in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import DType, as_dtype, int32
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import ShapeLike, TensorShape, as_shape
from headwater.tf1.functional import arrays, math, reductions

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.registry import HostArray


class ReparameterizationType:
    """Type of reparameterization: whether gradients flow from samples to the parameters.

    Args:
      rep_type: name of the type.
    """

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameteriation Type: {self._rep_type}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """A distribution, or a batch of independent distributions.

    Subclasses define any of `_log_prob`, `_prob`, `_cdf`, `_sample_n`, `_mean`, …, and `_batch_shape`, `_event_shape`
    and their tensors.

    Args:
      dtype: type of samples.
      reparameterization_type: `FULLY_REPARAMETERIZED` or `NOT_REPARAMETERIZED`.
      validate_args: whether a step checks parameters and values.
      allow_nan_stats: whether undefined statistics are NaN; otherwise they are errors.
      parameters: the arguments of the class, for `copy`.
      graph_parents: tensors that it depends on.

    Attributes:
      reparameterization_type: whether gradients flow through samples.
      allow_nan_stats: whether undefined statistics are NaN.
      validate_args: whether a step checks parameters and values.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: Mapping[str, Any] | None = None,
        graph_parents: Sequence[Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        self.dtype: DType = as_dtype(dtype)
        self.reparameterization_type: ReparameterizationType = reparameterization_type
        self.validate_args: bool = validate_args
        self.allow_nan_stats: bool = allow_nan_stats
        self._parameters = {key: value for key, value in (parameters or {}).items() if key not in ("self", "__class__")}
        self._graph_parents = list(graph_parents or ())
        with name_scope(name or type(self).__name__, "", self._graph_parents) as scope:
            self.name: str = scope

    def _call(self, method: str, name: str, *args: object) -> Tensor:
        """Returns the result of ``_method``, or derives it from other methods of the class."""
        with name_scope(f"{self.name}{name}/", "", list(args)):
            found = self._find(method)
            if found is None:
                raise NotImplementedError(f"{method} is not implemented: {type(self).__name__}")
            return found(*args)

    def _find(self, method: str) -> Callable[..., Any] | None:
        own = getattr(self, f"_{method}", None)
        if own is not None:
            return own
        derived: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
            "prob": ("log_prob", math.exp),
            "log_prob": ("prob", math.log),
            "cdf": ("log_cdf", math.exp),
            "log_cdf": ("cdf", math.log),
            "survival_function": ("cdf", lambda p: 1.0 - p),
            "log_survival_function": ("cdf", lambda p: math.log1p(-p)),
            "stddev": ("variance", math.sqrt),
            "variance": ("stddev", math.square),
        }
        if method not in derived:
            return None
        source, change = derived[method]
        other = getattr(self, f"_{source}", None)
        if other is None and source == "cdf" and hasattr(self, "_log_cdf"):
            other = self._find("cdf")
        return None if other is None else lambda *args: change(other(*args))

    # Properties -----------------------------------------------------------------------------------------------------

    @classmethod
    def param_shapes(cls, sample_shape: object, name: str = "DistributionParamShapes") -> dict[str, Tensor]:
        """Shapes of parameters with which a sample has this shape."""
        with name_scope(name, "", [sample_shape]):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: ShapeLike) -> dict[str, TensorShape]:
        """Returns `param_shapes` for a known shape.

        Raises:
          ValueError: it is not known.
        """
        shape = as_shape(sample_shape)
        if not shape.is_fully_defined():
            raise ValueError("TensorShape sample_shape must be fully defined")
        return {name: TensorShape(_numbers(value)) for name, value in cls.param_shapes(shape.as_list()).items()}

    @classmethod
    def _param_shapes(cls, sample_shape: object) -> dict[str, Tensor]:
        raise NotImplementedError("_param_shapes not implemented")

    @property
    def parameters(self) -> dict[str, object]:
        """The arguments of the class."""
        return dict(self._parameters)

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the batch."""
        return as_shape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """The shape of a single draw."""
        return as_shape(self._event_shape())

    def _batch_shape(self) -> Any:
        return None

    def _event_shape(self) -> Any:
        return ()

    def _batch_shape_tensor(self) -> Tensor:
        raise NotImplementedError("batch_shape_tensor is not implemented")

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor(np.zeros(0, np.int32))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch as a tensor."""
        static = self.batch_shape
        with name_scope(f"{self.name}{name}/", ""):
            return _ints(static.as_list()) if static.is_fully_defined() else self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The shape of a single draw, as a tensor."""
        static = self.event_shape
        with name_scope(f"{self.name}{name}/", ""):
            return _ints(static.as_list()) if static.is_fully_defined() else self._event_shape_tensor()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Returns whether samples are scalars, as a tensor."""
        with name_scope(f"{self.name}{name}/", ""):
            return _is_scalar(self.event_shape, self._event_shape_tensor)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Returns whether the batch shape is empty, as a tensor."""
        with name_scope(f"{self.name}{name}/", ""):
            return _is_scalar(self.batch_shape, self._batch_shape_tensor)

    def copy(self, **override_parameters_kwargs: Any) -> Distribution:
        """The same with other arguments."""
        make: Callable[..., Distribution] = type(self)
        return make(**{**self._parameters, **override_parameters_kwargs})

    # Computations ---------------------------------------------------------------------------------------------------

    def sample(self, sample_shape: ShapeLike = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draws samples: [*sample_shape, *batch, *event]."""
        with name_scope(f"{self.name}{name}/", ""):
            shape = convert_to_tensor(
                _as_list(sample_shape) if not isinstance(sample_shape, Tensor) else sample_shape, int32
            )
            shape = arrays.reshape(shape, [-1])
            static = _static(sample_shape)
            count = int(np.prod(static)) if static is not None else _product(shape)
            drawn = self._sample_n(count, seed)
            inner = arrays.shape(drawn)[1:]
            found = arrays.reshape(drawn, arrays.concat([shape, inner], 0))
            if static is not None:
                found.set_shape(TensorShape(static).concatenate(self.batch_shape).concatenate(self.event_shape))
            return found

    def _sample_n(self, n: TensorLike, seed: int | None) -> Tensor:
        raise NotImplementedError(f"sample is not implemented: {type(self).__name__}")

    def _valid(self, value: Tensor) -> Tensor:
        """Returns a value, with checks if `validate_args` is set."""
        return self._validated(value) if self.validate_args else value

    def _validated(self, value: Tensor) -> Tensor:
        return value

    def _value(self, value: Tensor) -> Tensor:
        return convert_to_tensor(value, preferred_dtype=self.dtype, name="value")

    def log_prob(self, value: Tensor, name: str = "log_prob") -> Tensor:
        """The logarithm of the probability, or of its density."""
        return self._call("log_prob", name, self._value(value))

    def prob(self, value: Tensor, name: str = "prob") -> Tensor:
        """The probability, or its density."""
        return self._call("prob", name, self._value(value))

    def log_cdf(self, value: Tensor, name: str = "log_cdf") -> Tensor:
        """The logarithm of `cdf`."""
        return self._call("log_cdf", name, self._value(value))

    def cdf(self, value: Tensor, name: str = "cdf") -> Tensor:
        """Returns the cumulative distribution function: the probability of samples up to ``value``."""
        return self._call("cdf", name, self._value(value))

    def log_survival_function(self, value: Tensor, name: str = "log_survival_function") -> Tensor:
        """The logarithm of `survival_function`."""
        return self._call("log_survival_function", name, self._value(value))

    def survival_function(self, value: Tensor, name: str = "survival_function") -> Tensor:
        """Returns the probability of samples above ``value``."""
        return self._call("survival_function", name, self._value(value))

    def quantile(self, value: Tensor, name: str = "quantile") -> Tensor:
        """Returns the quantile: the value that samples do not exceed with the probability ``value``."""
        if self._find("quantile") is None:
            raise NotImplementedError(f"quantile is not implemented: {type(self).__name__}")
        return self._call("quantile", name, self._value(value))

    def entropy(self, name: str = "entropy") -> Tensor:
        """Shannon's entropy, in nats."""
        return self._call("entropy", name)

    def mean(self, name: str = "mean") -> Tensor:
        """The mean."""
        return self._call("mean", name)

    def variance(self, name: str = "variance") -> Tensor:
        """The variance."""
        return self._call("variance", name)

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviation."""
        return self._call("stddev", name)

    def covariance(self, name: str = "covariance") -> Tensor:
        """Returns the covariance of the elements of samples."""
        return self._call("covariance", name)

    def mode(self, name: str = "mode") -> Tensor:
        """Returns the most probable value."""
        return self._call("mode", name)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """Shannon's cross entropy, in nats.

        Raises:
          NotImplementedError: no divergence of these classes is registered.
        """
        with name_scope(f"{self.name}{name}/", ""):
            return divergence.between(self, other) + self.entropy()

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """The divergence of Kullback and Leibler, in nats.

        Raises:
          NotImplementedError: no divergence of these classes is registered.
        """
        with name_scope(f"{self.name}{name}/", ""):
            return divergence.between(self, other)

    def __str__(self) -> str:
        return (
            f'tfp.distributions.{type(self).__name__}("{self.name}", batch_shape={self.batch_shape}, '
            f"event_shape={self.event_shape}, dtype={self.dtype.name})"
        )

    def __repr__(self) -> str:
        return (
            f"<tfp.distributions.{type(self).__name__} {self.name!r} batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={self.dtype.name}>"
        )


class _Divergence:
    """Holder of the divergence functions; their module sets them, because it imports this one."""

    between: Callable[[Distribution, Distribution], Tensor]


divergence = _Divergence()


def _numbers(tensor: Tensor) -> list[int]:
    value = constant_value(tensor)
    if value is None:
        raise ValueError("sample_shape must be a fully defined TensorShape or list/tuple")
    return [int(size) for size in value]


def _ints(values: Sequence[int | None]) -> Tensor:
    return convert_to_tensor(np.array(values, np.int32))


def _as_list(shape: ShapeLike) -> HostArray:
    if isinstance(shape, TensorShape):
        return np.array(shape.as_list(), np.int32)
    return np.array(shape, np.int32)


def _static(shape: ShapeLike) -> list[int] | None:
    value = constant_value(shape) if isinstance(shape, Tensor) else _as_list(shape)
    return None if value is None else [int(size) for size in np.atleast_1d(value)]


def _product(shape: Tensor) -> Tensor:
    return reductions.reduce_prod(shape)


def _is_scalar(static: TensorShape, dynamic: Callable[[], Tensor]) -> Tensor:
    if static.ndims is not None:
        return convert_to_tensor(static.ndims == 0)
    return math.equal(arrays.size(dynamic()), 0)


def float_parameters(name: str, **values: Any) -> list[Tensor]:
    """Converts parameters to tensors of one floating type, by default float32 for Python numbers.

    Raises:
      ValueError: their types differ, or are not floating.
    """
    with name_scope(f"{name}_parameters", "", list(values.values())):
        tensors = [convert_to_tensor(value, name=key) for key, value in values.items()]
        if any(tensor.dtype.base_dtype != tensors[0].dtype.base_dtype for tensor in tensors):
            raise ValueError(f"Tensor type mismatch: {', '.join(f'{t.name} is {t.dtype.name}' for t in tensors)}")
        if not tensors[0].dtype.is_floating:
            raise ValueError(f"Expected floating point type, got {tensors[0].dtype.base_dtype!r}.")
        return [arrays.identity(tensor) for tensor in tensors]


def broadcast_shape(*tensors: Tensor) -> TensorShape:
    """The shape that tensors broadcast to."""
    found = tensors[0].shape
    for tensor in tensors[1:]:
        found = arrays.broadcast_static_shape(found, tensor.shape)
    return found


def broadcast_shape_tensor(*tensors: Tensor) -> Tensor:
    """The shape that tensors broadcast to, as a tensor."""
    found = arrays.shape(tensors[0])
    for tensor in tensors[1:]:
        found = arrays.broadcast_dynamic_shape(found, arrays.shape(tensor))
    return found
