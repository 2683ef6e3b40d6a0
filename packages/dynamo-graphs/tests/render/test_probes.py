"""How patient the default probe of a worker is, is for the administrator to say."""

from typing import Any

import pytest

from dynamo_operator.component.pod import pod_spec
from dynamo_operator.component.render import component_plan
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.kind import Object
from specs import a_component


def liveness(type_: str, settings: RenderSettings, **fields: Any) -> Object:
    plan = component_plan(a_component(componentType=type_, **fields), Facts(), settings)
    found: Object = pod_spec(plan, None)["containers"][-1]["livenessProbe"]
    return found


@pytest.mark.parametrize("type_", ["worker", "prefill", "decode"])
def test_a_worker_may_miss_as_many_checks_as_the_administrator_says(type_: str) -> None:
    patient = RenderSettings(worker_liveness_failures=4)
    assert 1 == liveness(type_, RenderSettings())["failureThreshold"]
    assert 4 == liveness(type_, patient)["failureThreshold"]
    assert (
        4
        == liveness(type_, RenderSettings(probe_profile="documented", worker_liveness_failures=4))[
            "failureThreshold"
        ]
    )


def test_a_probe_of_ones_own_and_those_of_other_roles_are_left_alone() -> None:
    patient = RenderSettings(worker_liveness_failures=4)
    own = {"httpGet": {"path": "/mine", "port": 1}, "failureThreshold": 7}
    assert own == liveness("worker", patient, livenessProbe=own)
    assert liveness("frontend", RenderSettings()) == liveness("frontend", patient)
