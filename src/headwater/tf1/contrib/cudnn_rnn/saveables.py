"""Objects that save cuDNN's buffer of parameters as the variables of platform-independent cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from headwater.graph.context import get_default_graph
from headwater.tf1.contrib.cudnn_rnn import converters
from headwater.tf1.contrib.cudnn_rnn.converters import LINEAR_INPUT, UNIDIRECTION
from headwater.tf1.functional import arrays
from headwater.tf1.functional.saveable import SaveableObject, SaveSpec
from headwater.tf1.rnn.cells import BIAS, KERNEL
from headwater.tf1.variables import state
from headwater.tf1.variables.scope_settings import VariableScope

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.tf1.variables.variables import Variable


class CudnnOpaqueParamsSaveable(SaveableObject):
    """Base of the saveables of one kind of network.

    The tensors of a checkpoint are named as the variables of `MultiRNNCell` in `dynamic_rnn`, or of
    `stack_bidirectional_dynamic_rnn`.

    Args:
      opaque_params: the variable with the buffer.
      num_layers, num_units, input_size, input_mode, direction: see `CudnnParamsFormatConverter`.
      scope: the variable scope of the cells, or its name.
      name: the name of the saveable.
    """

    converter: ClassVar[type[converters.CudnnParamsFormatConverter]]
    _cell: ClassVar[str]
    _variables: ClassVar[tuple[str, ...]] = ("",)
    """Prefixes of a cell's kernels, and of its biases."""

    def __init__(
        self,
        opaque_params: Variable,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: str = LINEAR_INPUT,
        direction: str = UNIDIRECTION,
        scope: str | VariableScope | None = None,
        name: str = "cudnn_rnn_saveable",
    ) -> None:
        self.format_converter = self.converter(
            num_layers, num_units, input_size, input_mode=input_mode, direction=direction
        )
        self._params = opaque_params
        outer = scope.name if isinstance(scope, VariableScope) else scope
        prefixes = [f"{outer}/{cell}" if outer else cell for cell in self._cell_scopes(num_layers, direction)]
        names = [f"{prefix}/{part}{kind}" for kind in (KERNEL, BIAS) for prefix in prefixes for part in self._variables]
        with get_default_graph().device(opaque_params.device):
            weights, biases, *_ = self.format_converter.opaque_to_tf_canonical(opaque_params)
            specs = [SaveSpec(part, "", name) for part, name in zip(weights + biases, names, strict=True)]
            super().__init__(arrays.identity(opaque_params), specs, name)

    def _cell_scopes(self, num_layers: int, direction: str) -> list[str]:
        if direction == UNIDIRECTION:
            return [f"rnn/multi_rnn_cell/cell_{layer}/{self._cell}" for layer in range(num_layers)]
        return [
            f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{way}/{self._cell}"
            for layer in range(num_layers)
            for way in ("fw", "bw")
        ]

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[object] | None) -> Operation:
        del restored_shapes  # the converter determines the shapes, not the checkpoint
        value = self.format_converter.tf_canonical_to_opaque(restored_tensors)
        return state.assign(self._params, value, validate_shape=False).op


class CudnnLSTMSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnLSTM` as `CudnnCompatibleLSTMCell`."""

    converter = converters.CudnnParamsFormatConverterLSTM
    _cell = "cudnn_compatible_lstm_cell"


class CudnnGRUSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnGRU` as `CudnnCompatibleGRUCell`."""

    converter = converters.CudnnParamsFormatConverterGRU
    _cell = "cudnn_compatible_gru_cell"
    _variables = ("gates/", "candidate/input_projection/", "candidate/hidden_projection/")


class CudnnRNNTanhSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnRNNTanh` as `BasicRNNCell`."""

    converter = converters.CudnnParamsFormatConverterTanh
    _cell = "basic_rnn_cell"


class CudnnRNNReluSaveable(CudnnRNNTanhSaveable):
    """Saves a `CudnnRNNRelu` as `BasicRNNCell`."""

    converter = converters.CudnnParamsFormatConverterRelu
