"""A request does not lead into a namespace where its author could do nothing himself."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from dynamo_operator.admission.elsewhere import PATH, Elsewhere
from dynamo_operator.admission.registration import path_of
from dynamo_operator.admission.review import request_in
from dynamo_operator.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.errors import Unreachable
from dynamo_operator.kube.transport import Answer, Request
from reviews.asking import review
from reviews.rows import request as asked_for
from reviews.serving import running


@dataclass
class Reviews:
    """An API server where alice may create graphs in `open` only."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    is_away: bool = False

    async def send(self, request: Request) -> Answer:
        if self.is_away:
            raise Unreachable("away")
        spec = json.loads(request.body or b"")["spec"]
        self.asked.append(spec)
        where = spec["resourceAttributes"]
        allowed = spec["user"] == "alice" and where["namespace"] == "open"
        body = {"metadata": {}, "status": {"allowed": allowed}}

        async def chunks() -> AsyncIterator[bytes]:
            yield json.dumps(body).encode()

        return Answer(201, {}, chunks())


async def told(reviews: Reviews, namespace: str | None, before: str | None = None) -> list[str]:
    new = asked_for(deploymentOverrides={"namespace": namespace})
    old = asked_for(deploymentOverrides={"namespace": before}) if before else None
    found = request_in(review(new, old))
    return [str(each) for each in await Elsewhere(Client(reviews)).problems(found)]


async def test_a_namespace_of_others_is_refused_and_one_where_he_may_create_graphs_is_not() -> None:
    reviews = Reviews()
    expected = f"{PATH} is team-b, and you may not create DynamoGraphDeployments there"
    assert [expected] == await told(reviews, "team-b")
    assert [] == await told(reviews, "open")
    where = {"group": "nvidia.com", "resource": "dynamographdeployments", "verb": "create"}
    assert {**where, "namespace": "team-b"} == reviews.asked[0]["resourceAttributes"]
    assert ["system:authenticated"] == reviews.asked[0]["groups"]


@pytest.mark.parametrize("namespace", ["lab", "", None])
async def test_nothing_is_asked_about_his_own_namespace(namespace: str | None) -> None:
    reviews = Reviews()
    assert [] == await told(reviews, namespace)
    assert [] == reviews.asked


async def test_a_namespace_that_was_stored_may_stay_and_not_be_changed() -> None:
    reviews = Reviews()
    assert [] == await told(reviews, "team-b", "team-b")
    assert [] != await told(reviews, "team-b", "open")


async def test_who_changes_what_will_run_over_there_is_asked_about_like_its_author() -> None:
    old = asked_for(deploymentOverrides={"namespace": "team-b"})
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert () == await Elsewhere(Client(Reviews())).problems(request_in(review(labelled, old)))
    new = asked_for(deploymentOverrides={"namespace": "team-b", "workersImage": "evil:1"})
    (problem,) = await Elsewhere(Client(Reviews())).problems(request_in(review(new, old)))
    assert "you may not create DynamoGraphDeployments there" in str(problem)


async def test_a_namespace_marked_by_its_tenant_is_no_way_round() -> None:
    path = path_of(DynamoGraphDeploymentRequest.KIND)
    wanted = review(asked_for(deploymentOverrides={"namespace": "team-b"}))
    elsewhere = Elsewhere(Client(Reviews()))
    async with running(skips=lambda namespace: namespace == "lab", elsewhere=elsewhere) as there:
        _, body = await there.post(path, wanted)
    assert not json.loads(body)["response"]["allowed"]


async def test_while_it_cannot_be_asked_it_is_refused() -> None:
    (text,) = await told(Reviews(is_away=True), "open")
    assert "could not be asked" in text
