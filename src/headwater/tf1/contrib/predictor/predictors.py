"""Predictors: functions from arrays by name to arrays by name, with a session that stays open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.graph import Graph
from headwater.graph.session.session import Session
from headwater.tf1.training import saved_model
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.specs import ModeKeys
from headwater.tf1.training.monitored_session import ChiefSessionCreator, MonitoredSession

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.tensorboard_protos import ConfigProto, SignatureDef


class Predictor:
    """Predicts by a graph.

    Args:
      session: a session of the graph, with values of its variables.
      feeds, fetches: names of input and output tensors, by the keys of arguments and results.

    Attributes:
      feed_tensors, fetch_tensors: the input and output tensors by key.
    """

    def __init__(
        self, graph: Graph, session: Session | MonitoredSession, feeds: Mapping[str, str], fetches: Mapping[str, str]
    ) -> None:
        self.graph = graph
        self.session = session
        self.feed_tensors: dict[str, Tensor] = {key: graph.get_tensor_by_name(name) for key, name in feeds.items()}
        self.fetch_tensors: dict[str, Tensor] = {key: graph.get_tensor_by_name(name) for key, name in fetches.items()}

    def __repr__(self) -> str:
        return f"{type(self).__name__} with feed tensors {self.feed_tensors} and fetch_tensors {self.fetch_tensors}"

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the outputs for these inputs; an input may be missing or None.

        Raises:
          ValueError: a key is not the key of an input.
        """
        unexpected = set(input_dict) - set(self.feed_tensors)
        if unexpected:
            raise ValueError(
                f"Got unexpected keys in input_dict: {sorted(unexpected)}; expected: {sorted(self.feed_tensors)}"
            )
        feeds = {self.feed_tensors[key]: value for key, value in input_dict.items() if value is not None}
        return self.session.run(self.fetch_tensors, feeds)


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: SignatureDef | None = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
) -> Predictor:
    """Loads a saved model.

    Args:
      export_dir: the model's folder.
      signature_def_key: the signature; ``"serving_default"`` if None.
      signature_def: a signature, in place of one of the model.
      input_names, output_names: names of tensors by key, in place of a signature.
      tags: tags of the model, separated by commas; ``"serve"`` if None.
      graph: the graph to which the model is added; another one if None.
      config: of the session.

    Raises:
      ValueError: the model has no such signature, or more than one of the alternatives is given.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be unspecified.")
    if sum(given is not None for given in (signature_def_key, signature_def, input_names)) > 1:
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR (input_names AND output_names)."
        )
    graph = graph or Graph()
    with graph.as_default():
        session = Session(config=config)
        loaded = saved_model.load(session, (tags or saved_model.SERVING).split(","), export_dir)
    if input_names is None or output_names is None:
        found = signature_def or _signature(loaded.signature_def, signature_def_key, export_dir)
        return Predictor(graph, session, *_names(found))
    return Predictor(graph, session, input_names, output_names)


def _signature(signatures: Mapping[str, SignatureDef], key: str | None, export_dir: str) -> SignatureDef:
    key = key or saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    for name in (key, f"default_input_alternative:{key}"):
        if name in signatures:
            return signatures[name]
    raise ValueError(f'Got signature_def_key "{key}". Available signatures of {export_dir} are {sorted(signatures)}.')


def _names(signature: SignatureDef) -> tuple[dict[str, str], dict[str, str]]:
    inputs, outputs = (
        {key: str(info.name) for key, info in part.items()} for part in (signature.inputs, signature.outputs)
    )
    return inputs, outputs


def from_estimator(
    estimator: Estimator,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
) -> Predictor:
    """Creates a predictor of an estimator's newest checkpoint.

    Args:
      serving_input_receiver_fn: returns a `ServingInputReceiver`.
      output_key: which of the model's ``export_outputs``; ``"serving_default"`` if None.
      graph: the graph to which the model is added; another one if None.
      config: of the session.

    Raises:
      TypeError: ``estimator`` is not an `Estimator`.
      KeyError: the model has no such output.
    """
    if not isinstance(estimator, Estimator):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"Expected estimator to be of type tf.estimator.Estimator, but got {type(estimator).__name__}")
    graph = graph or Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        spec = estimator.model_fn(receiver.features, None, ModeKeys.PREDICT, estimator.config)
        outputs = dict(spec.export_outputs or {})
        output = outputs.get(output_key or saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY)
        if output is None:
            raise KeyError(f"output_key must be one of {sorted(outputs)}; got {output_key}")
        signature = output.as_signature_def(receiver.receiver_tensors)
        session = MonitoredSession(ChiefSessionCreator(config=config, checkpoint_dir=estimator.model_dir))
    return Predictor(graph, session, *_names(signature))
