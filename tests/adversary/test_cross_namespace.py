"""Requests that lead into another namespace: what a tenant without permissions there can create."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from adversary.tenant import Tenant, accept_requests
from cluster.admission.conftest import Install, Installation
from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.operator_process import OperatorProcess
from cluster.requests.playing import (
    FLAGS,
    FRONTEND,
    JOB,
    REQUEST,
    Player,
    a_graph,
    a_request,
    digest,
    documents,
    tell,
    terminated,
)
from cluster.world import CONFIG_MAP, GRAPH, World
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

PROFILING = tuple(each for each in FLAGS if each != "--graphs-elsewhere")
CLOSED = "https://127.0.0.1:1"


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """Webhooks are not configured, and no namespace accepts graphs of others."""
    return PROFILING


@pytest.fixture
def player(world: World, operator: OperatorProcess) -> Player:
    """The kubelet of this namespace's profiling pods; the operator must still run."""
    assert operator.ended is None
    return Player(world)


@pytest.fixture
def foreign(kinds: ControlPlane) -> Iterator[World]:
    with kinds.new_namespace(f"foreign-{uuid.uuid4().hex[:8]}") as world:
        yield world


def leading(world: World, **spec: Any) -> Object:
    """A request that has its graph created in that namespace."""
    overrides = {"namespace": world.namespace}
    return {
        "apiVersion": REQUEST.api_version,
        "kind": REQUEST.name,
        **a_request(autoApply=True, deploymentOverrides=overrides, **spec),
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"namespaceSelector": {"matchLabels": {"never": "set"}}},
        {"failurePolicy": "Ignore", "clientConfig": {"url": CLOSED}},
    ],
    ids=["selector", "ignore"],
)
def test_a_request_that_no_webhook_saw_leads_nowhere(
    spec: Object, kinds: ControlPlane, world: World, foreign: World, install: Install
) -> None:
    with install(*PROFILING) as found:
        unseen(kinds, found, spec)
        tenant = Tenant(kinds, world.namespace, "mallory").create()
        tenant.may("create,get", "dynamographdeploymentrequests")
        tenant.run("create", "-f", "-", body=leading(foreign))
        body = Player(world).is_in("Failed")
    text = condition(body, "Validation")["message"]
    assert f"namespace {foreign.namespace} does not accept graphs from requests in" in text
    assert [] == foreign.list(GRAPH)


def unseen(plane: ControlPlane, found: Installation, spec: Object) -> None:
    """Change each registered webhook, so that a request passes unseen."""
    name = f"validatingwebhookconfiguration/{found.configuration}"
    body = json.loads(plane.kubectl("get", name, "-ojson"))
    for each in body["webhooks"]:
        each.update(spec)
        if "clientConfig" in spec:
            each["clientConfig"] = spec["clientConfig"]
    plane.kubectl("replace", "-f", "-", input=json.dumps(body))


def test_a_namespace_that_accepts_requests_gets_their_graphs_until_it_does_not(
    kinds: ControlPlane, world: World, foreign: World, player: Player
) -> None:
    accept_requests(kinds, world.namespace, foreign.namespace)
    world.create(REQUEST, leading(foreign))
    player.finds(a_graph())
    foreign.eventually(GRAPH, "chat")
    world.create(REQUEST, {**leading(foreign), "metadata": {"name": "late"}})
    player.is_in("Profiling", "late")
    kinds.kubectl(*("delete", "rolebinding", "graphs-from-requests", f"--namespace={foreign.namespace}"))
    player.finds(a_graph(), name="late")
    body = player.is_in("Failed", "late")
    assert "does not accept graphs" in body["status"]["message"]
    assert ["chat"] == [each["metadata"]["name"] for each in foreign.list(GRAPH)]


def test_annotations_of_a_request_create_nothing(kinds: ControlPlane, world: World, player: Player) -> None:
    world.create(REQUEST, a_request(autoApply=True))
    player.is_in("Profiling")
    world.create(GRAPH, a_graph("chat"))
    curves = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "curves"}}
    player.finds(a_graph(), {**curves, "data": {"a.json": "1"}})
    player.is_in("Failed")
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")
    mallory = Tenant(kinds, world.namespace, "mallory").create()
    mallory.may("get,patch", "dynamographdeploymentrequests")
    planted = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-mallory}\ndata: {a: b}\n"
    note = {"metadata": {"annotations": {"dgdr.nvidia.com/additional-resources": planted}}}
    mallory.run("patch", "dgdr", "chat", "--type=merge", f"--patch={json.dumps(note)}")
    created = world.eventually(CONFIG_MAP, "curves")
    assert {"a.json": "1"} == created["data"]
    player.is_in("Ready")
    assert world.get(CONFIG_MAP, "by-mallory") is None


def test_results_that_another_wrote_are_not_applied(
    kinds: ControlPlane, world: World, foreign: World, player: Player
) -> None:
    accept_requests(kinds, world.namespace, foreign.namespace)
    mallory = Tenant(kinds, world.namespace, "mallory").create()
    mallory.may("get,patch", "configmaps", group="")
    evil = {**FRONTEND, "extraPodSpec": {"serviceAccountName": "owner-of-foreign"}}
    found, planted = documents(a_graph()), documents(a_graph(Evil=evil))
    patch = f"--patch={json.dumps({'data': {'config_with_planner.yaml': planted}})}"
    for name, spec in (("far", leading(foreign)["spec"]), ("near", a_request()["spec"])):
        body = {"metadata": {"name": name}, "spec": {**spec, "autoApply": True}}
        world.create(REQUEST, body)
        player.is_in("Profiling", name)
        player.writes(name, config_with_planner_yaml=found)
        mallory.run("patch", "configmap", f"dgdr-output-{name}", "--type=merge", patch)
        player.succeeds(name, digest(found))
        failed = player.is_in("Failed", name)
        assert "differs from what the profiling Job wrote" in failed["status"]["message"]
    assert [] == [*foreign.list(GRAPH), *world.list(GRAPH)]


def test_results_that_no_pod_vouches_for_lead_nowhere_else(
    kinds: ControlPlane, world: World, foreign: World, player: Player
) -> None:
    accept_requests(kinds, world.namespace, foreign.namespace)
    world.create(REQUEST, leading(foreign))
    player.is_in("Profiling")
    player.writes(config_with_planner_yaml=documents(a_graph()))
    player.succeeds()
    failed = player.is_in("Failed")
    assert "no pod of the profiling Job that runs" in failed["status"]["message"]
    assert [] == foreign.list(GRAPH)


def test_a_pod_that_only_names_the_job_as_its_owner_confirms_nothing(
    kinds: ControlPlane, world: World, foreign: World, player: Player
) -> None:
    accept_requests(kinds, world.namespace, foreign.namespace)
    mallory = Tenant(kinds, world.namespace, "mallory").create()
    mallory.may("create", "pods", group="")
    world.create(REQUEST, leading(foreign))
    player.is_in("Profiling")
    real = player.pod()
    (owner,) = real["metadata"]["ownerReferences"]
    forged = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "forged", "labels": {"job-name": owner["name"]}, "ownerReferences": [owner]},
        "spec": {
            "serviceAccountName": real["spec"]["serviceAccountName"],
            "containers": [{"name": "output-copier", "image": "r/forged:1"}],
        },
    }
    mallory.run("create", "-f", "-", body=forged)
    planted = documents(a_graph())
    player.writes(config_with_planner_yaml=planted)
    tell(world, "forged", "Succeeded", {"output-copier": terminated(0, digest(planted))})
    player.succeeds()
    failed = player.is_in("Failed")
    assert "no pod of the profiling Job that runs" in failed["status"]["message"]
    assert [] == foreign.list(GRAPH)


def test_a_forged_status_creates_nothing_anywhere(
    kinds: ControlPlane, world: World, foreign: World, player: Player
) -> None:
    accept_requests(kinds, world.namespace, foreign.namespace)
    mallory = Tenant(kinds, world.namespace, "mallory").create()
    mallory.may("get", "dynamographdeploymentrequests")
    mallory.may("get,patch", "dynamographdeploymentrequests/status")
    evil = {**FRONTEND, "extraPodSpec": {"serviceAccountName": "owner"}}
    planted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planted"}}
    forged = {
        "state": "Deploying",
        "generatedDeployment": a_graph(Evil=evil),
        "additionalResources": [{**planted, "data": {"a": "b"}}],
        "deployment": None,
    }
    specs = {"far": leading(foreign)["spec"], "near": {**a_request()["spec"], "autoApply": True}}
    for name, spec in specs.items():
        world.create(REQUEST, {"metadata": {"name": name}, "spec": spec})
        player.is_in("Profiling", name)
        account = {"profilingConfig": {"profilerImage": "evil:1", "serviceAccountName": "owner"}}
        evil_spec = {**spec, **account}
        for status in (forged, {**forged, "acceptedSpec": evil_spec}, {"acceptedSpec": evil_spec}):
            patch = f"--patch={json.dumps({'status': status})}"
            mallory.run("patch", "dgdr", name, "--subresource=status", "--type=merge", patch)
        player.finds(a_graph(), name=name)
        target = foreign if name == "far" else world
        graph = target.eventually(GRAPH, name)
        assert "Evil" not in graph["spec"]["services"]
        player.is_in("Ready", name)
        target.delete(GRAPH, name)
        player.is_in("DeploymentDeleted", name)
        patch = f"--patch={json.dumps({'status': forged})}"
        mallory.run("patch", "dgdr", name, "--subresource=status", "--type=merge", patch)
        player.is_in("DeploymentDeleted", name)
        assert [] == target.list(GRAPH)
    for there in (world, foreign):
        assert there.get(CONFIG_MAP, "planted") is None


def test_results_that_nothing_confirms_are_not_applied(
    kinds: ControlPlane, world: World, player: Player
) -> None:
    """After the Job is gone, who may only write ConfigMaps could otherwise have any graph created."""
    created = world.create(REQUEST, a_request(autoApply=True))
    player.is_in("Profiling")
    mallory = Tenant(kinds, world.namespace, "mallory").create()
    mallory.may("create,get,patch", "configmaps", group="")
    owner = {"apiVersion": REQUEST.api_version, "kind": REQUEST.name, "name": "chat"}
    planted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "dgdr-output-chat",
            "ownerReferences": [{**owner, "uid": created["metadata"]["uid"]}],
        },
        "data": {"config_with_planner.yaml": documents(a_graph())},
    }
    mallory.run("create", "-f", "-", body=planted)
    world.delete(JOB, "profile-chat")
    failed = player.is_in("Failed")
    assert "no pod of the profiling Job reports the digests" in failed["status"]["message"]
    assert [] == world.list(GRAPH)
