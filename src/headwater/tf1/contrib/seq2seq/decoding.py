"""`dynamic_decode`: a decoder's steps in a loop, until every sequence is finished."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays, indexing, math, nest, reductions
from headwater.tf1.functional.loops import while_loop
from headwater.tf1.functional.scans import scan_over
from headwater.tf1.functional.tensor_arrays import TensorArray
from headwater.tf1.rnn.cells import zeros_of
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.variables.scope_settings import VariableScope


class Decoder:
    """Base of decoders; a subclass defines the properties, `initialize` and `step`."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The sizes of a step's outputs, without the batch."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """The types of a step's outputs."""
        raise NotImplementedError

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Returns which sequences are finished, the first inputs, and the first state."""
        raise NotImplementedError

    def step(self, time: Tensor, inputs: Structure, state: Structure, name: str | None = None) -> Any:
        """Returns outputs, the next state, the next inputs, and which sequences are finished."""
        raise NotImplementedError

    def finalize(self, outputs: Structure, final_state: Structure, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """Converts the outputs of all steps and the last state to the results."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a finished sequence may become unfinished, because another beam replaces it."""
        return False


class KnownTurns:
    """The number of a decoder's steps, if the inputs alone determine it, and the next inputs of each step.

    Args:
      count: the number of steps, a scalar.
      following: for each step the inputs of the step after it, [time, …]; at least ``count`` steps.
      place: assigns the slices of ``following`` of the current step to their user.
    """

    def __init__(self, count: Tensor, following: Any, place: Any) -> None:
        self.count = count
        self.following = following
        self.place = place


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: TensorLike | None = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: str | VariableScope | None = None,
    **kwargs: object,
) -> tuple[Any, Any, Any]:
    """Runs a decoder until all sequences are finished.

    If the inputs determine the number of steps, as in training, the steps are one scan with a gradient; else a loop.

    Args:
      output_time_major: outputs are [time, batch, …] in place of [batch, time, …].
      impute_finished: outputs of finished sequences are zeros, and their states do not change.
      maximum_iterations: the largest number of steps.
      parallel_iterations, swap_memory: accepted.
      scope: variable scope; ``decoder`` if None.
      kwargs: none; TensorFlow passes them to decoders that are Keras layers.

    Returns:
      The outputs of all steps, the last state, and the length of each sequence, int32 [batch].

    Raises:
      TypeError: ``decoder`` is not a `Decoder`.
      ValueError: ``maximum_iterations`` is not a scalar.
    """
    del parallel_iterations, swap_memory
    if kwargs:
        raise TypeError(f"dynamic_decode takes no argument {', '.join(sorted(kwargs))}")
    if not isinstance(decoder, Decoder):  # pyright: ignore[reportUnnecessaryIsInstance]  a user's argument
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with variable_scope(scope, "decoder"):
        limit: Tensor | None = None
        if maximum_iterations is not None:
            limit = convert_to_tensor(maximum_iterations, dtypes.int32, name="maximum_iterations")
            if limit.dims not in (None, ()):
                raise ValueError("maximum_iterations must be a scalar")
        run = _Decoding(decoder, impute_finished, limit)
        outputs, state, lengths = run.steps()
        with suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(exchange_batch_and_time, outputs)
    return outputs, state, lengths


def exchange_batch_and_time(tensor: object) -> Any:
    """Exchanges the first two dimensions of a tensor that has at least two."""
    if not isinstance(tensor, Tensor) or (tensor.dims is not None and len(tensor.dims) < 2):
        return tensor
    if tensor.dims is None:
        rest = arrays.range(2, arrays.rank(tensor))
        return arrays.transpose(tensor, arrays.concat([[1, 0], rest], 0))
    return arrays.transpose(tensor, [1, 0, *range(2, len(tensor.dims))])


class _Decoding:
    """The steps of one `dynamic_decode`."""

    def __init__(self, decoder: Decoder, impute: bool, limit: Tensor | None) -> None:
        self._decoder = decoder
        self._impute = impute
        self._limit = limit
        finished, inputs, state = decoder.initialize()
        finished = convert_to_tensor(finished, dtypes.bool_)
        self._sizes, self._types = decoder.output_size, decoder.output_dtype
        self._zeros: list[Tensor] = []
        if impute:
            pairs = zip(_shapes(self._sizes), nest.flatten(self._types), strict=True)
            self._zeros = [zeros_of(size, decoder.batch_size, dtype) for size, dtype in pairs]
        if limit is not None:
            finished = math.logical_or(finished, limit <= 0)
        self._start: Any = (
            convert_to_tensor(0, dtypes.int32),
            nest.map_structure(_as_tensor, state),
            nest.map_structure(convert_to_tensor, inputs),
            finished,
            arrays.zeros_like(finished, dtypes.int32),
        )

    def steps(self) -> tuple[Any, Any, Tensor]:
        known: KnownTurns | None = getattr(self._decoder, "known_turns", lambda: None)()
        arrays_in_state = any(isinstance(leaf, TensorArray) for leaf in nest.flatten(self._start[1]))
        return self._loop() if known is None or arrays_in_state else self._scan(known)

    def _turn(self, loop_vars: Any) -> tuple[list[Any], Any]:
        """Returns the outputs of one step, and the variables of the next one."""
        time, state, inputs, finished, lengths = loop_vars
        outputs, after, following, done = self._decoder.step(time, inputs, state)
        done = convert_to_tensor(done)
        if not self._decoder.tracks_own_finished:
            done = math.logical_or(done, finished)
        lengths = indexing.where(finished, lengths, arrays.fill(arrays.shape(lengths), time + 1))
        for word, one, other in (("state", state, after), ("inputs", inputs, following)):
            if not nest.same_structure(one, other):
                raise ValueError(f"The two structures don't have the same nested structure: {word} {one} and {other}")
        if len(nest.flatten(outputs)) != len(nest.flatten(self._types)):
            raise ValueError(f"Outputs {outputs} do not have the structure of the decoder's output_dtype {self._types}")
        emitted: list[Any] = nest.flatten(outputs)
        if self._impute:
            emitted = [indexing.where(finished, zero, out) for zero, out in zip(self._zeros, emitted, strict=True)]
            kept = [_kept(finished, *pair) for pair in zip(nest.flatten(after), nest.flatten(state), strict=True)]
            after = nest.pack(state, kept)
        return emitted, (time + 1, after, following, done, lengths)

    def _scan(self, known: KnownTurns) -> tuple[Any, Any, Tensor]:
        count = known.count if self._limit is None else math.minimum(known.count, self._limit)
        variables = nest.flatten(self._start)
        following = nest.flatten(known.following)

        def step(states: Any, slices: Any) -> Any:
            known.place(nest.pack(known.following, slices))
            try:
                emitted, after = self._turn(nest.pack(self._start, states))
            finally:
                known.place(None)
            leaves = nest.flatten(after)
            for old, new in zip(variables, leaves, strict=True):
                new.set_shape(old.shape)
            return leaves, emitted

        last, stacked = scan_over(step, variables, [sequence[:count] for sequence in following])
        _, state, _, _, lengths = nest.pack(self._start, last)  # pyright: ignore[reportGeneralTypeIssues]
        return self._packed(stacked), state, lengths

    def _loop(self) -> tuple[Any, Any, Tensor]:
        bound = None if self._limit is None else constant_value(self._limit)
        written = [
            TensorArray(
                dtype,
                size=0 if bound is None else int(bound),
                dynamic_size=bound is None,
                element_shape=self._batch().concatenate(size),
            )
            for size, dtype in zip(_shapes(self._sizes), nest.flatten(self._types), strict=True)
        ]

        def condition(written: object, loop_vars: Any) -> Tensor:
            del written
            return math.logical_not(reductions.reduce_all(loop_vars[3]))

        def turn(written: Any, loop_vars: Any) -> tuple[Any, Any]:
            emitted, after = self._turn(loop_vars)
            written = [array.write(loop_vars[0], leaf) for array, leaf in zip(written, emitted, strict=True)]
            for old, new in zip(nest.flatten(loop_vars), nest.flatten(after), strict=True):
                if isinstance(new, Tensor) and new.shape.is_compatible_with(old.shape):
                    new.set_shape(old.shape)
            return written, after

        written, last = while_loop(condition, turn, (written, self._start), maximum_iterations=self._limit)
        time, state, _, _, lengths = last
        stacked = [array.stack() if bound is None else array.stack()[:time] for array in written]
        return self._packed(stacked), state, lengths

    def _batch(self) -> TensorShape:
        batch = constant_value(convert_to_tensor(self._decoder.batch_size))
        return TensorShape([None if batch is None else int(batch)])

    def _packed(self, stacked: list[Tensor]) -> Any:
        for tensor, size in zip(stacked, _shapes(self._sizes), strict=True):
            full = TensorShape([None]).concatenate(self._batch()).concatenate(size)
            if tensor.shape.is_compatible_with(full):
                tensor.set_shape(full)
        return nest.pack(self._types, stacked)


def _as_tensor(leaf: Any) -> Any:
    return leaf if isinstance(leaf, TensorArray) else convert_to_tensor(leaf)


def _kept(finished: Tensor, new: Any, old: Any) -> Any:
    """Returns ``old`` for finished sequences; ``new`` elsewhere, and of arrays and scalars."""
    if isinstance(old, TensorArray):
        return new
    if new.shape.is_compatible_with(old.shape):
        new.set_shape(old.shape)
    return new if new.dims == () else indexing.where(finished, old, new)


def _shapes(sizes: object) -> list[TensorShape]:
    """The leaves of a structure of sizes as shapes."""
    return [as_shape([size] if isinstance(size, int) else size) for size in nest.flatten(sizes)]
