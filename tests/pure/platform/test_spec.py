"""Job files: their fields, and the errors of invalid ones."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.telemetry.sizes import size_text
from headwater.platform.job_file import read_job_file
from headwater.platform.quantities import parse_duration, parse_size
from headwater.platform.spec import JobSpec, JobSpecError, job_from_data, job_schema, parse_job

MINIMAL = "name: linear\nprogram: train.py\n"


def problems(text: str) -> list[str]:
    with pytest.raises(JobSpecError) as caught:
        parse_job(text)
    return str(caught.value).splitlines()


def test_a_whole_job() -> None:
    spec = parse_job(
        """
        name: mnist
        module: digits.train
        args: [--steps, 1000, "--out={log_dir}"]
        env: {DEBUG: 1}
        ps: 2
        workers: {count: 2:8, cpus: 1.5, memory: 2GiB, gpus: 1, env: {A: b}}
        chief: true
        evaluator: {memory: 512MiB}
        restart: {limit: 5, backoff: 500ms, max_backoff: 1m}
        deadlines: {pending: 1h30m, run: null, progress: 10m, grace: 5}
        log_dir: /logs
        """
    )
    assert spec.args == ["--steps", "1000", "--out={log_dir}"]
    assert spec.env == {"DEBUG": "1"}
    assert (spec.workers.count.least, spec.workers.count.most) == (2, 8)
    assert (spec.workers.cpus, spec.workers.memory, spec.workers.gpus) == (1.5, 2 << 30, 1)
    assert spec.counts() == {"ps": 2, "chief": 1, "worker": 2, "evaluator": 1}
    assert spec.counts(8)["worker"] == 8
    assert (spec.deadlines.pending, spec.deadlines.run, spec.deadlines.grace) == (5400.0, None, 5.0)
    assert spec.restart.backoff == 0.5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\n", "job.yaml:1: must have a program, a module or a command"),
        (MINIMAL + "command: [ls]\n", "job.yaml:3: command: cannot be given together with program"),
        (MINIMAL + "worker: 2\n", "job.yaml:3: worker: is not a field of a job"),
        ("program: a\n", "job.yaml:1: name: is missing"),
        (
            MINIMAL + "workers: 8:2\n",
            "job.yaml:3: workers.count: must be from 0 to 1000, with the smaller number first",
        ),
        (MINIMAL + "workers:\n  memory: lots\n", "job.yaml:4: workers.memory: must be a size such as 512MiB"),
        (MINIMAL + "workers:\n  count: 2\n  cpus: -1\n", "job.yaml:5: workers.cpus: input should be greater"),
        (MINIMAL + "ps: 0:2\n", "job.yaml:3: ps: can only be a range from 1 on"),
        (MINIMAL + "workers: 0\n", "job.yaml:3: workers: must be at least 1"),
        (MINIMAL + "chief: {count: 2}\n", "job.yaml:3: chief: must be at most one task"),
        (MINIMAL + "flags: true\nchief: true\n", "job.yaml:3: flags: cannot be used with a chief"),
        (MINIMAL + "env:\n  A: true\n", "job.yaml:4: env.A: must be text, but is true or false: put it in quotes"),
        (MINIMAL + "env:\n  1A: x\n", "job.yaml:4: env.1A: '1A' cannot be the name of an environment variable"),
        (MINIMAL + "args: ['{log_dir}']\n", "job.yaml:3: args: names {log_dir}, but the job has no log_dir"),
        (MINIMAL + "archive: a.zip\nworkdir: ../x\n", "job.yaml:4: workdir: must be a path within the archive"),
        (MINIMAL + "restart:\n  max_backoff: 0s\n", "job.yaml:4: restart.max_backoff: must not be shorter"),
        (MINIMAL + "deadlines: {grace: soon}\n", "job.yaml:3: deadlines.grace: must be a time such as 30s"),
        (MINIMAL + "name: b\n", "job.yaml:3: name: is given twice"),
        (MINIMAL + "args: &a [*a]\n", "is too large or nested too deeply"),
        (MINIMAL + "args: !!python/object:os.system x\n", "has a type that job files do not support"),
        ("- a\n", "job.yaml:1: must be a mapping"),
        ("", "job.yaml:1: must be a mapping"),
        ("a: [", "job.yaml:1: is not YAML"),
        ("a: \x00", "job.yaml: is not YAML"),
    ],
)
def test_an_error_names_the_field_and_the_line(text: str, problem: str) -> None:
    assert any(problem in line for line in problems(text))


def test_all_problems_are_reported_together() -> None:
    lines = problems("name: A\nprogram: x\nworkers:\n  memory: lots\nfoo: 1\n")
    assert [line.split(": ")[0] for line in lines] == ["job.yaml:1", "job.yaml:4", "job.yaml:5"]


def test_yaml_1_2_is_supported() -> None:
    file = read_job_file("{a: 2:8, b: yes, c: 2026-01-01, d: 0o17, e: 1e3, f: .5, g: ~, h: '1', i: 0x1F, j: 12e03}")
    assert list(file.data.values()) == ["2:8", "yes", "2026-01-01", 15, 1000.0, 0.5, None, "1", 31, 12000.0]


def test_expansion_of_aliases_is_limited() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    assert "is too large" in problems(bomb)[0]


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(JobSpecError):
        assert isinstance(read_job_file(text).data, dict)


def test_a_restart_concerns_one_task_where_there_are_ps() -> None:
    assert parse_job(MINIMAL + "ps: 1").restart_scope == "task"
    assert parse_job(MINIMAL).restart_scope == "job"
    assert parse_job(MINIMAL + "ps: 1\nrestart: {scope: job}").restart_scope == "job"


def test_a_job_survives_being_stored() -> None:
    spec = parse_job(MINIMAL + "ps: 1\nworkers: {count: 2:4, memory: 1GiB}\ndeadlines: {pending: null}")
    assert job_from_data(spec.model_dump(mode="json", exclude_defaults=True)) == spec
    assert JobSpec.model_validate(spec.model_dump()) == spec


def test_counts_outside_of_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="within 2:3, but is 4"):
        parse_job(MINIMAL + "workers: 2:3").counts(4)


def test_the_schema_knows_every_field() -> None:
    schema = job_schema()
    assert set(schema["properties"]) == set(JobSpec.model_fields)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("1h30m", 5400), ("500ms", 0.5), (7, 7), ("1.5m", 90), ("1d", 86400)]
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("value", ["", "5", "5x", -1, True, None, "99999d", float("nan"), float("inf")])
def test_invalid_durations_are_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("text", "size"), [("512MiB", 512 << 20), ("4Gi", 4 << 30), ("4GB", 4 * 10**9), ("1.5 KiB", 1536), (12, 12)]
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("value", ["", "x", "-1", -1, True, 1.5, "1" * 50, 2**61])
def test_invalid_sizes_are_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_size(value)


def test_sizes_for_people() -> None:
    assert [size_text(size) for size in (10, 1536, 3 << 30)] == ["10 B", "1.5 KiB", "3.0 GiB"]


def test_a_role_is_reported_as_it_is_written() -> None:
    text = "name: a\nprogram: b\nps: 1\nworkers: {count: 2, cpus: 1}\nchief: true\n"
    told = parse_job(text).model_dump(mode="json", exclude_defaults=True)
    assert (told["ps"], told["workers"], told["chief"]) == (1, {"count": 2, "cpus": 1.0}, 1)
    assert job_from_data(told) == parse_job(text)
    ranged = parse_job("name: a\nprogram: b\nworkers: 2:8\n")
    assert ranged.model_dump(mode="json", exclude_defaults=True)["workers"] == "2:8"
