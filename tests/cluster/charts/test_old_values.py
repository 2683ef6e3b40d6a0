"""Values of the Go operator's chart that users carry over: understood, without effect, or refused."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.charts.conftest import NAMESPACE, PLATFORM, rendered
from cluster.conftest import ControlPlane
from devcluster.programs import Helm, HelmError
from kube_runtime.types.meta import Object

IMAGE = "dynamo-operator.controllerManager.manager.image"
ARGS = "dynamo-operator.controllerManager.manager.args"
SERVED = "--api-versions=monitoring.coreos.com/v1"
MONITORING = ("metricsService.serviceMonitor", "podMonitors")
MONITORS = ["dynamo-frontend", "dynamo-planner", "dynamo-worker"]

pytestmark = pytest.mark.cluster


def named(found: list[Object], kind: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in found if each["kind"] == kind)


def flags(found: list[Object]) -> list[str]:
    [manager] = [each for each in found if each["kind"] == "Deployment"]
    [container] = manager["spec"]["template"]["spec"]["containers"]
    args: list[str] = container["args"]
    return args


def set_args(*args: str) -> list[str]:
    return [f"--set={ARGS}[{index}]={each}" for index, each in enumerate(args)]


def test_old_default_args_do_not_move_the_metrics_port(offline: Helm) -> None:
    old = (
        "--health-probe-bind-address=:8081",
        "--metrics-bind-address=127.0.0.1:8080",
        "--leader-elect",
        "--leader-election-id=dynamo.nvidia.com",
    )
    plain = flags(rendered(offline))
    assert plain == flags(rendered(offline, *set_args(*old)))
    assert "--metrics-bind-address=:8443" in plain


@pytest.mark.parametrize(
    "argument",
    [
        "--metrics-bind-address=:9090",
        "-metrics-bind-address=:9090",
        "--metrics-secure=false",
        "--health-probe-bind-address=:1",
        "--restrictedNamespace=team-a",
        "--enable-webhooks=false",
        "--leader-election-id=mine",
    ],
)
def test_args_that_contradict_what_the_chart_computes_are_refused(offline: Helm, argument: str) -> None:
    with pytest.raises(HelmError) as refusal:
        rendered(offline, *set_args(argument))
    assert f'"{argument}" contradicts what the chart computes' in str(refusal.value)


def test_other_args_come_last_as_before(offline: Helm) -> None:
    args = ("--zap-devel=true", "--log-level=debug")
    assert list(args) == flags(rendered(offline, *set_args(*args)))[-2:]


@pytest.mark.parametrize(
    ("served", "value", "monitors"),
    [([SERVED], "", True), ([], "", False), ([SERVED], "false", False), ([], "true", True)],
)
def test_monitors_come_where_their_kinds_are_served_unless_values_say_otherwise(
    offline: Helm, served: list[str], value: str, monitors: bool
) -> None:
    switches = [f"--set=dynamo-operator.{each}.enabled={value}" for each in MONITORING]
    found = rendered(offline, *served, *(switches if value else ()))
    service = ["dynamo-platform-dynamo-operator-operator"] if monitors else []
    assert service == named(found, "ServiceMonitor")
    assert (MONITORS if monitors else []) == named(found, "PodMonitor")


@pytest.mark.parametrize(
    "key", ["metrics.enabled", "dynamo-operator.metrics.enabled", "dynamo-operator.metricsService.enabled"]
)
def test_each_name_of_the_metrics_switch_switches_them_off(offline: Helm, key: str) -> None:
    found = rendered(offline, SERVED, f"--set={key}=false")
    assert "--metrics-bind-address=0" in flags(found)
    assert [] == named(found, "ServiceMonitor")
    assert MONITORS == named(found, "PodMonitor")  # of graphs, as in the Go operator's chart
    assert not any("metrics" in each for each in named(found, "ClusterRole"))


def rules(found: list[Object]) -> set[str]:
    """The API groups that the operator has any right to."""
    roles: list[Any] = [
        each
        for each in found
        if each["kind"] == "ClusterRole" and each["metadata"]["name"].endswith("-manager-role")
    ]
    return {group for role in roles for rule in role["rules"] for group in rule["apiGroups"]}


OPTIONAL = {
    "grove": "grove.io",
    "kai": "scheduling.run.ai",
    "leaderWorkerSet": "leaderworkerset.x-k8s.io",
    "inferencePool": "inference.networking.k8s.io",
    "istio": "networking.istio.io",
}


def test_optional_apis_are_granted_unless_a_value_withholds_one(offline: Helm) -> None:
    assert set(OPTIONAL.values()) <= rules(rendered(offline))
    for key, group in OPTIONAL.items():
        found = rules(rendered(offline, f"--set=dynamo-operator.optionalApis.{key}=false"))
        assert group not in found
        assert set(OPTIONAL.values()) - {group} <= found


def test_grove_and_kai_of_old_values_are_accepted_and_the_notes_say_what_is_left_to_do(offline: Helm) -> None:
    chosen = ("--set=grove.enabled=true", "--set=kai-scheduler.enabled=true")
    assert {"grove.io", "scheduling.run.ai"} <= rules(rendered(offline, *chosen))
    install = ("install", "dynamo-platform", PLATFORM, f"--namespace={NAMESPACE}", "--dry-run=client")
    notes = offline(*install, *chosen)
    for project in ("grove", "kai-scheduler"):
        assert f"helm install {project} oci://ghcr.io/nvidia/" in notes
    quiet = offline(*install)
    assert "oci://" not in quiet


FOREIGN = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: grove-operator}
spec:
  replicas: 0
  selector: {matchLabels: {app: grove}}
  template:
    metadata: {labels: {app: grove}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: grove-operator}
"""
OF_GROVE = (
    r'BEGIN{RS="---\n"} /# Source: dynamo-platform\/charts\/(grove|kai-scheduler)\//'
    '{print "---"; print}'
)


def test_an_upgrade_does_not_take_the_grove_of_an_old_release_away(
    kinds: ControlPlane, online: Helm, tmp_path: Path
) -> None:
    old, namespace = tmp_path / "dynamo-platform", "was-go"
    parts = ((old, "dynamo-platform"), (old / "charts" / "grove", "grove"))
    for folder, name in parts:
        (folder / "templates").mkdir(parents=True)
        chart = f"apiVersion: v2\nname: {name}\nversion: 0.9.0\n"
        (folder / "Chart.yaml").write_text(chart, encoding="utf-8")
    (parts[1][0] / "templates" / "all.yaml").write_text(FOREIGN, encoding="utf-8")
    where = ("dynamo-platform", f"--namespace={namespace}")
    online("install", *where, old, "--create-namespace")
    values = ("--set=grove.enabled=true", "--set=dynamo-operator.webhook.enabled=false")
    with pytest.raises(HelmError) as refusal:
        online("upgrade", *where, PLATFORM, *values)
    assert "this release runs the Deployments grove-operator" in str(refusal.value)
    assert OF_GROVE in (PLATFORM.parents[1] / "docs" / "install.md").read_text("utf-8")
    manifest = online("get", "manifest", *where)
    awk = ("awk", OF_GROVE)
    filtered = subprocess.run(awk, input=manifest, capture_output=True, text=True, check=True)  # noqa: S603
    keep = ("annotate", "--overwrite", "helm.sh/resource-policy=keep")
    kinds.kubectl(*keep, f"--namespace={namespace}", "-f", "-", input=filtered.stdout)
    online("upgrade", *where, PLATFORM, *values)
    left = kinds.kubectl("get", "deployments,serviceaccounts", f"--namespace={namespace}", "-oname")
    assert {"deployment.apps/grove-operator", "serviceaccount/grove-operator"} <= set(left.split())
    online("uninstall", *where)


def test_top_level_switches_are_those_of_the_operator(offline: Helm) -> None:
    assert flags(rendered(offline, "--set=webhook.enabled=false")) == flags(
        rendered(offline, "--set=dynamo-operator.webhook.enabled=false")
    )
    place = "namespaceRestriction.targetNamespace=team"
    assert rendered(offline, f"--set=namespaceRestriction.enabled=true,{place}") == rendered(
        offline, f"--set=dynamo-operator.namespaceRestriction.enabled=true,dynamo-operator.{place}"
    )


def test_memory_of_jetstream(offline: Helm) -> None:
    store = "nats.config.jetstream.memoryStore"
    found = rendered(offline, f"--set=nats.enabled=true,{store}.enabled=true,{store}.maxSize=512Mi")
    [text] = [it["data"]["nats.conf"] for it in found if "nats.conf" in it.get("data", {})]
    assert 512 * 1024**2 == yaml.safe_load(text)["jetstream"]["max_memory_store"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (IMAGE + ".tag=0.9.0", "The operator's image is dynamo-operator:0.9.0, and this chart is of"),
        ("dynamo-operator.upgradeCRD=true", "dynamo-operator.upgradeCRD has no effect"),
        ("dynamo-operator.gpuDiscovery.enabled=true", "dynamo-operator.gpuDiscovery has no effect"),
        ("dynamo-api-store.enabled=false", "dynamo-api-store has no effect"),
    ],
)
def test_the_release_notes_name_what_has_no_effect(offline: Helm, value: str, words: str) -> None:
    place = f"--namespace={NAMESPACE}"
    text = offline("install", "d", PLATFORM, place, "--dry-run=client", f"--set={value}")
    assert words in text.partition("NOTES:")[2]
