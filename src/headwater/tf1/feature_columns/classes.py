"""Classes of feature columns under the names of TensorFlow's modules, which programs test columns with."""

from headwater.tf1.feature_columns.base import CategoricalColumn, Column, DenseColumn
from headwater.tf1.feature_columns.categorical import (
    CrossedColumn,
    HashedColumn,
    IdentityColumn,
    VocabularyFileColumn,
    VocabularyListColumn,
    WeightedColumn,
)
from headwater.tf1.feature_columns.dense import BucketizedColumn, EmbeddingColumn, IndicatorColumn, NumericColumn
from headwater.tf1.feature_columns.sequences import SequenceCategoricalColumn, SequenceNumericColumn

__all__ = [
    "BucketizedColumn",
    "CategoricalColumn",
    "CrossedColumn",
    "DenseColumn",
    "EmbeddingColumn",
    "IndicatorColumn",
    "NumericColumn",
    "SequenceCategoricalColumn",
    "SequenceNumericColumn",
]

FeatureColumn = Column
HashedCategoricalColumn = HashedColumn
IdentityCategoricalColumn = IdentityColumn
SharedEmbeddingColumn = EmbeddingColumn
VocabularyFileCategoricalColumn = VocabularyFileColumn
VocabularyListCategoricalColumn = VocabularyListColumn
WeightedCategoricalColumn = WeightedColumn

# The names of the classes up to TensorFlow 1.11.
_BucketizedColumn = BucketizedColumn
_CategoricalColumn = CategoricalColumn
_CrossedColumn = CrossedColumn
_DenseColumn = DenseColumn
_EmbeddingColumn = EmbeddingColumn
_FeatureColumn = Column
_HashedCategoricalColumn = HashedColumn
_IdentityCategoricalColumn = IdentityColumn
_IndicatorColumn = IndicatorColumn
_NumericColumn = NumericColumn
_SequenceCategoricalColumn = SequenceCategoricalColumn
_SharedEmbeddingColumn = EmbeddingColumn
_VocabularyFileCategoricalColumn = VocabularyFileColumn
_VocabularyListCategoricalColumn = VocabularyListColumn
_WeightedCategoricalColumn = WeightedColumn
