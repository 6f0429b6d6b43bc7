"""Access control: tokens for programs, sessions with CSRF protection for the web page.

A secret has 256 random bits, so guessing is hopeless, and only its SHA-256 is stored. Each role includes the
permissions of the previous role: ``view`` may look, ``run`` may also submit, stop, restart, scale and delete jobs,
``admin`` may also issue and revoke tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.platform.records import Token, TokenRole
from headwater.platform.store import Store

ROLES: tuple[TokenRole, ...] = ("view", "run", "admin")
PREFIX = "hw_"
SESSION_S = 12 * 3600.0
# The time of a token's last use is stored at most this often, in seconds.
_LAST_USE_INTERVAL_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Requester:
    """The sender of a request.

    Attributes:
      name: the token's name.
      role: the role of the token.
      token_id: the id of the token or session; empty if the server requires no token.
    """

    name: str
    role: TokenRole
    token_id: str = ""

    def may(self, role: TokenRole) -> bool:
        """Returns whether the sender has ``role`` or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)


ANYONE = Requester(name="anyone", role="admin")
"""The identity of every sender at a server that requires no tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A new session of the web page.

    Attributes:
      secret: the secret for a cookie that scripts cannot read.
      csrf: the CSRF secret, which the page sends with every request that changes something.
      identity: the owner of the session.
    """

    secret: str
    csrf: str
    identity: Requester


class Auth:
    """Issues, checks and revokes tokens and sessions.

    Args:
      store: the database of tokens and sessions.
      required: whether requests need a token or a session.
      clock: returns monotonic seconds since 1970; a `SteadyClock` unless given.
    """

    def __init__(self, store: Store, *, required: bool = True, clock: Callable[[], float] | None = None) -> None:
        self.required = required
        self._store = store
        self._clock = clock or SteadyClock()

    def issue_token(self, name: str, role: TokenRole, *, valid_s: float | None = None) -> tuple[Token, str]:
        """Issues a token; returns it with its secret, which cannot be retrieved later."""
        now = self._clock()
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            id=secrets.token_hex(8),
            name=name,
            role=role,
            created_at=now,
            expires_at=now + valid_s if valid_s is not None else None,
        )
        self._store.add_token(token, secret_hash=_hash(secret))
        return token, secret

    def tokens(self) -> list[Token]:
        """Lists all tokens."""
        return self._store.tokens()

    def revoke_token(self, token_id: str) -> bool:
        """Revokes a token and its sessions; returns whether the token existed."""
        return self._store.delete_token(token_id)

    def identify(self, secret: str) -> Requester | None:
        """Returns the owner of the token with this secret; None if there is no such token, or the token has expired."""
        entry = self._find(secret, "token")
        return entry[0] if entry is not None else None

    def open_session(self, token_secret: str) -> Opened | None:
        """Opens a session for the owner of a token's secret; None if the secret is not valid."""
        identity = self.identify(token_secret)
        if identity is None:
            return None
        now = self._clock()
        self._store.delete_expired_tokens(now)
        secret, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = Token(
            id=secrets.token_hex(8),
            name=identity.name,
            kind="session",
            role=identity.role,
            parent=identity.token_id,
            created_at=now,
            expires_at=now + SESSION_S,
        )
        self._store.add_token(session, secret_hash=_hash(secret), csrf_hash=_hash(csrf))
        return Opened(secret=secret, csrf=csrf, identity=identity)

    def identify_session(self, secret: str, *, csrf: str | None, changes: bool) -> Requester | None:
        """Returns the owner of the session with this secret; None if the session is not valid.

        Args:
          secret: the cookie's value.
          csrf: the value that the page sent in a header or a form field.
          changes: whether the request changes something; only then is ``csrf`` checked.
        """
        entry = self._find(secret, "session")
        if entry is None:
            return None
        identity, csrf_hash = entry
        # Compared in constant time, so that response times reveal nothing about the secret.
        if changes and not (csrf and csrf_hash and hmac.compare_digest(_hash(csrf), csrf_hash)):
            return None
        return identity

    def close_session(self, secret: str) -> None:
        """Ends a session."""
        entry = self._find(secret, "session")
        if entry is not None:
            self._store.delete_token(entry[0].token_id)

    def _find(self, secret: str, kind: str) -> tuple[Requester, str | None] | None:
        if not 1 <= len(secret) <= 200:
            return None
        entry = self._store.token(_hash(secret))
        if entry is None or entry[0].kind != kind:
            return None
        token, csrf_hash = entry
        now = self._clock()
        if token.expires_at is not None and token.expires_at <= now:
            return None
        if token.last_used_at is None or now - token.last_used_at > _LAST_USE_INTERVAL_S:
            self._store.touch_token(token.id, now)
        return Requester(name=token.name, role=token.role, token_id=token.id), csrf_hash


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
