"""An object of v1beta1 as the operator computes with it: in v1alpha1, and complete."""

from collections.abc import Iterator
from typing import Any

from dynamo_operator.shared.problems import SERVED
from dynamo_operator.shared.written import MAIN
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Fields, Object


# In v1alpha1 a mount of a service is that of a PVC and has two fields. Conversion makes one of each mount of
# `main`, and keeps the other fields in an annotation. Of a mount whose volume the pod declares, the operator
# needs the mount itself: `volumeMounts` would make a second volume of that name.
def seen(document: Object) -> Object:
    """The object in v1alpha1, with the mounts of volumes that the pod itself declares in `mainContainer`.

    Raises ConversionError.
    """
    converted = convert(document, SERVED)
    spec, written = converted.get("spec") or {}, document.get("spec") or {}
    if converted["kind"] == "DynamoComponentDeployment":
        return {**converted, "spec": _with_own_mounts(spec, written)} if "spec" in converted else converted
    if converted["kind"] != "DynamoGraphDeployment" or "services" not in spec:
        return converted
    components = {component.get("name"): component for component in written.get("components") or ()}
    services = {
        name: service if service is None else _with_own_mounts(service, components.get(name) or {})
        for name, service in spec["services"].items()
    }
    return {**converted, "spec": {**spec, "services": services}}


def _with_own_mounts(service: Object, component: Fields) -> Object:
    pod: Object = service.get("extraPodSpec") or {}
    declared = {volume.get("name") for volume in pod.get("volumes") or ()}
    main: Object = pod.get("mainContainer") or {}
    mounts: list[Fields] = main.get("volumeMounts") or []
    places = {_place(mount) for mount in mounts}
    own = [
        mount
        for mount in _main_mounts(component)
        if mount.get("name") in declared and _place(mount) not in places
    ]
    if not own:
        return service
    left = [
        mount
        for mount in service.get("volumeMounts") or ()
        if mount.get("name") not in declared or mount.get("useAsCompilationCache")
    ]
    rest = {name: value for name, value in service.items() if name != "volumeMounts"}
    pod = {**pod, "mainContainer": {**main, "volumeMounts": [*mounts, *own]}}
    return {**rest, "extraPodSpec": pod, **({"volumeMounts": left} if left else {})}


def _main_mounts(component: Fields) -> Iterator[Any]:
    containers = ((component.get("podTemplate") or {}).get("spec") or {}).get("containers") or ()
    main: Fields = next((container for container in containers if container.get("name") == MAIN), {})
    yield from main.get("volumeMounts") or ()


def _place(mount: Fields) -> tuple[object, object]:
    return mount.get("name"), mount.get("mountPath")
