"""What the two programs of quality.py train alike: first values, batches, and how good the values are."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

HIDDEN, CLASSES, BATCH, RATE = 64, 10, 100, 1e-3


def parse(program: str) -> argparse.Namespace:
    """What the command line of a task says."""
    parser = argparse.ArgumentParser(description=program)
    parser.add_argument("--data", required=True, help="a file with images, labels, test_images and test_labels")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--updates", type=int, required=True, help="computed by the worker, whatever becomes of them")
    parser.add_argument("--rate", type=float, required=True, help="updates per second at most")
    parser.add_argument("--gate", type=int, required=True, help="updates after which to wait for a line of the input")
    parser.add_argument("--keep", default="", help="what there is against a loss")
    parser.add_argument("--every", type=int, default=0, help="updates between two checkpoints, or copies by the chief")
    parser.add_argument("--folder", default="", help="for checkpoints and states")
    return parser.parse_args()


class Digits:
    """Batches and first values of a seed."""

    def __init__(self, path: str, seed: int) -> None:
        with np.load(path) as data:
            self.images, self.labels = data["images"], data["labels"]
            self.test_images, self.test_labels = data["test_images"], data["test_labels"]
        self._random = np.random.default_rng(seed)

    def first_values(self) -> list[Array]:
        """Two layers, each with its weights and its bias."""
        values: list[Array] = []
        for rows, columns in ((self.images.shape[1], HIDDEN), (HIDDEN, CLASSES)):
            values.append((self._random.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32))
            values.append(np.zeros(columns, np.float32))
        return values

    def batch(self) -> tuple[Array, Array]:
        """The next images with their labels."""
        chosen = self._random.integers(0, len(self.images), BATCH)
        return self.images[chosen], self.labels[chosen]

    def loss(self, values: Sequence[Array]) -> float:
        """Mean cross entropy of the test digits."""
        weights, bias, top, top_bias = values
        logits = np.maximum(self.test_images @ weights + bias, 0) @ top + top_bias
        logits = logits - logits.max(1, keepdims=True)
        chosen = logits[np.arange(len(logits)), self.test_labels]
        return float(np.mean(np.log(np.exp(logits).sum(1)) - chosen))


class Pace:
    """When a step may begin: no earlier than a rate allows, so that seconds between saves are updates, too; and at an
    update that quality.py names, as it is about to kill a task."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._between_s = 1 / args.rate
        self._gate, self._updates = args.gate, args.updates
        self._next = 0.0
        self._never = threading.Event()

    def steps(self) -> Iterator[int]:
        """The numbers of all steps, from 1."""
        for step in range(1, self._updates + 1):
            self._never.wait(max(0.0, self._next - time.monotonic()))
            self._next = max(time.monotonic(), self._next) + self._between_s
            yield step
            if step % self._gate == 0 and step < self._updates:
                sys.stdin.readline()


def say(done: int, loss: float) -> None:
    """What quality.py reads."""
    print(f"at {done} loss {loss:.5f}", flush=True)
