"""Helpers: the inputs of a `BasicDecoder`'s steps, from given sequences or from its own outputs."""

# TensorFlow's signatures of `sample` and `next_inputs` differ between its classes; callers name the arguments.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape
from headwater.tf1.contrib.seq2seq.decoding import KnownTurns, exchange_batch_and_time
from headwater.tf1.functional import arrays, indexing, math, random, reductions
from headwater.tf1.functional.conditions import cond
from headwater.tf1.variables.embedding import embedding_lookup

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike

#: Which sequences are finished after a step, the inputs of the next step, and the state.
Next: TypeAlias = tuple[Any, Any, Any]


class Helper:
    """Base of helpers."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample, without the batch."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns which sequences are finished, and the first inputs."""
        raise NotImplementedError

    def sample(self, time: Tensor, outputs: object, state: object, name: str | None = None) -> Any:
        """Returns a choice for each sequence."""
        raise NotImplementedError

    def next_inputs(
        self, time: Tensor, outputs: object, state: object, sample_ids: object, name: str | None = None
    ) -> Next:
        """Returns which sequences are finished, the next inputs, and the next state."""
        raise NotImplementedError

    def known_turns(self) -> KnownTurns | None:
        """Returns the number of steps if given lengths determine it, else None."""
        return None


class _DescribedHelper(Helper):
    """Base of helpers that know the shape and type of their samples."""

    _batch_size: Any
    _sample_shape = TensorShape([])
    _sample_dtype: Any = dtypes.int32

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_dtype


class CustomHelper(_DescribedHelper):
    """A helper made of functions.

    Args:
      initialize_fn: ``f()`` returns finished and first inputs.
      sample_fn: ``f(time, outputs, state)`` returns samples.
      next_inputs_fn: ``f(time, outputs, state, sample_ids)`` returns finished, next inputs and next state.
      sample_ids_shape: shape of a sample; a scalar if None.
      sample_ids_dtype: int32 if None.
    """

    def __init__(
        self,
        initialize_fn: Callable[[], tuple[Any, Any]],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Next],
        sample_ids_shape: Any = None,
        sample_ids_dtype: DTypeLike | None = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = None
        self._sample_shape = TensorShape(sample_ids_shape or [])
        self._sample_dtype = sample_ids_dtype or dtypes.int32

    @property
    def batch_size(self) -> Tensor:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, f"{type(self).__name__}Initialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = arrays.size(finished)
        return finished, inputs

    def sample(self, time: Tensor, outputs: object, state: object, name: str | None = None) -> Any:
        with name_scope(name, f"{type(self).__name__}Sample", [time]):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Tensor, outputs: object, state: object, sample_ids: object, name: str | None = None
    ) -> Next:
        with name_scope(name, f"{type(self).__name__}NextInputs", [time]):
            return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(_DescribedHelper):
    """Returns the steps of given sequences as inputs.

    Args:
      inputs: [batch, time, …], or [time, batch, …] with ``time_major``.
      sequence_length: the length of each sequence, int32 [batch].

    Raises:
      ValueError: ``sequence_length`` is not a vector.
    """

    def __init__(
        self, inputs: TensorLike, sequence_length: TensorLike, time_major: bool = False, name: str | None = None
    ) -> None:
        with name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            self.inputs: Tensor = convert_to_tensor(inputs, name="inputs")
            self._steps: Tensor = self.inputs if time_major else exchange_batch_and_time(self.inputs)
            self.sequence_length: Tensor = convert_to_tensor(sequence_length, name="sequence_length")
            if self.sequence_length.dims is not None and len(self.sequence_length.dims) != 1:
                raise ValueError(
                    f"Expected sequence_length to be a vector, but received shape: {self.sequence_length.shape}"
                )
            self._zero_inputs = arrays.zeros_like(self._steps[0])
            self._batch_size = arrays.size(self.sequence_length)
        self._following: Any = None

    def known_turns(self) -> KnownTurns | None:
        """Returns the length of the longest sequence as the number of steps."""
        if type(self) not in (TrainingHelper, ScheduledEmbeddingTrainingHelper, ScheduledOutputTrainingHelper):
            return None  # a subclass may finish elsewhere
        count = math.cast(
            reductions.reduce_max(arrays.concat([[0], math.cast(self.sequence_length, dtypes.int32)], 0)), dtypes.int32
        )
        end = arrays.expand_dims(self._zero_inputs, 0)

        def place(slices: object) -> None:
            self._following = slices

        return KnownTurns(count, arrays.concat([self._steps[1:], end], 0), place)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, "TrainingHelperInitialize"):
            return math.equal(0, self.sequence_length), self._steps[0]

    def sample(self, time: Tensor, outputs: object, name: str | None = None, **unused_kwargs: object) -> Any:
        with name_scope(name, "TrainingHelperSample", [time]):
            return math.cast(reductions.argmax(outputs, axis=-1), dtypes.int32)

    def next_inputs(
        self, time: Tensor, outputs: object, state: object, name: str | None = None, **unused_kwargs: object
    ) -> Next:
        with name_scope(name, "TrainingHelperNextInputs", [time]):
            following = time + 1
            finished = following >= self.sequence_length
            if self._following is not None:
                return finished, self._following, state
            over = reductions.reduce_all(finished)
            found = cond(over, lambda: self._zero_inputs, lambda: indexing.gather(self._steps, following))
            return finished, found, state


def _probability(value: TensorLike) -> Tensor:
    probability = convert_to_tensor(value, name="sampling_probability")
    if probability.dims is not None and len(probability.dims) > 1:
        raise ValueError(f"sampling_probability must be either a scalar or a vector. saw shape: {probability.shape}")
    return probability


def _drawn(probability: Tensor, batch_size: Tensor, seed: int | None) -> Tensor:
    """Returns True [batch] with a probability that is a scalar or a vector."""
    numbers = random.random_uniform(arrays.expand_dims(batch_size, 0), seed=seed, dtype=probability.dtype.base_dtype)
    return numbers < probability


def _categories(logits: Tensor, seed: int | None) -> Tensor:
    """Draws one of the classes of each row of ``logits`` [batch, classes]."""
    return math.cast(arrays.squeeze(random.multinomial(logits, 1, seed=seed), [1]), dtypes.int32)


def lookup(embedding: object) -> Callable[[Tensor], Any]:
    """Returns ``embedding`` if it is a function, else the function that looks up ids in this table."""
    return embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """A `TrainingHelper` that sometimes returns the embedding of a sample of the outputs (Bengio et al., 2015).

    Args:
      embedding: ``f(ids)``, or the parameters of `embedding_lookup`.
      sampling_probability: the probability of a sample in place of the given input: a scalar or [batch].
      seed: the seed of the samples.
      scheduling_seed: the seed of the choice between sample and input.
      inputs, sequence_length, time_major, name: see `TrainingHelper`.

    Raises:
      ValueError: ``sampling_probability`` has more than one dimension.
    """

    def __init__(
        self,
        inputs: TensorLike,
        sequence_length: TensorLike,
        embedding: object,
        sampling_probability: TensorLike,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper"):
            self._embedding_fn = lookup(embedding)
            self._sampling_probability = _probability(sampling_probability)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Tensor, outputs: Any, state: object, name: str | None = None) -> Tensor:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time]):
            chosen = _drawn(self._sampling_probability, self._batch_size, self._scheduling_seed)
            samples = _categories(outputs, self._seed)
            return indexing.where(chosen, samples, arrays.fill(arrays.shape(samples), -1))

    def next_inputs(
        self, time: Tensor, outputs: object, state: object, sample_ids: Any, name: str | None = None
    ) -> Next:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time]):
            finished, given, state = super().next_inputs(time, outputs, state)
            sampled = math.logical_and(sample_ids > -1, math.logical_not(reductions.reduce_all(finished)))
            found = self._embedding_fn(math.maximum(sample_ids, 0))
            return finished, indexing.where(sampled, found, given), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """A `TrainingHelper` that sometimes returns the previous output (Bengio et al., 2015).

    Args:
      sampling_probability: the probability of an output in place of the given input: a scalar or [batch].
      seed: the seed of the choice.
      next_inputs_fn: ``f(outputs)`` gives inputs; the outputs themselves if None.
      auxiliary_inputs: [batch, time, …], concatenated to all inputs.
      inputs, sequence_length, time_major, name: see `TrainingHelper`.

    Raises:
      ValueError: ``sampling_probability`` has more than one dimension.
    """

    def __init__(
        self,
        inputs: TensorLike,
        sequence_length: TensorLike,
        sampling_probability: TensorLike,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: TensorLike | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledOutputTrainingHelper"):
            self._sampling_probability = _probability(sampling_probability)
            self._auxiliary: Tensor | None = None
            if auxiliary_inputs is not None:
                extra = convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = arrays.concat([convert_to_tensor(inputs, name="inputs"), extra], -1)
                self._auxiliary = extra if time_major else exchange_batch_and_time(extra)
            self._seed = seed
            self._next_inputs_fn = next_inputs_fn
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Tensor, outputs: object, state: object, name: str | None = None) -> Tensor:
        with name_scope(name, "ScheduledOutputTrainingHelperSample", [time]):
            return math.cast(_drawn(self._sampling_probability, self._batch_size, self._seed), dtypes.int32)

    def next_inputs(self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Next:
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time]):
            finished, given, state = super().next_inputs(time, outputs, state)
            over = reductions.reduce_all(finished)
            sampled = math.logical_and(math.cast(sample_ids, dtypes.bool_), math.logical_not(over))
            found = outputs if self._next_inputs_fn is None else self._next_inputs_fn(outputs)
            if self._auxiliary is not None:
                last = arrays.shape(self._auxiliary)[0] - 1
                extra = indexing.gather(self._auxiliary, math.minimum(time + 1, last))
                found = arrays.concat([found, extra], -1)
            return finished, indexing.where(sampled, found, given), state


class GreedyEmbeddingHelper(_DescribedHelper):
    """Returns the embedding of the most probable class of the outputs.

    Args:
      embedding: ``f(ids)``, or the parameters of `embedding_lookup`.
      start_tokens: the first ids, int32 [batch].
      end_token: the id that finishes a sequence.

    Raises:
      ValueError: ``start_tokens`` is not a vector, or ``end_token`` is not a scalar.
    """

    def __init__(self, embedding: object, start_tokens: TensorLike, end_token: TensorLike) -> None:
        self._embedding_fn = lookup(embedding)
        self._start_tokens, self._end_token = tokens(start_tokens, end_token)
        self._batch_size = arrays.size(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return arrays.zeros_like(self._start_tokens, dtypes.bool_), self._start_inputs

    def sample(self, time: Tensor, outputs: object, state: object, name: str | None = None) -> Tensor:
        """The class with the largest output.

        Raises:
          TypeError: the outputs are not a single tensor.
        """
        return reductions.argmax(_single(outputs), axis=-1, output_type=dtypes.int32)

    def next_inputs(self, time: Tensor, outputs: object, state: Any, sample_ids: Any, name: str | None = None) -> Next:
        return math.equal(sample_ids, self._end_token), self._embedding_fn(sample_ids), state


def tokens(start_tokens: TensorLike, end_token: TensorLike) -> tuple[Tensor, Tensor]:
    """The tokens as tensors; ValueError unless they are a vector and a scalar."""
    start = convert_to_tensor(start_tokens, dtypes.int32, name="start_tokens")
    end = convert_to_tensor(end_token, dtypes.int32, name="end_token")
    if start.dims is None or len(start.dims) != 1:
        raise ValueError("start_tokens must be a vector")
    if end.dims != ():
        raise ValueError("end_token must be a scalar")
    return start, end


def _single(outputs: object) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
    return outputs


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Returns the embedding of a class drawn with the outputs as logits.

    Args:
      softmax_temperature: divides the logits.
      seed: the seed of the draw.
      embedding, start_tokens, end_token: see `GreedyEmbeddingHelper`.
    """

    def __init__(
        self,
        embedding: object,
        start_tokens: TensorLike,
        end_token: TensorLike,
        softmax_temperature: TensorLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Tensor, outputs: object, state: object, name: str | None = None) -> Tensor:
        logits = _single(outputs)
        if self._softmax_temperature is not None:
            logits = logits / self._softmax_temperature
        return _categories(logits, self._seed)


class InferenceHelper(_DescribedHelper):
    """A helper whose samples are the next inputs.

    Args:
      sample_fn: ``f(outputs)`` returns samples.
      sample_shape: the shape of a sample, without the batch.
      sample_dtype: the type of samples.
      start_inputs: the first inputs, [batch, …].
      end_fn: ``f(samples)`` returns which sequences are finished.
      next_inputs_fn: ``f(samples)`` returns the next inputs; the samples if None.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: DTypeLike,
        start_inputs: TensorLike,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._end_fn = end_fn
        self._sample_shape = TensorShape(sample_shape)
        self._sample_dtype = sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = arrays.shape(self._start_inputs)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return arrays.fill(arrays.expand_dims(self._batch_size, 0), False), self._start_inputs

    def sample(self, time: Tensor, outputs: object, state: object, name: str | None = None) -> Structure:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Tensor, outputs: object, state: object, sample_ids: object, name: str | None = None
    ) -> Next:
        following = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), following, state
