"""Who runs a graph is decided once, and what runs is never moved."""

import pytest

from dynamo_operator.api import labels
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.provider import COMPONENT, GROVE
from dynamo_operator.facts import Facts
from dynamo_operator.kube.types.meta import Metadata
from dynamo_operator.render.provider import PROVIDERS, is_available, provider

WITH_GROVE, WITHOUT = Facts(grove_served=True), Facts()
DCD, SET = "DynamoComponentDeployment", "PodCliqueSet"


def graph(**annotations: str) -> DynamoGraphDeployment:
    keys = {"recorded": labels.WORKLOAD_PROVIDER, "enable_grove": labels.ENABLE_GROVE}
    found = {keys[name]: value for name, value in annotations.items()}
    return DynamoGraphDeployment(Metadata("chat", annotations=found))


@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
@pytest.mark.parametrize("present", [(), (DCD,), (SET,), (DCD, SET)])
@pytest.mark.parametrize("recorded", [COMPONENT, GROVE, "knative"])
def test_what_is_recorded_stays(facts: Facts, present: tuple[str, ...], recorded: str) -> None:
    assert recorded == provider(graph(recorded=recorded, enable_grove="false"), facts, present)


@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
@pytest.mark.parametrize(
    ("present", "expected"), [((DCD, "Role"), COMPONENT), ((SET, "Service"), GROVE)]
)
def test_a_graph_without_a_record_keeps_what_it_has(
    facts: Facts, present: tuple[str, ...], expected: str
) -> None:
    assert expected == provider(graph(), facts, present)


@pytest.mark.parametrize("enable_grove", ["false", "False", "FALSE"])
def test_a_graph_may_refuse_grove(enable_grove: str) -> None:
    assert COMPONENT == provider(graph(enable_grove=enable_grove), WITH_GROVE, ())


def test_without_grove_a_new_graph_has_components() -> None:
    assert COMPONENT == provider(graph(), WITHOUT, ("ServiceAccount",))


def test_with_grove_a_new_graph_is_groves_if_we_can_render_that() -> None:
    expected = GROVE if GROVE in PROVIDERS else COMPONENT
    for annotations in ({}, {"enable_grove": "true"}, {"enable_grove": "0"}):
        assert expected == provider(graph(**annotations), WITH_GROVE, ())


def test_who_is_unknown_or_not_there_is_unavailable() -> None:
    assert is_available(COMPONENT, WITHOUT)
    assert not is_available(GROVE, WITHOUT)
    assert not is_available("knative", WITH_GROVE)
