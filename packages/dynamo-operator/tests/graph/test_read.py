"""Which graphs a pod wakes."""

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.component.read import PodIndex
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.read import graph_pod_watch
from dynamo_operator.names import COMPONENT, GROVE, label_value, on_provider
from kube_runtime.types.kinds import Pod
from simulated.caches import a_cache
from specs import a_graph, a_service

LONG = "long-" * 20 + "x"
"""A name that does not fit a label."""


@pytest.mark.parametrize(
    ("name", "provider", "is_woken"),
    [("the-graph", GROVE, True), (LONG, GROVE, True), ("the-graph", COMPONENT, False)],
    ids=["on Grove", "long name", "of components"],
)
def test_a_pod_wakes_a_graph_on_grove_only(name: str, provider: str, is_woken: bool) -> None:
    graph = on_provider(a_graph({"Decode": a_service()}, name), provider)
    marks = {labels.GRAPH: label_value(name), labels.COMPONENT: "Decode"}
    metadata = {"name": "x-0", "namespace": graph.metadata.namespace, "uid": "x-0", "labels": marks}
    pod = msgspec.convert({"metadata": metadata}, Pod)
    cache = a_cache((DynamoGraphDeployment, Pod), [graph, pod])
    assert list(graph_pod_watch(cache).map_to(pod)) == ([graph.key] if is_woken else [])
    pods = PodIndex(cache).of_service(graph.metadata.namespace, name, "Decode")
    assert ["x-0"] == [found.metadata.name for found in pods]
