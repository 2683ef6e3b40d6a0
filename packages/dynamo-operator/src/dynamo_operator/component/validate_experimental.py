"""The rules of GPU memory service, failover, checkpoint and the frontend beside a worker.

The operator does not act on these fields (`shared/inert.py`). The rules are those of the Go operator of
Dynamo 1.x, so that a manifest that it refuses is not stored either.
"""

from collections.abc import Iterator
from typing import Final

from dynamo_operator.component.api import ComponentSpec, is_worker
from dynamo_operator.component.framework import gpus
from dynamo_operator.shared.problems import Problem, ProblemKind
from dynamo_operator.shared.written import FRONTEND_SIDECAR
from kube_runtime.types.meta import Fields

INTRA_POD: Final = "intraPod"
INTER_POD: Final = "interPod"
_WITHOUT_ENGINES: Final = ("epp", "frontend", "planner")


def enabled(block: Fields | None) -> Fields | None:
    """The block of such a feature, or None if it is absent or switched off."""
    return block if block is not None and block.get("enabled") else None


def mode(block: Fields | None) -> str:
    """The mode of a feature that is enabled; "" for one that is not."""
    found = enabled(block)
    return "" if found is None else found.get("mode") or INTRA_POD


def experimental_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of the experimental features of a component, whose spec is at `path`."""
    yield from _memory_problems(spec, f"{path}.gpuMemoryService")
    yield from _failover_problems(spec, f"{path}.failover")
    yield from _checkpoint_problems(spec, f"{path}.checkpoint")
    if spec.frontend_sidecar is not None and FRONTEND_SIDECAR in _containers(spec):
        message = (
            f'cannot inject frontend sidecar: a container named "{FRONTEND_SIDECAR}" already exists in '
            "extraPodSpec.containers"
        )
        yield Problem(f"{path}.frontendSidecar", message, ProblemKind.FORBIDDEN)


def _containers(spec: ComponentSpec) -> set[object]:
    """The names of the containers beside the main one."""
    return {container.get("name") for container in (spec.extra_pod_spec or {}).get("containers") or ()}


def _memory_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    service = enabled(spec.gpu_memory_service)
    if service is None:
        return
    if not is_worker(spec):
        message = "GPU memory service is only supported for worker, prefill, or decode components"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    if not gpus(spec):
        message = "GPU memory service requires resources.limits.gpu >= 1"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    names, seen = _containers(spec) | {"main"}, set[str]()
    for index, name in enumerate(service.get("extraClientContainers") or ()):
        at = f"{path}.extraClientContainers[{index}]"
        if name in seen:
            yield Problem(at, f'duplicate container "{name}"', ProblemKind.DUPLICATE)
        elif name not in names:
            yield Problem(at, "does not name a container in extraPodSpec.containers")
        seen.add(name)


def _failover_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    own, memory = mode(spec.failover), mode(spec.gpu_memory_service)
    if not own:
        return
    if not memory:
        message = f'gpuMemoryService is required when failover mode is "{own}"'
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    elif own != memory:
        yield Problem(f"{path}.mode", f'must match gpuMemoryService.mode "{memory}"')
    shadows = (spec.failover or {}).get("numShadows")
    if own == INTRA_POD and shadows not in (None, 0, 1):
        message = (
            'is invalid for mode="intraPod": intraPod uses a fixed 1 primary + 1 shadow sidecar; use '
            'failover.mode="interPod" to configure numShadows'
        )
        yield Problem(f"{path}.numShadows", message)
    if own == INTER_POD and not gpus(spec):
        message = "GMS failover requires at least 1 GPU in resources.limits.gpu"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    if own == INTER_POD and spec.component_type in _WITHOUT_ENGINES:
        message = f'GMS failover is not supported for component type "{spec.component_type}"'
        yield Problem(path, message, ProblemKind.FORBIDDEN)


def _checkpoint_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    checkpoint, memory = spec.checkpoint or {}, mode(spec.gpu_memory_service)
    if enabled(checkpoint) and memory == INTER_POD:
        message = "Snapshot with gpuMemoryService.mode=interPod is unsupported"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    if enabled(checkpoint) and mode(spec.failover):
        message = "Snapshot with active/passive failover is temporarily unsupported"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    if (checkpoint.get("job") or {}).get("gmsClientContainers"):
        at = f"{path}.job.gmsClientContainers"
        if not memory:
            yield Problem(at, "requires gpuMemoryService to be set", ProblemKind.FORBIDDEN)
        elif memory == INTER_POD:
            message = "is only supported with gpuMemoryService.mode=intraPod"
            yield Problem(at, message, ProblemKind.FORBIDDEN)


def experimental_update_problems(
    old: ComponentSpec, new: ComponentSpec, path: str, kind: str
) -> Iterator[Problem]:
    """Refuse changes of what replaces pods by others; `kind` is that of the object."""
    again = f"delete and recreate the {kind}"
    was, is_ = (mode(spec.gpu_memory_service) == INTER_POD for spec in (old, new))
    if was != is_:
        message = f"the inter-pod GMS layout cannot be toggled after creation; {again}"
        yield Problem(f"{path}.gpuMemoryService.mode", message, ProblemKind.FORBIDDEN)
    was, is_ = (mode(spec.failover) == INTER_POD for spec in (old, new))
    if was != is_:
        message = f"inter-pod GMS failover cannot be toggled after creation; {again}"
        yield Problem(f"{path}.failover", message, ProblemKind.FORBIDDEN)
    elif is_ and _shadows(old) != _shadows(new):
        message = f"is immutable for inter-pod GMS failover; {again} to change it"
        yield Problem(f"{path}.failover.numShadows", message, ProblemKind.FORBIDDEN)
    if old.topology_constraint != new.topology_constraint:
        yield topology_problem(f"{path}.topologyConstraint", kind)


def topology_problem(path: str, kind: str) -> Problem:
    """The problem of a topology constraint that an update changes."""
    message = (
        "is immutable and cannot be added, removed, or changed after creation; delete and recreate the "
        f"{kind} to change topology constraints"
    )
    return Problem(path, message, ProblemKind.FORBIDDEN)


def _shadows(spec: ComponentSpec) -> object:
    return (spec.failover or {}).get("numShadows") or 1
