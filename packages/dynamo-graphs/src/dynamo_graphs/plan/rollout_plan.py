"""The desired workers of a graph: the plan of every service, combined for the graph.

Services step independently, but an old revision is removed as a whole, when every service is complete: its
workers find no others. A service that has left the revisions is replaced by the same steps, by a component
with a plain name. Old components only ever get another number of replicas; their templates stay as they
were.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dynamo_graphs.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import WorkerGeneration, digits, generation_services
from dynamo_graphs.plan.budget import budget, is_recreated
from dynamo_graphs.plan.revisions import Member, Revisions
from dynamo_graphs.plan.rollout import (
    NOTHING,
    RolloutStep,
    is_through,
    recreating_step,
    rolling_step,
)
from kube_runtime.kind import Key
from kube_runtime.types.meta import condition

_KIND = DynamoComponentDeployment.KIND.name

SETTLE_SECONDS = 10.0
"""So long frontends may take to list workers that have become available."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The workers as they are to be now.

    `workers` is how to render them. `resized` are old components that get another number of replicas.
    `spared` are kinds and keys of old components that stay although nothing rendered has them; the others
    are to be deleted. `through` are the services that run the new generation only. `wait_seconds` is when
    the plan may change without an event; 0 for never.
    """

    generations: Revisions
    workers: WorkerGeneration
    resized: tuple[tuple[DynamoComponentDeployment, int], ...] = ()
    spared: frozenset[tuple[str, Key]] = frozenset()
    through: tuple[str, ...] = ()
    wait_seconds: float = 0.0
    leaving: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def target_hash(self) -> str:
        """The generation to be; "" where there are no generations."""
        return digits(self.workers.content)

    @property
    def is_under_way(self) -> bool:
        """Whether old workers are still there."""
        return self.generations.is_rolling_out


@dataclass(frozen=True, slots=True)
class _Planned:
    """One service: its step, whether it has arrived, when to look again without an event (0: never)."""

    step: RolloutStep
    old: tuple[Member, ...]
    is_through: bool
    wait_seconds: float = 0.0


def plan_rollout(
    graph: DynamoGraphDeployment,
    found: Revisions,
    now: datetime,
    *,
    leaving: Mapping[str, int] | None = None,
    settle_seconds: float = SETTLE_SECONDS,
) -> Rollout:
    """The next step of the workers of a graph whose replicas are those that are in force.

    `leaving` are the pods of old components that are still there, by the name of their component. None
    means: the pods are not counted, so that an old component is gone when its replicas are.
    """
    if not found.old:
        return Rollout(found, found.target, through=tuple(generation_services(graph)))
    clock, left = _Clock(now, settle_seconds), leaving or {}
    planned = {
        key: _planned(key, each, found, left, clock)
        for key, each in _replaced(graph, found).items()
    }
    through = tuple(key for key, each in planned.items() if each.is_through)
    is_over = len(through) == len(planned)
    waits = [each.wait_seconds for each in planned.values() if each.wait_seconds]
    return Rollout(
        found,
        replace(found.target, replicas={key: each.step.new for key, each in planned.items()}),
        () if is_over else tuple(_resized(planned.values())),
        frozenset() if is_over else frozenset((_KIND, each.component.key) for each in found.old),
        through,
        min(waits, default=0.0),
        left,
    )


def _replaced(graph: DynamoGraphDeployment, found: Revisions) -> dict[str, ComponentSpec]:
    """The services whose pods are replaced: those with generations, and those that have just left them."""
    services, old = generation_services(graph), {each.service for each in found.old}
    return {
        key: each
        for key, each in sorted(graph.spec.services.items())
        if key in services or key in old
    }


@dataclass(frozen=True, slots=True)
class _Clock:
    now: datetime
    settle_seconds: float

    def seconds_to_settle(self, new: Member | None) -> float | None:
        """How long new workers still have to be available. None means: some are not available at all."""
        found = condition(new.component.status.conditions, "Available") if new else None
        if found is None or found.status != "True" or found.last_transition_time is None:
            return None
        since = datetime.fromisoformat(found.last_transition_time)
        return max(0.0, self.settle_seconds - (self.now - since).total_seconds())


def _planned(
    key: str,
    service: ComponentSpec,
    found: Revisions,
    leaving: Mapping[str, int],
    clock: _Clock,
) -> _Planned:
    wanted = 1 if service.replicas is None else service.replicas
    heirs = (*found.new, *found.successors)
    member = next((each for each in heirs if each.service == key), None)
    new = member.side if member else NOTHING
    old = tuple(each for each in found.old if each.service == key)
    sides = [each.side for each in old]
    is_left = not any(leaving.get(each.name) for each in old)
    is_arrived = is_left and is_through(wanted, new, sides)
    if is_recreated(service):
        is_gone = is_left and not any(each.replicas or each.pods for each in sides)
        return _Planned(recreating_step(wanted, new, sides, is_gone=is_gone), old, is_arrived)
    left = clock.seconds_to_settle(member)
    step = rolling_step(wanted, budget(service, wanted), new, sides, is_settled=left == 0)
    wait = left if left and step.awaits_settling else 0.0
    return _Planned(step, old, is_arrived, wait)


def _resized(planned: Iterable[_Planned]) -> Iterator[tuple[DynamoComponentDeployment, int]]:
    """Old components that are asked for another number of replicas than the step says."""
    for each in planned:
        for member, replicas in zip(each.old, each.step.old, strict=True):
            if member.side.replicas != replicas:
                yield member.component, replicas
