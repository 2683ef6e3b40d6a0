"""Keep running pod templates where writing the rendered ones would restart pods without a change by the user.

A workload of an earlier operator may differ from the rendered one although the user changed nothing: in
an init container, a label, the spelling of a command. So the workload keeps its template, and an
annotation records two digests: of the rendered template and of the kept one. The template stays while
both are the same. The rendered one is written when it changes (the user edited the service or requested
a restart, or a setting changed), or when the live one was edited by hand.

One difference is kept without a record: a missing drain period (`component/pod.py`), which workers get when
their template changes for another reason.

Every decision follows from the desired and the live object, so a pass can be repeated or stop at any point.
"""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

import msgspec

from dynamo_operator import FIELD_MANAGER, labels
from dynamo_operator.component.api import SPLIT_TYPES, ComponentSpec, DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import InferencePool, LiveObjects, PodCliqueSet, PodCliqueSetSpec
from dynamo_operator.shared.templates import BESIDE_PODS, WORKLOADS, are_same, mapped, units, with_units
from kube_runtime.apply.drift import FieldSchema, identity, type_field
from kube_runtime.types.meta import Key, Object, Resource, content_of, from_json, from_plain, key_of

_UNDECIDED = "undecided"
_DIGEST_BYTES = 8
_SELECTING = labels.SELECTING | {labels.ROLE}
_OF_KUBECTL = "kubectl.kubernetes.io/"
"""Prefix of annotations by which `kubectl rollout restart` restarts pods; kubectl keeps owning them."""


class Origin(Enum):
    """Whether a workload of an earlier operator was rendered from the present spec."""

    CURRENT = "rendered from the present spec"
    UNDECIDED = "the graph's controller has not compared the specs yet"
    OUTDATED = "rendered from an older spec, or unknown"


@dataclass(frozen=True, slots=True)
class _Record:
    """Digests of the rendered and of the kept templates of one unit."""

    rendered: str
    kept: str


def is_of_earlier_operator(annotations: Mapping[str, str]) -> bool:
    """Whether an earlier operator wrote an object that this operator has not applied since."""
    return labels.LAST_APPLIED_GENERATION in annotations


def has_kept_templates(annotations: Mapping[str, str]) -> bool:
    """Whether a workload may have templates of an earlier operator."""
    return is_of_earlier_operator(annotations) or labels.ADOPTED_TEMPLATES in annotations


def with_kept_templates(desired: Object, live: Object, origin: Origin) -> Object:
    """Return the workload to apply: `desired` with the templates of `live` that must stay."""
    annotations: Mapping[str, str] = live["metadata"].get("annotations", {})
    is_earlier = is_of_earlier_operator(annotations)
    # After a return to the earlier operator our record is stale: it does not describe what that one wrote.
    records = {} if is_earlier else _records(annotations)
    theirs = units(live)
    kept: dict[str, Object] = {}
    new_records: dict[str, _Record] = {}
    for name, ours in units(desired).items():
        unit = _without_annotations_of_kubectl(theirs.get(name, {}))
        if not unit or are_same(desired["kind"], ours, unit) or not _can_be_kept(desired["kind"], ours, unit):
            continue
        record = _Record(_digest(ours), _digest(unit))
        if _stays(records.get(name), record, origin, is_earlier=is_earlier):
            kept[name] = unit
            is_decided = origin is not Origin.UNDECIDED
            new_records[name] = record if is_decided else _Record(_UNDECIDED, record.kept)
    if not kept:
        return desired
    workload = with_units(desired, kept)
    text = ",".join(f"{name}={record.rendered}:{record.kept}" for name, record in sorted(new_records.items()))
    metadata = workload["metadata"]
    note = {**metadata.get("annotations", {}), labels.ADOPTED_TEMPLATES: text}
    return {**workload, "metadata": {**metadata, "annotations": note}}


def _stays(record: _Record | None, now: _Record, origin: Origin, *, is_earlier: bool) -> bool:
    if record is None:
        return is_earlier and origin is not Origin.OUTDATED
    if record.kept != now.kept:
        return False  # edited by hand
    if record.rendered == _UNDECIDED:
        return origin is not Origin.OUTDATED
    return record.rendered == now.rendered


def _records(annotations: Mapping[str, str]) -> dict[str, _Record]:
    records = {}
    for entry in filter(None, annotations.get(labels.ADOPTED_TEMPLATES, "").split(",")):
        name, _, digests = entry.partition("=")
        rendered, _, kept = digests.partition(":")
        records[name] = _Record(rendered, kept)  # one that is unreadable never matches
    return records


def _without_annotations_of_kubectl(unit: Object) -> Object:
    def change(template: Object) -> Object:
        metadata: Object = {k: v for k, v in template.get("metadata", {}).items() if v}
        annotations: Mapping[str, str] = metadata.pop("annotations", {})
        own = {k: v for k, v in annotations.items() if not k.startswith(_OF_KUBECTL)}
        return {**template, "metadata": metadata | ({"annotations": own} if own else {})}

    return mapped(unit, change)


def _can_be_kept(kind: str, ours: Object, theirs: Object) -> bool:
    field = type_field("PodTemplateSpec")
    return not any(_has_twice(template, field) for template in theirs.values()) and all(
        _selecting(kind, theirs.get(name, {})).items() >= _selecting(kind, template).items()
        for name, template in ours.items()
        if isinstance(template, dict)
    )


def _selecting(kind: str, template: Object) -> dict[str, str]:
    of_pods: Mapping[str, str] = template.get("metadata", {}).get("labels", {})
    unselecting = set[str]()
    if of_pods.get(labels.SUB_COMPONENT_TYPE) in SPLIT_TYPES:
        unselecting.add(labels.COMPONENT_TYPE)  # as in `selected_type`
    if kind == PodCliqueSet.KIND.name:
        unselecting.add(labels.SELECTOR)
    return {name: value for name, value in of_pods.items() if name in _SELECTING - unselecting}


def _has_twice(value: object, field: FieldSchema) -> bool:
    # An update may write a key of a list twice, and server-side apply rejects it.
    if isinstance(value, dict):
        return any(_has_twice(child, field.child(name)) for name, child in value.items())
    if not isinstance(value, list):
        return False
    if field.keys and all(isinstance(entry, dict) for entry in value):
        names = [identity(entry, field.keys) for entry in value]
        if len(set(names)) < len(names):
            return True
    return any(_has_twice(entry, field.items) for entry in value)


def _digest(value: object) -> str:
    text = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def spec_digest(spec: ComponentSpec) -> str:
    """A digest of all fields of a component's spec that affect its pods."""
    return _digest(_about_pods(spec))


_ADDED = frozenset(
    (
        *("nvidia.com/dynamo-operator-origin-version", "nvidia.com/dynamo-kube-discovery-mode"),
        *("nvidia.com/vllm-distributed-executor-backend", "nvidia.com/dynamo-component-class"),
        *("sidecar.istio.io/inject", labels.DISCOVERY_BACKEND, labels.ENABLE_METRICS, *labels.SELECTING),
    )
)
"""Labels and annotations that the Go operator of the 1.x line adds to the components of graphs."""
_VARIABLES = ("DYN_KV_TRANSFER_", "DYN_TOPOLOGY_", "DYN_NAMESPACE_PREFIX", "DYN_NAMESPACE_WORKER_SUFFIX")
"""How the names of variables begin that only one of the two operators writes into components."""
_TOPOLOGY = "topology-labels"
"""The volume that it adds for a graph's `kvTransferPolicy`."""


# The Go operator of the 1.x line puts all variables of a pod into one list, and the labels and annotations of
# a graph and of its services on the pods; some of its own are beside them.
def has_same_pods(desired: ComponentSpec, live: ComponentSpec) -> bool:
    """Whether a component of an earlier operator matches the desired one in every field about pods.

    Ignored are empty fields, what that operator adds, and labels of the service, which the Go operator of the
    0.9 line does not copy to components.
    """
    ours, theirs = _comparable(desired), _comparable(live)
    our_labels, their_labels = ours.pop("labels"), theirs.pop("labels")
    if "backendFramework" not in ours:
        theirs.pop("backendFramework", None)  # detected
    return ours == theirs and their_labels.items() <= our_labels.items()


def _comparable(spec: ComponentSpec) -> Object:
    fields = _about_pods(spec)
    fields.pop("dynamoNamespace", None)
    of_pods: Object = fields.pop("extraPodMetadata", {})
    for name in ("labels", "annotations"):
        both = fields.pop(name, {}) | of_pods.get(name, {})
        fields[name] = {key: text for key, text in both.items() if key not in _ADDED}
    pod: Object = fields.pop("extraPodSpec", {})
    main: Object = pod.pop("mainContainer", {})
    variables = {it["name"]: it for it in (*fields.pop("envs", ()), *main.pop("env", ()))}
    claims = [mount for mount in fields.pop("volumeMounts", ()) if mount.get("name") != _TOPOLOGY]
    mounts = [mount for mount in main.pop("volumeMounts", ()) if mount.get("name") != _TOPOLOGY]
    volumes = [volume for volume in pod.pop("volumes", ()) if volume.get("name") != _TOPOLOGY]
    config: Object = {**fields.get("eppConfig", {}).get("config", {})}
    for name in ("apiVersion", "kind"):
        config.pop(name, None)
    return fields | {
        "pod": pod,
        "main": main,
        "variables": {name: it for name, it in variables.items() if not name.startswith(_VARIABLES)},
        "mounts": [*mounts, *claims],
        "volumes": volumes,
        "eppConfig": {**fields.get("eppConfig", {}), "config": config},
    }


def _about_pods(spec: ComponentSpec) -> Object:
    fields: Object = _without_empty(msgspec.to_builtins(spec))
    return {name: value for name, value in fields.items() if name not in BESIDE_PODS}


def _without_empty(value: object) -> Any:
    if isinstance(value, dict):
        cleaned = {name: _without_empty(child) for name, child in value.items()}
        return {name: child for name, child in cleaned.items() if child not in ("", None, {}, [])}
    return [_without_empty(entry) for entry in value] if isinstance(value, list) else value


_PRE_STOP = b'"preStop"'


def starts_to_drain(desired: Object, live: bytes) -> bool:
    """Whether more containers of the workload `desired` have a `preStop` hook than in the live spec, in JSON.

    Called in every reconcile, so it only counts names and does not decode the spec.
    """
    draining = [
        container
        for unit in units(desired).values()
        for template in unit.values()
        for container in (template["spec"]["containers"] if isinstance(template, dict) else ())
        if (container.get("lifecycle") or {}).get("preStop")
    ]
    return len(draining) > live.count(_PRE_STOP)


def without_new_drain(desired: Object, undrained: Object, live: Object) -> Object:
    """Return the workload to apply: `desired` without the drain period where nothing else changes.

    `undrained` is the same workload rendered without drain periods.
    """
    theirs = units(live)
    kept = {
        name: unit
        for name, unit in units(undrained).items()
        if name in theirs and are_same(desired["kind"], unit, theirs[name])
    }
    return with_units(desired, kept) if kept else desired


def as_running(
    desired: Iterable[Object], undrained: Callable[[], Iterable[Object]], live: LiveObjects, origin: Origin
) -> Iterator[Object]:
    """Return the objects to apply: workloads keep what would be the only reason to restart their pods.

    Those are the templates of an earlier operator, which rendered the live workloads from a spec of that
    `origin`, and containers without the `preStop` hooks of a drain period. `undrained` returns the same
    objects in the same order, rendered without drain periods; it is called if some pods have no hooks yet.
    """
    earlier, passed = None, 0
    for index, body in enumerate(desired):
        running = live.get((body["kind"], key_of(body))) if body["kind"] in WORKLOADS else None
        if running is None:
            yield body
            continue
        ours = body
        if has_kept_templates(running.metadata.annotations):
            ours = with_kept_templates(body, content_of(running), origin)
        spec = getattr(running, "spec", None)
        text = bytes(spec) if isinstance(spec, msgspec.Raw) else b""  # else its content was not kept
        if starts_to_drain(ours, text):
            earlier = iter(undrained()) if earlier is None else earlier
            [same] = islice(earlier, index - passed, index - passed + 1)
            passed = index + 1
            ours = without_new_drain(ours, same, content_of(running))
        yield ours


def is_taken_over(live: Resource) -> bool:
    """Whether an object is a component or a set of an earlier operator, or was taken over unchanged."""
    annotations = live.metadata.annotations
    if is_of_earlier_operator(annotations):
        return isinstance(live, DynamoComponentDeployment | PodCliqueSet)
    return labels.ADOPTED_SPEC in annotations and isinstance(live, DynamoComponentDeployment)


_REPLACED = "its pods would be replaced"


def hindrance(
    desired: Iterable[Object],
    spared: Container[tuple[str, Key]],
    live: LiveObjects,
    services: Mapping[str, ComponentSpec],
) -> str:
    """Why what an earlier operator left behind cannot be taken over as it runs; "" if it can.

    `spared` are objects that stay although they are not `desired`, `services` those of the graph.
    """
    wanted = {(body["kind"], key_of(body)): body for body in desired}
    for place, running in live.items():
        if not is_of_earlier_operator(running.metadata.annotations):
            continue
        name = running.metadata.name
        if isinstance(running, DynamoComponentDeployment):
            # Those of revisions are replaced by rollouts.
            is_kept = place in wanted or place in spared or labels.WORKER_HASH in running.metadata.labels
            if running.spec.service_name in services and not is_kept:
                return f"DynamoComponentDeployment {name} would get another name, and {_REPLACED}"
        elif isinstance(running, PodCliqueSet) and place in wanted:
            template = wanted[place]["spec"]["template"]
            groups = {
                group["name"]: group["cliqueNames"] for group in template.get("podCliqueScalingGroups", ())
            }
            cliques = {clique["name"] for clique in template["cliques"]}
            for group in from_json(running.spec, PodCliqueSetSpec).template.pod_clique_scaling_groups:
                is_other = group.name in groups and set(groups[group.name]) != set(group.clique_names)
                if is_other or group.name in cliques:
                    text = f"scaling group {group.name} of PodCliqueSet {name} would get other cliques"
                    return f"{text}, and {_REPLACED}"
        elif isinstance(running, InferencePool) and place in wanted:
            # The Go operator of the 1.x line sends requests to frontends in the pods of workers.
            has_frontend = any(service.component_type == "frontend" for service in services.values())
            selector = msgspec.json.decode(running.spec).get("selector")
            if not has_frontend and selector != wanted[place]["spec"]["selector"]:
                return f"InferencePool {name} would select no pods, because the graph has no frontend"
    return ""


def adopted_components(desired: Sequence[Object], live: LiveObjects) -> tuple[Object, ...]:
    """Return the objects of a graph; a component taken over with an unchanged spec is annotated so."""
    return tuple(annotated(body, live.get((body["kind"], key_of(body)))) for body in desired)


# The evidence: whether a workload was rendered from the current spec, or a user has edited the spec since
# the earlier operator last read it.
def component_origin(component: DynamoComponentDeployment) -> Origin:
    """Whether an earlier operator rendered the workloads of a component from its current spec.

    For a component of a graph the graph controller decides that, and records it in the write that takes the
    component over.
    """
    owner, annotations = component.metadata.controller, component.metadata.annotations
    is_of_graph = owner is not None and owner.kind == DynamoGraphDeployment.KIND.name
    if is_of_graph and not is_of_earlier_operator(annotations):
        return Origin.CURRENT if labels.ADOPTED_SPEC in annotations else Origin.OUTDATED
    if not _is_carried_out(component):
        # Decide now: our own status is about to replace the only evidence.
        return Origin.OUTDATED
    return Origin.UNDECIDED if is_of_graph else Origin.CURRENT


def annotated(desired: Object, live: Resource | None) -> Object:
    """Return the component to apply, annotated if it is taken over with an unchanged spec."""
    if not isinstance(live, DynamoComponentDeployment) or not is_taken_over(live):
        return desired
    annotations = live.metadata.annotations
    is_earlier = is_of_earlier_operator(annotations)
    spec = from_plain(desired, DynamoComponentDeployment).spec
    digest = spec_digest(spec)
    is_same = is_earlier and _is_carried_out(live) and has_same_pods(spec, live.spec)
    if not is_same and annotations.get(labels.ADOPTED_SPEC) != digest:
        return desired
    metadata = desired["metadata"]
    note = {**metadata.get("annotations", {}), labels.ADOPTED_SPEC: digest}
    return {**desired, "metadata": {**metadata, "annotations": note}}


def _is_carried_out(component: DynamoComponentDeployment) -> bool:
    observed = component.status.observed_generation
    return not observed or observed >= component.metadata.generation


def set_origin(of_graph: Sequence[Object], of_set: Sequence[Object]) -> Origin:
    """Whether a PodCliqueSet was rendered from the current graph, by the managed fields of both.

    An earlier operator writes the status of a graph, or its set, after each edit that it observes. So it
    has not observed a spec that was written after both.
    """
    mark = f"f:{labels.LAST_APPLIED_GENERATION}"
    earlier_managers = set[str]()
    for entry in of_set:
        metadata: Any = entry.get("fieldsV1", {}).get("f:metadata", {})
        if mark in metadata.get("f:annotations", {}):
            earlier_managers.add(entry["manager"])
    observed = [_time(entry) for entry in (*of_graph, *of_set) if entry.get("manager") in earlier_managers]
    edited = [
        _time(entry)
        for entry in of_graph
        if not entry.get("subresource")
        and "f:spec" in entry.get("fieldsV1", {})
        and entry.get("manager") not in {*earlier_managers, FIELD_MANAGER}
    ]
    is_outdated = max(edited, default="") > max(observed, default="")
    return Origin.OUTDATED if is_outdated else Origin.CURRENT


def _time(entry: Object) -> str:
    return str(entry.get("time") or "")
