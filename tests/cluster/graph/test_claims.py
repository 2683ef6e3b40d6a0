"""PVCs of a graph: created once, never changed, never deleted by us."""

from typing import Any

import pytest

from cluster.conditions import is_ready
from cluster.graph.graphs import graph, service
from cluster.world import GRAPH, World
from kube_runtime.types.kinds import PersistentVolumeClaim
from kube_runtime.types.meta import Object

CLAIM = PersistentVolumeClaim.KIND

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def with_claims(*claims: Object) -> Object:
    wanted = graph(Frontend=service("frontend"))
    wanted["spec"]["pvcs"] = list(claims)
    return wanted


def made(name: str = "models", size: str = "1Gi") -> Object:
    details = {"size": size, "storageClass": "standard", "volumeAccessMode": "ReadWriteMany"}
    return {"name": name, "create": True, **details}


def claim(name: str) -> Object:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "theirs",
        "resources": {"requests": {"storage": "5Gi"}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_a_claim_is_neither_changed_nor_taken_away(world: World) -> None:
    world.create(GRAPH, with_claims(made(size="1Gi")))
    before = world.eventually(CLAIM, "models")
    world.patch(GRAPH, "chat", {"spec": {"pvcs": [made(size="2Gi"), made("more")]}})
    world.eventually(CLAIM, "more")
    world.patch(GRAPH, "chat", {"spec": {"pvcs": None}})
    world.eventually(GRAPH, "chat", lambda it: it["status"].get("observedGeneration") == 3)
    after = world.eventually(CLAIM, "models")
    assert before["spec"] == after["spec"]
    assert "deletionTimestamp" not in after["metadata"]


def test_a_claim_that_exists_is_left_alone(world: World) -> None:
    before = world.create(CLAIM, claim("models"))
    world.create(GRAPH, with_claims(made()))
    world.eventually(GRAPH, "chat", is_ready)
    after = world.eventually(CLAIM, "models")
    assert before["spec"] == after["spec"]
    assert "ownerReferences" not in after["metadata"]


def is_going(claim: Object | None) -> bool:
    """Whether a PVC is deleted, or waits for its finalizers."""
    return claim is None or "deletionTimestamp" in claim["metadata"]


def test_a_retained_claim_outlives_its_graph(world: World) -> None:
    kept, late = made("kept") | {"retain": True}, made("late")
    world.create(GRAPH, with_claims(kept, late, made("gone")))
    world.eventually(CLAIM, "gone", lambda it: bool(it["metadata"]["ownerReferences"]))
    found = world.eventually(CLAIM, "kept")
    assert "ownerReferences" not in found["metadata"]
    changed = [kept, late | {"retain": True, "size": "9Gi"}, made("gone")]
    world.patch(GRAPH, "chat", {"spec": {"pvcs": changed}})
    freed = world.eventually(CLAIM, "late", lambda it: not it["metadata"].get("ownerReferences"))
    assert "1Gi" == freed["spec"]["resources"]["requests"]["storage"]
    world.delete(GRAPH, "chat")
    world.until(lambda: is_going(world.get(CLAIM, "gone")))
    for name in ("kept", "late"):
        assert "deletionTimestamp" not in world.eventually(CLAIM, name)["metadata"]
