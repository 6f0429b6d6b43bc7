"""Checks of all results for numbers that are not finite: ``tf.debugging.enable_check_numerics``."""

from __future__ import annotations

import jax


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Makes each operation fail whose result has NaN or an infinite number, with FloatingPointError.

    The checks do not cover steps that Keras compiles for `fit`; ``keras.callbacks.TerminateOnNaN`` ends such training.

    Args:
      stack_height_limit, path_length_limit: ignored; Python's traceback shows the operation's place.
    """
    del stack_height_limit, path_length_limit
    _set(True)


def disable_check_numerics() -> None:
    """Ends the checks of `enable_check_numerics`."""
    _set(False)


def _set(enabled: bool) -> None:
    for setting in ("jax_debug_nans", "jax_debug_infs"):
        jax.config.update(setting, enabled)
