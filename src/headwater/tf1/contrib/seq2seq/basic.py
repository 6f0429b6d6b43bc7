"""`BasicDecoder`: runs a cell with inputs that a helper chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.graph.convert import name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.contrib.seq2seq.decoding import Decoder, KnownTurns
from headwater.tf1.contrib.seq2seq.helpers import Helper
from headwater.tf1.functional import nest
from headwater.tf1.layers.base import Layer
from headwater.tf1.rnn.networks import require_cell

if TYPE_CHECKING:
    from headwater.graph.types import Structure
    from headwater.tf1.rnn.cells import RNNCell


class BasicDecoderOutput(NamedTuple):
    """The outputs of a `BasicDecoder`.

    Attributes:
      rnn_output: the output of the cell, or of the output layer.
      sample_id: the helper's choice.
    """

    rnn_output: Any
    sample_id: Any


def size_after(layer: Layer | None, size: Any) -> Any:
    """The size of a layer's output, without the batch, for an input of ``size``; ``size`` without a layer."""
    if layer is None:
        return size
    shape = layer.compute_output_shape(
        TensorShape([None]).concatenate(as_shape([size] if isinstance(size, int) else size))
    )
    return as_shape(shape)[1:]


def require_layer(layer: object) -> None:
    """TypeError unless ``layer`` is a `Layer` or None."""
    if layer is not None and not isinstance(layer, Layer):
        raise TypeError(f"output_layer must be a Layer, received: {type(layer)}")


class BasicDecoder(Decoder):
    """Decoder of a cell, a helper that chooses the cell's inputs, and an output layer.

    Args:
      cell: an `RNNCell`.
      initial_state: the cell's state before the first step.
      output_layer: applied to outputs before the helper samples from them.

    Raises:
      TypeError: an argument has the wrong type.
    """

    def __init__(
        self, cell: RNNCell, helper: Helper, initial_state: Structure, output_layer: Layer | None = None
    ) -> None:
        require_cell("cell", cell)
        if not isinstance(helper, Helper):  # pyright: ignore[reportUnnecessaryIsInstance]  a user's argument
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        require_layer(output_layer)
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    def _rnn_output_size(self) -> Any:
        return size_after(self._output_layer, self._cell.output_size)

    @property
    def output_size(self) -> BasicDecoderOutput:
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = nest.flatten(self._initial_state)[0].dtype.base_dtype
        size = self._rnn_output_size()
        types = nest.pack(size, [dtype] * len(nest.flatten(size)))
        return BasicDecoderOutput(types, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        return (*self._helper.initialize(), self._initial_state)

    def known_turns(self) -> KnownTurns | None:
        """The number of steps, if only the helper's sequence lengths determine it."""
        return self._helper.known_turns() if type(self) is BasicDecoder else None

    def step(self, time: Tensor, inputs: Structure, state: Structure, name: str | None = None) -> Any:
        with name_scope(name, "BasicDecoderStep", [time, *nest.flatten(inputs)]):
            outputs, after = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=after)
            finished, following, after = self._helper.next_inputs(
                time=time, outputs=outputs, state=after, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), after, following, finished
