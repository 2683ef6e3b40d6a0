"""A component just below the size limit holds the event loop in no step of its reconcile.

A separate process renders its objects. What remains in the loop does not depend on the component's size, or
only encodes and compares it.
"""

from collections.abc import Callable

import msgspec
import pytest

from adversary.growth import is_steep, seconds
from cluster.operator_process import OperatorProcess
from cluster.world import World
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.render import component_shared_objects
from dynamo_operator.settings import RenderSettings
from kube_runtime.kind import Object

COMPONENT = DynamoComponentDeployment.KIND
BYTES = RenderSettings().largest_object_bytes * 9 // 10
MODEL = {"modelRef": {"name": "acme/chat-7b"}, "componentType": "worker"}
STEP_SECONDS = 0.01
"""It takes a hundredth of that; rendering everything took 0.06 s."""

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


def rendering(items: str, size: int) -> Callable[[], object]:
    """What the event loop itself renders of a component."""
    body = {"metadata": {"name": "c", "namespace": "n"}, "spec": spec(items, size)}
    component = msgspec.convert(body, DynamoComponentDeployment)
    return lambda: component_shared_objects(component)


@pytest.mark.parametrize("items", ITEMS)
def test_the_models_service_costs_the_same_for_a_component_of_any_size(items: str) -> None:
    assert not is_steep(lambda size: rendering(items, size), BYTES // 4)
    assert seconds(rendering(items, BYTES), runs=5) < STEP_SECONDS


@pytest.mark.cluster
def test_components_below_the_limit_are_reconciled_without_a_stall(
    world: World, operator: OperatorProcess
) -> None:
    """`operator` fails the test after a stall in its log."""
    for items in STORED:
        world.create(COMPONENT, {"metadata": {"name": items}, "spec": spec(items, BYTES)})
    for items in STORED:
        world.eventually(COMPONENT, items, lambda found: "conditions" in found.get("status", {}))
