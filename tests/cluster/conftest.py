"""One real control plane for the whole session, and a new namespace for each test.

Tests of a module share an operator by the fixture `operator`. A folder or a module overrides `operated` (its
control plane) and `operator_flags`.
"""

import os
import ssl
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
import pytest

from cluster.operator_process import OFF, OperatorProcess
from cluster.world import NAMESPACES, World
from devcluster.instance import Instance
from dynamo_operator.crds import LATER_RESOURCES, custom_resource_definition, custom_resource_definitions
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Kind, Resource

CLUSTER_ROLE_BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    instance: Instance

    @property
    def kubeconfig(self) -> Path:
        return self.instance.kubeconfig

    @property
    def server(self) -> str:
        return self.instance.server

    @property
    def ca(self) -> Path:
        return self.instance.pki / "ca.crt"

    @property
    def cert(self) -> Path:
        return self.instance.pki / "admin.crt"

    @property
    def key(self) -> Path:
        return self.instance.pki / "admin.key"

    @property
    def tls(self) -> ssl.SSLContext:
        return _tls(self.ca, self.cert, self.key)

    def world(self, namespace: str) -> World:
        """A namespace with the administrator's credentials; "" is all namespaces."""
        return World(self.server, self.tls, namespace)

    @contextmanager
    def new_namespace(self, name: str) -> Iterator[World]:
        """A namespace whose default ServiceAccount exists; cleared in the end."""
        world = self.world(name)
        world.create(NAMESPACES, {"metadata": {"name": name, "namespace": ""}})
        world.eventually(ServiceAccount.KIND, "default")
        yield world
        world.clear()

    @property
    def audit_log(self) -> Path:
        """Every request, one JSON object per line."""
        return self.instance.audit_log

    def kubectl(self, *args: str | Path, input: str | None = None) -> str:  # noqa: A002 - as in subprocess
        """Run kubectl as administrator and return what it prints. Raises KubectlError."""
        return self.instance.kubectl(*args, stdin=input)

    def administrator(self, namespace: str, account: str) -> Path:
        """Create a ServiceAccount with cluster-admin in a new namespace; return its kubeconfig file."""
        own = self.world(namespace)
        own.create(NAMESPACES, {"metadata": {"name": namespace, "namespace": ""}})
        own.create(ServiceAccount.KIND, {"metadata": {"name": account}})
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": "operator", "namespace": ""}, "subjects": [subject], "roleRef": role}
        own.create(CLUSTER_ROLE_BINDINGS, binding)
        return self.instance.service_account_kubeconfig(namespace, account)

    def install_crds(self, names: Sequence[str] = (), files: Sequence[Path] = ()) -> None:
        """Install CRDs of other projects by name, or any from files; they are established afterwards."""
        self.instance.install_crds(names, files)

    def kubectl_knows(self, *, is_later_served: bool) -> None:
        """Wait until kubectl, which caches the served versions for hours, has read them again."""

        def shown() -> str:
            return self.kubectl("api-resources", "--api-group=nvidia.com")

        count = len(LATER_RESOURCES) if is_later_served else 0
        self.world("default").until(lambda: count == shown().count("nvidia.com/v1beta1"), what=shown)


@cache
def _tls(ca: Path, cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(cert, key)
    return context


def definitions(folder: Path, *more: type[Resource]) -> Path:
    """A file in that folder with our CRDs, and with those of more kinds."""
    items = [*custom_resource_definitions(), *map(custom_resource_definition, more)]
    file = folder / "definitions.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


@pytest.fixture(scope="session")
def first_crds(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The CRDs from the start: the garbage collector knows their kinds without a restart."""
    return [definitions(tmp_path_factory.mktemp("kinds"))]


@pytest.fixture(scope="session")
def control_plane(
    first_crds: Sequence[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The session's control plane: a cluster with four GPU nodes, empty but for CRDs."""
    instance = Instance(f"test-{os.getpid()}", tmp_path_factory.mktemp("controlplane"))
    try:
        instance.up(crd_files=first_crds)
        yield ControlPlane(instance)
    finally:
        instance.down()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    with control_plane.new_namespace(f"test-{uuid.uuid4().hex[:10]}") as world:
        yield world.namespace


@pytest.fixture(scope="session")
def kinds(control_plane: ControlPlane) -> ControlPlane:
    """The control plane, with our kinds."""
    return control_plane


@pytest.fixture
def world(kinds: ControlPlane, namespace: str) -> World:
    """The test's namespace with the administrator's credentials."""
    return kinds.world(namespace)


@pytest.fixture
def kubectl(kinds: ControlPlane, namespace: str) -> Callable[..., str]:
    def run(*args: str, input: str | None = None) -> str:  # noqa: A002 - as in subprocess
        return kinds.kubectl(*args, f"--namespace={namespace}", input=input)

    return run


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> ControlPlane:
    """The control plane of a module's operator."""
    return kinds


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """Additional flags of a module's operator."""
    return ()


@pytest.fixture(scope="module")
def shared_operator(
    operated: ControlPlane, operator_flags: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module, which must not stop it."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(operated.kubeconfig, log, (*OFF, *operator_flags)) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(shared_operator: OperatorProcess) -> Iterator[OperatorProcess]:
    """The shared operator; it must run before and after the test, and log no traceback."""
    assert shared_operator.ended is None, shared_operator.log.read_text()
    yield shared_operator
    log = shared_operator.log.read_text()
    assert shared_operator.ended is None, log
    bugs = [line for line in log.splitlines() if "Traceback" in line]
    assert not bugs, bugs[0]
