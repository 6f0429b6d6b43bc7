"""Errors: a message alone, or TensorFlow's arguments, and their copies in other processes."""

from __future__ import annotations

import copy

import pytest

from headwater import errors


def test_a_message_alone_equals_a_message_without_an_operation() -> None:
    alone = errors.NotFoundError("no such file")
    full = errors.NotFoundError(None, None, "no such file")
    for error in (alone, full):
        assert (error.message, error.node_def, error.op, error.error_code) == ("no such file", None, None, 5)
        assert str(error) == "no such file"
        assert error.args == ("no such file",)


def test_arguments_by_name() -> None:
    error = errors.OpError(node_def="node", op=None, message="lost", error_code=errors.ABORTED)
    assert (error.node_def, error.message, error.error_code) == ("node", "lost", errors.ABORTED)
    assert errors.OpError("lost").error_code == errors.UNKNOWN


@pytest.mark.parametrize("code", range(1, 17))
def test_each_code_has_one_class(code: int) -> None:
    cls = errors.exception_type_from_error_code(code)
    assert errors.error_code_from_exception_type(cls) == code
    assert type(errors.make_error(code, "text")) is cls


def test_a_copy_keeps_class_and_message() -> None:
    copied = copy.copy(errors.UnavailableError("gone"))
    assert type(copied) is errors.UnavailableError
    assert (copied.message, copied.error_code) == ("gone", errors.UNAVAILABLE)
