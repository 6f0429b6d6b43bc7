"""Transport of secrets from process to process: in the environment, never in a file or on a command line."""

from __future__ import annotations

from collections.abc import Mapping

_SECRET_PREFIX = "HEADWATER_SECRET_"
_TASK_SECRET_PREFIX = "HEADWATER_TASK_SECRET_"


def secret_variable(secret: str) -> str:
    """Returns the variable of a secret, such as ``HEADWATER_SECRET_WANDB_KEY`` for ``wandb-key``."""
    return _SECRET_PREFIX + secret.upper().replace("-", "_")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns ``environ`` without secrets that are meant for other processes."""
    return {
        name: value for name, value in environ.items() if not name.startswith((_SECRET_PREFIX, _TASK_SECRET_PREFIX))
    }


def secrets_for_keeper(values: Mapping[str, str]) -> dict[str, str]:
    """Returns environment variables that pass the task's secret variables ``values`` to its keeper."""
    # Under a prefix: a task's variable such as PYTHONPATH must not affect its keeper.
    return {_TASK_SECRET_PREFIX + name: value for name, value in values.items()}


def secrets_from_keeper(names: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the secret variables ``names`` from a keeper's environment; reverses `secrets_for_keeper`.

    Raises:
      KeyError: one of ``names`` is missing.
    """
    return {name: environ[_TASK_SECRET_PREFIX + name] for name in names}
