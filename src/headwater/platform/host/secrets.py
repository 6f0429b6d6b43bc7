"""How the value of a secret travels from process to process: in an environment, never in a file or a command line."""

from __future__ import annotations

from collections.abc import Mapping

_OF_SECRET = "HEADWATER_SECRET_"
_OF_TASK = "HEADWATER_TASK_SECRET_"


def secret_variable(secret: str) -> str:
    """The variable that carries the secret of this name, such as ``HEADWATER_SECRET_WANDB_KEY`` for ``wandb-key``."""
    return _OF_SECRET + secret.upper().replace("-", "_")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without secrets that a process was given for others."""
    return {name: value for name, value in environ.items() if not name.startswith((_OF_SECRET, _OF_TASK))}


def for_keeper(values: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a keeper finds further variables of its task, of their values by name."""
    # Under names of their own: what a task calls PYTHONPATH is not for its keeper.
    return {_OF_TASK + name: value for name, value in values.items()}


def of_keeper(names: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """What `for_keeper` was given; raises KeyError where one of ``names`` is missing."""
    return {name: environ[_OF_TASK + name] for name in names}
