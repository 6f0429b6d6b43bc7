#!/bin/sh
# Common guess: a gradient that is NaN or infinite makes the weight NaN, whatever the optimizer, so that a check of the
#   weights (for example tf.debugging.check_numerics, or NanTensorHook on the loss) finds it; and dense and sparse updates
#   of one optimizer treat it alike.
# Fact: TensorFlow's dense FTRL update on a CPU sets such a weight to 0 and keeps it at 0 from then on, because its state is
#   NaN and the comparison with the threshold is false. The sparse update of the same optimizer, Adagrad, and the Ftrl
#   optimizer of Keras give NaN.
# Version: tensorflow 2.21.0 (also 1.15.5).
# Source: tensorflow/core/kernels/training_ops.cc, ApplyFtrl and SparseApplyFtrl.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow-cpu==2.21.0
cat > "$folder/program.py" <<'EOF'
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def weights(optimizer, sparse):
    """Returns two weights after a step with the gradients (NaN, 1), and after two more steps with (1, 1)."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("weights", initializer=[1.0, 2.0])
        gradient = tf1.placeholder(tf.float32, [2])
        step = optimizer.apply_gradients(
            [(tf.IndexedSlices(gradient, tf.constant([0, 1])) if sparse else gradient, variable)]
        )
        session.run(tf1.global_variables_initializer())
        session.run(step, {gradient: [np.nan, 1.0]})
        first = session.run(variable)
        for _ in range(2):
            session.run(step, {gradient: [1.0, 1.0]})
        return first.tolist(), session.run(variable).tolist()


print("tensorflow", tf.__version__)
for name, make in (("Ftrl", tf1.train.FtrlOptimizer), ("Adagrad", tf1.train.AdagradOptimizer)):
    for sparse in (False, True):
        first, last = weights(make(0.1), sparse)
        print(f"{name}, {'sparse' if sparse else 'dense'}: after the NaN {first}, two steps later {last}")
        hidden = name == "Ftrl" and not sparse
        assert (first[0] == last[0] == 0.0) if hidden else (np.isnan(first[0]) and np.isnan(last[0]))
EOF
"$folder/venv/bin/python" "$folder/program.py" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
