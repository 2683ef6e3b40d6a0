"""Which revisions of workers exist, which one serves, and which one is desired."""

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynamo_graphs import Graph
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.service import PLAIN
from dynamo_operator.features.rollouts.revisions import (
    digits,
    first_revision,
    members,
    namespace_prefix,
    revisions,
    unrecorded,
    worker_content,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import dynamo_namespace
from kube_runtime.schema import object_schema
from kube_runtime.types.meta import Object
from specs import IMAGE, JSON, a_graph, a_service

MODE = "nvidia.com/worker-rollout"
CURRENT = "nvidia.com/current-worker-hash"
CONTENT = "nvidia.com/worker-content"
HASH = "nvidia.com/dynamo-worker-hash"


def graph(
    mode: str = "managed", current: str = "", workers: dict[str, Object] | None = None, **spec: Any
) -> DynamoGraphDeployment:
    annotations = {MODE: mode} | ({CURRENT: current} if current else {})
    services = workers or {"Decode": a_service(replicas=2)}
    services = {"Frontend": a_service("frontend"), **services}
    return a_graph(services, metadata={"annotations": annotations}, **spec)


def component(
    suffix: str = "", content: str = "", available: int = 0, age: int = 0, **more: Any
) -> DynamoComponentDeployment:
    """A component of Decode; a greater age means that it was made earlier."""
    body: Object = {
        "metadata": {
            "name": f"chat-decode-{suffix}".rstrip("-"),
            "namespace": "prod",
            "labels": {HASH: suffix} if suffix else {},
            "annotations": {CONTENT: content} if content else {},
            "creationTimestamp": f"2026-01-01T00:00:{50 - age:02}Z",
        },
        "spec": {**a_service(), "serviceName": "Decode", "replicas": max(1, available), **more},
        "status": {
            "conditions": [],
            "service": {
                "componentKind": "Deployment",
                "componentName": "x",
                "replicas": available,
                "updatedReplicas": available,
                "availableReplicas": available,
            },
        },
    }
    return msgspec.convert(body, DynamoComponentDeployment)


def content_of(**spec: Any) -> str:
    return worker_content(graph(**spec))


WANTED = content_of()


def content_with(text: str) -> str:
    """The content of workers with that value of a variable."""
    return content_of(workers={"Decode": a_service(envs=[{"name": "SAID", "value": text}])})


def made(content: str, available: int = 0, age: int = 0) -> DynamoComponentDeployment:
    return component(digits(content), content, available, age)


ONE, TWO = content_with("1"), content_with("2")
NEW, FIRST, SECOND = digits(WANTED), digits(ONE), digits(TWO)
Case = tuple[DynamoGraphDeployment, list[DynamoComponentDeployment], str, str, list[str]]
CASES: dict[str, Case] = {
    "a new graph": (graph(), [], NEW, "", []),
    "unchanged": (graph(current=NEW), [made(WANTED)], NEW, NEW, []),
    "changed: the record stays": (graph(current=FIRST), [made(ONE)], NEW, FIRST, [FIRST]),
    "changed in a rollout: the half-made revision joins the old": (
        *(graph(current=FIRST), [made(TWO), made(ONE, 2, age=9)]),
        *(NEW, FIRST, [FIRST, SECOND]),
    ),
    "reverted": (graph(current=NEW), [made(WANTED, 2, age=9), made(ONE)], NEW, NEW, [FIRST]),
    "without a record the only one is current": (graph(), [made(ONE)], NEW, FIRST, [FIRST]),
    "then the most available": (
        *(graph(), [made(ONE, 3, age=9), made(TWO, 1)]),
        *(NEW, FIRST, [FIRST, SECOND]),
    ),
    "then the newest": (graph(), [made(ONE, 3, age=9), made(TWO, 3)], NEW, SECOND, [FIRST, SECOND]),
    "plain workers of another content": (graph(), [component(available=2)], NEW, "", [""]),
    "native again: changed in place": (graph("native"), [made(ONE, 2)], FIRST, FIRST, []),
    "native again in a rollout": (
        *(graph("native", current=FIRST), [made(ONE, 2, age=9), made(TWO, 1)]),
        *(SECOND, FIRST, [FIRST]),
    ),
}


@pytest.mark.parametrize(("graph", "components", "target", "current", "old"), CASES.values(), ids=CASES)
def test_revisions_of_a_graph(
    graph: DynamoGraphDeployment,
    components: list[DynamoComponentDeployment],
    target: str,
    current: str,
    old: list[str],
) -> None:
    found = revisions(graph, components)
    assert (target, WANTED, current) == (found.target.suffix, found.target.content, found.current)
    assert old == [member.suffix for member in found.old]
    assert len(components) - len(old) == len(found.new)


def test_a_native_graph_has_no_generations() -> None:
    found = revisions(graph("native"), [component()])
    assert not found.old
    assert PLAIN == found.target


def test_a_graph_without_such_workers_has_no_generations() -> None:
    assert PLAIN == first_revision(graph(workers={"Router": a_service("router")}))


def test_unsuffixed_workers_that_match_the_graph_are_adopted() -> None:
    live = component(available=2)
    assert [live] == [each.component for each in unrecorded(graph(), members(graph(), [live]))]
    found = revisions(graph(), [live], unchanged=["chat-decode"])
    assert "" == found.target.suffix
    assert WANTED == found.target.content
    assert digits(WANTED) == found.current
    assert not found.is_rolling_out


def test_frontends_use_a_namespace_prefix_once_unsuffixed_workers_existed() -> None:
    suffix = digits(WANTED)
    made = [component(content=WANTED)]
    assert "prod-chat" == revisions(graph(), made).target.namespace_prefix
    wide = {"name": "DYN_NAMESPACE_PREFIX", "value": "prod-chat"}
    body = {
        "metadata": {"name": "chat-frontend", "namespace": "prod"},
        "spec": {**a_service("frontend"), "serviceName": "Frontend", "envs": [wide]},
    }
    frontend = msgspec.convert(body, DynamoComponentDeployment)
    made = [component(suffix, WANTED), frontend]
    assert "prod-chat" == revisions(graph(), made).target.namespace_prefix
    assert "prod-chat_" == revisions(graph("native"), made).target.namespace_prefix


def test_workers_on_several_nodes_beside_are_found_too() -> None:
    both = {"Decode": a_service(), "Big": a_service(multinode={"nodeCount": 2})}
    assert "prod-chat" == first_revision(graph(workers=both)).namespace_prefix


def test_a_name_that_a_changed_generation_has_kept_is_not_taken_again() -> None:
    # It was made for what is wanted now, then changed in place while rollouts were native.
    found = revisions(graph(), [component(digits(WANTED), content_with("in place"), 2)])
    assert digits(WANTED) != found.target.suffix
    assert WANTED == found.target.content
    assert found.is_rolling_out


def test_a_plain_name_that_belongs_to_another_sort_of_service_now_is_no_worker() -> None:
    services = {"Decode": a_service("router"), "Other": a_service()}
    assert () == members(graph(workers=services), [component()])


def test_a_content_of_an_unknown_version_is_no_content() -> None:
    found = revisions(graph(), [component("aaaaaaaa", "9:bbbbbbbb")])
    assert WANTED == found.target.content


def test_replicas_of_the_graph_and_annotations_of_rollouts_make_no_generation() -> None:
    annotations = {
        "nvidia.com/restartAt": "now",
        "nvidia.com/deployment-strategy": "Recreate",
        "nvidia.com/deployment-rolling-update-max-surge": "2",
        "nvidia.com/deployment-rolling-update-max-unavailable": "2",
    }
    assert WANTED == content_of(workers={"Decode": a_service(annotations=annotations)}, replicas=3)


def test_every_other_change_of_a_worker_makes_a_revision() -> None:
    changes: list[Object] = [
        {"workers": {"Decode": a_service(), "Prefill": a_service("prefill")}},
        {"workers": {"decode": a_service()}},
        {"envs": [{"name": "A", "value": "b"}]},
        {"labels": {"a": "b"}},
        {"annotations": {"a": "b"}},
        {"backendFramework": "vllm"},
    ]
    found = {WANTED, *(content_of(**each) for each in changes)}
    assert len(changes) + 1 == len(found)


def test_a_change_of_other_services_makes_no_generation() -> None:
    services = {"Frontend": a_service("frontend", envFromSecret="s"), "Decode": a_service()}
    assert WANTED == content_of(workers=services)


def test_the_first_version_of_the_hash_never_changes() -> None:
    assert "1:94c6f429" == WANTED


def _shuffled(value: Any, dice: Any) -> Any:
    if isinstance(value, dict):
        names = list(value)
        dice.shuffle(names)
        return {name: _shuffled(value[name], dice) for name in names}
    return [_shuffled(each, dice) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_maps_makes_no_generation(pod: Object, dice: Any) -> None:
    service = a_service(extraPodSpec=pod, labels={"a": "1", "b": "2", "c": "3"})
    shuffled = {"Decode": _shuffled(service, dice)}
    assert content_of(workers={"Decode": service}) == content_of(workers=shuffled)


EDITS: dict[str, Any] = {
    "annotations": {"example.com/a": "b"},
    "autoscaling": {"enabled": True},
    "checkpoint": {"enabled": True},
    "componentType": "decode",
    "disruptionBudget": {"minAvailable": 1},
    "envs": [{"name": "A", "value": "b"}],
    "extraPodMetadata": {"labels": {"a": "b"}},
    "extraPodSpec": {"hostNetwork": True, "mainContainer": {"image": IMAGE}},
    "failover": {"enabled": False},
    "frontendSidecar": {"image": IMAGE},
    "gpuMemoryService": {"enabled": False},
    "ingress": {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"},
    "labels": {"a": "b"},
    "livenessProbe": {"httpGet": {"port": 1}},
    "minAvailable": 1,
    "modelRef": {"name": "acme/chat"},
    "readinessProbe": {"httpGet": {"port": 1}},
    "resources": {"limits": {"cpu": "1"}},
    "runtimeVersionOverride": "1.2.3",
    "scalingAdapter": {"enabled": True},
    "sharedMemory": {"size": "1Gi"},
    "topologyConstraint": {"packDomain": "rack"},
    "volumeMounts": [{"name": "models", "mountPoint": "/models"}],
}
"""A value for each field of a worker that may have revisions, unless `PLAIN_EDITS` has one for its type."""

PLAIN_EDITS = {"boolean": True, "integer": 3, "string": "other"}

NO_REVISIONS = {"backendFramework", "eppConfig", "globalDynamoNamespace", "multinode"}
"""Fields of graphs, of endpoint pickers, and of workers that have no revisions."""


def a_graph_of_fields(**worker: Any) -> Graph:
    pvcs = [{"name": "models", "create": False}]
    topology = {"topologyProfile": "t", "packDomain": "zone"}
    spec = {"pvcs": pvcs, "services": {"Decode": a_service(**worker)}, "topologyConstraint": topology}
    metadata = {"name": "chat", "namespace": "prod"}
    head = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}
    return Graph.from_dict({**head, "metadata": metadata, "spec": spec})


def pods(graph: Graph) -> Any:
    (deployment,) = (body for body in graph.render() if body["kind"] == "Deployment")
    return deployment["spec"]["template"]


def content(graph: Graph) -> str:
    return worker_content(msgspec.convert(graph.to_dict("v1alpha1"), DynamoGraphDeployment))


FIELDS = object_schema(DynamoComponentDeployment)["properties"]["spec"]["properties"]


@pytest.mark.parametrize("field", sorted(FIELDS.keys() - NO_REVISIONS))
def test_an_edit_makes_a_revision_if_it_changes_the_pods(field: str) -> None:
    edit = EDITS.get(field, PLAIN_EDITS.get(FIELDS[field].get("type")))
    assert edit is not None, "add an edit of the new field"
    before, after = a_graph_of_fields(), a_graph_of_fields(**{field: edit})
    assert before.to_dict("v1alpha1") != after.to_dict("v1alpha1")
    changes_pods = pods(before) != pods(after)
    assert changes_pods == (content(before) != content(after)), "see `worker_content`"


_names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,70}[a-z0-9])?", fullmatch=True)


def graph_of_namespaces(name: str) -> DynamoGraphDeployment:
    managed = {"nvidia.com/worker-rollout": "managed"}
    return a_graph({"W": a_service()}, name=name, metadata={"annotations": managed})


@given(_names, st.one_of(_names, st.from_regex(r"-?[a-z0-9]{1,4}", fullmatch=True)))
def test_no_other_graph_begins_like_a_managed_one(name: str, other: str) -> None:
    # The interesting neighbour is one whose name continues where this one's ends.
    for neighbour in (other, f"{name}{other}"):
        assume(neighbour != name)
        prefix = first_revision(graph_of_namespaces(name)).namespace_prefix
        assert not dynamo_namespace("prod", neighbour).startswith(prefix)
        assert not dynamo_namespace("prod", neighbour, "0123abcd").startswith(prefix)


@given(_names)
def test_a_managed_graph_finds_all_its_generations(name: str) -> None:
    for finds_plain in (False, True):
        prefix = namespace_prefix(graph_of_namespaces(name), finds_plain=finds_plain)
        assert dynamo_namespace("prod", name, "0123abcd").startswith(prefix)
    assert dynamo_namespace("prod", name).startswith(prefix)
