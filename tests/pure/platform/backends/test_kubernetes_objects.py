from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.platform.backends.kubernetes_objects import Rendering, job_objects, object_name, to_yaml
from headwater.platform.spec import JobSpec, job_from_data

validation = pytest.importorskip("kubernetes_validate")

OLDEST, NEWEST = "1.25.0", "1.37.0"


def spec(**fields: Any) -> JobSpec:
    return job_from_data({"name": "linear", "program": "train.py", "ps": 1, "workers": 2, **fields})


def render(job: JobSpec, **changes: Any) -> dict[str, dict[str, Any]]:
    how: dict[str, Any] = {"name": "linear", "job_id": "linear", "image": "headwater:1", "token": "s3cret"} | changes
    objects = job_objects(job, Rendering(**how))
    for one in objects:
        for version in (OLDEST, NEWEST):
            validation.validate(one, version, strict=True)
    return {f"{one['kind']} {one['metadata']['name']}": one for one in objects}


def pod(objects: dict[str, dict[str, Any]], task: str) -> dict[str, Any]:
    return objects[f"Job linear-{task}"]["spec"]["template"]["spec"]


def environment(objects: dict[str, dict[str, Any]], task: str) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod(objects, task)["containers"][0]["env"]}


def test_each_task_has_a_job_and_a_name_that_stays() -> None:
    objects = render(spec())
    assert list(objects) == [
        "Secret linear",
        "Service linear",
        "Job linear-ps-0",
        "Job linear-worker-0",
        "Job linear-worker-1",
    ]
    assert objects["Service linear"]["spec"]["clusterIP"] == "None"
    selector = objects["Service linear"]["spec"]["selector"]
    for task in ("ps-0", "worker-0", "worker-1"):
        labels = objects[f"Job linear-{task}"]["spec"]["template"]["metadata"]["labels"]
        assert selector.items() <= labels.items()
        assert (pod(objects, task)["hostname"], pod(objects, task)["subdomain"]) == (task, "linear")
        config = json.loads(environment(objects, task)["TF_CONFIG"])
        assert config["cluster"] == {
            "ps": ["ps-0.linear:2222"],
            "worker": ["worker-0.linear:2222", "worker-1.linear:2222"],
        }
        assert f"{config['task']['type']}-{config['task']['index']}" == task
    command = pod(objects, "ps-0")["containers"][0]["command"]
    assert command == ["python", "-P", "-m", "headwater.platform.host.pod_task", "headwater", "exec", "train.py"]


def test_gpus_are_visible_only_if_requested() -> None:
    objects = render(spec(workers={"count": 1, "gpus": 2, "cpus": 1.5, "memory": "2GiB"}))
    container = pod(objects, "worker-0")["containers"][0]
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "memory": str(2 << 30), "nvidia.com/gpu": "2"},
        "limits": {"memory": str(2 << 30), "nvidia.com/gpu": "2"},
    }
    assert "JAX_PLATFORMS" not in environment(objects, "worker-0")
    assert environment(objects, "ps-0")["JAX_PLATFORMS"] == "cpu"
    other = render(spec(workers={"count": 1, "gpus": 1}, kubernetes={"gpu_resource": "amd.com/gpu"}))
    assert pod(other, "worker-0")["containers"][0]["resources"]["limits"] == {"amd.com/gpu": "1"}


def test_restarts_grace_and_deadline_are_kubernetes_own() -> None:
    job = spec(restart={"limit": 5}, deadlines={"grace": "90s", "run": "1h"})
    made = render(job)["Job linear-worker-0"]["spec"]
    assert (made["backoffLimit"], made["activeDeadlineSeconds"]) == (5, 3600)
    assert made["template"]["spec"]["terminationGracePeriodSeconds"] == 90
    assert made["template"]["spec"]["restartPolicy"] == "Never"
    assert render(spec(restart={"policy": "never"}))["Job linear-ps-0"]["spec"]["backoffLimit"] == 0


def test_volumes_selectors_accounts_and_namespaces() -> None:
    volumes = [
        {"path": "/data", "claim": "mnist", "read_only": True},
        {"path": "/fast", "host_path": "/mnt/ssd"},
        {"path": "/scratch"},
    ]
    job = spec(
        workers={"count": 1, "node_selector": {"disk": "ssd"}},
        kubernetes={"volumes": volumes, "namespace": "team", "service_account": "trainer", "image": "mine:2"},
        workdir="/app",
    )
    objects = render(job, namespace="other")
    assert {one["metadata"]["namespace"] for one in objects.values()} == {"team"}
    made = pod(objects, "worker-0")
    assert made["volumes"][0]["persistentVolumeClaim"] == {"claimName": "mnist", "readOnly": True}
    assert made["volumes"][1]["hostPath"] == {"path": "/mnt/ssd"}
    assert made["volumes"][2]["emptyDir"] == {}
    assert [one["mountPath"] for one in made["containers"][0]["volumeMounts"]] == ["/data", "/fast", "/scratch"]
    assert (made["nodeSelector"], made["serviceAccountName"]) == ({"disk": "ssd"}, "trainer")
    assert (made["containers"][0]["image"], made["containers"][0]["workingDir"]) == ("mine:2", "/app")
    assert "nodeSelector" not in pod(objects, "ps-0")


def test_text_that_kubernetes_would_replace_stays() -> None:
    objects = render(spec(args=["$(HOME)"], env={"A": "$(B)"}))
    assert pod(objects, "ps-0")["containers"][0]["command"][-1] == "$$(HOME)"
    assert environment(objects, "ps-0")["A"] == "$$(B)"


def test_tasks_share_a_secret_that_is_in_no_pod() -> None:
    objects = render(spec())
    assert objects["Secret linear"]["stringData"] == {"token": "s3cret"}
    assert "s3cret" not in json.dumps([one for one in objects.values() if one["kind"] != "Secret"])
    assert "HEADWATER_TOKEN" in environment(objects, "worker-1")
    assert environment(render(spec(env={"HEADWATER_TOKEN": "own"})), "worker-1")["HEADWATER_TOKEN"] == "own"


def test_secrets_of_a_job_are_in_no_pod_and_in_no_manifest() -> None:
    job = spec(env={"KEY": {"secret": "wandb"}}, workers={"count": 1, "env": {"HUB": {"secret": "hub"}}})
    managed = render(job, secrets={"wandb": "value-1", "hub": "value-2"})
    assert managed["Secret linear"]["stringData"] == {
        "token": "s3cret",
        "secret.wandb": "value-1",
        "secret.hub": "value-2",
    }
    assert not re.search("value-[12]", json.dumps([one for one in managed.values() if one["kind"] != "Secret"]))
    container = pod(managed, "worker-0")["containers"][0]
    named = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one}
    assert named["HUB"] == {"name": "linear", "key": "secret.hub"}
    assert [one["name"] for one in pod(managed, "ps-0")["containers"][0]["env"] if "valueFrom" in one] == [
        "KEY",
        "HEADWATER_TOKEN",
    ]
    by_hand = render(job, token=None)
    assert "Secret linear" not in by_hand
    container = pod(by_hand, "worker-0")["containers"][0]
    named = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one}
    assert named == {
        "KEY": {"name": "wandb", "key": "value"},
        "HUB": {"name": "hub", "key": "value"},
        "HEADWATER_TOKEN": {"name": "linear", "key": "token"},
    }


def test_an_archive_is_unpacked_by_each_pod(tmp_path: Path) -> None:
    archive = tmp_path / "program.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(__file__, "train.py")
    objects = render(spec(archive="program.tar.gz", workdir="src"), archive=archive)
    made = pod(objects, "worker-0")
    assert made["containers"][0]["workingDir"] == "/headwater/work/src"
    assert made["initContainers"][0]["command"][-2:] == ["/headwater/archive/archive", "/headwater/work"]
    assert "ConfigMap linear" in objects
    archive.write_bytes(bytes(800_000))
    with pytest.raises(ValueError, match="put the program into the image or a volume"):
        render(spec(), archive=archive)


@pytest.mark.parametrize(
    ("job", "name"), [("linear-x1", "linear-x1"), ("1st", "hw-1st"), ("A_b", "a-b")], ids=["as is", "digit", "others"]
)
def test_names_fit(job: str, name: str) -> None:
    assert object_name(job) == name


def test_yaml_is_parsed_to_the_same_objects() -> None:
    objects = job_objects(spec(), Rendering(name="linear", job_id="linear", image="i", token="t"))
    assert list(yaml.safe_load_all(to_yaml(objects))) == objects
