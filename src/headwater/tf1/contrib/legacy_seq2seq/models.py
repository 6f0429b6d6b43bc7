"""Models of two networks unrolled in the graph: an encoder, and a decoder that begins with its last state.

In all functions ``encoder_inputs`` and ``decoder_inputs`` are lists with a tensor for each step, and the result is the
list of the decoder's outputs and its last state. ``feed_previous`` may be a boolean tensor: then both decoders are in
the graph, and a step runs one of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.tf1.contrib.legacy_seq2seq.decoders import (
    check_projection,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    previous_symbols,
    rnn_decoder,
)
from headwater.tf1.contrib.rnn.projections import EmbeddingWrapper, OutputProjectionWrapper
from headwater.tf1.functional import arrays, nest
from headwater.tf1.functional.conditions import cond
from headwater.tf1.rnn.cells import RNNCell
from headwater.tf1.rnn.networks import static_rnn
from headwater.tf1.variables.embedding import embedding_lookup
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.tf1.variables.scope_settings import VariableScope

    Scope = str | VariableScope | None
    Decoded = tuple[list[Any], Any]


def _either(feed_previous: Any, decode: Callable[[bool, bool], Decoded]) -> Decoded:
    """Runs ``decode(feed_previous, update_embedding)``, or one of two decoders that share variables."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous, True)
    pattern: list[Any] = []

    def branch(previous: bool) -> list[Any]:
        with variable_scope(get_variable_scope(), reuse=None if previous else True):
            outputs, state = decode(previous, False)
        pattern.append(state)
        return [*outputs, *nest.flatten(state)]

    found: Any = cond(feed_previous, lambda: branch(True), lambda: branch(False))
    count = len(found) - len(nest.flatten(pattern[0]))
    return list(found[:count]), nest.pack(pattern[0], found[count:])


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    dtype: DTypeLike = dtypes.float32,
    scope: Scope = None,
) -> Decoded:
    """Encodes with a copy of ``cell``, and decodes with ``cell``; inputs are [batch, size]."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: DTypeLike = dtypes.float32,
    scope: Scope = None,
) -> Decoded:
    """Encodes and decodes with the same variables; see `rnn_decoder` for ``loop_function``."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        inner = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=inner)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, inner)


def _encoded(cell: RNNCell, inputs: Sequence[Any], symbols: int, size: int, dtype: Any) -> tuple[list[Any], Any]:
    wrapped = EmbeddingWrapper(cell, embedding_classes=symbols, embedding_size=size)
    return static_rnn(wrapped, inputs, dtype=dtype)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: object = None,
    feed_previous: object = False,
    dtype: DTypeLike | None = None,
    scope: Scope = None,
) -> Decoded:
    """Embeds symbols [batch] on both sides; without ``output_projection`` the outputs are logits of symbols.

    Args:
      output_projection, feed_previous: see `embedding_rnn_decoder`.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as entered:
        if dtype is not None:
            entered.set_dtype(dtype)
        encoder = copy.deepcopy(cell)
        _, state = _encoded(encoder, encoder_inputs, num_encoder_symbols, embedding_size, entered.dtype)
        decoder = cell if output_projection is not None else OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(previous: bool, update: bool) -> Decoded:
            return embedding_rnn_decoder(
                decoder_inputs,
                state,
                decoder,
                num_decoder_symbols,
                embedding_size,
                output_projection=output_projection,
                feed_previous=previous,
                update_embedding_for_previous=update,
            )

        return _either(feed_previous, decode)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: object = None,
    feed_previous: object = False,
    dtype: DTypeLike | None = None,
    scope: Scope = None,
) -> Decoded:
    """Shares the embeddings and all variables between the two sides; arguments as for `embedding_rnn_seq2seq`.

    Raises:
      ValueError: the projection has the wrong shape.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as entered:
        kind = entered.dtype
        check_projection(output_projection, num_symbols, kind)
        embedding = get_variable("embedding", [num_symbols, embedding_size], dtype=kind)
        encoder = [embedding_lookup(embedding, each) for each in encoder_inputs]
        decoder = [embedding_lookup(embedding, each) for each in decoder_inputs]
        symbols = num_symbols if num_decoder_symbols is None else num_decoder_symbols
        own = cell if output_projection is not None else OutputProjectionWrapper(cell, symbols)

        def decode(previous: bool, update: bool) -> Decoded:
            loop = previous_symbols(embedding, output_projection, update) if previous else None
            return tied_rnn_seq2seq(encoder, decoder, own, loop, kind)

        return _either(feed_previous, decode)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: object = None,
    feed_previous: object = False,
    dtype: DTypeLike | None = None,
    scope: Scope = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """`embedding_rnn_seq2seq` with attention to the encoder's outputs; see `attention_decoder`."""
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as entered:
        encoder = copy.deepcopy(cell)
        outputs, state = _encoded(encoder, encoder_inputs, num_encoder_symbols, embedding_size, entered.dtype)
        size: Any = cell.output_size
        states = arrays.concat([arrays.reshape(each, [-1, 1, size]) for each in outputs], 1)
        decoder, output_size = cell, None
        if output_projection is None:
            decoder, output_size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decode(previous: bool, update: bool) -> Decoded:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                states,
                decoder,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=output_size,
                output_projection=output_projection,
                feed_previous=previous,
                update_embedding_for_previous=update,
                initial_state_attention=initial_state_attention,
            )

        return _either(feed_previous, decode)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[Any, Sequence[Any]],
    enc_cell: RNNCell,
    dec_cells_dict: Mapping[Any, RNNCell],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[Any, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: Scope = None,
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Runs one encoder, and a decoder for each key; returns dictionaries of the outputs and of the last states.

    Raises:
      TypeError: a cell is not an `RNNCell`.
      ValueError: the dictionaries have different keys.
    """
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decoder_inputs_dict")
    for word, cell in (("enc_cell", enc_cell), *(("dec_cell", each) for each in dec_cells_dict.values())):
        if not isinstance(cell, RNNCell):  # pyright: ignore[reportUnnecessaryIsInstance]  a user's argument
            raise TypeError(f"{word} is not an RNNCell: {type(cell)}")
    outputs: dict[Any, Any] = {}
    states: dict[Any, Any] = {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as entered:
        _, state = _encoded(enc_cell, encoder_inputs, num_encoder_symbols, embedding_size, entered.dtype)
        for key, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[key]
            with variable_scope(f"one2many_decoder_{key}"):
                cell = OutputProjectionWrapper(dec_cells_dict[key], symbols)

                def decode(
                    previous: bool, update: bool, inputs: Any = inputs, cell: Any = cell, symbols: int = symbols
                ) -> Decoded:
                    del update
                    return embedding_rnn_decoder(inputs, state, cell, symbols, embedding_size, feed_previous=previous)

                outputs[key], states[key] = _either(feed_previous, decode)
    return outputs, states
