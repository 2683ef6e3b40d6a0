"""Which revisions of workers a graph has, which one serves, and which one is desired.

Only the components themselves are reliable: annotations of the graph get lost when it is replaced, and the
process that wrote a component may have been stopped right after. So every component records what it was
created for, and the rest is derived.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import (
    FOUND_BY,
    LATEST,
    PLAIN,
    WorkerGeneration,
    can_be_isolated,
    digits,
    first_generation,
    found_by,
    generation_services,
    is_managed,
    version_of,
    worker_content,
)
from dynamo_graphs.plan.rollout import RevisionScale


@dataclass(frozen=True, slots=True)
class Member:
    """A service in one generation: a component that exists. "" as content means: it notes none."""

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
        """Its numbers for the plan. What has not been reported yet may be as much as was asked for."""
        spec, status = self.component.spec, self.component.status
        replicas = spec.desired_replicas
        counts = status.service
        if counts is None:
            return RevisionScale(replicas, 0, replicas)
        pods = counts.replicas
        if status.observed_generation < self.component.metadata.generation:
            pods = max(pods, replicas)
        # Groups of pods have no number of available replicas; then those that are ready serve.
        serving = counts.available_replicas
        serving = counts.ready_replicas if serving is None else serving
        return RevisionScale(replicas, serving or 0, pods)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The workers of a graph: how new ones are to be made, what there is, what was current so far.

    `current` is the hash of the generation that serves, as digits; "" when there is none. `new` and `old`
    are members of the generation to be and of all others, these from the oldest to the newest.

    A service may leave the generations, by another Dynamo namespace or more nodes, while one of them serves
    for it. Its members are `old` then, and its component under the plain name is among the `successors`.
    """

    target: WorkerGeneration = PLAIN
    current: str = ""
    new: tuple[Member, ...] = ()
    old: tuple[Member, ...] = ()
    successors: tuple[Member, ...] = ()

    @property
    def is_rolling_out(self) -> bool:
        """Whether workers of an older generation are still there."""
        return bool(self.old)


def members(
    graph: DynamoGraphDeployment, components: Iterable[DynamoComponentDeployment]
) -> tuple[Member, ...]:
    """Those of a graph's components that are workers in a generation, the oldest first.

    A component under a plain name belongs to the service that has this name now, whatever it was made for:
    it is a worker if that one is, and no worker if that one is none.
    """
    services = generation_services(graph)
    plain = {names.component_name(graph.metadata.name, key): key for key in graph.spec.services}
    workers = []
    for component in components:
        suffix = component.metadata.labels.get(labels.WORKER_HASH, "")
        key = plain.get(component.metadata.name)
        is_worker = can_be_isolated(component.spec) if key is None else key in services
        if suffix or is_worker:
            workers.append(_member(component))
    return tuple(sorted(workers, key=_age))


def revisions(
    graph: DynamoGraphDeployment,
    components: Collection[DynamoComponentDeployment],
    *,
    unchanged: Collection[str] = (),
) -> Revisions:
    """The generations of a graph that has these components.

    `unchanged` are the names of components under plain names that say already what the graph says now. It
    is asked for those that note no content, such as were made before rollouts were managed.
    """
    if is_on_grove(graph):
        return Revisions()
    workers = members(graph, components)
    if not is_managed(graph) and not any(member.suffix for member in workers):
        return Revisions()
    if not workers:
        return Revisions(first_generation(graph))
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
    services = generation_services(graph)
    suffix = _target(graph, contents, current, desired)
    target = WorkerGeneration(suffix, desired, _found_by(graph, components, groups))
    if not services:  # it will be empty
        target = replace(target, suffix="", content="")
    left = frozenset(graph.spec.services.keys() - services.keys())
    old = tuple(member for member in workers if member.suffix != suffix or member.service in left)
    heirs = {
        names.component_name(graph.metadata.name, member.service)
        for member in old
        if member.service in left
    }
    return Revisions(
        target,
        digits(contents[current]) or current,
        tuple(
            member for member in workers if member.suffix == suffix and member.service not in left
        ),
        old,
        tuple(_member(component) for component in components if component.metadata.name in heirs),
    )


def unnoted(graph: DynamoGraphDeployment, workers: Iterable[Member]) -> tuple[Member, ...]:
    """Members that note no content that we can compute: whether they are up to date must be compared."""
    if not is_managed(graph):
        return ()
    return tuple(
        member for member in workers if not member.suffix and not version_of(member.content)
    )


def _member(component: DynamoComponentDeployment) -> Member:
    metadata = component.metadata
    content = metadata.annotations.get(labels.WORKER_CONTENT, "")
    return Member(component, metadata.labels.get(labels.WORKER_HASH, ""), content)


def _age(member: Member) -> tuple[str, str]:
    metadata = member.component.metadata
    return metadata.creation_timestamp or "", metadata.name


def _content(group: Iterable[Member]) -> str:
    """What a generation was made for, if its members agree on that."""
    contents = {member.content for member in group}
    return contents.pop() if len(contents) == 1 else ""


def _current(graph: DynamoGraphDeployment, groups: Mapping[str, list[Member]]) -> str:
    """The suffix of the generation that serves: the one on record, else the most available, the newest."""
    recorded = graph.metadata.annotations.get(labels.CURRENT_WORKER_HASH)
    if recorded:
        for suffix, group in groups.items():
            if recorded == (digits(_content(group)) or suffix):
                return suffix

    def rank(suffix: str) -> tuple[int, tuple[str, str]]:
        group = groups[suffix]
        return sum(member.scale.serving for member in group), max(map(_age, group))

    return max(groups, key=rank)


def _target(
    graph: DynamoGraphDeployment, contents: Mapping[str, str], current: str, desired: str
) -> str:
    """The suffix of the generation to be: one that is there and fits, before a new one.

    Without managed rollouts there are no new ones: the newest that has a name of its own is changed in place,
    so that a rollout in progress ends well.
    """
    if contents[current] == desired:
        return current
    fitting = [suffix for suffix, content in contents.items() if content == desired]
    if fitting:
        return fitting[-1]
    if not is_managed(graph):
        return [suffix for suffix in contents if suffix][-1]
    suffix = digits(desired)
    while suffix in contents:  # workers that were changed in place kept their name
        suffix = names.short_hash(suffix)
    return suffix


def _found_by(
    graph: DynamoGraphDeployment,
    components: Iterable[DynamoComponentDeployment],
    groups: Mapping[str, list[Member]],
) -> str:
    """What frontends look for. Once it was the wide prefix it stays, while rollouts are managed."""
    wide, narrow = found_by(graph, finds_plain=True), found_by(graph, finds_plain=False)
    if "" in groups or narrow == wide:
        return wide
    prefixes = {
        entry.get("value")
        for component in components
        for entry in component.spec.envs
        if entry.get("name") == FOUND_BY
    }
    return wide if is_managed(graph) and wide in prefixes else narrow
