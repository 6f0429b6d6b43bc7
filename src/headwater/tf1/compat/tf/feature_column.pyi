# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.feature_columns.categorical import categorical_column_with_hash_bucket as categorical_column_with_hash_bucket
from headwater.tf1.feature_columns.categorical import categorical_column_with_identity as categorical_column_with_identity
from headwater.tf1.feature_columns.categorical import categorical_column_with_vocabulary_file as categorical_column_with_vocabulary_file
from headwater.tf1.feature_columns.categorical import categorical_column_with_vocabulary_list as categorical_column_with_vocabulary_list
from headwater.tf1.feature_columns.categorical import crossed_column as crossed_column
from headwater.tf1.feature_columns.categorical import weighted_categorical_column as weighted_categorical_column
from headwater.tf1.feature_columns.dense import bucketized_column as bucketized_column
from headwater.tf1.feature_columns.dense import embedding_column as embedding_column
from headwater.tf1.feature_columns.dense import indicator_column as indicator_column
from headwater.tf1.feature_columns.dense import input_layer as input_layer
from headwater.tf1.feature_columns.dense import linear_model as linear_model
from headwater.tf1.feature_columns.dense import make_parse_example_spec as make_parse_example_spec
from headwater.tf1.feature_columns.dense import numeric_column as numeric_column
from headwater.tf1.feature_columns.dense import shared_embedding_columns as shared_embedding_columns
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_hash_bucket as sequence_categorical_column_with_hash_bucket
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_identity as sequence_categorical_column_with_identity
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_vocabulary_file as sequence_categorical_column_with_vocabulary_file
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_vocabulary_list as sequence_categorical_column_with_vocabulary_list
from headwater.tf1.feature_columns.sequences import sequence_numeric_column as sequence_numeric_column

__all__ = [
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "indicator_column",
    "input_layer",
    "linear_model",
    "make_parse_example_spec",
    "numeric_column",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column",
    "shared_embedding_columns",
    "weighted_categorical_column",
]
