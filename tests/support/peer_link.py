"""A link to another ``ps`` that does not exist, for tests of a single ``ps``."""

from __future__ import annotations

from headwater.cluster.transport.channel import Channel
from headwater.errors import UnavailableError


class PeerLink:
    """A link to a ``ps`` that can never be reached; see `headwater.state.sites.PeerServerLink`."""

    def reach(self, deadline_s: float | None = None) -> None:
        """Does nothing."""

    def open_channel_now(self) -> Channel:
        raise UnavailableError(None, None, "this ps does not exist")

    def release_channel(self, channel: Channel, usable: bool) -> None:
        assert not usable
        channel.close()

    def watch(self, channel: Channel) -> None:
        """Does nothing: a ``ps`` of a test is never stopped without closing its channels."""

    def is_lost(self) -> bool:
        return False
