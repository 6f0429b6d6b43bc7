"""The evaluator of an estimator whose chief keeps only the latest checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwater.tf1.compat import tf
from headwater.tf1.training.estimator.train_and_evaluate import Evaluator


def _inputs() -> tuple[dict[str, Any], Any]:
    return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[2.0], [4.0]])


def test_a_checkpoint_deleted_before_it_is_restored_is_replaced_by_the_latest(tmp_path: Path) -> None:
    columns = [tf.feature_column.numeric_column("x")]

    def estimator() -> Any:
        return tf.estimator.LinearRegressor(
            columns, str(tmp_path), config=tf.estimator.RunConfig(keep_checkpoint_max=1)
        )

    estimator().train(_inputs, steps=1)
    restored: list[str] = []

    def inputs() -> tuple[dict[str, Any], Any]:
        restored.append(Path(str(tf.train.latest_checkpoint(str(tmp_path)))).name)
        if len(restored) == 1:
            with tf.Graph().as_default():
                estimator().train(_inputs, steps=1)  # deletes the checkpoint that is about to be restored
        return _inputs()

    evaluator = Evaluator(estimator(), tf.estimator.EvalSpec(inputs, steps=1), max_steps=2)
    assert evaluator.evaluate()
    assert restored == ["model.ckpt-1", "model.ckpt-2"]
    assert evaluator.finished
