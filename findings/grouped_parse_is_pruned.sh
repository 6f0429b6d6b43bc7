#!/bin/sh
# Common guess: session.run(tf.group(*tf.io.parse_example(records, features).values())) parses the records and discards
#   the results, so it times the parser alone.
# Fact: TensorFlow's graph optimizer (Grappler) removes stateless operations that only a group depends on. The parser does
#   not run: the placeholder and a NoOp are all that executes, and a benchmark of this form measures nothing. Fetching the
#   operation itself, or a value, executes it.
# Version: tensorflow 2.21.0 (TensorFlow 1.15.5 behaves equally).
# Source: https://www.tensorflow.org/guide/graph_optimization (dependency optimizer); measured by the program below.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.21.0
cat > "$folder/program.py" <<'EOF'
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
numbers = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
record = tf.train.Example(features=tf.train.Features(feature={"x": numbers})).SerializeToString()
records = tf.placeholder(tf.string, [None])
parsed = tf.parse_example(records, {"x": tf.FixedLenFeature([2], tf.float32)})


def executed(fetch):
    trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(fetch, {records: [record]}, options=trace, run_metadata=metadata)
    return sorted(node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats)


runs = {name: executed(fetch) for name, fetch in [
    ("the value", parsed["x"]), ("the operation", parsed["x"].op), ("a group", tf.group(*parsed.values()))]}
print("tensorflow", tf.__version__)
for name, nodes in runs.items():
    print(f"fetching {name} executes {nodes}")
parses = {name: any("ParseExampleV2" in node for node in nodes) for name, nodes in runs.items()}
assert parses == {"the value": True, "the operation": True, "a group": False}, parses
EOF
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 "$folder/venv/bin/python" "$folder/program.py" 2>"$folder/log" || {
  tail -5 "$folder/log"
  exit 1
}
