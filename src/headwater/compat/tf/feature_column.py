"""``tf.feature_column``: how features of examples become a model's inputs."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.feature_columns.categorical": """
        categorical_column_with_hash_bucket categorical_column_with_identity categorical_column_with_vocabulary_file
        categorical_column_with_vocabulary_list crossed_column weighted_categorical_column""",
    "headwater.feature_columns.dense": """
        bucketized_column embedding_column indicator_column input_layer linear_model make_parse_example_spec
        numeric_column shared_embedding_columns""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
