"""What applying objects changes in a cluster, and which pods that restarts.

The changes come from a dry run of the API server, so defaults and webhooks count. The pods come from the
controllers' own plan and rendering of the graph as it is and as it would be.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal

from dynamo_graphs.ages import counted
from dynamo_graphs.offline import expanded, installed_settings
from dynamo_graphs.operators import running_settings
from dynamo_graphs.output import write_yaml
from dynamo_graphs.reader import Reading, served_groups, warn
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import OPTIONAL_APIS, Facts, LeaderWorkerSet, PodCliqueSet
from kube_runtime.client.client import APPLY_PATCH
from kube_runtime.errors import ApiError, ConfigError, Conflict
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Fields, Kind, Object, key_of

RENDERED = (DynamoGraphDeployment.KIND.name, DynamoComponentDeployment.KIND.name)
"""The kinds whose effects on pods are known."""

_KNOWN_LATER = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")
"""Metadata that the API server writes."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Applied:
    """An object after an apply, and the effect in kubectl's words."""

    verb: Literal["created", "configured", "unchanged"]
    body: Object


async def applied(reading: Reading, kind: Kind, body: Object, *, force: bool) -> Applied:
    """Apply an object. Raises: as `server_apply`."""
    live = await reading.raw(kind, key_of(body))
    after = await server_apply(reading, kind, body, is_dry=False, force=force)
    if live is None:
        return Applied("created", after)
    versions = (live["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"])
    return Applied("unchanged" if versions[0] == versions[1] else "configured", after)


async def server_apply(reading: Reading, kind: Kind, body: Object, *, is_dry: bool, force: bool) -> Object:
    """Apply an object; the result, with `is_dry` of a dry run.

    Raises:
        Conflict: another manager owns a field that would change, and `force` is not set.
        ApiError: it is refused.
    """
    how = {"force": "true" if force else "false"}
    try:
        return await reading.patched(kind, key_of(body), body, APPLY_PATCH, is_dry=is_dry, **how)
    except Conflict as error:
        error.message += "; --force-conflicts takes these fields over"
        raise


def comparable(body: Object | None) -> Object:
    """An object without its status and the fields that the API server writes; {} for None."""
    if body is None:
        return {}
    metadata = {k: v for k, v in body["metadata"].items() if k not in _KNOWN_LATER}
    notes = {k: v for k, v in metadata.pop("annotations", {}).items() if k != _LAST_APPLIED}
    if notes:
        metadata["annotations"] = notes
    rest = {k: v for k, v in body.items() if k not in ("metadata", "status")}
    return {"apiVersion": rest.pop("apiVersion"), "kind": rest.pop("kind"), "metadata": metadata} | rest


@dataclass(frozen=True, slots=True)
class Workload:
    """The pod template and the replicas of one service; None if they are unknown."""

    template: Object
    replicas: int | None


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect on one service; `verb` is `create`, `delete`, `restart` or `scale`."""

    service: str
    verb: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of one object; `lines` are a unified diff of YAML, empty if nothing changes."""

    name: str
    verb: str
    lines: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()


async def planned_changes(
    reading: Reading, bodies: Iterable[tuple[Kind, Object]], *, force: bool
) -> list[Change]:
    """What applying the objects would change; writes nothing. Raises: OperatorError."""
    pairs = [
        (
            await reading.raw(kind, key_of(body)),
            await server_apply(reading, kind, body, is_dry=True, force=force),
        )
        for kind, body in bodies
    ]
    return await changes_of(reading, pairs)


async def changes_of(reading: Reading, pairs: Iterable[tuple[Object | None, Object]]) -> list[Change]:
    """The changes of live objects, None for one that is missing, into those of a dry run.

    Raises: ConfigError if a graph cannot be rendered; OperatorError.
    """
    rendering: tuple[Facts, RenderSettings] | None = None
    changes = []
    for live, planned in pairs:
        before, after = comparable(live), comparable(planned)
        name = f"{planned['kind']} {key_of(planned)}"
        impact: list[Effect] = []
        if before != after and planned["kind"] in RENDERED:
            rendering = rendering or await _rendering_inputs(reading)
            try:
                present = workloads(before, *rendering) if before else {}
                impact = effects(present, workloads(after, *rendering))
            except ValueError as error:
                raise ConfigError(planned["metadata"]["name"], str(error)) from error
        texts = StringIO(), StringIO()
        for body, text in zip((before, after), texts, strict=True):
            write_yaml([body] if body else [], text)
        left, right = (text.getvalue().splitlines()[1:] for text in texts)
        diff = difflib.unified_diff(left, right, f"live/{name}", f"file/{name}", lineterm="")
        verb = "create" if live is None else "change" if before != after else "unchanged"
        changes.append(Change(name, verb, tuple(diff), tuple(impact)))
    return changes


async def _rendering_inputs(reading: Reading) -> tuple[Facts, RenderSettings]:
    groups = await served_groups(reading.client)
    served = {api.key: all(kind.group in groups for kind in api.kinds) for api in OPTIONAL_APIS}
    facts = Facts(
        lws_served=served["leaderWorkerSet"],
        grove_served=served["grove"],
        kai_served=served["kai"],
        istio_served=served["istio"],
        inference_pools_served=served["inferencePool"],
    )
    try:
        return facts, await running_settings(reading)
    except (ApiError, ConfigError) as error:
        warn(f"the settings of the running operator are not known ({error}); using the defaults")
    return facts, installed_settings()


_MOST_PATHS = 3
"""Changed fields that a line names."""

_TEMPLATE = {Deployment.KIND.name: "template", LeaderWorkerSet.KIND.name: "leaderWorkerTemplate"}


def workloads(graph: Object, facts: Facts, settings: RenderSettings) -> dict[str, Workload]:
    """The workloads that the operator would create for a graph, by service.

    Raises: ValueError with the problems of an invalid graph.
    """
    expansion = expanded(graph, facts, settings)
    if expansion.problems:
        raise ValueError("; ".join(map(str, expansion.problems)))
    by_service: dict[str, Workload] = {}
    for service, workload in _workloads(expansion.objects):
        first = by_service.setdefault(service, workload)
        if first is not workload:  # a service on several nodes has a workload for each replica
            total = (first.replicas or 0) + (workload.replicas or 0)
            by_service[service] = Workload(first.template, total)
    return by_service


def effects(before: Mapping[str, Workload], after: Mapping[str, Workload]) -> list[Effect]:
    """The effects on each service, by name."""
    return [
        effect
        for service in sorted({*before, *after})
        for effect in _effects(service, before.get(service), after.get(service))
    ]


def differences(before: object, after: object, path: str = "") -> Iterator[str]:
    """The paths that differ, each with both values. List entries are matched by name."""
    if before == after:
        return
    left, right = _by_name(before), _by_name(after)
    if left is None or right is None:
        yield f"{path}: {_short(before)} → {_short(after)}"
        return
    for key in dict.fromkeys((*left, *right)):
        yield from differences(left.get(key), right.get(key), f"{path}.{key}".lstrip("."))


def _effects(service: str, before: Workload | None, after: Workload | None) -> Iterator[Effect]:
    if before is None and after is not None:
        yield Effect(service, "create", _pods(after))
    elif before is not None and after is None:
        yield Effect(service, "delete", _pods(before))
    elif before is not None and after is not None:
        paths = list(differences(before.template, after.template))
        if paths:  # labels and annotations follow from other changes and come last
            paths.sort(key=lambda path: "metadata." in path.partition(":")[0])
            yield Effect(service, "restart", f"{_pods(before)}: {some_of(paths)}")
        if before.replicas != after.replicas:
            yield Effect(service, "scale", f"{before.replicas} → {after.replicas}")


def some_of(paths: Sequence[str]) -> str:
    """The first paths, and how many there are more."""
    more = len(paths) - _MOST_PATHS
    return "; ".join((*paths[:_MOST_PATHS], *([f"and {more} more"] if more > 0 else ())))


def _workloads(objects: tuple[Object, ...]) -> Iterator[tuple[str, Workload]]:
    for rendered in objects:
        kind, spec = rendered["kind"], rendered.get("spec", {})
        if field := _TEMPLATE.get(kind):
            service = rendered["metadata"]["labels"].get(labels.COMPONENT, rendered["metadata"]["name"])
            yield service, Workload(spec[field], spec.get("replicas"))
        elif kind == PodCliqueSet.KIND.name:
            for clique in spec["template"]["cliques"]:
                body = clique["spec"]
                template = {"metadata": {"labels": clique.get("labels")}, "spec": body["podSpec"]}
                yield clique["name"], Workload(template, body.get("replicas"))


def _by_name(value: object) -> Fields | None:
    """The entries of a map, or of a list whose entries have names; None for any other value."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and all(isinstance(it, dict) and "name" in it for it in value):
        return {str(entry["name"]): entry for entry in value}
    return None


def _pods(workload: Workload) -> str:
    return "pods" if workload.replicas is None else counted(workload.replicas, "replica")


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"  # noqa: PLR2004 - half a line of a terminal
