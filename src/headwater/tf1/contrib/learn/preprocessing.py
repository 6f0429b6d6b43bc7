"""Texts and categories as numbers (``tf.contrib.learn.preprocessing``)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from headwater.data.io import checked_json
from headwater.errors import DataLossError

if TYPE_CHECKING:
    from headwater.data.io.files import Path

Ids: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Tokenizer: TypeAlias = "Callable[[Iterable[str]], Iterable[Iterable[str]]]"

_TOKENS: Final = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+")


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words of each text; ``CamelCase`` is divided."""
    for value in iterator:
        yield _TOKENS.findall(value)


class CategoricalVocabulary:
    """Numbers categories from 1 on, in the order of their first occurrence; 0 represents unknown categories.

    Args:
      unknown_token: the category of number 0.
      support_reverse: whether `reverse` is used.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._support_reverse = support_reverse
        # Programs read this attribute, although its name is private.
        self._mapping: dict[Hashable, int] = {unknown_token: 0}
        self._categories: list[Hashable] = [unknown_token]
        self._counts: dict[Hashable, int] = defaultdict(int)
        self._frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Sets whether new categories are unknown from now on."""
        self._frozen = freeze

    def get(self, category: Hashable) -> int:
        """Returns the number of a category, which gets one if it is new and the vocabulary is not frozen."""
        found = self._mapping.get(category)
        if found is None:
            if self._frozen:
                return 0
            found = self._mapping[category] = len(self._mapping)
            self._categories.append(category)
        return found

    def add(self, category: Hashable, count: int = 1) -> None:
        """Adds to the number of occurrences of a category."""
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps categories that occurred more than ``min_frequency`` times, numbered from the most frequent one on.

        Args:
          min_frequency: see above.
          max_frequency: categories that occurred at least this often are removed, too; -1: no limit.
        """

        def order(entry: tuple[Hashable, int]) -> tuple[bool, Any]:
            return isinstance(entry[0], str), entry[0]

        ordered = sorted(sorted(self._counts.items(), key=order), key=lambda entry: entry[1], reverse=True)
        kept = [
            (category, count)
            for category, count in ordered
            if count > min_frequency and not (0 < max_frequency <= count)
        ]
        self._set(kept)

    def _set(self, counts: Iterable[tuple[Hashable, int]]) -> None:
        self._counts = defaultdict(int, counts)
        self._categories = [self._unknown_token, *self._counts]
        self._mapping = {category: index for index, category in enumerate(self._categories)}

    def to_json(self) -> dict[str, object]:
        """Returns the categories, their numbers of occurrences and the settings as values of JSON."""
        return {
            "categories": self._categories,
            "counts": [self._counts.get(category, 0) for category in self._categories],
            "support_reverse": self._support_reverse,
            "frozen": self._frozen,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> CategoricalVocabulary:
        """Returns the vocabulary that `to_json` has converted."""
        made = cls(value["categories"][0], value["support_reverse"])
        made._set(zip(value["categories"][1:], value["counts"][1:], strict=True))
        made._frozen = value["frozen"]
        return made

    def reverse(self, class_id: int) -> Hashable:
        """Returns the category of a number.

        Raises:
          ValueError: the vocabulary was made with ``support_reverse=False``.
        """
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._categories[class_id]


class VocabularyProcessor:
    """Converts texts to the numbers of their words.

    Args:
      max_document_length: number of words of each result: longer texts are cut, shorter ones end with 0.
      min_frequency: words that do not occur more often are unknown.
      vocabulary: the words; an empty vocabulary if None.
      tokenizer_fn: divides texts; `tokenizer` if None.

    Attributes:
      vocabulary_: a `CategoricalVocabulary`.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Tokenizer | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer: Tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: object = None) -> VocabularyProcessor:
        """Adds the words of texts to the vocabulary, and freezes it."""
        del unused_y
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[str], unused_y: object = None) -> Iterator[Ids]:
        """Calls `fit`, then `transform`."""
        del unused_y
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Ids]:
        """Yields the numbers [max_document_length] of each text's words."""
        for tokens in self._tokenizer(raw_documents):
            ids = np.zeros(self.max_document_length, np.int64)
            for index, token in zip(range(self.max_document_length), tokens, strict=False):
                ids[index] = self.vocabulary_.get(token)
            yield ids

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of numbers as a text."""
        for document in documents:
            yield " ".join(str(self.vocabulary_.reverse(class_id)) for class_id in document)

    def save(self, filename: Path) -> None:
        """Writes the lengths and the vocabulary to a file, as JSON; TensorFlow's file would contain pickled classes.

        Raises:
          ValueError: there is a ``tokenizer_fn``: a file cannot contain a function.
        """
        if self._tokenizer is not tokenizer:
            raise ValueError("A VocabularyProcessor with a tokenizer_fn cannot be saved; save its vocabulary_ instead")
        saved = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "vocabulary": self.vocabulary_.to_json(),
        }
        checked_json.write(filename, saved)

    @classmethod
    def restore(cls, filename: Path) -> VocabularyProcessor:
        """Returns the processor that `save` has written to a file.

        Raises:
          DataLossError: another program has written the file, such as TensorFlow, or it is damaged.
          NotFoundError: the file does not exist.
        """
        try:
            saved = checked_json.read(filename)
        except DataLossError as error:
            text = "it was not written by VocabularyProcessor.save; files of TensorFlow contain pickled classes"
            raise DataLossError(f"{filename}: {text}") from error
        vocabulary = CategoricalVocabulary.from_json(saved["vocabulary"])
        return cls(saved["max_document_length"], saved["min_frequency"], vocabulary)


class ByteProcessor:
    """Converts texts to their bytes.

    Args:
      max_document_length: number of bytes of each result: longer texts are cut, shorter ones end with 0.
    """

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Iterable[str | bytes]) -> None:
        """Does nothing."""

    def fit_transform(self, x: Iterable[str | bytes]) -> Iterator[Any]:
        """Same as `transform`."""
        return self.transform(x)

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """Yields the texts of bytes; an empty text for bytes that are not UTF-8."""
        for data in x:
            document = np.trim_zeros(np.asarray(data).astype(np.uint8), trim="b").tobytes()
            try:
                yield document.decode()
            except UnicodeDecodeError:
                yield ""

    def transform(self, x: Iterable[str | bytes]) -> Iterator[Any]:
        """Yields the bytes [max_document_length] of each text, of type uint8."""
        for document in x:
            encoded = document.encode() if isinstance(document, str) else document
            found = np.zeros(self.max_document_length, np.uint8)
            cut = np.frombuffer(encoded, np.uint8)[: self.max_document_length]
            found[: len(cut)] = cut
            yield found
