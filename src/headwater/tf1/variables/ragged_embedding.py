"""Rows of embedding tables for ragged row numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.graph.sparse_tensor import SparseTensor
from headwater.tf1.functional.ragged_tensor import RaggedTensor, as_ragged_or_tensor, map_flat_values
from headwater.tf1.variables import embedding

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike


def embedding_lookup(params: object, ids: SparseLike, *args: Any, **kwargs: Any) -> Any:
    """Returns the rows ``ids`` of a table, in ragged rows like those of ``ids``."""

    def rows(flat: Any) -> Any:
        return embedding.embedding_lookup(params, flat, *args, **kwargs)

    return map_flat_values(rows, ids)


def embedding_lookup_sparse(
    params: object, sp_ids: object, sp_weights: object = None, *args: Any, **kwargs: Any
) -> Any:
    """Combines, for each row of ragged row numbers, these rows of a table into one vector."""
    return embedding.embedding_lookup_sparse(params, _sparse(sp_ids), _sparse(sp_weights), *args, **kwargs)


def safe_embedding_lookup_sparse(
    embedding_weights: object, sparse_ids: object, sparse_weights: object = None, *args: Any, **kwargs: Any
) -> Any:
    """Like `embedding_lookup_sparse`, but accepts empty rows and invalid ids and weights."""
    found = _sparse(sparse_ids), _sparse(sparse_weights)
    return embedding.safe_embedding_lookup_sparse(embedding_weights, *found, *args, **kwargs)


def _sparse(value: object) -> Any:
    ragged = value if value is None or isinstance(value, SparseTensor) else as_ragged_or_tensor(value)
    return ragged.to_sparse() if isinstance(ragged, RaggedTensor) else ragged
