"""Two pod templates are the same when the API server makes the same of them."""

from typing import Any

import pytest

from kube_runtime.apply.drift import is_same_template
from kube_runtime.kind import Object


def template(pod: Object | None = None, **container: Any) -> Object:
    main = {"name": "main", "image": "registry.example.com/a:1", **container}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [main], **(pod or {})}}


PROBE = {"httpGet": {"path": "/live", "port": 8000}}
STORED_PROBE = {
    "httpGet": {"path": "/live", "port": 8000, "scheme": "HTTP"},
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}


@pytest.mark.parametrize(
    "other",
    [
        template(resources={}, terminationMessagePath="/dev/termination-log"),
        template(imagePullPolicy="IfNotPresent"),
        template({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {}}),
        template({"hostNetwork": False}),
    ],
)
def test_defaults_and_empty_fields_change_nothing(other: Object) -> None:
    assert is_same_template(template(), other, by_amount=False)
    assert is_same_template(other, template(), by_amount=False)


@pytest.mark.parametrize(
    "other",
    [
        template(imagePullPolicy="Always"),
        template({"dnsPolicy": "Default"}),
        template({"hostNetwork": True}),
        template({"initContainers": [{"name": "wait"}]}),
        template(env=[{"name": "A", "value": "1"}]),
        template(image="registry.example.com/a:2"),
    ],
)
def test_everything_else_does(other: Object) -> None:
    assert not is_same_template(template(), other, by_amount=True)
    assert not is_same_template(other, template(), by_amount=True)


def test_probes_compare_with_their_defaults() -> None:
    one, other = template(livenessProbe=PROBE), template(livenessProbe=STORED_PROBE)
    assert is_same_template(one, other, by_amount=False)
    late = template(livenessProbe={**STORED_PROBE, "timeoutSeconds": 2})
    assert not is_same_template(one, late, by_amount=False)


def test_the_order_of_variables_counts() -> None:
    a, b = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
    assert not is_same_template(template(env=[a, b]), template(env=[b, a]), by_amount=True)


def test_the_spelling_of_an_amount_counts_only_where_a_controller_sees_it() -> None:
    one, other = (template(resources={"limits": {"cpu": each}}) for each in ("1", "1000m"))
    assert is_same_template(one, other, by_amount=True)
    assert not is_same_template(one, other, by_amount=False)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("r:5000/a", "Always"),
        ("r:5000/a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    one, other = template(image=image), template(image=image, imagePullPolicy=policy)
    assert is_same_template(one, other, by_amount=False)
