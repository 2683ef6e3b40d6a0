"""What the charts render, held byte by byte, and what an API server says of it.

With REWRITE_GOLDEN set, the golden files are written instead; `git diff` shows the change.
"""

import os
import runpy
from pathlib import Path

import pytest
import yaml

from cluster.charts.conftest import DEFINITIONS, NAMESPACE, PLATFORM, objects, rendered
from cluster.charts.test_scraped import TESTED_ALERTS, alerts
from cluster.conftest import ControlPlane
from devcluster.programs import Helm, HelmError
from dynamo_operator.process import flags
from dynamo_operator.process.flags import read_settings
from dynamoctl.installation.manifests import RENDERED, mode
from kube_runtime.types.meta import Object

GOLDEN = Path(__file__).parents[2] / "golden" / "charts"
CASES = sorted(GOLDEN.iterdir())
# Kinds of other projects, of which this API server has no CRD.
FOREIGN = ("monitoring.coreos.com/v1", "cert-manager.io/v1")

pytestmark = pytest.mark.cluster


def golden(case: Path) -> list[Object]:
    return objects((case / "objects.yaml").read_text(encoding="utf-8"))


def add(kinds: ControlPlane, *objects: Object) -> None:
    """Make objects, unless they are there."""
    kinds.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(objects))


def named(kind: str, name: str, **metadata: object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def of_kind(kind: str, case: Path) -> Object:
    [only] = [each for each in golden(case) if each["kind"] == kind]
    return only


@pytest.mark.parametrize("chart", [DEFINITIONS, PLATFORM], ids=lambda path: path.name)
def test_helm_finds_no_fault(offline: Helm, chart: Path) -> None:
    assert "0 chart(s) failed" in offline("lint", "--strict", chart)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_values_render_to_their_golden_file(offline: Helm, case: Path) -> None:
    values = f"--values={case / 'values.yaml'}"
    text = offline("template", "dynamo-platform", PLATFORM, f"--namespace={NAMESPACE}", values)
    file = case / "objects.yaml"
    if "REWRITE_GOLDEN" in os.environ:
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


def test_the_api_server_accepts_what_is_rendered(kinds: ControlPlane) -> None:
    ours: list[Object] = []
    for each in (each for case in CASES for each in golden(case)):
        # The pod of `helm test` needs a ServiceAccount that is created before it.
        if each["apiVersion"] not in FOREIGN and each["kind"] != "Pod" and each not in ours:
            ours.append(each)
    namespaces = {each["metadata"].get("namespace", "default") for each in ours}
    add(kinds, *(named("Namespace", name) for name in namespaces))
    kinds.kubectl(
        *("apply", "--dry-run=server", "--validate=strict", "-f", "-"), input=yaml.safe_dump_all(ours)
    )


def pod_of(body: Object) -> Object:
    """The spec of the pods that an object of the chart is, or makes."""
    spec: Object = body["spec"]
    if body["kind"] == "Pod":
        return spec
    pod: Object = spec["template"]["spec"]
    claims = [each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", ())]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {**pod, "volumes": [*pod.get("volumes", ()), *volumes]}


def test_all_pods_pass_the_restricted_standard(kinds: ControlPlane) -> None:
    where, pods = "restricted-pods", list[Object]()
    for case in CASES:
        for each in golden(case):
            name = each["metadata"]["name"]
            is_workload = each["kind"] in ("Deployment", "StatefulSet", "Pod")
            if is_workload and not name.endswith("-buildkitd"):  # which needs another one, as its value says
                tried = named("Pod", f"{case.name}.{name}", namespace=where)
                pods.append({**tried, "spec": pod_of(each)})
    accounts = {each["spec"].get("serviceAccountName", "default") for each in pods}
    add(
        kinds,
        named("Namespace", where, labels={"pod-security.kubernetes.io/enforce": "restricted"}),
        *(named("ServiceAccount", name, namespace=where) for name in accounts),
    )
    kinds.kubectl("create", "--dry-run=server", "-f", "-", input=yaml.safe_dump_all(pods))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("dynamo-operator.discoveryBackend=consul", "discoveryBackend must be 'kubernetes'"),
        (
            "dynamo-operator.controllerManager.leaderElection.id=mine",
            "Using custom leader election ID 'mine' in cluster-wide mode",
        ),
        (
            f"dynamo-operator.controllerManager.leaderElection.namespace={NAMESPACE}",
            f"set to the same as release namespace ({NAMESPACE})",
        ),
        ("dynamo-operator.dynamo.dockerRegistry.useKubernetesSecret=true", "server is required"),
        ("dynamo-operator.webhook.certificateSecret.external=true", "requires webhook.caBundle"),
        ("dynamo-operator.webhook.clientCA.commonName=x", "requires webhook.clientCA.configMap"),
        ("dynamo-operator.dynamo.istio.enabled=true", "requires dynamo.istio.gateway"),
        (
            "dynamo-operator.legacyKinds.enabled=true,dynamo-operator.legacyKinds.buildkitd.enabled=true",
            "requires legacyKinds.buildkitd.tls.secret",
        ),
        ("dynamo-operator.enabled=false", "installs nothing else"),
        ("nats.enabled=true,nats.config.cluster.enabled=true", "set dynamo-operator.natsAddr"),
        ("etcd.enabled=true,etcd.replicaCount=3", "value must be 1"),
        ("nats.enabled=true,nats.replicas=3", "'replicas' not allowed"),
        ("etcd.enabled=true,etcd.auth.rbac.create=true", "value must be false"),
        (
            "dynamo-operator.namespaceRestriction.enabled=true,dynamo-operator.rbac.clusterScoped=false",
            "set metricsService.enabled=false",
        ),
        ("dynamo-operator.controllerManager.podLabels.build=7", "got number, want string"),
        ("dynamo-operator.fullnameOverride=A_b", "does not match pattern"),
        (
            "grove.enabled=true,dynamo-operator.optionalApis.grove=false",
            "grove.enabled is true and dynamo-operator.optionalApis.grove is false",
        ),
        (
            "kai-scheduler.enabled=true,dynamo-operator.optionalApis.kai=false",
            "kai-scheduler.enabled is true and dynamo-operator.optionalApis.kai is false",
        ),
        ("dynamo-operator.podMonitors.enabled=maybe", "value must be one of"),
        ("dynamo-operator.wehbook.enabled=true", "'wehbook' not allowed"),
        ("dynamo-operator.controllerManager.replicas=0", "minimum"),
        ("dynamo-operator.webhook.failurePolicy=Maybe", "must be one of"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_rendered(offline: Helm, values: str, words: str) -> None:
    with pytest.raises(HelmError) as refusal:
        rendered(offline, f"--set={values}")
    assert words in str(refusal.value)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_the_operator_understands_each_flag_and_each_has_an_effect(case: Path) -> None:
    arguments = of_kind("Deployment", case)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments == [each for each in arguments if each.startswith("--")]
    words = [each.removeprefix("--").partition("=") for each in flags.canonical(arguments)]
    known = {flag.name: flag for flag in flags.flags()}
    pending = {name for name, _, _ in words if known[name].unused}
    assert pending <= {"dgdr-profiling-cluster-role-name"}
    settings = read_settings({name: text or "true" for name, _, text in words}, environment={})
    assert settings.leader_election.enabled


@pytest.mark.parametrize("is_restricted", [False, True])
def test_the_packaged_manifests_are_what_the_chart_renders(offline: Helm, is_restricted: bool) -> None:
    tool = runpy.run_path(str(PLATFORM.parents[1] / "tools/install_manifests.py"))
    packaged = RENDERED / f"{mode(is_restricted=is_restricted)}.yaml"
    assert packaged.read_text("utf-8") == tool["rendered"](offline, is_restricted=is_restricted)


def test_a_restricted_operator_may_choose_its_leader_election(offline: Helm) -> None:
    found = rendered(
        offline,
        "--set=dynamo-operator.namespaceRestriction.enabled=true",
        "--set=dynamo-operator.controllerManager.leaderElection.id=mine",
    )
    assert "--leader-election-id=mine" in str(found)


@pytest.mark.parametrize("word", ["lookup", ".Capabilities"])
def test_rendering_depends_on_values_and_on_which_projects_a_cluster_has(word: str) -> None:
    for template in PLATFORM.rglob("templates/**/*.*"):
        if template.name != "_projects.tpl":
            assert word not in template.read_text(encoding="utf-8"), template.name


def test_each_alert_is_tested_and_has_its_remedy() -> None:
    tested = yaml.safe_load(TESTED_ALERTS.read_text("utf-8"))
    names = {
        each["alertname"]
        for test in tested["tests"]
        for each in test.get("alert_rule_test", ())
        if each["exp_alerts"]
    }
    assert set(alerts()) == names
    page = (PLATFORM.parents[1] / "docs/observability.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in alerts())
