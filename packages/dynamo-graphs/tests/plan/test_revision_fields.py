"""An edit of a worker makes a new revision exactly if it changes the worker's pods."""

from typing import Any

import msgspec
import pytest

from dynamo_graphs import Graph
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.features.rollouts.plan import worker_content
from dynamo_operator.graph.api import DynamoGraphDeployment
from specs import IMAGE, a_service

EDITS: dict[str, Any] = {
    "annotations": {"example.com/a": "b"},
    "autoscaling": {"enabled": True},
    "componentType": "decode",
    "disruptionBudget": {"minAvailable": 1},
    "dynamoNamespace": "prod-chat",
    "envFromSecret": "tokens",
    "envs": [{"name": "A", "value": "b"}],
    "extraPodMetadata": {"labels": {"a": "b"}},
    "extraPodSpec": {"hostNetwork": True, "mainContainer": {"image": IMAGE}},
    "ingress": {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"},
    "labels": {"a": "b"},
    "livenessProbe": {"httpGet": {"port": 1}},
    "modelRef": {"name": "acme/chat"},
    "readinessProbe": {"httpGet": {"port": 1}},
    "replicas": 3,
    "resources": {"limits": {"cpu": "1"}},
    "scalingAdapter": {"enabled": True},
    "serviceName": "Decode",
    "sharedMemory": {"size": "1Gi"},
    "subComponentType": "decode",
    "volumeMounts": [{"name": "models", "mountPoint": "/models"}],
}
"""A value for each field of a worker that may have revisions."""

NO_REVISIONS = {"eppConfig", "globalDynamoNamespace", "multinode"}
"""Fields of endpoint pickers, and of workers that have no revisions."""


def a_graph(**worker: Any) -> Graph:
    pvcs = [{"name": "models", "create": False}]
    services = {"Decode": a_service(**worker)}
    metadata = {"name": "chat", "namespace": "prod"}
    head = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}
    return Graph.from_dict(
        {**head, "metadata": metadata, "spec": {"pvcs": pvcs, "services": services}}
    )


def pods(graph: Graph) -> Any:
    (deployment,) = (body for body in graph.render() if body["kind"] == "Deployment")
    return deployment["spec"]["template"]


def content(graph: Graph) -> str:
    return worker_content(msgspec.convert(graph.to_dict(), DynamoGraphDeployment))


def test_every_field_of_a_worker_has_an_edit() -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(ComponentSpec)}
    assert EDITS.keys() == fields - NO_REVISIONS, "add an edit of the new field"


@pytest.mark.parametrize("field", EDITS)
def test_an_edit_makes_a_revision_if_it_changes_the_pods(field: str) -> None:
    before, after = a_graph(), a_graph(**{field: EDITS[field]})
    assert before != after
    changes_pods = pods(before) != pods(after)
    assert changes_pods == (content(before) != content(after)), "see api/revision.py"
