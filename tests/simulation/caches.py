"""Caches shared by all histories: plans of equal graphs, and executables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import headwater.graph.master.master
import headwater.graph.runtime.compile
import headwater.graph.runtime.programs
import headwater.tf1.training.saving_hooks
from headwater.graph.passes.place import Placer
from headwater.graph.passes.plan import Compute
from tests.simulation.scheduler import running


@functools.cache
def share() -> None:
    """Enables the caches: from now on, this process creates each plan and executable only once."""
    _share_plans()
    _share_executables()
    saving: Any = headwater.tf1.training.saving_hooks
    saving.write_graph = lambda *args, **kwargs: None  # it writes the graph as a text file, which no history reads


def _share_plans() -> None:
    """Shares plans among graphs with an equal attribute ``same_as``."""
    master: Any = headwater.graph.master.master
    prune, partition, schedule, join = master.prune, master.partition, master.schedule, master.join_lookups
    placed, read_finally = master.MasterSession._place, master.read_finally
    made: dict[Any, Any] = {}

    class Later:
        """A request that is planned lazily, only if the cache has no plan for it."""

        def __init__(self, request: Any) -> None:
            self.request = request
            self.session: Any = None
            self.pruned = self

        def plans(self) -> Any:
            session, request = self.session, self.request
            names = [[item.name for item in part] for part in (request.fetches, request.feeds, request.targets)]
            found = session.devices()
            devices = [device.name() for device in found]
            key = repr((session.graph.same_as, session.graph.version, session.runtime.task, names, devices))
            if key not in made:
                # Not the session's own placer: its lock would add scheduling points to histories that miss the cache.
                placer = Placer(found, soft_placement=session.options.soft_placement)
                with running().apart():
                    pruned = prune(request)
                    placement = placer.place(pruned)
                    # Cached plans have the fetches of the request, which this pass would change.
                    assert read_finally(placement, session.runtime.task) is placement, names
                    made[key] = join(schedule(partition(placement)), pruned)
            return made[key]

    def place(session: Any, pruned: Any) -> Any:
        if not isinstance(pruned, Later):
            return placed(session, pruned)
        pruned.session = session
        if not hasattr(session.graph, "same_as"):
            return placed(session, prune(pruned.request))
        session.devices()
        return pruned

    master.prune = Later
    master.MasterSession._place = place
    master.read_finally = lambda placement, task: (
        placement if isinstance(placement, Later) else read_finally(placement, task)
    )
    master.partition = lambda placement: placement if isinstance(placement, Later) else partition(placement)
    master.join_lookups = lambda plans, pruned: plans if isinstance(pruned, Later) else join(plans, pruned)
    master.schedule = lambda parts: parts.plans() if isinstance(parts, Later) else schedule(parts)


def _share_executables() -> None:
    executable: Any = headwater.graph.runtime.compile.Executable
    build = executable._build
    built: dict[Any, Any] = {}
    known: dict[int, tuple[Compute, str]] = {}

    def shared(self: Any, static: Mapping[str, Any], shapes: object) -> Any:
        if self._random:
            return build(self, static, shapes)
        compute: Compute = self._compute
        if known.get(id(compute), (None,))[0] is not compute:
            known[id(compute)] = compute, repr(compute)
        fixed = tuple((value.tobytes(), value.shape, value.dtype) for value in static.values())
        key = known[id(compute)][1], fixed, shapes
        if key not in built:
            with running().apart():
                built[key] = build(self, static, shapes)
        return built[key]

    executable._build = shared
    program: Any = headwater.graph.runtime.programs.Program
    compile_one = program.compile

    def compile_apart(self: Any, *arrays: Any) -> None:
        # A history that finds the executable in the cache has no scheduling points here. With `apart`, a history that
        # has to create the executable has none either. So both histories are the same.
        with running().apart():
            compile_one(self, *arrays)

    program.compile = compile_apart
