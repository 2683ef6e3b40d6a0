"""The workers of a base graph: the one graph among documents, and how its workers share the work."""

import pytest

from dynamo_profiler import Refusal
from dynamo_profiler.base import BACKENDS
from dynamo_profiler.configuration import Mode
from dynamo_profiler.workers import graph_in, mode_of
from kube_runtime.types.meta import Object


def a_graph(*types: str) -> Object:
    services = {
        f"Worker{number}": {"componentType": "worker", "subComponentType": type_}
        for number, type_ in enumerate(types)
    }
    kind = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}
    return {**kind, "metadata": {"name": "base"}, "spec": {"services": services}}


def test_the_one_graph_is_found_among_config_maps() -> None:
    graph = a_graph("decode")
    assert graph == graph_in([{"kind": "ConfigMap"}, graph])


def test_two_graphs_are_refused() -> None:
    with pytest.raises(Refusal):
        graph_in([a_graph("decode"), a_graph("decode")])


def test_workers_for_both_halves_are_disaggregated() -> None:
    backend = next(iter(BACKENDS.values()))
    assert Mode.DISAGGREGATED is mode_of(a_graph("prefill", "decode"), backend)
