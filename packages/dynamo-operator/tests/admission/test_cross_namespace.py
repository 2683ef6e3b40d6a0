"""A request does not lead into a namespace where its author could do nothing himself."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from dynamo_operator import labels
from dynamo_operator.admission.configuration import path_of
from dynamo_operator.admission.review import request_in
from dynamo_operator.admission.server import (
    BURST,
    KEPT_SECONDS,
    MOST_REMEMBERED,
    PATH,
    REFILL_SECONDS,
    AccessReviews,
    TooManyAccessReviews,
)
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.errors import Unreachable
from reviews.asking import review
from reviews.rows import request as asked_for
from reviews.serving import running
from simulated.clock import on_simulated_clock


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
    return [str(each) for each in await AccessReviews(Client(reviews)).problems(found)]


async def test_a_namespace_of_others_is_refused_and_one_where_he_may_create_graphs_is_not() -> None:
    reviews = Reviews()
    expected = f"{PATH} is team-b, where you may not create DynamoGraphDeployments"
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
    elsewhere = AccessReviews(Client(Reviews()))
    assert () == await elsewhere.problems(request_in(review(labelled, old)))
    new = asked_for(deploymentOverrides={"namespace": "team-b", "workersImage": "evil:1"})
    (problem,) = await elsewhere.problems(request_in(review(new, old)))
    assert "where you may not create DynamoGraphDeployments" in str(problem)


async def test_who_changes_the_record_of_what_was_done_is_asked_about_too() -> None:
    """The operator acts on that annotation, so it decides what is created over there."""
    old = asked_for(deploymentOverrides={"namespace": "team-b"})
    for annotations in ({labels.REQUEST_RECORD: "{}"}, {labels.REQUEST_RECORD: 1}):
        new = {**old, "metadata": {**old["metadata"], "annotations": annotations}}
        for before, after in ((old, new), (new, old)):
            elsewhere = AccessReviews(Client(Reviews()))
            (problem,) = await elsewhere.problems(request_in(review(after, before)))
            assert "where you may not create DynamoGraphDeployments" in str(problem)


async def test_a_namespace_marked_by_its_tenant_is_no_way_round() -> None:
    path = path_of(DynamoGraphDeploymentRequest.KIND)
    wanted = review(asked_for(deploymentOverrides={"namespace": "team-b"}))
    elsewhere = AccessReviews(Client(Reviews()))
    async with running(is_excluded=lambda namespace: namespace == "lab", elsewhere=elsewhere) as there:
        _, body = await there.post(path, wanted)
    assert not json.loads(body)["response"]["allowed"]


async def test_while_it_cannot_be_asked_it_is_refused() -> None:
    (text,) = await told(Reviews(is_away=True), "open")
    assert "could not check" in text


def spec(user: str, namespace: str = "team-b") -> dict[str, Any]:
    """What is asked about a user."""
    return {"user": user, "resourceAttributes": {"namespace": namespace}}


@on_simulated_clock
async def test_a_stranger_has_few_questions_and_takes_none_from_others() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews))
    for number in range(BURST):
        assert not await questions.allowed(spec(f"u{number}"), "10.0.0.9")
    with pytest.raises(TooManyAccessReviews):
        await questions.allowed(spec("next"), "10.0.0.9")
    assert await questions.allowed(spec("alice", "open"), "10.0.0.1"), "another address"
    await asyncio.sleep(REFILL_SECONDS)
    assert not await questions.allowed(spec("next"), "10.0.0.9")
    assert BURST + 2 == len(reviews.asked)


@on_simulated_clock
async def test_an_answer_counts_for_a_moment_and_is_of_one_user() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews))
    for _ in range(50):
        assert await questions.allowed(spec("alice", "open"), "10.0.0.1")
    assert not await questions.allowed(spec("bob", "open"), "10.0.0.1")
    assert 2 == len(reviews.asked)
    await asyncio.sleep(KEPT_SECONDS)
    assert await questions.allowed(spec("alice", "open"), "10.0.0.1")
    assert 3 == len(reviews.asked)


@on_simulated_clock
async def test_clients_that_are_known_ask_as_much_as_they_need() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews), are_clients_known=True)
    for number in range(3 * BURST):
        assert not await questions.allowed(spec(f"u{number}"), "10.0.0.9")


async def test_320_reviews_of_a_stranger_are_at_most_20_questions() -> None:
    reviews = Reviews()
    path = path_of(DynamoGraphDeploymentRequest.KIND)
    wanted = asked_for(deploymentOverrides={"namespace": "open"})
    started = asyncio.get_running_loop().time()
    async with running(elsewhere=AccessReviews(Client(reviews))) as there:
        bodies = [review(wanted, user=f"u{number}") for number in range(320)]
        answers = await asyncio.gather(*(there.post(path, each) for each in bodies))
    refused = [body for status, body in answers if status == 200 and b'"allowed":true' in body]
    assert [] == refused
    seconds = asyncio.get_running_loop().time() - started
    assert len(reviews.asked) <= BURST + 1 + seconds / REFILL_SECONDS


async def test_nothing_is_asked_about_a_request_that_is_refused_anyway() -> None:
    reviews = Reviews()
    path = path_of(DynamoGraphDeploymentRequest.KIND)
    wanted = asked_for(backend="none", deploymentOverrides={"namespace": "open"})
    async with running(elsewhere=AccessReviews(Client(reviews))) as there:
        _, body = await there.post(path, review(wanted, user="alice"))
    assert not json.loads(body)["response"]["allowed"]
    assert [] == reviews.asked


@on_simulated_clock
async def test_answers_and_clients_are_remembered_within_bounds() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews))
    for number in range(MOST_REMEMBERED + 10):
        await asyncio.sleep(0)  # no answer of this server is waited for
        assert not await questions.allowed(spec(f"u{number}"), f"10.0.{number // 250}.{number % 250}")
    assert (MOST_REMEMBERED, MOST_REMEMBERED) == questions.remembered
    await questions.allowed(spec(f"u{MOST_REMEMBERED}"), "10.9.9.9")
    assert MOST_REMEMBERED + 10 == len(reviews.asked)
    await questions.allowed(spec("u0"), "10.9.9.9")
    assert MOST_REMEMBERED + 11 == len(reviews.asked)
