"""``tf.contrib.framework``: settings by scope, variables, checkpoints, and names that moved to ``tf``."""

from __future__ import annotations

from headwater.compat.names import namespace

ARG_SCOPE = {
    "headwater.slim.arg_scope": "add_arg_scope arg_scope arg_scoped_arguments current_arg_scope has_arg_scope",
}
FROM_CHECKPOINTS = "assign_from_checkpoint assign_from_checkpoint_fn"
VARIABLES = {
    "headwater.slim.variables": """
        add_model_variable assign_from_values assign_from_values_fn filter_variables get_local_variables
        get_model_variables get_trainable_variables get_unique_variable get_variable_full_name get_variables
        get_variables_by_name get_variables_by_suffix get_variables_to_restore global_variable local_variable
        model_variable variable""",
    "headwater.training.training_util": """
        assert_global_step create_global_step get_global_step get_or_create_global_step""",
}
_NAMES = {
    **ARG_SCOPE,
    **VARIABLES,
    "headwater.training.warm_start": f"{FROM_CHECKPOINTS} init_from_checkpoint",
    "headwater.data.spec": "TensorSpec",
    "headwater.functional.default_graph": "is_tensor",
    "headwater.functional.checks": "assert_same_float_dtype assert_scalar",
    "headwater.functional.conditions": "smart_cond smart_constant_value",
    "headwater.functional.script": "py_func",
    "headwater.functional.searching": "argsort sort",
    "headwater.functional.sparse": "convert_to_tensor_or_sparse_tensor",
    "headwater.training.checkpoint_reader": "list_variables load_checkpoint load_variable",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
