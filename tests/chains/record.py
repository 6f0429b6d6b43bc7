"""Records outcomes of chains: ``python -m tests.chains.record PYTHON [CHAIN ...]``, with TensorFlow 1.15's PYTHON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes import bound

FOLDER = Path(__file__).resolve().parent
PROGRAMS = FOLDER / "programs"
EXPECTED = FOLDER / "expected.json"
CHAINS = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "parts")
DISTRIBUTED = ("clusters", "deep_fm", "elastic_averaging", "images")


def outcome(chain: str, *command: str | Path) -> dict[str, Any]:
    """Returns the losses and predictions that a chain prints; ``command`` precedes the program's path.

    A distributed chain runs as a parameter server and two workers, which read ``TF_CONFIG``; the first worker prints.
    """
    line = [*command, PROGRAMS / f"{chain}.py"]
    if chain not in DISTRIBUTED:
        done = subprocess.run(line, text=True, capture_output=True, check=False, env=_environment())
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])
    with ExitStack() as kept:
        places = [kept.enter_context(bound()) for _ in range(3)]
        hosts = [f"127.0.0.1:{place.getsockname()[1]}" for place in places]
        cluster = {"ps": hosts[:1], "worker": hosts[1:]}
        server, *workers = [
            kept.enter_context(_running(line, {"cluster": cluster, "task": {"type": job, "index": index}}))
            for job, index in (("ps", 0), ("worker", 0), ("worker", 1))
        ]
        with ThreadPoolExecutor() as pool:
            ends = {pool.submit(process.communicate): process for process in (server, *workers)}
            for end in as_completed(ends):
                failed = ends[end].returncode != 0
                if failed or all(worker.poll() == 0 for worker in workers):
                    _kill(server, *workers)
                    assert not failed, end.result()[1]
                    break
            return json.loads(next(end for end, of in ends.items() if of is workers[0]).result()[0].splitlines()[-1])


def _environment(task: dict[str, object] | None = None) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(PROGRAMS)} | ({} if task is None else {"TF_CONFIG": json.dumps(task)})


@contextmanager
def _running(line: list[str | Path], task: dict[str, object]) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(task))
    try:
        yield process
    finally:
        _kill(process)


def _kill(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()


def main(python: str, *chains: str) -> None:
    expected: dict[str, Any] = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for chain in chains or CHAINS:
        expected[chain] = outcome(chain, python, "-W", "ignore")
    lines = [f"{json.dumps(chain)}: {json.dumps(found)}" for chain, found in sorted(expected.items())]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
