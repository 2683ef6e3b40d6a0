"""Templates of an earlier operator stay until what they are made from changes, which the cluster shows."""

import copy
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import (
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
)
from dynamo_operator.shared.cluster import InferencePool
from dynamo_operator.takeover.plan import (
    Origin,
    annotated,
    as_running,
    component_origin,
    has_same_pods,
    hindrance,
    set_origin,
    starts_to_drain,
    with_kept_templates,
    without_new_drain,
)
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key, Metadata, Object, OwnerReference, from_json

GO = {labels.LAST_APPLIED_GENERATION: "1"}
OURS = {"name": "main", "image": "a:1", "args": ["new"]}
THEIRS = {"name": "main", "image": "a:1", "args": ["old"]}


def deployment(container: Object, **annotations: str) -> Object:
    selecting = {labels.SELECTOR: "g-w"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "g-w", "annotations": annotations},
        "spec": {
            "replicas": 1,
            "template": {"metadata": {"labels": selecting}, "spec": {"containers": [container]}},
        },
    }


def kept(wanted: Object, live: Object, origin: Origin = Origin.CURRENT) -> Object:
    return with_kept_templates(wanted, live, origin)


def args(body: Object) -> list[str]:
    found: list[str] = body["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def note(body: Object) -> str:
    found: str = body["metadata"]["annotations"].get(labels.ADOPTED_TEMPLATES, "")
    return found


FIRST = kept(deployment(OURS), deployment(THEIRS, **GO))


def test_a_template_that_differs_stays_and_what_is_beside_it_is_ours() -> None:
    wanted = deployment(OURS)
    wanted["spec"]["replicas"] = 3
    found = kept(wanted, deployment(THEIRS, **GO))
    assert ["old"] == args(found)
    assert found["spec"]["replicas"] == 3
    assert note(found).startswith("pods=")


ANNOTATED = FIRST["metadata"]["annotations"]
NEWER = {**OURS, "image": "a:2"}
BY_KUBECTL = copy.deepcopy(FIRST)
BY_KUBECTL["spec"]["template"]["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "now"}
UNSELECTED = deployment(THEIRS, **GO)
UNSELECTED["spec"]["template"]["metadata"]["labels"][labels.SELECTOR] = "other"
TWICE = {**THEIRS, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}


@pytest.mark.parametrize(
    ("wanted", "live", "origin"),
    [
        (NEWER, FIRST, Origin.CURRENT),
        (OURS, deployment({**THEIRS, "image": "b"}, **ANNOTATED), Origin.CURRENT),
        (OURS, deployment(THEIRS, **GO), Origin.OUTDATED),
        (OURS, deployment(THEIRS), Origin.CURRENT),
        (OURS, deployment(OURS, **GO), Origin.CURRENT),
        (OURS, UNSELECTED, Origin.CURRENT),
        (OURS, deployment(TWICE, **GO), Origin.CURRENT),
        *(
            (OURS, deployment(THEIRS, **{labels.ADOPTED_TEMPLATES: text}), Origin.CURRENT)
            for text in ("x", "pods", "pods=", "=:", ",,", "pods=a:b:c", "\u0000")
        ),
    ],
    ids=[
        "we render another one",
        "the live one was edited",
        "made from an older spec",
        "of no earlier operator",
        "equal",
        "our Services would not select its pods",
        "no apply can write it",
        *["unreadable record"] * 7,
    ],
)
def test_the_rendered_template_is_written(wanted: Object, live: Object, origin: Origin) -> None:
    assert deployment(wanted) == kept(deployment(wanted), live, origin)


@pytest.mark.parametrize("live", [FIRST, BY_KUBECTL], ids=["unchanged", "restarted by kubectl"])
def test_it_stays_while_nothing_changes(live: Object) -> None:
    assert FIRST == kept(deployment(OURS), live, Origin.OUTDATED)


def test_what_went_back_to_the_earlier_operator_is_taken_over_again() -> None:
    found = kept(deployment(NEWER), deployment({**THEIRS, "image": "a:2"}, **ANNOTATED, **GO))
    assert ["old"] == args(found)
    assert note(found) != note(FIRST)


@pytest.mark.parametrize(
    ("then", "expected"), [(Origin.CURRENT, ["old"]), (Origin.UNDECIDED, ["old"]), (Origin.OUTDATED, ["new"])]
)
def test_before_the_specs_are_compared_it_stays_for_now(then: Origin, expected: list[str]) -> None:
    undecided = kept(deployment(OURS), deployment(THEIRS, **GO), Origin.UNDECIDED)
    assert ["old"] == args(undecided)
    # Meanwhile the graph's controller has changed the component, so we render another template.
    wanted = deployment({**OURS, "image": "a:2"})
    found = kept(wanted, undecided, then)
    assert expected == args(found)
    if then is Origin.CURRENT:
        assert found == kept(wanted, found, Origin.OUTDATED)


def clique(name: str, container: Object) -> Object:
    return {"name": name, "spec": {"roleName": name, "podSpec": {"containers": [container]}}}


def clique_set(*cliques: Object, **annotations: str) -> Object:
    group = {"name": "w", "cliqueNames": ["w-ldr", "w-wkr"]}
    return {
        "kind": "PodCliqueSet",
        "metadata": {"name": "g", "annotations": annotations},
        "spec": {"template": {"cliques": list(cliques), "podCliqueScalingGroups": [group]}},
    }


def test_each_service_of_a_set_stays_for_itself_and_a_group_as_a_whole() -> None:
    names = ("f", "w-ldr", "w-wkr")
    first = kept(
        clique_set(*(clique(each, OURS) for each in names)),
        clique_set(*(clique(each, THEIRS) for each in names), **GO),
    )
    assert ["f", "w"] == [each.partition("=")[0] for each in note(first).split(",")]
    edited = clique("w-wkr", {**OURS, "image": "a:2"})
    wanted = clique_set(clique("f", OURS), clique("w-ldr", OURS), edited)
    second = kept(wanted, first)
    found = [
        each["spec"]["podSpec"]["containers"][0]["args"] for each in second["spec"]["template"]["cliques"]
    ]
    assert [["old"], ["new"], ["new"]] == found
    assert ["f"] == [each.partition("=")[0] for each in note(second).split(",")]


def group(container: Object, size: int, annotations: Mapping[str, str] | None = None) -> Object:
    template = {"metadata": {}, "spec": {"containers": [container]}}
    both = {"size": size, "leaderTemplate": template, "workerTemplate": template}
    return {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "g-w-0", "annotations": dict(annotations or {})},
        "spec": {"replicas": 1, "leaderWorkerTemplate": both},
    }


def test_a_group_stays_and_another_number_of_nodes_is_an_edit() -> None:
    first = kept(group(OURS, 2), group(THEIRS, 2, GO))
    assert group(THEIRS, 2)["spec"] == first["spec"]
    assert group(OURS, 3) == kept(group(OURS, 3), first)


BASE: dict[str, Any] = {"component_type": "worker", "labels": {"a": "b"}, "replicas": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"replicas": 5}, True),
        ({"labels": {"a": "b", "team": "x"}}, True),
        ({"labels": {"a": "c"}}, False),
        ({"extra_pod_spec": {"mainContainer": {"name": "", "resources": {}}}}, True),
        ({"envs": ({"name": "A", "value": "1"},)}, False),
        ({"annotations": {"a": "b"}}, False),
    ],
)
def test_a_component_says_the_same_but_for_labels_and_empty_fields(
    change: dict[str, Any], expected: bool
) -> None:
    assert expected is has_same_pods(ComponentSpec(**BASE | change), ComponentSpec(**BASE))


DRAIN: Object = {"preStop": {"sleep": {"seconds": 10}}}


def workers(image: str = "a:1", **main: object) -> Object:
    container: Object = {"name": "main", "image": image, **main}
    template = {"metadata": {}, "spec": {"containers": [container]}}
    return {"kind": "Deployment", "metadata": {}, "spec": {"template": template}}


def workers_set(**lifecycles: Object | None) -> Object:
    cliques = [
        {
            "name": name,
            "spec": {"podSpec": {"containers": [{"name": "main", **({"lifecycle": one} if one else {})}]}},
        }
        for name, one in lifecycles.items()
    ]
    return {"kind": "PodCliqueSet", "metadata": {}, "spec": {"template": {"cliques": cliques}}}


DRAINED = workers(lifecycle=DRAIN)


@pytest.mark.parametrize(
    ("wanted", "undrained", "live", "expected"),
    [
        (DRAINED, workers(), workers(), workers()),
        (workers("a:2", lifecycle=DRAIN), workers("a:2"), workers(), workers("a:2", lifecycle=DRAIN)),
        # Without drain periods it is there too: the user asks for it.
        (DRAINED, DRAINED, workers(), DRAINED),
        (
            *(workers_set(decode=DRAIN, prefill=DRAIN), workers_set(decode=None, prefill=DRAIN)),
            *(workers_set(decode=None, prefill=None), workers_set(decode=None, prefill=DRAIN)),
        ),
    ],
    ids=["nothing else changes", "the image changes", "of a user", "each service of a set"],
)
def test_a_drain_comes_with_another_change(
    wanted: Object, undrained: Object, live: Object, expected: Object
) -> None:
    assert expected == without_new_drain(wanted, undrained, live)


def test_only_running_workloads_without_hooks_are_rendered_again() -> None:
    def named(name: str, body: Object) -> Object:
        return {**body, "metadata": {"name": name, "namespace": "default"}}

    hooked, before = workers(lifecycle=DRAIN), workers()
    running = {"a": before, "c": hooked, "d": before, "other": before}
    live: dict[tuple[str, Key], Deployment] = {}
    for name, body in running.items():
        text = msgspec.json.encode(named(name, body))
        live["Deployment", Key("default", name)] = from_json(text, Deployment)
    service: Object = {"kind": "Service", "metadata": {"name": "a", "namespace": "default"}}
    desired = [service, *(named(name, hooked) for name in "abcd")]
    undrained = [service, *(named(name, before) for name in "abcd")]
    expected = [service, undrained[1], desired[2], desired[3], undrained[4]]
    assert expected == list(as_running(desired, lambda: undrained, live, Origin.CURRENT))
    del live["Deployment", Key("default", "a")], live["Deployment", Key("default", "d")]
    assert desired == list(as_running(desired, list, live, Origin.CURRENT)), "not rendered without need"


def test_only_more_pods_that_drain_than_before_are_worth_a_look() -> None:
    live = [msgspec.json.encode(each["spec"]) for each in (workers(), workers(lifecycle=DRAIN))]
    assert [True, False] == [starts_to_drain(workers(lifecycle=DRAIN), each) for each in live]
    assert not any(starts_to_drain(workers(), each) for each in live)


OWNER = OwnerReference("DynamoGraphDeployment", "g", uid="g", controller=True)
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def component(
    annotations: Mapping[str, str] | None = None, *, image: str = "a:1", owned: bool = True, observed: int = 1
) -> DynamoComponentDeployment:
    spec = DynamoComponentDeploymentSpec(extra_pod_spec={"mainContainer": {"image": image, "name": ""}})
    found = DynamoComponentDeployment(
        Metadata(
            "g-w",
            "default",
            generation=1,
            annotations=dict(annotations or {}),
            owner_references=(OWNER,) if owned else (),
        ),
        spec,
    )
    status = type(found.status)(observed_generation=observed)
    return type(found)(found.metadata, spec, status)


def wanted(image: str = "a:1") -> Object:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoComponentDeployment",
        "metadata": {"name": "g-w", "namespace": "default"},
        "spec": {"extraPodSpec": {"mainContainer": {"image": image}}},
    }


def test_a_component_of_a_graph_waits_for_the_graph() -> None:
    assert Origin.UNDECIDED is component_origin(component(GO))
    assert Origin.UNDECIDED is component_origin(component({**GO, labels.ADOPTED_SPEC: "x"}))
    assert Origin.OUTDATED is component_origin(component())
    assert Origin.CURRENT is component_origin(component({labels.ADOPTED_SPEC: "x"}))


def test_a_component_of_its_own_is_told_by_its_status() -> None:
    assert Origin.CURRENT is component_origin(component(owned=False))
    late = component(owned=False, observed=1)
    newer = type(late)(Metadata("g-w", "default", generation=2), late.spec, status=late.status)
    assert Origin.OUTDATED is component_origin(newer)


def test_what_the_earlier_operator_did_not_carry_out_is_not_kept() -> None:
    found = component(GO)
    newer = type(found)(
        msgspec.structs.replace(found.metadata, generation=2), found.spec, status=found.status
    )
    assert Origin.OUTDATED is component_origin(newer)


def test_a_component_is_noted_when_it_says_what_the_graph_says() -> None:
    found = annotated(wanted(), component(GO))
    digest = found["metadata"]["annotations"][labels.ADOPTED_SPEC]
    assert found == annotated(wanted(), component({labels.ADOPTED_SPEC: digest}))
    assert wanted("a:2") == annotated(wanted("a:2"), component({labels.ADOPTED_SPEC: digest}))


@pytest.mark.parametrize("live", [component(GO, image="a:0"), component()])
def test_it_is_not_when_it_was_edited_or_is_ours(live: DynamoComponentDeployment) -> None:
    assert wanted() == annotated(wanted(), live)


def entry(manager: str, time: str, *, status: bool = False, mark: bool = False) -> Object:
    annotations: Object = {"f:annotations": {f"f:{labels.LAST_APPLIED_GENERATION}": {}}} if mark else {}
    fields = {"f:metadata": annotations, "f:spec": {}}
    found: Object = {"manager": manager, "time": time, "fieldsV1": fields}
    return found | ({"subresource": "status"} if status else {})


@pytest.mark.parametrize(
    ("of_graph", "expected"),
    [
        ([entry("kubectl", EARLY)], Origin.CURRENT),
        ([entry("kubectl", LATE)], Origin.OUTDATED),
        ([entry("kubectl", LATE), entry("manager", LATE, status=True)], Origin.CURRENT),
        ([entry("kubectl", EARLY), entry("dynamo-operator", LATE)], Origin.CURRENT),
        ([], Origin.CURRENT),
    ],
)
def test_a_set_is_told_by_who_wrote_last(of_graph: list[Object], expected: Origin) -> None:
    assert expected is set_origin(of_graph, [entry("manager", EARLY, mark=True)])


@pytest.mark.parametrize(
    ("types", "selected", "is_hindered"),
    [
        (("epp", "decode"), "nvidia.com/dynamo-component-class", True),
        (("epp", "decode", "frontend"), "nvidia.com/dynamo-component-class", False),
        (("epp", "decode"), labels.COMPONENT_TYPE, False),
    ],
    ids=["frontends in workers", "a frontend of its own", "the same selector"],
)
def test_requests_that_workers_get_are_not_taken_from_them(
    types: tuple[str, ...], selected: str, is_hindered: bool
) -> None:
    def spec(key: str) -> Object:
        return {"selector": {"matchLabels": {key: "x"}}}

    pool = InferencePool(
        Metadata("g-pool", "ns", annotations=GO), msgspec.Raw(msgspec.json.encode(spec(selected)))
    )
    wanted = InferencePool.KIND.manifest(
        {"name": "g-pool", "namespace": "ns"}, spec=spec(labels.COMPONENT_TYPE)
    )
    services = {type_: ComponentSpec(component_type=type_) for type_ in types}
    why = hindrance([wanted], (), {("InferencePool", pool.key): pool}, services)
    assert is_hindered == why.startswith("InferencePool g-pool would select no pods")
