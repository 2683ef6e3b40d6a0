"""The PVCs that a graph creates."""

from dynamo_operator.graph.render import pvc_objects, retained_pvcs
from specs import a_graph, a_service


def test_only_claims_to_create_become_objects() -> None:
    wanted = {
        "name": "models",
        "create": True,
        "size": "50Gi",
        "storageClass": "fast",
        "volumeAccessMode": "ReadWriteMany",
    }
    graph = a_graph({"w": a_service()}, pvcs=[{"name": "mine"}, wanted])
    [claim] = pvc_objects(graph)
    assert {"name": "models", "namespace": "prod"} == claim["metadata"]
    assert {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "50Gi"}},
        "storageClassName": "fast",
    } == claim["spec"]


def test_claims_to_retain_are_named() -> None:
    pvcs = [{"name": "a", "retain": True}, {"name": "b"}]
    assert frozenset({"a"}) == retained_pvcs(a_graph({"w": a_service()}, pvcs=pvcs))
