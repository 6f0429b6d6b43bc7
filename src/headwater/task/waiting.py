"""How long a ``ps`` waits before it looks around, and before it says for what it waits."""

from __future__ import annotations

from typing import Final

#: Between two looks at whether a worker that waits is still there, in seconds.
LOOK_S: Final = 0.5
#: Between two WAIT frames, in seconds.
SPEAK_S: Final = 4.0
#: How long a ``ps`` may say nothing while it should, in seconds, before a worker says so.
SILENCE_S: Final = 10.0
