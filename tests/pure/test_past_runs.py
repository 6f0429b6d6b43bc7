"""Stored results of `make bench`, and comparisons with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.past_runs import Figures, Run, compared, keep, machine_kind, newest

LINEAR, MLP = "linear, 1 ps + 1 worker", "mlp, 1 ps + 1 worker"


def _run(commit: str, rate: float, *, case: str = LINEAR, machine: str = "here", ratio: float | None = None) -> Run:
    figures = Figures(rate=rate, processor_us=1e6 / rate, ratio=ratio)
    return Run(commit=commit, machine=machine, date="2026-11-25", cases={case: figures})


def test_the_newest_run_with_the_case_on_the_same_kind_of_machine_is_found(tmp_path: Path) -> None:
    path = tmp_path / "past_runs.jsonl"
    assert newest(LINEAR, "here", path) is None
    runs = [_run("a1", 100), _run("b2", 200), _run("c3", 300, case=MLP), _run("d4", 400, machine="elsewhere")]
    for run in runs:
        keep(run, path)
    assert newest(LINEAR, "here", path) == runs[1]
    assert newest(MLP, "here", path) == runs[2]
    assert newest(LINEAR, "elsewhere", path) == runs[3]
    assert newest(MLP, "elsewhere", path) is None


def test_figures_are_compared_by_their_common_cases() -> None:
    now = Figures(rate=200, processor_us=50, ratio=6.0)
    before = Figures(rate=100, processor_us=100, ratio=4.0)
    run = Run(commit="a1", machine="here", date="2026-11-25", cases={LINEAR: before})
    said = "beside a1 (2026-11-25): 2.00 x its rate, 0.50 x its processor time, 1.50 x its ratio to the peer"
    assert compared(now, LINEAR, run) == said
    alone = Figures(rate=150, processor_us=0, ratio=None)
    assert compared(alone, LINEAR, run) == "beside a1 (2026-11-25): 1.50 x its rate"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "past_runs.jsonl"
    keep(_run("a1", 100), path)
    path.write_text('{"commit": "a0"}\n' + path.read_text())
    assert newest(LINEAR, "here", path) is not None
    with pytest.raises(ValueError, match=r"past_runs\.jsonl, line 1, is not a run of benchmarks: KeyError"):
        newest(MLP, "here", path)


def test_the_machine_kind_names_cores_and_versions() -> None:
    assert all(word in machine_kind() for word in ("cores", "Python 3.", "JAX 0."))
