"""Lookup layers as operations of an exported function, with their vocabularies as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headwater.dtypes import int64, string
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant
from headwater.graph.operation import Tensor
from headwater.graph.registry import HostFunction
from headwater.graph.resources.lookup_tables import Table
from headwater.keras.types import Tree
from headwater.tf1.functional import arrays, checks, indexing, math, reductions
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.sparse import sparse_tensor_to_dense
from headwater.tf1.functional.strings import regex_replace, string_split_v2

_TABLES = ("headwater", "tables")
"""Key of the collection by which a graph keeps its tables alive."""
_PUNCTUATION = r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""


def table_in_graph(held: HostFunction, name: str = "table") -> Tensor:
    """Returns the handle, in the default graph, of the table that ``held`` returns."""
    return get_default_graph().create_op("HeldTable", [], {"token": held.token}, name).outputs[0]


def find(entries: Mapping[Tree, Tree], keys: Tensor, default: Tree) -> Tensor:
    """Returns the entry of each key, or ``default``."""
    kind = string if isinstance(default, str | bytes) else int64
    table = Table("vocabulary", keys.dtype.base_dtype, kind, fixed=True)
    table.fill(_column(entries), _column(entries.values()))
    held = HostFunction(lambda: table)
    graph = get_default_graph()
    graph.get_collection_ref(_TABLES).append(held)
    handle = table_in_graph(held, "vocabulary")
    return graph.create_op("LookupTableFindV2", [handle, keys, constant(default, kind)], {}).outputs[0]


def _column(values: Tree) -> Tree:
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    return np.array(encoded, object if encoded and isinstance(encoded[0], bytes) else np.int64)


def hash_bins(values: Tensor, bins: int, salt: Sequence[int] | None) -> Tensor:
    """Returns the bin of each value by its text."""
    if values.dtype.base_dtype != string:
        values = one("AsString", math.cast(values, int64) if values.dtype.is_floating else values)
    if salt is None:
        return one("StringToHashBucketFast", values, num_buckets=bins)
    return one("StringToHashBucketStrong", values, num_buckets=bins, key=tuple(salt))


def hashed(layer: Tree, values: Tensor) -> Tensor:
    """Returns the numbers of the layer `Hashing`."""
    if layer.mask_value is None or layer.num_bins == 1:
        return hash_bins(values, layer.num_bins, layer.salt)
    mask = layer.mask_value if values.dtype.base_dtype != string else str(layer.mask_value)
    bins = hash_bins(values, layer.num_bins - 1, layer.salt) + 1
    return indexing.where(math.equal(values, mask), arrays.zeros_like(bins), bins)


def numbers(layer: Tree, values: Tensor, places: Mapping[Tree, int], first_unknown: int) -> Tensor:
    """Returns the numbers of the tokens ``values``.

    Args:
      places: the number of each token.
      first_unknown: the number of unknown tokens, or the first of them.
    """
    if values.dtype.base_dtype != string:
        values = math.cast(values, int64)
    entries = dict(places)
    if layer.mask_token is not None:
        # In modes other than int, masked values are ignored.
        entries[layer.mask_token] = 0 if layer.output_mode == "int" else np.iinfo(np.int64).max
    indices = find(entries, values, -1)
    unknown = math.equal(indices, -1)
    if not layer.num_oov_indices:
        message = f"{layer.name} has num_oov_indices=0 and got tokens that are not in its vocabulary"
        with control_dependencies([checks.Assert(math.logical_not(reductions.reduce_any(unknown)), [message])]):
            return arrays.identity(indices)
    bins = arrays.zeros_like(indices) + first_unknown
    if layer.num_oov_indices > 1:
        if getattr(layer, "oov_method", "") == "floormod":
            bins += math.floormod(values, layer.num_oov_indices)
        else:
            bins += hash_bins(values, layer.num_oov_indices, layer.salt)
    return indexing.where(unknown, bins, indices)


def tokens(layer: Tree, values: Tensor, listed: Sequence[Tree]) -> Tensor:
    """Returns the tokens with the numbers ``values``."""
    return find(dict(enumerate(listed)), math.cast(values, int64), layer.oov_token)


def encode(layer: Tree, indices: Tensor, depth: int, weights: Tree) -> Tensor:
    """Returns the numbers of each sample as one vector; with ``one_hot`` each number. See `HostLayer`."""
    encoded = indexing.one_hot(indices, depth)
    if layer.output_mode == "one_hot":
        return encoded
    if layer.output_mode == "multi_hot":
        return reductions.reduce_max(encoded, axis=-2)
    counts = reductions.reduce_sum(encoded, axis=-2)
    return counts if weights is None else counts * constant(weights)


def words(layer: Tree, texts: Tree) -> Tree:
    """Returns the words of each text of the layer `TextVectorization`; missing words are empty.

    Raises:
      NotImplementedError: n-grams, characters or ragged results, which cannot be exported.
    """
    refused = {"ngrams": layer.ngrams, "split='character'": layer.split == "character", "ragged=True": layer.ragged}
    for what, is_set in refused.items():
        if is_set:
            raise NotImplementedError(f"{layer.name}: {what} cannot be exported")
    if texts.dims is not None and len(texts.dims) > 1:
        texts = arrays.squeeze(texts, [-1])
    if callable(layer.standardize):
        texts = layer.standardize(texts)
    elif layer.standardize is not None:
        if "lower" in layer.standardize:
            texts = one("StringLower", texts)
        if "strip_punctuation" in layer.standardize:
            texts = regex_replace(texts, _PUNCTUATION, "")
    if callable(layer.split):
        rows: Tree = layer.split(texts)
        return rows.to_tensor(default_value="")
    if layer.split is None:
        return arrays.expand_dims(texts, -1)
    return sparse_tensor_to_dense(string_split_v2(texts), default_value="")


def cut(numbers: Tensor, length: int | None) -> Tensor:
    """Returns rows with ``length`` numbers: cut, or padded with zeros; unchanged if it is None."""
    if length is None:
        return numbers
    numbers = numbers[:, :length]
    missing = length - arrays.shape(numbers)[1]
    padded = arrays.pad(numbers, arrays.stack([constant([0, 0]), arrays.stack([constant(0), missing])]))
    padded.set_shape([numbers.shape[0], length])
    return padded
