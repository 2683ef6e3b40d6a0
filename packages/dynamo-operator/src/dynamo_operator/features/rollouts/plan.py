"""Managed rollouts: the revisions of workers, and the next step from the old ones to the new one."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.features.rollouts.revisions import (
    LATEST,
    NAMESPACE_PREFIX_VARIABLE,
    PLAIN,
    WorkerRevision,
    digits,
    first_revision,
    has_revisions,
    is_managed,
    namespace_prefix,
    revised_services,
    version_of,
    worker_content,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import is_on_grove
from dynamo_operator.shared.cluster import ReplicasSpec
from kube_runtime.times import seconds_between
from kube_runtime.types.meta import Key, Resource, condition


class ComponentScale(Resource):
    """The scale subresource of a component. Its own type keeps it out of the cache of components."""

    KIND = DynamoComponentDeployment.KIND

    spec: ReplicasSpec = ReplicasSpec()


_AMOUNT = re.compile(r"(?P<number>\d{1,9})(?P<percent>%)?", re.ASCII)
_DEFAULT = {"number": "25", "percent": "%"}
"""Also for invalid amounts, which validation accepts where they have no effect."""


# All old revisions are one pool, so unavailable pods are deleted first, whichever revision they
# belong to. Every input is an observed number and every result a desired one, so a step never
# depends on the one before it, and a step that was applied in part is harmless. With `cap` =
# desired + surge and `floor` = desired - unavailable:
#
# - (a) No step raises the replicas of all revisions above `cap`. If they exceed it already, because the
#   service was scaled down, no step raises them until they are below.
# - (b) No step takes the available replicas below `floor`, or below their present number if that is less.
# - (c) No available replica of the pool is deleted while an unavailable one could be.
# - (d) If the new pods become available, the rollout ends.
# - (e) It can stop between any two writes and continues from the observed state.
@dataclass(frozen=True, slots=True)
class Budget:
    """Replicas above the desired number that may exist, and below it that may be missing; never both 0."""

    surge: int
    unavailable: int


def budget(service: ComponentSpec, desired: int) -> Budget:
    """Return the budget of a service with so many desired replicas."""
    extra = service.extra_pod_metadata.annotations if service.extra_pod_metadata else {}
    annotations = service.annotations | extra
    surge = _amount(annotations.get(labels.MAX_SURGE), desired, rounds_up=True)
    unavailable = _amount(annotations.get(labels.MAX_UNAVAILABLE), desired, rounds_up=False)
    unavailable = min(unavailable, desired)
    return Budget(surge, unavailable) if surge or unavailable else Budget(1, 0)


def is_recreated(service: ComponentSpec) -> bool:
    """Whether old pods must be gone before new ones start; then no budget applies."""
    return service.annotations.get(labels.STRATEGY) == "Recreate"


def _amount(text: str | None, desired: int, *, rounds_up: bool) -> int:
    match = _AMOUNT.fullmatch(text or "") or _DEFAULT
    number = int(match["number"])
    if not match["percent"]:
        return number
    share = number * desired
    return -(-share // 100) if rounds_up else share // 100


@dataclass(frozen=True, slots=True)
class RevisionScale:
    """The scale of a service in one revision: `replicas` are desired, `available` are serving.

    `pods` exist without being deleted: more than `replicas` for a moment after a scale-down.
    """

    replicas: int
    available: int = 0
    pods: int = 0

    @property
    def serving(self) -> int:
        """Available replicas that will stay: after a scale-down, counts lag behind."""
        return min(self.available, self.replicas)


NOTHING = RevisionScale(0)


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The replicas to set: of the new revision, and of each old one in the order given.

    `awaits_settling` is true if the last old replica stays only until the new ones have settled.
    """

    new: int
    old: tuple[int, ...]
    awaits_settling: bool = False


def rolling_step(
    desired: int, budget: Budget, new: RevisionScale, old: Sequence[RevisionScale], *, is_settled: bool
) -> RolloutStep:
    """Plan the next step of a rolling replacement; `old` are sorted from the oldest revision to the newest.

    `is_settled` is true once all replicas of the new revision have been available for so long that the
    frontends know them. Until then the last serving old replica stays, if there is room for it.
    """
    cap, floor = desired + budget.surge, desired - budget.unavailable
    left = [scale.replicas for scale in old]
    spare = max(0, new.serving + sum(left) - floor)
    # Unavailable replicas first, but not all at once: they may still become available.
    for index, scale in enumerate(old):
        cut = min(scale.replicas - scale.serving, spare)
        left[index] -= cut
        spare -= cut
    serving = sum(scale.serving for scale in old)
    beside_one = min(desired, cap - 1)
    # Whether frontends know as many new replicas as fit beside one old replica.
    is_taken_up = beside_one <= 0 or (new.serving >= beside_one and is_settled)
    is_held = serving > 0 and not is_taken_up
    may_go = min(spare, serving - 1 if is_held else serving)
    for index, scale in enumerate(old):
        cut = min(scale.serving, may_go)
        left[index] -= cut
        may_go -= cut
    awaits = is_held and sum(left) == 1 and spare >= serving
    # New replicas only fill the room that old pods have already left.
    room = cap - sum(max(scale.replicas, scale.pods) for scale in old)
    grown = desired if new.replicas >= desired else max(new.replicas, min(desired, room))
    return RolloutStep(grown, tuple(left), awaits)


# Everything is derived from the components, each of which records the revision that it was created
# for. Annotations of the graph are lost when a user replaces it, and the operator may stop right
# after it created a component.
@dataclass(frozen=True, slots=True)
class Member:
    """An existing component: one service in one revision. `content` is "" if it records none."""

    component: DynamoComponentDeployment
    suffix: str
    content: str

    @property
    def name(self) -> str:
        """The component's name."""
        return self.component.metadata.name

    @property
    def service(self) -> str:
        """The service's key in the graph."""
        return self.component.spec.service_name or ""

    @property
    def scale(self) -> RevisionScale:
        """Its scale. Until its status is current, as many pods as desired may exist."""
        spec, status = self.component.spec, self.component.status
        replicas = spec.desired_replicas
        counts = status.service
        if counts is None:
            return RevisionScale(replicas, 0, replicas)
        pods = counts.replicas
        if status.observed_generation < self.component.metadata.generation:
            pods = max(pods, replicas)
        # Multinode workloads report ready replicas only.
        serving = counts.available_replicas
        serving = counts.ready_replicas if serving is None else serving
        return RevisionScale(replicas, serving or 0, pods)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revisions of a graph's workers.

    `target` is the desired revision, `current` the hash of the serving one, as digits; "" without one. `new`
    are the members of the desired revision, `old` those of all others, the oldest first. A service that
    moves to the shared Dynamo namespace or to several nodes loses its revisions: its members are then `old`,
    and its component under the plain name is among the `successors`.
    """

    target: WorkerRevision = PLAIN
    current: str = ""
    new: tuple[Member, ...] = ()
    old: tuple[Member, ...] = ()
    successors: tuple[Member, ...] = ()

    @property
    def is_rolling_out(self) -> bool:
        """Whether workers of an older revision still exist."""
        return bool(self.old)


def members(
    graph: DynamoGraphDeployment, components: Iterable[DynamoComponentDeployment]
) -> tuple[Member, ...]:
    """Return the components of a graph that belong to a revision, the oldest first.

    A component under a plain name belongs to the service that has this name now, whatever it was created for.
    """
    services = revised_services(graph)
    plain = {names.component_name(graph.metadata.name, key): key for key in graph.spec.services}
    workers = []
    for component in components:
        member, key = _member(component), plain.get(component.metadata.name)
        is_revised = has_revisions(component.spec) if key is None else key in services
        if member.suffix or is_revised:
            workers.append(member)
    return tuple(sorted(workers, key=_age))


def revisions(
    graph: DynamoGraphDeployment,
    components: Collection[DynamoComponentDeployment],
    *,
    unchanged: Collection[str] = (),
) -> Revisions:
    """The revisions of a graph with these components; `unchanged` names `unrecorded` ones that match it."""
    if is_on_grove(graph):
        return Revisions()
    workers = members(graph, components)
    if not is_managed(graph) and not any(member.suffix for member in workers):
        return Revisions()
    if not workers:
        return Revisions(first_revision(graph))
    groups: dict[str, list[Member]] = {}
    for member in workers:
        groups.setdefault(member.suffix, []).append(member)
    current = _current(graph, groups)
    version = version_of(_content(groups[current])) or LATEST
    desired = worker_content(graph, version)
    contents = {
        suffix: desired if all(member.name in unchanged for member in group) else _content(group)
        for suffix, group in groups.items()
    }
    suffix = _target(graph, contents, current, desired)
    prefix = _namespace_prefix(graph, components, groups)
    services = revised_services(graph)
    target = WorkerRevision(suffix if services else "", desired if services else "", prefix)
    left = graph.spec.services.keys() - services.keys()
    new = {
        member.name: member for member in workers if member.suffix == suffix and member.service not in left
    }
    old = [member for member in workers if member.name not in new]
    left_names = {
        names.component_name(graph.metadata.name, key) for key in left & {member.service for member in old}
    }
    successors = [_member(component) for component in components if component.metadata.name in left_names]
    serving = digits(contents[current]) or current
    return Revisions(target, serving, tuple(new.values()), tuple(old), tuple(successors))


def unrecorded(graph: DynamoGraphDeployment, workers: Iterable[Member]) -> tuple[Member, ...]:
    """Members without a hash that this operator can compute, such as those from before managed rollouts.

    Only comparing their specs shows whether they are up to date.
    """
    workers = workers if is_managed(graph) else ()
    return tuple(member for member in workers if not member.suffix and not version_of(member.content))


def _member(component: DynamoComponentDeployment) -> Member:
    metadata = component.metadata
    content = metadata.annotations.get(labels.WORKER_CONTENT, "")
    return Member(component, metadata.labels.get(labels.WORKER_HASH, ""), content)


def _age(member: Member) -> tuple[str, str]:
    metadata = member.component.metadata
    return metadata.creation_timestamp or "", metadata.name


def _content(group: Iterable[Member]) -> str:
    contents = {member.content for member in group}
    return contents.pop() if len(contents) == 1 else ""


def _current(graph: DynamoGraphDeployment, groups: Mapping[str, list[Member]]) -> str:
    """The suffix of the serving revision: the recorded one, else the most available, then the newest."""
    if recorded := graph.metadata.annotations.get(labels.CURRENT_WORKER_HASH):
        for suffix, group in groups.items():
            if recorded == (digits(_content(group)) or suffix):
                return suffix

    def rank(suffix: str) -> tuple[int, tuple[str, str]]:
        group = groups[suffix]
        return sum(member.scale.serving for member in group), max(map(_age, group))

    return max(groups, key=rank)


def _target(graph: DynamoGraphDeployment, contents: Mapping[str, str], current: str, desired: str) -> str:
    """The suffix of the desired revision: an existing one with the desired content, else a new one."""
    if contents[current] == desired:
        return current
    if fitting := [suffix for suffix, content in contents.items() if content == desired]:
        return fitting[-1]
    if not is_managed(graph):
        # No new revisions: the newest one is changed in place, so that a rollout in progress can end.
        return [suffix for suffix in contents if suffix][-1]
    suffix = digits(desired)
    while suffix in contents:  # taken by workers that were changed in place
        suffix = names.short_hash(suffix)
    return suffix


def _namespace_prefix(
    graph: DynamoGraphDeployment,
    components: Iterable[DynamoComponentDeployment],
    groups: Mapping[str, list[Member]],
) -> str:
    """The prefix that frontends look for. A wide prefix stays wide while rollouts are managed."""
    wide, narrow = (namespace_prefix(graph, finds_plain=finds_plain) for finds_plain in (True, False))
    if "" in groups or narrow == wide:
        return wide
    prefixes = {
        entry.get("value")
        for component in components
        for entry in component.spec.envs
        if entry.get("name") == NAMESPACE_PREFIX_VARIABLE
    }
    return wide if is_managed(graph) and wide in prefixes else narrow


_KIND = DynamoComponentDeployment.KIND.name

SETTLE_SECONDS = 10.0
"""Time that frontends may take to list workers that have become available."""


# Services step independently, but an old revision is deleted as a whole when every service is
# complete, since its workers find no others. A service that no longer has revisions is replaced by
# the same steps, by a component with a plain name. Old components are only scaled; their templates
# never change.
@dataclass(frozen=True, slots=True)
class Rollout:
    """The next step of a rollout; `workers` is the revision to render.

    `resized` are old components with their new number of replicas, `spared` those not to delete although they
    are not rendered. `through` are the services that run the new revision only, `wait_seconds` the time until
    the plan may change without an event, 0 for never, and `leaving` counts pods of old components that exist.
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
) -> Rollout:
    """Plan the next step for a graph whose services have their effective replicas.

    `leaving` counts the pods of old components by component. If None, one is gone when its replicas are.
    """
    if not revisions.old:
        return Rollout(revisions, revisions.target, through=tuple(revised_services(graph)))
    left = leaving or {}
    # Also services that no longer have revisions.
    replaced = revised_services(graph).keys() | {member.service for member in revisions.old}
    planned = {
        key: _planned(key, service, revisions, left, now)
        for key, service in sorted(graph.spec.services.items())
        if key in replaced
    }
    through = tuple(key for key, service in planned.items() if service.is_through)
    is_over = len(through) == len(planned)
    # Only those whose replicas differ from the step.
    resized = (
        (member.component, replicas)
        for service in planned.values()
        for member, replicas in zip(service.old, service.step.old, strict=True)
        if member.scale.replicas != replicas
    )
    waits = [service.wait_seconds for service in planned.values() if service.wait_seconds]
    return Rollout(
        revisions,
        replace(revisions.target, replicas={key: service.step.new for key, service in planned.items()}),
        () if is_over else tuple(resized),
        frozenset() if is_over else frozenset((_KIND, member.component.key) for member in revisions.old),
        through,
        min(waits, default=0.0),
        left,
    )


def _seconds_to_settle(new: Member | None, now: datetime) -> float | None:
    """Seconds until new workers count as settled; None while some are not available."""
    available = condition(new.component.status.conditions, "Available") if new else None
    if available is None or available.status != "True":
        return None
    passed = seconds_between(available.last_transition_time, now)
    return None if passed is None else max(0.0, SETTLE_SECONDS - passed)


def _planned(
    key: str, service: ComponentSpec, revisions: Revisions, leaving: Mapping[str, int], now: datetime
) -> _Planned:
    desired = service.desired_replicas
    candidates = (*revisions.new, *revisions.successors)
    member = next((candidate for candidate in candidates if candidate.service == key), None)
    new = member.scale if member else NOTHING
    old = tuple(member for member in revisions.old if member.service == key)
    scales = [member.scale for member in old]
    has_pods = any(leaving.get(member.name) for member in old)
    is_gone = not has_pods and not any(scale.replicas or scale.pods for scale in scales)
    is_complete = is_gone and new.replicas == desired and new.serving >= desired
    if is_recreated(service):
        # Old and new pods must not overlap.
        step = RolloutStep(desired if is_gone else min(new.replicas, desired), (0,) * len(old))
        return _Planned(step, old, is_complete)
    left = _seconds_to_settle(member, now)
    step = rolling_step(desired, budget(service, desired), new, scales, is_settled=left == 0)
    return _Planned(step, old, is_complete, left if left and step.awaits_settling else 0.0)
