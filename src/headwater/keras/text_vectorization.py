"""`TextVectorization` on the host: Keras's own layer needs TensorFlow.

Before a model, it is called on NumPy arrays, lists and tensors of text. Results equal the results of Keras with
TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.graph.composites import CompositeTensor
from headwater.graph.ragged_value import RaggedTensorValue
from headwater.keras.graphs import lookups
from headwater.keras.host_layers import results
from headwater.keras.lookups import StringLookup

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.keras.types import Tree

_tensor = keras.KerasTensor
_serialize = keras.saving.serialize_keras_object
_deserialize = keras.saving.deserialize_keras_object

_PUNCTUATION = re.compile(rb"[!\"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']")


@keras.saving.register_keras_serializable(package="headwater")
class TextVectorization(StringLookup):
    """`keras.layers.TextVectorization`: the numbers of the words of each text.

    Args:
      max_tokens: the largest size of the vocabulary.
      standardize: ``lower_and_strip_punctuation``, ``lower``, ``strip_punctuation``, a function of a tensor, or None.
      split: ``whitespace``, ``character``, a function of a tensor that returns a ragged tensor, or None.
      ngrams: the largest number of words of an entry of the vocabulary, or all numbers of words.
      output_mode: ``int``, ``multi_hot``, ``count`` or ``tf_idf``.
      output_sequence_length: the number of words of each text in mode ``int``; by default the largest of all texts.
      pad_to_max_tokens, vocabulary, idf_weights, encoding, name: see `StringLookup`.
      sparse: see `StringLookup`.
      ragged: whether the result in mode ``int`` is a ragged tensor.
      kwargs: see `keras.layers.Layer`.
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: Any = "lower_and_strip_punctuation",
        split: Any = "whitespace",
        ngrams: int | Sequence[int] | None = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: object = None,
        idf_weights: object = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        standardize, split = (_deserialize(it) if isinstance(it, dict) else it for it in (standardize, split))  # pyright: ignore[reportUnknownArgumentType]
        for what, value, allowed in (
            ("standardize", standardize, ("lower_and_strip_punctuation", "lower", "strip_punctuation", None)),
            ("split", split, ("whitespace", "character", None)),
        ):
            if not callable(value) and value not in allowed:
                raise ValueError(f"{what} must be one of {', '.join(map(str, allowed))}, or a function, not {value!r}")
        if output_mode != "int" and (ragged or output_sequence_length is not None):
            raise ValueError(f"ragged and output_sequence_length require output_mode 'int', not {output_mode!r}")
        if ragged and output_sequence_length is not None:
            raise ValueError("ragged=True requires that output_sequence_length is omitted")
        self.standardize, self.split, self.ragged = standardize, split, ragged
        self.ngrams: tuple[int, ...] | None = None
        if ngrams is not None:
            self.ngrams = tuple(range(1, ngrams + 1)) if isinstance(ngrams, int) else tuple(ngrams)
        self.output_sequence_length = output_sequence_length
        super().__init__(
            max_tokens=max_tokens,
            mask_token="",
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            sparse=sparse,
            encoding=encoding,
            name=name,
            **kwargs,
        )

    def _of_composite(self, inputs: object) -> Tree:
        return self._on_host(inputs)

    def _in_function(self, inputs: Tensor) -> Tree:
        numbers = self._numbers_in_function(lookups.words(self, inputs))
        if self.output_mode == "int":
            return lookups.cut(numbers, self.output_sequence_length)
        return lookups.encode(self, numbers, self._depth(), self._weights())

    def _on_host(self, inputs: Any) -> Any:
        rows = self._rows(inputs)
        numbers = [self._numbers(np.array(row, object)) for row in rows]
        single = not np.ndim(inputs)
        if self.output_mode != "int":
            encoded = np.zeros((len(rows), self._depth()), np.float32)
            encoded[:] = [self._encode(row) for row in numbers]
            return encoded[0] if single else encoded
        if self.ragged and not single:
            splits = np.cumsum([0, *map(len, numbers)], dtype=np.int64)
            return RaggedTensorValue(np.concatenate([np.zeros(0, np.int64), *numbers]), splits)
        length = self.output_sequence_length
        if length is None:
            length = max(map(len, numbers), default=0)
        padded = np.zeros((len(rows), length), np.int64)
        for place, row in zip(padded, numbers, strict=True):
            place[: len(row)] = row[:length]
        return padded[0] if single else padded

    def _rows(self, data: object) -> list[list[Any]]:
        """Returns the words of each text."""
        if isinstance(data, CompositeTensor):
            raise ValueError(f"{self.name}: texts must be in a dense tensor, not in {type(data).__name__}")
        texts = np.asarray(data)
        if texts.ndim > 1 and texts.shape[-1] != 1:
            raise ValueError(
                f"{self.name}: texts must be a vector, or have a last dimension of size 1, not shape {texts.shape}"
            )
        flat = [value if isinstance(value, bytes) else str(value).encode() for value in texts.reshape(-1).tolist()]
        rows = self._split_texts(self._standardized(flat))
        if self.ngrams is not None:
            rows = [[gram for width in self.ngrams for gram in _grams(row, width)] for row in rows]
        return rows

    def _standardized(self, texts: list[bytes]) -> list[bytes]:
        if callable(self.standardize):
            return [_bytes(text) for text in np.asarray(self.standardize(_as_tensor(texts))).reshape(-1).tolist()]
        if self.standardize in ("lower", "lower_and_strip_punctuation"):
            texts = [text.lower() for text in texts]  # only the letters of ASCII, as `tf.strings.lower`
        if self.standardize in ("strip_punctuation", "lower_and_strip_punctuation"):
            texts = [_PUNCTUATION.sub(b"", text) for text in texts]
        return texts

    def _split_texts(self, texts: list[bytes]) -> list[list[bytes]]:
        if callable(self.split):
            words: Any = self.split(_as_tensor(texts))
            rows = words.to_list() if hasattr(words, "to_list") else np.asarray(words).tolist()
            return [[_bytes(word) for word in row] for row in rows]
        if self.split == "whitespace":
            return [text.split() for text in texts]
        if self.split == "character":
            return [[letter.encode() for letter in text.decode(self.encoding)] for text in texts]
        return [[text] for text in texts]

    def compute_output_spec(self, inputs: Tree) -> Any:
        shape = tuple(inputs.shape)
        count = shape[:1]
        if self.output_mode == "int":
            return _tensor((*count, self.output_sequence_length), dtype="int64")
        return _tensor((*count, self._depth()), dtype="float32")

    def get_config(self) -> dict[str, object]:
        config = super().get_config()
        for name in ("num_oov_indices", "mask_token", "oov_token", "invert", "salt"):
            del config[name]
        return {
            **config,
            "standardize": _serialize(self.standardize) if callable(self.standardize) else self.standardize,
            "split": _serialize(self.split) if callable(self.split) else self.split,
            "ngrams": None if self.ngrams is None else list(self.ngrams),
            "output_sequence_length": self.output_sequence_length,
            "ragged": self.ragged,
        }


def _grams(words: Sequence[bytes], width: int) -> list[bytes]:
    return [b" ".join(words[at : at + width]) for at in range(len(words) - width + 1)]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _as_tensor(texts: list[bytes]) -> Any:
    convert: Callable[[Any], Any] = results.convert
    return convert(np.array(texts, object))
