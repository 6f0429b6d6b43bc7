"""Descriptions of tasks' programs, and of their differences."""

from __future__ import annotations

import pytest

from headwater.cluster.task.agreement import difference, encode_topics, is_program_description

ONE = encode_topics({"optimizer": {"class": "Adam", "rate": 0.1}, "data": {"steps": 4}})


def test_topics_are_compared_in_their_order() -> None:
    mine = encode_topics({"optimizer": {"class": "SGD"}, "learning rate": {"rate": 0.1}, "data": {"rows": 3}})
    theirs = encode_topics({"learning rate": {"rate": 0.2}, "optimizer": {"class": "Adam"}})
    assert difference("a", mine, "b", theirs) == "a has other optimizer than b: class is SGD, not Adam"
    assert difference("b", theirs, "a", mine) == "b has other learning rate than a: rate is 0.2, not 0.1"


def test_equal_programs_do_not_differ() -> None:
    assert difference("a", ONE, "b", encode_topics({"optimizer": {"rate": 0.1, "class": "Adam"}})) == ""


def test_a_difference_names_both_values() -> None:
    other = encode_topics({"optimizer": {"class": "SGD", "rate": 0.1, "momentum": 0.9}})
    assert (
        difference("a", ONE, "b", other)
        == "a has other optimizer than b: class is Adam, not SGD; momentum is missing, not 0.9"
    )


def test_long_values_are_compared_by_digest() -> None:
    long = encode_topics({"optimizer": {"rate": "x" * 1000}})
    assert len(long["optimizer"]["rate"]) < 40
    assert difference("a", long, "b", encode_topics({"optimizer": {"rate": "x" * 1000}})) == ""
    assert difference("a", long, "b", encode_topics({"optimizer": {"rate": "y" * 1000}}))


@pytest.mark.parametrize("value", [None, [], {"a": 1}, {"a": {"b": 1}}, {1: {}}])
def test_agreements_of_unauthenticated_peers_are_validated(value: object) -> None:
    assert not is_program_description(value)
    assert is_program_description(ONE)
