"""Messages about the objects of a graph that is not ready: what `kubectl describe` and `logs` would show.

Few objects are read: the pods of the graph, their PVCs and nodes, and Events. What the user may not read is
left out, because the status of the graph names the worst causes, too.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import TypeVar

from dynamo_graphs.advice import LOG, Evidence
from dynamo_graphs.logs import log_of, log_query
from dynamo_graphs.reader import Reading, decoded
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import label_value
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import Stated
from kube_runtime.errors import ApiError, DecodeError, Unreachable
from kube_runtime.times import seconds_between
from kube_runtime.types.kinds import Event, Node, PersistentVolumeClaim, Pod
from kube_runtime.types.meta import Key, Kind, Object, amount

T = TypeVar("T")

_MOST_PODS = 20
"""Most pods that are not ready of which Events and PVCs are read."""

_MOST_LOGS = 3
_LOG_LINES = 60
_RUNNING_LINES = 10
"""Lines of the log of a container that runs and is not ready: earlier warnings may be over."""

_LOG_SECONDS = 3.0
_SOON_SECONDS = 5.0
"""How long a scheduler or a kubelet may take for the first step."""

_NOT_FAILURES = frozenset(("ContainerCreating", "PodInitializing"))
_MOUNTS = frozenset(("FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"))
_CREATES = frozenset(("FailedCreate", "FailedCreatePod"))
_OF_EVENTS = _MOUNTS | {"Unhealthy", "NotTriggerScaleUp", "FailedPostStartHook"}
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
_GPU = "nvidia.com/gpu"
_LARGEST = (_GPU, "memory", "cpu")
"""Resources of which the largest node is compared with what a pod asks for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a graph: objects as they are stored, by name where they are looked up."""

    pods: Sequence[Object] = ()
    events: Sequence[Object] = ()
    claims: Mapping[str, Object | None] = field(default_factory=dict[str, Object | None])
    classes: Mapping[str, Object | None] = field(default_factory=dict[str, Object | None])
    nodes: Sequence[Object] = ()
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


async def facts(reading: Reading, stated: Stated) -> Facts:
    """Read what may explain why a graph or a request is not ready; empty for other kinds."""
    match stated:
        case DynamoGraphDeployment():
            selector = f"{labels.GRAPH}={label_value(stated.metadata.name)}"
            named = [pvc.name for pvc in stated.spec.pvcs or () if pvc.name]
        case DynamoGraphDeploymentRequest():
            selector, named = f"{labels.REQUEST}={label_value(stated.metadata.name)}", []
        case _:
            return Facts()
    namespace = stated.metadata.namespace
    pods = [pod for pod in await _page(reading, Pod.KIND, namespace, labels_=selector) if _is_late(pod)]
    pods = pods[:_MOST_PODS]
    claims = dict.fromkeys((*named, *(name for pod in pods for name in _claims_of(pod))))
    reads = (_one(reading, PersistentVolumeClaim.KIND, Key(namespace, name)) for name in claims)
    by_name = dict(zip(claims, await _all(reads), strict=True))
    known = {name: claim for name, (is_known, claim) in by_name.items() if is_known}
    pending = (claim for claim in known.values() if claim and _phase(claim) == "Pending")
    classes = sorted({_class_of(claim) for claim in pending} - {""})
    looked_up = await _all(_one(reading, STORAGE_CLASS, Key("", name)) for name in classes)
    answers = dict(zip(classes, looked_up, strict=True))
    needs_nodes = any(not pod["spec"].get("nodeName") for pod in pods)
    events, nodes = await asyncio.gather(
        _page(reading, Event.KIND, namespace, fields="type!=Normal") if pods or known else _nothing(),
        _nodes(reading, pods, is_every=needs_nodes),
    )
    return Facts(
        pods=pods,
        events=[*events, *await _events_of_claims(reading, namespace, known)],
        claims=known,
        classes={name: it for name, (is_known, it) in answers.items() if is_known},
        nodes=nodes,
        logs=await _logs(reading, pods),
    )


async def _nothing() -> list[Object]:
    return []


async def _all(reads: Iterable[Awaitable[T]]) -> list[T]:
    return await asyncio.gather(*reads)


async def _page(
    reading: Reading, kind: Kind, namespace: str, *, labels_: str = "", fields: str = ""
) -> list[Object]:
    """The first objects of a list; empty if the user may not list them."""
    with suppress(ApiError, Unreachable, DecodeError):
        async with aclosing(reading.client.raw_pages(kind, namespace, labels_, fields)) as pages:
            async for page in pages:
                return [decoded(item, kind, None) for item in page.items or []]
    return []


async def _one(reading: Reading, kind: Kind, key: Key) -> tuple[bool, Object | None]:
    """Whether it is known if the object exists, and the object."""
    with suppress(ApiError, Unreachable, DecodeError):
        return True, await reading.raw(kind, key)
    return False, None


async def _nodes(reading: Reading, pods: Iterable[Object], *, is_every: bool) -> list[Object]:
    if is_every:
        return await _page(reading, Node.KIND, "")
    names = sorted({pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")})[:_MOST_PODS]
    answers = await _all(_one(reading, Node.KIND, Key("", name)) for name in names)
    return [node for _, node in answers if node]


async def _events_of_claims(
    reading: Reading, namespace: str, claims: Mapping[str, Object | None]
) -> list[Object]:
    """Also those that are no warnings: a PVC that waits for its provisioner has no other."""
    pending = [name for name, claim in claims.items() if claim and _phase(claim) != "Bound"]
    kind = PersistentVolumeClaim.KIND.name
    selectors = (f"involvedObject.kind={kind},involvedObject.name={name}" for name in pending[:_MOST_PODS])
    lists = await _all(_page(reading, Event.KIND, namespace, fields=selector) for selector in selectors)
    return [event for events in lists for event in events]


async def _logs(reading: Reading, pods: Iterable[Object]) -> dict[tuple[str, str], str]:
    """The ends of the logs of containers that exited or are not ready, one for each service."""
    wanted: dict[str, tuple[Object, str, dict[str, str]]] = {}
    for pod in pods:
        for status in _statuses(pod):
            running = (status.get("state") or {}).get("running")
            ended = _ended(status)
            if not status.get("ready") and (running or ended):
                query = log_query(
                    status["name"], _LOG_LINES if ended else _RUNNING_LINES, previous=bool(ended and running)
                )
                wanted.setdefault(_service(pod), (pod, status["name"], query))
    chosen = list(wanted.values())[:_MOST_LOGS]
    texts = await _all(_log(reading, pod, query) for pod, _, query in chosen)
    return {(pod["metadata"]["name"], name): text for (pod, name, _), text in zip(chosen, texts, strict=True)}


async def _log(reading: Reading, pod: Object, query: Mapping[str, str]) -> str:
    lines: list[str] = []
    key = Key(pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
    with suppress(ApiError, Unreachable, DecodeError, TimeoutError):
        async with asyncio.timeout(_LOG_SECONDS):
            stream = log_of(reading.transport, key, query, timeout_seconds=_LOG_SECONDS)
            async with aclosing(stream) as read:
                async for line in read:
                    lines.append(line.text)
    return "\n".join(lines[-_LOG_LINES:])


def messages(read: Facts, stated: Stated, now: datetime) -> Iterator[Evidence]:
    """The messages in what was read about an object, with the names of its services."""
    services, workloads = dict[str, str](), dict[str, str]()
    if isinstance(stated, DynamoGraphDeployment):
        services = {label_value(service): service for service in stated.spec.services}
        for service, status in stated.status.services.items():
            workloads |= dict.fromkeys((status.component_name, *(status.component_names or ())), service)
    for found in (*_of_facts(read, now), *_of_creation(read.events, workloads)):
        yield replace(found, service=services.get(found.service, found.service))


def _of_facts(read: Facts, now: datetime) -> Iterator[Evidence]:
    for name, claim in read.claims.items():
        services = {_service(pod) for pod in read.pods if name in _claims_of(pod)} or {""}
        for message in _of_claim(name, claim, read):
            yield from (replace(message, service=service) for service in services)
    for pod in read.pods:
        yield from _of_pod(pod, read, now)


def _of_creation(events: Iterable[Object], workloads: Mapping[str, str]) -> Iterator[Evidence]:
    """The messages of Events about pods that were not created; `workloads` is the service of each name."""
    for event in events:
        about = str((event.get("involvedObject") or {}).get("name", ""))
        service = next(
            (it for name, it in workloads.items() if about == name or about.startswith(f"{name}-")), None
        )
        if event.get("reason") in _CREATES and service is not None:
            yield Evidence(str(event["reason"]), str(event.get("message", "")), service)


def _of_pod(pod: Object, read: Facts, now: datetime) -> Iterator[Evidence]:
    status, spec, service = pod.get("status") or {}, pod["spec"], _service(pod)
    values = {"pod": pod["metadata"]["name"]}
    containers = {it["name"]: it for it in (*spec.get("initContainers", ()), *spec["containers"])}
    if len(spec["containers"]) == 1:
        values |= {
            "container": spec["containers"][0]["name"],
            "image": spec["containers"][0].get("image", ""),
        }
    if node := spec.get("nodeName"):
        values["node"] = node

    def message(word: str, text: str, **more: str) -> Evidence:
        return Evidence(word, text, service, {**values, **more})

    if status.get("phase") == "Failed":
        yield message(str(status.get("reason") or "Failed"), str(status.get("message", "")))
    if not node:
        yield from (
            replace(it, service=service, values={**values, **it.values})
            for it in _unscheduled(pod, read, now)
        )
    conditions = {it["type"]: it for it in status.get("conditions") or ()}
    has_started = False
    for container in _statuses(pod):
        named = {
            "container": container["name"],
            "image": containers.get(container["name"], {}).get("image", ""),
        }
        waiting = (container.get("state") or {}).get("waiting") or {}
        ended = _ended(container)
        has_started = has_started or bool(ended) or "running" in (container.get("state") or {})
        log = read.logs.get((values["pod"], container["name"]), "")
        if log:
            last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
            named["last"] = last.strip()
            yield message(LOG, log, **named)
        if container.get("ready"):
            continue
        if waiting.get("reason") and waiting["reason"] not in _NOT_FAILURES | {"CrashLoopBackOff"}:
            yield message(waiting["reason"], str(waiting.get("message", "")), **named)
        if ended and (ended.get("exitCode") or waiting.get("reason") == "CrashLoopBackOff"):
            text = f"exit code {ended.get('exitCode')}: {ended.get('message', '')}"
            yield message(str(ended.get("reason") or "Error"), text, **named)
    if node and not _statuses(pod) and status.get("phase") != "Failed":
        since = conditions.get("PodScheduled", {}).get("lastTransitionTime")
        seconds = seconds_between(since, now) or 0.0
        if seconds > _SOON_SECONDS:
            yield message("NotStarted", f"no container for {int(seconds)} seconds")
    of_node = next((it for it in read.nodes if it["metadata"]["name"] == node), None)
    if of_node is not None and (text := _unready_node(of_node)):
        yield message("NodeNotReady", text)
    for event in read.events:
        reason = str(event.get("reason", ""))
        is_about = (event.get("involvedObject") or {}).get("uid") == pod["metadata"].get("uid")
        is_over = has_started and reason in _MOUNTS
        if is_about and reason in _OF_EVENTS and not is_over:
            yield message(reason, str(event.get("message", "")))


def _unscheduled(pod: Object, read: Facts, now: datetime) -> Iterator[Evidence]:
    conditions = {it["type"]: it for it in (pod.get("status") or {}).get("conditions") or ()}
    scheduled = conditions.get("PodScheduled")
    if scheduled is None or scheduled.get("status") != "False":
        seconds = seconds_between(pod["metadata"].get("creationTimestamp"), now) or 0.0
        if seconds > _SOON_SECONDS:
            name = pod["spec"].get("schedulerName") or "default-scheduler"
            yield Evidence("NotScheduled", f"no scheduler has acted on it; its schedulerName is {name}")
        return
    text = str(scheduled.get("message", ""))
    word = "FailedScheduling" if scheduled.get("reason") == "Unschedulable" else str(scheduled.get("reason"))
    yield Evidence(word, text)
    if not read.nodes:
        return
    asked = _asked(pod["spec"])
    for resource in _LARGEST:
        most = max(_allocatable(it, resource) for it in read.nodes)
        if (wanted := asked.get(resource, Decimal(0))) > most:
            shown = (_shown(resource, number) for number in (wanted, most))
            text = f"asks for {next(shown)} {resource}; the largest node has {next(shown)}"
            count = str(ceil(wanted / most)) if most else ""
            yield Evidence("TooLarge", text, values={"count": count} if count else {})
    selector = pod["spec"].get("nodeSelector") or {}
    matching = (selector.items() <= (it["metadata"].get("labels") or {}).items() for it in read.nodes)
    if selector and not any(matching):
        chosen = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        yield Evidence("NoNodeSelected", f"nodeSelector {chosen} matches no node")
    if "taint" in text and "{" not in text:  # the message may not name them
        for taint in _untolerated(pod["spec"], read.nodes):
            yield Evidence("FailedScheduling", f"untolerated taint {{{taint}}}")


def _untolerated(spec: Object, nodes: Iterable[Object]) -> Iterator[str]:
    keys = {it.get("key", "") for it in spec.get("tolerations") or ()}
    for node in nodes:
        for taint in node["spec"].get("taints") or ():
            if taint["key"] not in keys and taint.get("effect") != "PreferNoSchedule":
                yield f"{taint['key']}: {taint.get('value', '')}"


def _asked(spec: Object) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for container in spec["containers"]:
        resources = container.get("resources") or {}
        for name, text in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            total[name] = total.get(name, Decimal(0)) + (amount(str(text)) or Decimal(0))
    return total


def _allocatable(node: Object, resource: str) -> Decimal:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return amount(str(allocatable.get(resource, "0"))) or Decimal(0)


_GIBIBYTE = 2**30


def _shown(resource: str, number: Decimal) -> str:
    return f"{number / _GIBIBYTE:.4g}Gi" if resource == "memory" else f"{number:f}"


def _of_claim(name: str, claim: Object | None, read: Facts) -> Iterator[Evidence]:
    values = {"pvc": name}
    if claim is None:
        yield Evidence("Pending", f'persistentvolumeclaim "{name}" not found', values=values)
        return
    if _phase(claim) == "Bound":
        return
    class_ = _class_of(claim)
    if class_ in read.classes and read.classes[class_] is None:
        text = f'storageclass.storage.k8s.io "{class_}" not found'
        yield Evidence("ProvisioningFailed", text, values=values)
    for event in read.events:
        if (event.get("involvedObject") or {}).get("uid") == claim["metadata"].get("uid"):
            yield Evidence(str(event.get("reason", "")), str(event.get("message", "")), values=values)


def _unready_node(node: Object) -> str:
    conditions = {it["type"]: it for it in (node.get("status") or {}).get("conditions") or ()}
    ready = conditions.get("Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    return str(ready.get("message") or ready.get("reason") or "it is not ready")


def _is_late(pod: Object) -> bool:
    status = pod.get("status") or {}
    conditions = {it["type"]: it for it in status.get("conditions") or ()}
    is_ready = conditions.get("Ready", {}).get("status") == "True"
    return not is_ready and status.get("phase") != "Succeeded" and "deletionTimestamp" not in pod["metadata"]


def _statuses(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _ended(status: Object) -> Object | None:
    for state in ("state", "lastState"):
        if ended := (status.get(state) or {}).get("terminated"):
            result: Object = ended
            return result
    return None


def _claims_of(pod: Object) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [it["persistentVolumeClaim"]["claimName"] for it in volumes if it.get("persistentVolumeClaim")]


def _class_of(claim: Object) -> str:
    return str(claim["spec"].get("storageClassName") or "")


def _phase(claim: Object) -> str:
    return str((claim.get("status") or {}).get("phase", "Pending"))


def _service(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(labels.COMPONENT, ""))
