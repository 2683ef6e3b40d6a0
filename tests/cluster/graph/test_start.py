"""The process of the operator: a start that cannot succeed, a restart, and the loss of its Lease."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from cluster.audit import Audit
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, SERVICE, World
from devcluster.instance import Instance
from devcluster.layout import free_ports
from dynamo_operator.crds import RESOURCES
from kube_runtime.types.kinds import Lease, Role, RoleBinding, ServiceAccount

pytestmark = pytest.mark.cluster


def started(kubeconfig: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The output of an operator that ends without a signal."""
    command = [sys.executable, "-m", "dynamo_operator", "run", "--kubeconfig", str(kubeconfig)]
    return subprocess.run(  # noqa: S603 - our own program
        [*command, *OFF, *flags], capture_output=True, text=True, check=False, timeout=300
    )


def errors(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines for people, without the log; a traceback would be more than one."""
    return [line for line in ended.stderr.splitlines() if not line.startswith("{")]


def changed(kubeconfig: Path, target: Path, **cluster: str) -> Path:
    body = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    body["clusters"][0]["cluster"] |= cluster
    target.write_text(yaml.safe_dump(body), encoding="utf-8")
    return target


def test_an_api_server_that_is_down_is_waited_for(kinds: ControlPlane, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config = changed(kinds.kubeconfig, tmp_path / "config", server=f"https://127.0.0.1:{port}")
    with OperatorProcess(config, tmp_path / "operator.log") as operator:
        operator.says("waiting for the API server")
        assert f"127.0.0.1:{port}" in operator.log.read_text(encoding="utf-8")
        assert 0 == operator.stop()


def test_a_certificate_that_nobody_signed(kinds: ControlPlane, tmp_path: Path) -> None:
    elsewhere = kinds.kubeconfig.with_name("elsewhere.crt")
    elsewhere.write_bytes((kinds.instance.pki / "etcd-ca.crt").read_bytes())
    body = yaml.safe_load(kinds.kubeconfig.read_text(encoding="utf-8"))
    body["clusters"][0]["cluster"].pop("certificate-authority-data")
    body["clusters"][0]["cluster"]["certificate-authority"] = str(elsewhere)
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump(body), encoding="utf-8")
    ended = started(config)
    assert 3 == ended.returncode
    (line,) = errors(ended)
    assert "certificate" in line


def test_kinds_that_are_not_installed(tmp_path_factory: pytest.TempPathFactory) -> None:
    instance = Instance("bare", tmp_path_factory.mktemp("bare"))
    try:
        instance.up(nodes=0)
        ended = started(instance.kubeconfig)
    finally:
        instance.down()
    assert 1 == ended.returncode
    (line,) = errors(ended)
    assert "dynamoctl install crds | kubectl apply --server-side -f -" in line


def test_a_permission_that_is_missing(world: World, kinds: ControlPlane) -> None:
    """Everything but Ingresses may be read; the line says what may not."""
    account = f"--namespace={world.namespace}"
    kinds.kubectl("create", "serviceaccount", "narrow", account)
    role, user = f"narrow-{world.namespace}", f"{world.namespace}:narrow"
    resources = "serviceaccounts,services,secrets,persistentvolumeclaims,configmaps"
    groups = "roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io"
    apps = "deployments.apps,customresourcedefinitions.apiextensions.k8s.io"
    ours = ",".join(str(each.KIND) for each in RESOURCES)
    kinds.kubectl(
        *("create", "clusterrole", role, "--verb=get,list,watch"),
        f"--resource={resources},{groups},{apps},{ours}",
    )
    kinds.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={user}")
    ended = started(kinds.instance.service_account_kubeconfig(world.namespace, "narrow"))
    assert 1 == ended.returncode
    (line,) = errors(ended)
    assert "ingresses" in line
    assert "forbidden" in line


KINDS = (GRAPH, COMPONENT, DEPLOYMENT, SERVICE, ServiceAccount.KIND, Role.KIND, RoleBinding.KIND)


@pytest.fixture
def lone_operator(kinds: ControlPlane, namespace: str, tmp_path: Path) -> OperatorProcess:
    """An operator for this test's namespace only, not started."""
    flags = (*OFF, f"--restrictedNamespace={namespace}")
    return OperatorProcess(kinds.kubeconfig, tmp_path / "operator.log", flags)


def versions(world: World) -> dict[str, str]:
    return {
        f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in KINDS
        for each in world.list(kind)
    }


def test_a_second_start_changes_nothing(
    world: World, lone_operator: OperatorProcess, kinds: ControlPlane
) -> None:
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        audit = Audit(kinds.audit_log)
        audit.falls_silent(world.namespace)
        assert 0 == lone_operator.stop()
        before = versions(world)
        since = audit.now()
        lone_operator.start()
        lone_operator.ready()
        time.sleep(2)
    assert before == versions(world)
    assert {} == audit.calls(namespace=world.namespace, since=since)


def test_a_graph_edited_while_no_operator_ran_is_updated(
    world: World, lone_operator: OperatorProcess
) -> None:
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        assert 0 == lone_operator.stop()
        world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 3}}}})
        world.delete(SERVICE, "chat-frontend")
        world.create(GRAPH, graph("other", Frontend=service("frontend")))
        lone_operator.start()
        ready = world.eventually(GRAPH, "chat", is_ready)
        world.eventually(GRAPH, "other", is_ready)
    assert 3 == ready["status"]["services"]["Decode"]["replicas"]
    assert world.get(SERVICE, "chat-frontend")


def candidate(kinds: ControlPlane, world: World, log: Path) -> OperatorProcess:
    """An operator that would lead in the test's namespace."""
    flags = (
        *OFF,
        "--leader-elect",
        f"--leader-election-namespace={world.namespace}",
        f"--restrictedNamespace={world.namespace}",
    )
    return OperatorProcess(kinds.kubeconfig, log, flags)


def test_a_leader_that_loses_its_lease_ends(world: World, kinds: ControlPlane, tmp_path: Path) -> None:
    with candidate(kinds, world, tmp_path / "log") as operator:
        operator.ready()
        world.eventually(Lease.KIND, "dynamo.nvidia.com", lambda it: bool(it["spec"].get("holderIdentity")))
        thief = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 60}}
        world.patch(Lease.KIND, "dynamo.nvidia.com", thief)
        assert 1 == operator.wait()
        assert "Traceback" not in operator.log.read_text(encoding="utf-8")
