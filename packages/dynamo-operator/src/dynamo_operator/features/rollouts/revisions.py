"""Revisions of a graph's workers: which services have them, their content, names and Dynamo namespaces."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment, is_worker
from dynamo_operator.component.objects import is_adopted
from dynamo_operator.component.service import NAMESPACE_PREFIX_VARIABLE, PLAIN, WorkerRevision, has_revisions
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import is_on_grove
from dynamo_operator.shared.inert import INERT
from kube_runtime.types.meta import Object

MANAGED, NATIVE = "managed", "native"
MODES = (MANAGED, NATIVE)
"""Values of the annotation `nvidia.com/worker-rollout`."""

_VERSION = "1:"
"""What the hash begins with: its version."""

_NOT_IN_PODS_V1 = frozenset(
    (
        "autoscaling",
        "disruptionBudget",
        "dynamoNamespace",
        "ingress",
        "minAvailable",
        "replicas",
        "runtimeVersionOverride",
        "scalingAdapter",
        "serviceName",
        "topologyConstraint",
        *INERT[ComponentSpec],
    )
)
_IGNORED_ANNOTATIONS_V1 = frozenset(
    (
        "nvidia.com/deployment-rolling-update-max-surge",
        "nvidia.com/deployment-rolling-update-max-unavailable",
        "nvidia.com/deployment-strategy",
        "nvidia.com/last-applied-generation",
        "nvidia.com/last-applied-hash",
        "nvidia.com/restartAt",
    )
)
_GRAPH_ANNOTATIONS_V1 = ("nvidia.com/dynamo-discovery-backend", "nvidia.com/enable-metrics")


def is_managed(graph: DynamoGraphDeployment) -> bool:
    """Whether rollouts of the graph's workers are managed: run by the operator itself."""
    return graph.metadata.annotations.get(labels.WORKER_ROLLOUT) == MANAGED and not is_on_grove(graph)


def revised_services(graph: DynamoGraphDeployment) -> dict[str, ComponentSpec]:
    """The services of a graph whose pods belong to revisions, by name."""
    services = sorted(graph.spec.services.items())
    return {key: service for key, service in services if has_revisions(service)}


def _workers(graph: DynamoGraphDeployment) -> dict[str, ComponentSpec]:
    """The services of a graph that belong to an adopted revision, by name."""
    return {key: service for key, service in sorted(graph.spec.services.items()) if is_worker(service)}


def first_revision(graph: DynamoGraphDeployment) -> WorkerRevision:
    """The first revision of a graph that has no objects yet."""
    if not is_managed(graph) or not revised_services(graph):
        return PLAIN
    content = worker_content(graph)
    return WorkerRevision(digits(content), content, namespace_prefix(graph, finds_plain=False))


def namespace_prefix(graph: DynamoGraphDeployment, *, finds_plain: bool) -> str:
    """The prefix of the Dynamo namespaces of the workers that frontends must find.

    With `finds_plain` they must also find workers in the graph's own Dynamo namespace. That requires a prefix
    which namespaces of other graphs may share.
    """
    services = graph.spec.services.values()
    if finds_plain or any(is_worker(service) and not has_revisions(service) for service in services):
        return names.dynamo_namespace(*graph.key)
    return names.revisions_namespace_prefix(*graph.key)


# The hash covers the user's settings and not the rendered objects, so that a new release of the
# operator creates no new revision. It has a version, so that a better hash can replace it without
# rolling running workers. What a version makes of an existing spec must never change; a new field that
# does not affect pods joins the fields that it leaves out.
def worker_content(graph: DynamoGraphDeployment) -> str:
    """Hash the user's settings of the workers' pods: `{version}:{eight digits}`."""
    spec, annotations = graph.spec, graph.metadata.annotations
    body: Object = {
        "annotations": _annotations_v1(spec.annotations),
        "backendFramework": spec.backend_framework,
        "envs": _without_empty(msgspec.to_builtins(spec.envs)),
        "labels": spec.labels,
        "services": {key: _service_v1(service) for key, service in revised_services(graph).items()},
        "switches": {key: annotations[key] for key in _GRAPH_ANNOTATIONS_V1 if key in annotations},
    }
    text = msgspec.json.encode(body, order="sorted")
    return f"{_VERSION}{hashlib.sha256(text).hexdigest()[: names.HASH_LENGTH]}"


def digits(content: str) -> str:
    """The hash without its version, as in labels and names."""
    return content.rpartition(":")[2]


def _service_v1(service: ComponentSpec) -> object:
    fields: Object = msgspec.to_builtins(service)
    kept = {name: value for name, value in fields.items() if name not in _NOT_IN_PODS_V1}
    if "annotations" in kept:
        kept["annotations"] = _annotations_v1(kept["annotations"])
    return _without_empty(kept)


def _annotations_v1(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if key not in _IGNORED_ANNOTATIONS_V1}


def _without_empty(value: object) -> object:
    # Typed clients write null, [] and {} for unset fields. A few empty maps have a meaning, such as
    # `emptyDir: {}`; there the rest of the entry still differs.
    if isinstance(value, Mapping):
        kept = {name: _without_empty(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child not in (None, [], {})}
    if isinstance(value, list | tuple):
        return [_without_empty(child) for child in value]
    return value


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
class Member:
    """An existing component: one service in one revision. `content` is "" if it records none.

    The Go operator of the 1.x line created those that are adopted.
    """

    component: DynamoComponentDeployment
    suffix: str
    content: str
    is_adopted: bool = False

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


# Everything is derived from the components, each of which records the revision that it was created
# for. Annotations of the graph are lost when a user replaces it, and the operator may stop right
# after it created a component.
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
    desired = worker_content(graph)
    contents = {
        suffix: desired if all(member.name in unchanged for member in group) else _content(group)
        for suffix, group in groups.items()
    }
    suffix = _target(graph, contents, current, desired)
    prefix = _namespace_prefix(graph, components, groups)
    of_go = _is_adopted(groups.get(suffix, ()))
    services = _workers(graph) if of_go else revised_services(graph)
    target = WorkerRevision(suffix if services else "", desired if services else "", prefix, is_adopted=of_go)
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
    """Members without a hash that this operator can compute: of before managed rollouts, or adopted.

    Only comparing their specs shows whether they are up to date.
    """
    managed = is_managed(graph)
    return tuple(
        it
        for it in workers
        if (it.is_adopted or (managed and not it.suffix)) and not it.content.startswith(_VERSION)
    )


def _member(component: DynamoComponentDeployment) -> Member:
    metadata = component.metadata
    content = metadata.annotations.get(labels.WORKER_CONTENT, "")
    suffix = metadata.labels.get(labels.WORKER_HASH, "")
    return Member(component, suffix, content, is_adopted(component))


def _age(member: Member) -> tuple[str, str]:
    metadata = member.component.metadata
    return metadata.creation_timestamp or "", metadata.name


def _is_adopted(group: Iterable[Member]) -> bool:
    return any(member.is_adopted for member in group)


def _content(group: Iterable[Member]) -> str:
    contents = {member.content for member in group}
    return contents.pop() if len(contents) == 1 else ""


def _current(graph: DynamoGraphDeployment, groups: Mapping[str, list[Member]]) -> str:
    """The suffix of the serving revision: the recorded one, else the most available, then the newest."""
    annotations = graph.metadata.annotations
    recorded = [annotations.get(key) for key in (labels.CURRENT_WORKER_HASH, labels.CURRENT_WORKER_HASH_V2)]
    for suffix, group in groups.items():
        if (suffix if _is_adopted(group) else digits(_content(group)) or suffix) in recorded:
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
    if "" in groups or any(map(_is_adopted, groups.values())) or narrow == wide:
        return wide
    prefixes = {
        entry.get("value")
        for component in components
        for entry in component.spec.envs
        if entry.get("name") == NAMESPACE_PREFIX_VARIABLE
    }
    return wide if is_managed(graph) and wide in prefixes else narrow
