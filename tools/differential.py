"""Draws small programs, runs them on Headwater and on TensorFlow 1.15, and shows where they differ.

    python tools/differential.py --peer DIR/tf1/bin/python --count 2000 --seed 1

The peer is what ``setup_peer.sh`` of the shared benchmarks makes. `random_programs` draws operations and their
gradients, losses, optimizers, metrics, feature columns and datasets, with NaN, infinities, boundaries of types, empty
and unknown shapes, and wrong arguments, whose outcome is the class of an error; incoming gradients are partly 0. Each
engine runs all programs in one process. ``--shrink`` simplifies a program while it still differs. The file must run
on Python 3.7 too: ``run`` is how it calls itself under both engines.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import random_programs
import random_training
from random_programs import drawn

HELPERS = {name: getattr(random_training, name) for name in ("optimize", "measure", "initialised", "elements")}


def _outcome(tf, program):
    names = {"tf": tf, "np": np, **HELPERS}
    # Constant folding and arithmetic rewrites of TensorFlow change results, such as NaN * 0.
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        try:
            given = [_tensor(tf, *each) for each in program["inputs"]]
            names.update(zip("abcdefgh", given))  # noqa: B905 - Python 3.7
            result = eval(program["code"], names)
            if program["gradient"]:
                result = _gradients(tf, result, given)
            return _plain(session.run(_fetches(tf, result)))
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            return {"error": type(error).__name__, "message": str(error).split("\n")[0][:200]}


def _tensor(tf, dtype, shape, values, known):
    value = tf.constant(np.array(values, object if dtype == "string" else dtype).reshape(shape), dtype)
    if known == "constant":
        return value
    return tf.placeholder_with_default(value, {"fed": shape, "rank": [None] * len(shape), "unknown": None}[known])


def _fetches(tf, result):
    if isinstance(result, (list, tuple)):
        return [_fetches(tf, each) for each in result]
    return tf.constant(0) if result is None else result


def _gradients(tf, result, given):
    first = result[0] if isinstance(result, (list, tuple)) else result
    if not first.dtype.is_floating:
        return first
    incoming = tf.reshape(tf.cast(tf.range(tf.size(first)) % 2, first.dtype), tf.shape(first))
    inexact = [each for each in given if each.dtype.is_floating]
    found = tf.gradients(first, inexact, grad_ys=incoming)
    return [tf.convert_to_tensor(each) for each in found if each is not None]


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [str(value.dtype), list(value.shape), [_plain(each) for each in value.ravel().tolist()]]
    value = np.asarray(value)
    return [str(value.dtype), list(value.shape), value.ravel().tolist()]


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


LIMITS = (
    "No gradient defined for operation",
    "No OpKernel was registered",
    "do not yet support dilation rates",
    "TensorArray has size zero, but element shape",
    "as_list() is not defined on an unknown TensorShape",
    "Cannot take the length of shape with unknown rank",
    "unsupported operand type(s) for -: 'NoneType' and 'int'",
)
"""Messages of TensorFlow's errors where it lacks a gradient, a kernel, or support for unknown shapes."""


def lacking(other):
    """Whether TensorFlow fails because it lacks something, or crashes: Headwater may then give a result."""
    return other == "crash" or (isinstance(other, dict) and any(limit in other["message"] for limit in LIMITS))


def same(mine, other):
    """Whether two outcomes agree, floats but for rounding."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine["error"] == other["error"]
    if isinstance(mine, list) and isinstance(other, list):
        return len(mine) == len(other) and all(same(a, b) for a, b in zip(mine, other))  # noqa: B905 - Python 3.7
    if isinstance(mine, float) and isinstance(other, float):
        both_nan = math.isnan(mine) and math.isnan(other)
        return both_nan or math.isclose(mine, other, rel_tol=1e-4, abs_tol=1e-6)
    return mine == other


def smaller(program):
    """Simpler programs: constants instead of fed inputs, and ordinary values instead of special ones."""
    for place, (dtype, shape, values, known) in enumerate(program["inputs"]):
        simpler = []
        if known != "constant":
            simpler.append([dtype, shape, values, "constant"])
        for at, value in enumerate(values):
            plain = "a" if dtype == "string" else False if dtype == "bool" else 1 if "int" in dtype else 1.0
            if value != plain:
                simpler.append([dtype, shape, [*values[:at], plain, *values[at + 1 :]], known])
        for each in simpler:
            yield dict(program, inputs=[*program["inputs"][:place], each, *program["inputs"][place + 1 :]])


def shrunk(program, engines):
    """The smallest program found that still differs, and both outcomes."""
    while True:
        candidates = [program, *smaller(program)]
        found = list(zip(candidates, *(outcomes(engine, candidates) for engine in engines)))  # noqa: B905
        differing = [each for each in found[1:] if not same(each[1], each[2])]
        if not differing:
            return found[0]
        program = differing[0][0]


def name_of(program):
    """The functions of a program, which group the differences."""
    found = re.findall(r"(?:tf|C|D)?[.]([a-zA-Z_][\w.]*)[(]", program["code"])
    return (
        program["kind"]
        + " "
        + (found[0] if found else program["code"][:30])
        + (" (gradient)" if program["gradient"] else "")
    )


def main():
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", required=True, help="an interpreter that has TensorFlow 1.15")
    parser.add_argument("--count", type=int, default=2000, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--kinds", nargs="*", help="kinds of programs, of: " + " ".join(random_programs.KINDS))
    parser.add_argument("--most", type=int, default=20, help="groups of differences of which one is shown in full")
    parser.add_argument("--shrink", action="store_true", help="reduce the shown programs while they differ")
    options = parser.parse_args()
    engines = [[sys.executable, "-m", "headwater", "exec", "--dialect", "1"], [options.peer]]
    programs = [drawn(options.seed + number, options.kinds) for number in range(options.count)]
    ours, theirs = (outcomes(engine, programs) for engine in engines)
    groups, lacks = {}, 0
    for program, mine, other in zip(programs, ours, theirs):  # noqa: B905 - Python 3.7
        if lacking(other):
            lacks += not same(mine, other)
        elif not same(mine, other):
            groups.setdefault(name_of(program), []).append((program, mine, other))
    differ = sum(map(len, groups.values()))
    print(f"{len(programs)} programs, {differ} differ, in {len(groups)} groups; TensorFlow lacks {lacks} more")
    for name, group in sorted(groups.items()):
        print(f"{len(group):6} {name}")
    for group in list(groups.values())[: options.most]:
        program, mine, other = shrunk(group[0][0], engines) if options.shrink else group[0]
        print(
            f"{json.dumps(program)}\n    Headwater  {json.dumps(mine)[:400]}\n    TensorFlow {json.dumps(other)[:400]}"
        )


if __name__ == "__main__":
    main()
