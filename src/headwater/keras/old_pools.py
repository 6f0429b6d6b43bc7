"""``tf.keras.experimental.terminate_keras_multiprocessing_pools``."""

from __future__ import annotations

import threading
from multiprocessing.connection import wait
from typing import Any

from headwater.keras.internals import data_pools


def terminate_keras_multiprocessing_pools(grace_period: float = 0.1, use_sigkill: bool = False) -> list[str]:
    """Ends the pools of processes and threads that load data for Keras.

    Args:
      grace_period: time to wait for each pool to end, in seconds.
      use_sigkill: kill its remaining processes with SIGKILL, and wait once more.

    Returns:
      A sentence for each process that was killed, or that is still running.
    """
    messages: list[str] = []
    for pool in list(data_pools):
        processes: list[Any] = [each for each in pool._pool if hasattr(each, "kill")]  # pools of threads have none
        # In a thread, because `terminate` waits for its processes without a timeout.
        ending = threading.Thread(target=pool.terminate, daemon=True)
        ending.start()
        ending.join(grace_period)
        # `is_alive` returns True for a process if another thread or the program has already collected its exit code.
        alive = [process for process in processes if not wait([process.sentinel], timeout=0)]
        if use_sigkill:
            for process in alive:
                process.kill()
                messages.append(f"{process.name} did not end within {grace_period} s and was killed")
            ending.join(grace_period)
        else:
            messages += [f"{process.name} with the id {process.pid} is still running" for process in alive]
    return messages
