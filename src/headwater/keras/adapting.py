"""What Keras in this process has to be told: of Headwater's datasets, and that there is no TensorFlow."""

from __future__ import annotations

import functools
from typing import Any

from keras.src.trainers import data_adapters
from keras.src.utils import module_utils

from headwater.keras.datasets import DatasetAdapter, is_dataset
from headwater.keras.devices import make_stand_ins

_adapters: Any = data_adapters
_modules: Any = module_utils
_adapted = False


def adapt_keras() -> None:
    """Has Keras take Headwater's datasets, and take no module that answers to TensorFlow's name for TensorFlow, whose
    inner parts it would use. A second call changes nothing."""
    global _adapted
    if _adapted:
        return
    _adapted = True
    make_stand_ins()
    _modules.tensorflow._available = False
    get = _adapters.get_data_adapter

    @functools.wraps(get)
    def get_data_adapter(x: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dataset(x):
            return DatasetAdapter(x, kwargs.get("class_weight"))
        return get(x, *args, **kwargs)

    _adapters.get_data_adapter = get_data_adapter
