"""A control plane with our kinds, an operator that watches it, and a world for each test."""

import ssl
from collections.abc import Iterator

import msgspec
import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from dynamo_operator.api.crd import custom_resource_definitions


@pytest.fixture(scope="session")
def kinds(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane, once our definitions are installed."""
    file = tmp_path_factory.mktemp("kinds") / "definitions.json"
    body = {"apiVersion": "v1", "kind": "List", "items": custom_resource_definitions()}
    file.write_bytes(msgspec.json.encode(body))
    control_plane.install_crds(files=[file])
    return control_plane


@pytest.fixture
def world(kinds: ControlPlane, namespace: str) -> World:
    """The test's own namespace, as the administrator sees it."""
    tls = ssl.create_default_context(cafile=kinds.ca)
    tls.load_cert_chain(kinds.cert, kinds.key)
    return World(kinds.server, tls, namespace)


@pytest.fixture(scope="session")
def shared_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests that do not stop it."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(
        kinds.kubeconfig, log, (*OFF, "--planner-cluster-role-name=view")
    ) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(shared_operator: OperatorProcess) -> OperatorProcess:
    """The shared operator, which must still run, and have logged nothing that is a bug."""
    assert shared_operator.ended is None, shared_operator.log.read_text()
    return shared_operator
