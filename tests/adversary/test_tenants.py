"""What a tenant with real tokens tries against others, through the webhooks, and what comes of it."""

from collections.abc import Iterator

import pytest

from adversary.tenant import Refused, Tenant
from cluster.admission.conftest import NAMESPACE, Installation, lab, webhooks
from cluster.conftest import ControlPlane
from cluster.world import GRAPH, World
from kube_runtime.types.meta import Object
from reviews.asking import OPERATOR
from reviews.rows import adapted, request, with_service

__all__ = ["lab", "webhooks"]

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhooks")]

ACCOUNT = OPERATOR.rpartition(":")[2]
PLANNER = "planner-serviceaccount"


@pytest.fixture
def foreign(kinds: ControlPlane, namespace: str) -> Iterator[World]:
    with kinds.new_namespace(f"{namespace}-foreign") as world:
        yield world


def tenant(kinds: ControlPlane, namespace: str, name: str, *may_in: str) -> Tenant:
    """A ServiceAccount that may do everything with our kinds, and create ConfigMaps, in some namespaces."""
    created = Tenant(kinds, namespace, name).create()
    for place in may_in:
        created.may("*", "*", within=place)
        created.may("create", "configmaps", group="", within=place)
    return created


def tries(who: Tenant, body: Object) -> str:
    """What kubectl prints when that tenant applies an object in the namespace `lab`."""
    apply = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
    return who.run("--namespace=lab", *apply, body=body)


def test_a_planner_of_another_namespace_cannot_scale_what_an_adapter_owns(
    kinds: ControlPlane, lab: World, foreign: World
) -> None:
    lab.create(GRAPH, adapted(1))
    for namespace, name in ((foreign.namespace, PLANNER), ("lab", f"my-{PLANNER}")):
        with pytest.raises(Refused, match="cannot be modified directly when scaling adapter is enabled"):
            tries(tenant(kinds, namespace, name, "lab"), adapted(3))
    assert "chat" in tries(tenant(kinds, "lab", PLANNER, "lab"), adapted(3))
    lab.delete(GRAPH, "chat")
    lab.gone(GRAPH, "chat")


def test_a_request_leads_into_no_namespace_where_its_author_may_make_no_graph(
    kinds: ControlPlane, foreign: World
) -> None:
    wanted = request(deploymentOverrides={"namespace": foreign.namespace})
    with pytest.raises(Refused, match="where you may not create DynamoGraphDeployments"):
        tries(tenant(kinds, "lab", "author", "lab"), wanted)
    both = tenant(kinds, "lab", "author-of-both", "lab", foreign.namespace)
    assert "chat" in tries(both, wanted)


def test_no_graph_runs_as_the_operator(webhooks: Installation) -> None:
    pod = {"mainContainer": {"image": "r.example/vllm:0.9.0"}, "serviceAccountName": ACCOUNT}
    wanted = with_service(extraPodSpec=pod)
    here = {**wanted, "metadata": {"name": "chat", "namespace": NAMESPACE}}
    told = webhooks.asker.create(GRAPH, here)
    assert 403 == told.code
    assert f'"{ACCOUNT}" is the operator\'s own ServiceAccount' in told.text
    assert 201 == webhooks.asker.create(GRAPH, wanted).code
