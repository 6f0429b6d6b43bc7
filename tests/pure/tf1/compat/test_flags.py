"""Flags of the command line, as in TensorFlow 1.15; an invalid flag gives one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from absl import flags as absl_flags

from headwater.tf1.compat import app, flags


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> flags.LazyFlags:
    """Flags of a program, separate from the flags of the process."""
    held = absl_flags.FlagValues()
    flags.DEFINE_string("job_name", "worker", "One of ps, worker", flag_values=held)
    flags.DEFINE_integer("task_index", 0, "Index of the task", flag_values=held)
    flags.DEFINE_boolean("is_chief", False, "Whether it is the chief", flag_values=held)
    flags.DEFINE_float("rate", 0.5, "Rate", flag_values=held)
    flags.DEFINE_enum("mode", "a", ["a", "b"], "Mode", flag_values=held)
    flags.DEFINE_list("hosts", "x:1,y:2", "Hosts", flag_values=held)
    flags.DEFINE_multi_integer("n", [1], "Numbers", flag_values=held)
    lazy = flags.LazyFlags(held)
    monkeypatch.setattr(flags, "FLAGS", lazy)
    return lazy


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_arguments(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["folder/program.py", *arguments])

    return set_arguments


class TestLazyParsing:
    def test_the_first_flag_parses(self, values: flags.LazyFlags, command_line: Callable[..., None]) -> None:
        command_line("--job_name=ps", "-task_index", "3", "--is_chief", "--mode", "b", "--n=4", "--n=5", "rest")
        assert (values.job_name, values.task_index, values.is_chief, values.rate) == ("ps", 3, True, 0.5)
        assert (values.mode, values.hosts, values.n) == ("b", ["x:1", "y:2"], [4, 5])
        assert values.flag_values_dict()["task_index"] == 3

    @pytest.mark.parametrize(
        ("argument", "expected"),
        [("--is_chief", True), ("--nois_chief", False), ("--is_chief=true", True), ("--is_chief=0", False)],
    )
    def test_booleans(
        self, values: flags.LazyFlags, command_line: Callable[..., None], argument: str, expected: bool
    ) -> None:
        command_line(argument)
        assert values.is_chief is expected

    def test_looking_does_not_parse(self, values: flags.LazyFlags, command_line: Callable[..., None]) -> None:
        command_line("--wrong")
        assert "job_name" in values
        assert "job_name" in list(values)
        assert "job_name" in dir(values)
        assert len(values) == 7
        assert values["job_name"].default == "worker"
        assert not values.is_parsed()
        with pytest.raises(AttributeError):
            _ = values.__nothing__

    def test_setting(self, values: flags.LazyFlags, command_line: Callable[..., None]) -> None:
        command_line("--rate=2")
        values.job_name = "ps"
        assert (values.job_name, values.rate) == ("ps", 2.0)
        del values.mode
        with pytest.raises(AttributeError):
            _ = values.mode
        values["mode"] = values["job_name"]
        assert values.mode == "ps"

    def test_parsing_by_hand(self, values: flags.LazyFlags, command_line: Callable[..., None]) -> None:
        command_line("--rate=2", "--unknown=3")
        values._parse_flags()
        assert values.rate == 2.0
        values._parse_flags(["--rate=3"])
        assert values.rate == 3.0

    def test_names_of_arguments_of_old(self, command_line: Callable[..., None]) -> None:
        held = absl_flags.FlagValues()
        flags.DEFINE_string(flag_name="a", default_value="b", docstring="c", flag_values=held)
        command_line()
        assert flags.LazyFlags(held).a == "b"
        assert held["a"].help == "c"

    def test_the_rest_is_absls(self) -> None:
        assert flags.DuplicateFlagError is absl_flags.DuplicateFlagError
        assert flags.mark_flag_as_required is absl_flags.mark_flag_as_required
        with pytest.raises(AttributeError):
            _ = flags.nothing


class TestWrongFlags:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--task_index=abc"], "flag --task_index=abc: invalid literal for int() with base 10: 'abc'"),
            (["--mode=c"], "flag --mode=c: value should be one of <a|b>"),
            (["--task_index"], "Missing value for flag --task_index"),
            (["--task_ind=4"], "Unknown command line flag 'task_ind'. Did you mean: task_index ?"),
        ],
    )
    def test_usage_errors_print_one_line_and_exit_with_code_2(
        self,
        values: flags.LazyFlags,
        command_line: Callable[..., None],
        capsys: pytest.CaptureFixture[str],
        arguments: list[str],
        message: str,
    ) -> None:
        command_line(*arguments)
        with pytest.raises(SystemExit) as stopped:
            _ = values.job_name
        assert stopped.value.code == 2
        assert isinstance(stopped.value, flags.Error)
        assert capsys.readouterr().err == f"program.py: {message}\n"

    def test_required_flags(
        self, values: flags.LazyFlags, command_line: Callable[..., None], capsys: pytest.CaptureFixture[str]
    ) -> None:
        flags.DEFINE_string("needed", None, "A flag without a default", flag_values=values._flags)
        flags.mark_flag_as_required("needed", flag_values=values._flags)
        command_line()
        with pytest.raises(flags.BadFlagError):
            _ = values.job_name
        assert "--needed" in capsys.readouterr().err


class TestRun:
    def test_main_gets_the_rest(self, values: flags.LazyFlags, command_line: Callable[..., None]) -> None:
        command_line("--rate=2", "a", "--unknown=3", "--nois_chief", "b")
        seen: list[list[str]] = []

        def main(argv: list[str]) -> int:
            seen.append(argv)
            return 3

        with pytest.raises(SystemExit) as stopped:
            app.run(main)
        assert stopped.value.code == 3
        assert seen == [["folder/program.py", "a", "--unknown=3", "b"]]
        assert values.rate == 2.0

    def test_given_arguments_and_the_programs_main(
        self, values: flags.LazyFlags, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.modules["__main__"], "main", lambda argv: argv, raising=False)
        with pytest.raises(SystemExit) as stopped:
            app.run(argv=["p", "--rate=4", "x"])
        assert stopped.value.code == ["p", "x"]
        assert values.rate == 4.0

    def test_a_wrong_flag(self, values: flags.LazyFlags, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            app.run(lambda argv: 0, ["p", "--rate=x"])
        assert stopped.value.code == 2
        assert "--rate=x" in capsys.readouterr().err
