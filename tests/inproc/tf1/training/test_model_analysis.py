"""Parameters and floating-point operations of a graph; the counts equal TensorFlow 1.15's for the same graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater import tf

PARAMETERS = """\
node name | # parameters
_TFProfRoot (--/63.55k params)
  b (32, 32/32 params)
  fc (--/62.72k params)
    fc/w (6272x10, 62.72k/62.72k params)
  w (5x5x1x32, 800/800 params)
"""


def network() -> Any:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [10, 28, 28, 1], name="x")
        w = tf.get_variable("w", [5, 5, 1, 32])
        b = tf.get_variable("b", [32])
        y = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME") + b), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        with tf.variable_scope("fc"):
            logits = tf.matmul(tf.reshape(y, [10, -1]), tf.get_variable("w", [14 * 14 * 32, 10]))
        tf.get_variable("moving", [7], trainable=False)
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(logits))
    return graph


def test_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    analyzer = tf.contrib.tfprof.model_analyzer
    found = analyzer.print_model_analysis(network(), tfprof_options=analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS)
    assert found.total_parameters == 63552
    assert [child.name for child in found.children] == ["b", "fc", "w"]
    assert capsys.readouterr().out.strip() == PARAMETERS.strip()


def test_operations_on_floats(tmp_path: Path) -> None:
    analyzer = tf.contrib.tfprof.model_analyzer
    path = tmp_path / "counts.txt"
    options = {**analyzer.FLOAT_OPS_OPTIONS, "output": f"file:outfile={path}"}
    found = analyzer.print_model_analysis(network(), tfprof_options=options)
    counts = {child.name: child.float_ops for child in found.children}
    assert counts["Conv2D"] == counts["gradients/Conv2D_grad/Vjp"] == 12_544_000
    assert counts["fc/MatMul"] == 1_254_400
    assert counts["gradients/fc/MatMul_grad/Vjp"] == 2 * 1_254_400
    assert (counts["MaxPool"], counts["Mean"]) == (250_880, 100)
    assert found.total_float_ops == sum(child.total_float_ops for child in found.children)
    assert path.read_text().startswith(
        "node name | # float_ops\n_TFProfRoot (--/29.23m flops)\n  Conv2D (12.54m/12.54m"
    )


def test_names_choose(capsys: pytest.CaptureFixture[str]) -> None:
    analyzer = tf.contrib.tfprof.model_analyzer
    options = {**analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, "output": "none", "order_by": "params"}
    graph = network()
    assert analyzer.print_model_analysis(graph, tfprof_options=options).children[0].name == "fc"
    hidden = analyzer.print_model_analysis(graph, tfprof_options={**options, "hide_name_regexes": ["fc.*"]})
    assert hidden.total_parameters == 832
    large = analyzer.print_model_analysis(graph, tfprof_options={**options, "min_params": 100})
    assert large.total_parameters == 63520
    assert not capsys.readouterr().out
    for wrong in ({"select": ["minutes"]}, {"output": "timeline"}):
        with pytest.raises(ValueError, match=r"must be|may name"):
            analyzer.print_model_analysis(graph, tfprof_options={**options, **wrong})
    with pytest.raises(ValueError, match="tfprof_cmd"):
        analyzer.print_model_analysis(graph, tfprof_cmd="code")
