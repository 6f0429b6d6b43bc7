"""``tf.flags``: command-line flags of TensorFlow 1.15, based on absl.

`FLAGS` parses ``sys.argv`` when the first flag is read, even before ``tf.app.run``. An invalid command line ends the
program with exit code 2, after one line that names the flag. Other attributes are absl's
(https://abseil.io/docs/python/guides/flags).
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from absl import flags as _absl

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


_RENAMED_ARGUMENTS: Final = {"flag_name": "name", "default_value": "default", "docstring": "help"}
"""Names of arguments before TensorFlow 1.5, and since."""


class BadFlagError(_absl.Error, SystemExit):
    """An invalid command line. If uncaught, it ends the program with exit code 2 and no further output."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = 2


def _refuse(error: _absl.Error) -> NoReturn:
    message = " ".join(str(error).split())
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    raise BadFlagError(message) from error


class LazyFlags:
    """The values of flags as attributes; the command line is parsed when the first one is read.

    Args:
      flags: absl's flags, which hold the definitions and values.
    """

    def __init__(self, flags: _absl.FlagValues) -> None:
        object.__setattr__(self, "_flags", flags)

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Parses a command line.

        Args:
          argv: name of the program and its arguments.
          known_only: return undefined flags instead of refusing them.

        Returns:
          The name of the program and the remaining arguments.

        Raises:
          BadFlagError: an argument is wrong.
        """
        try:
            return self._flags(argv, known_only=known_only)
        except _absl.Error as error:
            _refuse(error)

    def _parse_flags(self, args: Sequence[str] | None = None) -> None:
        """Parses the command line; the name in programs for TensorFlow before 1.5."""
        self(sys.argv if args is None else [sys.argv[0], *args], known_only=True)

    def _parsed(self) -> Any:
        if not self._flags.is_parsed():
            self(sys.argv)
        return self._flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # look-ups by Python itself must not parse the command line
        return getattr(self._flags if hasattr(_absl.FlagValues, name) else self._parsed(), name)

    def __setattr__(self, name: str, value: TensorLike) -> None:
        setattr(self._parsed(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._parsed(), name)

    def __dir__(self) -> list[str]:
        return dir(self._flags)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name]

    def __setitem__(self, name: str, flag: object) -> None:
        self._flags[name] = flag

    def __contains__(self, name: object) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)


FLAGS: Final = LazyFlags(_absl.FLAGS)


def _define(function: Callable[..., object]) -> Callable[..., object]:
    """Wraps a function of absl that defines a flag: it also accepts the old names of the arguments."""

    @functools.wraps(function)
    def define(*args: object, **kwargs: object) -> object:
        return function(*args, **{_RENAMED_ARGUMENTS.get(name, name): value for name, value in kwargs.items()})

    return define


DEFINE = _define(_absl.DEFINE)
DEFINE_alias: Callable[..., object] = _define(_absl.DEFINE_alias)
DEFINE_bool: Callable[..., object] = _define(_absl.DEFINE_bool)
DEFINE_boolean: Callable[..., object] = _define(_absl.DEFINE_boolean)
DEFINE_enum: Callable[..., object] = _define(_absl.DEFINE_enum)
DEFINE_enum_class: Callable[..., object] = _define(_absl.DEFINE_enum_class)
DEFINE_flag: Callable[..., object] = _define(_absl.DEFINE_flag)
DEFINE_float: Callable[..., object] = _define(_absl.DEFINE_float)
DEFINE_integer: Callable[..., object] = _define(_absl.DEFINE_integer)
DEFINE_list: Callable[..., object] = _define(_absl.DEFINE_list)
DEFINE_multi: Callable[..., object] = _define(_absl.DEFINE_multi)
DEFINE_multi_enum: Callable[..., object] = _define(_absl.DEFINE_multi_enum)
DEFINE_multi_enum_class: Callable[..., object] = _define(_absl.DEFINE_multi_enum_class)
DEFINE_multi_float: Callable[..., object] = _define(_absl.DEFINE_multi_float)
DEFINE_multi_integer: Callable[..., object] = _define(_absl.DEFINE_multi_integer)
DEFINE_multi_string: Callable[..., object] = _define(_absl.DEFINE_multi_string)
DEFINE_spaceseplist: Callable[..., object] = _define(_absl.DEFINE_spaceseplist)
DEFINE_string: Callable[..., object] = _define(_absl.DEFINE_string)

# Flags belong to the module that defines them, not to this one: `--help` shows the program's flags.
_absl.disclaim_key_flags()


def __getattr__(name: str) -> Any:
    return getattr(_absl, name)
