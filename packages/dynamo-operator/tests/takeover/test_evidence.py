"""Detects whether a workload was created from the current spec."""

from collections.abc import Mapping

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment, DynamoComponentDeploymentSpec
from dynamo_operator.takeover.plan import (
    Origin,
    adopted,
    annotated,
    component_origin,
    set_origin,
    set_starts_to_drain,
)
from kube_runtime.types.meta import Metadata, Object, OwnerReference

GO = {labels.LAST_APPLIED_GENERATION: "1"}
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


def test_other_kinds_come_back_as_they_are() -> None:
    live = {("DynamoComponentDeployment", component().key): component(GO)}
    assert [wanted()] == list(adopted([wanted()], live, Origin.CURRENT))
    assert not set_starts_to_drain([wanted()], live)


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
