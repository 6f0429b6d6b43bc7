"""`AttentionWrapper`: a cell that attends to a memory in every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, dimension_value
from headwater.tf1.contrib.seq2seq.mechanisms import AttentionMechanism
from headwater.tf1.functional import arrays, checks, linalg, nest
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.tensor_arrays import TensorArray
from headwater.tf1.layers.core import Dense
from headwater.tf1.rnn.cells import RNNCell, zeros_of
from headwater.tf1.rnn.networks import require_cell

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`; with several mechanisms, fields are tuples.

    Attributes:
      cell_state: the wrapped cell's state.
      attention: the attention vector of the previous step.
      time: the number of steps so far.
      alignments: the weights of the previous step, [batch, time of the memory].
      alignment_history: a TensorArray of all weights, or ().
      attention_state: the mechanism's state.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: object) -> AttentionWrapperState:
        """Returns a state with other fields, which must have the same structure and shapes.

        Raises:
          ValueError: a shape differs.
        """
        return nest.map_structure(_in_shape_of, self, self._replace(**kwargs))


def _in_shape_of(old: object, new: object) -> Any:
    if not isinstance(old, Tensor) or not isinstance(new, Tensor):
        return new
    if not new.shape.is_compatible_with(old.shape):
        raise ValueError(f"Shapes {new.shape} of {new.name} and {old.shape} of {old.name} are incompatible")
    if old.shape.is_fully_defined() and not new.shape.is_fully_defined():
        new.set_shape(old.shape)
    return new


def _compute_attention(
    attention_mechanism: Any, cell_output: Tensor, attention_state: Structure, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """Returns the attention vector, the alignments, and the mechanism's next state."""
    alignments, next_state = attention_mechanism(cell_output, state=attention_state)
    context = linalg.matmul(arrays.expand_dims(alignments, 1), attention_mechanism.values)
    context = arrays.squeeze(context, [1])
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(arrays.concat([cell_output, context], 1)), alignments, next_state


def _beside(inputs: Tensor, attention: Tensor) -> Tensor:
    return arrays.concat([inputs, attention], -1)


class AttentionWrapper(RNNCell):
    """A cell that takes its previous attention as input, and returns the next attention as output.

    Args:
      cell: the cell that computes the queries.
      attention_mechanism: a mechanism or a list of several.
      attention_layer_size: depth of a layer without bias that computes the attention from [output, context]; a list for
        several mechanisms. Without this and ``attention_layer`` the context itself is the attention.
      alignment_history: keep the alignments of all steps in a TensorArray.
      cell_input_fn: ``f(inputs, attention)`` returns the cell's input; concatenates if None.
      output_attention: return the attention; False: the cell's output.
      initial_cell_state: state of the cell in `zero_state`.
      name, dtype: see `Layer`.
      attention_layer: a layer, or a list of layers, in place of ``attention_layer_size``.
      attention_fn: ``f(mechanism, cell_output, state, layer)`` returns attention, alignments and next state.

    Raises:
      TypeError: a mechanism, the cell or ``cell_input_fn`` has the wrong type.
      ValueError: both layer arguments are given, or there are not as many layers as mechanisms.
    """

    def __init__(
        self,
        cell: RNNCell,
        attention_mechanism: object,
        attention_layer_size: object = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[..., Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Structure = None,
        name: str | None = None,
        attention_layer: object = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        require_cell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._attention_mechanisms: tuple[Any, ...] = _tuple(attention_mechanism)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple AttentionMechanism "
                    f"instances, saw type: {type(mechanism).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}")
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._cell = cell
        self._cell_input_fn = cell_input_fn or _beside
        self._attention_fn = attention_fn or _compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._attention_layers = self._layers(attention_layer_size, attention_layer)
        self._attention_layer_size = self._attention_depth(attention_layer_size)
        self._initial_cell_state: Any = None
        if initial_cell_state is not None:
            with name_scope(name, "AttentionWrapperInit"):
                last: Tensor = nest.flatten(initial_cell_state)[-1]
                batch = dimension_value(last.shape[0])
                batch = arrays.shape(last)[0] if batch is None else batch
                self._initial_cell_state = self._checked(batch, initial_cell_state, "initial_cell_state")

    def _layers(self, sizes: object, layers: object) -> tuple[Any, ...] | None:
        given = layers if sizes is None else sizes
        if given is None:
            return None
        found = _tuple(given)
        if len(found) != len(self._attention_mechanisms):
            word = "attention_layer" if sizes is None else "attention_layer_size"
            raise ValueError(
                f"If provided, {word} must contain exactly one element per attention_mechanism, saw: "
                f"{len(found)} vs {len(self._attention_mechanisms)}"
            )
        if sizes is None:
            return found
        return tuple(
            Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.dtype)
            for size, mechanism in zip(found, self._attention_mechanisms, strict=True)
        )

    def _attention_depth(self, sizes: object) -> int:
        if sizes is not None:
            return sum(_tuple(sizes))
        depths = [dimension_value(mechanism.values.shape[-1]) for mechanism in self._attention_mechanisms]
        if self._attention_layers is None:
            return sum(depths)
        own: Any = self._cell.output_size
        shapes = [
            layer.compute_output_shape([None, own + depth])
            for layer, depth in zip(self._attention_layers, depths, strict=True)
        ]
        return sum(int(shape[-1]) for shape in shapes)

    def _checked(self, batch_size: TensorLike, state: Structure, where: str) -> Structure:
        """Returns ``state``, computed after a check that the memories have this batch size."""
        message = (
            f"When using {where} of AttentionWrapper {self._base_name}: Non-matching batch sizes between the memory "
            "(encoder output) and the requested batch size. With a BeamSearchDecoder, tile the encoder's output and "
            "state to beam_width via tf.contrib.seq2seq.tile_batch, and request batch_size * beam_width."
        )
        equal = [
            checks.assert_equal(batch_size, mechanism.batch_size, message=message)
            for mechanism in self._attention_mechanisms
        ]
        with control_dependencies(equal):
            parts = [arrays.identity(part, name="checked_cell_state") for part in nest.flatten(state)]
        return nest.pack(state, parts)

    def _one_or_all(self, values: Sequence[Any]) -> Any:
        return tuple(values) if self._is_multi else values[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        mechanisms = self._attention_mechanisms
        sizes = [mechanism.alignments_size for mechanism in mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_layer_size,
            time=TensorShape([]),
            alignments=self._one_or_all(sizes),
            alignment_history=self._one_or_all([size if self._alignment_history else () for size in sizes]),
            attention_state=self._one_or_all([mechanism.state_size for mechanism in mechanisms]),
        )

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike | None) -> AttentionWrapperState:
        """The state before the first step: zeros, except for ``initial_cell_state`` and monotonic alignments.

        Raises:
          InvalidArgumentError: a memory has the wrong batch size; raised by a step if the size is known only there.
        """
        mechanisms = self._attention_mechanisms
        with name_scope(f"{type(self).__name__}ZeroState", None, [batch_size]):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
            alignments = [mechanism.initial_alignments(batch_size, dtype) for mechanism in mechanisms]
            history = [
                TensorArray(dtype or dtypes.float32, size=0, dynamic_size=True, element_shape=alignment.shape)
                if self._alignment_history
                else ()
                for alignment in alignments
            ]
            return AttentionWrapperState(
                cell_state=self._checked(batch_size, cell_state, "zero_state"),
                attention=zeros_of(self._attention_layer_size, batch_size, dtype),
                time=convert_to_tensor(0, dtypes.int32),
                alignments=self._one_or_all(alignments),
                alignment_history=self._one_or_all(history),
                attention_state=self._one_or_all([m.initial_state(batch_size, dtype) for m in mechanisms]),
            )

    def call(self, inputs: Structure, state: Structure) -> tuple[Any, AttentionWrapperState]:
        """Runs one step.

        Raises:
          TypeError: ``state`` is not an `AttentionWrapperState`.
        """
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(f"Expected state to be instance of AttentionWrapperState. Received type {type(state)}.")
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        states = state.attention_state if self._is_multi else (state.attention_state,)
        histories = state.alignment_history if self._is_multi else (state.alignment_history,)
        layers = self._attention_layers or (None,) * len(self._attention_mechanisms)
        found = [
            self._attention_fn(mechanism, output, own, layer)
            for mechanism, own, layer in zip(self._attention_mechanisms, states, layers, strict=True)
        ]
        attentions, alignments, next_states = zip(*found, strict=True)
        written = [
            history.write(state.time, alignment) if self._alignment_history else ()
            for history, alignment in zip(histories, alignments, strict=True)
        ]
        attention = arrays.concat(list(attentions), 1)
        after = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=self._one_or_all(alignments),
            alignment_history=self._one_or_all(written),
            attention_state=self._one_or_all(next_states),
        )
        return (attention if self._output_attention else output), after


def _tuple(value: object) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
