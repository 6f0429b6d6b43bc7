"""Authentication and encryption of connections between tasks.

A shared token (``HEADWATER_TOKEN``), TLS certificates (``HEADWATER_TLS_CERT``, ``HEADWATER_TLS_KEY`` and
``HEADWATER_TLS_CA``), or both, guard channels and the control plane alike.

* The token is never sent. Two ends of a channel prove to each other that they know it by answering each other's random
  challenge (HMAC-SHA256, RFC 2104); a call to the control plane carries such a proof over its own name, the time and a
  random number. This authenticates the ends. It does not protect the traffic from an attacker who can read or change
  it: TLS does.
* With a certificate and its key, a server uses TLS; with a CA as well, it requires a certificate of that CA from every
  client. With a CA, a client accepts only servers with a certificate of that CA for the address it dialled.

A server that other machines can reach does not start without a token or a CA, unless that is allowed explicitly
(``HEADWATER_INSECURE=1``).

On loopback, without a token and a CA, tasks accept only programs of their own user. These share a token in a file
(`headwater.cluster.transport.user_token`) and, if one launcher has started them, another token in an inherited variable
(``HEADWATER_LAUNCH_TOKEN``). Either token is accepted.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headwater.cluster.addresses import Address
from headwater.cluster.transport.ports import resolve
from headwater.cluster.transport.user_token import user_token
from headwater.cluster.variables import INSECURE, LAUNCH_TOKEN
from headwater.errors import InvalidArgumentError, PermissionDeniedError

TOKEN = "HEADWATER_TOKEN"
CERTIFICATE = "HEADWATER_TLS_CERT"
KEY = "HEADWATER_TLS_KEY"
AUTHORITY = "HEADWATER_TLS_CA"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """The tokens that one end of a connection proves to know, and accepts from the other end.

    Attributes:
      values: the tokens, any of which is accepted; without tokens, every connection is accepted.
      of_user: whether the tokens are those of this user and launch, and not from ``HEADWATER_TOKEN``.
    """

    values: tuple[str, ...] = field(default=(), repr=False)
    of_user: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Security:
    """Security settings of a task.

    Attributes:
      token: a secret that all tasks of a cluster share; it should be long and random, such as 32 bytes in hexadecimal.
      certificate_file: this task's certificate and any intermediate certificates, PEM.
      key_file: the certificate's private key, PEM.
      authority_file: the certificate of the CA that signs all certificates of the cluster, PEM.
      insecure: allow a server without authentication that other machines can reach.
      users_only: without other authentication, require the tokens of this user and launch; see `for_host`.
      launch_token: the token that the launcher of this task gave to all of its tasks.

    Raises:
      InvalidArgumentError: only one of certificate and key is given, or a file cannot be read.
    """

    token: str | None = field(default=None, repr=False)
    certificate_file: Path | None = None
    key_file: Path | None = None
    authority_file: Path | None = None
    insecure: bool = False
    users_only: bool = False
    launch_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.token == "":
            raise InvalidArgumentError(f"token ({TOKEN}) is empty")
        if (self.certificate_file is None) != (self.key_file is None):
            present, missing = (CERTIFICATE, KEY) if self.key_file is None else (KEY, CERTIFICATE)
            raise InvalidArgumentError(f"{present} is set but {missing} is not; a certificate needs its key")
        for name, file in (
            (CERTIFICATE, self.certificate_file),
            (KEY, self.key_file),
            (AUTHORITY, self.authority_file),
        ):
            if file is not None and not os.access(file, os.R_OK):
                raise InvalidArgumentError(f"{name} names {file}, which cannot be read")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, *, insecure: bool = False) -> Security:
        """Reads the settings from the environment; empty variables count as not set.

        Args:
          environ: the process's own environment unless given.
          insecure: the same as ``HEADWATER_INSECURE=1``.
        """
        environ = os.environ if environ is None else environ

        def file(name: str) -> Path | None:
            return Path(environ[name]) if environ.get(name) else None

        return cls(
            token=environ.get(TOKEN) or None,
            certificate_file=file(CERTIFICATE),
            key_file=file(KEY),
            authority_file=file(AUTHORITY),
            insecure=insecure or environ.get(INSECURE, "").strip().lower() in ("1", "true", "yes"),
            users_only=True,
            launch_token=environ.get(LAUNCH_TOKEN) or None,
        )

    def for_host(self, host: str) -> Security:
        """Returns the settings for connections from or to ``host``.

        The result has `users_only` only if ``host`` is loopback and there is no token, no certificate with a CA, and no
        `insecure`.
        """
        if not self.users_only:
            return self
        set_by_hand = self.token is not None or self.insecure or (self.certificate_file and self.authority_file)
        return self if not set_by_hand and _reached_by_loopback(host) else replace(self, users_only=False)

    def tokens(self) -> Tokens:
        """Returns the current tokens of this end: the user's token is read from its file each time.

        Raises:
          PermissionDeniedError: the user's token cannot be read or created, and there is no token of a launcher.
        """
        if self.token is not None:
            return Tokens(values=(self.token,))
        if not self.users_only:
            return Tokens()
        inherited = () if self.launch_token is None else (self.launch_token,)
        # Read the file each time: the system may empty a user's runtime folder at log-out while tasks run, and the next
        # program then creates another token.
        try:
            return Tokens(values=(*inherited, user_token()), of_user=True)
        except PermissionDeniedError:
            if not inherited:
                raise
            return Tokens(values=inherited, of_user=True)

    @property
    def tls(self) -> bool:
        """Whether this task uses TLS."""
        return self.certificate_file is not None or self.authority_file is not None

    def check_may_listen(self, host: str) -> None:
        """Raises `PermissionDeniedError` if a server at ``host`` would be open to other machines, unless allowed."""
        serves_tls = self.certificate_file is not None
        guarded = self.token is not None or (serves_tls and self.authority_file is not None)
        if not (guarded or self.insecure or is_loopback(host)):
            raise PermissionDeniedError(
                f"a server at {host} can be reached from other machines, and has no authentication. Set {TOKEN} to the "
                f"same secret for all tasks, or {CERTIFICATE}, {KEY} and {AUTHORITY} to certificates (`headwater "
                f"certs` makes them), or allow it with {INSECURE}=1 (--insecure) if the whole network is trusted"
            )
        if self.authority_file is not None and not serves_tls:
            raise InvalidArgumentError(
                f"{AUTHORITY} is set but {CERTIFICATE} is not: a server needs a certificate of its own"
            )

    def server_context(self) -> ssl.SSLContext:
        """Returns the context of the accepting end of TLS; raises InvalidArgumentError if a file is invalid."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load(context)
        # Without a CA the clients are authenticated by the token alone.
        if self.authority_file is not None:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext:
        """Returns the context of the dialling end of TLS; raises InvalidArgumentError if a file is invalid."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._load(context)
        if self.authority_file is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except (ssl.SSLError, OSError) as error:
            raise InvalidArgumentError(
                f"{CERTIFICATE} ({self.certificate_file}) and {KEY} ({self.key_file}) do not fit: {error}"
            ) from error
        try:
            if self.authority_file is not None:
                context.load_verify_locations(self.authority_file)
        except (ssl.SSLError, OSError) as error:
            raise InvalidArgumentError(f"{AUTHORITY} ({self.authority_file}) holds no certificate: {error}") from error


def _reached_by_loopback(host: str) -> bool:
    """Returns whether the first address of ``host``, at which its server listens, is a loopback address."""
    try:
        place = resolve(Address(host, 0))[0][1]
    except OSError:
        return False
    return ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback


def is_loopback(host: str) -> bool:
    """Returns whether ``host`` has only loopback addresses; False if its name is unknown."""
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in infos]
    # All addresses must be loopback addresses, because a server could listen at any of them.
    return bool(addresses) and all(address.is_loopback for address in addresses)
