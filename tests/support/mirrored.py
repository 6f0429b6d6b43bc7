"""Mirrored workers as threads of one process, connected by channels in memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.keras.collectives.collective import Collective
from headwater.keras.mirrored.model import MirroredModel
from headwater.keras.mirrored.replicas import GroupReplicas


def collectives(count: int, pair: Callable[[], tuple[Channel, Channel]] = memory_pair) -> list[Collective]:
    """Returns the collective of each of ``count`` workers of a group."""
    channels: list[dict[int, Channel]] = [{} for _ in range(count)]
    for first, second in itertools.combinations(range(count), 2):
        channels[first][second], channels[second][first] = pair()
    names = [f"worker {rank} (here)" for rank in range(count)]
    return [Collective(rank, names, channels[rank]) for rank in range(count)]


def in_threads(bodies: list[Callable[[], Any]]) -> list[Any]:
    """Runs ``bodies`` at the same time, in threads; returns their results. Raises the first error, if any."""
    results: list[Any] = [None] * len(bodies)
    errors: dict[int, BaseException] = {}

    def run(index: int) -> None:
        try:
            results[index] = bodies[index]()
        except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
            errors[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors.values():
        raise error
    return results


def with_workers(count: int, body: Callable[[int, Callable[[Any], Any]], Any]) -> list[Any]:
    """Returns each worker's result of ``body(rank, mirror)``; ``mirror(model)`` mirrors a model and returns it."""
    groups = collectives(count)

    def run(rank: int) -> Any:
        group: Any = SimpleNamespace(collective=groups[rank], rank=rank, members=range(count))

        def mirror(model: Any) -> Any:
            MirroredModel(model, GroupReplicas(group)).patch_model()
            return model

        try:
            return body(rank, mirror)
        finally:
            groups[rank].close()

    return in_threads([lambda rank=rank: run(rank) for rank in range(count)])
