"""The objects of the recorded operator of that generation, and ours: equal but for the rows of the page."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from dynamo_graphs.facts import Facts
from dynamo_graphs.settings import RenderSettings
from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim import DynamoNimSpec
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.generate import components
from dynamo_legacy.graph_config import parse_graph_config
from dynamo_legacy.render import claims, nim_parts, nim_plan
from dynamo_legacy.settings import LegacySettings
from kube_runtime.kind import Object

ROOT = Path(__file__).parents[3]
CASES = sorted((ROOT / "tests/conformance/legacy").iterdir())
KINDS = (
    "Deployment",
    "Service",
    "HorizontalPodAutoscaler",
    "Ingress",
    "VirtualService",
    "PersistentVolumeClaim",
)
DROPPED = ("proxy", "metrics-transformer", "debugger")
ROWS: dict[tuple[str, str], str] = {
    ("*", "Service selector"): "Y1",
    ("nd-debug", "Deployment spec.shareProcessNamespace"): "Y2",
    ("nd-debug", "Service ports"): "Y2",
    ("nd-debug", "Deployment missing"): "Y2",
    ("nd-debug", "Service missing"): "Y2",
    ("nd-pvc-use", "Deployment added"): "Y3",
    ("nd-pvc-use", "Service added"): "Y3",
    ("nd-shm", "Deployment added"): "Y4",
    ("nd-shm", "Service added"): "Y4",
    ("override-all", "Deployment added"): "Y4",
    ("override-all", "HorizontalPodAutoscaler added"): "Y4",
    ("override-all", "Service added"): "Y4",
    ("seed-nd", "Deployment env[DYN_DEPLOYMENT_CONFIG]"): "Y5",
}
"""Which row of docs/deviations.md explains a difference, by case and by what differs."""


def document(case: Path, name: str) -> Any:
    return yaml.safe_load((case / name).read_text(encoding="utf-8"))


def recorded(case: Path) -> list[Object]:
    return [each for each in document(case, "expected.yaml")["objects"] if each.get("metadata")]


def identity(each: Object) -> tuple[str, str]:
    return each["kind"], each["metadata"]["name"]


def ours(case: Path) -> dict[tuple[str, str], Object]:
    """What the objects that the recording has as components become here."""
    is_bare = document(case, "case.yaml").get("mode") == "bare"
    settings = RenderSettings(
        nats_address="nats://nats:4222",
        etcd_address="etcd:2379",
        ingress_class_name="" if is_bare else "nginx",
    )
    legacy = LegacySettings(
        ingress_host_suffix="dev.example.com", restricted_security_context=is_bare
    )
    images = {
        each["metadata"]["name"]: each for each in recorded(case) if each["kind"] == "DynamoNim"
    }
    found: dict[tuple[str, str], Object] = {}
    for each in nims(case):
        image = images.get(each.spec.dynamo_nim)
        if image is None:
            continue
        plan = nim_plan(
            each, msgspec.convert(image["spec"], DynamoNimSpec), Facts(), settings, legacy
        )
        around, workloads = nim_parts(plan, each, None)
        found |= {identity(made): made for made in (*around, *workloads, *claims(each))}
    return found


def nims(case: Path) -> list[DynamoNimDeployment]:
    namespace = f"c-{case.name}"
    text = (case / "input.yaml").read_text(encoding="utf-8")
    made: list[Object] = []
    for each in yaml.safe_load_all(text):
        if not each:
            continue
        body = {**each, "metadata": {**each["metadata"], "namespace": namespace}}
        if each["kind"] == DynamoNimDeployment.KIND.name:
            made.append(body)
        if each["kind"] == DynamoDeployment.KIND.name:
            graph = parse_graph_config((case / "graph.yaml").read_text(encoding="utf-8"))
            made += components(msgspec.convert(body, DynamoDeployment), graph)
    with_uid = ({**each, "metadata": {**each["metadata"], "uid": "<uid>"}} for each in made)
    return [msgspec.convert(each, DynamoNimDeployment) for each in with_uid]


def facts(each: Object) -> dict[str, object]:
    """What has to be equal of an object, without the defaults of the API server."""
    spec = each["spec"]
    if each["kind"] == "Service":
        return {"ports": spec["ports"], "selector": spec["selector"]}
    if each["kind"] != "Deployment":
        return {"spec": {key: value for key, value in spec.items() if key != "volumeMode"}}
    pod = spec["template"]["spec"]
    [main] = [one for one in pod["containers"] if one["name"] == "main"]
    labels = spec["template"]["metadata"]["labels"]
    found: dict[str, object] = {
        "replicas": spec.get("replicas"),
        "strategy": spec.get("strategy"),
        "selector": spec["selector"],
        "labels": {key: text for key, text in labels.items() if key.startswith("yatai.ai/")},
        "volumes": named(one for one in pod.get("volumes", ()) if one["name"] != "envoy-config"),
        "side": [one["name"] for one in pod["containers"] if one["name"] not in (*DROPPED, "main")],
        "volumeMounts": named(main.get("volumeMounts", ())),
    }
    for name in ("image", "command", "args", "ports", "resources", "envFrom", "tty", "stdin"):
        found[f"main.{name}"] = main.get(name)
    for name in ("livenessProbe", "readinessProbe", "securityContext"):
        found[f"main.{name}"] = main.get(name)
    for name in (
        "serviceAccountName",
        "imagePullSecrets",
        "nodeSelector",
        "tolerations",
        "affinity",
    ):
        found[f"spec.{name}"] = pod.get(name)
    for name in ("hostIPC", "hostNetwork", "hostPID", "shareProcessNamespace"):
        found[f"spec.{name}"] = pod.get(name)
    for one in main.get("env", ()):
        found[f"env[{one['name']}]"] = one.get("value", one.get("valueFrom"))
    return found


def named(entries: Any) -> list[Object]:
    return sorted(entries, key=lambda each: str(each["name"]))


def differences(case: Path) -> set[str]:
    theirs = {identity(each): each for each in recorded(case) if each["kind"] in KINDS}
    made = ours(case)
    found = {f"{kind} missing" for kind, _ in theirs.keys() - made.keys()}
    found |= {f"{kind} added" for kind, _ in made.keys() - theirs.keys()}
    for key in theirs.keys() & made.keys():
        left, right = facts(theirs[key]), facts(made[key])
        names = (name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
        found |= {f"{key[0]} {name}" for name in names}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_each_difference_has_a_row(case: Path) -> None:
    allowed = {what for name, what in ROWS if name in ("*", case.name)}
    expected = {what for name, what in ROWS if name == case.name}
    assert expected <= differences(case) <= allowed


def test_each_row_is_in_the_page() -> None:
    page = (ROOT / "docs/deviations.md").read_text(encoding="utf-8")
    assert all(f"| {row} |" in page for row in ROWS.values())
