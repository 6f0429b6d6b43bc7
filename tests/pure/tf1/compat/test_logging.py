"""``tf.logging``: levels, formats, counting."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headwater.tf1.compat import logging as tf_logging

LOGGERS = [logging.getLogger(name) for name in ("tensorflow", "headwater")]


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    before = [logger.level for logger in LOGGERS]
    yield
    for logger, level in zip(LOGGERS, before, strict=True):
        logger.setLevel(level)


@contextmanager
def no_logging_set_up() -> Iterator[None]:
    """As in a program that has not set up Python's `logging`; pytest has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", [])
        yield


@no_logging_set_up()
def test_messages_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert tf_logging.get_verbosity() == tf_logging.WARN
    for function in (tf_logging.debug, tf_logging.info, tf_logging.warn, tf_logging.error, tf_logging.fatal):
        function("text %d", 3)
    tf_logging.set_verbosity(tf_logging.DEBUG)
    tf_logging.debug("100% sure")
    tf_logging.vlog(tf_logging.INFO, "a %s", {"b": 1})
    tf_logging.TaskLevelStatusMessage("status")
    tf_logging.get_logger().info("by hand")
    logging.getLogger("headwater.tf1.training").warning("our own")
    tf_logging.flush()
    assert capsys.readouterr().err.splitlines() == [
        "WARNING:tensorflow:text 3",
        "ERROR:tensorflow:text 3",
        "CRITICAL:tensorflow:text 3",
        "DEBUG:tensorflow:100% sure",
        "INFO:tensorflow:a {'b': 1}",
        "ERROR:tensorflow:status",
        "INFO:tensorflow:by hand",
        "WARNING:headwater:our own",
    ]


@no_logging_set_up()
def test_verbosity_is_set_for_both_loggers(capsys: pytest.CaptureFixture[str]) -> None:
    tf_logging.set_verbosity("ERROR")
    assert tf_logging.get_verbosity() == tf_logging.ERROR
    tf_logging.warning("hidden")
    logging.getLogger("headwater").warning("hidden")
    assert capsys.readouterr().err == ""


def test_the_logger_of_tensorflow_applies_to_messages_of_hooks() -> None:
    """Programs write the log of training to a file by a handler and a level of this logger."""
    texts: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    program, handler = logging.getLogger("tensorflow"), Keep()
    program.addHandler(handler)
    try:
        for level in (logging.INFO, logging.ERROR):
            program.setLevel(level)
            logging.getLogger("headwater.tf1.training.basic_session_run_hooks").info("loss = %s", level)
    finally:
        program.removeHandler(handler)
    assert texts == [f"loss = {logging.INFO}"]


def test_messages_use_the_configured_logging(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    tf_logging.error("text")
    (record,) = caplog.records
    assert (record.name, record.getMessage(), record.filename) == ("tensorflow", "text", "test_logging.py")
    assert capsys.readouterr().err == ""


def test_counting(caplog: pytest.LogCaptureFixture) -> None:
    def messages(log: Any) -> list[str]:
        caplog.clear()
        for number in range(5):
            log(number)
        return [record.getMessage() for record in caplog.records]

    error = tf_logging.ERROR
    assert messages(lambda i: tf_logging.log_every_n(error, "%d", 2, i)) == ["0", "2", "4"]
    assert messages(lambda i: tf_logging.log_first_n(error, "%d", 2, i)) == ["0", "1"]
    assert messages(lambda i: tf_logging.log_if(error, "%d", i > 2, i)) == ["3", "4"]
    assert {record.filename for record in caplog.records} == {"test_logging.py"}
