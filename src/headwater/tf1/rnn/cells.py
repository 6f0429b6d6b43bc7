"""`RNNCell` and the simple cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape, dimension_value
from headwater.tf1.functional import arrays, linalg, math, nest, nn
from headwater.tf1.layers.base import InputSpec, Layer
from headwater.tf1.layers.configuration import activation_of
from headwater.tf1.variables.initializers import ZEROS, Constant
from headwater.tf1.variables.variable_scope import get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.variables import Variable


KERNEL, BIAS = "kernel", "bias"


def zeros_of(size: TensorLike, batch_size: Any, dtype: Any) -> Structure:
    """Returns zeros of shape [batch_size, *size] for every size in a structure of sizes."""
    kind = as_dtype(dtype)

    def zeros(one: Any) -> Tensor:
        inner = as_shape(one).as_list() if not isinstance(one, int) else [one]
        if isinstance(batch_size, Tensor):
            sizes = arrays.concat(
                [arrays.expand_dims(batch_size, 0), convert_to_tensor(cast("list[int]", inner), dtypes.int32)], 0
            )
            result = arrays.zeros(sizes, kind)
            result.set_shape([None, *inner])
            return result
        return arrays.zeros([int(batch_size), *inner], kind)

    return nest.map_structure(zeros, size) if isinstance(size, list | tuple) else zeros(size)


class RNNCell(Layer):
    """Base of all cells: ``output, state = cell(inputs, state)``.

    A subclass defines `state_size`, `output_size`, and `call` (or ``__call__`` with a third argument ``scope``).
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | VariableScope | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)

    def __call__(
        self,
        inputs: Structure,
        state: Structure = None,
        scope: str | VariableScope | None = None,
        *args: object,
        **kwargs: object,
    ) -> Structure:
        """Runs one step.

        Args:
          inputs: a matrix, an example a row.
          state: with the sizes `state_size`.
          scope: variable scope of the cell's variables, in place of the current one.

        Returns:
          The output and the next state.
        """
        with variable_scope(get_variable_scope() if scope is None else scope):
            return super().__call__(inputs, state, *args, **kwargs)

    @classmethod
    def from_config(cls, config: Mapping[str, object], custom_objects: Mapping[str, object] | None = None) -> Self:
        return super().from_config(config, named_cells(custom_objects))

    @property
    def state_size(self) -> Structure:
        """The sizes of the state: numbers or shapes, nested as the state is."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_size")

    @property
    def output_size(self) -> Structure:
        """The size of the output."""
        raise NotImplementedError(f"{type(self).__name__} does not define output_size")

    def get_initial_state(
        self, inputs: TensorLike | None = None, batch_size: TensorLike | None = None, dtype: DTypeLike | None = None
    ) -> Structure:
        """Zeros, for the batch size and type of ``inputs`` or as given.

        Raises:
          ValueError: neither ``inputs`` nor both others are given, or they contradict each other.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            batch_size = arrays.shape(inputs)[0] if batch_size is None else batch_size
            dtype = inputs.dtype if dtype is None else dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike | None) -> Structure:
        """A state of zeros."""
        with name_scope(f"{type(self).__name__}ZeroState", None, [batch_size]):
            return zeros_of(self.state_size, batch_size, dtype)


def named_cells(custom_objects: Mapping[str, object] | None) -> dict[str, object]:
    """Returns all classes of cells by name, and ``custom_objects``."""
    kinds: list[type[RNNCell]] = [RNNCell]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {**{kind.__name__: kind for kind in kinds}, **(custom_objects or {})}


class LayerCell(RNNCell):
    """A cell with its variables in a scope of its own name."""

    def __call__(
        self,
        inputs: Structure,
        state: Structure = None,
        scope: str | VariableScope | None = None,
        *args: object,
        **kwargs: object,
    ) -> Structure:
        return Layer.__call__(self, inputs, state, *args, **({"scope": scope} if scope is not None else {}), **kwargs)

    def _depth(self, input_shape: ShapeLike) -> int:
        depth = dimension_value(as_shape(input_shape)[-1])
        if depth is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {input_shape}")
        self.input_spec: object = InputSpec(ndim=2)
        return depth


class _OneStateCell(LayerCell):
    """A cell with one state of the size of its output."""

    _num_units: int

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class BasicRNNCell(_OneStateCell):
    """output = state = activation([inputs, state] kernel + bias).

    Args:
      num_units: the size of the state.
      activation: tanh if None.
      reuse, name, dtype: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | VariableScope | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._activation = activation_of(activation) or math.tanh
        self._kernel: Variable | None = None
        self._bias: Variable | None = None

    def build(self, input_shape: ShapeLike) -> None:
        depth = self._depth(input_shape)
        self._kernel = self.add_variable(KERNEL, shape=[depth + self._num_units, self._num_units])
        self._bias = self.add_variable(BIAS, shape=[self._num_units], initializer=ZEROS)
        self.built = True

    def call(self, inputs: Structure, state: Structure) -> tuple[Tensor, Tensor]:
        gates = nn.bias_add(linalg.matmul(arrays.concat([inputs, state], 1), self._kernel), self._bias)
        output = self._activation(gates)
        return output, output


class GRUCell(_OneStateCell):
    """Gated recurrent unit (Cho et al., 2014).

    r, u = sigmoid([x, h] K₁ + b₁); c = activation([x, r h] K₂ + b₂); h := u h + (1 - u) c.

    Args:
      num_units: the size of the state.
      activation: tanh if None.
      kernel_initializer: the initializer of both kernels.
      bias_initializer: the initializer of both biases; 1 for the gates and 0 for the candidate if None.
      reuse, name, dtype: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | VariableScope | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._activation = activation_of(activation) or math.tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._gates: tuple[object, object] = (None, None)
        self._candidate: tuple[Any, Any] = (None, None)

    def build(self, input_shape: ShapeLike) -> None:
        rows, units = self._depth(input_shape) + self._num_units, self._num_units
        given = self._bias_initializer
        self._gates = (
            self.add_variable(f"gates/{KERNEL}", shape=[rows, 2 * units], initializer=self._kernel_initializer),
            self.add_variable(
                f"gates/{BIAS}", shape=[2 * units], initializer=Constant(1.0) if given is None else given
            ),
        )
        self._candidate = (
            self.add_variable(f"candidate/{KERNEL}", shape=[rows, units], initializer=self._kernel_initializer),
            self.add_variable(f"candidate/{BIAS}", shape=[units], initializer=ZEROS if given is None else given),
        )
        self.built = True

    def call(self, inputs: Structure, state: Structure) -> tuple[Tensor, Tensor]:
        gates = math.sigmoid(
            nn.bias_add(linalg.matmul(arrays.concat([inputs, state], 1), self._gates[0]), self._gates[1])
        )
        reset, update = arrays.split(gates, 2, 1)
        candidate = linalg.matmul(arrays.concat([inputs, reset * state], 1), self._candidate[0])
        candidate = self._activation(nn.bias_add(candidate, self._candidate[1]))
        result = update * state + (1 - update) * candidate
        return result, result
