"""Secrets of jobs: the interface of their sources, and secrets without a server."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from headwater.platform.host.secrets import secret_variable


class SecretError(Exception):
    """A secret is not available, or cannot be stored; the message names the secret, the reason and the remedy."""


class Secrets(ABC):
    """The source of jobs' secrets."""

    @abstractmethod
    def value(self, name: str) -> str:
        """Returns the value of a secret; raises `SecretError`."""

    def check(self, wanted: Mapping[str, str]) -> None:
        """Checks that secrets are available.

        Args:
          wanted: the field of the job file that uses a secret, by the secret's name.

        Raises:
          SecretError: a secret is not available.
        """
        for name, field in wanted.items():
            try:
                self.value(name)
            except SecretError as error:
                raise SecretError(f"{field}: {error}") from error

    def values(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the values of secrets by their names; raises `SecretError`."""
        return {name: self.value(name) for name in names}


class GivenSecrets(Secrets):
    """Secrets without a server: each is an environment variable, such as ``HEADWATER_SECRET_WANDB``.

    Args:
      environ: this process's environment.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def value(self, name: str) -> str:
        secret = self._environ.get(secret_variable(name))
        if secret is None:
            raise SecretError(f"the secret {name!r} is missing: without a server, set {secret_variable(name)}")
        return secret
