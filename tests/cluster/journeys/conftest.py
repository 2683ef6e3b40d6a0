"""The journeys of the acceptance tests, by a user with kubectl; and the one operator that serves them.

It is installed as in a cluster: under a ServiceAccount of its own, and with webhooks.

| journey | here | in full elsewhere |
|---|---|---|
| J-13 | `test_deploying.py` | |
| J-14, J-15 | | what is rendered: `golden`, `packages/dynamo-operator/tests/component` |
| J-16 storage | `test_operating.py` | `graph/test_controller.py` |
| J-17, J-18 | | what is rendered: `golden`, `packages/dynamo-operator/tests/component` |
| J-19 private registry | `test_deploying.py` | broken Secrets: `graph/test_hostile_objects.py` |
| J-20 pod overrides | | what is rendered: `packages/dynamo-operator/tests/component` |
| J-21 Ingress | `test_deploying.py` | VirtualService: `epp/test_picker.py` |
| J-22 forbidden edits | | every rule: `admission/test_rows_on_server.py` |
| J-23 GitOps | `test_operating.py` | `graph/test_manual_changes.py` |
| J-24 restart | `test_operating.py` | one service after the other: `test_restart.py` of the operator |
| J-25 to J-27 | `test_operating.py` | no free GPUs: `component/test_diagnosis.py` of the operator |
| J-28 debug copy | | golden case `debug` |
| J-31 | `test_operating.py` | GitOps: `scaling/test_scaling.py` |
| J-29, J-30, J-32, J-33 | | `scaling/test_scaling.py` |
| J-35, J-38 Grove | `test_several_nodes.py` | statuses and scale: `grove/test_grove_graph.py` |
| J-36 | | with the real controller: `multinode/test_groups.py` |
| J-37 | `test_several_nodes.py` | |
"""

import json
from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.journeys.user import User
from cluster.operator_process import OperatorProcess
from cluster.world import World
from devcluster.layout import free_ports
from reviews.registration import registration

INSTALLED_IN = "dynamo-system"
ACCOUNT = "dynamo-platform-dynamo-operator-controller-manager"
FLAGS = (
    "--metrics-bind-address=0",
    "--enable-webhooks",
    f"--webhook-namespace={INSTALLED_IN}",
    "--planner-cluster-role-name=view",
    "--epp-cluster-role-name=view",
    "--natsAddr=nats://nats.dynamo-system:4222",
    "--ingress-controller-class-name=nginx",
    "--ingress-controller-tls-secret-name=lab-tls",
    "--ingress-host-suffix=lab.example.com",
)


@pytest.fixture(scope="session")
def installed_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    folder = tmp_path_factory.mktemp("journeys")
    port, health = free_ports(2)
    account = kinds.administrator(INSTALLED_IN, ACCOUNT)
    body = registration(f"https://127.0.0.1:{port}")
    kinds.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(body))
    flags = (
        *FLAGS,
        f"--webhook-bind-address=127.0.0.1:{port}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
    )
    with OperatorProcess(account, folder / "operator.log", flags) as process:
        process.ready()
        process.says("webhooks are ready")
        yield process


@pytest.fixture
def user(installed_operator: OperatorProcess, kinds: ControlPlane, world: World) -> User:
    """A user with kubectl and a namespace; the operator must still run."""
    assert installed_operator.ended is None, installed_operator.log.read_text()
    return User(kinds, world)
