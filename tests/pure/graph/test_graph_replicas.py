"""Settings of replicas in the environment, and settings that cannot be combined with them."""

from __future__ import annotations

import pytest

from headwater.cluster.spec import ClusterSpec
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.graph.server.replicas.limits import replicas_of

TWO = ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})


@pytest.mark.parametrize(
    ("environ", "replicas"), [({}, 1), ({"HEADWATER_REPLICAS": "1"}, 1), ({"HEADWATER_REPLICAS": "2"}, 2)]
)
def test_how_many(environ: dict[str, str], replicas: int) -> None:
    assert replicas_of(TWO, environ) == replicas


def test_a_cluster_without_ps_has_nothing_to_copy() -> None:
    assert replicas_of(ClusterSpec({"worker": ["a:1", "b:1"]}), {"HEADWATER_REPLICAS": "2"}) == 1


@pytest.mark.parametrize("text", ["0", "3", "two"])
def test_other_numbers(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"HEADWATER_REPLICAS must be 1 or 2, not '{text}'"):
        replicas_of(TWO, {"HEADWATER_REPLICAS": text})


@pytest.mark.parametrize(
    ("cluster", "environ", "message"),
    [
        (ClusterSpec({"ps": ["a:1"], "worker": ["c:1"]}), {}, "needs a second ps .* this cluster has 1"),
        (ClusterSpec({"ps": ["a:1", "b:1"]}), {}, "needs a chief or a worker"),
        (TWO, {"HEADWATER_SAVES": "/folder"}, "HEADWATER_SAVES cannot be combined"),
    ],
)
def test_unsupported_replica_settings_are_refused(cluster: ClusterSpec, environ: dict[str, str], message: str) -> None:
    with pytest.raises(FailedPreconditionError, match=message):
        replicas_of(cluster, {"HEADWATER_REPLICAS": "2", **environ})
