"""Whatever text a user gives as a value arrives as that text, and no name is longer than Kubernetes allows.

How quoting is tested: what is rendered with a text must be what is rendered with a plain word, with the text
in the place of the word. So a text can be neither another type, nor a key, nor an object of its own.
"""

import json
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.charts.conftest import PLATFORM, rendered
from devcluster.programs import Helm
from kube_runtime.types.meta import Object

WORD = "qzplainwordzq"
NASTY = (
    *("yes", "null", "0x1", "1e3", "1_000", "12:30:45", "2001-01-01", ".inf", "~", "007"),
    *("a: b", "- a", "# a", "a #b", "{a: b}", "[a", "*a", "&a", "!a", "%a", "@a", "`a`", "a,b", "? a"),
    *("'", '"', "a'b\"c", "\\n", "a\nb: c", " a ", "a\tb", "{{ .Release.Name }}", "$(POD)", "é\u2028ü"),
)
NAMES = ("yes", "null", "true", "on", "n", "0x1", "1e3", "007", "2001-01-01", "1.5")
# Values that take any text.
TEXTS = (
    *("natsAddr", "etcdAddr", "modelExpressURL", "kubernetesClusterDomain"),
    *("dynamo.ingressHostSuffix", "dynamo.metrics.prometheusEndpoint", "dynamo.ingress.className"),
    *("dynamo.ingress.tlsSecretName", "dynamo.istio.gateway", "dynamo.groveTerminationDelay"),
    *("dynamo.models.callTimeout", "dynamo.internalImages.profilingCopier"),
    *("dynamo.internalImages.debugger", "dynamo.mpiRun.secretName"),
    *("controllerManager.priorityClassName", "controllerManager.manager.image.tag"),
    *("controllerManager.manager.image.repository", "controllerManager.manager.image.digest"),
    *("controllerManager.labels.x", "controllerManager.annotations.x", "controllerManager.podLabels.x"),
    *("controllerManager.podAnnotations.x", "controllerManager.nodeSelector.x"),
    *("controllerManager.serviceAccount.annotations.x", "webhook.caBundle"),
    *("webhook.clientCA.configMap", "webhook.clientCA.commonName"),
    *("webhook.certificateSecret.name", "webhook.certManager.certificate.duration"),
    *("metricsService.serviceMonitor.interval", "metricsService.serviceMonitor.labels.x"),
    *("podMonitors.interval", "podMonitors.path", "podMonitors.labels.x"),
    *("monitoring.dashboards.namespace", "monitoring.dashboards.labels.x", "monitoring.alerts.labels.x"),
)
ON = (
    *("dynamo.ingress.enabled", "dynamo.istio.enabled", "podMonitors.enabled"),
    *("metricsService.serviceMonitor.enabled", "monitoring.dashboards.enabled"),
    *("monitoring.alerts.enabled", "networkPolicy.enabled"),
)

pytestmark = pytest.mark.cluster


def put(values: Object, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for key in parents:
        values = values.setdefault(key, {})
    values[last] = value


def filled(text: str, certificate: str) -> Object:
    """Every feature on, and the text as each value that takes one."""
    operator: Object = {}
    for path in TEXTS:
        put(operator, path, text)
    for path in ON:
        put(operator, path, value=True)
    put(operator, certificate, value=True)
    put(operator, "controllerManager.manager.args", [text, f"--x={text}"])
    put(operator, "controllerManager.manager.env", [{"name": "x", "value": text}])
    put(operator, "imagePullSecrets", [{"name": text}])
    put(operator, "metricsService.readers", [{"name": text, "namespace": text}])
    resources = {"limits": {"x": text}}
    return {
        "dynamo-operator": operator,
        "nats": {"enabled": True, "nodeSelector": {"x": text}, "resources": resources},
        "etcd": {"enabled": True, "persistence": {"storageClass": text, "size": text}},
    }


def rendered_with(helm: Helm, values: Object, **names: str) -> list[Object]:
    text = json.dumps(values, ensure_ascii=False)
    return rendered(helm, "--values=-", stdin=text, **{"release": "r", "namespace": "ns", **names})


def replaced(value: Any, text: str) -> Any:
    """The value with the text in the place of the word."""
    if isinstance(value, dict):
        return {key: replaced(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, text) for each in value]
    return value.replace(WORD, text) if isinstance(value, str) else value


CERTIFICATES = ("webhook.certManager.enabled", "webhook.certificateSecret.external")


@pytest.fixture(scope="module", params=CERTIFICATES)
def check(request: pytest.FixtureRequest, offline: Helm) -> Callable[[str], None]:
    """Check that a text arrives. A function: hypothesis would print all that is rendered."""
    plain = rendered_with(offline, filled(WORD, request.param))
    # Else a text could break a value that this test never renders.
    assert json.dumps(plain).count(WORD) > len(TEXTS)

    def checked(text: str) -> None:
        assert replaced(plain, text) == rendered_with(offline, filled(text, request.param))

    return checked


@pytest.mark.parametrize(
    ("check", "text"),
    [
        pytest.param(value, text, marks=[] if number % 2 == turn else pytest.mark.long)
        for turn, value in enumerate(CERTIFICATES)
        for number, text in enumerate(NASTY)
    ],
    indirect=["check"],
)
def test_a_text_arrives_as_it_is(check: Callable[[str], None], text: str) -> None:
    check(text)


RARELY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.long
@RARELY
@given(text=st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co")), min_size=1, max_size=20))
def test_any_text_arrives_as_it_is(check: Callable[[str], None], text: str) -> None:
    check(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_release_and_a_namespace_may_be_called_like_other_types(offline: Helm, name: str) -> None:
    values = {"nats": {"enabled": True}, "etcd": {"enabled": True}}
    found = rendered_with(offline, values, release=name, namespace=name)
    for each in found:
        metadata = each["metadata"]
        assert isinstance(metadata["name"], str)
        assert metadata.get("namespace", name) in (name, "kube-system")
        assert name == metadata["labels"]["app.kubernetes.io/instance"]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


RELEASES = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=53).filter(
    lambda name: not name.startswith("-") and not name.endswith("-") and name[0].isalpha()
)
LABELS = st.text(string.ascii_lowercase + "-", min_size=1, max_size=63).filter(
    lambda name: not name.startswith("-") and not name.endswith("-")
)


@RARELY
@given(release=RELEASES, namespace=LABELS, override=st.just("") | LABELS, is_restricted=st.booleans())
def test_no_name_is_too_long_and_none_is_there_twice(
    offline: Helm, release: str, namespace: str, override: str, is_restricted: bool
) -> None:
    values: Object = {"dynamo-operator": {"fullnameOverride": override}}
    put(values, "nats.enabled", value=True)
    put(values, "etcd.enabled", value=True)
    put(values, "dynamo-operator.namespaceRestriction.enabled", is_restricted)
    put(values, "dynamo-operator.webhook.certManager.enabled", value=True)
    found = rendered_with(offline, values, release=release, namespace=namespace)
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in found]
    assert not [name for _, _, name in names if len(name) > 63 or name[-1] == "-"]
    assert len(names) == len(set(names))
    for each in found:
        assert all(len(label) <= 63 for label in each["metadata"]["labels"].values())


def test_two_long_releases_do_not_meet(offline: Helm) -> None:
    def names(release: str) -> set[tuple[str, str]]:
        found = rendered_with(offline, {}, release=release)
        return {(each["kind"], each["metadata"]["name"]) for each in found}

    long = "a" * 52
    assert not names(f"{long}b") & names(f"{long}c")


def test_what_users_call_pods_never_changes_how_they_are_selected(offline: Helm) -> None:
    labels = {
        "app.kubernetes.io/name": "mine",
        "app.kubernetes.io/instance": "mine",
        "control-plane": "mine",
        "team": "mine",
    }
    manager = {"podLabels": labels, "labels": labels, "podAnnotations": {"a": "b"}}
    found = rendered_with(offline, {"dynamo-operator": {"controllerManager": manager}})
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    pods = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [
        each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
        for each in found
        if each["kind"] in ("Deployment", "Service", "PodDisruptionBudget")
    ]
    assert 4 == len(selectors)
    assert all(selector.items() <= pods.items() for selector in selectors)
    assert "mine" == pods["team"] == deployment["metadata"]["labels"]["team"]


def keys(values: Object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every group of values whose keys are known."""
    yield path
    for key, each in values.items():
        if isinstance(each, dict) and each and (*path, key) not in OPEN:
            yield from keys(each, (*path, key))


OPEN = {
    ("grove",),
    ("kai-scheduler",),
    ("nats", "config", "merge"),
    *(
        ("dynamo-operator", "controllerManager", "manager", each)
        for each in ("resources", "containerSecurityContext")
    ),
    ("dynamo-operator", "metricsService", "serviceMonitor", "labels"),
    ("dynamo-operator", "monitoring", "dashboards", "labels"),
    ("dynamo-operator", "monitoring", "alerts", "labels"),
}


def test_an_unknown_key_is_refused_wherever_it_stands() -> None:
    import jsonschema_rs

    def schema(chart: Path) -> Any:
        return json.loads((chart / "values.schema.json").read_text("utf-8"))

    for chart in (PLATFORM, PLATFORM / "charts/nats", PLATFORM / "charts/etcd"):
        values = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
        check = jsonschema_rs.validator_for(schema(chart))
        assert check.is_valid(values)
        for path in keys(values):
            whole = json.loads(json.dumps(values))
            group = whole
            for key in path:
                group = group[key]
            group["unknwon"] = 1
            is_open = path in (("global",), ("nats",), ("etcd",)) or _is_retired(schema(chart), path)
            assert is_open == check.is_valid(whole), path


def _is_retired(schema: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        schema = schema.get("properties", {}).get(key, {})
    return ("properties" not in schema and "type" not in schema) or (
        schema.get("type") == "object" and ("additionalProperties" not in schema)
    )
