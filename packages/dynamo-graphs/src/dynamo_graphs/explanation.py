"""Why an object is not ready: the text of `dynamoctl why`.

Each fact appears once, although conditions repeat reasons and a graph's message joins those of its services.
A cause whose message is known has its advice from `advice.toml`. Where none is known, the advice is that of
the reason, from the catalog that docs/status.md is generated from.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dynamo_graphs.advice import Cause, Evidence, causes
from dynamo_graphs.ages import age, ago, since
from dynamo_graphs.catalog import NO_ACTION, meaning, pod_advice
from dynamo_graphs.evidence import Facts, facts, messages
from dynamo_graphs.leadership import REMEDY, absence, leadership
from dynamo_graphs.reader import Reading
from dynamo_graphs.rows import paragraph
from dynamo_graphs.services import Service, services
from dynamo_operator import labels
from dynamo_operator.component.api import GROUP, BlockedPod, DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.status import CONFIGURATION_WARNING
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, RequestConditionType, RequestReason
from dynamo_operator.shared.conditions import (
    POD_REASONS,
    ComponentReason,
    GraphReason,
    PauseReason,
    ScalingReason,
    Stated,
    is_behind,
    is_ready,
    seen_generation,
    summary,
)
from kube_runtime.types.meta import Condition, Object, condition

_REPORT, _SERVICE = "The operator reports: ", "Service "
"""How the findings begin that quote a status."""

_PATIENCE = timedelta(minutes=1)
"""Time within which a running operator has reconciled a change."""

_PAUSED = {
    DynamoGraphDeployment: Condition("Progressing", "Unknown", PauseReason.GRAPH_PAUSED),
    DynamoComponentDeployment: Condition("Paused", "True", PauseReason.COMPONENT_PAUSED),
    DynamoGraphDeploymentScalingAdapter: Condition("Ready", "Unknown", ScalingReason.PAUSED),
    DynamoModel: Condition("Paused", "True", PauseReason.COMPONENT_PAUSED),
    DynamoGraphDeploymentRequest: Condition(RequestConditionType.SUCCEEDED, "Unknown", RequestReason.PAUSED),
}
"""The condition of a paused object, once the operator has reconciled the annotation."""

_OF_SERVICES = frozenset(
    (GraphReason.MIXED, ComponentReason.DEPLOYMENT_NOT_READY, ComponentReason.GROUPS_NOT_READY)
)
"""Reasons of a graph or component that summarize the reasons of services."""

_OF_PODS = frozenset((*POD_REASONS, *_OF_SERVICES, GraphReason.SOME_NOT_READY, GraphReason.UPDATING))
"""Reasons of a graph or component with which the statuses of its services are about the newest spec."""

_CHECK = "Run `dynamoctl check`: it reports whether an operator runs and leads, and what it lacks."
_AGAIN = f"Repeat in a minute. If nothing has changed: {_CHECK}"
_FINALIZERS = {
    f"{GROUP}/": f"The operator removes its own finalizer within a minute. {_CHECK}",
    "foregroundDeletion": (
        "It disappears with the last object it owns; `dynamoctl tree` shows what is left of a graph."
    ),
}
"""What to do about a finalizer, by its prefix."""

_OTHERS = "The program that set a finalizer removes it: check that it is running."
_LINK = re.compile(r"\[[^][]*\]\(([^()]*)\)")
"""A link: the texts of the catalog are written for the pages of docs/."""

_OWN_NAME = re.compile(r"(\b(?:events |resume (?:\w+/)?))NAME\b")
"""A command in an advice that takes the name of the object itself."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The state of an object: the findings, the most important first, and what to do about them.

    `causes` are those of the findings whose message is known, each with what to do about it.
    """

    findings: tuple[str, ...]
    advice: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Each cause with its remedies, then the other findings and the other advice, after arrows."""
        texts = {_text(cause): cause.remedies for cause in self.causes}
        own = {remedy for remedies in texts.values() for remedy in remedies}
        first = [line for text, remedies in texts.items() for line in (text, *map(_arrow, remedies))]
        rest = [finding for finding in self.findings if finding not in texts]
        return [*first, *rest, *(_arrow(remedy) for remedy in self.advice if remedy not in own)]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        more = len(self.lines) - 1
        return f"<Explanation: {self.findings[0]}{f' (and {more} more lines)' if more else ''}>"

    def _repr_html_(self) -> str:
        first, *others = self.lines
        return "".join((paragraph(first, bold=True), *map(paragraph, others)))


def _text(cause: Cause) -> str:
    words = cause.text.split()
    unnamed = [service for service in cause.services if service not in words]
    return f"{', '.join(cause.services)}: {cause.text}" if unnamed else cause.text


def _arrow(remedy: str) -> str:
    return f"→ {remedy}"


async def explained(reading: Reading, stated: Stated) -> Explanation:
    """Why an object is not ready. Raises: OperatorError."""
    now, changed = datetime.now(UTC), await _changed_at(reading, stated)
    gone = await _absent_operator(reading, stated, changed, now)
    is_open = bool(stated.status.conditions) and not (is_ready(stated) or stated.metadata.deletion_timestamp)
    read = await facts(reading, stated) if is_open else Facts()
    evidence = tuple(messages(read, stated, now))
    return explanation(stated, now=now, changed_at=changed, gone=gone, evidence=evidence)


async def absent_operator(reading: Reading, stated: Stated) -> str:
    """A sentence that no operator runs that manages an object; "" if one does. Raises: OperatorError."""
    return await _absent_operator(reading, stated, await _changed_at(reading, stated), datetime.now(UTC))


async def _absent_operator(reading: Reading, stated: Stated, changed_at: str | None, now: datetime) -> str:
    known = await leadership(reading, stated.metadata.namespace)
    changed = changed_at or stated.metadata.creation_timestamp
    return absence(known, now, is_waiting=is_behind(stated) and _is_long_ago(changed, now))


async def _changed_at(reading: Reading, stated: Stated) -> str | None:
    if not is_behind(stated):
        return None
    return changed_at(await reading.document(stated.KIND, stated.key) or {})


def explanation(
    stated: Stated,
    *,
    now: datetime,
    changed_at: str | None = None,
    gone: str = "",
    evidence: Sequence[Evidence] = (),
) -> Explanation:
    """Explain the state of an object, by its status and the messages about its pods, PVCs and nodes.

    `changed_at` is when its spec changed, None if unknown; `gone` a sentence that no operator runs.
    """
    known = _causes(stated, evidence)
    result = _of_status(stated, now, changed_at, known)
    if not gone:
        return result
    others = (advice for advice in result.advice if advice not in (_CHECK, _AGAIN))
    return Explanation((gone, *result.findings), (REMEDY, *others), result.causes)


def _causes(stated: Stated, evidence: Sequence[Evidence]) -> tuple[Cause, ...]:
    if is_ready(stated) or stated.metadata.deletion_timestamp:
        return ()
    kind, name = stated.DEFINITION.short_names[0], stated.metadata.name
    graph = name if isinstance(stated, DynamoGraphDeployment) else stated.metadata.labels.get(labels.GRAPH)
    if graph:  # a component is edited in its graph
        kind, name = DynamoGraphDeployment.DEFINITION.short_names[0], graph
    names = {"namespace": stated.metadata.namespace, "kind": kind, "name": name}
    if graph:
        names["graph"] = graph
    return causes((*evidence, *_of_conditions(stated)), names)


def _of_conditions(stated: Stated) -> Iterator[Evidence]:
    overall = summary(stated)
    is_about_them = overall is not None and overall.reason in _OF_PODS
    for service in services(stated) if is_about_them else ():
        for pod in service.blocked_pods:
            values = {"pod": pod.name} | ({"container": pod.container} if pod.container else {})
            yield Evidence(pod.reason, pod.message or "", service.name, values)
        if service.message and not service.blocked_pods:
            yield Evidence(service.reason, service.message, service.name)
    for bad in _bad_conditions(stated):
        yield Evidence(bad.reason, bad.message)


def _of_status(
    stated: Stated, now: datetime, changed_at: str | None, known: tuple[Cause, ...]
) -> Explanation:
    named = str(stated.key)
    if stated.metadata.deletion_timestamp:
        return _deletion(stated, named, now)
    if not stated.status.conditions:
        created = stated.metadata.creation_timestamp
        text = f"It was created{ago(created, now)}, but no operator has reconciled it yet: it has no status."
        advice = [_CHECK if _is_long_ago(created, now) else _AGAIN]
        sentences = (f"{named} is not ready.", text, *_pause(stated)[0])
        return Explanation(sentences, tuple(advice))
    overall = summary(stated)
    time = overall.last_transition_time if overall else None
    if is_ready(stated):
        first, texts, remedies = list[str](), list[str](), list[str]()
        warning = condition(stated.status.conditions, CONFIGURATION_WARNING)
        if warning is not None and warning.status == "True":  # parts of the spec have no effect
            first = [f"{_REPORT}{warning.message}"]
            texts, remedies = _condition_texts(stated, warning)
        standing = _standing(named, "ready", since(time, now))
        return Explanation((*first, standing, *_pause(stated)[0], *texts), tuple(remedies))
    is_old_news = overall is not None and overall.status == "True"
    lines = [*map(_text, known), _standing(named, "not ready", "" if is_old_news else since(time, now))]
    advice = [remedy for cause in known for remedy in cause.remedies]
    before = (_pause(stated), _behind(stated, changed_at, now))
    troubles, of_troubles = _troubles(stated, now, known)
    if not known:  # what is said of this object comes before what is said of all
        specific = [line for line in troubles if line.startswith((_SERVICE, _REPORT))]
        lines[:0] = [*before[0][0], *before[1][0], *specific][:1]
    for texts, remedies in (*before, (troubles, of_troubles)):
        lines += texts
        advice += remedies
    name = rf"\g<1>{stated.metadata.name} -n {stated.metadata.namespace}"
    advice = [_OWN_NAME.sub(name, remedy) for remedy in advice]
    return Explanation(tuple(dict.fromkeys(lines)), tuple(dict.fromkeys(advice)), known)


def _standing(named: str, standing: str, since_then: str) -> str:
    if not since_then:
        return f"{named} is {standing}."
    return f"{named} has {'not ' * standing.startswith('not ')}been ready{since_then}."


def changed_at(raw: Object) -> str | None:
    """When an object was last written, apart from its status; None if managed fields do not record it."""
    entries: list[Object] = raw.get("metadata", {}).get("managedFields", [])
    return max(
        (entry["time"] for entry in entries if entry.get("time") and not entry.get("subresource")),
        default=None,
    )


def _deletion(stated: Stated, named: str, now: datetime) -> Explanation:
    metadata = stated.metadata
    head = f"{named} is being deleted{since(metadata.deletion_timestamp, now)}."
    if not metadata.finalizers:
        return Explanation((head, "No finalizer blocks the deletion."), (_AGAIN,))
    text = f"These finalizers block the deletion: {', '.join(metadata.finalizers)}."
    advice = [
        remedy
        for start, remedy in _FINALIZERS.items()
        if any(finalizer.startswith(start) for finalizer in metadata.finalizers)
    ]
    return Explanation((head, text), tuple(advice) or (_OTHERS,))


def _pause(stated: Stated) -> tuple[list[str], list[str]]:
    is_paused = stated.metadata.is_true(labels.PAUSED)
    return _condition_texts(stated, _PAUSED[type(stated)]) if is_paused else ([], [])


def _behind(stated: Stated, changed_at: str | None, now: datetime) -> tuple[list[str], list[str]]:
    if not is_behind(stated):
        return [], []
    newest, seen = stated.metadata.generation, seen_generation(stated)
    text = (
        f"No operator has reconciled its newest spec (generation {newest}) yet; "
        f"the status describes generation {seen}."
    )
    if changed_at is None or not _is_long_ago(changed_at, now):
        return [text], [_AGAIN]
    return [text, f"It was changed{ago(changed_at, now)}."], [_CHECK]


def _troubles(stated: Stated, now: datetime, known: Sequence[Cause]) -> tuple[list[str], list[str]]:
    """The causes in the conditions, each reason once, then the services that are not ready.

    What the catalog says of a reason in general is left out where the cause itself is `known`.
    """
    late, progress = _late(stated), condition(stated.status.conditions, "Progressing")
    summarized: list[str] = []
    lines: list[str] = []
    advice: list[str] = []
    for cause in _bad_conditions(stated):
        texts, remedies = _condition_texts(stated, cause)
        if known and cause == summary(stated):
            texts, remedies = [f"{cause.type} is {cause.status}, {cause.reason}."], []
        if late and cause == summary(stated):
            summarized = texts  # the services follow, each with its own advice
            continue
        lines += texts
        advice += remedies
        if cause.message:
            lines.append(f"{_REPORT}{cause.message}")
    if progress is not None and progress.reason == GraphReason.UPDATING:
        (summarized if late else lines).append(f"Progress: {progress.message}.")
    summarized += (_service(service, now) for service in late)
    explained = {service for cause in known for service in cause.services}
    others = [service for service in late if service.name not in explained]
    of_others = _advice(others, stated.metadata.namespace, are_all=len(others) == len(late))
    return [*summarized, *lines], [*of_others, *advice]


def _late(stated: Stated) -> list[Service]:
    """Those of the summary. If it has another cause, such as an invalid spec, their statuses are old."""
    overall = summary(stated)
    every = [service for service in services(stated) if service.reason or service.message]
    reasons = {service.reason for service in every if service.reason}
    is_about_them = overall is not None and overall.reason in (reasons | _OF_SERVICES)
    return every if reasons and is_about_them else []


_BAD_WHEN_TRUE = ("Suspended", CONFIGURATION_WARNING)
"""Conditions that report a problem when they are true."""


def _bad_conditions(stated: Stated) -> Iterator[Condition]:
    """The most specific first."""
    first = summary(stated)
    reasons = set()
    # If `Valid` is false, the summary only refers to it.
    order = sorted(stated.status.conditions, key=lambda it: (it.type != "Valid", it != first))
    for candidate in order:
        is_bad = candidate.status == "False"
        if candidate.type in _BAD_WHEN_TRUE:
            is_bad = candidate.status != "False"
        elif candidate == first:
            is_bad = candidate.status != "True"
        if is_bad and candidate.type != "Paused" and candidate.reason not in reasons:
            reasons.add(candidate.reason)
            yield candidate


def _service(service: Service, now: datetime) -> str:
    head = (
        f"{_SERVICE}{service.name}, {service.reason or GraphReason.SOME_NOT_READY}: "
        f"{service.ready_of_newest} of {service.desired} replicas of the newest spec are ready"
    )
    is_of_pods = not service.reason or service.reason in POD_REASONS
    if not service.blocked_pods or (service.message and not is_of_pods):
        return f"{head}; {service.message or 'no pod reports a cause'}"
    pod, *others = service.blocked_pods
    container = f", container {pod.container}" if pod.container else ""
    message = f": {pod.message}" if pod.message else ""
    restarts = f", restarted {pod.restarts} times" if pod.restarts else ""
    more = f" (and {len(others)} more such pods)" if others else ""
    time = since(pod.since, now)
    return f"{head}; pod {pod.name}{container}: {pod.reason}{time}{restarts}{message}{more}"


def _advice(late: Sequence[Service], namespace: str, *, are_all: bool) -> Iterator[str]:
    """What to do about services, each advice once. Their reasons are those of a graph's `Ready`."""
    by_reason: dict[str, list[Service]] = defaultdict(list)
    for service in late:
        by_reason[service.reason or GraphReason.SOME_NOT_READY].append(service)
    for reason, affected in by_reason.items():
        row = meaning(DynamoGraphDeployment.KIND.name, Condition("Ready", "False", reason))
        prefix = (
            f"{', '.join(service.name for service in affected)}: "
            if len(by_reason) > 1 or not are_all
            else ""
        )
        blocked = next((pod for service in affected for pod in service.blocked_pods), None)
        advice = (blocked and pod_advice(reason, blocked)) or (row.advice if row else "")
        remedy = _of_pod(_shown(advice), blocked, namespace) if advice else _unknown(reason)
        yield f"{prefix}{remedy}"


def _of_pod(advice: str, pod: BlockedPod | None, namespace: str) -> str:
    if pod is None:
        return advice
    container = f" -c {pod.container}" if pod.container else ""
    named = f"{pod.name} -n {namespace}"
    text = advice.replace(" -c CONTAINER", container).replace(" pod NAME", f" pod {named}")
    return text.replace(" logs POD", f" logs {named}")


def _condition_texts(stated: Stated, cause: Condition) -> tuple[list[str], list[str]]:
    row = meaning(stated.KIND.name, cause)
    if row is None:
        return [f"{cause.type} is {cause.status}: {cause.reason}."], [_unknown(cause.reason)]
    advice = [] if row.advice == NO_ACTION else [_shown(row.advice)]
    return [f"{cause.type} is {cause.status}, {cause.reason}: {_shown(row.text)}"], advice


def _unknown(reason: str) -> str:
    return f"Unknown reason {reason}: see docs/status.md of the operator's version."


def _shown(text: str) -> str:
    return _LINK.sub(r"docs/\1", text)


def _is_long_ago(time: str | None, now: datetime) -> bool:
    passed = age(time, now)
    return passed is not None and passed > _PATIENCE
