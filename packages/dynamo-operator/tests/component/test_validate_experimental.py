"""The rules of GPU memory service, failover and checkpoint, in a component."""

from typing import Any

import pytest

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.component.validate_experimental import (
    experimental_problems,
    experimental_update_problems,
)
from kube_runtime.types.meta import Object, from_plain

GPU: Object = {"resources": {"limits": {"gpu": "1"}}}
MEMORY: Object = {"gpuMemoryService": {"enabled": True}, **GPU}
APART: Object = {"gpuMemoryService": {"enabled": True, "mode": "interPod"}, **GPU}
SIDE: Object = {"extraPodSpec": {"containers": [{"name": "side"}]}}


def spec(**fields: Any) -> ComponentSpec:
    return from_plain({"componentType": "worker", **fields}, ComponentSpec)


def problems(**fields: Any) -> list[str]:
    return [str(problem) for problem in experimental_problems(spec(**fields), "spec")]


def clients(*names: str, mode: str = "intraPod") -> Object:
    return {"gpuMemoryService": {"enabled": True, "mode": mode, "extraClientContainers": names}, **GPU}


def failover(mode: str = "intraPod", **fields: Any) -> Object:
    return {"failover": {"enabled": True, "mode": mode, **fields}}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"gpuMemoryService": {"enabled": False}, "failover": {"enabled": False}},
        MEMORY,
        {**clients("main", "side"), **SIDE},
        {**MEMORY, **failover(numShadows=1)},
        {**APART, **failover("interPod", numShadows=3)},
        {"checkpoint": {"enabled": True}},
        {**MEMORY, "checkpoint": {"enabled": True, "job": {"gmsClientContainers": ["main"]}}},
    ],
)
def test_a_component_without_problems(fields: Object) -> None:
    assert [] == problems(**fields)


ONLY_WORKERS = "GPU memory service is only supported for worker, prefill, or decode components"
NO_CONTAINER = "does not name a container in extraPodSpec.containers"
TAKEN = 'a container named "sidecar-frontend" already exists in extraPodSpec.containers'
ONE_SHADOW = (
    'is invalid for mode="intraPod": intraPod uses a fixed 1 primary + 1 shadow sidecar; use '
    'failover.mode="interPod" to configure numShadows'
)
AGAIN = "delete and recreate the DynamoGraphDeployment"
IMMUTABLE = "is immutable and cannot be added, removed, or changed after creation"
REFUSED: list[tuple[Object, list[str]]] = [
    (
        {"componentType": "frontend", "gpuMemoryService": {"enabled": True}},
        [
            f"spec.gpuMemoryService: {ONLY_WORKERS}",
            "spec.gpuMemoryService: GPU memory service requires resources.limits.gpu >= 1",
        ],
    ),
    (
        clients("other", "main", "main"),
        [
            f"spec.gpuMemoryService.extraClientContainers[0]: {NO_CONTAINER}",
            'spec.gpuMemoryService.extraClientContainers[2]: duplicate container "main"',
        ],
    ),
    (
        {"frontendSidecar": {"image": "i"}, "extraPodSpec": {"containers": [{"name": "sidecar-frontend"}]}},
        [f"spec.frontendSidecar: cannot inject frontend sidecar: {TAKEN}"],
    ),
    (failover(), ['spec.failover: gpuMemoryService is required when failover mode is "intraPod"']),
    ({**APART, **failover()}, ['spec.failover.mode: must match gpuMemoryService.mode "interPod"']),
    ({**MEMORY, **failover(numShadows=2)}, [f"spec.failover.numShadows: {ONE_SHADOW}"]),
    (
        {**APART, **failover("interPod"), "checkpoint": {"enabled": True}},
        [
            "spec.checkpoint: Snapshot with gpuMemoryService.mode=interPod is unsupported",
            "spec.checkpoint: Snapshot with active/passive failover is temporarily unsupported",
        ],
    ),
    (
        {"checkpoint": {"job": {"gmsClientContainers": ["main"]}}},
        ["spec.checkpoint.job.gmsClientContainers: requires gpuMemoryService to be set"],
    ),
    (
        {**APART, "checkpoint": {"job": {"gmsClientContainers": ["main"]}}},
        ["spec.checkpoint.job.gmsClientContainers: is only supported with gpuMemoryService.mode=intraPod"],
    ),
]


@pytest.mark.parametrize(("fields", "expected"), REFUSED)
def test_a_component_is_refused_in_these_words(fields: Object, expected: list[str]) -> None:
    assert expected == problems(**fields)


def test_failover_between_pods_needs_engines_with_gpus() -> None:
    reported = problems(componentType="planner", **failover("interPod"))
    assert "spec.failover: GMS failover requires at least 1 GPU in resources.limits.gpu" in reported
    assert 'spec.failover: GMS failover is not supported for component type "planner"' in reported


CHANGES: list[tuple[Object, Object, list[str]]] = [
    (MEMORY, {}, []),
    (
        MEMORY,
        APART,
        [f"spec.gpuMemoryService.mode: the inter-pod GMS layout cannot be toggled after creation; {AGAIN}"],
    ),
    (
        APART,
        {**APART, **failover("interPod")},
        [f"spec.failover: inter-pod GMS failover cannot be toggled after creation; {AGAIN}"],
    ),
    (
        {**APART, **failover("interPod")},
        {**APART, **failover("interPod", numShadows=2)},
        [f"spec.failover.numShadows: is immutable for inter-pod GMS failover; {AGAIN} to change it"],
    ),
    (
        {},
        {"topologyConstraint": {"packDomain": "rack"}},
        [f"spec.topologyConstraint: {IMMUTABLE}; {AGAIN} to change topology constraints"],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_a_change_is_refused_in_these_words(old: Object, new: Object, expected: list[str]) -> None:
    found = experimental_update_problems(spec(**old), spec(**new), "spec", "DynamoGraphDeployment")
    assert expected == [str(problem) for problem in found]
