"""Dependencies of an optimizer's update of one leaf on other leaves and on other rows of the leaf.

A ``ps`` has only some leaves, or some rows of a leaf. If an update combines leaves (as Prodigy's estimate of the rate)
or rows of a leaf (as Lamb's norm), a ``ps`` would compute it from a part of its inputs: the result would be wrong,
without an error. The dependencies are read from the traced update, so they are known for any optimizer before training
starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from headwater.ps.global_norms import norms_from
from headwater.ps.layout import DEFAULT_PARTITIONER, Layout, Partitioner, VariableSpec, make_layout

if TYPE_CHECKING:
    import optax

_jax: Any = jax
_tree: Any = _jax.tree_util
#: Primitives that compute each element from the elements at the same place.
_ELEMENTWISE = frozenset({
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "convert_element_type", "copy", "cos", "cosh", "div",
    "eq", "erf", "erf_inv", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag", "integer_pow", "is_finite", "le",
    "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "nextafter", "not", "or", "pow", "real",
    "rem", "round", "rsqrt", "select_n", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan",
    "tanh", "xor",
})  # fmt: skip

#: Primitives that draw random numbers.
_RANDOM = frozenset({"random_bits", "random_gamma", "rng_bit_generator", "threefry2x32"})


class Sources(NamedTuple):
    """The leaves from which a value is computed, each as a bit of a number.

    Attributes:
      leaves: all of them.
      combined: the leaves of which other rows contribute to a row of the value, too.
    """

    leaves: int = 0
    combined: int = 0

    def combines_rows(self, leaf: int) -> bool:
        """Returns whether rows of a leaf contribute to other rows of the value."""
        return bool(self.combined >> leaf & 1)

    def __or__(self, other: Sources) -> Sources:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Sources(self.leaves | other.leaves, self.combined | other.combined)


_NONE = Sources()


def make_leaf_layout(
    optimizer: optax.GradientTransformation,
    params: object,
    specs: Sequence[VariableSpec],
    tasks: int,
    partitioner: Partitioner | None,
    *,
    finite: bool,
) -> Layout:
    """Divides leaves among ``tasks`` tasks; a leaf whose rows are combined by its update is not split.

    Args:
      optimizer: an optimizer of optax.
      params: a tree whose leaves have shapes and types.
      specs: the leaves as variables.
      tasks: how many ``ps`` or shards there are.
      partitioner: chooses the leaves to split.
      finite: whether all gradients are finite, so that a test for finite numbers has a known result.

    Raises:
      ValueError: the update of a leaf uses leaves of another task (the message names both leaves); or the optimizer
        draws random numbers; or it cannot handle a tree with None in place of leaves.
    """
    chosen = partitioner or DEFAULT_PARTITIONER
    if tasks == 1:
        return make_layout(specs, tasks, chosen)
    sources = find_dependencies(optimizer, params, finite=finite)
    whole = {spec.name for number, spec in enumerate(specs) if sources[number].combines_rows(number)}
    layout = make_layout(specs, tasks, lambda spec: 1 if spec.name in whole else chosen(spec))
    homes: list[set[int]] = [set() for _ in specs]
    for task, blocks in enumerate(layout.blocks):
        for block in blocks:
            homes[block.variable].add(task)
    for number, source in enumerate(sources):
        for other, spec in enumerate(specs):
            if source.leaves >> other & 1 and other != number and len(homes[number] | homes[other]) > 1:
                raise ValueError(
                    f"the optimizer computes the update of params{specs[number].name} also from params{spec.name}, and "
                    f"with {tasks} ps or shards these may be on different ps: use a single ps, or an optimizer that "
                    "updates each leaf by itself"
                )
    _require_partial_trees(optimizer, params, layout)
    return layout


def _require_partial_trees(optimizer: optax.GradientTransformation, params: object, layout: Layout) -> None:
    """Checks that each task can initialize the optimizer with None in place of the leaves of other tasks.

    Raises:
      ValueError: it cannot.
    """
    leaves, structure = _tree.tree_flatten(params)
    for task, blocks in enumerate(layout.blocks):
        own = {block.variable for block in blocks}
        part = _tree.tree_unflatten(structure, [leaf if at in own else None for at, leaf in enumerate(leaves)])
        try:
            _jax.eval_shape(optimizer.init, part)
        except Exception as error:
            raise ValueError(
                f"the optimizer cannot be divided among {len(layout.blocks)} ps or shards, because it fails with the "
                f"leaves of number {task} alone ({type(error).__name__}: {error}): use a single ps"
            ) from error


def find_dependencies(optimizer: optax.GradientTransformation, params: object, *, finite: bool) -> list[Sources]:
    """Returns the sources of the update of each leaf; norms over all leaves, which all ``ps`` get, do not count.

    Args:
      optimizer: an optimizer of optax.
      params: a tree whose leaves have shapes and types.
      finite: whether all gradients are finite.
    """

    def update(gradients: object, state: object, params: object) -> object:
        with norms_from(lambda _: _jax.numpy.float32(1)):
            return optimizer.update(gradients, state, params)  # pyright: ignore[reportArgumentType]

    own = _each_by_itself(params)
    initial = _jaxpr_sources(_jax.make_jaxpr(optimizer.init)(params).jaxpr, own, finite)
    return sources_of_update(update, params, _jax.eval_shape(optimizer.init, params), initial, finite=finite)


def sources_of_update(
    update: Callable[..., object],
    params: object,
    state: object,
    initial: Sequence[Sources] | None = None,
    *,
    finite: bool = False,
) -> list[Sources]:
    """Returns the sources of the first results of ``update``, one for each leaf of ``params``.

    Args:
      update: a function of gradients, state and parameters. It returns the new parameters (or their changes) and the
          new state.
      params, state: a tree whose leaves have shapes and types.
      initial: the sources of the initial state; none unless given.
      finite: whether all gradients are finite, so that a test for finite numbers has a known result.
    """
    own = _each_by_itself(params)
    state_sources = [_NONE] * len(_tree.tree_leaves(state)) if initial is None else list(initial)
    step = _jax.make_jaxpr(update)(params, state, params).jaxpr
    # The sources of the state accumulate over updates, until a further update adds none.
    while True:
        sources = _jaxpr_sources(step, [*own, *state_sources, *own], finite)
        after = [before | new for before, new in zip(state_sources, sources[len(own) :], strict=True)]
        if after == state_sources:
            return sources[: len(own)]
        state_sources = after


def _each_by_itself(params: object) -> list[Sources]:
    return [Sources(leaves=1 << number) for number in range(len(_tree.tree_leaves(params)))]


def _jaxpr_sources(jaxpr: Jaxpr, inputs: Sequence[Sources], finite: bool) -> list[Sources]:
    """Returns the sources of the outputs of a traced function."""
    known: dict[Var, Sources] = dict(zip(jaxpr.invars, inputs, strict=True))

    def of(variable: Var | Literal) -> Sources:
        return _NONE if isinstance(variable, Literal) else known.get(variable, _NONE)

    for equation in jaxpr.eqns:
        sources = [of(variable) for variable in equation.invars]
        known.update(zip(equation.outvars, _equation_sources(equation, sources, finite), strict=True))
    return [of(variable) for variable in jaxpr.outvars]


def _equation_sources(equation: JaxprEqn, sources: Sequence[Sources], finite: bool) -> list[Sources]:
    name, parameters = equation.primitive.name, equation.params
    if name in _RANDOM:
        # optax draws the numbers of a leaf according to its position among the leaves that are there.
        raise ValueError(
            "the optimizer draws random numbers, which would repeat on each of several ps or shards: use a single ps"
        )
    if name == "is_finite" and finite:
        return [_NONE]
    if name == "cond":
        index, *operands = sources
        # A row of the result depends on the condition, which is computed from any rows.
        chosen = Sources(index.leaves, index.leaves)
        branches = [_jaxpr_sources(branch.jaxpr, operands, finite) for branch in parameters["branches"]]
        return [chosen | _union(outputs) for outputs in zip(*branches, strict=True)]
    inner = parameters.get("jaxpr", parameters.get("call_jaxpr"))
    if inner is not None and name not in ("scan", "while"):
        return _jaxpr_sources(getattr(inner, "jaxpr", inner), sources, finite)
    return [
        _union(
            source if _keeps_rows(equation, variable, output) else Sources(source.leaves, source.leaves)
            for variable, source in zip(equation.invars, sources, strict=True)
        )
        for output in equation.outvars
    ]


def _union(sources: Iterable[Sources]) -> Sources:
    """Returns the union of ``sources``."""
    total = _NONE
    for source in sources:
        total |= source
    return total


def _keeps_rows(equation: JaxprEqn, variable: Any, output: Any) -> bool:
    """Returns whether each row of ``output`` is computed from the same row of ``variable`` only."""
    shape, result = variable.aval.shape, output.aval.shape
    name, parameters = equation.primitive.name, equation.params
    if not shape:
        return True
    if name.startswith("reduce_") and "axes" in parameters:
        return 0 not in parameters["axes"]
    if name == "broadcast_in_dim" and parameters["broadcast_dimensions"][:1] != (0,):
        return False
    return result[:1] == shape[:1] and (name in _ELEMENTWISE or name in ("broadcast_in_dim", "reshape"))
