"""`Scaffold`: the operations that a training session needs besides the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tf1.functional.control_flow import group
from headwater.tf1.training.accounted import require_accounted
from headwater.tf1.training.saver import Saver
from headwater.tf1.variables.variable_lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.types import FeedDict, OpOrTensor, SessionLike, Structure


class Scaffold:
    """Initialisers, readiness, summaries and saver of a graph.

    `finalize` takes omitted parts from the graph's collection of the same name, or else makes them.

    Args:
      init_op: initialises the model.
      init_feed_dict: values to feed to ``init_op``.
      init_fn: ``init_fn(scaffold, session)``, called after ``init_op``.
      ready_op: computes the names of variables without a value.
      ready_for_local_init_op: computes the names of variables without a value that ``local_init_op`` needs.
      local_init_op: initialises the state that belongs to this task, in every session.
      summary_op: computes all summaries.
      saver: saves and restores.
      copy_from_scaffold: a scaffold whose parts are used if they are omitted here.
      local_init_feed_dict: values to feed to ``local_init_op``.
    """

    def __init__(
        self,
        init_op: OpOrTensor | None = None,
        init_feed_dict: FeedDict | None = None,
        init_fn: Callable[[Scaffold, SessionLike], object] | None = None,
        ready_op: OpOrTensor | None = None,
        ready_for_local_init_op: OpOrTensor | None = None,
        local_init_op: OpOrTensor | None = None,
        summary_op: OpOrTensor | None = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: FeedDict | None = None,
    ) -> None:
        other = copy_from_scaffold
        if other is not None and not isinstance(other, Scaffold):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def choose(given: Structure, name: str) -> Any:
            return given if given is not None or other is None else getattr(other, name)

        self._user_init_fn = choose(init_fn, "_user_init_fn")
        self.init_op: Any = choose(init_op, "init_op")
        self.init_feed_dict: Any = choose(init_feed_dict, "init_feed_dict")
        self.ready_op: Any = choose(ready_op, "ready_op")
        self.ready_for_local_init_op: Any = choose(ready_for_local_init_op, "ready_for_local_init_op")
        self.local_init_op: Any = choose(local_init_op, "local_init_op")
        self.local_init_feed_dict: Any = choose(local_init_feed_dict, "local_init_feed_dict")
        self.summary_op: Any = choose(summary_op, "summary_op")
        self.saver: Any = choose(saver, "saver")

    def finalize(self) -> Scaffold:
        """Creates omitted parts, and finalizes the graph; idempotent."""
        graph = get_default_graph()
        require_accounted(graph)
        get = self.get_or_default
        if self.init_op is None:
            self.init_op = get("init_op", GraphKeys.INIT_OP, global_variables_initializer)
        if self.ready_op is None:
            self.ready_op = get("ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        if self.ready_for_local_init_op is None:
            self.ready_for_local_init_op = get(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(
                    global_variables(), name="report_uninitialized_variables_for_local_init"
                ),
            )
        if self.local_init_op is None:
            self.local_init_op = get("local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op)
        if self.summary_op is None:
            self.summary_op = get("summary_op", GraphKeys.SUMMARY_OP, merged_summaries)
        if self.saver is None:
            self.saver = get("saver", GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True))
        self.saver.build()
        graph.finalize()
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], object]) -> Any:
        """Returns the collection's only item, or a new one, which is added to the collection.

        Raises:
          RuntimeError: the collection has several.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which one to use by passing '
                f"it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """An operation that initialises local variables and tables."""
        return group(local_variables_initializer(), *get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS))

    @property
    def init_fn(self) -> Callable[[object], object] | None:
        """``f(session)``, to be called after ``init_op``."""
        user = self._user_init_fn
        return None if user is None else lambda sess: user(self, sess)


def merged_summaries() -> Tensor | None:
    """All summaries of the default graph as one; None if there are none."""
    graph = get_default_graph()
    summaries = graph.get_collection(GraphKeys.SUMMARIES)
    if not summaries:
        return None
    with graph.name_scope("Merge"):
        return graph.create_op("MergeSummary", summaries).outputs[0]
