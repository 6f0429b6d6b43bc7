from collections.abc import Callable
from typing import Any

class Undefined:
    symbol_name: str

class UndefinedReturnValue: ...

def ld(v: Any) -> Any: ...
def ldu(load_v: Callable[[], Any], name: str) -> Any: ...
