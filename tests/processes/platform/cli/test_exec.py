"""``headwater exec`` compared with ``python``: the same program behaves the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEADWATER = [str(Path(sys.executable).with_name("headwater")), "exec"]

LOOK = """
import sys
print(sys.argv, sys.path[:2], sys.path.count(sys.path[0]), __name__, __spec__ and __spec__.name, __package__)
print(globals().get("__file__"), sys.modules["__main__"].__dict__ is globals())
print(sys.flags.optimize, sys.dont_write_bytecode)
print(sorted(name for name in globals() if name != "__warningregistry__"))
"""


def run(command: list[str], cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Returns a folder of programs."""
    (tmp_path / "look.py").write_text(LOOK)
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    (tmp_path / "package/__main__.py").write_text(LOOK)
    (tmp_path / "package/module.py").write_text(LOOK)
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/__main__.py").write_text(LOOK)
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nprint('\xe9'.encode())\n".encode("latin-1"))
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text(
        "def inner():\n    raise ValueError('no')\n\ntry:\n    inner()\nexcept ValueError:\n    {}['key']\n"
    )
    (tmp_path / "platform.py").write_text("raise ImportError('a module of the program that hides one of Python')\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "package/module.py")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["look.py", "a", "-b"],
        ["./package/module.py"],
        ["link.py"],
        ["folder", "x"],
        ["package"],
        ["-m", "package", "a"],
        ["-m", "package.module", "-c"],
        ["-mlook"],
        ["-c", LOOK, "a", "-m"],
        ["-", "a"],
        ["-O", "look.py"],
        ["-OB", "-m", "package.module", "a"],
        ["-P", "look.py"],
        ["-I", "-c", LOOK],
        ["-W", "error", "-c", "import warnings; warnings.warn('x')"],
        ["latin.py"],
        ["bad.py"],
        ["raises.py"],
        ["-c", "raise SystemExit"],
        ["-c", "raise SystemExit(7)"],
        ["-c", "raise SystemExit('words')"],
        ["-c", "import sys; sys.exit(True)"],
        ["-c", "1/0"],
        ["-c", "("],
        ["-c", "import sys; sys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno); 1/0"],
        ["-c", "import atexit; atexit.register(print, 'at the end'); 1/0"],
        ["-c", "import sys; sys.stdout.write('no end of line')"],
        ["-c", "import threading, sys; threading.Thread(target=lambda: print('thread')).start(); sys.exit(3)"],
    ],
)
def test_is_python(arguments: list[str], programs: Path) -> None:
    ours = run([*HEADWATER, *arguments], programs, stdin=LOOK)
    theirs = run([sys.executable, *arguments], programs, stdin=LOOK)
    assert (ours.stdout, ours.stderr, ours.returncode) == (theirs.stdout, theirs.stderr, theirs.returncode)


@pytest.mark.parametrize(
    ("arguments", "returncode", "message"),
    [
        (["absent.py"], 2, "absent.py"),
        (["-m", "absent"], 1, "No module named"),
        (["-m", "package.absent"], 1, "No module named package.absent"),
        (["empty"], 2, "can't find '__main__' module in "),
        ([], 2, "the program is missing"),
        (["--frobnicate", "look.py"], 2, "--frobnicate"),
    ],
)
def test_a_program_that_cannot_run_prints_one_line(
    arguments: list[str], returncode: int, message: str, programs: Path
) -> None:
    result = run([*HEADWATER, *arguments], programs)
    assert result.returncode == returncode
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("task_config", "field"),
    [
        ("{", "TF_CONFIG is not JSON"),
        ('{"cluster": {"ps": ["a:1", "a:1"]}}', "TF_CONFIG cluster.ps[1]"),
        ('{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1}}', "TF_CONFIG task.index"),
        ('{"cluster": {"ps": ["a:1"]}, "task": {"type": "worker", "index": 0}}', "TF_CONFIG task.type"),
        ('{"cluster": {"ps": "a:1"}}', "TF_CONFIG cluster.ps"),
    ],
)
def test_a_wrong_cluster_is_one_line(
    task_config: str, field: str, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", task_config)
    result = run([*HEADWATER, "look.py"], programs)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert field in result.stderr
    assert result.stdout == ""


def test_a_wrong_cluster_of_the_programs_own_is_one_line(programs: Path) -> None:
    program = "from headwater.cluster.config import parse_hosts\nparse_hosts('a:1,a:1', '--ps_hosts')"
    result = run([*HEADWATER, "-c", program], programs)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "--ps_hosts[1]" in result.stderr


def test_help() -> None:
    result = run([*HEADWATER, "--help"], Path.cwd())
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: headwater exec ")


def test_an_interrupt_ends_with_130(programs: Path) -> None:
    result = run([*HEADWATER, "-c", "import signal; signal.raise_signal(signal.SIGINT)"], programs)
    assert result.returncode == 130
    assert result.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "execute.py" not in result.stderr


def test_tensorflow_is_headwater_in_this_process_only(programs: Path) -> None:
    program = (
        "import importlib.util, subprocess, sys\n"
        "print(importlib.util.find_spec('tensorflow').loader.__class__.__module__)\n"
        "find = 'import importlib.util, sys; print([f for f in sys.meta_path if \"headwater\" in repr(f)])'\n"
        "print(subprocess.run([sys.executable, '-c', find], capture_output=True, text=True).stdout)\n"
    )
    result = run([*HEADWATER, "-c", program], programs)
    assert result.stdout.split() == ["headwater.tf1.compat.modules", "[]"]


def test_a_missing_name_is_reported_without_frames_of_headwater(programs: Path) -> None:
    result = run([*HEADWATER, "-c", "import tensorflow.absent"], programs / "empty")
    assert result.returncode == 1
    # Since Python 3.13, the source line itself is shown as well.
    assert [line for line in result.stderr.splitlines() if not line.startswith("    ")] == [
        "Traceback (most recent call last):",
        '  File "<string>", line 1, in <module>',
        "ModuleNotFoundError: Headwater has no 'tensorflow.absent'; docs/compatibility.md lists the names that exist",
    ]


def test_exec_does_not_import_packages_of_other_commands(programs: Path) -> None:
    program = "import sys; print(*sorted({'typer', 'rich', 'click', 'numpy', 'jax', 'grpc'} & set(sys.modules)))"
    assert run([*HEADWATER, "-c", program], programs).stdout.split() == []


def test_importing_the_package_loads_next_to_nothing(programs: Path) -> None:
    program = "import sys; before = set(sys.modules); import headwater; print(*sorted(set(sys.modules) - before))"
    loaded = run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(_source())!r}); {program}"], programs
    )
    assert "headwater" in loaded.stdout.split()
    # The settings that avoid faulty versions of jaxlib, and the choice of Keras's backend, take effect before either is
    # loaded.
    assert [name for name in loaded.stdout.split() if name.startswith("headwater.")] == [
        "headwater.import_hooks",
        "headwater.jaxlib_faults",
    ]
    assert "jax" not in loaded.stdout.split()


def _source() -> Path:
    import headwater

    return Path(headwater.__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("dialect", "printed"),
    [("1", "TensorShape([Dimension(2), Dimension(None)]) False"), ("2", "TensorShape([2, None]) True")],
)
def test_dimensions_are_numbers_in_the_dialect_of_tensorflow_2(tmp_path: Path, dialect: str, printed: str) -> None:
    program = "import tensorflow as tf; shape = tf.TensorShape([2, None]); print(repr(shape), shape[1] is None)"
    done = run([*HEADWATER, "--dialect", dialect, "-c", program], tmp_path)
    assert done.stdout.strip() == printed, done.stderr
