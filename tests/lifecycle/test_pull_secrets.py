"""Pull secrets come and go without a restart; pods that cannot pull their image get the new ones."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from cluster.graph.graphs import IMAGE, graph, service, worker
from dynamo_operator import labels
from dynamo_operator.shared.cluster import (
    GROVE,
    LEADER_WORKER_SET,
    POD_TEMPLATE_HASH,
    SET_NAME,
    LeaderWorkerSet,
    PodCliqueSet,
    PullSecret,
)
from dynamo_operator.shared.templates import units
from kube_runtime.types.kinds import CustomResourceDefinition, Deployment, Pod
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of
from lifecycle.running import GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock

SECRETS = PullSecret.KIND
WORKLOADS = (Deployment.KIND, LeaderWorkerSet.KIND, PodCliqueSet.KIND)
PROVIDERS: dict[str, tuple[Kind, ...]] = {
    "Deployment": (),
    "LeaderWorkerSet": LEADER_WORKER_SET.kinds,
    "Grove": GROVE.kinds,
}
FAILING = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "m"}}}
READY = {"type": "Ready", "status": "True"}


def on_each_provider(scenario: Callable[[Running], Any]) -> Callable[[str], None]:
    """Run a scenario on each provider, with a frontend and a worker (of two nodes, on groups)."""

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test(provider: str) -> None:
        @on_simulated_clock
        async def play() -> None:
            async with running(installed=PROVIDERS[provider]) as operator:
                await scenario(operator)

        play()

    test.__doc__ = scenario.__doc__
    return test


async def has_secret(operator: Running, name: str) -> None:
    content = base64.b64encode(json.dumps({"auths": {"nvcr.io": {"auth": "dTpw"}}}).encode())
    body = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": content.decode()}}
    operator.create(SECRETS, {"metadata": {"name": name}, **body})
    await asyncio.sleep(REST_SECONDS)


async def has_no_secret(operator: Running, name: str) -> None:
    operator.delete(SECRETS, name)
    await asyncio.sleep(REST_SECONDS)


async def a_graph(operator: Running, *, runs: bool = True, **frontend: Any) -> None:
    """Create a graph, with a ready pod of each service if it `runs`, and let the operator settle."""
    installed = operator.server.storage.objects.get(path_of(CustomResourceDefinition.KIND), ())
    spread = {"multinode": {"nodeCount": 2}} if installed else {}
    decode = worker("decode", **spread)
    operator.create(GRAPH, graph(Frontend=service("frontend", **frontend), Decode=decode))
    for key in ("Frontend", "Decode") if runs else ():
        group = {SET_NAME: "chat-decode-0"} if spread and key == "Decode" else {}
        a_pod(operator, f"first-{key.lower()}", {"conditions": [READY]}, key, **group)
    await asyncio.sleep(REST_SECONDS)


def templates(operator: Running) -> dict[str, Object]:
    bodies = [operator.read(kind, name) for kind in WORKLOADS for name in operator.names(kind)]
    return {
        f"{body['metadata']['name']}/{unit}/{name}": template
        for body in bodies
        for unit, members in units(body).items()
        for name, template in members.items()
        if isinstance(template, dict)
    }


def secrets(operator: Running) -> set[tuple[str, ...]]:
    return {
        tuple(entry["name"] for entry in template["spec"].get("imagePullSecrets", ()))
        for template in templates(operator).values()
    }


def a_pod(operator: Running, name: str, status: Object, service: str = "Frontend", **more: str) -> None:
    own = {labels.GRAPH: "chat", labels.COMPONENT: service}
    hashes = {"pod-template-hash": "1", POD_TEMPLATE_HASH: "1"}
    selected = {labels.SELECTOR: f"chat-{service.lower()}", **own, **hashes, **more}
    metadata = {"name": name, "labels": selected}
    operator.create(Pod.KIND, {"metadata": metadata, "spec": {"nodeName": "n"}, "status": status})


@on_each_provider
async def test_a_secret_that_is_deleted_and_created_again_restarts_nothing(operator: Running) -> None:
    await has_secret(operator, "ecr")
    await a_graph(operator)
    before = templates(operator)
    assert {("ecr",)} == secrets(operator)
    for _ in range(3):
        await has_no_secret(operator, "ecr")
        assert before == templates(operator)
        await has_secret(operator, "ecr")
        assert before == templates(operator)
    written = operator.writes()
    await asyncio.sleep(600)
    assert written == operator.writes()


@on_each_provider
async def test_another_secret_of_a_registry_comes_with_the_next_change(operator: Running) -> None:
    await a_graph(operator)
    before = templates(operator)
    for name in ("first", "second"):
        await has_secret(operator, name)
        assert before == templates(operator)
    operator.change(GRAPH, "chat", {"spec": {"services": {"Frontend": {"replicas": 3}}}})
    await asyncio.sleep(REST_SECONDS)
    assert before == templates(operator)
    edit = {"envs": [{"name": "EDITED", "value": "yes"}]}
    operator.change(GRAPH, "chat", {"spec": {"services": {"Frontend": edit}}})
    await asyncio.sleep(REST_SECONDS)
    edited = {name for name, template in templates(operator).items() if template != before[name]}
    assert edited
    assert all("frontend" in name for name in edited)
    assert {(), ("first", "second")} == secrets(operator)


@on_each_provider
async def test_a_secret_that_comes_before_the_first_pod_is_in_time(operator: Running) -> None:
    await a_graph(operator, runs=False)
    await has_secret(operator, "late")
    assert {("late",)} == secrets(operator)
    await has_no_secret(operator, "late")
    assert {("late",)} == secrets(operator)


@on_each_provider
async def test_pods_that_cannot_pull_their_image_get_a_later_secret(operator: Running) -> None:
    await a_graph(operator)
    operator.delete(Pod.KIND, "first-frontend")
    a_pod(operator, "chat-frontend-1", {"containerStatuses": [FAILING]})
    await asyncio.sleep(REST_SECONDS)
    await has_secret(operator, "late")
    assert {(), ("late",)} == secrets(operator)


@on_each_provider
async def test_pods_get_it_too_if_they_fail_after_it_came(operator: Running) -> None:
    await a_graph(operator)
    await has_secret(operator, "early")
    assert {()} == secrets(operator)
    operator.delete(Pod.KIND, "first-frontend")
    a_pod(operator, "chat-frontend-1", {"containerStatuses": [FAILING]})
    await asyncio.sleep(REST_SECONDS)
    assert {(), ("early",)} == secrets(operator)


@on_each_provider
async def test_a_pod_that_serves_is_not_restarted_for_one_that_cannot_pull(operator: Running) -> None:
    await a_graph(operator)
    a_pod(operator, "chat-frontend-1", {"containerStatuses": [FAILING]})
    await has_secret(operator, "late")
    assert {()} == secrets(operator)


@on_each_provider
async def test_a_rollout_that_cannot_pull_gets_it_although_the_old_pods_serve(operator: Running) -> None:
    await a_graph(operator)
    new = {"pod-template-hash": "2", POD_TEMPLATE_HASH: "2"}
    a_pod(operator, "chat-frontend-1", {"containerStatuses": [FAILING]}, **new)
    await has_secret(operator, "late")
    assert {(), ("late",)} == secrets(operator)


@on_each_provider
async def test_a_renewed_secret_does_not_restart_pods_that_cannot_pull(operator: Running) -> None:
    await has_secret(operator, "ecr")
    await a_graph(operator, runs=False)
    a_pod(operator, "chat-frontend-1", {"containerStatuses": [FAILING]})
    before = templates(operator)
    await has_no_secret(operator, "ecr")
    await has_secret(operator, "ecr")
    assert before == templates(operator)


@on_each_provider
async def test_a_switch_of_the_user_counts_at_once(operator: Running) -> None:
    await has_secret(operator, "ecr")
    await a_graph(operator)
    for value, expected in (("true", ()), ("false", ("ecr",))):
        switch = {"annotations": {labels.DISABLE_PULL_SECRETS: value}}
        operator.change(GRAPH, "chat", {"spec": {"services": {"Frontend": switch}}})
        await asyncio.sleep(REST_SECONDS)
        assert {("ecr",), expected} == secrets(operator)


@on_each_provider
async def test_a_secret_that_the_user_no_longer_names_goes(operator: Running) -> None:
    container = {"mainContainer": {"image": IMAGE}}
    named = {**container, "imagePullSecrets": [{"name": "mine"}, {"name": "typo"}]}
    await a_graph(operator, extraPodSpec=named)
    await has_secret(operator, "found")
    assert {(), ("mine", "typo")} == secrets(operator)
    named = {**container, "imagePullSecrets": [{"name": "mine"}]}
    operator.change(GRAPH, "chat", {"spec": {"services": {"Frontend": {"extraPodSpec": named}}}})
    await asyncio.sleep(REST_SECONDS)
    assert {(), ("mine",)} == secrets(operator)
