"""The operator needs what its list of permissions says, and nothing else."""

import json
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.installed import installed
from cluster.multinode.graphs import graph as several_nodes
from cluster.operator_process import OFF, OperatorProcess
from cluster.permissions.conftest import Install
from cluster.permissions.roles import ACCOUNT, NAMES, Installation
from cluster.permitted import beyond, refused
from cluster.world import EVENTS, GRAPH, QUOTAS, World
from devcluster.components import KubectlError
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.render import discovery_objects, role_binding
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodGroup, SshKeys
from dynamoctl.installation.permissions import GRANTED, RULES, Feature, Name
from kube_runtime.types.kinds import Deployment, RoleBinding
from kube_runtime.types.meta import Object

CLUSTER_WIDE = {Feature.CLUSTER_WIDE, Feature.SSH_KEYS}
RESTRICTED = {Feature.RESTRICTED, Feature.SSH_KEYS}

pytestmark = pytest.mark.cluster


def flags(own: str, *more: str) -> tuple[str, ...]:
    keys = NAMES[Name.SSH_SECRET]
    secret = (f"--mpi-run-ssh-secret-name={keys}", f"--mpi-run-ssh-secret-namespace={own}")
    return (*OFF, "--leader-elect", *secret, "--mpi-run-ssh-keygen", *more)


CLUSTER_WIDE_FLAGS = (
    "--leader-election-namespace=kube-system",
    f"--planner-cluster-role-name={NAMES[Name.PLANNER_ROLE]}",
    f"--epp-cluster-role-name={NAMES[Name.EPP_ROLE]}",
    "--disruption-budget-max-unavailable=1",
)


def live_through(world: World) -> None:
    """A graph is made, becomes ready, is edited, scaled through its adapter, and deleted."""
    scaled = worker("decode", scalingAdapter={"enabled": True}, replicas=2)
    world.create(GRAPH, graph("chat", Frontend=service("frontend"), Decode=scaled))
    world.eventually(GRAPH, "chat", is_ready)
    edit = {"spec": {"services": {"Frontend": {"annotations": {"example.com/edited": "yes"}}}}}
    world.patch(GRAPH, "chat", edit)
    world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": {"replicas": 2}}}})
    world.eventually(GRAPH, "chat", is_ready)
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")
    world.until(lambda: not world.list(Deployment.KIND))


def test_a_graph_lives_and_dies_under_exactly_the_operators_role(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    kubeconfig = install(Installation(world.namespace, CLUSTER_WIDE))
    with OperatorProcess(
        kubeconfig, tmp_path / "log", flags(world.namespace, *CLUSTER_WIDE_FLAGS)
    ) as operator:
        operator.ready()
        live_through(world)
    user = f"system:serviceaccount:{world.namespace}:{ACCOUNT}"
    assert set() == refused(kinds.audit_log, user)
    assert set() == beyond(kinds.audit_log, RULES, user)


def test_a_refused_role_is_the_cause_that_the_graph_names(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    """A RoleBinding of such an operator needs its Role: the API server answers 404 without it."""
    kubeconfig = install(Installation(world.namespace, CLUSTER_WIDE))
    hard = {"count/roles.rbac.authorization.k8s.io": "0"}
    world.create(QUOTAS, {"metadata": {"name": "no-roles"}, "spec": {"hard": hard}})
    world.eventually(QUOTAS, "no-roles", lambda body: "hard" in body.get("status", {}))
    with OperatorProcess(
        kubeconfig, tmp_path / "log", flags(world.namespace, *CLUSTER_WIDE_FLAGS)
    ) as operator:
        operator.ready()
        world.create(GRAPH, graph(Frontend=service("frontend")))
        refused = world.eventually(
            GRAPH, "chat", lambda body: "exceeded quota" in condition(body).get("message", "")
        )
        ready = condition(refused)
        assert "rejected_by_api_server" == ready["reason"]
        assert ready["message"].startswith("Role chat-k8s-service-discovery-role: "), ready
        world.eventually(Deployment.KIND, "chat-frontend")
        world.until(lambda: any("exceeded quota" in each["message"] for each in world.list(EVENTS)))
        world.delete(GRAPH, "chat")
        world.gone(GRAPH, "chat")
        world.gone(DynamoComponentDeployment.KIND, "chat-frontend")


def test_graphs_that_need_ssh_keys_have_those_of_their_namespace_made(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    features = {*CLUSTER_WIDE, Feature.LEADER_WORKER_SET}
    kubeconfig = install(Installation(world.namespace, features))
    elsewhere = World(world.server, world.tls, "default")
    another = World(world.server, world.tls, "kube-public")
    name = NAMES[Name.SSH_SECRET]
    with (
        installed(kinds, ("lws", "podgroup"), (LeaderWorkerSet.KIND, PodGroup.KIND)),
        OperatorProcess(
            kubeconfig, tmp_path / "log", flags(world.namespace, *CLUSTER_WIDE_FLAGS)
        ) as operator,
    ):
        operator.ready()
        keys = []
        for each in (elsewhere, another):
            each.create(GRAPH, several_nodes("trtllm"))
            keys.append(each.eventually(SshKeys.KIND, name)["data"]["private.key"])
            each.eventually(LeaderWorkerSet.KIND, "g-w-0")
            each.delete(GRAPH, "g")
            each.gone(GRAPH, "g")
            each.gone(SshKeys.KIND, name)
        assert world.get(SshKeys.KIND, name) is None
    assert keys[0] != keys[1]
    assert set() == refused(kinds.audit_log, f"system:serviceaccount:{world.namespace}:{ACCOUNT}")


def test_a_restricted_operator_needs_no_right_outside_its_namespace(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    place = world.namespace
    kubeconfig = install(Installation(place, RESTRICTED, graphs=place, reads_cluster=False))
    more = (f"--restrictedNamespace={place}", f"--leader-election-namespace={place}")
    with OperatorProcess(kubeconfig, tmp_path / "log", flags(place, *more)) as operator:
        operator.ready()
        live_through(world)
    user = f"system:serviceaccount:{place}:{ACCOUNT}"
    assert {"customresourcedefinitions"} == {each.resource for each in refused(kinds.audit_log, user)}


def apply_as(plane: ControlPlane, kubeconfig: Path, body: Object) -> str:
    """The output of kubectl for an object that is applied with that file's permissions."""
    arguments = (f"--kubeconfig={kubeconfig}", "apply", "--server-side", "--filename=-")
    return plane.kubectl(*arguments, input=json.dumps(body))


def test_each_role_that_the_operator_grants_can_be_granted_by_it(
    kinds: ControlPlane, namespace: str, install: Install
) -> None:
    kubeconfig = install(Installation(namespace, CLUSTER_WIDE))
    wanted = [*discovery_objects(namespace, "chat")]
    for granted in GRANTED:
        role = f"dynamo-operator-{granted.name}"
        name = f"{granted.account}-binding"
        wanted.append(role_binding(namespace, name, granted.account, "ClusterRole", role))
    for each in wanted:
        apply_as(kinds, kubeconfig, each)
    found = kinds.kubectl("get", str(RoleBinding.KIND), f"--namespace={namespace}", "--output=name")
    assert 1 + len(GRANTED) == len([each for each in found.split() if each.endswith("-binding")])


def test_the_operator_cannot_grant_another_role(
    kinds: ControlPlane, namespace: str, install: Install
) -> None:
    kubeconfig = install(Installation(namespace, CLUSTER_WIDE))
    own = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "climb", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }
    bindings = (
        role_binding(namespace, "climb", "planner-serviceaccount", "ClusterRole", role)
        for role in ("cluster-admin", "edit")
    )
    for body in (own, *bindings):
        with pytest.raises(KubectlError, match="attempting to grant RBAC permissions"):
            apply_as(kinds, kubeconfig, body)


def test_the_operator_writes_no_secret_but_those_of_its_own_names(
    kinds: ControlPlane, namespace: str, install: Install
) -> None:
    kubeconfig = install(Installation(namespace, CLUSTER_WIDE))

    def write(name: str) -> str:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
        return apply_as(kinds, kubeconfig, secret)

    assert "serverside-applied" in write(NAMES[Name.SSH_SECRET])
    with pytest.raises(KubectlError, match="forbidden"):
        write("another")
