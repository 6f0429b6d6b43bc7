"""`Hashing`, `HashedCrossing`, `StringLookup` and `IntegerLookup` on the host: Keras's own layers need TensorFlow.

Before a model, they are called on NumPy arrays, lists and JAX arrays, and return NumPy arrays. Within a model or
another compiled function, integers are passed to the host and back; strings are not possible there. Results equal the
results of Keras with TensorFlow: FarmHash's ``Fingerprint64`` for hashes, SipHash with a salt, vocabularies by
frequency.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import keras
import numpy as np

from headwater.graph.composites import CompositeTensor
from headwater.graph.operation import Tensor as GraphTensor
from headwater.graph.ops.fingerprints import fingerprint64, sip_hash
from headwater.graph.ops.sparse import crossed_number
from headwater.keras.graphs import lookups
from headwater.keras.host_layers import HostLayer, composite_rows
from headwater.keras.text_fronts import accept_texts

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

accept_texts()
_register = keras.saving.register_keras_serializable

_MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")
_CROSSING_KEY = 0xDECAFCAFFE
"""TensorFlow's initial value of the hash of a crossing."""
_VOCABULARY = "vocabulary.txt"
_WEIGHTS = "idf_weights.npy"


def _texts(values: Any) -> list[bytes]:
    if values.dtype.kind == "f":
        values = values.astype(np.int64)
    return [value if isinstance(value, bytes) else str(value).encode() for value in values.reshape(-1).tolist()]


def _hash_bins(values: Any, bins: int, salt: Sequence[int] | None) -> HostArray:
    """The bin of each value by its text."""
    texts = _texts(values)
    known = {text: (fingerprint64(text) if salt is None else sip_hash(text, *salt)) % bins for text in set(texts)}
    return np.array([known[text] for text in texts], np.int64).reshape(values.shape)


def _salt(salt: object) -> list[int] | None:
    match salt:
        case None:
            return None
        case int():
            return [salt, salt]
        case [int(first), int(second)]:
            return [first, second]
        case _:
            raise ValueError(f"salt must be one or two whole numbers, not {salt!r}")


def _mode(mode: str, allowed: Sequence[str]) -> str:
    mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(mode, mode)
    if mode not in allowed:
        raise ValueError(f"output_mode must be one of {', '.join(allowed)}, not {mode!r}")
    return mode


def _is_sparse(sparse: bool, mode: str) -> bool:
    if sparse and mode == "int":
        raise ValueError(
            "`sparse` may only be true if `output_mode` is 'one_hot', 'multi_hot', 'count' or 'tf_idf', not 'int'"
        )
    return sparse


@_register(package="headwater")
class Hashing(HostLayer):
    """`keras.layers.Hashing`: maps values to ``num_bins`` bins by a hash of their strings.

    Args:
      num_bins: number of bins, including the bin of ``mask_value``.
      mask_value: the only value in bin 0.
      salt: one or two whole numbers for SipHash; without a salt FarmHash is used.
      output_mode: ``int``, ``one_hot``, ``multi_hot`` or ``count``.
      sparse: whether encoded results are sparse tensors.
      kwargs: see `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: object = None,
        salt: object = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: object,
    ) -> None:
        if num_bins <= 0:
            raise ValueError(f"num_bins must be positive, not {num_bins}")
        super().__init__(**kwargs)
        self.num_bins, self.mask_value, self.salt = num_bins, mask_value, _salt(salt)
        self.output_mode = _mode(output_mode, _MODES[:4])
        self.sparse = _is_sparse(sparse, self.output_mode)

    def _depth(self) -> int:
        return self.num_bins

    def _numbers(self, values: Any) -> HostArray:
        if self.mask_value is None or self.num_bins == 1:
            return _hash_bins(values, self.num_bins, self.salt)
        mask = self.mask_value
        texts = np.array(_texts(values), object).reshape(values.shape)
        masked = texts == (mask if isinstance(mask, bytes) else str(mask).encode())
        return np.where(masked, 0, _hash_bins(values, self.num_bins - 1, self.salt) + 1)

    def _numbers_in_function(self, inputs: Tensor) -> Tensor:
        return lookups.hashed(self, inputs)

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "num_bins": self.num_bins,
            "mask_value": self.mask_value,
            "salt": self.salt,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
        }


@_register(package="headwater")
class HashedCrossing(HostLayer):
    """`keras.layers.HashedCrossing`: maps combinations of values of several inputs to ``num_bins`` bins by their hash.

    Args:
      num_bins: number of bins.
      output_mode: ``int`` or ``one_hot``.
      sparse: whether encoded results are sparse tensors.
      kwargs: see `keras.layers.Layer`.
    """

    def __init__(self, num_bins: int, output_mode: str = "int", sparse: bool = False, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.num_bins = num_bins
        self.output_mode = _mode(output_mode, _MODES[:2])
        self.sparse = _is_sparse(sparse, self.output_mode)

    def __call__(self, inputs: Tree, **kwargs: Tree) -> Tree:
        if any(isinstance(part, keras.KerasTensor) for part in inputs):
            return super().__call__(inputs, **kwargs)
        return self.call(inputs)  # Keras refuses strings beside tensors

    def call(self, inputs: Tree) -> Tree:
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(f"HashedCrossing should be called on at least two inputs. Received: inputs={inputs}")
        if any(isinstance(part, CompositeTensor | GraphTensor | jax.core.Tracer) for part in inputs):  # pyright: ignore[reportUnknownVariableType]
            raise ValueError(f"{self.name}: HashedCrossing takes dense arrays with values, before a model or a dataset")
        columns = [np.asarray(part) for part in inputs]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        shape = columns[0].shape
        if any(column.shape != shape for column in columns):
            raise ValueError(f"All HashedCrossing inputs should have equal shape. Received: inputs={inputs}")
        if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
            raise ValueError(f"All HashedCrossing inputs should have shape (), (batch) or (batch, 1), not {shape}")
        if any(column.dtype.kind not in "iuOSU" for column in columns):
            raise ValueError("All HashedCrossing inputs should have an integer or string dtype")
        rows = zip(*(_as_texts(column) for column in columns), strict=True)
        numbers = np.array([crossed_number(row, _CROSSING_KEY, self.num_bins) for row in rows], np.int64).reshape(shape)
        if self.output_mode == "int":
            return self._result(numbers)
        return self._result(self._encode(numbers[..., 0] if len(shape) == 2 else numbers))

    def _depth(self) -> int:
        return self.num_bins

    def compute_output_spec(self, inputs: Tree) -> Tree:
        return super().compute_output_spec(inputs[0])

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "num_bins": self.num_bins,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
        }


def _as_texts(column: HostArray) -> list[Any]:
    """Returns integers, or texts as bytes."""
    values = column.reshape(-1).tolist()
    return [value.encode() if isinstance(value, str) else value for value in values]


class _Known:
    """The state of a lookup. It is a separate object, because Keras would track lists and dicts in attributes of a
    layer.

    Attributes:
      tokens: the vocabulary.
      places: the number of each token.
      weights: the weight of each number, for ``tf_idf``.
      counted: number of occurrences of each token.
      samples: number of samples that contain each token.
      seen: number of samples.
    """

    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.places: dict[object, int] = {}
        self.weights: Any = None
        self.counted: Counter[object] = Counter()
        self.samples: Counter[object] = Counter()
        self.seen = 0


class _Lookup(HostLayer):
    """A vocabulary: a number for each token. The first numbers are for the mask (in mode ``int``) and for unknown
    tokens."""

    def __init__(
        self,
        *,
        max_tokens: int | None,
        num_oov_indices: int,
        mask_token: object,
        oov_token: object,
        vocabulary: object,
        idf_weights: object,
        invert: bool,
        output_mode: str,
        pad_to_max_tokens: bool,
        sparse: bool,
        salt: object,
        name: str | None,
        **kwargs: object,
    ) -> None:
        if max_tokens is not None and max_tokens <= 1:
            raise ValueError(f"max_tokens must be greater than 1, not {max_tokens}")
        if num_oov_indices < 0:
            raise ValueError(f"num_oov_indices must not be negative, but is {num_oov_indices}")
        if pad_to_max_tokens and max_tokens is None:
            raise ValueError("pad_to_max_tokens needs max_tokens")
        if invert and output_mode != "int":
            raise ValueError(f"invert requires output_mode 'int', not {output_mode!r}")
        super().__init__(name=name, **kwargs)
        self.max_tokens, self.num_oov_indices = max_tokens, num_oov_indices
        self.mask_token, self.oov_token, self.invert = mask_token, oov_token, invert
        self.output_mode = _mode(output_mode, _MODES)
        self.sparse = _is_sparse(sparse, self.output_mode)
        self.pad_to_max_tokens, self.salt = pad_to_max_tokens, _salt(salt)
        self._given = vocabulary is not None
        self._known = _Known()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    def _sparse_type(self) -> type[np.generic]:
        return np.float32 if self.output_mode == "tf_idf" else np.int64

    def _token(self, value: object) -> Any:
        raise NotImplementedError

    def _unknown(self, values: object) -> HostArray:
        """Selects one of the numbers of unknown tokens for each value, by hash."""
        return _hash_bins(values, self.num_oov_indices, self.salt)

    @property
    def _first_unknown(self) -> int:
        return 1 if self.mask_token is not None and self.output_mode == "int" else 0

    @property
    def _first_token(self) -> int:
        return self._first_unknown + self.num_oov_indices

    def set_vocabulary(self, vocabulary: object, idf_weights: object = None) -> None:
        """Sets the tokens, most frequent first: a list, an array, or the path of a file with a token in each line. The
        mask and the unknown token may come before them, as in the result of `get_vocabulary`.

        Raises:
          ValueError: a token occurs twice, there are too many tokens, or weights are missing.
        """
        if isinstance(vocabulary, str | os.PathLike):
            vocabulary = Path(vocabulary).read_text(encoding="utf-8").splitlines()
        tokens = [self._token(value) for value in np.asarray(vocabulary, object).reshape(-1).tolist()]
        special = self._special()
        if tokens[: len(special)] == special:
            tokens = tokens[len(special) :]
        if len(set(tokens)) < len(tokens):
            twice = [token for token, times in Counter(tokens).items() if times > 1]
            raise ValueError(f"vocabulary has tokens more than once: {twice[:5]}")
        if self.max_tokens is not None and len(tokens) + self._first_token > self.max_tokens:
            raise ValueError(
                f"vocabulary has {len(tokens)} tokens, more than max_tokens {self.max_tokens} with the special ones"
            )
        if self.output_mode == "tf_idf":
            if idf_weights is None:
                raise ValueError("output_mode 'tf_idf' needs idf_weights beside vocabulary")
            weights = np.asarray(idf_weights, np.float32)
            if len(weights) == len(tokens):
                weights = np.concatenate([np.full(self._first_token, weights.mean(), np.float32), weights])
            self._known.weights = weights
        self._known.tokens = tokens
        self._known.places = {token: self._first_token + at for at, token in enumerate(tokens)}

    def _special(self) -> list[object]:
        mask = [self.mask_token] if self._first_unknown else []
        return [*mask, *[self.oov_token] * self.num_oov_indices]

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[object]:
        """The tokens by their numbers."""
        return [*(self._special() if include_special_tokens else ()), *self._known.tokens]

    def vocabulary_size(self) -> int:
        """Returns the number of different results, including the numbers for the mask and for unknown tokens."""
        return len(self._known.tokens) + self._first_token

    def adapt(self, data: Tree, steps: int | None = None) -> None:
        """Sets the vocabulary to the most frequent tokens of ``data``, an array or batches of arrays.

        Args:
          data: an array, or an iterable of batches.
          steps: the number of batches; None for all.
        """
        if self._given:
            raise ValueError(f"{self.name} was given a vocabulary, and cannot adapt to data")
        self.reset_state()
        whole = isinstance(data, np.ndarray | list | tuple | CompositeTensor) or hasattr(data, "__array__")
        values: Any = data
        batches: Iterable[Any] = [values] if whole else values
        for at, batch in enumerate(batches):
            if steps is not None and at >= steps:
                break
            self.update_state(batch)
        self.finalize_state()

    def reset_state(self) -> None:
        """Clears the counts of `adapt`."""
        self._known.counted.clear()
        self._known.samples.clear()
        self._known.seen = 0

    def update_state(self, data: object) -> None:
        """Counts the tokens of a batch."""
        rows = self._rows(data)
        for row in rows:
            tokens = [self._token(value) for value in row]
            self._known.counted.update(tokens)
            self._known.samples.update(set(tokens))
        self._known.seen += len(rows)

    def _rows(self, data: object) -> list[list[Any]]:
        """Returns the tokens of each sample of a batch."""
        if isinstance(data, CompositeTensor):
            return [row.tolist() for row in composite_rows(data)]
        values = np.asarray(data)
        return (values.reshape(len(values), -1) if values.ndim > 1 else values.reshape(1, -1)).tolist()

    def finalize_state(self) -> None:
        """Makes the vocabulary from the counts: by frequency, and equally frequent tokens in descending order."""
        special = {self.mask_token, self.oov_token}
        known = [token for token in self._known.counted if token not in special]
        known = sorted(known, key=lambda token: (self._known.counted[token], token), reverse=True)
        if self.max_tokens is not None:
            known = known[: self.max_tokens - self._first_token]
        weights = None
        if self.output_mode == "tf_idf":
            weights = [np.log(1 + self._known.seen / (1 + self._known.samples[token])) for token in known]
        self.set_vocabulary(known, weights)

    def _depth(self) -> int:
        return self.max_tokens if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    def _numbers(self, values: Any) -> HostArray:
        if not self._known.tokens:
            raise ValueError(f"{self.name} has no vocabulary yet: call adapt or set_vocabulary first")
        if self.invert:
            return self._invert(values)
        tokens = [self._token(value) for value in values.reshape(-1).tolist()]
        numbers = np.array([self._known.places.get(token, -1) for token in tokens], np.int64).reshape(values.shape)
        masked = np.zeros(values.shape, bool)
        if self.mask_token is not None:
            masked = np.array([token == self.mask_token for token in tokens], bool).reshape(values.shape)
            # In modes other than int, masked values are ignored.
            numbers = np.where(masked, 0 if self.output_mode == "int" else np.iinfo(np.int64).max, numbers)
        unknown = (numbers < 0) & ~masked
        if unknown.any():
            if not self.num_oov_indices:
                raise ValueError(f"{self.name} has num_oov_indices=0 and got tokens that are not in its vocabulary")
            numbers[unknown] = self._first_unknown + (self._unknown(values[unknown]) if self.num_oov_indices > 1 else 0)
        return numbers

    def _numbers_in_function(self, inputs: Tensor) -> Tensor:
        if not self._known.tokens:
            raise ValueError(f"{self.name} has no vocabulary yet: call adapt or set_vocabulary first")
        if self.invert:
            return lookups.tokens(self, inputs, self.get_vocabulary())
        return lookups.numbers(self, inputs, self._known.places, self._first_unknown)

    def _weights(self) -> HostArray | None:
        if self.output_mode != "tf_idf":
            return None
        weights = np.zeros(self._depth(), np.float32)
        weights[: len(self._known.weights)] = self._known.weights
        return weights

    def _invert(self, values: Any) -> HostArray:
        tokens = self.get_vocabulary()
        words = [tokens[at] if 0 <= at < len(tokens) else self.oov_token for at in values.reshape(-1).tolist()]
        return np.array(words).reshape(values.shape)

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "max_tokens": self.max_tokens,
            "num_oov_indices": self.num_oov_indices,
            "mask_token": self.mask_token,
            "oov_token": self.oov_token,
            "vocabulary": list(self._known.tokens) if self._given else None,
            "idf_weights": self._known.weights.tolist() if self._given and self._known.weights is not None else None,
            "invert": self.invert,
            "output_mode": self.output_mode,
            "pad_to_max_tokens": self.pad_to_max_tokens,
            "sparse": self.sparse,
            "salt": self.salt,
        }

    def save_own_variables(self, store: object) -> None:
        """Saves nothing: the vocabulary is an asset (`save_assets`), not a variable."""

    def load_own_variables(self, store: object) -> None:
        """Loads nothing: the vocabulary is an asset (`load_assets`), not a variable."""

    def save_assets(self, dir_path: str) -> None:
        """Writes the vocabulary, if it was adapted."""
        if self._given or not self._known.tokens:
            return
        (Path(dir_path) / _VOCABULARY).write_text("\n".join(map(str, self._known.tokens)), encoding="utf-8")
        if self._known.weights is not None:
            np.save(Path(dir_path) / _WEIGHTS, self._known.weights, allow_pickle=False)

    def load_assets(self, dir_path: str) -> None:
        """Reads the vocabulary."""
        path = Path(dir_path) / _VOCABULARY
        if path.exists():
            weights = Path(dir_path) / _WEIGHTS
            lines = path.read_text(encoding="utf-8").split("\n")
            self.set_vocabulary(lines, np.load(weights, allow_pickle=False) if weights.exists() else None)


@_register(package="headwater")
class StringLookup(_Lookup):
    """`keras.layers.StringLookup`: numbers for strings, or with ``invert`` the reverse. Arguments as in Keras."""

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str = "[UNK]",
        vocabulary: object = None,
        idf_weights: object = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: object = None,
        **kwargs: object,
    ) -> None:
        self.encoding = encoding
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            sparse=sparse,
            salt=salt,
            name=name,
            **kwargs,
        )

    def _token(self, value: object) -> str:
        return value.decode(self.encoding) if isinstance(value, bytes) else str(value)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "encoding": self.encoding}


@_register(package="headwater")
class IntegerLookup(_Lookup):
    """`keras.layers.IntegerLookup`: numbers for integers. The arguments are Keras's."""

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int = -1,
        vocabulary: object = None,
        vocabulary_dtype: str = "int64",
        idf_weights: object = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: object = None,
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        if oov_method not in ("floormod", "farmhash"):
            raise ValueError(f"oov_method must be 'floormod' or 'farmhash', not {oov_method!r}")
        if salt is not None and oov_method != "farmhash":
            raise ValueError("salt requires oov_method 'farmhash'")
        if vocabulary_dtype not in ("int32", "int64"):
            raise ValueError(f"vocabulary_dtype must be 'int32' or 'int64', not {vocabulary_dtype!r}")
        self.vocabulary_dtype, self.oov_method = vocabulary_dtype, oov_method
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            sparse=sparse,
            salt=salt,
            name=name,
            **kwargs,
        )

    def _token(self, value: Any) -> int:
        return int(value)

    def _unknown(self, values: Any) -> Any:
        if self.oov_method == "floormod":
            return np.mod(values.astype(np.int64), self.num_oov_indices)
        return _hash_bins(values, self.num_oov_indices, self.salt)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "vocabulary_dtype": self.vocabulary_dtype, "oov_method": self.oov_method}
