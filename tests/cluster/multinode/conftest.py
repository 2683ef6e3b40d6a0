"""A control plane of its own with the real LeaderWorkerSet controller, and an operator on it."""

import os
import ssl
import uuid
from collections.abc import Iterator

import msgspec
import pytest

from cluster.conftest import ControlPlane
from cluster.multinode.graphs import KEYS, KEYS_NAMESPACE, secret
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from dynamo_operator.api.crd import custom_resource_definitions
from dynamo_operator.controlplane.instance import Instance
from dynamo_operator.kube.types.core import SshKeys

FLAGS = (
    *OFF,
    f"--mpi-run-ssh-secret-name={KEYS}",
    f"--mpi-run-ssh-secret-namespace={KEYS_NAMESPACE}",
)


@pytest.fixture(scope="package")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane on which groups form. Volcano's kind is there, and the scheduler stands in."""
    folder = tmp_path_factory.mktemp("groups")
    instance = Instance(f"groups-{os.getpid()}", folder)
    ours = folder / "definitions.json"
    body = {"apiVersion": "v1", "kind": "List", "items": custom_resource_definitions()}
    ours.write_bytes(msgspec.json.encode(body))
    try:
        instance.up(crds=("lws", "podgroup"), crd_files=(ours,))
        instance.run_leader_worker_sets()
        instance.kubectl("create", "namespace", KEYS_NAMESPACE)
        yield ControlPlane(instance)
    finally:
        instance.down()


@pytest.fixture(scope="package")
def group_operator(
    groups: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of groups."""
    log = tmp_path_factory.mktemp("group-operator") / "operator.log"
    with OperatorProcess(groups.kubeconfig, log, FLAGS) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(group_operator: OperatorProcess) -> OperatorProcess:
    """The operator, which must still run."""
    assert group_operator.ended is None, group_operator.log.read_text()
    return group_operator


def world_of(groups: ControlPlane, namespace: str) -> World:
    """A namespace of that control plane, as the administrator sees it."""
    tls = ssl.create_default_context(cafile=groups.ca)
    tls.load_cert_chain(groups.cert, groups.key)
    return World(groups.server, tls, namespace)


@pytest.fixture
def place(groups: ControlPlane) -> Iterator[World]:
    """A namespace of the test's own where groups form."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    groups.kubectl("create", "namespace", name)
    yield world_of(groups, name)
    groups.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def source(groups: ControlPlane) -> World:
    """The namespace with the operator's own SSH keys, which are there."""
    found = world_of(groups, KEYS_NAMESPACE)
    found.apply(SshKeys.KIND, secret("old"))
    return found
