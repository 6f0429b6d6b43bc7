#!/bin/sh
# Common guess: the product of a dense symbolic Keras tensor and a number or a dense array is dense.
# Fact: it is marked sparse (KerasTensor.sparse is True), and so are tensors computed from it by element-wise functions. An
#   operand without an attribute "sparse" counts as sparse, because for a product one sparse operand is enough. The value of
#   the model's output is dense.
# Version: keras 3.15.1 with jax 0.10.2.
# Source: keras/src/ops/numpy.py, Multiply.compute_output_spec.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2
cat > "$folder/program.py" <<'EOF'
import jax
import keras
import numpy as np

inputs = keras.Input((3,))
tensors = {
    "inputs": inputs,
    "inputs + 2.0": inputs + 2.0,
    "inputs * inputs": inputs * inputs,
    "inputs * 2.0": inputs * 2.0,
    "inputs * np.ones(3)": inputs * np.ones(3, "float32"),
    "-(inputs * 2.0)": -(inputs * 2.0),
}
print("keras", keras.__version__)
for name, tensor in tensors.items():
    print(f"{name}: sparse={tensor.sparse}")
output = keras.Model(inputs, inputs * 2.0)(np.ones((2, 3), "float32"))
print("value of inputs * 2.0:", type(output).__name__)
assert [tensor.sparse for tensor in tensors.values()] == [False, False, False, True, True, True]
assert isinstance(output, jax.Array)
EOF
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py"
