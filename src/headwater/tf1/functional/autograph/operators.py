"""Implementations of Python's statements and operators in converted functions.

The parts of a statement are passed as functions; they assign variables of the enclosing function, which ``get_state``
and ``set_state`` read and write. If the condition is not a tensor, a statement behaves as in Python.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from headwater.tf1.functional import arrays, nest
from headwater.tf1.functional.autograph.internals import Undefined, UndefinedReturnValue
from headwater.tf1.functional.autograph.staging import Staging, staging_of

if TYPE_CHECKING:
    from headwater.graph.types import Structure

    _Get = Callable[[], tuple[Structure, ...]]
    _Set = Callable[[tuple[Structure, ...]], object]


def _is_undefined(value: object) -> bool:
    return isinstance(value, Undefined | UndefinedReturnValue)


def _can_be_tensor(staging: Staging, leaf: Structure) -> bool:
    if staging.is_tensor(leaf):
        return True
    if leaf is None or _is_undefined(leaf) or callable(leaf):
        return False
    try:
        staging.convert(leaf)
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


# Conditions -----------------------------------------------------------------------------------------------------


def if_stmt(
    cond: Structure,
    body: Callable[[], object],
    orelse: Callable[[], object],
    get_state: _Get,
    set_state: _Set,
    symbol_names: Sequence[str],
    nouts: int,
) -> None:
    """``if cond: body() else: orelse()``.

    Args:
      symbol_names: names that a branch sets; names that are used later come first.
      nouts: number of names that are used later.

    Raises:
      ValueError: a name that is used later has a value after one branch only, or values that cannot be one tensor.
    """
    staging = staging_of(cond)
    if staging is None:
        if cond:
            body()
        else:
            orelse()
        return
    before = get_state()

    def branch(run: Callable[[], object]) -> Callable[[], Sequence[Structure]]:
        def values() -> Sequence[Structure]:
            set_state(before)
            run()
            return get_state()[:nouts]

        return values

    try:
        found = _choose(staging, cond, branch(body), branch(orelse), symbol_names)
    except BaseException:
        set_state(before)
        raise
    set_state((*found, *before[nouts:]))


def if_exp(cond: Structure, if_true: Callable[[], object], if_false: Callable[[], object], expr_repr: str) -> Structure:
    """``if_true() if cond else if_false()``."""
    staging = staging_of(cond)
    if staging is None:
        return if_true() if cond else if_false()
    return _choose(staging, cond, lambda: [if_true()], lambda: [if_false()], [f"the value of ... if {expr_repr}"])[0]


def _choose(
    staging: Staging,
    pred: object,
    yes: Callable[[], Sequence[Structure]],
    no: Callable[[], Sequence[Structure]],
    names: Sequence[str],
) -> list[Structure]:
    """Returns the values of ``yes()`` or of ``no()``; values that differ become tensors."""
    sides: list[Sequence[Structure]] = []

    def branch(values: Callable[[], Sequence[Structure]]) -> Callable[[], list[Structure]]:
        def tensors() -> list[Structure]:
            side = values()
            sides.append(side)
            if len(sides) == 2:
                for name, first, second in zip(names, *sides, strict=False):
                    _check_alike(staging, name, first, second)
            return [
                staging.convert(leaf) if _can_be_tensor(staging, leaf) else staging.convert(0)
                for leaf in nest.flatten(list(side))
            ]

        return tensors

    results = iter(staging.cond(pred, branch(yes), branch(no)))
    firsts, seconds = (nest.flatten(list(side)) for side in sides)
    leaves = [
        first if first is second or (_is_undefined(first) and _is_undefined(second)) else result
        for first, second, result in zip(firsts, seconds, results, strict=True)
    ]
    return nest.pack(list(sides[0]), leaves)


def _check_alike(staging: Staging, name: str, first: Structure, second: Structure) -> None:
    """Raises ValueError if tensors cannot represent a variable's different values after two branches."""
    for one, other, which in ((first, second, "main"), (second, first, "else")):
        if _is_undefined(one) and not _is_undefined(other):
            if name.startswith("retval"):
                raise ValueError(
                    f"the {which} branch must also have a return statement: a tensor decides which one runs"
                )
            raise ValueError(
                f"{name!r} must also be initialized in the {which} branch: a tensor decides which one runs"
            )
    if not nest.same_structure(first, second):
        raise ValueError(f"{name!r} does not have the same nested structure in the branches: {first!r}, {second!r}")
    for one, other in zip(nest.flatten(first), nest.flatten(second), strict=True):
        if one is other or (_is_undefined(one) and _is_undefined(other)):
            continue
        for leaf, which in ((one, "main"), (other, "else")):
            if not _can_be_tensor(staging, leaf):
                raise ValueError(
                    f"{name!r} is {leaf!r} at the end of the {which} branch, which cannot be converted to a tensor"
                )


# Loops ----------------------------------------------------------------------------------------------------------


def while_stmt(
    test: Callable[[], Structure],
    body: Callable[[], object],
    get_state: _Get,
    set_state: _Set,
    symbol_names: Sequence[str],
    opts: dict[str, Structure],
) -> None:
    """Runs ``while test(): body()``.

    Raises:
      ValueError: a variable has no value before the loop, but needs one, or changes its type.
    """
    holds = test()
    staging = staging_of(holds)
    if staging is None:
        while holds:
            body()
            holds = test()
        return
    loop = _Loop(staging, get_state, set_state, symbol_names)
    loop.run(lambda _: test(), lambda _: body(), opts)


def for_stmt(
    iter_: Structure,
    extra_test: Callable[[], Structure] | None,
    body: Callable[[object], object],
    get_state: _Get,
    set_state: _Set,
    symbol_names: Sequence[str],
    opts: dict[str, Structure],
) -> None:
    """Runs ``for item in iter_: body(item)`` while ``extra_test()`` is true."""
    staging = staging_of(iter_)
    if staging is None:
        _python_for(iter_, extra_test, body)
        return
    count, one = staging.size(iter_), staging.convert(1)
    options = {name: value for name, value in opts.items() if name != "iterate_names"}
    if extra_test is None:
        options["turns"] = count

    def test(index: Structure) -> object:
        more = index < count
        return more if extra_test is None else and_(lambda: more, extra_test)

    def turn(index: Structure) -> object:
        body(staging.item(iter_, index))
        return index + one

    _Loop(staging, get_state, set_state, symbol_names).run(test, turn, options, counter=staging.convert(0))


def _python_for(
    items: Iterable[object], extra_test: Callable[[], object] | None, body: Callable[[object], object]
) -> None:
    if extra_test is not None and not extra_test():
        return
    for item in items:
        body(item)
        if extra_test is not None and not extra_test():
            break


@dataclass(slots=True)
class _Loop:
    """A loop over tensors.

    Attributes:
      staging: the kind of tensors.
      get_state, set_state: read and write the variables that an iteration assigns.
      names: these names.
    """

    staging: Staging
    get_state: _Get
    set_state: _Set
    names: Sequence[str]

    def run(
        self,
        test: Callable[[Structure], object],
        turn: Callable[[Structure], object],
        options: dict[str, Structure],
        counter: object = None,
    ) -> None:
        """Runs the loop; ``test`` and ``turn`` take a counter, if there is one, and ``turn`` returns its next value."""
        first = self.get_state()
        if any(map(_is_undefined, nest.flatten(list(first)))):
            first = self._initialize(turn, first, counter, options)
        leaves = nest.flatten(list(first))
        moving = [at for at, leaf in enumerate(leaves) if _can_be_tensor(self.staging, leaf)]
        owners = [name for name, value in zip(self.names, first, strict=True) for _ in nest.flatten([value])]

        def set_loop_values(values: Sequence[Structure]) -> Structure:
            now = list(leaves)
            for at, value in zip(moving, values, strict=False):
                now[at] = value
            self.set_state(tuple(nest.pack(list(first), now)))
            return values[-1]

        def condition(values: Sequence[Structure]) -> object:
            return test(set_loop_values(values))

        def after(values: Sequence[Structure]) -> list[Structure]:
            following = turn(set_loop_values(values))
            found = self._checked(first, leaves, set(moving))
            return [*(self.staging.convert(found[at]) for at in moving), values[-1] if counter is None else following]

        start = [self.staging.convert(leaves[at]) for at in moving]
        start.append(self.staging.convert(0) if counter is None else counter)
        try:
            results = self.staging.while_loop(condition, after, start, [*(owners[at] for at in moving), ""], options)
        except BaseException:
            self.set_state(first)
            raise
        set_loop_values(results)

    def _checked(self, first: Sequence[Structure], leaves: Sequence[Structure], moving: set[int]) -> list[Structure]:
        """Returns the leaves of the state after an iteration; ValueError if their kinds have changed."""
        now = self.get_state()
        for name, before, after in zip(self.names, first, now, strict=True):
            if not nest.same_structure(before, after):
                raise ValueError(
                    f"{name!r} does not have the same nested structure after one iteration of the loop: before it is "
                    f"{before!r}, after it {after!r}"
                )
        found = nest.flatten(list(now))
        for at, (before, after) in enumerate(zip(leaves, found, strict=True)):
            if at in moving:
                if after is None or _is_undefined(after):
                    raise ValueError(f"A name of the loop is {before!r} before it and {after!r} after one iteration")
            elif after is not before and not _is_undefined(after):
                raise ValueError(
                    f"A name that the loop changes is {before!r} before it and {after!r} after one iteration: give it "
                    "a tensor before the loop"
                )
        return found

    def _initialize(
        self,
        turn: Callable[[Structure], object],
        first: tuple[Structure, ...],
        counter: object,
        options: dict[str, Structure],
    ) -> tuple[Structure, ...]:
        """Returns the state with zeros for variables first assigned in an iteration."""
        made: list[Structure] = []

        def values() -> list[Structure]:
            self.set_state(first)
            turn(counter)
            made[:] = [after for before, after in zip(first, self.get_state(), strict=True) if _is_undefined(before)]
            return [self.staging.convert(leaf) for leaf in nest.flatten(made) if _can_be_tensor(self.staging, leaf)]

        zeros = iter(self.staging.specs(values, options))

        def zero_for(leaf: Structure) -> Structure:
            return next(zeros) if _can_be_tensor(self.staging, leaf) else leaf

        begun = iter(nest.map_structure(zero_for, made))
        self.set_state(first)
        return tuple(next(begun) if _is_undefined(value) else value for value in first)


# Operators ------------------------------------------------------------------------------------------------------


def and_(first: Callable[[], Structure], second: Callable[[], Structure]) -> Structure:
    """``first() and second()``."""
    value = first()
    staging = staging_of(value)
    if staging is None:
        return value and second()
    return staging.cond(value, lambda: [staging.convert(second())], lambda: [staging.convert(value)])[0]


def or_(first: Callable[[], Structure], second: Callable[[], Structure]) -> Structure:
    """``first() or second()``."""
    value = first()
    staging = staging_of(value)
    if staging is None:
        return value or second()
    return staging.cond(value, lambda: [staging.convert(value)], lambda: [staging.convert(second())])[0]


def not_(value: object) -> Structure:
    """``not value``."""
    staging = staging_of(value)
    return not value if staging is None else staging.logical_not(value)


# Functions of Python's ------------------------------------------------------------------------------------------


def built_in(function: Callable[..., Structure]) -> Callable[..., Structure]:
    """Returns the replacement, for tensors, of a built-in function of Python or of ``tf.range``."""
    if inspect.unwrap(function) is arrays.range:
        return functools.partial(_tensor_range, function)
    return _BUILT_IN.get(id(function), function)


def _tensor_range(function: Callable[..., Structure], *limits: object, **more: object) -> Structure:
    """Returns ``tf.range``; if its length is unknown while tracing, a lazy object to loop over instead."""
    staging = staging_of(*limits)
    lazy = staging is not None and staging.lazy_ranges and not more
    return staging.range(*limits) if staging is not None and lazy else function(*limits, **more)


def _range(*limits: object) -> Structure:
    staging, kind = staging_of(*limits), cast("Structure", range)
    return kind(*limits) if staging is None else staging.range(*limits)


def _len(value: Structure) -> Structure:
    staging = staging_of(value)
    return len(value) if staging is None else staging.size(value)


def _int(*args: Structure, **kwargs: Structure) -> Structure:
    staging, kind = staging_of(*args[:1]), cast("Structure", int)
    return kind(*args, **kwargs) if staging is None else staging.number(args[0], int)


def _float(*args: Structure) -> Structure:
    staging = staging_of(*args[:1])
    return float(*args) if staging is None else staging.number(args[0], float)


_BUILT_IN: dict[int, Callable[..., Structure]] = {id(range): _range, id(len): _len, id(int): _int, id(float): _float}
