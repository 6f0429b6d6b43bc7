"""Runs the cases of a module: functions of TensorFlow's namespace, each with an outcome that JSON keeps.

``python run.py expected cases/NAME.py ...`` with an interpreter that has TensorFlow 1.15 writes the outcomes that are
stored. Tests call `outcome` with Headwater's namespace. Like the cases this must run on Python 3.7.
"""

import importlib.util
import json
import os
import sys


def load(path):
    """The module at ``path``."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(case, tf):
    """What ``case`` gives, in a form that JSON keeps, or "raises" and the class."""
    with tf.Graph().as_default():
        try:
            value = case(tf)
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            return "raises " + type(error).__name__
    return json.loads(json.dumps(value, default=_plain))


def outcomes(module, tf):
    """The outcomes of all cases of ``module``, by name."""
    return {name: outcome(case, tf) for name, case in module.cases(tf).items()}


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [value.real, value.imag]
    return str(value)


def main(folder, *paths):
    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    for path in paths:
        with open(os.path.join(folder, os.path.basename(path)[:-3] + ".json"), "w") as file:
            json.dump(outcomes(load(path), tf), file, indent=1, sort_keys=True)
            file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
