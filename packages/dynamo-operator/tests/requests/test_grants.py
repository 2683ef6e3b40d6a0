"""A request has nothing created in another namespace unless RBAC of that namespace accepts it."""

import json
from dataclasses import dataclass, field

import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import DeploymentOverrides, DynamoGraphDeploymentRequest
from dynamo_operator.requests.controller import RequestController
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.types.meta import Metadata, Object
from scripted.transport import answer
from simulated.requests import a_spec, request_controller

CURVES: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "curves"}}


@dataclass
class Reviews:
    """An API server whose namespace `open` lets ServiceAccounts of `lab` create `resources`."""

    resources: frozenset[str] = frozenset({"dynamographdeployments", "configmaps"})
    code: int = 201
    asked: list[Object] = field(default_factory=list)

    async def send(self, request: Request) -> Answer:
        assert request.path.endswith("/subjectaccessreviews"), request.path
        spec = json.loads(request.body or b"")["spec"]
        self.asked.append(spec)
        where = spec["resourceAttributes"]
        allowed = where["namespace"] == "open" and where["resource"] in self.resources
        return answer(self.code, {"metadata": {}, "status": {"allowed": allowed}})


def a_request(namespace: str | None) -> DynamoGraphDeploymentRequest:
    spec = a_spec(auto_apply=True, deployment_overrides=DeploymentOverrides(namespace=namespace))
    return DynamoGraphDeploymentRequest(Metadata(name="r", namespace="lab", uid="u"), spec)


def a_controller(reviews: Reviews, *, accepts_all: bool = False) -> RequestController:
    cache = Cache([Informer(DynamoGraphDeployment).store])
    return request_controller(Client(reviews), cache, accepts_all=accepts_all, excluded={"theirs"})


@pytest.mark.parametrize(
    ("reviews", "namespace", "missing"),
    [
        (Reviews(), "team-b", "create dynamographdeployments.nvidia.com and configmaps)"),
        (Reviews(frozenset({"dynamographdeployments"})), "open", "create configmaps)"),
        (Reviews(code=403), "open", "create dynamographdeployments.nvidia.com and configmaps)"),
    ],
    ids=["nothing is granted", "graphs are not enough", "the operator may not ask"],
)
async def test_a_namespace_that_does_not_accept_requests_is_refused_with_what_to_do(
    reviews: Reviews, namespace: str, missing: str
) -> None:
    (problem,) = await a_controller(reviews).reader.problems(a_request(namespace))
    assert problem.startswith(f"spec.deploymentOverrides.namespace: namespace {namespace} does not accept")
    for part in (f"RoleBinding in {namespace}", "system:serviceaccounts:lab", missing):
        assert part in problem


async def test_every_service_account_of_the_requests_namespace_is_asked_about_and_nobody_else() -> None:
    reviews = Reviews()
    assert () == await a_controller(reviews).reader.problems(a_request("open"))
    groups = ["system:serviceaccounts", "system:serviceaccounts:lab", "system:authenticated"]
    assert [groups, groups] == [each["groups"] for each in reviews.asked]
    assert not any("user" in each for each in reviews.asked)


@pytest.mark.parametrize(("namespace", "accepts_all"), [("team-b", True), ("lab", False), (None, False)])
async def test_the_administrators_choice_and_its_own_namespace_are_not_asked_about(
    namespace: str | None, accepts_all: bool
) -> None:
    reviews = Reviews()
    reader = a_controller(reviews, accepts_all=accepts_all).reader
    assert () == await reader.problems(a_request(namespace))
    assert [] == reviews.asked


@pytest.mark.parametrize(
    ("named", "target", "refusal"),
    [
        (None, "team-b", "accepted for namespace team-b, which it no longer names"),
        ("open", "open", "does not accept graphs"),
        ("theirs", "theirs", "another operator manages namespace theirs"),
    ],
    ids=["the spec names it no more", "its grant was withdrawn", "it has an operator of its own"],
)
async def test_nothing_is_created_in_a_namespace_that_is_refused_by_now(
    named: str | None, target: str, refusal: str
) -> None:
    reader = a_controller(Reviews(frozenset()), accepts_all=named != "open").reader
    assert refusal in (await reader.destination(a_request(named), target, [CURVES])).refusal
