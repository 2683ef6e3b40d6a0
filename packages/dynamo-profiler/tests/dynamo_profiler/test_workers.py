"""The workers of a base graph: the one graph among documents."""

from dynamo_profiler.workers import graph_in
from kube_runtime.types.meta import Object


def test_the_one_graph_is_found_among_config_maps() -> None:
    kind = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}
    services = {"Worker": {"componentType": "worker"}}
    graph: Object = {**kind, "metadata": {"name": "base"}, "spec": {"services": services}}
    assert graph == graph_in([{"kind": "ConfigMap"}, graph])
