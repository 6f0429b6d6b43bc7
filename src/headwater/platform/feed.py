"""Notifies coroutines of changes in the store; one thread watches for all of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from headwater.platform.store import Store

# Maximum time until the thread notices a shutdown, in seconds.
_SHUTDOWN_CHECK_S = 0.5


class StoreChanges:
    """Changes of a store, for coroutines."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listening: set[asyncio.Event] = set()
        self._closing = False

    @property
    def closing(self) -> bool:
        """Whether the server is shutting down, so that no request should continue to wait."""
        return self._closing

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Watches the store while the context is active."""
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._watch, args=(loop,), name="headwater-feed", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.close()
            await asyncio.to_thread(thread.join)

    def close(self) -> None:
        """Wakes all waiting coroutines, permanently."""
        self._closing = True
        self._notify_listeners()

    async def wait(self, changed: asyncio.Event, timeout_s: float) -> None:
        """Waits for the next change, or for ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                await changed.wait()
        except TimeoutError:
            return
        finally:
            changed.clear()

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[asyncio.Event]:
        """Yields an event, which each change sets, for `wait`."""
        changed = asyncio.Event()
        self._listening.add(changed)
        try:
            yield changed
        finally:
            self._listening.discard(changed)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        seen = -1
        while not self._closing:
            latest = self._store.wait_change(seen, _SHUTDOWN_CHECK_S)
            if latest != seen and not loop.is_closed():
                # asyncio events are not thread-safe.
                loop.call_soon_threadsafe(self._notify_listeners)
            seen = latest

    def _notify_listeners(self) -> None:
        for changed in tuple(self._listening):
            changed.set()
