"""Output, names and sizes that the API server refuses: each request comes to an end that says why."""

from typing import Any

import pytest

from cluster.conditions import condition
from cluster.requests.playing import REQUEST, Player, a_graph, a_request, state
from cluster.world import World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def curves(**more: Any) -> Object:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "curves"}}
    return {**body, "data": {"a.json": "1"}, **more}


@pytest.mark.parametrize(
    ("metadata", "cause"),
    [
        ({"name": "a", "labels": {"a b": "x"}}, "a b"),
        ({"name": "a", "annotations": {"a": "x" * 300_000}}, "annotations"),
    ],
)
def test_metadata_of_a_graph_that_is_refused_is_a_failure_in_the_api_servers_words(
    metadata: Object, cause: str, world: World, player: Player
) -> None:
    world.create(REQUEST, a_request(autoApply=True))
    player.finds({**a_graph(), "metadata": metadata})
    body = player.is_in("Failed")
    assert "GenerationFailed" == condition(body, "SpecGenerated")["reason"]
    assert cause in body["status"]["message"]
    world.patch(REQUEST, "chat", {"spec": {"model": "other/model"}})  # which stays possible


def test_annotations_of_a_user_leave_room_for_the_config_maps(world: World, player: Player) -> None:
    request = a_request()
    request["metadata"]["annotations"] = {"mine": "x" * 30_000}
    world.create(REQUEST, request)
    player.finds(a_graph(), curves(data={"a.json": "x" * 240_000}))
    body = player.is_in("Ready")
    (kept,) = body["status"]["additionalResources"]
    assert "curves" == kept["metadata"]["name"]


@pytest.mark.parametrize("is_applied", [False, True])
def test_a_namespace_that_is_not_there_is_named(is_applied: bool, world: World, player: Player) -> None:
    overrides = {"namespace": "nowhere"}
    world.create(REQUEST, a_request(autoApply=is_applied, deploymentOverrides=overrides))
    player.finds(a_graph(), curves())
    cause = 'namespaces "nowhere" not found'
    body = world.eventually(REQUEST, "chat", lambda it: cause in it.get("status", {}).get("message", ""))
    assert ("Failed" if is_applied else "Deploying") == state(body)


@pytest.mark.parametrize(
    ("odd", "is_applied"),
    [
        ({"metadata": {"name": "curves", "labels": {"a b": "c"}}}, True),
        ({"metadata": {"name": "Not A Name"}}, False),
        ({"data": {"a/b": "1"}}, True),
        ({"data": 5}, False),
    ],
    ids=["a label", "a name", "a key", "no data"],
)
def test_a_config_map_that_is_none_does_not_hold_the_request_up(
    odd: Object, is_applied: bool, world: World, player: Player
) -> None:
    world.create(REQUEST, a_request(autoApply=is_applied))
    player.finds(a_graph(), curves(**odd))
    player.is_in("Ready")
    player.said("ConfigMapCreationFailed")
