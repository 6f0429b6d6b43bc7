"""How long a process of a group may be silent."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidArgumentError
from headwater.keras.collectives.pulse import heartbeat_s


@pytest.mark.parametrize(("text", "found"), [("", 10), ("3.5", 3.5)])
def test_the_environment_says_how_long(text: str, found: float) -> None:
    assert heartbeat_s({"HEADWATER_HEARTBEAT_S": text}) == found


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan"])
def test_a_malformed_heartbeat_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="HEADWATER_HEARTBEAT_S"):
        heartbeat_s({"HEADWATER_HEARTBEAT_S": text})
