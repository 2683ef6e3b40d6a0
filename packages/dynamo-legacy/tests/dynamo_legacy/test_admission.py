"""Reviews of the older generation: with its switch only, by the rules of its controllers."""

from typing import Any

import msgspec
import pytest

from dynamo_legacy.admission import LEGACY_RULES
from dynamo_operator.admission.decide import RULES, Decision, ReviewContext, decide
from dynamo_operator.settings import RenderSettings, Settings
from kube_runtime.types.meta import Object
from reviews.serving import of_settings

DEPLOYMENT, NIM, REQUEST = LEGACY_RULES
SPECS: dict[str, tuple[Object, Object, str]] = {
    "DynamoDeployment": (
        {"dynamoNim": "frontend:1"},
        {"dynamoNim": "frontend:1", "services": {"W": {"pvc": {}}}},
        "spec.services.W.pvc.mountPoint: missing mountPoint (for example /data)",
    ),
    "DynamoNimDeployment": (
        {"dynamoNim": "frontend--1", "dynamoTag": "graphs.disagg:Frontend"},
        {"dynamoNim": "frontend--1", "dynamoTag": "graphs.disagg:Frontend", "pvc": {}},
        "spec.pvc.mountPoint: missing mountPoint (for example /data)",
    ),
    "DynamoNimRequest": (
        {"bentoTag": "frontend:1"},
        {"bentoTag": "frontend:1", "imageBuildTimeout": "soon"},
        'spec.imageBuildTimeout: invalid duration "soon" (expected for example 30m or 1h30m)',
    ),
}


def rules_served(*, legacy_kinds: bool) -> list[str]:
    server = of_settings(Settings(legacy_kinds=legacy_kinds))
    return [each.type_.KIND.name for each in server.decisions.rules]


def verdict(rules: Any, new: Object, old: Object | None = None) -> Decision:
    def text(spec: Object) -> msgspec.Raw:
        body = {"apiVersion": "nvidia.com/v1alpha1", "kind": rules.type_.KIND.name, "spec": spec}
        return msgspec.Raw(msgspec.json.encode({**body, "metadata": {"name": "disagg", "namespace": "ml"}}))

    before = None if old is None else text(old)
    return decide(rules, text(new), before, ReviewContext(RenderSettings()))


def test_the_switch_decides_which_kinds_are_reviewed() -> None:
    today = [each.type_.KIND.name for each in RULES]
    assert rules_served(legacy_kinds=False) == today
    assert rules_served(legacy_kinds=True) == [*today, *SPECS]


@pytest.mark.parametrize("rules", LEGACY_RULES, ids=lambda each: each.type_.KIND.name)
def test_each_kind_is_refused_for_what_its_controller_would_report(rules: Any) -> None:
    good, bad, problem = SPECS[rules.type_.KIND.name]
    assert verdict(rules, good).allowed
    assert [str(each) for each in verdict(rules, bad).problems] == [problem]


def test_what_was_wrong_before_is_a_warning() -> None:
    _, bad, problem = SPECS["DynamoNimRequest"]
    found = verdict(REQUEST, {**bad, "buildArgs": ["A=b"]}, bad)
    assert found.allowed
    assert found.warnings == (f"{problem} (as before)",)


def test_what_has_no_effect_is_a_warning() -> None:
    good, _, _ = SPECS["DynamoDeployment"]
    found = verdict(DEPLOYMENT, {**good, "services": {"Worker": {"runMode": {"standalone": True}}}})
    assert found.allowed
    assert found.warnings == ("spec.services.Worker.runMode: has no effect: no process has ever read it",)
    nim, _, _ = SPECS["DynamoNimDeployment"]
    assert verdict(NIM, nim).warnings == ()
