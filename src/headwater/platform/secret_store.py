"""Secrets: values that jobs refer to by name and that are never shown again, stored encrypted in the server's database.

The encryption is Fernet's (AES-128 in CBC mode with an HMAC, https://github.com/fernet/spec), from the package
``cryptography``. The key is not in the database, but in the variable ``HEADWATER_SECRETS_KEY``, or in a file beside the
database that only the server's user can read. So a copy of the database alone reveals no secret.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from headwater.platform.job_secrets import SecretError, Secrets
from headwater.platform.records import Secret

if TYPE_CHECKING:
    from headwater.platform.store import Store

KEY_VARIABLE = "HEADWATER_SECRETS_KEY"
KEY_FILE = "secrets.key"
MAX_BYTES = 64 * 1024
"""The maximum length of a value, in bytes of UTF-8."""


class StoredSecrets(Secrets):
    """The secrets of a server.

    Args:
      store: the database of secrets.
      keys: the Fernet keys: all of them decrypt, and the first encrypts.
      clock: returns seconds since 1970.

    Raises:
      SecretError: a key is invalid.
    """

    def __init__(self, store: Store, keys: Iterable[str], clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        try:
            self._cipher = MultiFernet([Fernet(key.strip()) for key in keys])
        except ValueError as error:
            raise SecretError(
                f"{KEY_VARIABLE}, or the file {KEY_FILE}: must be a key of 32 bytes in URL-safe base64, such as "
                "'openssl rand -base64 32 | tr +/ -_' prints, or several with commas between them"
            ) from error

    def value(self, name: str) -> str:
        sealed = self._store.sealed_secret(name)
        if sealed is None:
            raise SecretError(f"there is no secret {name!r}: store it with 'headwater secret set {name}'")
        try:
            return self._cipher.decrypt(sealed).decode()
        except InvalidToken as error:
            raise SecretError(
                f"the secret {name!r} was stored with another key: start the server with that key, too, in "
                f"{KEY_VARIABLE}, or store the secret again"
            ) from error

    def put(self, name: str, value: str, owner: str) -> Secret:
        """Stores a secret, replacing a secret of the same name.

        Raises:
          SecretError: the value is empty, too long, or contains a zero byte, which an environment cannot hold.
        """
        data = value.encode()
        if not value or len(data) > MAX_BYTES or "\0" in value:
            raise SecretError(f"value: must have 1 to {MAX_BYTES} bytes and no zero byte, but has {len(data)} bytes")
        secret = Secret(name=name, owner=owner, stored_at=self._clock())
        self._store.put_secret(secret, self._cipher.encrypt(data))
        return secret

    def all(self) -> list[Secret]:
        """Lists all secrets by name, without their values."""
        return self._store.secrets()

    def delete(self, name: str) -> bool:
        """Deletes a secret; returns whether the secret existed."""
        return self._store.delete_secret(name)


def secrets_keys(folder: Path, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the keys of a server with the data folder ``folder``; creates the key file if it is missing.

    Raises:
      SecretError: the file cannot be read, or belongs to another user.
    """
    value = environ.get(KEY_VARIABLE)
    if value:
        return value.split(",")
    path = folder / KEY_FILE
    try:
        # Write the key under a temporary name first: if the key were truncated, the secrets encrypted with it would be
        # lost.
        if not path.exists():
            written = path.with_suffix(".tmp")
            written.unlink(missing_ok=True)
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(Fernet.generate_key() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            written.replace(path)
        if path.stat().st_uid != os.geteuid():
            raise SecretError(f"{path} belongs to another user: it must be this server's own")
        path.chmod(0o600)
        return path.read_text(encoding="ascii").strip().split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f"{path} cannot be read or made: {error}") from error
