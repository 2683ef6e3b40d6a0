"""Volumes of a graph: the user journeys of PVCs and caches."""

import pytest

from cluster.conditions import condition
from cluster.journeys.user import User, graph_manifest, main
from cluster.world import GRAPH
from kube_runtime.types.kinds import PersistentVolumeClaim
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

CLAIM = PersistentVolumeClaim.KIND


def with_claim(name: str, claim: str) -> str:
    return graph_manifest(
        f"""
        pvcs: [{claim}]
        services:
          Frontend: &service
            componentType: frontend
            volumeMounts: [{{name: models, mountPoint: /models}}]
            extraPodSpec: {{mainContainer: {{image: "reg.example.com/vllm-runtime:1.0"}}}}
          Worker: {{<<: *service, componentType: worker}}
        """,
        name,
    )


def test_j16_storage_that_is_missing(user: User) -> None:
    """The graph is `pending`, not `failed`: deviation K1. Nothing in it has to be corrected."""
    user.apply(with_claim("waits", "{name: models}"))
    waiting = user.says("waits", "models not found")
    assert "pending" == waiting["status"]["state"]
    user.create(a_claim("models"))
    for name in ("waits-frontend", "waits-worker"):
        assert {"name": "models", "mountPath": "/models"} in main(user.pod(name))["volumeMounts"]
    user.world.until(lambda: "not found" not in ready_message(user, "waits"))
    assert "ownerReferences" not in user.world.eventually(CLAIM, "models")["metadata"]
    words = user.refused(manifest=with_claim("sizeless", "{create: true, name: other}"))
    assert "When create is true, size, storageClass, and volumeAccessMode are required" in words


def ready_message(user: User, name: str) -> str:
    return str(condition(user.world.eventually(GRAPH, name)).get("message", ""))


def a_claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**about, "spec": spec}
