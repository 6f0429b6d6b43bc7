"""An API server of Kubernetes for tests: stores objects, validates requests, and simulates pods.

It implements the part of the HTTP interface that the backend uses: create, list, delete and delete a collection, with
label selectors, and logs of pods. Created objects are validated by a function, such as against the published schemas of
a version of Kubernetes. It makes a pod for each Job, and another one when a pod has failed and the Job's backoff limit
allows it. The test determines the states of the pods.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

_PATHS = re.compile(
    r"/(?:api/v1|apis/(?:batch|networking.k8s.io|policy)/v1)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+)(?P<log>/log)?)?"
)
_GROUPS = {
    "jobs": "/apis/batch/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
}


@dataclass
class Request:
    """A received request."""

    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any] | None


@dataclass
class FakeKubernetes:
    """The state of the cluster.

    Attributes:
      check: called with each object to create; raises an error if the object is invalid.
      refuse: HTTP status codes with which the next requests are refused, one for each.
      forbid: kinds of objects that can no longer be created, as with an exhausted quota.
      rules: the permitted requests, as rules of a Role; None permits all.
    """

    check: Callable[[dict[str, Any]], None]
    requests: list[Request] = field(default_factory=list)
    refuse: list[int] = field(default_factory=list)
    forbid: set[str] = field(default_factory=set)
    rules: list[dict[str, Any]] | None = None
    _objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    _logs: dict[str, list[str]] = field(default_factory=dict)
    _clock: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def names(self, kind: str) -> list[str]:
        with self._lock:
            return [name for of, _, name in self._objects if of == kind]

    def get(self, kind: str, name: str) -> dict[str, Any]:
        with self._lock:
            return next(one for (of, _, named), one in self._objects.items() if (of, named) == (kind, name))

    def pods_of(self, job: str) -> list[str]:
        """Returns the names of the pods of a Job, oldest first."""
        return [name for name in self.names("pods") if name.rpartition("-")[0] == job]

    def add_node(self, name: str, **allocatable: str) -> None:
        ready = {"type": "Ready", "status": "True"}
        self._put(
            "nodes",
            "",
            {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": allocatable, "conditions": [ready]}},
        )

    def log(self, pod: str, *lines: str) -> None:
        """Adds lines to a pod's log."""
        self._logs.setdefault(pod, []).extend(f"{self._now()} {line}" for line in lines)

    def wait(self, pod: str, message: str) -> None:
        """Marks a pod as unschedulable, with the scheduler's message."""
        with self._lock:
            status = self.get("pods", pod)["status"]
            status["phase"] = "Pending"
            status["conditions"] = [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            ]

    def run(self, *pods: str) -> None:
        """Marks pods as running."""
        for pod in pods:
            self.get("pods", pod)["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}

    def end(self, pod: str, code: int, *, reason: str = "", status_reason: str = "") -> None:
        """Ends a pod's container. Its Job then makes another pod, has failed, or is complete."""
        with self._lock:
            found = self.get("pods", pod)
            ended = {"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T00:01:00Z"}
            found["status"] = {
                "phase": "Failed" if code else "Succeeded",
                "reason": status_reason,
                "containerStatuses": [{"name": "task", "state": {"terminated": ended}}],
            }
            name = pod.rpartition("-")[0]
            if name not in self.names("jobs"):
                return
            job = self.get("jobs", name)
            status = job.setdefault("status", {})
            if not code:
                status["conditions"] = [{"type": "Complete", "status": "True"}]
                return
            status["failed"] = status.get("failed", 0) + 1
            if status["failed"] > job["spec"]["backoffLimit"]:
                why = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
                status["conditions"] = [{"type": "Failed", "status": "True", **why}]
            else:
                self._make_pod(job)

    def admit(self, name: str) -> None:
        """Starts the suspended Job ``name``, as a queueing controller does."""
        with self._lock:
            job = self.get("jobs", name)
            job["spec"]["suspend"] = False
            self._make_pod(job)

    def _now(self) -> str:
        return f"2026-01-01T00:00:{next(self._clock):02d}.000000000Z"

    def _put(self, kind: str, namespace: str, one: dict[str, Any]) -> None:
        with self._lock:
            one["metadata"] |= {"creationTimestamp": self._now(), "uid": f"uid-{next(self._clock)}"}
            self._objects[kind, namespace, one["metadata"]["name"]] = one

    def _make_pod(self, job: dict[str, Any]) -> None:
        namespace = job["metadata"]["namespace"]
        template = job["spec"]["template"]
        name = f"{job['metadata']['name']}-{next(self._clock):05d}"
        metadata: dict[str, Any] = {"name": name, "namespace": namespace, **template["metadata"]}
        metadata["labels"] = dict(metadata["labels"])
        metadata["ownerReferences"] = [{"kind": "Job", "name": job["metadata"]["name"]}]
        self._put("pods", namespace, {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}})

    def answer(self, request: Request) -> tuple[int, Any]:
        """Returns the status code and the body of the answer to ``request``."""
        with self._lock:
            self.requests.append(request)
            if self.refuse:
                return _failure(self.refuse.pop(0), "the test refuses this")
            if request.path == "/apis/policy/":
                return 200, {"preferredVersion": {"groupVersion": "policy/v1", "version": "v1"}}
            match = _PATHS.fullmatch(request.path)
            if match is None or not request.path.startswith(_GROUPS.get(match["kind"], "/api/v1/")):
                return _failure(404, f"there is no {request.path}")
            if not self._allowed(request, match):
                return _failure(403, f"{request.method} {request.path} is forbidden: the role does not allow it")
            return self._answer(request, match["kind"], match["namespace"] or "", match["name"], bool(match["log"]))

    def _allowed(self, request: Request, match: re.Match[str]) -> bool:
        if self.rules is None:
            return True
        resource = f"{match['kind']}/log" if match["log"] else match["kind"]
        one = {"GET": "get", "DELETE": "delete", "POST": "create", "PATCH": "patch"}
        many = {"GET": "list", "DELETE": "deletecollection", "POST": "create"}
        verb = (one if match["name"] else many)[request.method]
        group = _GROUPS[match["kind"]].split("/")[2] if match["kind"] in _GROUPS else ""
        return any(
            group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
            for rule in self.rules
        )

    def _answer(self, request: Request, kind: str, namespace: str, name: str | None, log: bool) -> tuple[int, Any]:
        if request.method == "POST":
            assert request.body is not None
            if kind in self.forbid:
                return _failure(403, f"exceeded quota: {kind}")
            if (kind, namespace, request.body["metadata"]["name"]) in self._objects:
                return _failure(409, f"{kind} {request.body['metadata']['name']!r} already exists")
            assert request.body["metadata"].get("namespace", namespace) == namespace
            self.check(request.body)
            request.body["metadata"]["namespace"] = namespace
            self._put(kind, namespace, request.body)
            if kind == "jobs" and not request.body["spec"].get("suspend"):
                self._make_pod(request.body)
            return 201, request.body
        if log:
            if (kind, namespace, name) not in self._objects:
                return _failure(404, f"pods {name!r} not found")
            return 200, "".join(f"{line}\n" for line in self._logs.get(name or "", []))
        if name is None:
            selected = self._selected(kind, namespace, request.query.get("labelSelector", ""))
            if request.method == "DELETE":
                for one in selected:
                    self._delete(kind, namespace, one["metadata"]["name"], "Background")
            return 200, {"items": selected}
        if request.method == "GET" and (kind, namespace, name) in self._objects:
            return 200, self._objects[kind, namespace, name]
        if (kind, namespace, name) not in self._objects:
            return _failure(404, f"{kind} {name!r} not found")
        if request.method == "PATCH":
            assert request.body is not None
            labels = self._objects[kind, namespace, name]["metadata"]["labels"]
            for label, value in request.body["metadata"]["labels"].items():
                assert value is None
                labels.pop(label, None)
        if request.method == "DELETE":
            self._delete(kind, namespace, name, request.query.get("propagationPolicy", "Orphan"))
        return 200, {}

    def _selected(self, kind: str, namespace: str, selector: str) -> list[dict[str, Any]]:
        parts = [re.split("(!?=)", part) for part in selector.split(",") if part]
        return [
            one
            for (of, where, _), one in self._objects.items()
            if of == kind
            and where == (namespace or where)
            and all(
                (one["metadata"].get("labels", {}).get(name) == value) == (sign == "=") for name, sign, value in parts
            )
        ]

    def _delete(self, kind: str, namespace: str, name: str, propagation: str) -> None:
        gone = self._objects.pop((kind, namespace, name))
        for key, one in list(self._objects.items()):
            owners = one["metadata"].get("ownerReferences", [])
            if any(owner.get("uid") == gone["metadata"]["uid"] for owner in owners) and key in self._objects:
                self._delete(*key, "Background")
        if kind == "jobs" and propagation != "Orphan":
            for pod in self.pods_of(name):
                del self._objects["pods", namespace, pod]


def _failure(status: int, message: str) -> tuple[int, Any]:
    return status, {"kind": "Status", "status": "Failure", "message": message, "code": status}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: FakeKubernetes

    def handle(self) -> None:
        with contextlib.suppress(ConnectionResetError):  # a client that disconnects between two requests
            super().handle()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        status, answer = self.cluster.answer(Request(self.command, parts.path, query, body))
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def fake_kubernetes(folder: Path, check: Callable[[dict[str, Any]], None]) -> Iterator[tuple[FakeKubernetes, Path]]:
    """Context manager for a cluster; yields it, and the path of a kubeconfig file for it."""
    cluster = FakeKubernetes(check)
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "test", "user": {"token": "t0ken"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config))
        try:
            yield cluster, path
        finally:
            server.shutdown()
            thread.join()
