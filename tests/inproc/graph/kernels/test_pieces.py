"""Kernels that divide their work into pieces."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from headwater.graph.kernels import pieces
from headwater.graph.kernels.pieces import compute_pieces, limit_threads, pieces_of
from headwater.graph.kernels.registry import gradient_kernel_of, kernel_of

draw = np.random.default_rng(0)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores the limit of threads after a test."""
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setattr(pieces, "_limit", None)


def _gradients(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> list[bytes]:
    compute, pull = kernel_of(op), gradient_kernel_of(op)
    assert compute is not None
    assert pull is not None
    value = compute(*inputs, **attrs)
    more = [(value,)] if op == "MaxPool" else []
    found = pull(inputs, (np.cos(value),), (True,) * len(inputs), attrs, *more)
    return [np.asarray(each).tobytes() for each in (value, *found)]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool"])
def test_results_do_not_depend_on_the_number_of_threads(op: str, step: int) -> None:
    attrs: dict[str, Any] = {"strides": [1, step, step, 1], "padding": "SAME"}
    inputs: tuple[Any, ...] = (draw.standard_normal((9, 40, 40, 16), np.float32),)
    if op.endswith("Pool"):
        attrs["ksize"] = [1, 3, 3, 1]
    else:
        inputs += (draw.standard_normal((3, 3, 16, 8 if op == "Conv2D" else 1), np.float32),)
    limit_threads(1)
    expected = _gradients(op, inputs, attrs)
    for count in (2, 3, 8):
        limit_threads(count)
        assert _gradients(op, inputs, attrs) == expected


@pytest.mark.usefixtures("threads")
def test_each_piece_is_computed_once_and_errors_are_raised() -> None:
    limit_threads(4)
    done: list[int] = []
    compute_pieces(done.append, range(100))
    assert sorted(done) == list(range(100))

    def fail(piece: int) -> None:
        if piece == 7:
            raise MemoryError("too large")

    with pytest.raises(MemoryError, match="too large"):
        compute_pieces(fail, range(100))


@pytest.mark.usefixtures("threads")
def test_pieces_are_computed_while_helpers_are_busy() -> None:
    """All helper threads wait for the calling thread, which computes further pieces alone."""
    limit_threads(2)
    for _ in range(3):
        inner: list[int] = []
        outer: list[int] = []
        lock = threading.Lock()

        def compute(piece: int, inner: list[int] = inner, outer: list[int] = outer, lock: Any = lock) -> None:
            with lock:
                compute_pieces(inner.append, range(3))
            outer.append(piece)

        compute_pieces(compute, range(40))
        assert len(inner) == 120
        assert sorted(outer) == list(range(40))


def test_pieces_cover_all_rows() -> None:
    for count, nbytes, least in ((10, 1 << 17, 1), (1, 1 << 30, 1), (0, 1, 1), (1000, 1, 7), (10, 1 << 30, 4)):
        rows = [row for piece in pieces_of(count, nbytes, least) for row in range(count)[piece]]
        assert rows == list(range(count))
