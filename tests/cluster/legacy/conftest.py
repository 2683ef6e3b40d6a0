"""The kinds of the older generation, and an operator that serves them."""

import msgspec
import pytest

from cluster.conftest import ControlPlane
from dynamo_legacy.api import RESOURCES
from dynamo_operator.crds import custom_resource_definition


@pytest.fixture(scope="session")
def legacy_kinds(kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane, once these kinds are installed too."""
    file = tmp_path_factory.mktemp("kinds") / "definitions.json"
    items = [custom_resource_definition(each) for each in RESOURCES]
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    kinds.install_crds(files=[file])
    return kinds


@pytest.fixture(scope="module")
def operated(legacy_kinds: ControlPlane) -> ControlPlane:
    """What the operator of a module works on."""
    return legacy_kinds


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """It serves the older generation, and names an Ingress class."""
    return (
        "--enable-legacy-kinds",
        "--natsAddr=nats://nats:4222",
        "--etcdAddr=etcd:2379",
        "--ingress-controller-class-name=nginx",
        "--ingress-host-suffix=dev.example.com",
    )
