from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from malt.core.converter import ProgramContext

_F = TypeVar("_F", bound=Callable[..., Any])

class PyToPy:
    _extra_locals: dict[str, ModuleType] | None
    def get_extra_locals(self) -> dict[str, ModuleType]: ...
    def transform(
        self, obj: Callable[..., Any], user_context: ProgramContext
    ) -> tuple[Callable[..., Any], ModuleType, Mapping[object, Any]]: ...

def autograph_artifact(entity: _F, extras: object = None) -> _F: ...
def is_autograph_artifact(entity: object) -> bool: ...
