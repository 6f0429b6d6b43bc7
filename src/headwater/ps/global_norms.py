"""Norms over all leaves of a tree whose leaves are on several ``ps``, as for `optax.clip_by_global_norm`.

While an optimizer's update is traced, optax's norm of a tree is replaced by a function that returns the norm over all
``ps``. The sum of squares for it is an argument of the compiled update. If each gradient is an update by itself, the
worker has the whole gradient: it computes the sum and sends it with the gradient. In rounds, the ``ps`` compute the sum
together; see `headwater.ps.round_sums`.

optax exports the norm under several names; each of them is in `_NAMES`.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    import optax


_jax: Any = jax
_jnp: Any = _jax.numpy
_tree: Any = _jax.tree_util

#: Places where optax exports its norm of a tree: modules and names in them.
_NAMES = (
    ("optax.tree", "norm"),
    ("optax.tree_utils", "tree_norm"),
    ("optax", "global_norm"),
    ("optax._src.linear_algebra", "global_norm"),
)

_lock = threading.Lock()


class SumsError(ValueError):
    """An optimizer uses norms over all leaves in a way that several ``ps`` cannot share."""


class _Enough(Exception):
    """Ends the trace of an update: the requested sum has been found."""


@contextmanager
def norms_from(norm: Callable[[Any], object]) -> Generator[None]:
    """Replaces optax's norm of a tree by ``norm`` within the context. One thread at a time."""

    def replaced(tree: object, ord: object = None, squared: bool = False) -> object:
        if ord not in (None, 2):
            raise SumsError(f"the optimizer uses a norm of order {ord!r} over all leaves, which requires a single ps")
        total = norm(tree)
        return total if squared else _jnp.sqrt(total)

    # optax's functions are replaced for the whole process.
    with _lock:
        known = _NAMES if importlib.util.find_spec("optax") is not None else ()
        places = [(importlib.import_module(module), name) for module, name in known]
        originals = [(module, name, getattr(module, name)) for module, name in places if hasattr(module, name)]
        try:
            for module, name, _ in originals:
                setattr(module, name, replaced)
            yield
        finally:
            for module, name, original in originals:
                setattr(module, name, original)


def squares(tree: object) -> Any:
    """Returns the sum of the squares of all numbers in a tree."""
    leaves = [_jnp.sum(_jnp.square(_jnp.abs(leaf))) for leaf in _tree.tree_leaves(tree)]
    return sum(leaves, _jnp.float32(0))


def find_sums(optimizer: optax.GradientTransformation, params: object) -> int:
    """Returns the number of norms over all leaves that an update of ``optimizer`` computes.

    Args:
      optimizer: an optimizer of optax.
      params: a tree whose leaves have shapes and types.
    """
    trees: list[Any] = []

    def noted(tree: object) -> object:
        trees.append(tree)
        return squares(tree)

    # A new function each time: JAX does not trace again a function that it has traced with another norm.
    def update(gradients: Any, state: Any, params: Any) -> Any:
        return optimizer.update(gradients, state, params)

    with norms_from(noted):
        state = _jax.eval_shape(optimizer.init, params)
        trees.clear()  # norms of the initialization do not count
        _jax.eval_shape(update, params, state, params)
    return len(trees)


def sums_of_gradients(optimizer: optax.GradientTransformation, params: object) -> Callable[[Any], Any]:
    """Returns a function that computes, from a tree of gradients, the sum of squares for an update.

    Raises:
      SumsError: the norm depends on more than the gradients, or there are several norms.
    """
    if find_sums(optimizer, params) > 1:
        raise SumsError(
            "the optimizer computes several norms over all leaves, such as clip_by_global_norm twice, and with "
            "several ps "
            "only one is supported: use a single ps"
        )
    state = _jax.eval_shape(optimizer.init, params)

    def first_sum(gradients: Any, state: Any, params: Any) -> object:
        sums: list[Any] = []

        def noted(tree: object) -> object:
            sums.append(squares(tree))
            raise _Enough  # skip the rest of the update

        with norms_from(noted):
            try:
                optimizer.update(gradients, state, params)
            except _Enough:
                return sums[0]
        raise SumsError("the optimizer's norm over all leaves was not found again")

    def checked(gradients: object) -> object:
        return first_sum(gradients, *_tree.tree_map(_no_numbers, (state, params)))

    compiled: Callable[[Any], Any] = _jax.jit(checked)
    # A sum that depends on the state or the parameters, which are NaN here, is NaN.
    try:
        total = float(compiled(_tree.tree_map(_zeros, params)))
    except _jax.errors.UnexpectedTracerError:
        total = float("nan")
    if total != total:
        raise SumsError(
            "the optimizer computes a norm over all leaves that depends on more than the gradients, which a worker "
            "does "
            "not have: put clip_by_global_norm first in the chain, or use a single ps"
        )
    return compiled


def _zeros(leaf: Any) -> object:
    return _jnp.zeros(leaf.shape, leaf.dtype)


def _no_numbers(leaf: Any) -> object:
    """Placeholder for arguments that a sum of gradients must not use: NaN would show in the sum."""
    real = _jnp.issubdtype(leaf.dtype, _jnp.inexact)
    return _jnp.full(leaf.shape, _jnp.nan if real else 0, leaf.dtype)
