#!/bin/sh
# Common guess: a tf.function, or a session's step, that runs tf.io.read_file reads the file in each call.
# Fact: if the name of the file is a constant, the runtime evaluates the read once, as a constant, and later calls return
#   the old contents after the file has changed. With the name as an argument, each call reads the file; sessions also
#   do with OptimizerOptions.L0. Disabling Grappler (disable_meta_optimizer) changes nothing.
# Version: tensorflow 2.21.0 (sessions of TensorFlow 1.15.5 behave equally).
# Source: ReadFile is registered without SetIsStateful in tensorflow/core/ops/io_ops.cc, so the runtime's constant folding
#   (OptimizerOptions.L1, the default) may evaluate it; measured by the program below.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.21.0
cat > "$folder/program.py" <<'EOF'
import pathlib
import sys

import tensorflow as tf

path = pathlib.Path(sys.argv[1])
v1 = tf.compat.v1


@tf.function
def by_constant():
    return tf.io.read_file(str(path))


@tf.function
def by_argument(name):
    return tf.io.read_file(name)


def found(read):
    texts = []
    for text in ("first", "second"):
        path.write_text(text)
        texts.append(read().decode())
    return texts


def in_session(level):
    config = v1.ConfigProto()
    config.graph_options.optimizer_options.opt_level = level
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        contents = tf.io.read_file(str(path))
        return found(lambda: session.run(contents))


print("tensorflow", tf.__version__)
print("the file contains 'first', then 'second'; results of two reads:")
results = {
    "function, name is a constant": found(lambda: by_constant().numpy()),
    "function, name is an argument": found(lambda: by_argument(tf.constant(str(path))).numpy()),
    "session": in_session(v1.OptimizerOptions.L1),
    "session with OptimizerOptions.L0": in_session(v1.OptimizerOptions.L0),
}
for name, texts in results.items():
    print(f"{name}: {texts}")
assert list(results.values()) == [["first", "first"], ["first", "second"]] * 2
EOF
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" "$folder/file" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
