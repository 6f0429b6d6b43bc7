"""Jobs of a server for programs and notebooks.

::

    from headwater.platform import Client

    client = Client()                       # by default, the server and the token of the commands
    job = client.submit("job.yaml", workers=4)
    job                                     # in a notebook: its state, its plots, its tasks
    job.wait()
    print(job.logs("worker-0"))
"""

from __future__ import annotations

import html
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.platform.client import ApiClient
from headwater.platform.sketch import Curve, sketch
from headwater.platform.spec import JobSpec, job_from_data
from headwater.platform.submission import read_job, resolve_paths, upload_files

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

__all__ = ["OVER", "Client", "Job"]

OVER = ("succeeded", "failed", "stopped")
"""The phases in which a job is over."""


class Job:
    """A job of a server. Its properties are queried from the server each time.

    Args:
      client: the server.
    """

    def __init__(self, client: ApiClient, job_id: str) -> None:
        self.id = job_id
        self._client = client

    @property
    def state(self) -> JsonObject:
        """The complete job as in ``GET /jobs/ID``: ``phase``, ``reason``, ``step``, ``loss``, ``tasks`` ..."""
        state: JsonObject = self._client.get(f"/jobs/{self.id}")
        return state

    @property
    def phase(self) -> str:
        """``queued``, ``running``, ``restarting``, ``ending``, ``succeeded``, ``failed`` or ``stopped``."""
        return str(self.state["phase"])

    @property
    def events(self) -> list[dict[str, object]]:
        """The job's events with their reasons, the oldest first."""
        events: list[JsonObject] = self._client.get(f"/jobs/{self.id}/events")
        return events

    @property
    def samples(self) -> list[JsonObject]:
        """Progress and speed of the job's tasks over time: ``task``, ``at``, ``step``, ``steps_per_s``, ``loss`` ..."""
        samples: list[JsonObject] = self._client.get(f"/jobs/{self.id}/samples")
        return samples

    def logs(self, task: str, *, tail: int | None = None) -> str:
        """Returns the output of a task such as ``worker-0``: at most 1 MiB, or its ``tail`` last lines."""
        return str(self._client.get(f"/jobs/{self.id}/logs/{task}", tail=tail)["text"])

    def watch(self) -> Iterator[JsonObject]:
        """Yields the job's state after each change, until it is over."""
        with self._client.stream(f"/jobs/{self.id}/stream") as events:
            for kind, entry in events:
                if kind == "job":
                    yield entry

    def wait(self) -> Job:
        """Waits until the job is over."""
        for state in self.watch():
            if state["phase"] in OVER:
                break
        return self

    def stop(self, *, requeue: bool = False) -> Job:
        """Requests a graceful stop of all tasks; ``requeue`` puts the job back into the queue, as after a
        preemption."""
        self._client.post(f"/jobs/{self.id}/stop", {"requeue": requeue})
        return self

    def restart(self) -> Job:
        """Restarts all tasks, also of a job that is over."""
        self._client.post(f"/jobs/{self.id}/restart")
        return self

    def scale(self, workers: int | None = None, *, ps: int | None = None) -> Job:
        """Changes the job's number of workers, of parameter servers, or of both."""
        self._client.post(f"/jobs/{self.id}/scale", {"workers": workers, "ps": ps})
        return self

    def delete(self) -> None:
        """Deletes the job, with its logs; it must be over."""
        self._client.delete(f"/jobs/{self.id}")

    def plot(self) -> str:
        """Returns the job's curves over time as an SVG image: loss, step, and number of running workers."""
        return sketch(curves(self.samples))

    def __repr__(self) -> str:
        state = self.state
        facts = [f"{state['tasks_running']} of {state['tasks_total']} tasks run"]
        facts += [f"step {state['step']:,}"] if state["step"] is not None else []
        facts += [f"loss {state['loss']:.4g}"] if isinstance(state["loss"], float) else []
        reason = f" ({state['reason']})" if state["reason"] else ""
        return f"<Job {self.id}: {state['phase']}{reason}, {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        """Returns the job's representation in notebooks."""
        state = self.state
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(task[key]))}</td>" for key in _COLUMNS) + "</tr>"
            for task in state["tasks"]
        )
        heads = "".join(f"<th>{name}</th>" for name in _COLUMNS.values())
        page = html.escape(f"{self._client.server}/jobs/{self.id}")
        reason = f"<div>{html.escape(state['reason'])}</div>" if state["reason"] else ""
        cost = f"<div>{html.escape(state['cost']['text'])}</div>" if state["cost"]["text"] else ""
        return (
            f'<div><b><a href="{page}">{self.id}</a></b> {state["phase"]}{reason}{cost}{self.plot()}'
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


class Client(ApiClient):
    """Jobs of a server.

    Args:
      server, token: see `ApiClient`.
    """

    def submit(
        self, job: str | Path | Mapping[str, object], *, workers: int | None = None, upload: bool = False
    ) -> Job:
        """Submits a job to the server's queue.

        Args:
          job: the path of a job file, or its fields.
          workers: number of workers, within the job's range.
          upload: whether to upload the working folder, for a server on another machine.

        Raises:
          JobSpecError: the job is invalid.
          ClientError: the server refuses the job, or does not answer.
          OSError, ValueError: the job file or the working folder cannot be read.
        """
        if isinstance(job, Mapping):
            spec: JobSpec = job_from_data(job)
        else:
            spec = resolve_paths(read_job(Path(job)), Path(job))
        spec, digest = upload_files(self, spec, upload=upload)
        body = spec.model_dump(mode="json", exclude_defaults=True)
        return Job(self, str(self.post("/jobs", body, workers=workers, archive=digest)["id"]))

    def job(self, job: str) -> Job:
        """Returns a job by its id, or the latest job of a name; raises ClientError if there is none."""
        return Job(self, self.job_id(job))

    def jobs(self, **query: object) -> list[Job]:
        """Lists jobs, the latest first; ``query`` as in ``GET /jobs``, such as ``live=True`` or ``name="linear"``."""
        return [Job(self, entry["id"]) for entry in self.get("/jobs", **query)["jobs"]]


def curves(samples: list[JsonObject]) -> list[Curve]:
    """Returns curves of a job's samples, in seconds since the first: loss, step, and number of running workers."""
    if not samples:
        return []
    began = samples[0]["at"]
    return [
        Curve(name="loss", points=tuple(_combine_curves(samples, "loss", statistics.fmean))),
        Curve(name="step", points=tuple(_combine_curves(samples, "step", max))),
        Curve(name="workers", points=tuple(_workers(samples, began)), steps=True),
    ]


def _combine_curves(
    samples: list[JsonObject], name: str, combine: Callable[[Iterable[float]], float]
) -> Iterator[tuple[float, float]]:
    """Combines the recent values of all tasks into one curve."""
    began = samples[0]["at"]
    # Older values are ignored. Tasks are sampled every 5 s at first, and later about a thousand times in total.
    max_age_s = max(12.0, (samples[-1]["at"] - began) / 200)
    latest: dict[str, tuple[float, float]] = {}
    for entry in samples:
        if not isinstance(entry[name], float | int):
            continue
        latest[entry["task"]] = (entry["at"], float(entry[name]))
        latest = {task: value for task, value in latest.items() if entry["at"] - value[0] <= max_age_s}
        yield entry["at"] - began, combine([value for _, value in latest.values()])


def _workers(samples: list[JsonObject], began: float) -> Iterator[tuple[float, float]]:
    """Counts the workers with samples in each interval: a hundred intervals, but none shorter than 10 s."""
    length = max(10.0, (samples[-1]["at"] - began) / 100)
    parts: dict[int, set[str]] = {}
    for entry in samples:
        if entry["task"].startswith("worker-"):
            parts.setdefault(int((entry["at"] - began) / length), set()).add(entry["task"])
    # The last interval is incomplete.
    for number in range(max(max(parts, default=0), 1)):
        yield number * length, float(len(parts.get(number, ())))


_COLUMNS = {"name": "task", "phase": "state", "step": "step", "loss": "loss", "host": "host", "reason": "why"}


def _text(value: Json) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
