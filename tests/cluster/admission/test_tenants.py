"""What a tenant with real tokens tries against others, and what comes of it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.admission.conftest import NAMESPACE, Installation
from cluster.conftest import ControlPlane
from cluster.world import World
from devcluster.components import KubectlError
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.meta import Object
from reviews.asking import OPERATOR
from reviews.rows import adapted, request, with_service

GRAPH = DynamoGraphDeployment.KIND
ACCOUNT = OPERATOR.rpartition(":")[2]
PLANNER = "planner-serviceaccount"
RBAC = "rbac.authorization.k8s.io"

Tenant = Callable[..., str]


class Refused(AssertionError):
    """The API server's answer to the tenant."""


@pytest.fixture(scope="module")
def foreign(kinds: ControlPlane, webhooks: Installation) -> str:
    assert webhooks.port
    kinds.kubectl("create", "namespace", "foreign")
    return "foreign"


@pytest.fixture
def as_tenant(kinds: ControlPlane, foreign: str) -> Iterator[Callable[..., str]]:
    """Runs kubectl as a ServiceAccount that has all permissions for our kinds in some namespaces."""
    bindings: list[tuple[str, str]] = []
    assert foreign

    def run(namespace: str, name: str, may_in: tuple[str, ...], *args: str, body: Object) -> str:
        make = ("create", "serviceaccount", name, f"--namespace={namespace}", "--dry-run=client")
        kinds.kubectl("apply", "-f", "-", input=kinds.kubectl(*make, "-o", "yaml"))
        for place in may_in:
            title = f"{namespace}-{name}"
            rules = [
                {"apiGroups": ["nvidia.com"], "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
            ]
            role = _rbac("Role", title, place, rules=rules)
            reference = {"apiGroup": RBAC, "kind": "Role", "name": title}
            subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
            bound = _rbac("RoleBinding", title, place, roleRef=reference, subjects=[subject])
            items = {"apiVersion": "v1", "kind": "List", "items": [role, bound]}
            kinds.kubectl("apply", "-f", "-", input=json.dumps(items))
            bindings.append((place, title))
        kubeconfig: Path = kinds.instance.service_account_kubeconfig(namespace, name)
        try:
            return kinds.kubectl(f"--kubeconfig={kubeconfig}", *args, input=json.dumps(body))
        except KubectlError as error:
            raise Refused(str(error)) from None

    yield run
    for place, title in bindings:
        kinds.kubectl(*("delete", "role,rolebinding", title, f"--namespace={place}", "--ignore-not-found"))


def _rbac(kind: str, name: str, namespace: str, **content: object) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, **content}


def replaced(body: Object) -> tuple[str, ...]:
    assert body
    return ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")


def test_a_planner_of_another_namespace_cannot_scale_what_an_adapter_owns(
    lab: World, as_tenant: Tenant, foreign: str
) -> None:
    lab.create(GRAPH, adapted(1))
    more = adapted(3)
    with pytest.raises(Refused, match="cannot be modified directly when scaling adapter is enabled"):
        as_tenant(foreign, PLANNER, ("lab",), *replaced(more), body=more)
    with pytest.raises(Refused, match="cannot be modified directly when scaling adapter is enabled"):
        as_tenant("lab", f"my-{PLANNER}", ("lab",), *replaced(more), body=more)
    assert "chat" in as_tenant("lab", PLANNER, ("lab",), *replaced(more), body=more)
    lab.delete(GRAPH, "chat")
    lab.gone(GRAPH, "chat")


def test_a_request_leads_into_no_namespace_where_its_author_may_make_no_graph(
    as_tenant: Tenant, foreign: str
) -> None:
    wanted = request(deploymentOverrides={"namespace": foreign})
    with pytest.raises(Refused, match="where you may not create DynamoGraphDeployments"):
        as_tenant("lab", "author", ("lab",), *replaced(wanted), body=wanted)
    both = ("lab", foreign)
    assert "chat" in as_tenant("lab", "author", both, *replaced(wanted), body=wanted)


def test_no_graph_runs_as_the_operator(webhooks: Installation) -> None:
    pod = {"mainContainer": {"image": "r.example/vllm:0.9.0"}, "serviceAccountName": ACCOUNT}
    wanted = with_service(extraPodSpec=pod)
    here = {**wanted, "metadata": {"name": "chat", "namespace": NAMESPACE}}
    told = webhooks.asker.create(GRAPH, here)
    assert 403 == told.code
    assert f'"{ACCOUNT}" is the operator\'s own ServiceAccount' in told.text
    assert 201 == webhooks.asker.create(GRAPH, wanted).code
