"""The mistakes of an object are looked for once for each of its contents, and never missed."""

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.report import Offload, ValidationCache
from kube_runtime.types.meta import OwnerReference
from specs import a_component


@dataclass
class Negative:
    """Finds fewer than no replicas, and counts how often it looked."""

    looks: int = field(default=0)

    def __call__(self, component: DynamoComponentDeployment) -> tuple[Problem, ...]:
        self.looks += 1
        is_wrong = (component.spec.replicas or 0) < 0
        return (Problem("spec.replicas", "is negative"),) if is_wrong else ()


def component(
    replicas: int = 1, *, uid: str = "u", **metadata: object
) -> DynamoComponentDeployment:
    found = a_component(replicas=replicas)
    return replace(found, metadata=replace(found.metadata, uid=uid, **metadata))


async def test_what_had_no_mistakes_is_not_looked_through_again() -> None:
    sound, find = ValidationCache(), Negative()
    for version in ("1", "2", "3"):
        found = component(resource_version=version, generation=7)
        assert () == await sound.problems_by(Offload(), found, find)
    assert 1 == find.looks


@pytest.mark.parametrize(
    "changed",
    [
        component(2),
        component(uid="another"),
        component(labels={"team": "red"}),
        component(annotations={"nvidia.com/paused": "true"}),
        component(owner_references=(OwnerReference("DynamoGraphDeployment", "chat", "u-chat"),)),
    ],
)
async def test_every_other_content_is_looked_through(changed: DynamoComponentDeployment) -> None:
    sound, find = ValidationCache(), Negative()
    await sound.problems_by(Offload(), component(), find)
    await sound.problems_by(Offload(), changed, find)
    assert 2 == find.looks


async def test_a_mistake_is_told_each_time_also_after_the_content_was_right() -> None:
    sound, find = ValidationCache(), Negative()
    told = [
        bool(await sound.problems_by(Offload(), component(each), find))
        for each in (1, -1, -1, 1, -1)
    ]
    assert [False, True, True, False, True] == told
