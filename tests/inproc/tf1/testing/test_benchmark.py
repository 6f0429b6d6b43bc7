"""`tf.test.Benchmark`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater import tf
from headwater.tf1.testing.benchmark import Benchmark


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Benchmark, "registry", [])


def test_steps_are_timed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEST_REPORT_FILE_PREFIX", f"{tmp_path}/report-")
    results: list[Any] = []

    class Products(tf.test.Benchmark):
        def benchmarkSquare(self) -> None:
            with tf.Graph().as_default(), tf.Session(config=tf.test.benchmark_config()) as session:
                x = tf.placeholder(tf.float32)
                results.append(
                    self.run_op_benchmark(
                        session, x * x, {x: 3.0}, min_iters=3, mbs=2.0, extras={"size": 1}, store_trace=True
                    )
                )
                results.append(self.evaluate(tf.constant(4) * 2))

        def benchmarkNothing(self) -> None:
            self.report_benchmark(name="nothing", metrics=[{"name": "error", "value": 0.5}])

    tf.test.main(["program", "--benchmarks=Products.benchmarkS"])
    values, product = results
    assert product == 8
    assert values["iters"] == 3
    assert values["throughput"] == pytest.approx(2.0 / values["wall_time"])
    assert json.loads(values["extras"]["full_trace_chrome_format"])["traceEvents"]
    written = json.loads((tmp_path / "report-Products.benchmarkSquare").read_text())
    assert written["name"] == "Products.benchmarkSquare"
    assert written["wall_time"] == values["wall_time"]
    assert written["extras"] == {"size": 1}
    assert "Products.nothing" not in capsys.readouterr().out
    tf.test.main(["program", "--benchmarks=all"])
    assert len(results) == 4
    assert json.loads((tmp_path / "report-Products.nothing").read_text())["metrics"] == [
        {"name": "error", "value": 0.5}
    ]


def test_a_report_needs_a_name() -> None:
    class Unnamed(tf.test.Benchmark):
        pass

    with pytest.raises(ValueError, match="give report_benchmark a name"):
        Unnamed().report_benchmark(iters=1)
