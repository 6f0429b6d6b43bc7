"""A task that only serves ends when it gets SIGTERM, whichever of its threads receives the signal."""

from __future__ import annotations

import sys

from tests.support.processes import processes

#: Serves nothing. SIGTERM is delivered to a thread other than the main one, as the kernel may do when a stopped process
#: gets the signal.
PROGRAM = """
import signal
import threading

from headwater.cluster.task.ending import Ending

def tell():
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        threading.Event().wait(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    threading.Event().wait()

threading.Thread(target=tell, daemon=True).start()
Ending().wait()
print("ends", flush=True)
"""


def test_a_signal_that_another_thread_takes_ends_a_task() -> None:
    with processes() as cluster:
        assert "ends" in cluster.run(sys.executable, "-c", PROGRAM).succeeds()
