"""When models are exported, and where."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.tensorboard_protos import summary_pb2
from headwater.tf1.training.estimator import export
from headwater.tf1.training.estimator.export import BestExporter, timestamped
from headwater.tf1.training.file_writer import FileWriter


class Trained:
    """An estimator whose evaluations are on disk, and which records its exports."""

    def __init__(self, folder: Path) -> None:
        self.model_dir = str(folder)
        self.exported: list[str | None] = []

    def evaluated(self, loss: float, step: int) -> dict[str, Any]:
        with FileWriter(f"{self.model_dir}/eval") as writer:
            value = summary_pb2.Summary.Value(tag="loss", simple_value=loss)
            writer.add_summary(summary_pb2.Summary(value=[value]), step)
        return {"loss": loss, "global_step": step}

    def export_saved_model(self, base: str, *rest: Any) -> None:
        Path(base).mkdir(parents=True, exist_ok=True)
        self.exported.append(rest[-1])


def offered(exporter: BestExporter, estimator: Any, loss: float, step: int) -> bool:
    """Whether a model of this loss is exported."""
    before = len(estimator.exported)
    result = estimator.evaluated(loss, step)
    exporter.export(estimator, f"{estimator.model_dir}/export", f"model-{step}", result, False)
    return len(estimator.exported) > before


def test_the_best_of_earlier_processes_counts(tmp_path: Path) -> None:
    estimator = Trained(tmp_path)
    first = BestExporter()
    assert offered(first, estimator, 0.5, 10)
    assert not offered(first, estimator, 0.75, 20)
    second = BestExporter()
    assert not offered(second, estimator, 0.625, 30)
    assert offered(second, estimator, 0.25, 40)


def test_a_damaged_event_is_named_and_those_before_it_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    estimator = Trained(tmp_path)
    estimator.evaluated(0.5, 10)
    (path,) = (tmp_path / "eval").iterdir()
    path.write_bytes(path.read_bytes() + b"cut off behind its header")
    assert not offered(BestExporter(), estimator, 0.75, 20)
    assert str(path) in caplog.text


def test_the_newest_export_has_the_highest_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(s=1_700_003_600.5)
    monkeypatch.setattr(export.time, "time", lambda: now.s)
    made: list[str] = []
    for step in (1, -3600, 0, 7200):  # the clock is set back by an hour, and on again
        now.s += step
        made.append(timestamped(str(tmp_path)))
        Path(made[-1]).mkdir()
    assert made == sorted(made)
    assert len(set(made)) == 4
