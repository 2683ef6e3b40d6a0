"""Which revisions of workers a graph has, which one serves, and which one is desired.

Everything is derived from the components, each of which records the revision that it was created for.
Annotations of the graph are lost when a user replaces it, and the operator may stop right after it created a
component.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import (
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
from dynamo_graphs.plan.rollout import RevisionScale


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

    `target` is the desired revision, `current` the hash of the serving one, as digits; "" without one.
    `new` are the members of the desired revision, `old` those of all others, from the oldest to the
    newest.

    A service loses its revisions when it moves to the shared Dynamo namespace or to several nodes. Its
    members are then `old`, and its component under the plain name is among the `successors`.
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
        suffix = component.metadata.labels.get(labels.WORKER_HASH, "")
        key = plain.get(component.metadata.name)
        is_worker = has_revisions(component.spec) if key is None else key in services
        if suffix or is_worker:
            workers.append(_member(component))
    return tuple(sorted(workers, key=_age))


def revisions(
    graph: DynamoGraphDeployment,
    components: Collection[DynamoComponentDeployment],
    *,
    unchanged: Collection[str] = (),
) -> Revisions:
    """Return the revisions of a graph that has these components.

    `unchanged` are the names of the `unrecorded` components whose pods already match the graph.
    """
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
        member.name: member
        for member in workers
        if member.suffix == suffix and member.service not in left
    }
    old = [member for member in workers if member.name not in new]
    left_names = {
        names.component_name(graph.metadata.name, key)
        for key in left & {member.service for member in old}
    }
    successors = [
        _member(component) for component in components if component.metadata.name in left_names
    ]
    serving = digits(contents[current]) or current
    return Revisions(target, serving, tuple(new.values()), tuple(old), tuple(successors))


def unrecorded(graph: DynamoGraphDeployment, workers: Iterable[Member]) -> tuple[Member, ...]:
    """Members without a hash that this operator can compute, such as those from before managed rollouts.

    Only comparing their specs shows whether they are up to date.
    """
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
    """The content hash of a revision; "" unless all its members agree."""
    contents = {member.content for member in group}
    return contents.pop() if len(contents) == 1 else ""


def _current(graph: DynamoGraphDeployment, groups: Mapping[str, list[Member]]) -> str:
    """The suffix of the serving revision: the recorded one, else the most available, then the newest."""
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
    """The suffix of the desired revision: an existing one with the desired content, else a new one.

    Without managed rollouts there are no new revisions: the newest one with a suffix is changed in place, so
    that a rollout in progress can end.
    """
    if contents[current] == desired:
        return current
    fitting = [suffix for suffix, content in contents.items() if content == desired]
    if fitting:
        return fitting[-1]
    if not is_managed(graph):
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
    wide, narrow = (
        namespace_prefix(graph, finds_plain=True),
        namespace_prefix(graph, finds_plain=False),
    )
    if "" in groups or narrow == wide:
        return wide
    prefixes = {
        entry.get("value")
        for component in components
        for entry in component.spec.envs
        if entry.get("name") == NAMESPACE_PREFIX_VARIABLE
    }
    return wide if is_managed(graph) and wide in prefixes else narrow
