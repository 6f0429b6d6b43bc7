"""`tf.contrib.learn.preprocessing`: numbers of words; values recorded with TensorFlow 1.15."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwater import tf

preprocessing = tf.contrib.learn.preprocessing

TEXTS = ["It's a CamelCase day, a day", "USA day the-end", "a b c d e f"]


def test_tokenizer_divides_camel_case() -> None:
    assert list(preprocessing.tokenizer(["It's CamelCase, USA_x-y"])) == [["It's", "Camel", "Case", "USA", "_x-y"]]


def test_a_processor_numbers_words_in_their_order_and_cuts_texts() -> None:
    processor = preprocessing.VocabularyProcessor(5)
    found = list(processor.fit_transform(TEXTS))
    np.testing.assert_array_equal(found, [[1, 2, 3, 4, 5], [6, 5, 7, 0, 0], [2, 8, 9, 10, 11]])
    assert found[0].dtype == np.int64
    assert len(processor.vocabulary_) == 13
    assert list(processor.reverse(found))[1] == "USA day the-end <UNK> <UNK>"
    np.testing.assert_array_equal(list(processor.transform(["unknown day"])), [[0, 5, 0, 0, 0]])


def test_rare_words_are_unknown_and_frequent_ones_first() -> None:
    processor = preprocessing.VocabularyProcessor(4, min_frequency=1)
    np.testing.assert_array_equal(list(processor.fit_transform(TEXTS)), [[0, 1, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0]])


def test_trim_removes_too_frequent_categories_and_orders_equal_ones_by_name() -> None:
    vocabulary = preprocessing.CategoricalVocabulary()
    for category, count in (("often", 9), ("b", 3), ("a", 3), ("rare", 1)):
        vocabulary.add(category, count)
    vocabulary.trim(1, max_frequency=8)
    vocabulary.freeze()
    assert [vocabulary.get(category) for category in ("often", "a", "b", "rare")] == [0, 1, 2, 0]
    assert vocabulary.reverse(1) == "a"


def test_reverse_requires_support() -> None:
    with pytest.raises(ValueError, match="support_reverse"):
        preprocessing.CategoricalVocabulary(support_reverse=False).reverse(0)


def test_a_saved_processor_gives_the_same_numbers(tmp_path: Path) -> None:
    processor = preprocessing.VocabularyProcessor(5, min_frequency=1).fit(TEXTS)
    processor.save(tmp_path / "words")
    restored = preprocessing.VocabularyProcessor.restore(tmp_path / "words")
    assert (restored.max_document_length, restored.min_frequency) == (5, 1)
    for texts in (TEXTS, ["the day"]):
        np.testing.assert_array_equal(list(restored.transform(texts)), list(processor.transform(texts)))


def test_a_processor_with_a_function_cannot_be_saved(tmp_path: Path) -> None:
    processor = preprocessing.VocabularyProcessor(5, tokenizer_fn=lambda texts: [text.split() for text in texts])
    with pytest.raises(ValueError, match="tokenizer_fn"):
        processor.save(tmp_path / "words")


def test_files_of_others_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_bytes(b"\x80\x03cinherit\n")
    with pytest.raises(tf.errors.DataLossError, match=r"words: it was not written by VocabularyProcessor.save"):
        preprocessing.VocabularyProcessor.restore(path)


def test_bytes_of_texts() -> None:
    processor = preprocessing.ByteProcessor(4)
    found = list(processor.fit_transform(["abc", "\u00e9t\u00e9", b"\xff"]))
    np.testing.assert_array_equal(found, [[97, 98, 99, 0], [195, 169, 116, 195], [255, 0, 0, 0]])
    assert list(processor.reverse(found)) == ["abc", "", ""]
