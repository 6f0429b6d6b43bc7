"""Inputs and outputs of exported models, and exporters, which decide when to export."""

from __future__ import annotations

import glob
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from headwater.data.io import files
from headwater.data.io.event_file import summary_iterator
from headwater.dtypes import string
from headwater.errors import DataLossError
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays
from headwater.tf1.input import parsing
from headwater.tf1.training import saved_model

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tensorboard_protos import SignatureDef
    from headwater.tf1.training.estimator.estimator import Estimator


_logger: Final = logging.getLogger(__name__)
DEFAULT_RECEIVER = "receiver_tensor"
_FEATURE, _LABEL = "feature", "label"


class ExportOutput:
    """One signature of an exported model."""

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        """The ``SignatureDef`` with these inputs."""
        raise NotImplementedError


def _named(outputs: Structure, default: str) -> dict[str, Tensor]:
    found = outputs if isinstance(outputs, dict) else {default: outputs}  # pyright: ignore[reportUnknownVariableType]
    return {str(key): convert_to_tensor(value) for key, value in found.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportUnknownVariableType]


class PredictOutput(ExportOutput):
    """Any tensors, by name."""

    def __init__(self, outputs: Structure) -> None:
        self.outputs: dict[str, Tensor] = _named(outputs, "output")

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        return saved_model.predict_signature_def(receiver_tensors, self.outputs)


class RegressionOutput(ExportOutput):
    """Numbers, such as those that a regression predicts.

    Raises:
      ValueError: ``value`` is not floating.
    """

    def __init__(self, value: object) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self.value: Tensor = value

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        return saved_model.regression_signature_def(_examples(receiver_tensors), self.value)


class ClassificationOutput(ExportOutput):
    """Classes as text, scores, or both.

    Raises:
      ValueError: neither is given, or tensors have the wrong type.
    """

    def __init__(self, scores: TensorLike | None = None, classes: Structure = None) -> None:
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.base_dtype == string):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> SignatureDef:
        return saved_model.classification_signature_def(_examples(receiver_tensors), self.classes, self.scores)


def _examples(receiver_tensors: Mapping[str, Tensor]) -> Tensor:
    if len(receiver_tensors) != 1:
        raise ValueError(f"Classification and regression input must be a single string Tensor; got {receiver_tensors}")
    (examples,) = receiver_tensors.values()
    if examples.dtype.base_dtype != string:
        raise ValueError(f"Classification and regression input must be a single string Tensor; got {receiver_tensors}")
    return examples


# Receivers ----------------------------------------------------------------------------------------------------------


class _Receiver(NamedTuple):
    features: Structure
    receiver_tensors: Any
    receiver_tensors_alternatives: Any = None


class ServingInputReceiver(_Receiver):
    """Inputs of a served model.

    Args:
      features: features for the model function: tensors by name; a single tensor has the name ``feature``.
      receiver_tensors: tensors that a request feeds, by name.

    Raises:
      ValueError: a feature or receiver is not a tensor.
    """

    def __new__(
        cls, features: Structure, receiver_tensors: Structure, receiver_tensors_alternatives: Structure = None
    ) -> Self:
        receivers = receiver_tensors if isinstance(receiver_tensors, dict) else {DEFAULT_RECEIVER: receiver_tensors}  # pyright: ignore[reportUnknownVariableType]
        for key, value in receivers.items():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if not isinstance(value, Tensor):
                raise ValueError(f"receiver_tensor {key} must be a Tensor.")
        checked = cls._given(_checked(features))
        return super().__new__(cls, checked, receivers, receiver_tensors_alternatives)

    @staticmethod
    def _given(features: Structure) -> Structure:
        return _by_name(features)


class TensorServingInputReceiver(ServingInputReceiver):
    """Like `ServingInputReceiver`, with one tensor of features, which is passed to the model function unchanged."""

    @staticmethod
    def _given(features: Structure) -> Structure:
        return features


def _by_name(features: Structure) -> dict[str, object]:
    return dict(features) if isinstance(features, dict) else {_FEATURE: features}  # pyright: ignore[reportUnknownArgumentType]


def _checked(features: Structure) -> Any:
    for key, value in _by_name(features).items():
        if not (isinstance(value, Tensor) or hasattr(value, "dense_shape")):
            raise ValueError(f"feature {key} must be a Tensor or SparseTensor.")
    return features


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, object], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a receiver function for requests with serialised examples.

    Args:
      feature_spec: features of the examples; see `parse_example`.
      default_batch_size: number of examples; any number if None.
    """

    def receiver() -> ServingInputReceiver:
        examples = arrays.placeholder(string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parsing.parse_example(examples, feature_spec), {"examples": examples})

    return receiver


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Tensor], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a receiver function for requests with the features themselves.

    Args:
      features: tensors with the types and shapes of the requests' features, except for the batch size.
    """

    def receiver() -> ServingInputReceiver:
        fed: dict[str, object] = {}
        for name, like in features.items():
            fed[name] = _placeholders(like, default_batch_size)
        return ServingInputReceiver(fed, dict(fed))

    return receiver


class SupervisedInputReceiver(NamedTuple):
    """Inputs of a model exported with labels.

    Attributes:
      features, labels: a tensor, or tensors by name.
      receiver_tensors: tensors that a request feeds, by name.
    """

    features: Structure
    labels: Structure
    receiver_tensors: dict[str, Tensor]


def build_raw_supervised_input_receiver_fn(
    features: Structure, labels: Structure, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """Returns a receiver function for requests with features and labels.

    Args:
      features, labels: a tensor, or tensors by name, with the types and shapes of the requests' tensors, except for the
        batch size.
      default_batch_size: number of examples; any number if None.

    Raises:
      ValueError: a feature and a label have the same name.
    """

    def receiver() -> SupervisedInputReceiver:
        named: list[set[Any]] = [set(each) if isinstance(each, dict) else set() for each in (features, labels)]  # pyright: ignore[reportUnknownArgumentType]
        twice = named[0] & named[1]
        if twice:
            raise ValueError(f"Features and labels must have distinct keys. Found overlapping keys: {twice}")
        of_features = _placeholders(features, default_batch_size)
        of_labels = _placeholders(labels, default_batch_size)
        fed = {
            **(of_features if isinstance(of_features, dict) else {"input": of_features}),
            **(of_labels if isinstance(of_labels, dict) else {_LABEL: of_labels}),
        }
        return SupervisedInputReceiver(of_features, of_labels, fed)

    return receiver


def _placeholders(like: Any, batch_size: int | None) -> Any:
    if isinstance(like, dict):
        return {str(name): _placeholders(each, batch_size) for name, each in like.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType, reportUnknownMemberType]
    tensor = convert_to_tensor(like)
    dims = None if tensor.dims is None else [batch_size, *tensor.dims[1:]]
    return arrays.placeholder(tensor.dtype.base_dtype, dims, name=tensor.op.name.rpartition("/")[2])


# Exporters ------------------------------------------------------------------------------------------------------------


class Exporter:
    """Base of exporters, which export a model after an evaluation; subclasses implement `name` and `export`."""

    @property
    def name(self) -> str:
        """Name of the folder of its exports."""
        raise NotImplementedError

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: object,
        is_the_final_export: bool,
    ) -> Any:
        """Exports the model if due; `train_and_evaluate` passes on the result."""
        raise NotImplementedError


class _SavedModelExporter(Exporter):
    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: Mapping[str, str] | None,
        as_text: bool,
        exports_to_keep: int | None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be positive number")
        self._name = name
        self._receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._keep = exports_to_keep

    @property
    def name(self) -> str:
        return self._name

    def _export(self, estimator: Estimator, export_path: str, checkpoint_path: str | None) -> bytes:
        result = estimator.export_saved_model(
            export_path, self._receiver_fn, self._assets_extra, self._as_text, checkpoint_path
        )
        if self._keep is not None:
            there = sorted((name for name in files.listdir(export_path) if name.isdigit()), key=int)
            for name in there[: -self._keep]:
                files.rmtree(os.path.join(export_path, name))
        return result


class FinalExporter(_SavedModelExporter):
    """Exports once, at the end."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, None)

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: object,
        is_the_final_export: bool,
    ) -> bytes | None:
        del eval_result
        return self._export(estimator, export_path, checkpoint_path) if is_the_final_export else None


class LatestExporter(_SavedModelExporter):
    """Exports after every evaluation, and keeps the newest."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: object,
        is_the_final_export: bool,
    ) -> bytes:
        del eval_result, is_the_final_export
        return self._export(estimator, export_path, checkpoint_path)


def _loss_smaller(best_eval_result: Mapping[str, float], current_eval_result: Mapping[str, Any]) -> bool:
    return current_eval_result["loss"] < best_eval_result["loss"]


class BestExporter(_SavedModelExporter):
    """Exports after an evaluation that is better than all earlier evaluations, including earlier processes'.

    Args:
      event_file_pattern: event files in the estimator's folder with the results of earlier processes.
      compare_fn: ``f(best_eval_result, current_eval_result)`` returns whether the latter is better; by default
        whether its loss is smaller.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self._compare = compare_fn
        self._event_file_pattern = event_file_pattern
        self._looked_in = ""
        self._best: Any = None

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> bytes | None:
        del is_the_final_export
        if self._event_file_pattern and self._looked_in != estimator.model_dir:
            self._looked_in = estimator.model_dir
            self._best = self._best_before(eval_result)
        if self._best is not None and not self._compare(best_eval_result=self._best, current_eval_result=eval_result):
            return None
        self._best = eval_result
        return self._export(estimator, export_path, checkpoint_path)

    def _best_before(self, now: Mapping[str, float]) -> Any:
        """Returns the best result in the event files of steps before the step of ``now``; None without any."""
        best = None
        for path in files.glob(os.path.join(glob.escape(self._looked_in), self._event_file_pattern)):
            try:
                for event in summary_iterator(path):
                    values = {each.tag: each.simple_value for each in event.summary.value if _is_number(each)}
                    if not values or event.step >= now["global_step"]:
                        continue
                    if best is None or self._compare(best_eval_result=best, current_eval_result=values):
                        best = values
            except DataLossError as error:  # as of an evaluator that was killed while it wrote
                _logger.warning("Only the results before the damage are used: %s", error.message)
        return best


def _is_number(value: Any) -> bool:
    return value.HasField("simple_value")


def timestamped(base: str) -> str:
    """Returns the path of a new folder in ``base``, named after the seconds since 1970.

    The newest has the highest number, also when the clock was set back meanwhile.
    """
    there = [int(name) for name in files.listdir(base) if name.isdigit()] if files.isdir(base) else []
    seconds = max([int(time.time()), *(number + 1 for number in there)])
    return os.path.join(base, str(seconds))
