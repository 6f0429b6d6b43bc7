# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_hash_bucket as sequence_categorical_column_with_hash_bucket
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_identity as sequence_categorical_column_with_identity
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_vocabulary_file as sequence_categorical_column_with_vocabulary_file
from headwater.tf1.feature_columns.sequences import sequence_categorical_column_with_vocabulary_list as sequence_categorical_column_with_vocabulary_list
from headwater.tf1.feature_columns.sequences import sequence_input_layer as sequence_input_layer
from headwater.tf1.feature_columns.sequences import sequence_numeric_column as sequence_numeric_column

__all__ = [
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_input_layer",
    "sequence_numeric_column",
]
