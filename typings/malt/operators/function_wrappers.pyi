from collections.abc import Callable
from typing import Any

from malt.core.converter import ConversionOptions

class FunctionScope:
    callopts: ConversionOptions

def with_function_scope(thunk: Callable[[FunctionScope], Any], scope_name: str, options: ConversionOptions) -> Any: ...
