"""What holds for every graph that validation lets through."""

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.service import component_of
from dynamo_operator.component.validate import component_problems
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import COMPONENT, GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object, key_of
from specs import a_graph, graphs, odd_graphs, services, several_nodes
from specs.invariants import assert_all_hold, assert_selectors_find_their_own

FACTS = Facts(pull_secrets={"registry.example.com": ("mine", "theirs")})
SETTINGS = RenderSettings(
    nats_address="nats://n:4222",
    planner_cluster_role_name="planner",
    epp_cluster_role_name="epp",
    mpi_secret_name="mpi.keys",
)


BUDGETED = msgspec.structs.replace(SETTINGS, disruption_budget_max_unavailable="1")


def rendered(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """The objects of a graph that validation lets through, of any other none."""
    if graph_problems(graph, SETTINGS):
        return ()
    return graph_tree(graph, FACTS, SETTINGS)


def of_kind(objects: tuple[Object, ...], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


@given(graphs())
def test_what_validation_lets_through_is_rendered_and_takes_the_shape_of_kubernetes(
    graph: DynamoGraphDeployment,
) -> None:
    objects = rendered(graph)
    assert_all_hold(objects)
    for deployment in of_kind(objects, "Deployment"):
        assert_pod_holds_together(deployment["spec"]["template"]["spec"])
    for group in of_kind(objects, "LeaderWorkerSet"):
        assert group["metadata"]["name"] in [
            each["metadata"]["name"] for each in of_kind(objects, "PodGroup")
        ]
        for kind in ("leader", "worker"):
            template = group["spec"]["leaderWorkerTemplate"][f"{kind}Template"]
            assert_pod_holds_together(template["spec"])


def assert_pod_holds_together(pod: Object) -> None:
    """Nothing is there twice, and every mount has its volume."""
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    names = [container["name"] for container in pod["containers"]]
    assert len(set(volumes)) == len(volumes)
    assert len(set(names)) == len(names)
    for container in pod["containers"]:
        paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        variables = [entry["name"] for entry in container.get("env", [])]
        assert len(set(paths)) == len(paths)
        assert len(set(variables)) == len(variables)
        assert {mount["name"] for mount in container.get("volumeMounts", [])} <= set(volumes)


@given(graphs())
def test_the_components_of_a_graph_without_problems_have_none(graph: DynamoGraphDeployment) -> None:
    components = [
        component_of(graph, each) for each in rendered(graph) if each["kind"] == "DynamoComponentDeployment"
    ]
    assert [()] * len(components) == [component_problems(component, SETTINGS) for component in components]


@given(odd_graphs(), st.sampled_from((COMPONENT, GROVE)))
def test_no_json_inside_a_pod_spec_makes_rendering_raise(graph: DynamoGraphDeployment, provider: str) -> None:
    rendered(on_provider(graph, provider))


@given(
    wanted=st.dictionaries(st.sampled_from("abcde"), services | several_nodes, min_size=2, max_size=3),
    on_grove=st.booleans(),
)
def test_every_selector_matches_exactly_its_own_pods(wanted: dict[str, Object], *, on_grove: bool) -> None:
    graph = a_graph(wanted)
    if not graph_problems(graph, BUDGETED):
        facts = Facts(grove_served=on_grove, kai_served=True)
        assert_selectors_find_their_own(graph_tree(graph, facts, BUDGETED))


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_a_users_maps_changes_nothing(
    graph: DynamoGraphDeployment, source: random.Random
) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(each) for each in value]
        if not isinstance(value, dict):
            return value
        names = list(value)
        source.shuffle(names)
        return {name: shuffled(value[name]) for name in names}

    other = msgspec.convert(shuffled(msgspec.to_builtins(graph)), DynamoGraphDeployment)
    assert json.dumps(rendered(graph)) == json.dumps(rendered(other))


@given(graphs())
def test_nothing_is_null_and_no_list_is_empty(graph: DynamoGraphDeployment) -> None:
    def holes(value: Any) -> bool:
        if isinstance(value, dict):
            return any(each is None or each == [] or holes(each) for each in value.values())
        return isinstance(value, list) and any(each is None or holes(each) for each in value)

    assert [] == [key_of(each) for each in rendered(graph) if holes(each)]


FILLED = st.recursive(
    st.booleans() | st.integers() | st.text(min_size=1, max_size=3),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=5,
)


@given(FILLED, FILLED, FILLED, st.sampled_from(("one", "lws", "grove")))
def test_fields_that_we_do_not_know_survive(in_pod: Any, in_main: Any, in_side: Any, way: str) -> None:
    pod = {
        "unheardOf": in_pod,
        "containers": [{"name": "side", "image": "side:1", "unheardOf": in_side}],
        "mainContainer": {"image": "main:1", "command": ["run"], "unheardOf": in_main},
    }
    nodes = {} if way == "one" else {"multinode": {"nodeCount": 2}}
    graph = a_graph({"W": {"componentType": "worker", "extraPodSpec": pod, **nodes}})
    objects = graph_tree(graph, Facts(grove_served=way == "grove"), SETTINGS)
    specs = list(pod_specs(objects))
    assert (1 if way == "one" else 2) == len(specs)
    for spec in specs:
        side, main = spec["containers"]
        assert (in_pod, in_side, in_main) == (spec["unheardOf"], side["unheardOf"], main["unheardOf"])


def pod_specs(objects: tuple[Object, ...]) -> Iterator[Object]:
    """The pod specs of all workloads."""
    for each in objects:
        spec = each.get("spec", {})
        match each["kind"]:
            case "Deployment":
                yield spec["template"]["spec"]
            case "LeaderWorkerSet":
                group = spec["leaderWorkerTemplate"]
                yield from (group[side]["spec"] for side in ("leaderTemplate", "workerTemplate"))
            case "PodCliqueSet":
                yield from (clique["spec"]["podSpec"] for clique in spec["template"]["cliques"])
