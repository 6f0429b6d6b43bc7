"""The way to another ``ps``, for tests of one of them."""

from __future__ import annotations

from headwater.cluster.transport.channel import Channel
from headwater.errors import UnavailableError


class PeerLink:
    """Where nobody is."""

    def reach(self, deadline_s: float | None = None) -> None:
        """Nothing is looked after."""

    def take_now(self) -> Channel:
        raise UnavailableError(None, None, "nobody is there")

    def give_back(self, channel: Channel, usable: bool) -> None:
        assert not usable
        channel.close()

    def watch(self, channel: Channel) -> None:
        """A ``ps`` of a test is never only stopped."""

    def lost(self) -> bool:
        return False
