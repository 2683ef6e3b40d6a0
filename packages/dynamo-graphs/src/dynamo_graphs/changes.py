"""What applying objects changes in a cluster, and which pods that restarts.

The changes come from a dry run of the API server, so defaults and webhooks count. The pods come from the
controllers' own plan and rendering of the graph as it is and as it would be.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from io import StringIO

from dynamo_graphs.ages import counted, some_of
from dynamo_graphs.output import write_yaml
from dynamo_graphs.ownership import OwnedField, Planned, comparable, planned
from dynamo_graphs.reader import Missing, Reading, served_groups, warn
from dynamo_graphs.rows import paragraph, table
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import OPTIONAL_APIS, Facts, LeaderWorkerSet, PodCliqueSet
from kube_runtime.errors import ApiError, ConfigError, Forbidden
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Fields, Kind, Object, key_of

RENDERED = (DynamoGraphDeployment.KIND.name, DynamoComponentDeployment.KIND.name)
"""The kinds whose effects on pods are known."""


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
    """The planned change of one object; `lines` are a unified diff of YAML, empty if nothing changes.

    `overwritten` are the fields among them that other managers own. If one of these is not a person's, an
    apply is a conflict.
    """

    name: str
    verb: str
    lines: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    overwritten: tuple[OwnedField, ...] = ()

    def __repr__(self) -> str:
        texts = (f"{effect.service} {effect.verb}" for effect in self.effects)
        return f"<Change {self.name}: {', '.join((self.verb, *texts))}>"

    def __str__(self) -> str:
        return "\n".join((repr(self), *self.lines))

    def _repr_html_(self) -> str:
        parts = [paragraph(f"{self.name}: {self.verb}", bold=True)]
        if self.effects:
            rows = [(effect.service, effect.verb, effect.text) for effect in self.effects]
            parts.append(table(("service", "effect", "of"), rows))
        if self.overwritten:
            owned = [(field.path, field.manager) for field in self.overwritten]
            parts.append(table(("overwritten field", "owner"), owned))
        return "".join((*parts, f"<pre>{escape(chr(10).join(self.lines))}</pre>" if self.lines else ""))


async def planned_changes(reading: Reading, bodies: Iterable[tuple[Kind, Object]]) -> list[Change]:
    """What applying the objects would change; writes nothing. Raises: OperatorError."""
    return await changes_of(reading, [await planned(reading, kind, body) for kind, body in bodies])


async def changes_of(reading: Reading, plans: Iterable[Planned]) -> list[Change]:
    """The changes of objects by their dry runs.

    Raises: ConfigError if a graph cannot be rendered; OperatorError.
    """
    rendering: tuple[Facts, RenderSettings] | None = None
    changes = []
    for plan in plans:
        before, after = comparable(plan.live), comparable(plan.after)
        name = f"{after['kind']} {key_of(after)}"
        impact: list[Effect] = []
        if before != after and after["kind"] in RENDERED:
            rendering = rendering or await _rendering_inputs(reading)
            try:
                present = workloads(before, *rendering) if before else {}
                impact = effects(present, workloads(after, *rendering))
            except ValueError as error:
                raise ConfigError(after["metadata"]["name"], str(error)) from error
        texts = StringIO(), StringIO()
        for body, text in zip((before, after), texts, strict=True):
            write_yaml([body] if body else [], text)
        left, right = (text.getvalue().splitlines()[1:] for text in texts)
        diff = difflib.unified_diff(left, right, f"live/{name}", f"file/{name}", lineterm="")
        verb = "create" if plan.live is None else "change" if before != after else "unchanged"
        changes.append(Change(name, verb, tuple(diff), tuple(impact), plan.overwritten))
    return changes


async def _rendering_inputs(reading: Reading) -> tuple[Facts, RenderSettings]:
    from dynamo_graphs.offline import installed_settings
    from dynamo_graphs.operators import running_settings

    groups = await served_groups(reading.client)
    served = {api.key: all(kind.group in groups for kind in api.kinds) for api in OPTIONAL_APIS}
    facts = Facts(
        lws_served=served["leaderWorkerSet"],
        grove_served=served["grove"],
        kai_served=served["kai"],
        istio_served=served["istio"],
        inference_pools_served=served["inferencePool"],
    )
    # Both sides of a change are rendered with the same settings, so few of them matter.
    try:
        return facts, await running_settings(reading)
    except (Missing, Forbidden):
        pass  # it runs as a process, or out of sight
    except (ApiError, ConfigError) as error:
        warn(f"the settings of the running operator are not known ({error}); using the defaults")
    return facts, installed_settings()


_TEMPLATE = {Deployment.KIND.name: "template", LeaderWorkerSet.KIND.name: "leaderWorkerTemplate"}


def workloads(graph: Object, facts: Facts, settings: RenderSettings) -> dict[str, Workload]:
    """The workloads that the operator would create for a graph, by service.

    Raises: ValueError with the problems of an invalid graph.
    """
    from dynamo_graphs.offline import expanded  # only what changes is rendered

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
