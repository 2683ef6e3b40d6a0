"""Every example renders without a problem, uses nothing that would be refused, and is listed on its page."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa import LuaRuntime

from dynamo_graphs.offline import expanded
from dynamo_graphs.versions import Version, in_version, notes_of
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamoctl.authoring.manifest import read_manifests
from kube_runtime.types.meta import Object

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(
    each
    for folder in (FOLDER, FOLDER / "tasks", FOLDER / "v1alpha1")
    for each in folder.glob("*.yaml")
    if not each.stem.startswith("request-")
)
WITH_OTHERS = Facts(lws_served=True, inference_pools_served=True)
"""A cluster in which all that examples need is installed."""
CHART = RenderSettings(epp_cluster_role_name="epp", mpi_secret_name="mpi-run-ssh-secret")
"""What the chart sets for them."""
WORKLOADS = ("Deployment", "LeaderWorkerSet")
GRAPH = "DynamoGraphDeployment"
COMPONENT = "DynamoComponentDeployment"


def documents(path: Path) -> list[Object]:
    found = [each.value for each in read_manifests([str(path)])]
    return [{**each, "metadata": {**each["metadata"], "namespace": "default"}} for each in found]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_renders_and_what_is_beside_its_graph_refers_to_it(example: Path) -> None:
    (document,) = (each for each in documents(example) if each["kind"] == GRAPH)
    expansion = expanded(document, WITH_OTHERS, CHART)
    assert () == expansion.problems
    workloads = [each for each in expansion.objects if each["kind"] in WORKLOADS]
    assert len(in_version(document, "v1alpha1")["spec"]["services"]) == len(workloads)
    version = "v1alpha1" if example.parent.name == "v1alpha1" else "v1beta1"
    assert f"nvidia.com/{version}" == document["apiVersion"]
    assert not notes_of(document)
    made = {(each["kind"], each["metadata"]["name"]) for each in expansion.objects}
    for each in documents(example):
        match each["kind"]:
            case "HorizontalPodAutoscaler" | "ScaledObject":
                target = each["spec"]["scaleTargetRef"]
                assert (target["kind"], target["name"]) in made
                assert document["apiVersion"] == target["apiVersion"]
            case "Ingress":
                (rule,) = each["spec"]["rules"]
                (path,) = rule["http"]["paths"]
                assert ("Service", path["backend"]["service"]["name"]) in made
            case "PersistentVolumeClaim":
                assert f"claimName: {each['metadata']['name']}" in yaml.safe_dump([*expansion.objects])
            case "HTTPRoute":
                (rule,) = each["spec"]["rules"]
                assert {(to["kind"], to["name"]) for to in rule["backendRefs"]} <= made
            case "DynamoModel":
                names = [to["metadata"].get("annotations", {}) for to in expansion.objects]
                assert each["spec"]["baseModelName"] in {value for to in names for value in to.values()}
            case _:
                pass


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_creates_the_same_in_the_other_version_and_on_the_way_back(example: Path) -> None:
    (document,) = (each for each in documents(example) if each["kind"] == GRAPH)
    versions: tuple[Version, ...] = ("v1beta1", "v1alpha1", "v1beta1")
    written = [document]
    for version in versions:
        written.append(in_version(written[-1], version))
    created = [
        [body for body in expanded(each, WITH_OTHERS, CHART).objects if body["kind"] != COMPONENT]
        for each in written
    ]
    assert created[0]
    assert all(created[0] == objects for objects in created)


def applied(state: str, reason: str, status: str = "False", observed: int = 2) -> Object:
    ready = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "m",
        "observedGeneration": observed,
    }
    return {"metadata": {"generation": 2}, "status": {"state": state, "conditions": [ready]}}


@pytest.mark.parametrize(
    ("health", "obj"),
    [
        ("Progressing", {"metadata": {"generation": 1}}),
        ("Progressing", applied("successful", "all_resources_are_ready", "True", observed=1)),
        ("Progressing", applied("pending", "updating")),
        ("Healthy", applied("successful", "all_resources_are_ready", "True")),
        ("Suspended", applied("pending", "suspended")),
        ("Degraded", applied("failed", "ValidationFailed")),
    ],
)
def test_argo_cd_reads_the_health_of_a_graph(health: str, obj: Object) -> None:
    text = (FOLDER / "gitops/argocd-health.yaml").read_text(encoding="utf-8")
    (script,) = yaml.safe_load(text)["data"].values()
    runtime: Any = LuaRuntime  # its stub wants every option
    lua = runtime()
    lua.globals().obj = lua.table_from(obj, recursive=True)
    assert health == lua.execute(script)["status"]
