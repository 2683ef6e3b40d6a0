"""An object of v1beta1 as the operator computes with it: in v1alpha1, and complete."""

from collections.abc import Iterator
from typing import Any, Final

from dynamo_operator.shared.problems import SERVED
from dynamo_operator.shared.written import MAIN
from dynamo_operator.versions.conversion import convert, convert_spec
from kube_runtime.types.meta import Fields, Object

_OF_REQUESTS: Final[Fields] = {"backend": "auto", "searchStrategy": "rapid"}
"""Defaults of the schema, which no API server has added to a file."""


# In v1alpha1 a mount of a service is that of a PVC and has two fields. Conversion makes one of each mount of
# `main`, and keeps the other fields in an annotation. The operator needs the mount itself if it has other
# fields, and if its volume is one that the pod declares: `volumeMounts` would make a second one of that name.
def seen(document: Object) -> Object:
    """The object in v1alpha1, with mounts in `mainContainer` that are more than those of a PVC.

    Raises ConversionError.
    """
    if document.get("kind") == "DynamoGraphDeploymentRequest" and isinstance(document.get("spec"), dict):
        document = {**document, "spec": {**_OF_REQUESTS, **document["spec"]}}
    converted = convert(document, SERVED)
    if "spec" not in converted:
        return converted
    return {**converted, "spec": completed(converted["kind"], converted["spec"], document.get("spec") or {})}


def seen_spec(document: Object) -> Object:
    """The spec of `seen`; empty if there is none. Raises ConversionError, as that does."""
    return completed(document["kind"], convert_spec(document, SERVED), document.get("spec") or {})


def completed(kind: str, spec: Object, written: Fields) -> Object:
    """The spec of a kind in v1alpha1, converted from one that was `written`, with the mounts of that."""
    if kind == "DynamoComponentDeployment":
        return _with_own_mounts(spec, written)
    if kind != "DynamoGraphDeployment" or "services" not in spec:
        return spec
    components = {component.get("name"): component for component in _objects(written.get("components"))}
    services = {
        name: service if service is None else _with_own_mounts(service, components.get(name) or {})
        for name, service in spec["services"].items()
    }
    return {**spec, "services": services}


def _with_own_mounts(service: Object, component: Fields) -> Object:
    written = [*_main_mounts(component)]
    if not written:
        return service
    pod: Object = service.get("extraPodSpec") or {}
    declared = {volume.get("name") for volume in _objects(pod.get("volumes"))}
    main: Object = pod.get("mainContainer") or {}
    of_pvcs: list[Fields] = service.get("volumeMounts") or []
    mounts: list[Fields] = main.get("volumeMounts") or []
    as_they_are = {_pvc_place(mount) for mount in of_pvcs if mount.get("useAsCompilationCache")}
    as_they_are |= {_place(mount) for mount in mounts}
    own = {
        _place(mount): mount
        for mount in written
        if _place(mount) not in as_they_are
        and (mount.get("name") in declared or mount.keys() - {"name", "mountPath"})
    }
    if not own:
        return service
    left = [mount for mount in of_pvcs if _pvc_place(mount) not in own]
    named = declared | {mount.get("name") for mount in left}
    claims = dict.fromkeys(name for name, _ in own if name and name not in named)
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    pod = {**pod, "mainContainer": {**main, "volumeMounts": [*mounts, *own.values()]}}
    if volumes:
        pod["volumes"] = [*(pod.get("volumes") or ()), *volumes]
    rest = {name: value for name, value in service.items() if name != "volumeMounts"}
    return {**rest, "extraPodSpec": pod, **({"volumeMounts": left} if left else {})}


def _main_mounts(component: Fields) -> Iterator[Any]:
    containers = _objects(((component.get("podTemplate") or {}).get("spec") or {}).get("containers"))
    main: Fields = next((container for container in containers if container.get("name") == MAIN), {})
    yield from _objects(main.get("volumeMounts"))


# No API server has validated a file, and not all of a pod is read by conversion.
def _objects(entries: object) -> list[Object]:
    """The entries of a list that are objects, and have no name or a text as name."""
    found = entries if isinstance(entries, list) else []
    return [it for it in found if isinstance(it, dict) and isinstance(it.get("name"), str | None)]


def _place(mount: Fields) -> tuple[object, object]:
    return mount.get("name"), mount.get("mountPath")


def _pvc_place(mount: Fields) -> tuple[object, object]:
    return mount.get("name"), mount.get("mountPoint")
