"""Table of the Headwater modules that replace TensorFlow's, and the finder that imports them by TensorFlow's names.

`install` puts a `Finder` on ``sys.meta_path`` of this process. From then on ``import tensorflow`` and imports of its
submodules return modules that look up attributes at first use in the places listed in `MODULES`. Nothing outside the
process changes, and an installed TensorFlow is not touched.

A place is written as

- ``tf`` or ``tf.train``: the namespace `headwater.tf1.compat.tf`, or an attribute path in it;
- ``headwater.x.y`` or any other module name: that module.

Every name that is a module or namespace in ``tf`` itself (``tensorflow.train``, ``tensorflow.keras.layers``) is found
without an entry here.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from headwater.tf1.compat.partial import UNSUPPORTED_CONTRIB

TENSORFLOW = "tensorflow"
COMPATIBILITY_TABLE = "docs/compatibility.md"

_OPS = ("tf", "tf.math", "tf.nn", "tf.linalg", "tf.random", "tf.image", "tf.io", "tf.sparse", "tf.strings")
_FRAMEWORK = ("tf", "tf.errors", "tf.train", "tf.dtypes")

MODULES: Mapping[str, Sequence[str]] = {
    "tensorflow": ("tf",),
    "tensorflow.compat.v1": ("tf",),
    # Modules of TensorFlow's sources that define its public names; a star stands for one further name.
    "tensorflow.python.client.device_lib": ("headwater.graph.session.local_devices",),
    "tensorflow.contrib.learn.python.learn": ("tf.contrib.learn",),
    "tensorflow.contrib.learn.python.learn.*": ("tf.contrib.learn",),
    "tensorflow.contrib.learn.python.learn.monitors": ("tf.contrib.learn.monitors",),
    "tensorflow.contrib.learn.python.learn.preprocessing": ("headwater.tf1.contrib.learn.preprocessing",),
    "tensorflow.contrib.learn.python.learn.preprocessing.*": ("headwater.tf1.contrib.learn.preprocessing",),
    "tensorflow.contrib.learn.python.learn.estimators.*": ("tf.contrib.learn",),
    "tensorflow.contrib.learn.python.learn.utils.input_fn_utils": ("tf.contrib.learn",),
    "tensorflow.contrib.cudnn_rnn.python.layers": ("tf.contrib.cudnn_rnn",),
    "tensorflow.contrib.cudnn_rnn.python.layers.cudnn_rnn": ("tf.contrib.cudnn_rnn",),
    "tensorflow.contrib.cudnn_rnn.python.ops.cudnn_rnn_ops": (
        "headwater.tf1.contrib.cudnn_rnn.cells",
        "headwater.tf1.contrib.cudnn_rnn.converters",
        "headwater.tf1.contrib.cudnn_rnn.saveables",
    ),
    "tensorflow.contrib.seq2seq.python.ops.attention_wrapper": (
        "tf.contrib.seq2seq",
        "headwater.tf1.contrib.seq2seq.mechanisms",
        "headwater.tf1.contrib.seq2seq.wrapper",
    ),
    "tensorflow.contrib.seq2seq.python.ops.*": ("tf.contrib.seq2seq",),
    "tensorflow.contrib.losses.python.metric_learning": ("headwater.tf1.functional.metric_learning",),
    "tensorflow.contrib.losses.python.metric_learning.*": ("headwater.tf1.functional.metric_learning",),
    "tensorflow.contrib.layers.python.layers": ("tf.contrib.layers",),
    "tensorflow.contrib.layers.python.layers.utils": ("headwater.tf1.contrib.slim.utils",),
    "tensorflow.contrib.layers.python.layers.*": ("tf.contrib.layers",),
    "tensorflow.contrib.framework.python.ops": ("tf.contrib.framework",),
    "tensorflow.contrib.framework.python.ops.*": ("tf.contrib.framework",),
    "tensorflow.contrib.slim.python.slim.nets": ("tf.contrib.slim.nets",),
    "tensorflow.contrib.slim.python.slim.nets.*": ("headwater.tf1.contrib.slim.nets.*",),
    "tensorflow.contrib.opt.python.training.matrix_functions": ("headwater.tf1.contrib.opt.matrix_functions",),
    "tensorflow.contrib.opt.python.training.sign_decay": ("headwater.tf1.contrib.opt.sign_decay",),
    "tensorflow.contrib.opt.python.training.weight_decay_optimizers": ("headwater.tf1.contrib.opt.weight_decay",),
    "tensorflow.contrib.opt.python.training.*": ("tf.contrib.opt",),
    # The module of recurrent networks up to TensorFlow 0.8.
    "tensorflow.models.rnn.rnn": ("tf.nn",),
    "tensorflow.models.rnn.rnn_cell": ("tf.nn.rnn_cell",),
    "tensorflow.python.client.session": ("tf",),
    "tensorflow.python.client.timeline": ("headwater.cluster.telemetry.timeline",),
    "tensorflow.python.estimator.canned.head": ("headwater.tf1.contrib.estimator.heads",),
    "tensorflow.python.estimator.canned.optimizers": ("headwater.tf1.contrib.estimator.heads",),
    "tensorflow.python.estimator.canned.metric_keys": ("headwater.tf1.training.estimator.keys",),
    "tensorflow.python.estimator.canned.prediction_keys": ("headwater.tf1.training.estimator.keys",),
    "tensorflow.python.estimator.canned.*": ("tf.estimator",),
    "tensorflow.python.estimator.export.*": ("tf.estimator.export",),
    "tensorflow.python.estimator.inputs": ("tf.estimator.inputs",),
    "tensorflow.python.estimator.inputs.*": ("tf.estimator.inputs",),
    "tensorflow.python.estimator.*": ("tf.estimator",),
    "tensorflow.python.feature_column": ("tf.feature_column",),
    "tensorflow.python.feature_column.*": ("tf.feature_column", "headwater.tf1.feature_columns.classes"),
    "tensorflow.python.framework.errors": ("tf.errors",),
    "tensorflow.python.framework.errors_impl": ("tf.errors",),
    "tensorflow.python.framework.graph_util": ("tf.graph_util",),
    "tensorflow.python.framework.tensor_shape": ("tf", "headwater.shapes"),
    "tensorflow.python.framework.test_util": ("headwater.tf1.compat.test_util",),
    "tensorflow.python.framework.*": _FRAMEWORK,
    "tensorflow.python.keras": ("tf.keras",),
    "tensorflow.python.layers.*": ("tf.layers",),
    "tensorflow.python.lib.io.file_io": ("headwater.tf1.compat.file_io",),
    "tensorflow.python.lib.io.python_io": ("tf.python_io",),
    "tensorflow.python.lib.io.tf_record": ("tf.io", "tf.python_io"),
    "tensorflow.python.ops.control_flow_ops": ("tf", "headwater.tf1.functional.control_flow"),
    "tensorflow.python.ops.lookup_ops": ("tf.lookup", "tf.contrib.lookup", "tf"),
    "tensorflow.python.ops.losses": ("tf.losses",),
    "tensorflow.python.ops.losses.*": ("tf.losses",),
    "tensorflow.python.ops.metrics": ("tf.metrics",),
    "tensorflow.python.ops.init_ops": ("tf", "tf.initializers", "headwater.tf1.variables.initializers"),
    "tensorflow.python.ops.init_ops_v2": ("tf.initializers", "headwater.tf1.variables.initializers"),
    "tensorflow.python.ops.nn": ("tf.nn",),
    "tensorflow.python.ops.nn_impl": ("tf.nn",),
    "tensorflow.python.ops.nn_ops": ("tf.nn",),
    "tensorflow.python.ops.rnn": ("tf.nn",),
    "tensorflow.python.ops.rnn_cell": ("tf.nn.rnn_cell",),
    "tensorflow.python.ops.rnn_cell_impl": ("tf.nn.rnn_cell", "headwater.tf1.rnn.sizes"),
    "tensorflow.python.ops.variables": ("tf", "headwater.tf1.variables.partitioned"),
    "tensorflow.python.ops.*": _OPS,
    "tensorflow.python.platform.app": ("tf.app",),
    "tensorflow.python.platform.flags": ("tf.flags",),
    "tensorflow.python.platform.gfile": ("tf.gfile",),
    "tensorflow.python.platform.googletest": ("tf.test",),
    "tensorflow.python.platform.resource_loader": ("headwater.tf1.compat.resource_loader",),
    "tensorflow.python.platform.test": ("tf.test",),
    "tensorflow.python.platform.tf_logging": ("tf.logging",),
    "tensorflow.python.pywrap_tensorflow": ("tf.train", "tf"),
    "tensorflow.python.saved_model": ("tf.saved_model",),
    "tensorflow.python.saved_model.*": ("tf.saved_model.*", "headwater.tf1.compat.tf.saved_model_parts"),
    "tensorflow.python.summary.*": ("tf.summary", "tf.train", "tf"),
    "tensorflow.python.summary.writer.*": ("tf.summary",),
    "tensorflow.python.training.moving_averages": ("headwater.tf1.training.moving_averages",),
    "tensorflow.python.training.slot_creator": ("headwater.tf1.training.slot_creator",),
    "tensorflow.python.training.*": ("tf.train", "tf"),
    "tensorflow.python.util.compat": ("tf.compat",),
    "tensorflow.python.util.nest": ("tf.nest",),
    # Protocol messages: TensorBoard contains the messages of event files, Headwater all other messages.
    "tensorflow.core.example.*": ("headwater.data.io.protos.*",),
    "tensorflow.core.framework.device_attributes_pb2": ("headwater.data.io.protos.device_attributes_pb2",),
    "tensorflow.core.framework.*": ("tensorboard.compat.proto.*", "headwater.data.io.protos.*"),
    "tensorflow.core.protobuf.tensorflow_server_pb2": ("headwater.cluster.server_def",),
    "tensorflow.core.protobuf.*": ("tensorboard.compat.proto.*", "headwater.data.io.protos.*"),
    "tensorflow.core.util.*": ("tensorboard.compat.proto.*", "headwater.data.io.protos.*"),
    # TensorBoard would take "tensorflow" for TensorFlow and use functions that Headwater does not have. If this module
    # exists, TensorBoard uses its own replacement instead.
    "tensorboard.compat.notf": (),
}


def missing_attribute(module_name: str, attribute: str) -> AttributeError:
    """Returns the error for a name that TensorFlow may have and Headwater lacks."""
    return AttributeError(
        f"module {module_name!r} has no attribute {attribute!r} in Headwater; {_remedy(f'{module_name}.{attribute}')}",
        name=attribute,
    )


def missing_module(module_name: str) -> ModuleNotFoundError:
    """Returns the error for a module that TensorFlow may have and Headwater lacks.

    Its ``name`` is not set: otherwise ``from tensorflow import absent`` would show Python's message instead of this
    one.
    """
    return ModuleNotFoundError(f"Headwater has no {module_name!r}; {_remedy(module_name)}", path=None)


def _remedy(missing: str) -> str:
    """Returns a clause with the replacement of a missing name of ``tf.contrib``, or with the list of existing names."""
    _, contrib, rest = missing.partition(".contrib.")
    reason, replacement = UNSUPPORTED_CONTRIB.get(rest.partition(".")[0], ("", "")) if contrib else ("", "")
    listed = f"{COMPATIBILITY_TABLE} lists the names that exist"
    return f"{reason}: use {replacement}; {listed}" if replacement else listed


class CompatModule(ModuleType):
    """A module with TensorFlow's name that looks up its attributes in one or more places of Headwater.

    Args:
      name: TensorFlow's name of the module.
      places: modules or namespaces, searched in this order; none for a package of submodules only.
    """

    def __init__(self, name: str, places: Sequence[object]) -> None:
        super().__init__(name, next((doc for place in places if (doc := getattr(place, "__doc__", None))), None))
        self.__dict__["_headwater_places"] = tuple(places)

    def __getattr__(self, name: str) -> Any:
        places = self.__dict__["_headwater_places"]
        for place in places:
            try:
                value = getattr(place, name)
            except AttributeError:
                continue
            if isinstance(value, ModuleType) and len(places) == 1:
                # Wrap the module, so that its errors about missing attributes use TensorFlow's name, too.
                value = _import_if_known(f"{self.__name__}.{name}") or value
            self.__dict__[name] = value
            return value
        submodule = None if name.startswith("__") else _import_if_known(f"{self.__name__}.{name}")
        if submodule is not None:
            return submodule
        raise missing_attribute(self.__name__, name)

    def __dir__(self) -> list[str]:
        places = self.__dict__["_headwater_places"]
        return sorted({name for place in places for name in dir(place)} | set(super().__dir__()))


class Finder:
    """Finds TensorFlow's modules in Headwater, by a table like `MODULES`.

    Args:
      modules: for each module name the places to search; see the module's docstring for their notation.
      namespace: the name of the module that ``tf`` denotes.
    """

    def __init__(
        self, modules: Mapping[str, Sequence[str]] = MODULES, namespace: str = "headwater.tf1.compat.tf"
    ) -> None:
        self._exact = {name: places for name, places in modules.items() if not name.endswith(".*")}
        self._families = {name[:-2]: places for name, places in modules.items() if name.endswith(".*")}
        self._namespace = namespace
        self._packages = set(self._families)
        for name in modules:
            while name := name.rpartition(".")[0]:
                self._packages.add(name)

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of ``fullname``, or None if it is not a module of TensorFlow.

        Raises:
          ModuleNotFoundError: Headwater has no such module.
        """
        del path, target
        if fullname.partition(".")[0] != TENSORFLOW and fullname not in self._exact:
            return None
        places = self._places(fullname)
        if places is None:
            raise missing_module(fullname)
        return importlib.util.spec_from_loader(fullname, _Loader(places), origin="Headwater", is_package=True)

    def _places(self, fullname: str) -> list[Any] | None:
        """Returns the existing places for ``fullname``, an empty list for a package without contents; None if there is
        no such module."""
        for names in self._candidates(fullname):
            found = [place for name in names if (place := self._resolve(name)) is not None]
            if found or not names:
                return found
        return [] if fullname in self._packages else None

    def _candidates(self, fullname: str) -> Iterator[Sequence[str]]:
        """The lists of places to try for ``fullname``, most particular first."""
        if fullname in self._exact:
            yield self._exact[fullname]
        yield [fullname.replace(TENSORFLOW, "tf", 1)]
        parent, _, last = fullname.rpartition(".")
        if parent in self._families:
            yield [place.replace("*", last) for place in self._families[parent]]
        while parent and parent != TENSORFLOW:
            if parent in self._exact:
                yield [place + fullname.removeprefix(parent) for place in self._exact[parent]]
                return
            parent = parent.rpartition(".")[0]

    def _resolve(self, place: str) -> object:
        """Returns the module or namespace that ``place`` names; None if it does not exist."""
        root, _, path = place.partition(".")
        if root != "tf":
            return _import(place) if _module_exists(place) else None
        value = _import(self._namespace)
        for name in path.split(".") if path else ():
            outer, value = value, getattr(value, name, None)
            if value is None and isinstance(outer, ModuleType) and _module_exists(f"{outer.__name__}.{name}"):
                value = _import(f"{outer.__name__}.{name}")
            # Only modules and namespaces count: other objects may have names that TensorFlow uses for modules.
            if not hasattr(value, "__dict__") or (callable(value) and not isinstance(value, type)):
                return None
        return value


class _Loader(importlib.abc.Loader):
    """Creates one `CompatModule`."""

    def __init__(self, places: Sequence[object]) -> None:
        self._places = places

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return CompatModule(spec.name, self._places)

    def exec_module(self, module: ModuleType) -> None:
        """Adds public names to a module, for ``from tensorflow import *``, and the values of its constants."""
        module.__dict__["__all__"] = [name for name in dir(module) if not name.startswith("_")]
        for place in self._places:
            for name, value in vars(place).items():
                if isinstance(value, int | str) and not name.startswith("_"):  # ``tf.logging.__dict__["INFO"]``
                    module.__dict__.setdefault(name, value)


def _import(name: str) -> ModuleType:
    # Not importlib.import_module: its frames would appear in the tracebacks of programs.
    __import__(name)
    return sys.modules[name]


def _import_if_known(name: str) -> ModuleType | None:
    try:
        return _import(name)
    except ModuleNotFoundError as error:
        if error.name is not None:  # not ours: an existing module imports a missing one
            raise
        return None


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def install(finder: Finder | None = None) -> Finder:
    """Makes ``import tensorflow`` mean Headwater in this process, and returns the finder that does it.

    A second call changes nothing and returns the finder of the first call.
    """
    for present in sys.meta_path:
        if isinstance(present, Finder):
            return present
    finder = finder or Finder()
    # Insert it first, so that it is asked before the finder of an installed TensorFlow.
    sys.meta_path.insert(0, finder)
    return finder
