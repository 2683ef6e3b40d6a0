"""What an object of the older generation becomes runs the same pods, but for the rows of the guide."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynamo_graphs.offline import component_tree, graph_tree
from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimSpec
from dynamo_legacy.convert import (
    Conversion,
    ConversionContext,
    Level,
    converted_component,
    converted_deployment,
)
from dynamo_legacy.render import GraphConfig, components, nim_objects, parse_graph_config
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.crds import defaulted
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object

GUIDE = Path(__file__).parents[4] / "docs/upgrade-from-001.md"
SETTINGS = RenderSettings(
    nats_address="nats://nats:4222", etcd_address="http://etcd:2379", ingress_class_name="nginx"
)
AT = ConversionContext(SETTINGS)
IMAGE = DynamoNimSpec(tag="frontend:v1", image="reg.example.com/x:1", image_pull_secrets=({"name": "pull"},))
BENTO = """\
service: graphs.disagg:Frontend
entry_service: Frontend
services:
- name: Frontend
  dependencies: [{service: Worker}]
- name: Worker
  config:
    dynamo: {enabled: true, name: Worker, namespace: dynamo}
    resources: {cpu: "10", memory: 20Gi, gpu: "1"}
"""
EVERYTHING: dict[str, Any] = {
    "annotations": {
        "yatai.ai/deployment-strategy": "RampedSlowRollout",
        "yatai.ai/enable-host-ipc": "true",
        "nvidia.com/run-container-as-root": "true",
        "example.com/mine": "a",
    },
    "labels": {"team": "a"},
    "resources": {"limits": {"memory": "8Gi", "custom": {"example.com/nic": "2"}}},
    "envs": [
        {"name": "A", "value": "$(G)"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "DYNAMO_CONFIG_PATH", "value": "/config.yaml"},
    ],
    "envFromSecret": "token",
    "pvc": {"name": "models", "mountPoint": "/models"},
    "extraPodMetadata": {"annotations": {"example.com/x": "y"}, "labels": {"zone": "b"}},
    "extraPodSpec": {
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "side", "image": "side:1"}],
        "serviceAccountName": "own",
        "priorityClassName": "high",
    },
    "livenessProbe": {"httpGet": {"path": "/livez", "port": "http"}},
    "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
    "replicas": 3,
}
ROWS = {
    "metadata.labels",
    "metadata.annotations",
    "spec.securityContext",
    "spec.terminationGracePeriodSeconds",
    "containers[main].env: identity",
}
"""What may differ in the pod template of any service; the guide has a row for each."""
PROBES = {"containers[main].livenessProbe", "containers[main].readinessProbe"}
"""What a frontend without probes gets."""
_IDENTITY = ("YATAI_", "DYN_", "DYNAMO_PORT", "POD_", "CONTAINER_NAME")


def graph_of(**spec: Any) -> DynamoDeployment:
    body = {
        "metadata": {"name": "disagg", "namespace": "ml", "labels": {"yatai.ai/x": "1", "a": "b"}},
        "spec": {"dynamoNim": "frontend:v1", **spec},
    }
    return msgspec.convert(body, DynamoDeployment)


def nim_of(document: Object) -> DynamoNimDeployment:
    return msgspec.convert(document, DynamoNimDeployment)


def old_pods(old: DynamoDeployment, graph: GraphConfig) -> dict[str, Object]:
    return dict(old_pod(nim_of(component)) for component in components(old, graph))


def old_pod(nim: DynamoNimDeployment) -> tuple[str, Object]:
    [deployment] = nim_objects(nim, IMAGE, Facts(), SETTINGS, AT.legacy)[1]
    return nim.metadata.name, deployment["spec"]


def new_pods(result: Conversion) -> dict[str, Object]:
    """The Deployments of what an object became, by name."""
    [ours] = [manifest for manifest in result.objects if manifest["kind"].startswith("Dynamo")]
    body = defaulted(ours)
    if ours["kind"] == DynamoGraphDeployment.KIND.name:
        objects = graph_tree(msgspec.convert(body, DynamoGraphDeployment), Facts(), SETTINGS)
    else:
        component = msgspec.convert(body, DynamoComponentDeployment)
        objects = component_tree(component, Facts(), SETTINGS)
    deployments = [manifest for manifest in objects if manifest["kind"] == "Deployment"]
    return {deployment["metadata"]["name"]: deployment["spec"] for deployment in deployments}


def differences(old: Object, new: Object) -> set[str]:
    """The paths at which two Deployment specs differ, with containers, volumes and variables by name."""
    left, right = flat(old), flat(new)
    return {path for path in left.keys() | right.keys() if left.get(path) != right.get(path)}


def flat(spec: Object) -> dict[str, object]:
    template = spec["template"]
    fields: dict[str, object] = {
        "replicas": spec.get("replicas"),
        "strategy": spec.get("strategy"),
        "metadata.labels": template["metadata"].get("labels"),
        "metadata.annotations": template["metadata"].get("annotations"),
    }
    for name, value in template["spec"].items():
        if name not in ("containers", "volumes"):
            fields[f"spec.{name}"] = value
    for volume in template["spec"].get("volumes", ()):
        fields[f"volumes[{volume['name']}]"] = volume
    for container in template["spec"]["containers"]:
        at = f"containers[{container['name']}]"
        for name, value in container.items():
            fields[f"{at}.{name}"] = value
        fields.pop(f"{at}.env", None)
        for variable in container.get("env", ()):
            is_identity = variable["name"].startswith(_IDENTITY)
            is_identity = is_identity and variable["name"] != "DYN_DEPLOYMENT_CONFIG"
            path = f"{at}.env: identity" if is_identity else f"{at}.env[{variable['name']}]"
            fields[path] = variable
    return fields


@pytest.mark.parametrize("service", ["Frontend", "Worker"])
def test_a_converted_graph_runs_the_same_pods(service: str) -> None:
    old_graph = graph_of(envs=[{"name": "G", "value": "1"}], services={service: EVERYTHING})
    graph = parse_graph_config(BENTO)
    old, new = (old_pods(old_graph, graph), new_pods(converted_deployment(old_graph, graph, IMAGE, AT)))
    assert old.keys() == new.keys() == {"disagg-frontend", "disagg-worker"}
    for name in old:
        is_probed = name == "disagg-frontend" and service != "Frontend"
        assert differences(old[name], new[name]) == (ROWS | PROBES if is_probed else ROWS)


def test_a_converted_component_runs_the_same_pod() -> None:
    spec = {
        "dynamoNim": "frontend--v1",
        "dynamoTag": "graphs.disagg:Frontend",
        "serviceName": "Worker",
        "dynamoNamespace": "dynamo",
        **EVERYTHING,
    }
    nim = nim_of({"metadata": {"name": "alone", "namespace": "ml"}, "spec": spec})
    result = converted_component(nim, spec, IMAGE, AT)
    name, old = old_pod(nim)
    assert differences(old, new_pods(result)[name]) == ROWS


def test_the_guide_has_a_row_for_each_difference() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    missing = {row for row in ROWS | PROBES if f"`{row.replace(': identity', '')}`" not in text}
    assert missing == set()


def test_old_labels_go_and_the_tag_is_recorded() -> None:
    [graph] = converted_deployment(graph_of(), parse_graph_config(BENTO), IMAGE, AT).objects
    assert graph["metadata"] == {
        "name": "disagg",
        "namespace": "ml",
        "labels": {"a": "b"},
        "annotations": {
            "nvidia.com/dynamo-discovery-backend": "etcd",
            "nvidia.com/legacy-nim-tag": "frontend:v1",
        },
    }


def test_autoscaling_becomes_an_autoscaler_of_the_adapter() -> None:
    services = {"Worker": {"autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 5}}}
    at = ConversionContext(SETTINGS, suffix="-new")
    result = converted_deployment(graph_of(services=services), parse_graph_config(BENTO), IMAGE, at)
    graph, autoscaler = result.objects
    worker = graph["spec"]["services"]["Worker"]
    assert worker["scalingAdapter"] == {"enabled": True}
    assert worker["replicas"] == 2
    assert autoscaler["metadata"] == {"name": "disagg-new-worker", "namespace": "ml"}
    assert autoscaler["spec"]["scaleTargetRef"] == {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "name": "disagg-new-worker",
    }
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (2, 5)


@pytest.mark.parametrize(
    ("storage_class", "entry", "kinds"),
    [
        (
            "fast",
            {"create": True, "size": "1Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteMany"},
            [],
        ),
        ("", {}, ["PersistentVolumeClaim"]),
    ],
)  # fmt: skip
def test_a_pvc_is_the_graphs_or_its_own(storage_class: str, entry: Object, kinds: list[str]) -> None:
    pvc = {"create": True, "name": "models", "size": "1Gi", "volumeAccessMode": "ReadWriteMany"}
    both = {**pvc, "mountPoint": "/m", "storageClass": storage_class}
    services = {"Worker": {"pvc": both}, "Frontend": {"pvc": both}}
    result = converted_deployment(graph_of(services=services), parse_graph_config(BENTO), IMAGE, AT)
    *claims, graph = result.objects
    assert [claim["kind"] for claim in claims] == kinds
    assert graph["spec"]["pvcs"] == [{"name": "models", **entry}]
    mounts = [{"name": "models", "mountPoint": "/m"}]
    assert all(spec["volumeMounts"] == mounts for spec in graph["spec"]["services"].values())


def test_every_loss_is_reported() -> None:
    services = {
        "Frontend": {"monitorExporter": {"enabled": True}, "runMode": {"standalone": True}},
        "Worker": {
            "annotations": {"yatai.ai/enable-debug-mode": "true"},
            "resources": {"requests": {"gpu": "1"}},
        },
        "Nobody": {},
    }
    result = converted_deployment(graph_of(services=services), parse_graph_config(BENTO), IMAGE, AT)
    reported = {(remark.level, remark.path) for remark in result.remarks}
    assert reported >= {
        (Level.DROPPED, "spec.services.Nobody"),
        (Level.DROPPED, "spec.services.Frontend.monitorExporter"),
        (Level.NOTE, "spec.services.Frontend.runMode"),
        (Level.GUESSED, "spec.services.Frontend.livenessProbe"),
        (Level.DROPPED, "spec.services.Worker.annotations[yatai.ai/enable-debug-mode]"),
        (Level.NOTE, "spec.services.Worker.resources.requests.gpu"),
    }


def test_a_frontend_with_its_port_in_the_variable_listens_where_requests_arrive() -> None:
    config = {"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"Frontend":{"port":3000}}'}
    old_graph = graph_of(envs=[config])
    result = converted_deployment(old_graph, parse_graph_config(BENTO), IMAGE, AT)
    [main] = new_pods(result)["disagg-frontend"]["template"]["spec"]["containers"]
    assert [port["containerPort"] for port in main["ports"] if port["name"] == "http"] == [8000]
    [text] = [entry["value"] for entry in main["env"] if entry["name"] == config["name"]]
    assert msgspec.json.decode(text)["Frontend"]["port"] == 8000


def test_an_override_of_a_wrong_type_is_named() -> None:
    old_graph = graph_of(services={"Worker": {"replicas": "two"}})
    with pytest.raises(ValueError, match=r"spec\.services\.Worker: .*replicas"):
        converted_deployment(old_graph, parse_graph_config(BENTO), IMAGE, AT)
