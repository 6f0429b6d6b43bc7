"""Finds the ids that each embedding layer gets from a batch.

Ids are integers of 64 bits or strings. JAX has no strings, and by default no integers of more than 32 bits, so ids are
not passed to compiled steps. Suppose an input of the model reaches embedding layers only through changes of shape
(slices, reshapes, concatenations). Then the step gets *codes* instead of the input: the elements of all such inputs are
numbered 0, 1, 2 …. The codes at each layer, and so the layer's ids, depend only on shapes, so the model need not run to
determine them. An input that the model computes with is passed unchanged, and must fit into 32 bits. A separate
executable computes the ids of layers that depend on such an input.

Two more kinds of inputs always become codes. An input of `headwater.keras.embeddings.bags.Bags` has one code for each
row, which stands for all ids of the row. Weights of pooled ids become codes of the same type as the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import jax
import keras
import numpy as np
from jax.interpreters import partial_eval

from headwater.errors import InvalidArgumentError
from headwater.keras.embeddings.bags import Bags, as_leaf, expand
from headwater.keras.embeddings.calls import noting
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_partial = partial_eval
_tree = keras.tree

#: Operations that move elements without changing them. `_GATHERING_PRIMITIVES` select elements by indices, which a
#: model may have computed.
_MOVES: Final = frozenset(
    {"reshape", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "split", "concatenate", "stack", "unstack"}
    | {"transpose", "tile", "rev", "copy"}
)
_GATHERING_PRIMITIVES: Final = frozenset({"gather", "dynamic_slice"})
_CALLS: Final = frozenset({"pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remote"})
_INT32: Final = np.iinfo(np.int32)
#: Codes of weights are float32, which represents all integers up to this one exactly.
_EXACT: Final = 1 << 24


#: Returns the values of a model's trainable variables without its tables, and the values of its other variables.
Values = Callable[[], tuple[Sequence[Any], Sequence[Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """The elements for which codes stand.

    Attributes:
      values: elements of one type, [n].
      offsets: the start of the elements of each code, and the end of the last one, [codes + 1]; None if each code
        stands for one element.
    """

    values: Array
    offsets: Any

    @property
    def codes(self) -> int:
        """Number of codes."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def elements(self, codes: Array) -> tuple[Array, Array | None]:
        """Returns the elements of some codes, and the offsets of each code among them, or None."""
        if self.offsets is None:
            return self.values[codes], None
        if len(codes) == self.codes and bool(np.all(codes == np.arange(self.codes))):
            return self.values, self.offsets
        places, offsets = expand(self.offsets, codes)
        return self.values[places], offsets


@dataclass(frozen=True, kw_only=True, slots=True)
class Coded:
    """Inputs of a step, with codes in place of ids.

    Attributes:
      x: the model's inputs.
      pools: integers, strings and real numbers by code. Codes of strings follow the codes of integers.
      key: a value that is equal for batches of equal shapes and types.
      plan: how each input is encoded.
    """

    x: Tree
    pools: tuple[Pool, Pool, Pool]
    key: object
    plan: Plan

    @property
    def codes(self) -> int:
        """The number of codes of ids."""
        return self.pools[0].codes + self.pools[1].codes


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The encoding of a model's inputs.

    Attributes:
      coded: numbers of the inputs that are replaced by codes.
      layers: for each embedding layer, whether its inputs are codes.
      fixed: whether the codes at each layer depend only on the shapes of the inputs.
    """

    coded: frozenset[int]
    layers: tuple[bool, ...]
    fixed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Ids:
    """The ids of a layer in a batch.

    Attributes:
      ids: all ids of the layer, [n].
      codes: the codes of these ids, [codes]; None if the layer's inputs are ids.
      shapes: the shape of the codes or ids in each call of the layer.
      offsets: the start of the ids of each code, and the end of the last one, [codes + 1]; None if a code is one id.
      weights: the weights of the ids, [n], or None.
    """

    ids: Array
    codes: Array | None
    shapes: tuple[tuple[int, ...], ...]
    offsets: Array | None = None
    weights: Array | None = None

    def place(self, at: int) -> str:
        """Formats the position in a batch of the id number ``at``, for messages."""
        for shape in self.shapes:
            size = int(np.prod(shape))
            if at < size:
                return str(tuple(int(place) for place in np.unravel_index(at, shape)))
            at -= size
        raise IndexError(at)


class IdFinder:
    """Finds the ids of a model's embedding layers.

    Args:
      model: a built Keras model.
      layers: its embedding layers, which support `headwater.keras.embeddings.calls.noting`.
      tables: variables that the model reads through ``layers`` only.
    """

    def __init__(self, model: Any, layers: Sequence[keras.Layer], tables: Sequence[keras.Layer] = ()) -> None:
        self._model = model
        self._layers = layers
        self._tables = [id(variable) for variable in tables]
        self._plans: dict[object, Plan] = {}
        self._fixed: dict[object, list[list[tuple[Array, Array | None]]]] = {}
        self._note: Any = jax.jit(self._noted)

    def code(self, x: Tree) -> Coded:
        """Encodes a model's inputs for a step.

        Raises:
          InvalidArgumentError: the model computes with an input that has a number of more than 32 bits.
          ValueError: the model computes with strings, or passes both codes and ids to one layer.
        """
        leaves = [_as_input(leaf) for leaf in _tree.flatten(x)]
        types = tuple(None if leaf is None else (str(leaf.dtype), _rank(leaf)) for leaf in leaves)
        plan = self._plans.get(types)
        if plan is None:
            plan = self._plans[types] = self._plan(x, leaves)
        pools: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        starts = [0, sum(leaves[at].size for at in plan.coded if _pool_of(leaves[at]) == 0), 0]
        coded: list[Any] = []
        for at, leaf in enumerate(leaves):
            if at in plan.coded:
                kind = _pool_of(leaf)
                pools[kind].append(leaf)
                codes = np.arange(
                    starts[kind], starts[kind] + leaf.size, dtype=np.float32 if kind == _REALS else np.int32
                )
                starts[kind] += leaf.size
                coded.append(codes.reshape(leaf.shape))
            else:
                coded.append(_small(leaf, at) if _may_hold_ids(leaf) else leaf)
        if starts[_REALS] > _EXACT:
            raise InvalidArgumentError(
                f"a batch has {starts[_REALS]} weights of ids, more than {_EXACT}: use smaller batches"
            )
        shapes = tuple(None if leaf is None else tuple(leaf.shape) for leaf in coded)
        return Coded(
            x=_tree.pack_sequence_as(x, coded),
            pools=(_pool(pools[0], np.int64), _pool(pools[1], np.str_), _pool(pools[2], np.float32)),
            key=(types, shapes),
            plan=plan,
        )

    def find(self, values: Values, batch: Coded) -> list[Ids]:
        """Returns the ids of each layer.

        Args:
          values: returns the values of the trainable variables without tables, and of the other variables.
          batch: a result of `code`.
        """
        plan = batch.plan
        if plan.fixed:
            noted = self._fixed.get(batch.key)
            if noted is None:
                noted = self._fixed[batch.key] = self._run(values, batch)
        else:
            noted = self._run(values, batch)
        ids_of_layers: list[Ids] = []
        for layer, coded, calls in zip(self._layers, plan.layers, noted, strict=True):
            shapes = tuple(array.shape for array, _ in calls)
            flat = _flat([array for array, _ in calls], np.int32)
            if not coded:
                weights = _weights(calls, batch, layer, None)
                ids_of_layers.append(Ids(ids=flat, codes=None, shapes=shapes, weights=weights))
                continue
            integers, strings, _ = batch.pools
            kinds = (
                set((flat >= integers.codes).tolist()) if strings.codes and integers.codes else {bool(strings.codes)}
            )
            if len(kinds) > 1:
                raise ValueError(f"layer {layer.name!r} is given both whole numbers and strings")
            ids, offsets = strings.elements(flat - integers.codes) if True in kinds else integers.elements(flat)
            weights = _weights(calls, batch, layer, offsets)
            ids_of_layers.append(Ids(ids=ids, codes=flat, shapes=shapes, offsets=offsets, weights=weights))
        return ids_of_layers

    def _run(self, values: Values, batch: Coded) -> list[list[tuple[Array, Array | None]]]:
        return [
            [(np.asarray(ids), None if weights is None else np.asarray(weights)) for ids, weights in calls]
            for calls in self._note(*values(), batch.x)
        ]

    def _noted(self, dense: Sequence[jax.Array], others: Sequence[jax.Array], x: Tree) -> list[list[tuple[Any, Any]]]:
        return self._call(self.trainable(dense), others, x)[0]

    def trainable(self, dense: Sequence[object]) -> list[Any]:
        """Values of all trainable variables for tracing; tables are zeros, since nothing reads their values."""
        rest = iter(dense)
        return [
            jax.numpy.zeros(variable.shape, variable.dtype) if id(variable) in self._tables else next(rest)
            for variable in self._model.trainable_variables
        ]

    def _call(self, trainable: object, others: object, x: Tree) -> tuple[list[list[tuple[Any, Any]]], object]:
        model = self._model
        training: dict[str, bool] = {"training": True} if model._call_has_training_arg else {}
        with noting(self._layers) as noted:
            rest = model.stateless_call(trainable, others, x, return_losses=True, **training)
        return [noted[id(layer)] for layer in self._layers], rest

    # Planning ---------------------------------------------------------------------------------------------------------

    def _plan(self, x: Tree, leaves: Sequence[Any]) -> Plan:
        model = self._model
        trainable, others = (_abstract(group) for group in (model.trainable_variables, model.non_trainable_variables))
        at_leaf = [at for at, leaf in enumerate(leaves) if leaf is not None]

        def call(trainable: Sequence[jax.Array], others: Sequence[jax.Array], coded_leaves: Sequence[Tree]) -> Tree:
            flat: list[object] = [None] * len(leaves)
            for at, leaf in zip(at_leaf, coded_leaves, strict=True):
                flat[at] = leaf
            return self._call(trainable, others, _tree.pack_sequence_as(x, flat))

        closed, shape = jax.make_jaxpr(call, return_shape=True)(
            trainable, others, [_abstract_leaf(leaves[at]) for at in at_leaf]
        )
        calls_of: list[list[tuple[Any, Any]]] = shape[0]
        noted = len(jax.tree_util.tree_leaves(calls_of))
        jaxpr, used = _partial.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        used_variables = iter(jaxpr.invars)
        variables = [next(used_variables) if uses else None for uses in used]
        first = len(variables) - len(at_leaf)
        inputs = {at: variables[first + n] for n, at in enumerate(at_leaf)}
        weighted = any(weights is not None for calls in calls_of for _, weights in calls)
        candidates = {at for at in at_leaf if _may_hold_ids(leaves[at]) or _is_bags(leaves[at]) or weighted}
        while True:
            flow = _Flow()
            begin = {inputs[at]: frozenset((at,)) for at in candidates if inputs[at] is not None}
            outs = flow.follow(jaxpr, begin)
            for taint in outs[noted:]:
                flow.computed(taint, "the model's output")
            if not flow.failed:
                break
            for at, what in flow.failed.items():
                if _is_bags(leaves[at]):
                    raise ValueError(
                        f"input {at} of {model.name!r} holds bags of any number of elements, which only a "
                        f"DynamicEmbedding with a combiner takes, but the model uses them for {what}"
                    )
                if _pool_of(leaves[at]) == 1:
                    raise ValueError(
                        f"input {at} of {model.name!r} holds strings, which only embedding layers take, but the model "
                        f"uses them for {what}"
                    )
            candidates -= flow.failed.keys()
        layers: list[bool] = []
        taints = iter(outs)
        for layer, calls in zip(self._layers, calls_of, strict=True):
            coded: list[bool] = []
            for _, weights in calls:
                taint = next(taints)
                coded.append(bool(taint))
                if getattr(layer, "combiner", None) is None and any(_is_bags(leaves[at]) for at in taint):
                    raise ValueError(f"layer {layer.name!r} needs a combiner for bags of any number of ids")
                if weights is not None and not next(taints):
                    raise ValueError(
                        f"layer {layer.name!r}: weights must be an input of the model that is used unchanged, and only "
                        "as weights: compute the weights in the data"
                    )
            if len(set(coded)) > 1:
                raise ValueError(
                    f"layer {layer.name!r} is given inputs of the model in one place and computed ids in another; use "
                    "two layers"
                )
            layers.append(bool(coded) and coded[0])
        return Plan(coded=frozenset(candidates), layers=tuple(layers), fixed=all(layers) and not flow.picked)


class _Flow:
    """Follows inputs through the jaxpr of a step.

    Attributes:
      failed: by input, the first operation that computes with the input.
      picked: whether the step picks elements by indices.
    """

    def __init__(self) -> None:
        self.failed: dict[int, str] = {}
        self.picked = False

    def computed(self, taint: frozenset[int], what: str) -> None:
        for at in taint:
            self.failed.setdefault(at, what)

    def follow(self, jaxpr: Any, begin: Mapping[Any, frozenset[int]]) -> list[frozenset[int]]:
        """Returns the inputs that each output depends on."""
        nothing: frozenset[int] = frozenset()
        of: dict[object, frozenset[int]] = dict(begin)

        def taint_of(atom: object) -> frozenset[int]:
            return nothing if hasattr(atom, "val") else of.get(atom, nothing)

        for eqn in jaxpr.eqns:
            taints = [taint_of(atom) for atom in eqn.invars]
            every = nothing.union(*taints)
            if not every:
                continue
            name = eqn.primitive.name
            inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
            if name in _MOVES and all(taints):
                results = [every] * len(eqn.outvars)
            elif name in _GATHERING_PRIMITIVES and not nothing.union(*taints[1:]):
                self.picked = True
                results = [every] * len(eqn.outvars)
            elif name in _CALLS and inner is not None:
                inner = getattr(inner, "jaxpr", inner)
                results = self.follow(inner, dict(zip(inner.invars, taints, strict=True)))
            else:
                self.computed(every, f"{name!r}")
                results = [nothing] * len(eqn.outvars)
            of.update(zip(eqn.outvars, results, strict=True))
        return [taint_of(atom) for atom in jaxpr.outvars]


def stand_in(x: Tree) -> Any:
    """Returns inputs with the shapes of ``x``, of types that JAX supports, to build a model."""

    def stand_in_of(leaf: Tree) -> Any:
        if _may_hold_ids(leaf):
            return np.zeros(leaf.shape if _is_bags(leaf) else np.shape(leaf), np.int32)
        return np.zeros(leaf.shape, np.float32) if _is_bags(leaf) else leaf

    return _tree.map_structure(stand_in_of, x)


def _may_hold_ids(leaf: Tree) -> bool:
    """Returns whether an input may hold ids: whole numbers or strings."""
    if leaf is None:
        return False
    dtype = getattr(leaf, "dtype", None)
    kind = np.asarray(leaf).dtype.kind if dtype is None else np.dtype(dtype).kind
    return kind in "iuOSUT"


#: The positions of the pool of strings and of the pool of real numbers in `Coded.pools`.
_STRINGS, _REALS = 1, 2


def _pool_of(leaf: Tree) -> int:
    """Returns the position in `Coded.pools` of the pool of an input's elements."""
    return {"i": 0, "u": 0, "b": 0, "f": _REALS}.get(leaf.dtype.kind, _STRINGS)


def _is_bags(leaf: object) -> bool:
    return isinstance(leaf, Bags)


def _as_input(leaf: object) -> Any:
    leaf = as_leaf(leaf)
    return np.asarray(leaf) if not _is_bags(leaf) and _may_hold_ids(leaf) else leaf


def _rank(leaf: Tree) -> int:
    """Returns the number of dimensions of an input; 0 for bags."""
    return 0 if _is_bags(leaf) else np.ndim(leaf)


def _flat(arrays: Sequence[Array], dtype: Any) -> Array:
    return np.concatenate([array.reshape(-1) for array in arrays]) if arrays else np.empty(0, dtype)


def _weights(
    calls: Sequence[tuple[Array, Array | None]], batch: Coded, layer: keras.Layer, offsets: Array | None
) -> Array | None:
    """Returns the weights of a layer's ids; 1 for the ids of calls without weights.

    Args:
      calls: for each call of the layer, its ids or their codes, and the codes of its weights or None.
      offsets: the start of the ids of each code, and the end of the last one, or None.

    Raises:
      InvalidArgumentError: a row has more or fewer weights than ids.
    """
    if all(weights is None for _, weights in calls):
        return None
    parts: list[Array] = []
    start = 0
    for ids, codes in calls:
        sizes = np.ones(ids.size, np.int64)
        if offsets is not None:
            sizes = np.diff(offsets[start : start + ids.size + 1])
        start += ids.size
        if codes is None:
            parts.append(np.ones(int(sizes.sum()), np.float32))
            continue
        pool = batch.pools[_REALS if codes.dtype.kind == "f" else 0]
        values, bounds = pool.elements(codes.reshape(-1).astype(np.int64))
        counts = np.ones(codes.size, np.int64) if bounds is None else np.diff(bounds)
        if not np.array_equal(counts, sizes):
            at = int(np.flatnonzero(counts != sizes)[0])
            raise InvalidArgumentError(
                f"layer {layer.name!r}: the bag at {at} has {int(sizes[at])} ids and {int(counts[at])} weights"
            )
        parts.append(values.astype(np.float32, copy=False))
    return np.concatenate(parts)


def _small(leaf: Array, at: int) -> Array:
    if leaf.dtype.itemsize <= 4 and leaf.dtype != np.uint32:
        return leaf
    if leaf.size and not (_INT32.min <= int(leaf.min()) and int(leaf.max()) <= _INT32.max):
        raise InvalidArgumentError(
            f"input {at}: the model computes with it in 32 bits, and {int(leaf.max())} or {int(leaf.min())} does not "
            "fit. Ids of 64 bits must reach their embedding layer unchanged"
        )
    return leaf.astype(np.int32)


def _pool(inputs: Sequence[Any], dtype: object) -> Pool:
    """Joins inputs to one pool, with elements of type ``dtype`` unless they are strings."""
    pieces = [leaf.values if _is_bags(leaf) else leaf.reshape(-1) for leaf in inputs]
    if dtype is not np.str_:
        pieces = [piece.astype(dtype, copy=False) for piece in pieces]
    values = _flat(pieces, dtype)
    if not any(map(_is_bags, inputs)):
        return Pool(values=values, offsets=None)
    sizes = [np.diff(leaf.offsets) if _is_bags(leaf) else np.ones(leaf.size, np.int64) for leaf in inputs]
    return Pool(values=values, offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))]))


def _abstract(variables: Sequence[keras.Variable]) -> list[object]:
    return [jax.ShapeDtypeStruct(tuple(variable.shape), variable.dtype) for variable in variables]


def _abstract_leaf(leaf: Tree) -> object:
    if _is_bags(leaf):
        return jax.ShapeDtypeStruct(leaf.shape, np.float32 if _pool_of(leaf) == _REALS else np.int32)
    if _may_hold_ids(leaf):
        return jax.ShapeDtypeStruct(np.shape(leaf), np.int32)
    return jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.canonicalize_dtype(leaf.dtype))
