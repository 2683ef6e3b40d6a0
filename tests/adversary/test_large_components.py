"""A component just below the size limit holds the event loop in no step of its reconcile."""

from collections.abc import Callable

import msgspec
import pytest

from adversary.growth import is_steep, seconds
from cluster.operator_process import OperatorProcess
from cluster.world import World
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.render import component_parts
from dynamo_operator.component.validate import component_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object

COMPONENT = DynamoComponentDeployment.KIND
BYTES = RenderSettings().largest_object_bytes * 9 // 10
MODEL = {"modelRef": {"name": "acme/chat-7b"}, "componentType": "worker"}
STALL_SECONDS = 0.1

ITEMS: dict[str, Callable[[int], object]] = {
    "envs": lambda number: {"name": f"V{number}", "value": "x"},
    "volumes": lambda number: {"name": f"v{number}", "emptyDir": {}},
    "args": lambda _: "-a",
    "tolerations": lambda _: {},
}
STORED = ("envs", "args")
"""The API server itself needs more than 30 s to apply that many volumes or tolerations."""


def spec(items: str, size: int) -> Object:
    """A component's spec of about so many bytes, nearly all of them in one list."""
    make = ITEMS[items]
    count = size // (len(msgspec.json.encode(make(1000))) + 1)
    found = [make(number) for number in range(count)]
    main: Object = {"image": "r/i:1", "args": ["-m", "a"]}
    if items == "envs":
        return {**MODEL, "envs": found, "extraPodSpec": {"mainContainer": main}}
    if items == "args":
        return {**MODEL, "extraPodSpec": {"mainContainer": {**main, "args": found}}}
    return {**MODEL, "extraPodSpec": {"mainContainer": main, items: found}}


def work(items: str, size: int) -> Callable[[], object]:
    """What the event loop validates and renders of a component."""
    body = {"metadata": {"name": "c", "namespace": "n"}, "spec": spec(items, size)}
    component, settings = msgspec.convert(body, DynamoComponentDeployment), RenderSettings()

    def validate_and_render() -> object:
        problems = tuple(component_problems(component, settings))
        around, workloads = component_parts(component, Facts(), settings)
        return problems, around, tuple(workloads)

    return validate_and_render


@pytest.mark.parametrize("items", ITEMS)
def test_the_largest_component_is_worked_on_in_a_step_that_is_no_stall(items: str) -> None:
    assert not is_steep(lambda size: work(items, size), BYTES // 4)
    assert seconds(work(items, BYTES), runs=5) < STALL_SECONDS


@pytest.mark.cluster
def test_components_below_the_limit_are_reconciled(world: World, operator: OperatorProcess) -> None:
    for items in STORED:
        world.create(COMPONENT, {"metadata": {"name": items}, "spec": spec(items, BYTES)})
    for items in STORED:
        world.eventually(COMPONENT, items, lambda found: "conditions" in found.get("status", {}))
