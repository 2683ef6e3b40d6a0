"""The next step of a managed rollout of a graph's workers, combined from the steps of its services.

Services step independently, but an old revision is deleted as a whole when every service is complete,
since its workers find no others. A service that no longer has revisions is replaced by the same steps,
by a component with a plain name. Old components are only scaled; their templates never change.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dynamo_graphs.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import WorkerRevision, digits, revised_services
from dynamo_graphs.plan.revisions import Member, Revisions
from dynamo_graphs.plan.rollout import (
    NOTHING,
    RolloutStep,
    budget,
    is_recreated,
    is_through,
    recreating_step,
    rolling_step,
)
from kube_runtime.kind import Key
from kube_runtime.times import seconds_between
from kube_runtime.types.meta import condition

_KIND = DynamoComponentDeployment.KIND.name

SETTLE_SECONDS = 10.0
"""Time that frontends may take to list workers that have become available."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The next step of a rollout.

    `workers` is the revision to render. `resized` are old components with their new number of replicas.
    `spared` are kinds and keys of old components that must not be deleted although they are not rendered.
    `through` are the services that run the new revision only. `wait_seconds` is the time until the plan may
    change without an event; 0 for never. `leaving` counts the pods of old components that still exist.
    """

    revisions: Revisions
    workers: WorkerRevision
    resized: tuple[tuple[DynamoComponentDeployment, int], ...] = ()
    spared: frozenset[tuple[str, Key]] = frozenset()
    through: tuple[str, ...] = ()
    wait_seconds: float = 0.0
    leaving: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def target_hash(self) -> str:
        """The hash of the desired revision; "" without revisions."""
        return digits(self.workers.content)

    @property
    def is_under_way(self) -> bool:
        """Whether old workers still exist."""
        return self.revisions.is_rolling_out


@dataclass(frozen=True, slots=True)
class _Planned:
    """The step of one service. `wait_seconds` is the time until it may change without an event (0: never)."""

    step: RolloutStep
    old: tuple[Member, ...]
    is_through: bool
    wait_seconds: float = 0.0


def plan_rollout(
    graph: DynamoGraphDeployment,
    revisions: Revisions,
    now: datetime,
    *,
    leaving: Mapping[str, int] | None = None,
    settle_seconds: float = SETTLE_SECONDS,
) -> Rollout:
    """Plan the next step for a graph whose services have their effective replicas.

    `leaving` counts the pods of old components that still exist, by component. If it is None, pods are not
    counted, and an old component is gone when its replicas are.
    """
    if not revisions.old:
        return Rollout(revisions, revisions.target, through=tuple(revised_services(graph)))
    clock, left = _Clock(now, settle_seconds), leaving or {}
    # Also services that no longer have revisions.
    replaced = revised_services(graph).keys() | {member.service for member in revisions.old}
    planned = {
        key: _planned(key, service, revisions, left, clock)
        for key, service in sorted(graph.spec.services.items())
        if key in replaced
    }
    through = tuple(key for key, service_plan in planned.items() if service_plan.is_through)
    is_over = len(through) == len(planned)
    waits = [
        service_plan.wait_seconds for service_plan in planned.values() if service_plan.wait_seconds
    ]
    return Rollout(
        revisions,
        replace(
            revisions.target,
            replicas={key: service_plan.step.new for key, service_plan in planned.items()},
        ),
        () if is_over else tuple(_resized(planned.values())),
        frozenset()
        if is_over
        else frozenset((_KIND, member.component.key) for member in revisions.old),
        through,
        min(waits, default=0.0),
        left,
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    now: datetime
    settle_seconds: float

    def seconds_to_settle(self, new: Member | None) -> float | None:
        """Seconds until new workers count as settled; None while some are not available."""
        available = condition(new.component.status.conditions, "Available") if new else None
        if available is None or available.status != "True":
            return None
        passed = seconds_between(available.last_transition_time, self.now)
        return None if passed is None else max(0.0, self.settle_seconds - passed)


def _planned(
    key: str,
    service: ComponentSpec,
    revisions: Revisions,
    leaving: Mapping[str, int],
    clock: _Clock,
) -> _Planned:
    desired = service.desired_replicas
    candidates = (*revisions.new, *revisions.successors)
    member = next((candidate for candidate in candidates if candidate.service == key), None)
    new = member.scale if member else NOTHING
    old = tuple(member for member in revisions.old if member.service == key)
    scales = [member.scale for member in old]
    is_left = not any(leaving.get(member.name) for member in old)
    is_complete = is_left and is_through(desired, new, scales)
    if is_recreated(service):
        is_gone = is_left and not any(scale.replicas or scale.pods for scale in scales)
        return _Planned(recreating_step(desired, new, scales, is_gone=is_gone), old, is_complete)
    left = clock.seconds_to_settle(member)
    step = rolling_step(desired, budget(service, desired), new, scales, is_settled=left == 0)
    wait = left if left and step.awaits_settling else 0.0
    return _Planned(step, old, is_complete, wait)


def _resized(planned: Iterable[_Planned]) -> Iterator[tuple[DynamoComponentDeployment, int]]:
    """Yield the old components whose replicas differ from the step, with their new number."""
    for service_plan in planned:
        for member, replicas in zip(service_plan.old, service_plan.step.old, strict=True):
            if member.scale.replicas != replicas:
                yield member.component, replicas
