#!/bin/sh
# Common guess: tf.print of an OrderedDict of tensors shows each value beside its key.
# Fact: the keys are shown in their order, but the values in the order of the sorted keys, so that values are shown
#   beside keys of others. A plain dict is shown correctly, because its keys are sorted for display.
# Version: tensorflow 2.21.0 (TensorFlow 1.15.5 behaves equally).
# Source: tensorflow/python/ops/logging_ops.py, print_v2: nest.flatten sorts the keys, pprint does not sort those of an
#   OrderedDict; measured by the program below.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.21.0
cat > "$folder/program.py" <<'EOF'
import sys
from collections import OrderedDict

import tensorflow as tf

metrics = OrderedDict([("loss", tf.constant(0.25)), ("accuracy", tf.constant(0.75))])
tf.print(metrics, output_stream=sys.stdout)
tf.print(dict(metrics), output_stream=sys.stdout)
EOF
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2>/dev/null > "$folder/output"
"$folder/venv/bin/pip" freeze 2>/dev/null | grep '^tensorflow=='
echo 'loss 0.25 and accuracy 0.75, as an OrderedDict and as a dict:'
cat "$folder/output"
grep -q "('loss', 0.75), ('accuracy', 0.25)" "$folder/output"
grep -q "'accuracy': 0.75, 'loss': 0.25" "$folder/output"
