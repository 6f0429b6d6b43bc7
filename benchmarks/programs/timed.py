"""The measured loop of the programs that run without a session."""

import argparse
import json
import resource
import time


def arguments(description):
    """Parses the flags of a program that takes a step of LeNet."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--forward", action="store_true", help="the loss alone, without gradients")
    parser.add_argument("--batch", type=int, default=100, help="examples of a step")
    parser.add_argument("--gpu", action="store_true", help="all on the first GPU")
    return parser.parse_args()


def report_steps(step, seconds):
    """Calls ``step`` ten times to warm up, then for ``seconds``; prints what a step took as one JSON line."""
    for _ in range(10):
        step()
    times, before = [], resource.getrusage(resource.RUSAGE_SELF)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "rate": len(times) / sum(times),
        "user": (after.ru_utime - before.ru_utime) / len(times),
        "system": (after.ru_stime - before.ru_stime) / len(times),
    }
    print(json.dumps(found), flush=True)
