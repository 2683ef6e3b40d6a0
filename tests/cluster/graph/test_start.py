"""A start that cannot succeed ends with one clear line, and touches nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from devcluster.instance import Instance
from devcluster.layout import free_ports
from dynamo_operator.crds import RESOURCES

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
    assert "dynamoctl crds | kubectl apply --server-side -f -" in line


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
