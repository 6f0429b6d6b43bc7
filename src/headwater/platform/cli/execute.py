"""``headwater exec``: runs a Python program as ``python`` does, with Headwater in place of TensorFlow.

A program sees the same environment as under ``python``: ``sys.argv``, ``sys.path[0]``, the module ``__main__``, exit
codes, and tracebacks that begin in the program. If there are options of the interpreter, a new interpreter is started
with these; otherwise the program runs in the current process.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import itertools
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any

import headwater
from headwater.cluster.variables import INSECURE
from headwater.platform.cli.arguments import Invocation, UsageError, parse_arguments
from headwater.platform.cli.child import apply_launcher_settings
from headwater.tf1.compat import dialect, modules

USAGE = """\
Usage: headwater exec [PYTHON OPTIONS] PROGRAM [ARGUMENTS]
       headwater exec [PYTHON OPTIONS] -m MODULE [ARGUMENTS]
       headwater exec [PYTHON OPTIONS] -c CODE [ARGUMENTS]
       headwater exec [PYTHON OPTIONS] - [ARGUMENTS]

Runs a Python program as python does, with Headwater in place of TensorFlow: `import tensorflow` is Headwater.
PYTHON OPTIONS are python's own, such as -u, -W error, -O or -X dev, and

  --insecure     Lets servers start at addresses that others can reach without a token or certificates.
  --dialect WAY  Version of TensorFlow's API that the program uses: 1 for graphs and sessions, 2 for eager execution
                 (GradientTape, tf.function). By default, auto: 2 for programs that use names of version 2 only, use
                 Keras, or have no use for a session; 1 for all others and for modules.
"""

_KEYBOARD_INTERRUPT = 128 + 2
_PACKAGE_DIRECTORY = os.path.dirname(os.path.abspath(headwater.__file__))
# Frames of these files lie between the interpreter and a program, or between a program and its failing line; tracebacks
# omit them.
_HIDDEN_FILES = frozenset({os.path.abspath(__file__), os.path.abspath(modules.__file__)})


class _CannotRun(Exception):
    """The program cannot be started; the message has the reason."""


def interpreter_command(invocation: Invocation) -> list[str]:
    """Returns the command line that runs ``invocation`` under ``headwater exec`` in a new interpreter."""
    main = os.path.join(_PACKAGE_DIRECTORY, "__main__.py")
    return [sys.executable, *invocation.options, main, "exec", *invocation.command_line()]


def execute(arguments: Sequence[str]) -> int:
    """Runs the program in ``arguments``, and returns its exit code.

    Raises:
      SystemExit: if the program raises it.
    """
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    try:
        invocation = parse_arguments(arguments)
    except UsageError as error:
        print(f"headwater exec: {error}", file=sys.stderr)
        return 2
    if invocation.options:
        os.execv(sys.executable, interpreter_command(invocation))
    apply_launcher_settings()
    # The interpreter treated the command ``headwater`` as the program, and put its folder first.
    if not sys.flags.safe_path and sys.path[:1] == [os.path.dirname(os.path.realpath(sys.argv[0]))]:
        del sys.path[0]
    if invocation.insecure:
        os.environ[INSECURE] = "1"
    try:
        _check_task_config()
        # Find_spec may import the package of the module, so the dialect must be set before.
        if invocation.kind == "module":
            dialect.install(None, invocation.dialect)
        code, main = _load(invocation)
        if invocation.kind != "module":
            dialect.install(code, invocation.dialect)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)
    except SystemExit as error:
        if error.code not in (None, 0):
            # The interpreter sets `sys.last_value` for other errors. At exit, a server of this process looks there for
            # a failure.
            sys.last_value = error
        raise
    except _CannotRun as error:
        print(f"headwater exec: {error}", file=sys.stderr)
        return 1 if invocation.kind == "module" else 2
    except BaseException as error:  # noqa: BLE001  reported as the interpreter would
        return _report(error)
    return 0


def _load(invocation: Invocation) -> tuple[CodeType, ModuleType]:
    """Returns the program's code and a new module ``__main__``; sets ``sys.argv`` and ``sys.path[0]``."""
    loaders: dict[str, Callable[[str], tuple[CodeType, ModuleType]]] = {
        "file": _load_file,
        "module": _load_module,
        "code": _load_code,
        "stdin": _load_stdin,
    }
    first = {"file": invocation.program, "module": "-m", "code": "-c", "stdin": "-"}
    sys.argv = [first[invocation.kind], *invocation.arguments]
    return loaders[invocation.kind](invocation.program)


def _load_code(program: str) -> tuple[CodeType, ModuleType]:
    _put_first_on_path("")
    if sys.version_info >= (3, 13):  # from then on tracebacks show the lines of such code
        import linecache  # noqa: PLC0415  takes 5 ms

        linecache.cache["<string>"] = (len(program), None, program.splitlines(keepends=True), "<string>")
    return compile(program, "<string>", "exec", dont_inherit=True), _main_module()


def _load_stdin(_program: str) -> tuple[CodeType, ModuleType]:
    _put_first_on_path("")
    return compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), _main_module(file="<stdin>")


def _load_file(path: str) -> tuple[CodeType, ModuleType]:
    path = os.path.join(os.getcwd(), path)
    if pkgutil.get_importer(path) is not None:  # a folder or an archive with a __main__.py
        _put_first_on_path(path)
        return _load_module("__main__", missing=f"can't find '__main__' module in {path!r}")
    _put_first_on_path(os.path.dirname(os.path.realpath(path)))
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        raise _CannotRun(f"can't open file: {error}") from None
    main = _main_module(file=path, loader=importlib.machinery.SourceFileLoader("__main__", path))
    return compile(source, path, "exec", dont_inherit=True), main


def _load_module(name: str, missing: str = "") -> tuple[CodeType, ModuleType]:
    if missing:
        # The name is taken by this process's own module, which find_spec would return.
        del sys.modules["__main__"]
    else:
        _put_first_on_path(os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise _CannotRun(missing or str(error)) from None
    if spec is None or spec.loader is None:
        raise _CannotRun(missing or f"No module named {name}")
    loader: Any = spec.loader
    code: CodeType | None = loader.get_code(name) if hasattr(loader, "get_code") else None
    if code is None:
        raise _CannotRun(f"No code object available for {name}")
    if spec.origin is not None and not missing:
        sys.argv[0] = spec.origin
    return code, _main_module(file=spec.origin, loader=loader, spec=spec)


def _main_module(
    *, file: str | None = None, loader: object = None, spec: importlib.machinery.ModuleSpec | None = None
) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=__builtins__, __loader__=loader, __spec__=spec)
    if spec is not None:
        main.__dict__["__package__"] = spec.parent
    if file is not None:
        main.__dict__.update(__file__=file, __cached__=spec.cached if spec is not None else None)
    return main


def _put_first_on_path(entry: str) -> None:
    """Puts the program's folder first on ``sys.path``, as ``python`` does."""
    if sys.flags.safe_path:
        return
    sys.path.insert(0, entry)


def _check_task_config() -> None:
    """Raises an error that names the wrong field of ``TF_CONFIG``, if there is one."""
    if os.environ.get("TF_CONFIG"):
        from headwater.cluster.config import task_config_from_environment  # noqa: PLC0415  protobuf takes 30 ms

        task_config_from_environment()


def _report(error: BaseException) -> int:
    """Prints ``error`` as the interpreter would, without Headwater's frames; returns the exit code.

    A wrong description of a cluster is printed in one line: it is a mistake of the user, not of the program.
    """
    config = sys.modules.get("headwater.cluster.config")
    if config is not None and isinstance(error, config.ClusterConfigError):
        print(f"headwater exec: {error}", file=sys.stderr)
        return 2
    error.__traceback__ = _without_our_frames(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)
    return _KEYBOARD_INTERRUPT if isinstance(error, KeyboardInterrupt) else 1


def _without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    entries: list[TracebackType] = []
    while traceback is not None:
        if os.path.abspath(traceback.tb_frame.f_code.co_filename) not in _HIDDEN_FILES:
            entries.append(traceback)
        traceback = traceback.tb_next
    for entry, following in itertools.zip_longest(entries, entries[1:]):
        entry.tb_next = following
    return entries[0] if entries else None
