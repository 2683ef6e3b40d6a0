"""The kinds of the older generation, and an operator that serves them."""

import pytest

from cluster.conftest import ControlPlane, definitions
from dynamo_legacy.api import RESOURCES


@pytest.fixture(scope="session")
def legacy_kinds(kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane, once these kinds are installed too."""
    kinds.install_crds(files=[definitions(tmp_path_factory.mktemp("kinds"), *RESOURCES)])
    return kinds


@pytest.fixture(scope="module")
def operated(legacy_kinds: ControlPlane) -> ControlPlane:
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
