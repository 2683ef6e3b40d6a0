"""The charts on a real API server: what is installed works, stays quiet when upgraded, and can go."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from cluster.charts.conftest import DEFINITIONS, PLATFORM
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OFF, OperatorProcess
from cluster.permitted import refused
from cluster.world import PODS, Refused, World
from dynamo_operator.api.crd import RESOURCES
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.controlplane.helm import Helm
from dynamo_operator.controlplane.ports import free_ports
from dynamo_operator.installation.manifests import Choices, manifests
from dynamo_operator.installation.permissions import MARKER_LEASE
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.admission import ValidatingWebhookConfiguration
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.coordination import Lease
from dynamo_operator.version import version

GRAPH = DynamoGraphDeployment.KIND
CONFIGURATION = ValidatingWebhookConfiguration.KIND
RELEASE = "dynamo-platform"
DEPLOYMENT = f"{RELEASE}-dynamo-operator-controller-manager"
# The operator of these tests runs beside the cluster, where the API server cannot reach it by a Service.
BESIDE = "--set=dynamo-operator.webhook.enabled=false"
DEFINED = ("CustomResourceDefinition",)
RESTRICTED = "--set=dynamo-operator.namespaceRestriction.enabled=true"

pytestmark = pytest.mark.cluster


def is_ready(body: Object) -> bool:
    status: Object = body.get("status", {})
    is_current = status.get("observedGeneration", 0) >= body["metadata"]["generation"]
    return bool(is_current) and status.get("state") == "successful"


@contextmanager
def installed(helm: Helm, world: World, *values: str) -> Iterator[None]:
    """The platform as a release in the world's namespace; without webhooks unless values are given."""
    place = f"--namespace={world.namespace}"
    helm("install", RELEASE, PLATFORM, place, *(values or (BESIDE,)))
    try:
        yield
    finally:
        helm("uninstall", RELEASE, place)


@contextmanager
def running(
    control_plane: ControlPlane, world: World, log: Path, *more: str
) -> Iterator[OperatorProcess]:
    """The operator as the Deployment says: its flags, its account. But it listens nowhere."""
    found = world.eventually(Deployment.KIND, DEPLOYMENT)
    pod = found["spec"]["template"]["spec"]
    account = pod["serviceAccountName"]
    kubeconfig = control_plane.instance.service_account_kubeconfig(world.namespace, account)
    flags = (*pod["containers"][0]["args"], *OFF, *more)
    with OperatorProcess(kubeconfig, log, flags) as operator:
        operator.ready()
        yield operator


def pods_of_graph(world: World) -> dict[str, str]:
    marked = "nvidia.com/dynamo-component"
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in world.list(PODS)
        if marked in each["metadata"].get("labels", {})
    }


def test_an_installed_operator_runs_graphs_with_its_chart_s_flags_and_rights(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    with installed(online, world):
        before = refused(kinds.audit_log)
        with running(kinds, world, tmp_path / "log"):
            world.create(GRAPH, graph())
            world.eventually(GRAPH, "chat", is_ready)
            lease = kinds.kubectl("get", "lease", "dynamo.nvidia.com", "--namespace=kube-system")
            assert "dynamo.nvidia.com" in lease
            world.delete(GRAPH, "chat")
            world.gone(GRAPH, "chat")
        assert set() == refused(kinds.audit_log) - before


def call_beside(control_plane: ControlPlane, port: int) -> None:
    """Have the API server call the webhooks on this machine, as it cannot reach the chart's Service."""
    name = f"{RELEASE}-dynamo-operator-validating"
    found = json.loads(control_plane.kubectl("get", str(CONFIGURATION), name, "--output=json"))
    patch = [
        {
            "op": "replace",
            "path": f"/webhooks/{index}/clientConfig",
            "value": {"url": f"https://127.0.0.1:{port}{each['clientConfig']['service']['path']}"},
        }
        for index, each in enumerate(found["webhooks"])
    ]
    control_plane.kubectl(
        "patch", str(CONFIGURATION), name, "--type=json", f"--patch={json.dumps(patch)}"
    )


def test_webhooks_refuse_and_admit_with_the_chart_s_flags_and_rights(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    log = tmp_path / "log"
    with installed(online, world, "--set=dynamo-operator.webhook.enabled=true"):
        call_beside(kinds, port)
        before = refused(kinds.audit_log)
        with running(kinds, world, log, f"--webhook-bind-address=127.0.0.1:{port}"):
            world.until(lambda: '"webhooks are ready"' in log.read_text(), what=log.read_text)
            world.create(GRAPH, graph())
            world.eventually(GRAPH, "chat", is_ready)
            wrong = graph("wrong", Frontend=service("frontend", ingress={"enabled": True}))
            with pytest.raises(Refused, match=r"403: admission webhook .*ingress\.host"):
                world.create(GRAPH, wrong)
            world.delete(GRAPH, "chat")
            world.gone(GRAPH, "chat")
        assert set() == refused(kinds.audit_log) - before


def bundles(control_plane: ControlPlane) -> set[str]:
    """The authorities that the API server trusts for our webhooks; "" where there is none."""
    name = f"{RELEASE}-dynamo-operator-validating"
    found = json.loads(control_plane.kubectl("get", str(CONFIGURATION), name, "--output=json"))
    return {each["clientConfig"].get("caBundle", "") for each in found["webhooks"]}


def test_an_upgrade_leaves_the_authorities_that_the_operator_wrote(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    webhooks = "--set=dynamo-operator.webhook.enabled=true"
    with installed(online, world, webhooks):
        with running(kinds, world, tmp_path / "log", f"--webhook-bind-address=127.0.0.1:{port}"):
            world.until(lambda: "" not in bundles(kinds))
        before = bundles(kinds)
        timeout = "--set=dynamo-operator.webhook.timeoutSeconds=7"
        online("upgrade", RELEASE, PLATFORM, f"--namespace={world.namespace}", webhooks, timeout)
        assert before == bundles(kinds)


def test_an_upgrade_changes_no_pod_of_a_graph(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    with installed(online, world):
        with running(kinds, world, tmp_path / "before"):
            world.create(GRAPH, graph())
            world.eventually(GRAPH, "chat", is_ready)
        old = pods_of_graph(world)
        change = "--set=dynamo-operator.controllerManager.manager.image.tag=9.9.9"
        place = f"--namespace={world.namespace}"
        online("upgrade", "dynamo-crds", DEFINITIONS, "--namespace=default")
        online("upgrade", RELEASE, PLATFORM, place, BESIDE, change)
        with running(kinds, world, tmp_path / "after"):
            touched = {"metadata": {"annotations": {"example.com/looked": "yes"}}}
            world.patch(GRAPH, "chat", touched)
            world.create(GRAPH, graph("second"))
            world.eventually(GRAPH, "second", is_ready)
            new = pods_of_graph(world)
        assert old
        assert old.items() <= new.items()


def test_a_restricted_operator_serves_its_namespace_and_no_other(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    elsewhere = World(world.server, world.tls, "default")
    with installed(online, world, BESIDE, RESTRICTED), running(kinds, world, tmp_path / "log"):
        elsewhere.create(GRAPH, graph("foreign"))
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        marker = world.eventually(Lease.KIND, MARKER_LEASE)
        foreign = elsewhere.get(GRAPH, "foreign")
        elsewhere.delete(GRAPH, "foreign")
        world.delete(GRAPH, "chat")
        world.gone(GRAPH, "chat")
    assert foreign is not None
    assert "status" not in foreign
    assert f"namespace-restricted-operator-{version()}" == marker["spec"]["holderIdentity"]
    assert world.get(Lease.KIND, MARKER_LEASE) is None


def test_removing_the_platform_leaves_graphs_and_their_pods(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    with installed(online, world), running(kinds, world, tmp_path / "log"):
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
    assert pods_of_graph(world)
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")


def test_removing_the_definitions_chart_leaves_the_definitions(
    kinds: ControlPlane, online: Helm
) -> None:
    online("uninstall", "dynamo-crds", "--namespace=default")
    try:
        found = kinds.kubectl("get", "crd", "--output=name")
    finally:
        take = "--take-ownership"
        online("install", "dynamo-crds", DEFINITIONS, "--namespace=default", take)
    assert all(str(each.KIND) in found for each in RESOURCES)


@pytest.mark.parametrize("is_restricted", [False, True])
def test_the_api_server_accepts_what_dynamoctl_prints(
    kinds: ControlPlane, namespace: str, is_restricted: bool
) -> None:
    choices = Choices(namespace, "registry.example.com/op:1", is_restricted)
    printed = yaml.safe_dump_all(
        each for each in manifests(choices) if each["kind"] not in ("Namespace", *DEFINED)
    )
    kinds.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"),
        input=printed,
    )
