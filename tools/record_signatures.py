#!/usr/bin/env python3
"""Records how TensorFlow 1.15's public callables are called: arguments, their order, their defaults. Facts only.

Usage: PYTHON tools/record_signatures.py tools/data/tensorflow_1_15_names.txt tools/data/tensorflow_1_15_signatures.json

PYTHON is an interpreter with TensorFlow 1.15. For each name of the first file the second one gets a text
such as ``x, y, name=None``. A class stands under its own name with what making one takes, and its public methods stand
under ``Class.method``, but for those of a class above it that is public, too; neither has ``self``. A default that is
neither text, number, truth value, None nor type of elements is written as the name of its class in angle brackets. Left
out are ``tf.keras``, which is Keras 3 here, what is written in C or is a protobuf message, functions that hand on what
they are given, and methods that come from Python's own classes.
"""

import functools
import inspect
import json
import sys

import tensorflow as tf
from tensorflow.python.util import tf_decorator, tf_inspect


def written(default):
    """A default as text."""
    if isinstance(default, tf.DType):
        return "tf." + default.name
    if isinstance(default, (tuple, list)):
        inner = ", ".join(written(item) for item in default)
        return ("(%s)" if isinstance(default, tuple) else "[%s]") % inner
    if default is None or isinstance(default, (bool, int, float, str, bytes)):
        return repr(default)
    if callable(default):
        return "<{}>".format(getattr(default, "__name__", type(default).__name__))
    return f"<{type(default).__name__}>"


def signature(function, skips_first):
    """The arguments of a function as text; None where Python cannot tell them."""
    try:
        # Through decorators of TensorFlow's, and through Python's, such as that of context managers.
        spec = tf_inspect.getfullargspec(inspect.unwrap(tf_decorator.unwrap(function)[1]))
    except TypeError:
        return None
    names = list(spec.args)
    if spec.varargs and spec.varkw and len(names) == int(skips_first):
        return None  # hands on what it is given, which tells nothing
    defaults = dict(zip(names[len(names) - len(spec.defaults or ()) :], spec.defaults or ()))  # noqa: B905 - Python 3.7
    parts = [name + ("=" + written(defaults[name]) if name in defaults else "") for name in names]
    parts = parts[1:] if skips_first else parts
    if spec.varargs:
        parts.append("*" + spec.varargs)
    elif spec.kwonlyargs:
        parts.append("*")
    for name in spec.kwonlyargs:
        known = spec.kwonlydefaults or {}
        parts.append(name + ("=" + written(known[name]) if name in known else ""))
    return ", ".join(parts + (["**" + spec.varkw] if spec.varkw else []))


def methods(cls, public):
    """What of a class is a method: its making as an empty name, and the public ones that no public class above has."""
    above = {base for other in cls.__mro__[1:] if other in public for base in other.__mro__}
    own = [base for base in cls.__mro__ if base.__module__.startswith("tensorflow") and base not in above]
    # A named tuple is made by __new__; other classes by __init__.
    maker = "__new__" if issubclass(cls, tuple) else "__init__"
    if not issubclass(cls, BaseException) and any(maker in vars(base) for base in cls.__mro__ if base is not object):
        yield "", getattr(cls, maker), True
    for name in sorted({name for base in own for name in vars(base) if not name.startswith("_")}):
        raw = inspect.getattr_static(cls, name)
        if isinstance(raw, staticmethod):
            yield name, raw.__func__, False
        elif isinstance(raw, classmethod) or inspect.isfunction(tf_decorator.unwrap(raw)[1]):
            yield name, getattr(raw, "__func__", raw), True


def main(names, target):
    with open(names) as file:
        listed = file.read().split()
    values = {
        name: functools.reduce(getattr, name.split(".")[1:], tf)
        for name in listed
        if not name.startswith(("tf.keras.", "tf.flags."))
    }
    public = {value for value in values.values() if inspect.isclass(value)}
    found = {}
    for name, value in values.items():
        if inspect.isclass(value):
            if value.__module__.startswith("google.") or "_pb2" in value.__module__:
                continue
            for method, function, skips_first in methods(value, public):
                found[name + ("." + method if method else "")] = signature(function, skips_first)
        elif callable(value) and inspect.isfunction(tf_decorator.unwrap(value)[1]):
            found[name] = signature(value, False)
    with open(target, "w") as file:
        json.dump({name: text for name, text in found.items() if text is not None}, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
