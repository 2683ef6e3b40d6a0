"""Keep the pod templates that an earlier operator wrote, until the user edits what they are made from.

A workload of an earlier operator may differ from what we render although the user has changed nothing: an
init container, a label, the spelling of a command. To write our template would restart its pods. So the
workload keeps the one that runs, and an annotation records two digests: of the template that we would have
written, and of the one that was kept. While both are the same, the template stays. When we render another one
(the user has edited the service or asked for a restart, or a setting has changed), or when the live one was
edited by hand, ours is written.

Everything is decided from the two objects at hand, so a pass may be repeated or cut off at any point.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.plan.templates import WORKLOADS, are_same, mapped, units, with_units
from kube_runtime.apply.merge_schema import FieldSchema, identity, type_field
from kube_runtime.kind import Object

_UNDECIDED = "undecided"
_DIGEST_BYTES = 8
_BESIDE_PODS = ("autoscaling", "ingress", "replicas", "scalingAdapter")
"""Fields of a component that say nothing about its pods."""
_SELECTING = labels.SELECTING | {labels.ROLE}
_OF_KUBECTL = "kubectl.kubernetes.io/"
"""Annotations by which `kubectl rollout restart` restarts pods. They stay kubectl's."""


class Origin(Enum):
    """What is known of a workload that an earlier operator made."""

    CURRENT = "made from the spec as it is now"
    UNDECIDED = "the graph's controller has not compared the specs yet"
    OUTDATED = "made from an older spec, or nothing is known"


@dataclass(frozen=True, slots=True)
class _Note:
    rendered: str
    kept: str


def is_of_earlier_operator(annotations: Mapping[str, str]) -> bool:
    """Whether an earlier operator wrote an object, and we have not applied it since."""
    return labels.LAST_APPLIED_GENERATION in annotations


def has_kept_templates(annotations: Mapping[str, str]) -> bool:
    """Whether a workload may have templates of an earlier operator."""
    return is_of_earlier_operator(annotations) or labels.ADOPTED_TEMPLATES in annotations


def with_kept_templates(wanted: Object, live: Object, origin: Origin) -> Object:
    """The workload to apply: `wanted`, with the templates of `live` that have to stay.

    Other kinds than workloads come back as they are.
    """
    annotations: Mapping[str, str] = live["metadata"].get("annotations", {})
    if wanted["kind"] not in WORKLOADS or not has_kept_templates(annotations):
        return wanted
    is_earlier = is_of_earlier_operator(annotations)
    # One that went back to that operator meanwhile still has our note, which says nothing of what it wrote.
    notes = {} if is_earlier else _notes(annotations)
    theirs = units(live)
    kept: dict[str, Object] = {}
    written: dict[str, _Note] = {}
    for name, ours in units(wanted).items():
        unit = _without_annotations_of_kubectl(theirs.get(name, {}))
        if not unit or are_same(wanted["kind"], ours, unit) or not _can_be_kept(ours, unit):
            continue
        note = _Note(_digest(ours), _digest(unit))
        if _stays(notes.get(name), note, origin, is_earlier=is_earlier):
            kept[name] = unit
            is_decided = origin is not Origin.UNDECIDED
            written[name] = note if is_decided else _Note(_UNDECIDED, note.kept)
    return _noted(with_units(wanted, kept), written) if kept else wanted


def _stays(note: _Note | None, now: _Note, origin: Origin, *, is_earlier: bool) -> bool:
    if note is None:
        return is_earlier and origin is not Origin.OUTDATED
    if note.kept != now.kept:
        return False  # edited by hand
    if note.rendered == _UNDECIDED:
        return origin is not Origin.OUTDATED
    return note.rendered == now.rendered


def _notes(annotations: Mapping[str, str]) -> dict[str, _Note]:
    """What was recorded; what cannot be read counts as nothing."""
    found = {}
    for entry in filter(None, annotations.get(labels.ADOPTED_TEMPLATES, "").split(",")):
        name, _, digests = entry.partition("=")
        rendered, _, kept = digests.partition(":")
        found[name] = _Note(rendered, kept)
    return found


def _noted(workload: Object, notes: Mapping[str, _Note]) -> Object:
    text = ",".join(f"{name}={each.rendered}:{each.kept}" for name, each in sorted(notes.items()))
    metadata = workload["metadata"]
    annotations = {**metadata.get("annotations", {}), labels.ADOPTED_TEMPLATES: text}
    return {**workload, "metadata": {**metadata, "annotations": annotations}}


def _without_annotations_of_kubectl(unit: Object) -> Object:
    def change(template: Object) -> Object:
        metadata: Object = {k: v for k, v in template.get("metadata", {}).items() if v}
        annotations: Mapping[str, str] = metadata.pop("annotations", {})
        own = {k: v for k, v in annotations.items() if not k.startswith(_OF_KUBECTL)}
        return {**template, "metadata": metadata | ({"annotations": own} if own else {})}

    return mapped(unit, change)


def _can_be_kept(ours: Object, theirs: Object) -> bool:
    """Whether our Services select the pods of a unit, and a server-side apply can write its templates."""
    field = type_field("PodTemplateSpec")
    return not any(_has_twice(each, field) for each in theirs.values()) and all(
        _selecting(theirs.get(name, {})).items() >= _selecting(template).items()
        for name, template in ours.items()
        if isinstance(template, dict)
    )


def _selecting(template: Object) -> dict[str, str]:
    found: Mapping[str, str] = template.get("metadata", {}).get("labels", {})
    return {name: value for name, value in found.items() if name in _SELECTING}


def _has_twice(value: object, field: FieldSchema) -> bool:
    """Whether a list names one thing twice, which a PUT may and a server-side apply may not."""
    if isinstance(value, dict):
        return any(_has_twice(each, field.child(name)) for name, each in value.items())
    if not isinstance(value, list):
        return False
    if field.keys and all(isinstance(each, dict) for each in value):
        names = [identity(each, field.keys) for each in value]
        if len(set(names)) < len(names):
            return True
    return any(_has_twice(each, field.items) for each in value)


def _digest(value: object) -> str:
    """A short digest of a JSON value; the order of keys does not matter."""
    text = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def spec_digest(spec: ComponentSpec) -> str:
    """What stands for all that a component's spec says about its pods."""
    return _digest(_about_pods(spec))


def says_the_same(wanted: ComponentSpec, live: ComponentSpec) -> bool:
    """Whether a component of an earlier operator says what its graph says of the pods now.

    Empty fields do not count, nor do labels of the service, which the Go operator leaves out of components.
    """
    ours, theirs = _about_pods(wanted), _about_pods(live)
    our_labels, their_labels = (dict(each.pop("labels", {})) for each in (ours, theirs))
    return ours == theirs and their_labels.items() <= our_labels.items()


def _about_pods(spec: ComponentSpec) -> Object:
    said: Object = msgspec.to_builtins(spec)
    kept = {name: value for name, value in said.items() if name not in _BESIDE_PODS}
    found: Object = _without_empty(kept)
    return found


def _without_empty(value: object) -> Any:
    if isinstance(value, dict):
        cleaned = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in cleaned.items() if each not in ("", None, {}, [])}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
