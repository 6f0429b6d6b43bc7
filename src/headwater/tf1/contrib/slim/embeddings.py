"""Lookups of embeddings, and sparse tensors of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.dtypes import int64
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.graph.types import TensorLike
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.utils import collect_named_outputs
from headwater.tf1.contrib.slim.variables import model_variable
from headwater.tf1.functional import arrays, indexing, math, reductions, searching
from headwater.tf1.variables import embedding
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.types import Reuse


def embedding_lookup_unique(
    params: object, ids: TensorLike, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """Like `tf.nn.embedding_lookup`, but looks up each distinct id once."""
    with name_scope(name, "EmbeddingLookupUnique", [ids]):
        ids = convert_to_tensor(ids)
        distinct, places = searching.unique(arrays.reshape(ids, [-1]))
        rows = embedding.embedding_lookup(params, distinct, partition_strategy)
        shape = arrays.concat([arrays.shape(ids), arrays.shape(rows)[1:]], 0)
        found = arrays.reshape(indexing.gather(rows, places), shape)
        found.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return found


def bow_encoder(
    ids: Tensor | SparseTensor,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: object = None,
    regularizer: object = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """Returns the mean embedding of the words of each document.

    Args:
      ids: numbers of words, [documents, words]; 0 is padding if ``sparse_lookup`` is true.
      vocab_size: number of words.
      embed_dim: length of an embedding.
      sparse_lookup: ignore padding.
      initializer, regularizer, trainable, scope, reuse: see `headwater.tf1.contrib.slim.layers`.

    Raises:
      ValueError: a size is 0.
      TypeError: ``ids`` are sparse, and ``sparse_lookup`` is false.
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        table = model_variable(
            "embeddings", [vocab_size, embed_dim], initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        if sparse_lookup:
            sparse = ids if isinstance(ids, SparseTensor) else dense_to_sparse(ids)
            return embedding.safe_embedding_lookup_sparse([table], sparse, combiner="mean", default_id=0)
        if isinstance(ids, SparseTensor):
            raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
        return reductions.reduce_mean(embedding.embedding_lookup(table, ids), axis=1)


@add_arg_scope
def dense_to_sparse(
    tensor: TensorLike,
    eos_token: int = 0,
    outputs_collections: Sequence[str] | None = None,
    scope: str | VariableScope | None = None,
) -> SparseTensor:
    """Returns the elements that differ from ``eos_token`` as a sparse tensor."""
    with variable_scope(scope, "dense_to_sparse", [tensor]) as entered:
        tensor = convert_to_tensor(tensor)
        places = indexing.where(math.not_equal(tensor, constant(eos_token, tensor.dtype)))
        shape = arrays.shape(tensor, out_type=int64)
        outputs = SparseTensor(places, indexing.gather_nd(tensor, places), shape)
        return collect_named_outputs(outputs_collections, entered.name, outputs)
