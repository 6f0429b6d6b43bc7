"""Decoders unrolled in the graph: plain, with embeddings, and with attention (Vinyals et al., 2015)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape, dimension_value
from headwater.tf1.contrib.rnn.projections import linear
from headwater.tf1.functional import arrays, linalg, math, nest, nn, reductions
from headwater.tf1.variables.embedding import embedding_lookup
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.tf1.rnn.cells import RNNCell
    from headwater.tf1.variables.scope_settings import VariableScope

    Scope = str | VariableScope | None

LoopFunction = Callable[[Any, int], Any]


def rnn_decoder(
    decoder_inputs: Iterable[Any],
    initial_state: object,
    cell: RNNCell,
    loop_function: LoopFunction | None = None,
    scope: Scope = None,
) -> tuple[list[Any], Any]:
    """Runs a cell along a list of inputs; returns the list of outputs, and the last state.

    Args:
      decoder_inputs: for each step [batch, size].
      initial_state: the state before the first step.
      cell: an `RNNCell`.
      loop_function: ``f(previous output, step)`` returns the input of each step except the first.
      scope: variable scope; ``rnn_decoder`` if None.
    """
    outputs: list[Any] = []
    state = initial_state
    with variable_scope(scope or "rnn_decoder"):
        for index, item in enumerate(decoder_inputs):
            given = _given(loop_function, outputs, index, item)
            if index > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
    return outputs, state


def _given(loop_function: LoopFunction | None, outputs: Sequence[Any], index: int, item: object) -> Any:
    if loop_function is None or not outputs:
        return item
    with variable_scope("loop_function", reuse=True):
        return loop_function(outputs[-1], index)


def previous_symbols(embedding: object, output_projection: Any, update_embedding: bool) -> LoopFunction:
    """A loop function that embeds the most probable symbol of the previous output.

    Args:
      embedding: the embeddings of all symbols.
      output_projection: weights and biases that map outputs to logits; None if outputs are logits.
      update_embedding: whether a gradient flows to the embeddings of these symbols.
    """

    def found(previous: Any, index: int) -> Any:
        del index
        if output_projection is not None:
            previous = nn.xw_plus_b(previous, output_projection[0], output_projection[1])
        embedded = embedding_lookup(embedding, reductions.argmax(previous, 1))
        return embedded if update_embedding else arrays.stop_gradient(embedded)

    return found


def check_projection(output_projection: Any, symbols: int, dtype: DTypeLike | None, weights: bool = True) -> None:
    """Checks the shapes of weights [size, symbols] and biases [symbols].

    Raises:
      ValueError: they differ.
    """
    if output_projection is None:
        return
    if weights:
        convert_to_tensor(output_projection[0], dtype).shape.assert_is_compatible_with(as_shape([None, symbols]))
    convert_to_tensor(output_projection[1], dtype).shape.assert_is_compatible_with(as_shape([symbols]))


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: object,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    output_projection: object = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Scope = None,
) -> tuple[list[Any], Any]:
    """`rnn_decoder` with embeddings of symbols as inputs.

    Args:
      decoder_inputs: for each step symbols [batch].
      num_symbols: the number of symbols.
      embedding_size: the size of an embedding.
      output_projection: weights [size, symbols] and biases [symbols] that map outputs to logits of symbols.
      feed_previous: use the most probable symbol of each output as the next input; else use ``decoder_inputs``.
      update_embedding_for_previous: whether a gradient flows to the embeddings of these symbols.
      initial_state, cell: see `rnn_decoder`.
      scope: variable scope; ``embedding_rnn_decoder`` if None.

    Raises:
      ValueError: the projection has the wrong shape.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as entered:
        check_projection(output_projection, num_symbols, entered.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = previous_symbols(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = (embedding_lookup(embedding, each) for each in decoder_inputs)
        return rnn_decoder(inputs, initial_state, cell, loop)


class _Heads:
    """Attention to ``states`` [batch, time, size] with several heads of the score v·tanh(W query + U state)."""

    def __init__(self, states: Tensor, count: int, dtype: Any) -> None:
        self._states, self._dtype = states, dtype
        self._size = int(states.shape[2])
        flat = arrays.reshape(states, [-1, self._size])
        self._keys: list[Tensor] = []
        self._v: list[Any] = []
        for head in range(count):
            kernel = get_variable(f"AttnW_{head}", [1, 1, self._size, self._size], dtype=dtype)
            product = linalg.matmul(flat, arrays.reshape(kernel, [self._size, self._size]))
            self._keys.append(arrays.reshape(product, arrays.shape(states)))
            self._v.append(get_variable(f"AttnV_{head}", [self._size], dtype=dtype))

    def __call__(self, query: Any) -> list[Tensor]:
        """The mean of the states for each head, [batch, size]."""
        query = arrays.concat(nest.flatten(query), 1) if nest.is_nested(query) else query
        found: list[Tensor] = []
        for head, (keys, v) in enumerate(zip(self._keys, self._v, strict=True)):
            with variable_scope(f"Attention_{head}"):
                wanted = math.cast(linear(query, self._size, True), self._dtype)
                score = reductions.reduce_sum(v * math.tanh(keys + arrays.expand_dims(wanted, 1)), [2])
                weights = math.cast(nn.softmax(math.cast(score, dtypes.float32)), self._dtype)
                mean = arrays.squeeze(linalg.matmul(arrays.expand_dims(weights, 1), self._states), [1])
                mean.set_shape([None, self._size])
                found.append(mean)
        return found

    def zeros(self, batch: Tensor) -> list[Tensor]:
        found = [arrays.zeros(arrays.stack([batch, self._size]), self._dtype) for _ in self._keys]
        for each in found:
            each.set_shape([None, self._size])
        return found


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: object,
    attention_states: Tensor,
    cell: RNNCell,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: LoopFunction | None = None,
    dtype: DTypeLike | None = None,
    scope: Scope = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`rnn_decoder` with attention to ``attention_states`` [batch, time, size] in every step.

    Args:
      output_size: the size of the outputs, which a layer computes from the cell's output and the attention; the cell's
        output size if None.
      num_heads: the number of attentions.
      dtype: the dtype of the variables; the scope's if None.
      initial_state_attention: attend before the first step; else its attention is zero.
      decoder_inputs, initial_state, cell, loop_function: see `rnn_decoder`.
      scope: variable scope; ``attention_decoder`` if None.

    Raises:
      ValueError: there are no inputs or heads, or a size is not known.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if dimension_value(attention_states.shape[2]) is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    size: Any = cell.output_size if output_size is None else output_size
    outputs: list[Any] = []
    state = initial_state
    with variable_scope(scope or "attention_decoder", dtype=dtype) as entered:
        kind = entered.dtype
        attend = _Heads(attention_states, num_heads, kind)
        attention = attend.zeros(arrays.shape(decoder_inputs[0])[0])
        if initial_state_attention:
            attention = attend(initial_state)
        for index, item in enumerate(decoder_inputs):
            if index > 0:
                get_variable_scope().reuse_variables()
            given = _given(loop_function, outputs, index, item)
            columns = dimension_value(given.shape[1])
            if columns is None:
                raise ValueError(f"Could not infer input size from input: {given.name}")
            joined = linear([math.cast(each, kind) for each in (given, *attention)], columns, True)
            output, state = cell(joined, state)
            again = True if index == 0 and initial_state_attention else None
            with variable_scope(get_variable_scope(), reuse=again):
                attention = attend(state)
            with variable_scope("AttnOutputProjection"):
                outputs.append(linear([math.cast(output, kind), *attention], size, True))
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: object,
    attention_states: Tensor,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: object = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: DTypeLike | None = None,
    scope: Scope = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`attention_decoder` with embeddings of symbols as inputs; other arguments as for `embedding_rnn_decoder`.

    Raises:
      ValueError: the projection has the wrong shape.
    """
    size: Any = cell.output_size if output_size is None else output_size
    check_projection(output_projection, num_symbols, dtype, weights=False)
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = previous_symbols(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [embedding_lookup(embedding, each) for each in decoder_inputs]
        return attention_decoder(
            inputs,
            initial_state,
            attention_states,
            cell,
            output_size=size,
            num_heads=num_heads,
            loop_function=loop,
            initial_state_attention=initial_state_attention,
        )
