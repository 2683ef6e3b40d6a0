"""The rules of fields of graphs on Grove, and of topology."""

from typing import Any

import pytest

from dynamo_operator.graph.validate_grove import (
    grove_only_problems,
    topology_problems,
    topology_update_problems,
)
from dynamo_operator.graph.warnings import ClusterContext
from kube_runtime.types.meta import Object
from reviews.asking import verdict
from reviews.rows import component, graph, worker
from specs import a_graph, a_service

APART: Object = {"gpuMemoryService": {"enabled": True, "mode": "interPod"}}
POLICY: Object = {"kvTransferPolicy": {"domain": "rack", "clusterTopologyName": "t"}}
G = "requires the Grove pathway"


def annotated(**annotations: str) -> Object:
    keys = {f"nvidia.com/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": keys}}


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({}, f'{G}, but workload provider "component" is selected'),
        ({"workload_provider": "component"}, f'{G}, but workload provider "component" is selected'),
        (
            {"workload_provider": "x"},
            f'{G}, but annotation "nvidia.com/workload-provider" has unsupported value "x"',
        ),
        (
            {"enable_grove": "False"},
            f'{G}; remove or unset annotation "nvidia.com/enable-grove" (currently "False")',
        ),
    ],
)
def test_the_message_says_why_the_graph_is_not_on_grove(annotations: dict[str, str], why: str) -> None:
    services = {"w": a_service(**APART)}
    one = a_graph(services, priorityClassName="high", experimental=POLICY, **annotated(**annotations))
    assert [
        f"spec.priorityClassName: {why}",
        f"spec.experimental.kvTransferPolicy.clusterTopologyName: {why}",
        f"spec.services.w.gpuMemoryService.mode: {why}",
    ] == [str(problem) for problem in grove_only_problems(one)]


def test_admission_knows_whether_a_graph_is_on_grove_and_an_offline_check_does_not() -> None:
    new = graph({"w": worker(replicas=2, minAvailable=1)})
    (problem,) = verdict(new, cluster=ClusterContext()).problems
    path, message = "spec.services.w.minAvailable", "is currently supported only for Grove-backed"
    assert str(problem).startswith(f"{path}: {message}")
    assert verdict(new, cluster=ClusterContext(grove_served=True)).allowed
    assert verdict(new).allowed
    assert [f"spec.{path.rpartition('.')[2]}"] == [
        problem.path for problem in verdict(component(componentType="worker", minAvailable=1)).problems
    ]


def on(provider: str, **fields: Any) -> Object:
    """A graph that runs, or is to run, on that provider."""
    new = graph({"w": worker(replicas=3, **fields)})
    annotations = {"nvidia.com/workload-provider": provider}
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def test_a_provider_that_does_not_exist_is_refused_and_kept_where_it_is_stored() -> None:
    (problem,) = verdict(on("slurm")).problems
    assert "metadata.annotations[nvidia.com/workload-provider]" == problem.path
    assert 'unsupported value "slurm" (expected "component" or "grove")' == problem.message
    assert verdict(on("slurm"), on("slurm")).allowed


def test_a_topology_constraint_without_grove_is_reported() -> None:
    packed = {"topologyConstraint": {"packDomain": "rack"}}
    of_graph = {"topologyProfile": "t", "packDomain": "zone"}
    placed = graph({"w": worker(**packed)}, topologyConstraint=of_graph)
    texts = "\n".join(verdict(placed, cluster=ClusterContext()).warnings)
    for path in ("spec.topologyConstraint", "spec.services.w.topologyConstraint"):
        assert f"{path}: has an effect on Grove only" in texts
    assert "topologyConstraint" not in str(
        verdict(placed, cluster=ClusterContext(grove_served=True)).warnings
    )
    alone = verdict(component(componentType="worker", **packed)).warnings
    assert any(
        it.startswith("spec.topologyConstraint: has an effect in graphs on Grove only") for it in alone
    )


def test_an_update_strategy_that_grove_does_not_have_is_refused() -> None:
    new, key = on("grove"), "nvidia.com/grove-update-strategy"
    new["metadata"]["annotations"][key] = "OnDelete"
    assert verdict(new).allowed
    new["metadata"]["annotations"][key] = "Never"
    (problem,) = verdict(new).problems
    assert f"metadata.annotations[{key}]" == problem.path
    assert 'unsupported value "Never" (expected "RollingRecreate" or "OnDelete")' == problem.message


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [({}, {"minAvailable": 2}, False), ({}, {"minAvailable": 1}, True), ({}, {}, True)],
)
def test_how_many_must_run_on_grove_stays_as_it_was_left_out(
    before: Object, after: Object, is_allowed: bool
) -> None:
    decision = verdict(on("grove", **after), on("grove", **before))
    assert is_allowed == decision.allowed
    assert is_allowed or "spec.services.w.minAvailable" == decision.problems[0].path


def reported(**spec: Any) -> list[str]:
    services = spec.pop("services", {"w": a_service()})
    return [str(problem) for problem in topology_problems(a_graph(services, **spec))]


RACK: Object = {"w": a_service(topologyConstraint={"packDomain": "rack"})}


def test_a_topology_is_complete() -> None:
    profile = {"topologyProfile": "t"}
    assert ["spec.topologyConstraint: is required when any component topology constraint is set"] == reported(
        services=RACK
    )
    assert [
        "spec.topologyConstraint.packDomain: is required when no component topologyConstraint is set"
    ] == reported(topologyConstraint=profile)
    assert [] == reported(services=RACK, topologyConstraint=profile)
    assert [] == reported(topologyConstraint={**profile, "packDomain": "zone"})


def test_memory_is_shared_between_pods_of_vllm_only() -> None:
    path = "spec.services.w.gpuMemoryService.mode"
    text = "the inter-pod GMS layout is currently supported only for vLLM (detected backend: {})"
    for framework, shown in (("sglang", "sglang"), (None, "<unset>")):
        spec = {"backendFramework": framework} if framework else {}
        assert [f"{path}: {text.format(shown)}"] == reported(services={"w": a_service(**APART)}, **spec)
    assert [] == reported(services={"w": a_service(**APART)}, backendFramework="vllm")


def test_a_topology_is_named_by_a_name() -> None:
    wrong = {"kvTransferPolicy": {"domain": "rack", "clusterTopologyName": "No Name"}}
    (problem,) = reported(experimental=wrong)
    assert problem.startswith("spec.experimental.kvTransferPolicy.clusterTopologyName: invalid name")


def changed(before: Object, after: Object) -> list[str]:
    old, new = (a_graph({"w": a_service()}, **spec) for spec in (before, after))
    return [problem.path for problem in topology_update_problems(old, new)]


def test_topology_and_policy_are_immutable() -> None:
    zone = {"topologyProfile": "t", "packDomain": "zone"}
    assert ["spec.topologyConstraint"] == changed({}, {"topologyConstraint": zone})
    assert ["spec.experimental.kvTransferPolicy"] == changed({"experimental": POLICY}, {})
    explicit = {"kvTransferPolicy": {**POLICY["kvTransferPolicy"], "enforcement": "required"}}
    assert [] == changed({"experimental": POLICY}, {"experimental": explicit})
