"""All private parts of Keras that Headwater uses. They are in one file, because any release may move them.

`docs/dependencies.md` lists the releases that were tested.
"""

from __future__ import annotations

from typing import Any

from keras.src import api_export as _api_export
from keras.src import backend as _backend
from keras.src import optimizers as _optimizers
from keras.src import tree as tree
from keras.src.backend import rnn as _rnn
from keras.src.backend.common import global_state as _global_state
from keras.src.backend.common.keras_tensor import any_symbolic_tensors as any_symbolic_tensors
from keras.src.backend.common.name_scope import name_scope as name_scope
from keras.src.backend.common.stateless_scope import get_stateless_scope as get_stateless_scope
from keras.src.backend.common.stateless_scope import in_stateless_scope as in_stateless_scope
from keras.src.backend.common.symbolic_scope import in_symbolic_scope as in_symbolic_scope
from keras.src.backend.jax.core import JaxVariable as JaxVariable
from keras.src.backend.jax.trainer import JAXEpochIterator as _JAXEpochIterator
from keras.src.backend.jax.trainer import JAXTrainer as JAXTrainer
from keras.src.callbacks import callback_list as callback_list
from keras.src.callbacks import tensorboard as tensorboard
from keras.src.callbacks.callback import Callback as Callback
from keras.src.callbacks.callback_list import CallbackList as CallbackList
from keras.src.callbacks.monitor_callback import MonitorCallback as MonitorCallback
from keras.src.export import export_utils as _export_utils
from keras.src.layers.layer import CallSpec as _CallSpec
from keras.src.layers.layer import Layer as Layer
from keras.src.legacy.preprocessing.sequence import skipgrams as _skipgrams
from keras.src.legacy.saving import legacy_h5_format as _hdf5
from keras.src.losses import loss as _losses
from keras.src.metrics import reduction_metrics as _reduction_metrics
from keras.src.models import functional as functional
from keras.src.models.functional import Functional as Functional
from keras.src.ops.function import Function as _Function
from keras.src.ops.function import map_graph as _map_graph
from keras.src.ops.operation import Operation as _Operation
from keras.src.optimizers.base_optimizer import BaseOptimizer as BaseOptimizer
from keras.src.random import seed_generator as _seed_generator
from keras.src.saving import object_registration as object_registration
from keras.src.saving import saving_lib as saving_lib
from keras.src.trainers import data_adapters as data_adapters
from keras.src.trainers.data_adapters import array_slicing as array_slicing
from keras.src.trainers.data_adapters import data_adapter_utils as data_adapter_utils
from keras.src.trainers.data_adapters import py_dataset_adapter as _enqueuers
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter as ArrayDataAdapter
from keras.src.trainers.data_adapters.data_adapter import DataAdapter as DataAdapter
from keras.src.trainers.trainer import Trainer as Trainer
from keras.src.utils import backend_utils as _backend_utils
from keras.src.utils import module_utils as module_utils
from keras.src.utils import naming as _naming
from keras.src.utils import python_utils as _python_utils
from keras.src.utils.python_utils import pythonify_logs as pythonify_logs

#: The package of Keras's own modules.
OWN_MODULES = "keras.src"

# Keras's annotations of these are incomplete, so a type checker cannot use them.
Function: Any = _Function
JAXEpochIterator: Any = _JAXEpochIterator
KerasOperation: Any = _Operation
backend: Any = _backend
backend_utils: Any = _backend_utils
naming: Any = _naming
optimizers: Any = _optimizers
CallSpec: Any = _CallSpec
export_utils: Any = _export_utils
global_state: Any = _global_state
hdf5: Any = _hdf5
keras_rnn: Any = _rnn
keras_skipgrams: Any = _skipgrams
losses: Any = _losses
map_graph: Any = _map_graph
python_utils: Any = _python_utils
reduction_metrics: Any = _reduction_metrics
seed_generator: Any = _seed_generator

#: The pools of processes and threads that load data, as long as they are in use.
data_pools: Any = _enqueuers._DATA_POOLS  # pyright: ignore[reportPrivateUsage] - as the rest of this file


def name_as(kind: object, other: object) -> None:
    """Registers ``other`` so that saved models name its objects as instances of Keras's ``kind``."""
    names: Any = _api_export.REGISTERED_OBJS_TO_NAMES
    if kind in names:
        names[other] = names[kind]


def replace_class(kind: object, other: object) -> None:
    """Makes saved models contain Keras's name of ``kind`` for the class ``other``, and the name mean ``other``."""
    name_as(kind, other)
    names: Any = _api_export.REGISTERED_NAMES_TO_OBJS
    names[_api_export.REGISTERED_OBJS_TO_NAMES[kind]] = other  # pyright: ignore[reportArgumentType]


#: Modules of names that `headwater.keras.old_names` brings back.
LEGACY_IMAGE = "keras.src.legacy.preprocessing.image"
LEGACY_SEQUENCE = "keras.src.legacy.preprocessing.sequence"
LEGACY_TEXT = "keras.src.legacy.preprocessing.text"
ENQUEUERS = "keras.src.trainers.data_adapters.py_dataset_adapter"
