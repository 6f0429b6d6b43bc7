"""``headwater render``: prints a job as its cluster engine gets it, to inspect or to submit by hand."""

from __future__ import annotations

import secrets
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.platform.cli.jobs import fail, parse_file

if TYPE_CHECKING:
    from headwater.platform.spec import JobSpec

_IMAGE = "headwater:latest"


class Engine(StrEnum):
    """Engines that run whole jobs."""

    KUBERNETES = "kubernetes"
    SLURM = "slurm"


def render(
    job: Annotated[Path | None, typer.Argument(metavar="JOB.YAML", help="The job file.")] = None,
    backend: Annotated[Engine, typer.Option(help="Engine to render for.")] = Engine.KUBERNETES,
    image: Annotated[str, typer.Option(help="Kubernetes: image, if the job names none.")] = _IMAGE,
    namespace: Annotated[str | None, typer.Option(help="Kubernetes: namespace, if the job names none.")] = None,
    folder: Annotated[
        str | None,
        typer.Option(help="Slurm: folder of this job, shared by all nodes; default: ~/.headwater/slurm/NAME."),
    ] = None,
    python: Annotated[
        str, typer.Option(help="Slurm: Python on the nodes in which Headwater is installed.")
    ] = "python3",
    rbac: Annotated[
        bool, typer.Option("--rbac", help="Kubernetes: render the permissions that the server needs, instead of a job.")
    ] = False,
) -> None:
    """Prints a job as manifests of Kubernetes, or as a batch script of Slurm.

    For kubectl apply -f - and for sbatch. Manifests contain no secrets: their first lines show how to create the
    secrets that they refer to. A batch script contains a new secret that the job's tasks share.
    """
    if rbac:
        from headwater.platform.backends import kubernetes_objects as objects  # noqa: PLC0415  pydantic takes 100 ms

        print(objects.to_yaml(objects.rights(namespace, "headwater", nodes=True)), end="")
        return
    if job is None:
        fail("render: JOB.YAML is missing: name a job file, or give --rbac", code=2)
    spec = parse_file(job)
    archive = None if spec.archive is None else job.absolute().parent / spec.archive
    try:
        text = (
            _kubernetes(spec, image, namespace, archive)
            if backend is Engine.KUBERNETES
            else _slurm(spec, folder or str(Path.home() / ".headwater" / "slurm" / spec.name), python, archive)
        )
    except (OSError, ValueError) as error:
        fail(f"{job}: {error}")
    print(text, end="")


def _kubernetes(spec: JobSpec, image: str, namespace: str | None, archive: Path | None) -> str:
    from headwater.platform.backends import kubernetes_objects as objects  # noqa: PLC0415  pydantic takes 100 ms

    name = objects.object_name(spec.name)
    how = objects.Rendering(name=name, job_id=spec.name, image=image, namespace=namespace, token=None, archive=archive)
    where = "" if namespace is None else f" --namespace={namespace}"
    lines = ["This file contains no secrets. Create the missing ones:"]
    lines += [f'kubectl create secret generic {name}{where} --from-literal=token="$(openssl rand -hex 32)"']
    lines += [
        f"kubectl create secret generic {secret}{where} --from-file=value=/dev/stdin  # {field}"
        for secret, field in spec.secrets().items()
    ]
    return "".join(f"# {line}\n" for line in lines) + objects.to_yaml(objects.job_objects(spec, how))


def _slurm(spec: JobSpec, folder: str, python: str, archive: Path | None) -> str:
    from headwater.platform.backends.slurm_script import SlurmRendering, batch_script  # noqa: PLC0415  as above

    how = SlurmRendering(
        job_id=spec.name,
        folder=folder,
        python=python,
        token=secrets.token_urlsafe(32),
        archive="" if archive is None else str(archive),
    )
    return batch_script(spec, how)
