"""Steps in parts (``Session.partial_run``): several calls feed and fetch parts of one step, in which each operation
runs once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.dtypes import resource, variant
from headwater.errors import InvalidArgumentError, UnimplementedError
from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.prune import RunRequest, dependencies

_numbers: Final = itertools.count(1)

#: Operations whose results need not be passed to later parts: they may run in each part, with the same result, or their
#: result refers to state.
_RENEWED: Final = frozenset({"Const", "Placeholder", "VariableV2", "NoOp"})


class PartialRun:
    """One step in parts. Each part runs as a separate step, to which results of earlier parts are fed, so that no
    operation runs twice.

    Args:
      fetches: all tensors that any part will fetch.
      feeds: all tensors that any part will feed.

    Attributes:
      handle: name of the step.

    Raises:
      InvalidArgumentError: there is nothing to fetch.
    """

    def __init__(self, fetches: Sequence[Tensor], feeds: Sequence[Tensor]) -> None:
        if not fetches:
            raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
        self.handle: str = f"{'->'.join(','.join(t.name for t in some) for some in (feeds, fetches))};{next(_numbers)}"
        self._fetches = dict.fromkeys(fetches)
        self._feeds = dict.fromkeys(feeds)
        self._fed: dict[Tensor, object] = {}
        self._done: set[Operation] = set()
        self._found: dict[Tensor, object] = {}
        self._fetched: set[Tensor] = set()
        self._needs = _needed(fetches, set(feeds))

    @property
    def is_over(self) -> bool:
        """Whether everything has been fed and fetched."""
        return len(self._fetched) == len(self._fetches) and len(self._fed) == len(self._feeds)

    def next_part(
        self, fetches: Sequence[Tensor], feeds: Mapping[Tensor, object]
    ) -> tuple[RunRequest, list[object]] | None:
        """Returns the request of the next part and the arrays for its feeds; None if there is nothing to compute.

        Args:
          fetches: the tensors that the part fetches.
          feeds: the tensors that the part feeds, with arrays.

        Raises:
          InvalidArgumentError: a tensor was fed or fetched already, or was not announced, or ``fetches`` need a
            placeholder that was not fed.
          UnimplementedError: this part depends on an operation that an earlier part has run and that has no outputs. It
            would run twice, because no feed can replace it.
        """
        self._check(fetches, feeds)
        self._fed.update(feeds)
        if not fetches:
            return None
        known = {**self._found, **self._fed}
        missing = {tensor for tensor in self._feeds if tensor not in known}
        now = _needed(fetches, known)
        for op in now:
            if any(tensor in missing for tensor in op.outputs):
                raise InvalidArgumentError(
                    f"Fetch {op.outputs[0].name} can't be computed from the feeds that have been fed so far."
                )
        for op in now & self._done:
            if not op.outputs and op.type != "NoOp":
                raise UnimplementedError(
                    None, op, f"partial_run would run {op.name!r} ({op.type}), of an earlier part, again; fetch it last"
                )
        self._done |= now
        wanted = dict.fromkeys([*fetches, *self._tensors_for_later_parts(now, known)])
        taken = {tensor for op in now for tensor in op.inputs}
        taken |= {tensor for op in now for before in op.control_inputs for tensor in before.outputs}
        used = [tensor for tensor in known if tensor in taken]
        return RunRequest(tuple(wanted), tuple(used)), [known[tensor] for tensor in used]

    def finish(self, request: RunRequest | None, fetches: Sequence[Tensor], values: Sequence[object]) -> list[Any]:
        """Records the results of ``request``; returns the values of ``fetches``."""
        given = dict(zip(request.fetches if request else (), values, strict=True))
        self._found.update({tensor: value for tensor, value in given.items() if tensor.op.type not in _RENEWED})
        self._fetched.update(fetches)
        return [given[tensor] for tensor in fetches]

    def _check(self, fetches: Sequence[Tensor], feeds: Mapping[Tensor, object]) -> None:
        for what, some, announced, before in (
            ("feed", feeds, self._feeds, self._fed),
            ("fetch", fetches, self._fetches, self._fetched),
        ):
            for tensor in some:
                if tensor not in announced:
                    raise InvalidArgumentError(f"The {what} {tensor.name} was not specified in partial_run_setup.")
                if tensor in before:
                    done = {"feed": "fed", "fetch": "fetched"}[what]
                    raise InvalidArgumentError(f"The {what} {tensor.name} has already been {done}.")

    def _tensors_for_later_parts(self, now: set[Operation], known: Mapping[Tensor, object]) -> list[Tensor]:
        """Returns the tensors computed in this part that later parts need."""
        later = self._needs - self._done
        found: list[Tensor] = [tensor for tensor in self._fetches if tensor not in self._fetched and tensor.op in now]
        for op in later:
            found += [tensor for tensor in op.inputs if tensor.op in now]
            found += [tensor for before in op.control_inputs if before in now for tensor in before.outputs]
        return [
            tensor
            for tensor in found
            if tensor not in known
            and tensor.op.type not in _RENEWED
            and tensor.dtype.base_dtype not in (resource, variant)
        ]


def _needed(fetches: Sequence[Tensor], fed: Mapping[Tensor, object] | set[Tensor]) -> set[Operation]:
    """Returns the operations that ``fetches`` need, given the fed tensors."""
    given = set(fed)
    stack = [tensor.op for tensor in fetches if tensor not in given]
    found: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack.extend(before for before in dependencies(op, given) if not _is_known(before, given))
    return found


def _is_known(op: Operation, given: set[Tensor]) -> bool:
    return bool(op.outputs) and all(tensor in given for tensor in op.outputs)
