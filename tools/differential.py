"""Draws programs of single operations, runs them on Headwater and on TensorFlow 1.15, and shows where they differ.

    python tools/differential.py --peer DIR/tf1/bin/python --count 2000 --seed 1

The peer is what ``setup_peer.sh`` of the shared benchmarks makes. Values are drawn among NaN, infinities, boundaries of
types and ordinary numbers; shapes may be empty; incoming gradients are partly 0. Each engine runs all programs in one
process. A program that differs is cut down to fewer elements as long as it still differs. The file must run on
Python 3.7 too: ``run`` is how it calls itself under both engines.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
VALUES = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 1e30, 300.0, 7.0]
WHOLE = [0, 1, -1, 2, -3, 7, 127, 255, 2**31 - 1, -(2**31)]
UNARY = [
    "abs",
    "negative",
    "square",
    "sign",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "floor",
    "ceil",
    "rint",
    "round",
    "lgamma",
    "digamma",
    "erf",
    "erfc",
    "nn.relu",
    "nn.relu6",
    "nn.elu",
    "nn.selu",
    "nn.softplus",
    "nn.softsign",
    "nn.softmax",
    "nn.log_softmax",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "div",
    "truediv",
    "floordiv",
    "mod",
    "floormod",
    "pow",
    "maximum",
    "minimum",
    "squared_difference",
    "div_no_nan",
    "atan2",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
]
REDUCTIONS = [
    "reduce_sum",
    "reduce_mean",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_logsumexp",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "math.reduce_euclidean_norm",
    "math.reduce_std",
    "math.reduce_variance",
]
OF_FLOATS = {*UNARY[4:], "atan2", "div_no_nan", "reduce_logsumexp", *REDUCTIONS[-3:]} - {"round"}


def drawn(number):
    """The ``number``-th program: function, inputs as type and nested values, and whether its gradient is asked for."""
    dice = random.Random(number)
    kind = dice.choice(("unary", "binary", "reduction", "cast"))
    name = dice.choice({"unary": UNARY, "binary": BINARY, "reduction": REDUCTIONS, "cast": ["cast"]}[kind])
    dtype = dice.choice(FLOATS if name in OF_FLOATS or kind == "cast" else FLOATS + INTEGERS)
    size = dice.choice((0, 1, 2, 3, 5))
    pool = VALUES if dtype in FLOATS else WHOLE
    inputs = [[dtype, [dice.choice(pool) for _ in range(size)]] for _ in range(2 if kind == "binary" else 1)]
    target = dice.choice(("int8", "uint8", "int16", "uint16", "int32", "int64", "bool", "float64"))
    gradient = dtype in FLOATS and kind != "cast" and dice.random() < 0.5
    return {"name": name, "inputs": inputs, "target": target, "gradient": gradient}


def _outcome(tf, program):
    function = tf
    for part in program["name"].split("."):
        function = getattr(function, part)
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            given = [tf.placeholder_with_default(tf.constant(v, t, [len(v)]), [None]) for t, v in program["inputs"]]
            result = function(given[0], program["target"]) if program["name"] == "cast" else function(*given)
            if program["gradient"]:
                incoming = tf.cast(tf.range(tf.size(result)) % 2, result.dtype)
                found = tf.gradients(result, given, grad_ys=tf.reshape(incoming, tf.shape(result)))
                result = [each for each in found if each is not None]
            values = session.run(result)
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            return type(error).__name__
    return [[str(v.dtype), v.tolist()] for v in (values if isinstance(values, list) else [values])]


def run(path):
    """Prints the outcome of each program of a file, a line each."""
    import tensorflow as tf  # noqa: PLC0415  one engine or the other

    for line in Path(path).read_text().splitlines():
        print("OUTCOME " + json.dumps(_outcome(tf, json.loads(line))), flush=True)


def outcomes(command, programs):
    """What an engine, started by ``command``, gives for programs; "crash" where its process ends, as TensorFlow's does
    for the lowest integer divided by -1. The rest then runs in another process."""
    found = []
    while len(found) < len(programs):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "programs"
            path.write_text("".join(json.dumps(program) + "\n" for program in programs[len(found) :]))
            done = subprocess.run([*command, __file__, "run", str(path)], capture_output=True, check=False)
        lines = [line for line in done.stdout.decode().splitlines() if line.startswith("OUTCOME ")]
        if not lines and done.returncode > 0:
            raise SystemExit(f"{command[0]} ends with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
        found += [json.loads(line[8:]) for line in lines]
        if len(found) < len(programs):
            found.append("crash")
    return found


def same(mine, other):
    """Whether two outcomes agree, floats but for rounding."""
    if isinstance(mine, list) and isinstance(other, list):
        return len(mine) == len(other) and all(same(a, b) for a, b in zip(mine, other))  # noqa: B905 - Python 3.7
    if isinstance(mine, float) and isinstance(other, float):
        both_nan = math.isnan(mine) and math.isnan(other)
        return both_nan or math.isclose(mine, other, rel_tol=1e-4, abs_tol=1e-6)
    return mine == other


def smaller(program):
    """The program without one of its elements, for each element."""
    size = len(program["inputs"][0][1])
    for gone in range(size if size > 1 else 0):
        inputs = [[dtype, values[:gone] + values[gone + 1 :]] for dtype, values in program["inputs"]]
        yield dict(program, inputs=inputs)


def shrunk(program, engines):
    """The smallest program found that still differs, and both outcomes."""
    while True:
        candidates = [program, *smaller(program)]
        found = list(zip(candidates, *(outcomes(engine, candidates) for engine in engines)))  # noqa: B905
        differing = [each for each in found[1:] if not same(each[1], each[2])]
        if not differing:
            return found[0]
        program = differing[0][0]


def main():
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", required=True, help="an interpreter that has TensorFlow 1.15")
    parser.add_argument("--count", type=int, default=2000, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--most", type=int, default=20, help="differences that are cut down and shown in full")
    options = parser.parse_args()
    engines = [[sys.executable, "-m", "headwater", "exec", "--dialect", "1"], [options.peer]]
    programs = [drawn(options.seed + number) for number in range(options.count)]
    ours, theirs = (outcomes(engine, programs) for engine in engines)
    differing = [p for p, mine, other in zip(programs, ours, theirs) if not same(mine, other)]  # noqa: B905
    causes = {}
    for program in differing:
        causes.setdefault((program["name"], program["gradient"]), []).append(program)
    print(f"{len(programs)} programs, {len(differing)} differ, in {len(causes)} groups")
    for (name, gradient), group in sorted(causes.items()):
        print(f"{len(group):6} {name}{' (gradient)' if gradient else ''}")
    for group in list(causes.values())[: options.most]:
        program, mine, other = shrunk(group[0], engines)
        print(f"{json.dumps(program)}\n    Headwater  {json.dumps(mine)}\n    TensorFlow {json.dumps(other)}")


if __name__ == "__main__":
    main()
