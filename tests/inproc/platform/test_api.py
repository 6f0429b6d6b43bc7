"""The API compared with its own description, and its refusals. No job runs here: the manager is not started."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import uvicorn
from cryptography.fernet import Fernet
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headwater.platform.app import MAX_BODY, create_app
from headwater.platform.auth import Auth
from headwater.platform.backends.local import LocalBackend, LocalSettings
from headwater.platform.host.lines import stamp
from headwater.platform.job_secrets import SecretError
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.records import TokenRole
from headwater.platform.secret_store import KEY_FILE, KEY_VARIABLE, StoredSecrets, secrets_keys
from headwater.platform.server import proxy_settings
from headwater.platform.service import Platform
from headwater.platform.store import Store

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
JOB = {"name": "linear", "command": ["true"]}


class Api:
    """An application that a thread serves, and clients for each role."""

    def __init__(self, folder: Path, *, auth: bool = True, trusted_proxies: Sequence[str] = (), **bounds: Any) -> None:
        self.store = Store(f"sqlite:///{folder}/jobs.db")
        self.store.open()
        backend = LocalBackend(LocalSettings(state_dir=folder / "local"))
        secrets = StoredSecrets(self.store, secrets_keys(folder, {}), time.time)
        self.manager = Manager(self.store, [backend], ManagerSettings(data_dir=folder), secrets=secrets)
        self.auth = Auth(self.store, required=auth)
        self.platform = Platform(self.store, self.manager, self.auth, **bounds)
        self.app: FastAPI = create_app(self.platform)
        self.secrets = {role: self.auth.issue_token(role, role)[1] for role in ("view", "run", "admin")}
        listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://localhost:{listening.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(self.app, log_config=None, lifespan="on", **proxy_settings(trusted_proxies))
        )
        self._thread = threading.Thread(target=self._server.run, args=([listening],))
        self._thread.start()
        self._clients: list[httpx.Client] = []

    def client(self, role: TokenRole | None = "run") -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.secrets[role]}"} if role is not None else {}
        client = httpx.Client(base_url=f"{self.address}/api/v1", headers=headers, trust_env=False, timeout=60.0)
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join()
        self.manager.close()
        self.store.close()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = Api(tmp_path)
    yield api
    api.close()


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_the_api_keeps_to_its_description(tmp_path: Path, mode: schemathesis.GenerationMode) -> None:
    api = Api(tmp_path, per_s=1e9, burst=10**9)
    job_id = api.client().post("/jobs", json=JOB).json()["id"]
    headers = {"Authorization": f"Bearer {api.secrets['admin']}"}
    schema = schemathesis.openapi.from_url(f"{api.address}/api/v1/openapi.json")
    # Streams of events do not end while there are unfinished jobs.
    found = list(schema.exclude(path_regex="(stream|/logs)$").get_all_operations())
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) == len(found)
    assert len(operations) > 15
    seen: set[str] = set()
    try:
        for operation in operations:
            # An existing job, unless the method deletes it.
            known = "{job_id}" in operation.path and operation.method != "delete"
            paths = {"job_id": job_id} if known and mode is schemathesis.GenerationMode.POSITIVE else {}

            @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
            @given(case=operation.as_strategy(generation_mode=mode, path_parameters=paths or None))
            def check(case: schemathesis.Case) -> None:
                response = case.call(headers=headers)
                case.validate_response(response, checks=CHECKS)
                seen.add(f"{case.method} {case.operation.path}")

            # A request without parameters cannot have wrong ones.
            with contextlib.suppress(Unsatisfiable):
                check()
    finally:
        api.close()
    assert len(seen) > 10


def test_requests_without_a_token_are_rejected(api: Api) -> None:
    client = api.client(None)
    assert client.get("/health").json()["status"] == "ok"
    paths = api.app.openapi()["paths"]
    for path, operations in paths.items():
        if path.endswith("/health"):
            continue
        filled = (
            path.replace("{job_id}", "a")
            .replace("{task}", "ps-0")
            .replace("{token_id}", "0" * 16)
            .replace("{name}", "a")
        )
        for method in operations:
            refused = client.request(method, f"{api.address}{filled}")
            assert refused.status_code == 401, (method, path)
            assert refused.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer TOKEN" in refused.json()["message"]


def test_roles(api: Api) -> None:
    assert api.client("view").post("/jobs", json=JOB).status_code == 403
    job = api.client("run").post("/jobs", json=JOB).json()
    assert api.client("view").get(f"/jobs/{job['id']}").json()["owner"] == "run"
    assert api.client("run").get("/tokens").status_code == 403
    admin = api.client("admin")
    given_token = admin.post("/tokens", json={"name": "eve", "role": "view"}).json()
    eve = {"Authorization": f"Bearer {given_token['secret']}"}
    assert api.client(None).get("/me", headers=eve).json() == {"name": "eve", "role": "view"}
    assert given_token["secret"] not in admin.get("/tokens").text
    assert admin.delete(f"/tokens/{given_token['id']}").status_code == 204
    assert api.client(None).get("/me", headers=eve).status_code == 401


def test_wrong_tokens_are_limited_and_a_correct_one_is_accepted(api: Api) -> None:
    client = api.client(None)
    wrong = {"Authorization": "Bearer hw_wrong"}
    answers = [client.get("/jobs", headers=wrong).status_code for _ in range(25)]
    assert (answers[0], answers[-1]) == (401, 429)
    assert api.client("admin").get("/jobs").status_code == 200


def test_the_forwarded_address_counts_where_a_proxy_is_trusted(tmp_path: Path) -> None:
    for trusted, expected in (((), 429), (("127.0.0.1",), 401)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        api = Api(folder, trusted_proxies=trusted)
        client = api.client(None)
        answers = [
            client.get("/jobs", headers={"Authorization": "Bearer hw_x", "X-Forwarded-For": f"10.0.0.{number}"})
            for number in range(25)
        ]
        assert answers[-1].status_code == expected
        api.close()


def test_logs_are_searched_downloaded_and_shown_in_the_order_of_time(api: Api) -> None:
    client = api.client()
    job_id = client.post("/jobs", json={**JOB, "workers": 2}).json()["id"]
    client.post(f"/jobs/{job_id}/stop")
    for task, lines in (
        ("worker-0", [(1.0, "one ERROR"), (4.0, "four")]),
        ("worker-1", [(2.0, "two"), (3.0, "Error 3")]),
    ):
        path = api.platform.settings.log_path(job_id, task)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(stamp(at) + line.encode() + b"\n" for at, line in lines))
    shown = client.get(f"/jobs/{job_id}/logs").text.splitlines()
    entries = [json.loads(line[6:]) for line in shown if line.startswith("data: ")]
    assert [(entry["task"], entry["at"], entry["line"]) for entry in entries] == [
        ("worker-0", 1.0, "one ERROR"),
        ("worker-1", 2.0, "two"),
        ("worker-1", 3.0, "Error 3"),
        ("worker-0", 4.0, "four"),
    ]
    tail = client.get(f"/jobs/{job_id}/logs?tail=1").text
    assert [json.loads(line[6:])["line"] for line in tail.splitlines() if line.startswith("data: ")] == ["four"]
    first = client.get(f"/jobs/{job_id}/search", params={"text": "error", "limit": 1}).json()
    assert [line["line"] for line in first["lines"]] == ["one ERROR"]
    rest = client.get(f"/jobs/{job_id}/search", params={"text": "error", "cursor": first["cursor"]}).json()
    assert ([(line["task"], line["line"]) for line in rest["lines"]], rest["cursor"]) == (
        [("worker-1", "Error 3")],
        None,
    )
    assert client.get(f"/jobs/{job_id}/search", params={"text": "x", "task": "worker-9"}).status_code == 404
    whole = client.get(f"/jobs/{job_id}/download")
    assert whole.headers["content-disposition"] == f'attachment; filename="{job_id}.log"'
    assert [line.split(" ", 1)[1] for line in whole.text.splitlines()] == [
        "worker-0 | one ERROR",
        "worker-1 | two",
        "worker-1 | Error 3",
        "worker-0 | four",
    ]
    one = client.get(f"/jobs/{job_id}/download", params={"task": "worker-1", "times": False})
    assert one.text == "two\nError 3\n"
    assert client.get(f"/jobs/{job_id}/logs/worker-1").json()["text"] == "two\nError 3\n"


def test_a_program_that_is_not_there_is_refused_at_once(api: Api, tmp_path: Path) -> None:
    client = api.client()
    refused = client.post("/jobs", json={"name": "a", "program": "train.py", "workdir": str(tmp_path)})
    assert (refused.status_code, refused.json()["message"]) == (409, f"program: there is no 'train.py' in {tmp_path}")
    refused = client.post("/jobs", json={"name": "a", "program": "train.py", "workdir": str(tmp_path / "none")})
    assert "workdir: there is no folder" in refused.json()["message"]


def test_a_client_may_not_ask_too_often(tmp_path: Path) -> None:
    api = Api(tmp_path, per_s=0.001, burst=3)
    answers = [api.client().get("/jobs") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert api.client("view").get("/jobs").status_code == 200
    api.close()


def test_a_job_by_its_file(api: Api) -> None:
    client = api.client()
    text = "name: linear\nmodule: train\nworkdir: /srv\nworkers: 2:4\n"
    job = client.post("/jobs?workers=3", content=text, headers={"content-type": "application/yaml"}).json()
    assert (job["phase"], job["workers"], job["workers_range"]) == ("queued", 3, "2:4")
    assert job["spec"] == {"name": "linear", "module": "train", "workdir": "/srv", "workers": "2:4"}
    assert [task["name"] for task in job["tasks"]] == ["worker-0", "worker-1", "worker-2"]
    assert client.get("/jobs").json()["jobs"][0]["id"] == job["id"]
    events = client.get(f"/jobs/{job['id']}/events").json()
    assert [(event["kind"], event["text"]) for event in events] == [("queued", "submitted by run")]
    assert client.get(f"/jobs/{job['id']}/logs/worker-0").json()["text"] == ""
    assert client.get(f"/jobs/{job['id']}/logs/worker-9").status_code == 404


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: A\nprogram: x\n", "job.yaml:1: name: "),
        ("name: a\nprogram: x\nworkdir: here\n", "workdir: must be an absolute path"),
        (
            "name: a\nprogram: x\narchive: here.tar\n",
            "archive: cannot be a path: upload the file, and submit the job with its digest",
        ),
    ],
)
def test_a_wrong_job_is_refused_with_its_fields(api: Api, text: str, message: str) -> None:
    refused = api.client().post("/jobs", content=text)
    assert refused.status_code == 422
    assert message in refused.json()["message"]
    assert refused.json()["problems"][0]["field"] in message


def test_input_that_is_not_text(api: Api) -> None:
    assert api.client().post("/jobs", content=b"\xff\xfe").status_code == 400


def test_checking_a_file_submits_nothing(api: Api) -> None:
    client = api.client("view")
    assert client.post("/validate", content="name: a\nprogram: b\nps: x").json()["error"]["problems"][0]["line"] == 3
    assert client.post("/validate", json=JOB).json() == {"ok": True, "error": None, "spec": JOB}
    assert client.get("/jobs").json()["jobs"] == []


def test_stop_restart_scale_and_delete(api: Api) -> None:
    client = api.client()
    job_id = client.post("/jobs", json={**JOB, "workers": "1:3"}).json()["id"]
    assert client.post(f"/jobs/{job_id}/scale", json={"workers": 2}).json()["workers"] == 2
    out_of_range = client.post(f"/jobs/{job_id}/scale", json={"workers": 9})
    assert (out_of_range.status_code, "within 1:3" in out_of_range.text) == (409, True)
    refused = client.delete(f"/jobs/{job_id}")
    assert (refused.status_code, refused.json()["message"]) == (409, "the job is queued: stop it first")
    assert client.post(f"/jobs/{job_id}/stop").json()["phase"] == "stopped"
    assert client.post(f"/jobs/{job_id}/restart").json()["phase"] == "queued"
    assert client.post(f"/jobs/{job_id}/stop").json()["reason"] == "stopped by run"
    assert client.delete(f"/jobs/{job_id}").status_code == 204
    assert client.get(f"/jobs/{job_id}").status_code == 404


def test_archives(api: Api) -> None:
    client = api.client()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    digest = client.put("/archives", content=buffer.getvalue()).json()["digest"]
    job = client.post(f"/jobs?archive={digest}", json={**JOB, "workdir": "inner"})
    assert job.status_code == 201
    assert client.post(f"/jobs?archive={'0' * 64}", json=JOB).status_code == 404
    assert client.post(f"/jobs?archive={digest}", json={**JOB, "workdir": "a/../.."}).status_code == 422
    assert client.put("/archives", content=b"#!/bin/sh").status_code == 422


def test_input_that_is_too_large(tmp_path: Path) -> None:
    api = Api(tmp_path, max_archive_bytes=1000)
    client = api.client()
    assert client.put("/archives", content=b"PK\x03\x04" + bytes(1000)).status_code == 413
    assert list((tmp_path / "archives").iterdir()) == []
    assert client.post("/jobs", content=b"#" * (MAX_BODY + 1)).status_code == 413

    def in_parts() -> Iterator[bytes]:
        for _ in range(3):
            yield b"#" * (MAX_BODY // 2)

    assert client.post("/jobs", content=in_parts()).status_code == 413
    api.close()


def test_other_sites_cannot_make_a_browser_ask(tmp_path: Path) -> None:
    api = Api(tmp_path, auth=False)
    client = api.client(None)
    assert client.post("/jobs", json=JOB).status_code == 201
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/jobs", json=JOB, headers=headers).status_code == 403
    assert client.get("/jobs", headers={"host": "evil.example"}).status_code == 400
    assert client.post("/jobs", json=JOB, headers={"origin": api.address}).status_code == 201
    api.close()


def test_a_session_needs_its_csrf_secret(api: Api) -> None:
    opened = api.auth.open_session(api.secrets["run"])
    assert opened is not None
    client = api.client(None)
    client.cookies.set("headwater_session", opened.secret)
    assert client.get("/me").json()["role"] == "run"
    assert client.post("/jobs", json=JOB).status_code == 401
    assert client.post("/jobs", json=JOB, headers={"x-csrf-token": opened.csrf}).status_code == 201


def test_a_stream_of_a_job_ends_with_it(api: Api) -> None:
    client = api.client()
    job_id = client.post("/jobs", json=JOB).json()["id"]
    client.post(f"/jobs/{job_id}/stop")
    lines = client.get(f"/jobs/{job_id}/stream").text.splitlines()
    jobs = [json.loads(line.removeprefix("data: ")) for line in lines if '"workers_range"' in line]
    texts = [json.loads(line.removeprefix("data: "))["text"] for line in lines if '"kind"' in line]
    assert jobs[-1]["phase"] == "stopped"
    assert texts == ["submitted by run", "run asked to stop the job", "stopped by run"]
    log = api.platform.settings.log_path(job_id, "worker-0")
    log.parent.mkdir(parents=True)
    log.write_bytes(b"one\ntwo\nthree")
    shown = client.get(f"/jobs/{job_id}/logs?tail=2").text
    assert [json.loads(line[6:])["line"] for line in shown.splitlines() if line.startswith("data: ")] == [
        "two",
        "three",
    ]
    part = client.get(f"/jobs/{job_id}/logs/worker-0?offset=4&limit=4").json()
    assert (part["text"], part["offset"], part["next_offset"], part["size"]) == ("two\n", 4, 8, 13)
    assert client.get(f"/jobs/{job_id}/logs/worker-0?tail=1").json()["text"] == "three"
    assert client.get(f"/jobs/{job_id}/logs/worker-0?offset=-5").json()["text"] == "three"
    seen = client.get(f"/jobs/{job_id}/stream", headers={"last-event-id": "2"}).text
    assert "submitted by run" not in seen
    assert "stopped by run" in seen


def test_machines_and_the_schema(api: Api) -> None:
    client = api.client("view")
    (host,) = client.get("/hosts").json()
    assert (host["backend"], host["host"], host["problem"]) == ("local", "local", "")
    assert host["total"]["cpus"] >= 1
    assert client.get("/schema").json()["required"] == ["name"]


def test_viewer_cannot_read_variables(api: Api) -> None:
    fields = {**JOB, "env": {"API_KEY": "hunter2"}, "workers": {"env": {"OTHER": "hunter3"}}}
    job_id = api.client().post("/jobs", json=fields).json()["id"]
    api.client().post(f"/jobs/{job_id}/stop")
    looker = api.client("view")
    for path in (f"/jobs/{job_id}", f"/jobs/{job_id}/stream"):
        text = looker.get(path).text
        assert "hunter" not in text
        assert "API_KEY" in text
    assert api.client().get(f"/jobs/{job_id}").json()["spec"]["env"] == {"API_KEY": "hunter2"}


def test_secrets_are_stored_and_never_shown(api: Api, tmp_path: Path) -> None:
    client, value = api.client(), "s3cret-and-lasting"
    job = {**JOB, "env": {"PLAIN": "yes", "KEY": {"secret": "wandb"}}}
    refused = client.post("/jobs", json=job)
    assert (refused.status_code, refused.json()["message"]) == (
        409,
        "env.KEY: there is no secret 'wandb': store it with 'headwater secret set wandb'",
    )
    stored = client.put("/secrets/wandb", json={"value": value})
    made = client.post("/jobs", json=job).json()
    shown = [
        stored,
        client.get("/secrets"),
        client.get(f"/jobs/{made['id']}"),
        client.get(f"/jobs/{made['id']}/events"),
        client.put("/secrets/wandb", json={"value": value}),
    ]
    assert all(answer.status_code == 200 and value not in answer.text for answer in shown)
    assert shown[1].json() == [{"name": "wandb", "owner": "run", "stored_at": shown[1].json()[0]["stored_at"]}]
    assert made["spec"]["env"] == {"PLAIN": "yes", "KEY": {"secret": "wandb"}}
    looked = api.client("view").get(f"/jobs/{made['id']}").json()["spec"]["env"]
    assert looked == {"PLAIN": "(hidden)", "KEY": {"secret": "wandb"}}
    assert api.client("view").get("/secrets").status_code == 403
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    used = client.delete("/secrets/wandb")
    assert used.status_code == 409
    assert f"the secret 'wandb' is used by these jobs; stop them first: {made['id']}" in used.json()["message"]
    client.post(f"/jobs/{made['id']}/stop")
    assert client.delete("/secrets/wandb").status_code == 204
    assert client.delete("/secrets/wandb").status_code == 404
    restarted = client.post(f"/jobs/{made['id']}/restart")
    assert (restarted.status_code, "there is no secret 'wandb'" in restarted.text) == (409, True)
    for wrong in ("", "x" * (64 * 1024 + 1), "zero\0byte"):
        assert client.put("/secrets/wandb", json={"value": wrong}).status_code == 422


def test_secrets_of_another_key_say_so(api: Api, tmp_path: Path) -> None:
    store, other = api.store, Fernet.generate_key().decode()
    StoredSecrets(store, [other], time.time).put("wandb", "value", "me")
    with pytest.raises(SecretError, match="'wandb' was stored with another key: start the server with that key, too"):
        api.platform.secrets.value("wandb")
    keys = secrets_keys(tmp_path, {KEY_VARIABLE: f"{Fernet.generate_key().decode()},{other}"})
    assert StoredSecrets(store, keys, time.time).value("wandb") == "value"
    with pytest.raises(SecretError, match="must be a key of 32 bytes in URL-safe base64"):
        StoredSecrets(store, secrets_keys(tmp_path, {KEY_VARIABLE: "short"}), time.time)


def test_a_job_of_a_sweep(api: Api) -> None:
    query = {"sweep": "linear-1", "setting": ["learning_rate=0.1", "batch=5"]}
    job = api.client().post("/jobs", json=JOB, params=query).json()
    assert (job["sweep"], job["settings"]) == ("linear-1", {"learning_rate": "0.1", "batch": "5"})
    assert job["spec"]["args"] == ["--learning_rate=0.1", "--batch=5"]
    assert api.client().post("/jobs", json=JOB, params={"setting": "x"}).status_code == 422
