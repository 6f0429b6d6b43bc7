"""``tf.app``: runs a program's main function with its flags parsed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from absl import app as _absl_app

from headwater.tf1.compat import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Parses the flags, runs the program and ends the process with its result.

    Args:
      main: called with the name of the program and the arguments that are not flags; by default, the program's
          ``main``.
      argv: the command line, ``sys.argv`` by default.

    Raises:
      SystemExit: always; with code 2 after a line that names an invalid flag, with code 1 after ``--help``.
    """
    _absl_app.define_help_flags()
    rest = flags.FLAGS(sys.argv if argv is None else argv, known_only=True)
    program = sys.modules["__main__"]
    sys.exit((main or program.main)(rest))
