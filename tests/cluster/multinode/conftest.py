"""A control plane of its own with the real LeaderWorkerSet controller, and an operator on it."""

import os
import uuid
from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane, definitions
from cluster.multinode.graphs import KEYS, KEYS_NAMESPACE, secret
from cluster.multinode.leaderworkerset import running
from cluster.world import World
from devcluster.instance import Instance
from dynamo_operator.shared.cluster import SshKeys


@pytest.fixture(scope="package")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane on which groups form. Volcano's kind is installed, its scheduler is simulated."""
    folder = tmp_path_factory.mktemp("groups")
    instance = Instance(f"groups-{os.getpid()}", folder)
    try:
        instance.up(crds=("lws", "podgroup"), crd_files=(definitions(folder),))
        with running(instance, tmp_path_factory.mktemp("controller")):
            instance.kubectl("create", "namespace", KEYS_NAMESPACE)
            yield ControlPlane(instance)
    finally:
        instance.down()


@pytest.fixture(scope="module")
def operated(groups: ControlPlane) -> ControlPlane:
    return groups


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    return (f"--mpi-run-ssh-secret-name={KEYS}", f"--mpi-run-ssh-secret-namespace={KEYS_NAMESPACE}")


@pytest.fixture
def place(groups: ControlPlane) -> Iterator[World]:
    """A namespace of the test's own where groups form."""
    with groups.new_namespace(f"test-{uuid.uuid4().hex[:10]}") as world:
        yield world


@pytest.fixture
def source(groups: ControlPlane) -> World:
    """The namespace with the operator's own SSH keys, which are there."""
    found = groups.world(KEYS_NAMESPACE)
    found.apply(SshKeys.KIND, secret("old"))
    return found
