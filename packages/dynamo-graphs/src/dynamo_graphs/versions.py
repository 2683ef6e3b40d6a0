"""The versions in which people write an object: `v1alpha1`, with which we compute, and `v1beta1`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from dynamo_graphs.objects import InvalidObject
from dynamo_graphs.offline import expanded, installed_settings
from dynamo_graphs.schema import schema_problems
from dynamo_operator.component.api import GROUP, DynamoComponentDeployment
from dynamo_operator.crds import KINDS, is_later
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import SERVED, Problem
from dynamo_operator.shared.seen import seen
from dynamo_operator.shared.written import Written
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Object

Version: TypeAlias = Literal["v1alpha1", "v1beta1"]
VERSIONS: Final[tuple[Version, ...]] = get_args(Version)

LATER: Final = f"{GROUP}/v1beta1"
_PRESERVING: Final = tuple(f"{GROUP}/{kind}-spec" for kind in ("dgd", "dcd", "dgdr", "dgdsa"))
"""The annotations in which a conversion keeps what the other version has no field for."""
_TYPED: Final = tuple(f"{GROUP}/{kind}-typed" for kind in ("dgd", "dcd", "dgdr"))
"""Those in which it keeps empty values, which no file needs."""


def has_versions(document: Object) -> bool:
    """Whether it is an object of a kind that has both versions, in one of them."""
    kind = KINDS.get(str(document.get("kind")))
    return is_later(document) or (
        kind is not None
        and document.get("apiVersion") == SERVED
        and is_later({**document, "apiVersion": LATER})
    )


def in_version(document: Object, version: Version) -> Object:
    """The document in a version, as a person would write it: without a status that it had not.

    What the version has no field for is kept in an annotation. Without need there is none: many conversions
    only note in which of two places something was written.

    Raises: InvalidObject if it does not fit the schema of its version, so that no typo gets lost, or would
        not fit that of the other; ConversionError, also for a kind that has one version only.
    """
    if document.get("apiVersion") == f"{GROUP}/{version}":
        return document
    if problems := schema_problems(document):
        raise InvalidObject(problems)
    is_later_wanted = version == "v1beta1"
    if is_later_wanted:
        document = _without_bare_claims(document)
    converted = convert(document, LATER) if is_later_wanted else seen(document)
    converted = _without(_TYPED, converted, document)
    if "status" not in document:
        converted.pop("status", None)
    converted = _in_order(converted, document)
    plain = _without_notes(converted, document)
    made = converted
    if plain is not converted:
        if is_later_wanted:
            lost = [*unplaced(document, converted)]
            shorter = _with_fewer_notes(converted, lost) if lost else plain
            is_same = _renders_same(converted, shorter)
        else:
            shorter, is_same = plain, _converts_same(converted, plain)
        made = shorter if is_same else converted
    if lacks := schema_problems(made):
        raise InvalidObject(Problem("spec", f"has no form in {version}: {lack}") for lack in lacks)
    return made


# They only say that a PVC has to exist, as a mount of it does. In v1beta1 mounts name PVCs.
def _without_bare_claims(document: Object) -> Object:
    """Without the PVCs that the graph declares and does not create."""
    spec = document.get("spec") or {}
    claims = spec.get("pvcs") or ()
    created = [claim for claim in claims if claim.get("create")]
    if len(created) == len(claims):
        return document
    rest = {name: value for name, value in spec.items() if name != "pvcs"}
    return {**document, "spec": {**rest, **({"pvcs": created} if created else {})}}


def with_target(document: Object, version: Version) -> Object:
    """An autoscaler with its scaling adapter in that version; the same object if it names none."""
    spec = document.get("spec")
    target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    wanted = f"{GROUP}/{version}"
    if not isinstance(target, dict) or not has_versions(target) or target["apiVersion"] == wanted:
        return document
    return {**document, "spec": {**document["spec"], "scaleTargetRef": {**target, "apiVersion": wanted}}}


def paths_of(value: object, path: str = "") -> Iterator[str]:
    """The paths of all values in an object, each before those inside it."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, field in value.items():
            yield from paths_of(field, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths_of(item, f"{path}[{index}]")


def unplaced(earlier: Object, later: Object) -> Iterator[str]:
    """The paths of values in v1alpha1 that v1beta1 has no field for."""
    written = Written(later, earlier)
    for path in paths_of(earlier.get("spec"), "spec"):
        if written.path(path).startswith("metadata.annotations["):
            yield path


def notes_of(document: Object) -> tuple[str, ...]:
    """The annotations of a document that keep what its version has no field for."""
    return tuple(name for name in _PRESERVING if name in _annotations(document))


_FIRST: Final = ("apiVersion", "kind", "metadata", "spec")
_FIRST_OF_PART: Final = ("name", "type", "componentType", "subComponentType", "replicas")
_FIRST_OF_CONTAINER: Final = ("name", "image", "workingDir", "command", "args", "env", "envFrom", "resources")


def _in_order(converted: Object, source: Object) -> Object:
    """With components in the order of the source, and the fields that identify something first."""
    spec = dict(converted.get("spec") or {})
    if "services" in spec:
        services = spec["services"]
        names = [component["name"] for component in source["spec"]["components"]]
        spec["services"] = {name: services[name] and _sorted(services[name]) for name in names}
    elif "components" in spec:
        names = list((source.get("spec") or {}).get("services") or ())
        components = map(_sorted, map(_with_written_containers, spec["components"]))
        spec["components"] = sorted(components, key=lambda it: names.index(it["name"]))
    return _sorted({**converted, "spec": spec}, _FIRST)


# Conversion also makes a mount of a compilation cache that has no path, which no file may have.
def _with_written_containers(component: Object) -> Object:
    """With containers as a person would write them."""
    pod: Object = (component.get("podTemplate") or {}).get("spec") or {}
    containers = []
    for container in pod.get("containers") or ():
        mounts = [mount for mount in container.get("volumeMounts") or () if mount.get("mountPath")]
        rest = {name: value for name, value in container.items() if name != "volumeMounts"}
        whole = {**rest, "volumeMounts": mounts} if mounts else rest
        containers.append(_sorted(whole, _FIRST_OF_CONTAINER))
    if not containers:
        return component
    return {
        **component,
        "podTemplate": {**component["podTemplate"], "spec": {**pod, "containers": containers}},
    }


def _sorted(value: Object, first: tuple[str, ...] = _FIRST_OF_PART) -> Object:
    return {name: value[name] for name in dict.fromkeys((*first, *value)) if name in value}


def _annotations(document: Object) -> Object:
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _without_notes(converted: Object, source: Object) -> Object:
    """Without the annotations that the conversion has added; the same object if there are none."""
    return _without(_PRESERVING, converted, source)


def _without(names: Sequence[str], converted: Object, source: Object) -> Object:
    present = _annotations(converted)
    left = {k: v for k, v in present.items() if k not in names or k in _annotations(source)}
    if left == present:
        return converted
    metadata = {name: value for name, value in converted["metadata"].items() if name != "annotations"}
    return {**converted, "metadata": {**metadata, **({"annotations": left} if left else {})}}


def _with_fewer_notes(converted: Object, lost: Iterable[str]) -> Object:
    """With notes of the fields at these paths in v1alpha1 only."""
    notes = {}
    for name in notes_of(converted):
        note: Object = msgspec.json.decode(converted["metadata"]["annotations"][name])
        saved: Object = note.get("spec") or {}
        kept = {field: value for field, value in saved.items() if f"spec.{field}" in lost}
        services = {
            service: {field: value for field, value in fields.items() if f"{path}.{field}" in lost}
            for service, fields in (saved.get("services") or {}).items()
            if (path := f"spec.services.{service}") and isinstance(fields, dict)
        }
        if services := {service: fields for service, fields in services.items() if fields}:
            kept["services"] = services
        if kept:
            notes[name] = msgspec.json.encode({**note, "spec": kept}).decode()
    plain = _without_notes(converted, {})
    metadata = {**plain["metadata"], "annotations": {**_annotations(plain), **notes}}
    return {**plain, "metadata": metadata} if notes else converted


def _converts_same(first: Object, second: Object) -> bool:
    """Whether two objects of v1alpha1 are the same in v1beta1."""
    return _is_same(*(convert(it, LATER) for it in (first, second)))


# The same pods from other fields, such as `envs` and those of the main container, are the same.
def _renders_same(first: Object, second: Object) -> bool:
    """Whether the operator would create the same for two objects of v1beta1."""
    if _is_same(*(seen(it) for it in (first, second))):
        return True
    facts, settings = Facts(lws_served=True, istio_served=True), installed_settings()
    one, other = (
        expanded({**it, "metadata": {"namespace": "default", **it["metadata"]}}, facts, settings)
        for it in (first, second)
    )
    if one.problems or other.problems or not one.objects:
        return False
    return _pods_of(one.objects) == _pods_of(other.objects)


def _pods_of(objects: Iterable[Object]) -> list[Object]:
    return [it for it in objects if it["kind"] != DynamoComponentDeployment.KIND.name]


def _is_same(first: Object, second: Object) -> bool:
    """Whether two objects are the same but for the annotations and the order of components."""
    return _normal(first) == _normal(second)


def _normal(document: Object) -> Object:
    spec = document.get("spec") or {}
    components = sorted(spec.get("components") or (), key=lambda component: str(component["name"]))
    return {**_without_notes(document, {}), "spec": {**spec, "components": components}}
