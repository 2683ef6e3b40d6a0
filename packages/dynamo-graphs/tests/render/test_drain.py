"""Terminating workers keep serving until frontends know; other pods, and what users say, are left alone."""

from typing import Any

import pytest

from dynamo_operator.component.pod import pod_spec
from dynamo_operator.component.render import component_plan
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.kind import Object
from specs import a_component

TEN = {"preStop": {"sleep": {"seconds": 10}}}
AT_ONCE: Object = {"exec": {"command": ["true"]}}


def lifecycle(
    type_: str,
    main: Object | None = None,
    settings: RenderSettings | None = None,
    **pod: Any,
) -> Any:
    """The lifecycle of the main container of such a component."""
    extra = {**pod, "mainContainer": {"image": "an-image", **(main or {})}}
    component = a_component(componentType=type_, extraPodSpec=extra)
    plan = component_plan(component, Facts(), settings or RenderSettings())
    return pod_spec(plan, None)["containers"][-1].get("lifecycle")


@pytest.mark.parametrize("type_", ["worker", "prefill", "decode"])
def test_workers_wait_ten_seconds_before_they_are_told_to_end(type_: str) -> None:
    assert lifecycle(type_) == TEN


@pytest.mark.parametrize("type_", ["frontend", "planner", "default"])
def test_pods_that_are_no_workers_have_nothing_added(type_: str) -> None:
    assert lifecycle(type_) is None


def test_a_handler_of_the_users_is_the_only_one() -> None:
    assert lifecycle("worker", {"lifecycle": {"preStop": AT_ONCE}}) == {"preStop": AT_ONCE}


def test_what_users_do_after_the_start_stays() -> None:
    expected = {"postStart": AT_ONCE, **TEN}
    assert lifecycle("worker", {"lifecycle": {"postStart": AT_ONCE}}) == expected


@pytest.mark.parametrize(("grace", "seconds"), [(600, 10), (20, 10), (8, 4), (2, 1)])
def test_half_of_the_grace_period_is_left_to_running_requests(grace: int, seconds: int) -> None:
    expected = {"preStop": {"sleep": {"seconds": seconds}}}
    assert lifecycle("worker", terminationGracePeriodSeconds=grace) == expected


@pytest.mark.parametrize("grace", [0, 1])
def test_a_pod_that_ends_at_once_does_not_wait(grace: int) -> None:
    assert lifecycle("worker", terminationGracePeriodSeconds=grace) is None


@pytest.mark.parametrize(
    "settings",
    [RenderSettings(worker_drain_period_seconds=0), RenderSettings(discovery_backend="etcd")],
    ids=["switched off", "etcd"],
)
def test_nothing_is_added_where_it_is_off_or_would_not_help(settings: RenderSettings) -> None:
    assert lifecycle("worker", settings=settings) is None
