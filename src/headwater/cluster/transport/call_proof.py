"""Authentication of calls to the control plane: a proof that the caller knows the token.

The metadata of a call contains the time, a random number, and a proof: the HMAC-SHA256 of both and of the call's name,
keyed with the token. A caller with several tokens sends one proof for each. The server accepts each random number once,
and only if the time differs little from its own clock. So the token is never sent, and an eavesdropper cannot reuse a
proof. If the clock of an authenticated caller differs more, the server sends its time to the caller. An attacker that
can alter traffic can still change the arguments of a call in transit; use TLS if that is possible.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable

from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.cluster.transport.security import TOKEN, Tokens

#: The metadata's key.
PROOF = "headwater-proof"
#: The key of the server's time in the metadata of a refusal.
TIME = "headwater-time"
#: Maximum difference between the clocks of two machines, in seconds.
MAX_SKEW_S = 300.0
#: Maximum number of remembered proofs; beyond it, calls are refused until the oldest expire.
_MAX_REMEMBERED = 1 << 17
#: Suffix of proofs of tokens that are not from ``HEADWATER_TOKEN``.
_USER_SUFFIX = "u"
_MAX_MACS = 4


def _mac(token: str, method: str, stamp: str, nonce: str) -> str:
    message = f"headwater call\0{method}\0{stamp}\0{nonce}".encode()
    return hmac.digest(token.encode(), message, hashlib.sha256).hex()


def make_proof(tokens: Tokens, method: str, *, now: float | None = None) -> str:
    """Returns a proof for one call of ``method``, such as ``/headwater.Task/GetStatus``."""
    stamp = f"{time.time() if now is None else now:.3f}"
    nonce = secrets.token_hex(16)
    macs = [_mac(token, method, stamp, nonce) for token in tokens.values]
    return " ".join([stamp, nonce, *macs, *[_USER_SUFFIX] * tokens.of_user])


def time_of_server(tokens: Tokens, method: str, proof: str, signed_time: str) -> float | None:
    """Returns the seconds since 1970 from `ProofChecker.signed_time`; None if the server lacks our token."""
    stamp, _, mac = signed_time.partition(" ")
    nonce = "".join(proof.split(" ")[1:2])
    if not any(hmac.compare_digest(mac.encode(), _mac_of_time(token, method, stamp, nonce)) for token in tokens.values):
        return None
    return float(stamp)


def _mac_of_time(token: str, method: str, stamp: str, nonce: str) -> bytes:
    return _mac(token, f"time {method}", stamp, nonce).encode()


class ProofChecker:
    """The server's side. Thread-safe.

    Args:
      tokens: returns the server's tokens; if there are none, all callers are accepted.
      clock: returns monotonic seconds since 1970: if it could jump ahead, numbers would expire too early and could be
        replayed.
    """

    def __init__(self, tokens: Callable[[], Tokens], *, clock: Callable[[], float] | None = None) -> None:
        self._tokens = tokens
        self._clock = clock or SteadyClock()
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}

    def problem_with(self, method: str, proof: str | None) -> str | None:
        """Returns why ``proof`` is rejected for a call of ``method``; None if it is accepted. Each proof is accepted
        once."""
        tokens = self._tokens()
        if not tokens.values:
            return None
        words = (proof or "").split(" ")
        stamp, nonce, macs = words[0], "".join(words[1:2]), words[2 : 2 + _MAX_MACS]
        of_user = macs[-1:] == [_USER_SUFFIX]
        if proof is None or (of_user and not tokens.of_user):
            return f"the call has no proof that the caller knows the token; set {TOKEN} for the caller, too"
        expected = [_mac(token, method, stamp, nonce).encode() for token in tokens.values]
        if not any(hmac.compare_digest(mac.encode(), right) for mac in macs for right in expected):
            if tokens.of_user:
                return (
                    f"there is no {TOKEN} here, so only programs of user {os.geteuid()} on this machine are accepted "
                    f"in; set {TOKEN} to the same value for all tasks, or for none"
                )
            return f"the caller has another token; set {TOKEN} to the same value for all tasks"
        # From here on, the caller is known to have the token.
        now = self._clock()
        skew = float(stamp) - now
        if abs(skew) > MAX_SKEW_S:
            return f"the clocks of the two machines differ by {abs(skew):.0f} s; {MAX_SKEW_S:.0f} s are allowed"
        return self._remember(nonce, now)

    def signed_time(self, method: str, proof: str) -> str | None:
        """Returns the server's time, signed for a caller whose clock differs; None if the caller lacks the token."""
        words = proof.split(" ")
        stamp, nonce, macs = words[0], "".join(words[1:2]), words[2 : 2 + _MAX_MACS]
        here = f"{self._clock():.3f}"
        for token in self._tokens().values:
            right = _mac(token, method, stamp, nonce).encode()
            if any(hmac.compare_digest(mac.encode(), right) for mac in macs):
                return f"{here} {_mac_of_time(token, method, here, nonce).decode()}"
        return None

    def _remember(self, nonce: str, now: float) -> str | None:
        with self._lock:
            while self._seen:
                oldest = next(iter(self._seen))
                if self._seen[oldest] >= now:
                    break
                del self._seen[oldest]
            if nonce in self._seen:
                return "the proof was used before"
            if len(self._seen) >= _MAX_REMEMBERED:
                return "too many calls in a short time"
            # Twice the maximum difference, because the caller's clock may be ahead by that difference.
            self._seen[nonce] = now + 2 * MAX_SKEW_S
            return None
