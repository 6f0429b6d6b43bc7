"""Who may do what: tokens for programs, sessions with CSRF protection for the web page.

A secret has 256 random bits, and only its SHA-256 is stored: there is nothing to guess or to try out. Roles build on
each other: ``view`` may look, ``run`` may also submit, stop, restart, scale and delete jobs, ``admin`` also gives and
takes tokens.
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
# When a token was last used is noted about so often.
_TOUCH_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """The sender of a request.

    Attributes:
      name: the token's name.
      role: what it may do.
      token_id: which token, or session; empty where the server asks for none.
    """

    name: str
    role: TokenRole
    token_id: str = ""

    def may(self, role: TokenRole) -> bool:
        """Whether that is allowed which ``role`` is needed for."""
        return ROLES.index(self.role) >= ROLES.index(role)


NOBODY_ASKED = Identity(name="anyone", role="admin")
"""Everybody, at a server that was started to ask for no token."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A new session of the web page.

    Attributes:
      secret: belongs into a cookie that scripts cannot read.
      csrf: belongs into the page, which sends it with everything that changes something.
      identity: whose session it is.
    """

    secret: str
    csrf: str
    identity: Identity


class Auth:
    """Gives, checks and takes back tokens and sessions.

    Args:
      store: where they are kept.
      required: whether requests need one.
      clock: gives seconds since 1970, which only grow; one that begins with the time of day unless given.
    """

    def __init__(self, store: Store, *, required: bool = True, clock: Callable[[], float] | None = None) -> None:
        self.required = required
        self._store = store
        self._clock = clock or SteadyClock()

    def give_token(self, name: str, role: TokenRole, *, valid_s: float | None = None) -> tuple[Token, str]:
        """A new token and the secret that opens it, which is not shown again."""
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
        """All tokens."""
        return self._store.tokens()

    def take_back(self, token_id: str) -> bool:
        """Takes back a token and its sessions; whether there was one."""
        return self._store.delete_token(token_id)

    def identify(self, secret: str) -> Identity | None:
        """Whose token this secret opens; None where it opens none, or no longer."""
        found = self._find(secret, "token")
        return found[0] if found is not None else None

    def open_session(self, token_secret: str) -> Opened | None:
        """A session for a person who knows a token's secret; None without it."""
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

    def identify_session(self, secret: str, *, csrf: str | None, changes: bool) -> Identity | None:
        """Whose session this secret opens.

        Args:
          secret: from the cookie.
          csrf: from the page, by a header or a form's field.
          changes: whether the request changes something; only then ``csrf`` is needed.
        """
        found = self._find(secret, "session")
        if found is None:
            return None
        identity, csrf_hash = found
        if changes and not (csrf and csrf_hash and hmac.compare_digest(_hash(csrf), csrf_hash)):
            return None
        return identity

    def close_session(self, secret: str) -> None:
        """Ends a session."""
        found = self._find(secret, "session")
        if found is not None:
            self._store.delete_token(found[0].token_id)

    def _find(self, secret: str, kind: str) -> tuple[Identity, str | None] | None:
        if not 1 <= len(secret) <= 200:
            return None
        found = self._store.token(_hash(secret))
        if found is None or found[0].kind != kind:
            return None
        token, csrf_hash = found
        now = self._clock()
        if token.expires_at is not None and token.expires_at <= now:
            return None
        if token.last_used_at is None or now - token.last_used_at > _TOUCH_S:
            self._store.touch_token(token.id, now)
        return Identity(name=token.name, role=token.role, token_id=token.id), csrf_hash


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
