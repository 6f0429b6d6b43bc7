"""The namespace ``tf`` that programs written for TensorFlow 0.x and 1.x expect: names, and where they live.

Each area is a module (`headwater.tf1.compat.tf.nn` is ``tf.nn``), made of a table in `headwater.tf1.compat.tables`. A
name is loaded when it is first used; one that is not there raises an AttributeError that says where the list of names
is. The ``.pyi`` files beside this one, which `make stubs` writes from the same tables, tell editors and type checkers.
"""

from __future__ import annotations

from headwater.tf1.compat.names import add_module, namespace
from headwater.tf1.compat.tables.areas import AREAS
from headwater.tf1.compat.tables.contrib import CONTRIB
from headwater.tf1.compat.tables.core import CORE

__version__ = VERSION = "1.15.0"
__git_version__ = GIT_VERSION = "v1.15.0-headwater"
__compiler_version__ = COMPILER_VERSION = ""
__cxx11_abi_flag__ = CXX11_ABI_FLAG = 1
__monolithic_build__ = MONOLITHIC_BUILD = 0
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0

for _area, _names in {**AREAS, **CONTRIB}.items():
    add_module(f"headwater.tf1.compat.{_area}", _names)

__getattr__, __dir__ = namespace(__name__, CORE)
