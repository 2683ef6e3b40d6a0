"""The instructions of `docs/models.md` work, in the order in which users read them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from cluster.guides import blocks, command, in_v1alpha1
from cluster.world import EVENTS, MODEL, World
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from kube_runtime.types.meta import Object
from simulated.lora_fleet import Fleet

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

KINDS = {each.KIND.name: each.KIND for each in (DynamoGraphDeployment, DynamoModel)}


def said(world: World, name: str = "my-lora") -> Object:
    found = world.get(MODEL, name) or {}
    status: Object = found.get("status", {})
    return status


def hosts(status: Object) -> list[str]:
    return [each["address"][len("http://") : -len(":9090")] for each in status["endpoints"]]


def test_the_page_works_from_its_beginning_to_its_end(
    world: World, kubectl: Callable[..., str], fleet: Fleet
) -> None:
    printed: list[str] = []
    for language, text in blocks("models.md"):
        if language == "yaml":
            for document in yaml.safe_load_all(text):
                world.create(KINDS[document["kind"]], in_v1alpha1(document))
        else:
            for line in text.splitlines():
                if line.startswith("$ dynamoctl chat "):
                    continue  # no frontend runs here, as it does in a playground
                printed.append(kubectl(*command(line)))
                _until_both_are_known(line, world)
                _check(line, printed[-1], world, fleet)
    assert world.get(MODEL, "my-lora") is None
    at = hosts(said(world, "code-lora"))
    left = {"customer-support-adapter-v1", "multilingual-adapter", "code-adapter"}
    assert [left, left] == [set(fleet.workers[each].loaded) for each in at]
    ready = world.read(DynamoGraphDeployment.KIND, "my-deployment")
    assert "successful" == ready["status"]["state"]
    told = {"EndpointsReady", "LoRAUnloaded", "EndpointsDiscovered"}
    world.until(lambda: told <= {each["reason"] for each in world.list(EVENTS)})


def _until_both_are_known(line: str, world: World) -> None:
    """A model is ready with the endpoints that it knows; it may learn of the second a moment later."""
    if "condition=EndpointsReady" in line:
        names: list[str] = re.findall(r"dm/(\S+)", line)
        world.until(lambda: {said(world, each).get("readyEndpoints") for each in names} == {2})


def _check(line: str, printed: str, world: World, fleet: Fleet) -> None:
    """What the reader sees, where the page says what that is."""
    if line.endswith("get dm my-lora"):
        head, row = (each.split() for each in printed.splitlines())
        found: dict[str, Any] = dict(zip(head, row, strict=True))
        assert ("2", "2") == (found["READY"], found["TOTAL"])
    elif "readyEndpoints" in line:
        assert "2" == printed
    elif "podName" in line:
        assert 2 == len(printed.split())
    elif "address" in line:
        assert all(each.endswith(":9090") for each in printed.split())
    elif "ready==false" in line:
        assert not printed
    elif "describe" in line:
        assert "AllEndpointsReady" in printed
    elif "my-lora-v2" in line and "wait" in line:
        world.eventually(MODEL, "my-lora", lambda _: said(world).get("readyEndpoints") == 2)
        uris = {fleet.workers[each].loaded["my-custom-lora"] for each in hosts(said(world))}
        assert {"s3://my-bucket/loras/my-lora-v2"} == uris
