"""Base of feature columns, and the features of a batch, which columns transform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from headwater import dtypes
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, math
from headwater.tf1.functional.sparse import SparseTensor, convert_to_tensor_or_sparse_tensor

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike

ColumnsLike: TypeAlias = "Column | Iterable[Column]"
"""One column, or several."""


class IdWeightPair(NamedTuple):
    """The category indices of a batch, one row per example, and their weights (None: all 1)."""

    id_tensor: SparseTensor
    weight_tensor: SparseTensor | None


class Features:
    """The features of a batch, with a cache of columns' transformations.

    Args:
      features: tensors by their keys.
    """

    def __init__(self, features: Mapping[str, SparseLike]) -> None:
        self._features = features
        self._made: dict[object, object] = {}

    def get(self, column: Any) -> Any:
        """Returns the transformation by ``column``; for a key the feature, with vectors expanded to matrices.

        Raises:
          ValueError: ``column`` is a key without a feature.
        """
        if column not in self._made:
            self._made[column] = self._raw(column) if isinstance(column, str) else column.transform(self)
        return self._made[column]

    def _raw(self, key: str) -> SparseTensor | Tensor:
        if key not in self._features:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        tensor = convert_to_tensor_or_sparse_tensor(self._features[key])
        if isinstance(tensor, Tensor) and tensor.dims is not None and len(tensor.dims) == 1:
            return arrays.expand_dims(tensor, -1)
        return tensor


class Column:
    """Base of all columns. Columns are frozen and compared by their settings.

    `name` is the prefix of its variables' names; columns are concatenated in the order of their names.

    Attributes:
      of_contrib: whether a function of ``tf.contrib.layers`` made it, whose models have other names of variables.
    """

    of_contrib: ClassVar[bool] = False

    @property
    def name(self) -> str:
        raise NotImplementedError

    def transform(self, features: Features) -> Any:
        """Returns the transformed features, in a form that depends on the class."""
        raise NotImplementedError

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The specification of the features to parse from examples; see `parse_example`."""
        raise NotImplementedError


class DenseColumn(Column):
    """A column that maps each example to a vector of `size` numbers."""

    @property
    def size(self) -> int:
        raise NotImplementedError

    def dense(self, features: Features, trainable: bool, collections: Sequence[str]) -> Tensor:
        """Returns the vectors ``[batch, size]``; creates variables in the current scope."""
        raise NotImplementedError


class CategoricalColumn(Column):
    """A column that maps each example to category indices below `num_buckets`.

    Attributes:
      of_sequences: whether it returns indices for each step of an example.
    """

    of_sequences = False

    @property
    def num_buckets(self) -> int:
        raise NotImplementedError

    def ids(self, features: Features) -> IdWeightPair:
        """Returns category indices and weights."""
        return IdWeightPair(features.get(self), None)


def to_sparse(tensor: Tensor) -> SparseTensor:
    """Converts a dense matrix of categories to a sparse one; omits missing categories (empty text and -1)."""
    if isinstance(tensor, SparseTensor):
        return tensor
    nothing = "" if tensor.dtype.base_dtype == dtypes.string else -1
    places = indexing.where(math.not_equal(tensor, nothing), name="indices")
    values = indexing.gather_nd(tensor, places, name="values")
    return SparseTensor(places, values, arrays.shape(tensor, out_type=dtypes.int64, name="dense_shape"))
