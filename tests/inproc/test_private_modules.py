"""Private names of other packages are used in one file per package, and still exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

_SOURCE = Path(__file__).resolve().parents[2] / "src" / "headwater"

#: By the name of a private module, the files that may name it.
_PLACES = {
    # The package's own module defers the import of one of them, before Keras is imported.
    r"keras\.src": {"keras/internals.py", "__init__.py"},
    # The other two must not import JAX: one checks whether it was imported before, one waits for its import.
    r"jax\._src": {"graph/runtime/jax_internals.py", "jaxlib_faults.py", "compilation_cache.py"},
    r"optax\._src": {"ps/global_norms.py"},
    r"(?:from|import) malt\b": {"tf1/functional/autograph/internals.py"},
    r"ray\._private|_ray\._private": {"platform/backends/ray.py"},
}


@pytest.mark.parametrize("name", _PLACES)
def test_a_private_module_is_named_in_one_file(name: str) -> None:
    found = {str(path.relative_to(_SOURCE)) for path in _SOURCE.rglob("*.py") if re.search(name, path.read_text())}
    assert found == _PLACES[name]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("jax._src.xla_bridge", "backends_are_initialized"),
        ("jax._src.core", "Literal Trace jaxpr_as_fun jaxprs_in_params set_current_trace trace_ctx"),
        ("jax._src.array", "ArrayImpl"),
        ("jax._src.compilation_cache", "get_file_cache"),
        ("optax._src.linear_algebra", "global_norm"),
        ("malt.core.converter", "ConversionOptions Feature ProgramContext STANDARD_OPTIONS"),
        ("malt.impl.api", "PyToPy autograph_artifact is_autograph_artifact"),
        ("malt.lang.directives", "set_loop_options"),
        ("malt.operators.function_wrappers", "FunctionScope with_function_scope"),
        ("malt.operators.py_builtins", "eval_in_original_context super_in_original_context"),
        ("malt.operators.py_builtins", "globals_in_original_context locals_in_original_context"),
        ("malt.operators.variables", "Undefined UndefinedReturnValue ld ldu"),
        ("malt.pyct.errors", "PyCTError"),
        ("malt.pyct.inspect_utils", "isbuiltin"),
        ("malt.pyct.origin_info", "LineLocation"),
        ("malt.utils.ag_logging", "set_verbosity"),
        ("ray._private.state", "available_resources_per_node"),
        ("keras.src.visualization", "plot_image_gallery"),
        ("keras.src.legacy.preprocessing.image", "ImageDataGenerator random_zoom"),
        ("keras.src.legacy.preprocessing.sequence", "TimeseriesGenerator skipgrams"),
        ("keras.src.legacy.preprocessing.text", "Tokenizer one_hot"),
        ("keras.src.trainers.data_adapters.py_dataset_adapter", "OrderedEnqueuer PyDatasetEnqueuer"),
    ],
)
def test_used_names_of_private_modules_exist(module: str, names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    pytest.importorskip(module.partition(".")[0])
    found = importlib.import_module(module)
    assert [name for name in names.split() if not hasattr(found, name)] == []
