#!/bin/sh
# Common guess: optimizations of tf.data change only the speed of a pipeline. With map(...).batch(4).ignore_errors(), an
#   element that fails is skipped, and the elements after it form the next batch.
# Fact: map and batch are fused by default. In the fused operation a failure takes a place in its batch, and the whole
#   batch fails, with valid elements before and after the failure. Without the fusion, the elements before the failure are
#   dropped, and a batch begins directly after it. So an option for speed determines which elements a model is trained on.
# Version: tensorflow 2.21.0 (1.15.5 has the same default).
# Source: map_and_batch_fusion is among the default optimizations in
#   tensorflow/core/data/dataset_utils.cc; measured by the program below.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.21.0
cat > "$folder/program.py" <<'EOF'
import tensorflow as tf


def checked(number):
    tf.debugging.assert_none_equal(number, tf.constant(1, tf.int64))
    return number


def batches(fusion):
    options = tf.data.Options()
    if fusion is not None:
        options.experimental_optimization.map_and_batch_fusion = fusion
    dataset = tf.data.Dataset.range(8).map(checked).batch(4).ignore_errors()
    return [batch.numpy().tolist() for batch in dataset.with_options(options)]


print("tensorflow", tf.__version__)
print("numbers from 0 to 7, of which 1 fails, in batches of 4:")
results = {"default": batches(None), "with fusion": batches(True), "without fusion": batches(False)}
for name, found in results.items():
    print(f"{name}: {found}")
fused = [[4, 5, 6, 7]]
assert list(results.values()) == [fused, fused, [[2, 3, 4, 5], [6, 7]]]
EOF
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
