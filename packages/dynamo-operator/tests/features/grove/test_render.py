"""What a graph becomes on Grove, where golden files say too little about the why."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_operator import labels
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.features.grove.render import grove_model_objects, kept_fields
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import decide_valid
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import COMPONENT, GROVE, grove_names, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LiveTemplate
from kube_runtime.types.meta import Object
from specs import IMAGE, a_graph, a_service, graphs

ON_GROVE = Facts(grove_served=True)
SETTINGS = RenderSettings(mpi_secret_name="keys", epp_cluster_role_name="epp")


def objects(graph: DynamoGraphDeployment, facts: Facts = ON_GROVE) -> tuple[Object, ...]:
    return decide_valid(graph, GraphInputs(facts, provider=GROVE), SETTINGS, datetime.now(UTC)).rendered


def template(graph: DynamoGraphDeployment, facts: Facts = ON_GROVE) -> Object:
    [found] = [each for each in objects(graph, facts) if each["kind"] == "PodCliqueSet"]
    spec: Object = found["spec"]["template"]
    return spec


def cliques(graph: DynamoGraphDeployment, facts: Facts = ON_GROVE) -> dict[str, Object]:
    return {each["name"]: each for each in template(graph, facts)["cliques"]}


def spread(nodes: int = 3, framework: str = "sglang", **fields: Any) -> Object:
    """A worker over that many nodes."""
    command = {"command": ["python3", "-m", f"dynamo.{framework}"], "args": ["--model", "m"]}
    pod = {"mainContainer": {"image": IMAGE, **command}}
    limits = {"limits": {"gpu": "8"}}
    more = {"multinode": {"nodeCount": nodes}, "extraPodSpec": pod, "resources": limits}
    return a_service("worker", **{**more, **fields})


def test_the_replicas_that_must_run_are_those_of_the_first_set() -> None:
    """Grove does not let them change."""
    services = {"a": a_service(replicas=3, minAvailable=2), "w": spread(replicas=3, minAvailable=2)}
    live = {"a": LiveTemplate(3, 1), "w": LiveTemplate(3, 1)}
    for present, expected in ((dict[str, LiveTemplate](), 2), (live, 1)):
        facts = Facts(grove_served=True, live_templates=present)
        found = template(a_graph(services), facts)
        (group,) = found["podCliqueScalingGroups"]
        single = next(clique for clique in found["cliques"] if clique["name"] == "a")
        assert (expected, expected) == (single["spec"]["minAvailable"], group["minAvailable"])


def test_the_pods_of_all_nodes_are_a_gang() -> None:
    found = cliques(a_graph({"W": spread(3, replicas=2)}))
    assert {"w-ldr": (1, 1), "w-wkr": (2, 2)} == {
        name: (each["spec"]["replicas"], each["spec"]["minAvailable"]) for name, each in found.items()
    }
    [group] = template(a_graph({"W": spread(3, replicas=2)}))["podCliqueScalingGroups"]
    assert {"name": "w", "cliqueNames": ["w-ldr", "w-wkr"], "replicas": 2, "minAvailable": 1} == (group)


def test_only_a_leader_that_needs_its_workers_starts_after_them() -> None:
    plain = template(a_graph({"w": spread(), "v": a_service()}))
    assert "CliqueStartupTypeAnyOrder" == plain["cliqueStartupType"]
    ordered = template(a_graph({"t": spread(framework="trtllm"), "v": a_service()}))
    assert "CliqueStartupTypeExplicit" == ordered["cliqueStartupType"]
    assert {"t-ldr": ["t-wkr"]} == {
        each["name"]: each["spec"]["startsAfter"]
        for each in ordered["cliques"]
        if "startsAfter" in each["spec"]
    }


def test_replicas_that_are_not_said_are_one_and_zero_is_left_to_scaling() -> None:
    found = cliques(a_graph({"a": a_service(), "b": a_service(replicas=0)}))
    assert [1, 1] == [each["spec"]["replicas"] for each in found.values()]


def test_a_template_in_use_keeps_its_sizes() -> None:
    graph = a_graph({"a": a_service(replicas=5), "w": spread(3, replicas=5)})
    clique = LiveTemplate(None, 1)
    present = {"a": LiveTemplate(2, 1), "w": LiveTemplate(3), "w-ldr": clique, "w-wkr": clique}
    facts = Facts(grove_served=True, live_templates=present)
    found = template(graph, facts)
    assert [2, 1, 2] == [each["spec"]["replicas"] for each in found["cliques"]]
    assert [1, 1, 1] == [each["spec"]["minAvailable"] for each in found["cliques"]]
    assert [3] == [each["replicas"] for each in found["podCliqueScalingGroups"]]


@pytest.mark.parametrize("live", [("z", "b-wkr", "b-ldr", "b"), ("b", "z", "b-wkr", "b-ldr")])
def test_cliques_and_groups_keep_their_live_order_and_new_ones_follow(live: Sequence[str]) -> None:
    graph = a_graph({"a": a_service(), "b": spread(), "c": spread(), "z": a_service()})
    present = {name: LiveTemplate() for name in live}
    found = template(graph, Facts(grove_served=True, live_templates=present))
    names = [clique["name"] for clique in found["cliques"]]
    assert ["z", "b-wkr", "b-ldr", "a", "c-ldr", "c-wkr"] == names
    assert ["b", "c"] == [group["name"] for group in found["podCliqueScalingGroups"]]


def test_an_update_of_the_operator_does_not_undo_a_restart() -> None:
    facts = Facts(grove_served=True, live_templates={"w": LiveTemplate(restart="r1")})
    [clique] = cliques(a_graph({"w": a_service()}), facts).values()
    assert "r1" == clique["annotations"]["nvidia.com/restartAt"]
    newer = a_service(annotations={"nvidia.com/restartAt": "r2"})
    [clique] = cliques(a_graph({"w": newer}), facts).values()
    assert "r2" == clique["annotations"]["nvidia.com/restartAt"]


def test_the_graph_alone_decides_how_its_processes_find_each_other() -> None:
    annotations = {"nvidia.com/dynamo-discovery-backend": "etcd"}
    [clique] = cliques(a_graph({"w": a_service(annotations=annotations)})).values()
    assert {"nvidia.com/dynamo-discovery-backend": "kubernetes"} == clique["annotations"]
    assert "chat-k8s-service-discovery" == clique["spec"]["podSpec"]["serviceAccountName"]
    graph = a_graph({"w": a_service()}, metadata={"annotations": annotations})
    [clique] = cliques(graph).values()
    assert "serviceAccountName" not in clique["spec"]["podSpec"]


def test_without_kubernetes_discovery_there_are_services_for_those_who_are_asked_by_name() -> None:
    metadata = {"annotations": {"nvidia.com/dynamo-discovery-backend": "etcd"}}
    services = {"w": a_service(), "f": a_service("frontend"), "e": a_service("epp")}
    found = objects(a_graph(services, metadata=metadata))
    names = [each["metadata"]["name"] for each in found if each["kind"] == "Service"]
    assert ["chat-e", "chat-f"] == names


def test_a_debugger_is_for_deployments() -> None:
    switches = {"nvidia.com/enable-debug-mode": "true"}
    [clique] = cliques(a_graph({"w": a_service(annotations=switches)})).values()
    assert ["main"] == [each["name"] for each in clique["spec"]["podSpec"]["containers"]]
    assert "nvidia.com/enable-debug-mode" not in clique["annotations"]


def test_the_queue_goes_only_to_pods_that_have_no_other_scheduler() -> None:
    pods = {
        name: {"mainContainer": {"image": IMAGE}, "schedulerName": name}
        for name in ("default-scheduler", "kai-scheduler")
    }
    services = {name: a_service(extraPodSpec=pod) for name, pod in pods.items()}
    found = cliques(a_graph({"w": a_service(), **services}), Facts(kai_served=True))
    assert {
        "w": ("kai-scheduler", "dynamo"),
        "kai-scheduler": ("kai-scheduler", "dynamo"),
        "default-scheduler": ("default-scheduler", None),
    } == {
        name: (each["spec"]["podSpec"]["schedulerName"], each["labels"].get("kai.scheduler/queue"))
        for name, each in found.items()
    }


@pytest.mark.parametrize("kai_served", [True, False])
@pytest.mark.parametrize("scheduler", ["", "kai-scheduler"])
def test_a_set_keeps_its_scheduler_when_kai_comes_or_goes(scheduler: str, kai_served: bool) -> None:
    facts = Facts(kai_served=kai_served, live_templates={"w": LiveTemplate(scheduler=scheduler)})
    [clique] = cliques(a_graph({"w": a_service()}), facts).values()
    assert scheduler == clique["spec"]["podSpec"].get("schedulerName", "")


PACKED: Object = {"topologyConstraint": {"packDomain": "rack"}}
TOPOLOGY = {"topologyProfile": "t", "packDomain": "zone"}


def constraints(graph: DynamoGraphDeployment, facts: Facts = ON_GROVE) -> dict[str, Object]:
    """The topology constraints of a set by the name of a clique or group; "" is the set's own."""
    found = template(graph, facts)
    entries = [{**found, "name": ""}, *found["cliques"], *found["podCliqueScalingGroups"]]
    return {it["name"]: it["topologyConstraint"] for it in entries if "topologyConstraint" in it}


@pytest.mark.parametrize(
    ("of_graph", "of_set", "topology"),
    [
        ({}, {}, {"topologyName": "t"}),
        ({"packDomain": "zone"}, {"": {"topologyName": "t", "pack": {"required": "zone"}}}, {}),
    ],
)
def test_a_new_set_has_the_topology_constraints_of_its_graph(
    of_graph: Object, of_set: Object, topology: Object
) -> None:
    services = {"f": a_service("frontend"), "a": a_service(**PACKED), "w": spread(**PACKED)}
    graph = a_graph(services, topologyConstraint={"topologyProfile": "t", **of_graph})
    of_replica = {**topology, "pack": {"required": "rack"}}
    assert {**of_set, "a": of_replica, "w": of_replica} == constraints(graph)


@pytest.mark.parametrize("live", [None, {"packDomain": "host"}])
def test_an_existing_set_keeps_its_topology_constraints(live: Object | None) -> None:
    """Grove rejects one that is added, changed or removed; the graph's is immutable, too."""
    graph = a_graph({"a": a_service(**PACKED), "w": spread(**PACKED)}, topologyConstraint=TOPOLOGY)
    present = {name: LiveTemplate(topology=live) for name in ("", "a", "w")}
    kept = {} if live is None else dict.fromkeys(present, live)
    assert kept == constraints(graph, Facts(grove_served=True, live_templates=present))


LIVE = {
    "": LiveTemplate(topology={"topologyName": "t", "pack": {"required": "zone"}}),
    "w": LiveTemplate(min_available=2, scheduler=""),
}
ZONE = '{"topologyName":"t","pack":{"required":"zone"}}'
QUEUE = "metadata.annotations[nvidia.com/kai-scheduler-queue]"
KEPT = "Grove allows no change (create the graph anew)"


@pytest.mark.parametrize(
    ("service", "graph", "expected"),
    [
        ({}, {"topologyConstraint": TOPOLOGY}, None),
        ({"minAvailable": 2}, {"topologyConstraint": TOPOLOGY}, None),
        (
            {"minAvailable": 3},
            {"topologyConstraint": TOPOLOGY},
            f"spec.services.w.minAvailable: PodCliqueSet chat keeps the minimum 2: {KEPT}",
        ),
        (
            PACKED,
            {"topologyConstraint": TOPOLOGY},
            f"spec.services.w.topologyConstraint: PodCliqueSet chat has none: {KEPT}",
        ),
        (
            {},
            {"topologyConstraint": {**TOPOLOGY, "packDomain": "rack"}},
            f"spec.topologyConstraint: PodCliqueSet chat keeps the constraint {ZONE}: {KEPT}",
        ),
        ({}, {}, f"spec.topologyConstraint: PodCliqueSet chat keeps the constraint {ZONE}: {KEPT}"),
        (
            {},
            {"topologyConstraint": TOPOLOGY, "metadata": {"annotations": {labels.KAI_QUEUE: "q"}}},
            f"{QUEUE}: PodCliqueSet chat keeps the scheduler with which it was created: {KEPT}",
        ),
        (
            {"extraPodSpec": {"schedulerName": "mine"}},
            {"topologyConstraint": TOPOLOGY, "metadata": {"annotations": {labels.KAI_QUEUE: "q"}}},
            None,
        ),
    ],
)
def test_fields_that_an_existing_set_keeps_are_named(
    service: Object, graph: Object, expected: str | None
) -> None:
    found = on_provider(a_graph({"w": a_service(**service)}, **graph), GROVE)
    texts = [str(problem) for problem in kept_fields(found, Facts(grove_served=True, live_templates=LIVE))]
    assert ([] if expected is None else [expected]) == texts


def test_a_set_of_ours_keeps_what_its_graph_asks_for() -> None:
    services = {"a": a_service(minAvailable=2, **PACKED), "w": spread(**PACKED), "f": a_service("frontend")}
    graph = on_provider(a_graph(services, topologyConstraint=TOPOLOGY), GROVE)
    body = template(graph)
    entries = [body | {"name": ""}, *body["cliques"], *body["podCliqueScalingGroups"]]
    live = {
        it["name"]: LiveTemplate(
            min_available=it.get("minAvailable", it.get("spec", {}).get("minAvailable")),
            topology=it.get("topologyConstraint"),
        )
        for it in entries
    }
    assert [] == [*kept_fields(graph, Facts(grove_served=True, live_templates=live))]


@pytest.mark.parametrize(
    ("annotation", "strategy"), [("OnDelete", {"type": "OnDelete"}), ("Never", None), (None, None)]
)
def test_the_graph_may_say_how_grove_updates_pods(annotation: str | None, strategy: Object | None) -> None:
    annotations = {"nvidia.com/grove-update-strategy": annotation} if annotation else {}
    graph = a_graph({"a": a_service()}, metadata={"annotations": annotations})
    [found] = [body for body in objects(graph) if body["kind"] == "PodCliqueSet"]
    assert strategy == found["spec"].get("updateStrategy")


def test_each_model_has_one_service() -> None:
    model = {"modelRef": {"name": "acme/chat-7b"}}
    graph = a_graph({"p": a_service(**model), "d": a_service(**model)})
    names = [each["metadata"]["name"] for each in grove_model_objects(on_provider(graph, GROVE))]
    assert ["dynamo-model-8a58cea0"] == names


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@patient
@given(graphs())
def test_what_validation_lets_through_is_rendered_and_fits_grove(graph: DynamoGraphDeployment) -> None:
    graph = on_provider(graph, GROVE)
    if graph_problems(graph, SETTINGS):
        return
    [found] = [each for each in objects(graph) if each["kind"] == "PodCliqueSet"]
    names = [each["name"] for each in found["spec"]["template"]["cliques"]]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(found["metadata"]["name"]) + len(name) <= 45


TEXTS = st.text(st.sampled_from("abcXYZ019.-_"), min_size=1, max_size=70).filter(
    lambda text: any(each.isalnum() for each in text)
)


@pytest.mark.parametrize(
    ("graph", "services", "expected"),
    [
        ("chat", {"Frontend": False, "Decode": True}, ("chat", "frontend", "decode")),
        ("a" * 37, {"frontend": False}, ("a" * 37, "frontend")),
        ("qwen3-0.6b", {"w_x": False}, ("qwen3-0-6b", "w-x")),
        ("chat", {"w" * 60: False}, ("chat", f"{'w' * 32}-e0bd8d50")),
    ],
)
def test_examples(graph: str, services: dict[str, bool], expected: tuple[str, ...]) -> None:
    names = grove_names(graph, services)
    assert expected == (names.set, *(names.services[key] for key in services))


@pytest.mark.parametrize(
    ("graph", "service", "is_multinode", "lengths"),
    [("a" * 20, "decode-of-a-long-name", True, (20, 10)), ("a" * 40, "frontend", False, (23, 8))],
)
def test_a_service_is_shortened_before_the_set_is(
    graph: str, service: str, is_multinode: bool, lengths: tuple[int, int]
) -> None:
    names = grove_names(graph, {service: is_multinode})
    assert lengths == (len(names.set), len(names.services[service]))


def test_a_live_object_is_named_by_grove() -> None:
    assert "chat-0-frontend" == grove_names("chat", {"Frontend": False}).child("Frontend")


@given(TEXTS, st.dictionaries(TEXTS, st.booleans(), min_size=1, max_size=4))
def test_every_name_fits(graph: str, services: dict[str, bool]) -> None:
    names = grove_names(graph, services)
    for key, is_multinode in services.items():
        part = len(names.services[key])
        pods = 2 * part + len("-ldr") if is_multinode else part
        assert len(names.set) + pods <= 45


@given(TEXTS, st.dictionaries(TEXTS, st.booleans(), min_size=1, max_size=4))
def test_a_name_depends_on_nothing_but_the_graph(graph: str, services: dict[str, bool]) -> None:
    turned = dict(reversed(services.items()))
    assert grove_names(graph, services) == grove_names(graph, turned)


SPREAD = a_service(
    multinode={"nodeCount": 2},
    extraPodSpec={"mainContainer": {"image": IMAGE, "args": ["python3 -m dynamo.sglang"]}},
)


def problems(services: dict[str, Object], provider: str = GROVE, **spec: Any) -> list[str]:
    graph = on_provider(a_graph(services, **spec), provider)
    return [str(problem) for problem in graph_problems(graph, RenderSettings())]


@pytest.mark.parametrize("suffix", ["-ldr", "-wkr"])
def test_a_service_may_not_take_the_name_of_a_clique(suffix: str) -> None:
    both = {"w": SPREAD, f"w{suffix}": a_service()}
    assert [f'spec.services.w{suffix}: "w" and "w{suffix}" would both create a clique "w{suffix}"'] == (
        problems(both)
    )
    assert [] == problems(both, COMPONENT)


def test_a_queue_must_fit_into_a_label() -> None:
    metadata = {"annotations": {"nvidia.com/kai-scheduler-queue": "not a label"}}
    [problem] = problems({"w": a_service()}, metadata=metadata)
    assert problem.startswith("metadata.annotations[nvidia.com/kai-scheduler-queue]: ")
    assert [] == problems({"w": a_service()}, COMPONENT, metadata=metadata)
