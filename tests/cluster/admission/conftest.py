"""An operator with webhooks beside a real API server, registered there with its own ServiceAccount."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.admission.asking import Asker
from cluster.conftest import ControlPlane
from cluster.operator_process import OperatorProcess
from cluster.world import NAMESPACES, World
from devcluster.layout import free_ports
from dynamo_operator.shared.cluster import ServingSecret
from kube_runtime.types.kinds import ValidatingWebhookConfiguration
from kube_runtime.wire import path_of
from reviews.asking import OPERATOR
from reviews.registration import NAME, registration

NAMESPACE = "dyn"
CONFIGURATIONS = ValidatingWebhookConfiguration.KIND
SECRET_NAME = "webhook-server-cert"
SECRET = path_of(ServingSecret.KIND, NAMESPACE, SECRET_NAME)


@dataclass(slots=True)
class Installation:
    """An operator with webhooks, and what it is registered as."""

    process: OperatorProcess
    port: int
    configuration: str
    asker: Asker

    def bundles(self) -> set[str]:
        found = self.asker.get(path_of(CONFIGURATIONS, "", self.configuration))
        return {each["clientConfig"].get("caBundle", "") for each in found.body["webhooks"]}

    def certificate(self) -> str:
        """The certificate that is served, as it is stored; "" while there is none."""
        data: dict[str, str] = self.asker.get(SECRET).body.get("data", {})
        return data.get("tls.crt", "")


Install = Callable[..., AbstractContextManager[Installation]]


@pytest.fixture(scope="session")
def asker(kinds: ControlPlane) -> Asker:
    return Asker(kinds.server, kinds.tls)


@pytest.fixture(scope="session")
def account(kinds: ControlPlane) -> Path:
    name = OPERATOR.rpartition(":")[2]
    kinds.world("").create(NAMESPACES, {"metadata": {"name": "lab"}})
    return kinds.administrator(NAMESPACE, name)


@pytest.fixture(scope="session")
def install(
    kinds: ControlPlane, account: Path, asker: Asker, tmp_path_factory: pytest.TempPathFactory
) -> Install:
    """Starts an operator with webhooks; they are trusted as soon as it is ready.

    `url_port` is where the API server calls, if that is not the operator itself.
    """

    @contextmanager
    def installed(*flags: str, url_port: int = 0, registers: bool = True) -> Iterator[Installation]:
        port, health = free_ports(2)
        folder = tmp_path_factory.mktemp("operator")
        if registers:
            body = registration(f"https://127.0.0.1:{url_port or port}")
            kinds.world("").apply(CONFIGURATIONS, body)
        process = OperatorProcess(
            account,
            folder / "operator.log",
            (
                "--metrics-bind-address=0",
                f"--health-probe-bind-address=127.0.0.1:{health}",
                "--enable-webhooks",
                f"--webhook-bind-address=127.0.0.1:{port}",
                f"--webhook-namespace={NAMESPACE}",
                "--epp-cluster-role-name=view",
                *flags,
            ),
        )
        with process:
            process.ready()
            process.says("webhooks are ready")
            yield Installation(process, port, NAME, asker)
        if registers:
            asker.delete(CONFIGURATIONS, "", NAME)
            asker.delete(ServingSecret.KIND, NAMESPACE, SECRET_NAME)

    return installed


@pytest.fixture(scope="module")
def webhooks(install: Install) -> Iterator[Installation]:
    with install() as found:
        yield found


@pytest.fixture
def lab(kinds: ControlPlane, asker: Asker) -> World:
    """The namespace of the rows, as the administrator sees it."""
    return World(kinds.server, asker.tls, "lab")
