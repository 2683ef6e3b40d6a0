"""Work on large objects is done elsewhere and can be ended; the object is then left alone for long."""

import asyncio
import re
from dataclasses import dataclass, field

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator import METRICS_PREFIX
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.status import expensive_status
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentSpec
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import Problem, weight_bytes
from dynamo_operator.shared.report import IN_PLACE_BYTES, RETRY_SECONDS, Offload, ValidationCache
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.workers import WorkerPool
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Metadata, OwnerReference, condition
from specs import a_component

EVIL = ("(a+)+$", "a" * 40 + "b")


def graph(letters: int = 0) -> DynamoGraphDeployment:
    spec = DynamoGraphDeploymentSpec(backend_framework="x" * letters)
    return DynamoGraphDeployment(metadata=Metadata(name="g", namespace="n", uid="u"), spec=spec)


def test_small_objects_are_worked_on_at_once_and_large_ones_in_another_process() -> None:
    async def scenario() -> None:
        workers = WorkerPool()
        heavy = Offload(workers)
        try:
            assert ("a", "b") == await heavy.do(graph(), sorted, "ba")
            assert workers.processes == 0
            assert ("a", "b") == await heavy.do(graph(IN_PLACE_BYTES), sorted, "ba")
            assert workers.processes == 1
        finally:
            await workers.close()

    asyncio.run(scenario())


def test_work_that_was_ended_is_reported_and_not_begun_again_until_the_object_changes() -> None:
    async def scenario() -> None:
        workers, metrics = WorkerPool(), RuntimeMetrics(prefix=METRICS_PREFIX)
        heavy = Offload(workers, metrics, seconds=0.2)
        begun: list[int] = []
        reported: list[str] = []

        async def reconcile(found: DynamoGraphDeployment) -> Result:
            begun.append(len(str(found.spec.backend_framework)))
            if begun[-1] > IN_PLACE_BYTES:
                await heavy.do(found, re.findall, *EVIL)
            return DONE

        async def report(_: DynamoGraphDeployment, text: str) -> None:
            reported.append(text)

        large = graph(IN_PLACE_BYTES + 1)
        try:
            first = await heavy.reconciled(large, reconcile, report)
            again = await heavy.reconciled(large, reconcile, report)
            assert Result(RETRY_SECONDS) == first
            assert isinstance(again, Result)
            assert again.requeue_after_seconds or 0 <= RETRY_SECONDS
            assert len(begun) == len(reported) == 1
            assert "0.2 s of CPU time" in reported[0]
            count = metrics.registry.get_sample_value(
                "dynamo_operator_work_ended_total",
                {"resource_type": "DynamoGraphDeployment", "cause": "time"},
            )
            assert count == 1
            assert await heavy.reconciled(graph(3), reconcile, report) is DONE
        finally:
            await workers.close()

    asyncio.run(scenario())


def test_an_object_that_is_nested_too_deeply_is_reported() -> None:
    async def scenario() -> None:
        reported: list[str] = []

        async def reconcile(_: DynamoGraphDeployment) -> Result:
            raise RecursionError

        async def report(_: DynamoGraphDeployment, text: str) -> None:
            reported.append(text)

        assert Result(RETRY_SECONDS) == await Offload().reconciled(graph(), reconcile, report)
        assert ["Not processed: nested too deeply. Running pods keep running."] == reported

    asyncio.run(scenario())


def test_the_status_of_a_component_says_so() -> None:
    status = expensive_status(DynamoComponentDeployment(), "it took too long")
    for name in ("Available", "DynamoComponentReady"):
        found = condition(status.conditions, name)
        assert found is not None
        assert ("False", "TooExpensive") == (found.status, found.reason)


def test_what_services_share_counts_once_for_each_of_them() -> None:
    envs = tuple({"name": f"V{number}", "value": "x" * 90} for number in range(100))
    services: dict[str, dict[str, str]] = {f"s{number}": {} for number in range(20)}
    raw = {"metadata": {"name": "g"}, "spec": {"envs": envs, "services": services}}
    large = msgspec.convert(raw, DynamoGraphDeployment)
    assert weight_bytes(large) > 200_000
    found = graph_problems(large, RenderSettings(largest_object_bytes=100_000))
    assert any("in each of 20 services" in str(each) for each in found)
    assert not any("in each of" in str(each) for each in graph_problems(large, RenderSettings()))


def test_an_error_in_the_other_process_is_raised_here() -> None:
    async def scenario() -> None:
        workers = WorkerPool()
        try:
            with pytest.raises(TypeError):
                await Offload(workers).do(graph(IN_PLACE_BYTES), sorted, 3)
        finally:
            await workers.close()

    asyncio.run(scenario())


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
