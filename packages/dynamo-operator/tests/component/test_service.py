"""A service of a graph as a component: who decides its replicas, and which pods an autoscaler sees."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import ComponentSpec, ScalingAdapterSwitch
from dynamo_operator.component.service import (
    ServiceObserved,
    WorkerRevision,
    base_replicas,
    component_object,
    effective_replicas,
    graph_scale,
    graph_selector,
    owned_by,
    selector,
    sized,
    worker_component_name,
)
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.graph.decide import decide_valid
from dynamo_operator.graph.status import graph_status
from dynamo_operator.names import COMPONENT, GROVE, is_on_grove, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Condition, Metadata, Object
from specs import a_graph, a_service

GRAPH = DynamoGraphDeployment(Metadata("chat", "lab", "uid-of-chat"))


def test_a_graph_controls_what_is_made_of_it() -> None:
    owner = owned_by(GRAPH, ConfigMap(Metadata("a", "lab"))).metadata.controller
    assert owner is not None
    assert ("chat", "uid-of-chat") == (owner.name, owner.uid)


GRAPHS = "nvidia.com/dynamo-graph-deployment-name=chat"
OURS = f"{GRAPHS},nvidia.com/dynamo-component=decode"
ON_GROVE = {"annotations": {"nvidia.com/workload-provider": "grove"}}


def of(metadata: Any = None, **service: Any) -> DynamoGraphDeployment:
    """A graph of one service."""
    return a_graph({"decode": a_service(**service)}, metadata=metadata or {})


def test_an_autoscaler_sees_one_pod_of_each_replica() -> None:
    many = {"multinode": {"nodeCount": 2}}
    assert OURS == selector(of(), "decode", 2)
    assert f"{OURS},role=leader" == selector(of(**many), "decode", 2)
    on_grove = of(ON_GROVE, **many)
    first, second = (f"chat-0-decode-{index}-decode-ldr" for index in (0, 1))
    assert f"{OURS},grove.io/podclique in ({first},{second})" == selector(on_grove, "decode", 2)
    assert f"{OURS},grove.io/podclique in ({first})" == selector(on_grove, "decode", 0)
    assert OURS == selector(of(ON_GROVE), "decode", 2)


def test_an_absurd_number_of_replicas_gives_a_short_selector() -> None:
    on_grove = of(ON_GROVE, multinode={"nodeCount": 2})
    assert 64 * 1024 > len(selector(on_grove, "decode", 2**31 - 1))


def two_services(**fields: Any) -> Any:
    """A service on one node and one on two."""
    many = a_service(multinode={"nodeCount": 2})
    return a_graph({"decode": a_service(), "many": many}, **fields)


def test_an_autoscaler_of_a_graph_sees_one_pod_of_each_replica_of_all_its_services() -> None:
    both = f"{GRAPHS},nvidia.com/dynamo-component in (decode,many)"
    assert f"{both},role!=worker" == graph_selector(two_services(), {"decode": 3, "many": 2})
    first, second = (f"chat-0-many-{index}-many-wkr" for index in (0, 1))
    assert f"{both},grove.io/podclique notin ({first},{second})" == graph_selector(
        two_services(metadata=ON_GROVE), {"decode": 3, "many": 2}
    )
    alone = f"{GRAPHS},nvidia.com/dynamo-component in (decode)"
    assert alone == graph_selector(two_services(), {"decode": 1})


def test_the_selector_of_a_graph_whose_factor_means_nothing_finds_no_pod() -> None:
    assert f"{GRAPHS},!nvidia.com/dynamo-graph-deployment-name" == graph_selector(of(), {})


SWITCH = ScalingAdapterSwitch(enabled=True)
SERVICES = {
    "Frontend": ComponentSpec(component_type="frontend", replicas=2),
    "prefill": ComponentSpec(component_type="worker", sub_component_type="prefill", replicas=3),
    "decode": ComponentSpec(component_type="decode"),
    "scaled": ComponentSpec(component_type="worker", replicas=1, scaling_adapter=SWITCH),
    "off": ComponentSpec(component_type="worker", replicas=0),
}


def factored(factor: int | None = None) -> DynamoGraphDeployment:
    spec = DynamoGraphDeploymentSpec(services=SERVICES, replicas=factor)
    return DynamoGraphDeployment(Metadata("g"), spec=spec)


BY_SPEC = {"Frontend": 2, "prefill": 3, "decode": None, "scaled": 1, "off": 0}


@pytest.mark.parametrize(
    ("factor", "adapters", "zero", "changed"),
    [
        (None, {}, (), {}),
        (1, {}, (), {"decode": 1}),
        (2, {}, (), {"prefill": 6, "decode": 2}),
        (0, {"scaled": 7}, (), {"prefill": 0, "decode": 0, "scaled": 7}),
        (3, {"scaled": 7}, ("scaled",), {"prefill": 9, "decode": 3, "scaled": 0}),
    ],
)
def test_an_adapter_wins_over_the_spec_and_its_factor_and_a_suspended_graph_over_all(
    factor: int | None, adapters: dict[str, int], zero: tuple[str, ...], changed: dict[str, int]
) -> None:
    assert BY_SPEC | changed == effective_replicas(factored(factor), adapters, zero)


def test_the_scale_is_the_factor_that_all_services_have_reached_and_names_those_under_it() -> None:
    observed = {"prefill": ServiceObserved(replicas=6), "decode": ServiceObserved(replicas=1)}
    assert 1 == graph_scale(factored(2), observed)[0]
    observed["decode"] = ServiceObserved(replicas=2)
    assert 2 == graph_scale(factored(2), observed)[0]
    assert 0 == graph_scale(factored(0), {})[0]
    observed = {"prefill": ServiceObserved(replicas=9)}
    assert {"decode": 2, "off": 0, "prefill": 9} == graph_scale(factored(2), observed)[1]


def test_a_graph_without_such_services_has_the_scale_that_it_asks_for() -> None:
    spec = DynamoGraphDeploymentSpec(services={"Frontend": SERVICES["Frontend"]}, replicas=3)
    assert (3, {}) == graph_scale(DynamoGraphDeployment(Metadata("g"), spec=spec), {})


SETTINGS = RenderSettings(disruption_budget_max_unavailable="1")


def configured(provider: str = COMPONENT, **service: Any) -> DynamoGraphDeployment:
    """A graph on which the variable gives service W four workers with two GPUs each."""
    arguments = {"workers": 4, "Resources": {"GPU": "2", "cpu": 1, "custom": {"x/y": "1"}}}
    value = json.dumps({"W": {"ServiceArgs": arguments}})
    envs = [{"name": "DYN_DEPLOYMENT_CONFIG", "value": value}]
    return on_provider(a_graph({"W": a_service(**service)}, envs=envs), provider)


def gpus(graph: DynamoGraphDeployment) -> int:
    """What the status says of GPUs."""
    found = graph_status(sized(graph), {}, (), now=datetime(2026, 1, 1, tzinfo=UTC))
    return found.status.gpus or 0


def suspended(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
    """The graph after it was suspended and has come back."""
    status = DynamoGraphDeploymentStatus(conditions=(Condition("Suspended", "False"),))
    return msgspec.structs.replace(graph, status=status)


def kinds(graph: DynamoGraphDeployment) -> dict[str, Object]:
    """What is rendered of the graph, by kind."""
    inputs = GraphInputs(Facts(), provider=GROVE if is_on_grove(graph) else COMPONENT)
    made = decide_valid(graph, inputs, SETTINGS, datetime.now(UTC))
    return {each["kind"]: each for each in made.rendered}


def test_without_grove_the_deployment_config_sets_replicas_and_resources() -> None:
    graph = configured()
    rendered = kinds(graph)
    component = rendered["DynamoComponentDeployment"]["spec"]
    assert 4 == component["replicas"]
    assert {"limits", "requests"} == set(component["resources"])
    assert {"gpu": "2", "custom": {"x/y": "1"}} == component["resources"]["limits"]
    assert "PodDisruptionBudget" in rendered
    assert 8 == gpus(graph)
    assert {"W": 4} == effective_replicas(suspended(graph), {}, ())
    doubled = msgspec.structs.replace(graph, spec=msgspec.structs.replace(graph.spec, replicas=2))
    assert {"W": 8} == effective_replicas(doubled, {}, ())
    assert 1 == graph_scale(doubled, {"W": ServiceObserved(replicas=4)})[0]


def test_on_grove_the_deployment_config_sets_no_replicas_or_resources() -> None:
    graph = configured(GROVE)
    [clique] = kinds(graph)["PodCliqueSet"]["spec"]["template"]["cliques"]
    assert 1 == clique["spec"]["replicas"]
    assert "nvidia.com/gpu" not in str(clique["spec"]["podSpec"]["containers"])
    assert 0 == gpus(graph)
    assert {"W": 1} == effective_replicas(suspended(graph), {}, ())
    assert 1 == graph_scale(graph, {"W": ServiceObserved(replicas=1)})[0]


@pytest.mark.parametrize("provider", [COMPONENT, GROVE])
def test_replicas_of_the_service_override_the_deployment_config(provider: str) -> None:
    assert 2 == base_replicas(configured(provider, replicas=2), "W")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"W": []}', '{"W": {"ServiceArgs": 1}}'])
def test_an_unreadable_deployment_config_means_one_replica(text: str) -> None:
    envs = [{"name": "DYN_DEPLOYMENT_CONFIG", "value": text}]
    assert 1 == base_replicas(a_graph({"W": a_service()}, envs=envs), "W")


def test_resources_of_the_deployment_config_override_those_of_the_service() -> None:
    own = {"limits": {"gpu": "8", "memory": "9Gi", "gpuType": "a/b"}, "claims": [{"name": "c"}]}
    component = component_object(configured(resources=own), "W", SETTINGS)
    requests = {"gpu": "2", "custom": {"x/y": "1"}}
    limits = {"memory": "9Gi", "gpuType": "a/b", **requests}
    assert {**own, "limits": limits, "requests": requests} == component["spec"]["resources"]


@given(st.text("abcdefgh-.", min_size=1, max_size=80), st.text("XYZ_a", min_size=1, max_size=80))
def test_names_of_generations_fit_and_differ(name: str, key: str) -> None:
    body = a_graph({key: a_service()}, name=f"a{name}")
    suffixes = ("0123abcd", "0123abce")
    names = [worker_component_name(body, key, WorkerRevision(suffix)) for suffix in suffixes]
    assert all(name.endswith(f"-{suffix}") for name, suffix in zip(names, suffixes, strict=True))
    assert all(len(name) <= 63 for name in names)


def components(services: dict[str, Object], settings: RenderSettings = SETTINGS, **spec: Any) -> Any:
    """The specs of the components of a graph with these services."""
    graph = a_graph(services, **spec)
    return {key: component_object(graph, key, settings)["spec"] for key in services}


def test_a_component_carries_what_its_controller_needs_of_the_graph() -> None:
    [spec] = components(
        {"W": a_service(dynamoNamespace="ignored", labels={"team": "a"})},
        backendFramework="vllm",
        envs=[{"name": "A", "value": "graph"}],
    ).values()
    assert "vllm" == spec["backendFramework"]
    assert "prod-chat" == spec["dynamoNamespace"]
    assert [{"name": "A", "value": "graph"}] == spec["envs"]
    assert {
        "team": "a",
        "nvidia.com/dynamo-component": "W",
        "nvidia.com/dynamo-graph-deployment-name": "chat",
        "nvidia.com/dynamo-namespace": "prod-chat",
    } == spec["labels"]


def test_without_variables_of_the_graph_those_of_a_service_keep_their_order() -> None:
    envs = [{"name": "B"}, {"name": "A"}]
    assert envs == components({"W": a_service(envs=envs)})["W"]["envs"]


def test_a_planner_has_the_planners_account_whatever_the_user_says() -> None:
    pod = {"mainContainer": {"image": "x"}, "serviceAccountName": "mine"}
    spec = components({"P": a_service("planner", extraPodSpec=pod)})["P"]
    assert "planner-serviceaccount" == spec["extraPodSpec"]["serviceAccountName"]


def test_an_empty_map_is_left_out_or_said_in_full() -> None:
    """What a server-side apply of an empty map leaves is what was there before."""
    empty = {
        "ingress": {"enabled": False},
        "multinode": {"nodeCount": 2},
        "scalingAdapter": {"enabled": False},
        "resources": {"limits": {}},
        "extraPodMetadata": {"labels": {}},
    }
    spec = components({"W": a_service(**empty)})["W"]
    assert all(spec[name] == empty[name] for name in ("ingress", "multinode", "scalingAdapter"))
    assert not {"resources", "extraPodMetadata"} & spec.keys()


def test_a_frontend_without_an_ingress_gets_the_operators() -> None:
    settings = RenderSettings(ingress_class_name="nginx", ingress_host_suffix="apps.example.com")
    wanted = {"Frontend": a_service("frontend"), "Own": a_service("frontend", ingress={})}
    found = components(wanted, settings)
    assert {
        "enabled": True,
        "host": "chat",
        "hostSuffix": "apps.example.com",
        "ingressControllerClassName": "nginx",
    } == found["Frontend"]["ingress"]
    assert {"enabled": False} == found["Own"]["ingress"]
    assert {"host": "chat"} == components(wanted)["Frontend"]["ingress"]


SIZES = '{"W": {"ServiceArgs": {"workers": 5, "Resources": {"GPU": "1"}}}, "F": {"x": 1}}'


def test_sizes_in_the_deployment_config_become_part_of_the_spec() -> None:
    envs = [{"name": "DYN_DEPLOYMENT_CONFIG", "value": SIZES}]
    found = components({"W": a_service(), "F": a_service("frontend")}, envs=envs)
    assert 5 == found["W"]["replicas"]
    assert '"F":{"port":8000,"x":1}' in found["F"]["envs"][0]["value"]
    assert SIZES == found["W"]["envs"][0]["value"]
