"""Locations of names of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed or renamed."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.keras.internals import ENQUEUERS, LEGACY_IMAGE, LEGACY_SEQUENCE, LEGACY_TEXT

_VALUES = """
    batch_get_value batch_set_value cast cast_to_floatx constant count_params dtype eval eye
    get_value int_shape is_sparse learning_phase_scope moving_average_update
    name_scope ndim ones ones_like placeholder print_tensor random_binomial random_normal random_normal_variable
    random_uniform random_uniform_variable reset_uids set_value shape stop_gradient to_dense
    truncated_normal update update_add update_sub variable zeros zeros_like"""
_SESSIONS = "clear_session get_session manual_variable_initialization set_session"
_FUNCTIONS_OF_MODELS = "function gradients"
_MATH = """
    abs all any arange argmax argmin batch_dot batch_flatten clip concatenate cos cumprod cumsum dot elu equal exp
    expand_dims flatten foldl foldr gather greater greater_equal hard_sigmoid in_top_k l2_normalize less less_equal
    log map_fn max maximum mean min minimum not_equal one_hot permute_dimensions pow prod relu repeat repeat_elements
    reshape reverse round sigmoid sign sin softmax softplus softsign sqrt square squeeze stack std sum switch tanh
    tile transpose var"""
_LAYERS = """
    batch_normalization bias_add binary_crossentropy categorical_crossentropy conv1d conv2d conv2d_transpose conv3d
    ctc_batch_cost ctc_decode ctc_label_dense_to_sparse dropout in_test_phase in_train_phase local_conv1d local_conv2d
    normalize_batch_in_training pool2d pool3d resize_images resize_volumes rnn separable_conv2d
    sparse_categorical_crossentropy spatial_2d_padding spatial_3d_padding temporal_padding"""
_LOSSES = {
    "KLD": "kl_divergence",
    "MAE": "mean_absolute_error",
    "MAPE": "mean_absolute_percentage_error",
    "MSE": "mean_squared_error",
    "MSLE": "mean_squared_logarithmic_error",
    "kld": "kl_divergence",
    "kullback_leibler_divergence": "kl_divergence",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "mse": "mean_squared_error",
    "msle": "mean_squared_logarithmic_error",
}


def _from(module: str, names: str) -> dict[str, str]:
    return {name: f"{module}:{name}" for name in names.split()}


_FUNCTIONS = {name: f"keras.losses:{there}" for name, there in _LOSSES.items()} | {
    "cosine": "headwater.keras.old_losses:cosine_proximity",
    "cosine_proximity": "headwater.keras.old_losses:cosine_proximity",
}

OLD: Mapping[str, Mapping[str, str]] = {
    "backend": {
        **_from("headwater.keras.backend.values", _VALUES),
        **_from("headwater.keras.backend.sessions", _SESSIONS),
        **_from("headwater.keras.backend.functions", _FUNCTIONS_OF_MODELS),
        **_from("headwater.keras.backend.math", _MATH),
        **_from("headwater.keras.backend.layers", _LAYERS),
    },
    "activations": {"hard_sigmoid": "headwater.keras.old_activations:hard_sigmoid"},
    "initializers": {"normal": "headwater.keras.old_layers:normal", "uniform": "headwater.keras.old_layers:uniform"},
    "layers": _from("headwater.tf1.feature_columns.layers", "DenseFeatures")
    | _from("headwater.keras.old_layers", "AbstractRNNCell CuDNNGRU CuDNNLSTM ThresholdedReLU")
    | _from("headwater.keras.locally_connected", "LocallyConnected1D LocallyConnected2D"),
    "losses": _FUNCTIONS | _from("headwater.keras.old_losses", "Reduction logcosh"),
    "optimizers.legacy": _from(
        "headwater.keras.old_optimizers", "Adadelta Adagrad Adam Adamax Ftrl Nadam Optimizer RMSprop SGD"
    ),
    "metrics": _FUNCTIONS | _from("headwater.keras.old_losses", "MeanRelativeError MeanTensor"),
    "models": _from("headwater.keras.old_models", "model_from_config"),
    "preprocessing.image": _from(
        LEGACY_IMAGE,
        """DirectoryIterator ImageDataGenerator Iterator NumpyArrayIterator apply_affine_transform
        apply_brightness_shift apply_channel_shift random_brightness random_channel_shift random_rotation random_shear
        random_shift random_zoom""",
    ),
    "preprocessing.sequence": _from(LEGACY_SEQUENCE, "TimeseriesGenerator make_sampling_table")
    | {"skipgrams": "headwater.keras.old_models:skipgrams"},
    "preprocessing.text": _from(LEGACY_TEXT, "Tokenizer hashing_trick one_hot text_to_word_sequence"),
    "constraints": _from("headwater.keras.old_layers", "RadialConstraint")
    | {"radial_constraint": "headwater.keras.old_layers:RadialConstraint"},
    "callbacks": _from("headwater.keras.old_models", "BaseLogger"),
    "experimental": {
        **_from(
            "headwater.keras.old_schedules", "CosineDecay CosineDecayRestarts LinearCosineDecay NoisyLinearCosineDecay"
        ),
        "PeepholeLSTMCell": "headwater.keras.old_layers:PeepholeLSTMCell",
        **_from("headwater.keras.old_premade", "LinearModel WideDeepModel"),
        **_from("headwater.tf1.feature_columns.layers", "SequenceFeatures"),
        **_from("headwater.keras.old_pools", "terminate_keras_multiprocessing_pools"),
    },
    "wrappers.scikit_learn": _from("headwater.keras.scikit_learn", "KerasClassifier KerasRegressor"),
    "utils": {
        **_from("headwater.keras.old_premade", "GeneratorEnqueuer convert_all_kernels_in_model"),
        "HDF5Matrix": "headwater.keras.old_models:HDF5Matrix",
        "OrderedEnqueuer": f"{ENQUEUERS}:OrderedEnqueuer",
        "SequenceEnqueuer": f"{ENQUEUERS}:PyDatasetEnqueuer",
    },
    "mixed_precision.experimental": {
        "LossScaleOptimizer": "keras.mixed_precision:LossScaleOptimizer",
        "Policy": "keras.mixed_precision:Policy",
        "global_policy": "keras.mixed_precision:global_policy",
        "set_policy": "keras.mixed_precision:set_global_policy",
    },
}
"""For each module of Keras: further names, and the module and name that each refers to."""
