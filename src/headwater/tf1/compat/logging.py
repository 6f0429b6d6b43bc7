"""``tf.logging``: messages on the standard error output, ``INFO:tensorflow:text``.

`set_verbosity` applies to the program's messages and to Headwater's own (``WARNING:headwater:text``). If the program
has configured Python's `logging`, only the handlers of that configuration write the messages.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Iterator
from typing import Any, Final

DEBUG: Final = logging.DEBUG
INFO: Final = logging.INFO
WARN: Final = logging.WARNING
ERROR: Final = logging.ERROR
FATAL: Final = logging.FATAL

_PROGRAM: Final = logging.getLogger("tensorflow")
_CALLER: Final = 2
"""The number of stack frames from `logging` to the caller of a function of this module."""


class _Handler(logging.StreamHandler[Any]):
    """Writes to the current ``sys.stderr``, unless Python's `logging` is configured."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(_Formatter())

    @property
    def stream(self) -> Any:
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname}:{record.name.partition('.')[0]}:{super().format(record)}"


def _install() -> None:
    # Levels and handlers that a program gives the logger of TensorFlow then apply to Headwater's messages too.
    logging.getLogger("headwater").parent = _PROGRAM
    if not _PROGRAM.handlers:
        _PROGRAM.addHandler(_Handler())


_install()


def get_logger() -> logging.Logger:
    """The logger behind these functions."""
    return _PROGRAM


def get_verbosity() -> int:
    """Returns the lowest level of messages that are shown."""
    return _PROGRAM.getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Shows messages of level ``v`` (`DEBUG`, `INFO`, `WARN`, `ERROR`, `FATAL`) and above."""
    _PROGRAM.setLevel(v)


def debug(msg: object, *args: object, **kwargs: Any) -> None:
    _PROGRAM.debug(msg, *args, stacklevel=_CALLER, **kwargs)


def info(msg: object, *args: object, **kwargs: Any) -> None:
    _PROGRAM.info(msg, *args, stacklevel=_CALLER, **kwargs)


def warning(msg: object, *args: object, **kwargs: Any) -> None:
    _PROGRAM.warning(msg, *args, stacklevel=_CALLER, **kwargs)


warn = warning


def error(msg: object, *args: object, **kwargs: Any) -> None:
    _PROGRAM.error(msg, *args, stacklevel=_CALLER, **kwargs)


def fatal(msg: object, *args: object, **kwargs: Any) -> None:
    """Logs a message of the highest level; the program continues."""
    _PROGRAM.fatal(msg, *args, stacklevel=_CALLER, **kwargs)


def log(level: int, msg: object, *args: object, **kwargs: Any) -> None:
    _PROGRAM.log(level, msg, *args, stacklevel=_CALLER, **kwargs)


vlog = log


def TaskLevelStatusMessage(msg: object) -> None:
    _PROGRAM.error(msg, stacklevel=_CALLER)


def log_if(level: int, msg: object, condition: object, *args: object) -> None:
    """Logs a message if ``condition`` is true."""
    if condition:
        _PROGRAM.log(level, msg, *args, stacklevel=_CALLER)


_counts: Final[dict[tuple[str, str, int], Iterator[int]]] = {}


def _count(function: str) -> int:
    """Returns how often the line that calls ``function`` has called it before."""
    file, line, *_ = _PROGRAM.findCaller(stacklevel=1 + _CALLER)
    return next(_counts.setdefault((function, file, line), itertools.count()))


def log_every_n(level: int, msg: object, n: int, *args: object) -> None:
    """Shows the message of this line of the program the first time and every ``n``-th after it."""
    if _count("log_every_n") % n == 0:
        _PROGRAM.log(level, msg, *args, stacklevel=_CALLER)


def log_first_n(level: int, msg: object, n: int, *args: object) -> None:
    """Shows the message of this line of the program the first ``n`` times."""
    if _count("log_first_n") < n:
        _PROGRAM.log(level, msg, *args, stacklevel=_CALLER)


def flush() -> None:
    """Flushes logged messages to the operating system."""
    sys.stderr.flush()
