"""Machine code of compiled functions: its cache, its compilation by another process, and its loading by llvmlite.

A cached function is an object file. Its key is a digest of the sources of this package, the versions of Python, NumPy,
numba and llvmlite, and the name of the function; its folder is the one for this kind of processor.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.compilation_cache import Entries, folder

if TYPE_CHECKING:
    import subprocess

_log: Final = logging.getLogger(__name__)
_lock: Final = threading.RLock()
#: The folder of this package's root, for the compiling process.
_SOURCES: Final = str(Path(__file__).parents[2])
#: How often to look for a function that another process compiles, in seconds.
_POLL_S: Final = 0.02
#: Return codes of a process that may be started again: the signals arrived before it ignored them.
_ENDS: Final = (0, -signal.SIGINT, -signal.SIGTERM)
_DIGEST_BYTES: Final = hashlib.sha256().digest_size


class _Compiler:
    """The process that compiles functions for this process, one after the other.

    It reads names from its standard input, and ends when this process ends or requests nothing for a while. It first
    completes the function that it is compiling, so that programs which end early benefit from it at their next launch.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: Any = None
        self._requested: list[str] = []
        atexit.register(self.end)

    def request(self, name: str) -> None:
        """Compiles a function, unless it is being compiled: at once, or after those that are being compiled.

        Raises:
          RuntimeError: the previous request failed; the message has the compiler's last line.
        """
        import subprocess  # noqa: PLC0415  only if it is needed

        with _lock:
            if self._process is not None and self._process.poll() is None:
                if name not in self._requested:
                    self._send(name)
                return
            if self._process is not None:
                self._require_success(name, self._process)
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([_SOURCES, os.environ.get("PYTHONPATH", "")])}
            self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "headwater.tables.compilation", str(_entries().folder)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=self._messages,
                stderr=self._messages,
            )
            self._requested = []
            self._send(name)

    def _require_success(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Forgets the process, which has ended; raises an error if it has failed."""
        self._process = None
        with process, self._messages:
            self._messages.seek(0)
            lines = self._messages.read().decode(errors="replace").strip().splitlines()
        if process.returncode not in _ENDS:
            raise RuntimeError(f"the compilation of {name} failed: {lines[-1] if lines else 'no message'}")

    def _send(self, name: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._requested.append(name)
        with contextlib.suppress(BrokenPipeError):  # it has ended: the next request starts another one
            self._process.stdin.write(f"{name} {key_of(name)}\n".encode())
            self._process.stdin.flush()
            _log.info("compiling %s for this and later launches", name)

    def end(self) -> None:
        """Lets the process end when it has completed its function."""
        if self._process is not None and self._process.stdin is not None:
            self._process.returncode = 0  # it may outlive this process: nothing waits for it
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._messages.close()
            self._process = None

    def wait(self) -> None:
        """Waits until the process ends, or for a moment."""
        import subprocess  # noqa: PLC0415

        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process is not None:
                process.wait(_POLL_S)


_compiler: Final = _Compiler()
#: Functions whose compilation failed.
_failed: Final[set[str]] = set()


@functools.cache
def _entries() -> Entries:
    """Returns the cache; a folder for this process only if the user's cache is off or cannot be written."""
    path = folder()
    if path is None:
        path = Path(tempfile.mkdtemp(prefix="headwater-loops-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Entries(path)


@functools.cache
def _digest() -> Any:
    import importlib.metadata  # noqa: PLC0415  10 ms, only if it is needed

    versions = map(importlib.metadata.version, ("numba", "llvmlite", "numpy"))
    digest = hashlib.sha256(repr([sys.version, *versions]).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest


@functools.cache
def key_of(name: str) -> str:
    """Returns the key of a function in the cache."""
    digest = _digest().copy()
    digest.update(name.encode())
    return digest.hexdigest()


def is_stored(name: str) -> bool:
    """Returns whether the cache has a function."""
    return _entries().has(key_of(name))


def prepare(name: str) -> bool:
    """Returns whether the cache has a function; otherwise requests its compilation without waiting.

    If the compilation fails, logs a warning once, and returns False.
    """
    if is_stored(name):
        return True
    with _lock:
        if name not in _failed:
            try:
                _compiler.request(name)
            except (OSError, RuntimeError) as error:
                _failed.add(name)
                _log.warning("a slower way is used: %s", error)
    return False


def _llvm() -> Any:
    """Returns llvmlite, which takes 40 MB: only a process that uses machine code imports it."""
    import llvmlite.binding  # noqa: PLC0415

    return llvmlite.binding


@functools.cache
def target_machine() -> Any:
    """Returns LLVM's description of this processor."""
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


@functools.cache
def _engine() -> Any:
    return _llvm().create_mcjit_compiler(_llvm().parse_assembly(""), target_machine())


def store(entries: Entries, key: str, code: bytes) -> None:
    """Adds an object file to a cache, with its digest."""
    entries.put(key, hashlib.sha256(code).digest() + code)


def _stored_code(key: str) -> bytes | None:
    """Returns an object file of the cache, or None. Removes a damaged one, which LLVM might not notice."""
    stored = _entries().get(key)
    if stored is None:
        return None
    digest, code = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
    if hashlib.sha256(code).digest() == digest:
        return code
    _log.warning("the cached machine code in %s is damaged: it is compiled again", _entries().folder)
    _entries().remove(key)
    return None


def address_of(name: str) -> int:
    """Returns the address of a function, which stays valid until the process ends.

    Waits for its compilation if the cache does not have it.

    Raises:
      RuntimeError: the function cannot be compiled.
    """
    key = key_of(name)
    while (code := _stored_code(key)) is None:
        _compiler.request(name)
        _compiler.wait()
    with _lock:
        engine = _engine()
        engine.add_object_file(_llvm().object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return engine.get_function_address(symbol_of(key))


def symbol_of(key: str) -> str:
    """Returns the symbol of the function with a key in its object file."""
    return f"headwater_{key}"


_free: Final[Any] = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


def release(block: int) -> None:
    """Releases one reference to a block of memory that a function has returned, and the memory after the last one.

    The first word of a block is the number of references; see `headwater.tables.compilation`.
    """
    references = ctypes.c_int64.from_address(block)
    references.value -= 1
    if not references.value:
        _free(block)
