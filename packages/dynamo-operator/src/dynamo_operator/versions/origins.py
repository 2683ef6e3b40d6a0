"""Where a value of `main` came from: v1alpha1 has a field of the service for it, and one of `mainContainer`.

v1beta1 has one container. Both fields are saved, and come back while it says what they say together.
"""

from typing import Final

from dynamo_operator.versions.containers import PROBES, comparable
from dynamo_operator.versions.pod_template import main_container
from kube_runtime.types.meta import Fields, Object

_PAIRS: Final = (
    ("envs", "env"),
    ("envFromSecret", "envFrom"),
    ("resources", "resources"),
    ("volumeMounts", "volumeMounts"),
    *((probe, probe) for probe in PROBES),
)
"""The field of a service, and that of its `mainContainer`."""
_RESTORED_ALIKE: Final = tuple(pair for pair in _PAIRS if pair[1] not in ("envFrom", "volumeMounts"))
_IN_BOTH: Final = frozenset({"name", "env", "resources", "volumeMounts", *PROBES})


def has_origins(main: Fields) -> bool:
    """Whether a `mainContainer` has a name, or a field that could as well be one of the service."""
    return not _IN_BOTH.isdisjoint(main)


def save_origins(saved: Object, service: Fields, main: Fields) -> None:
    """Save both fields of each value that has any."""
    inner: Object = {**saved.get("extraPodSpec", {}).get("mainContainer", {})}
    is_any = "name" in main
    for outer_field, inner_field in _PAIRS:
        if outer_field in service:
            saved[outer_field] = service[outer_field]
        if inner_field in main:
            inner[inner_field] = main[inner_field]
        is_any = is_any or outer_field in service or inner_field in main
    if "name" in main:
        inner["name"] = main["name"]
    if is_any:
        saved["extraPodSpec"] = {**saved.get("extraPodSpec", {}), "mainContainer": inner}


def restore_origins(service: Object, saved: Fields) -> None:
    """Give both fields of a value what was saved if they mean what the live ones do together.

    Of variables from a Secret only the service's field returns. Mounts are apart, in `mounts`.
    """
    saved_main = saved["extraPodSpec"]["mainContainer"]
    main = service.get("extraPodSpec", {}).get("mainContainer", {})
    changed = [
        (outer, inner)
        for outer, inner in _RESTORED_ALIKE
        if (outer in saved or inner in saved_main)
        and (saved.get(outer), saved_main.get(inner)) != (service.get(outer), main.get(inner))
    ]
    has_secret = saved.get("envFromSecret", service.get("envFromSecret")) != service.get("envFromSecret")
    if changed or has_secret:
        live, old = comparable(main_container(service)), comparable(main_container(saved))
        for outer, inner in changed:
            if live.get(inner) == old.get(inner):
                set_field(service, outer, saved.get(outer))
                set_main_field(service, inner, saved_main.get(inner))
        if has_secret and live.get("envFrom") == old.get("envFrom"):
            service["envFromSecret"] = saved["envFromSecret"]
    if "name" in saved_main and "mainContainer" in service.get("extraPodSpec", {}):
        set_main_field(service, "name", saved_main["name"])


def set_field(target: Object, field: str, value: object) -> None:
    """Set a field; None removes it."""
    if value is None:
        target.pop(field, None)
    else:
        target[field] = value


def set_main_field(service: Object, field: str, value: object) -> None:
    """Set a field of the `mainContainer`; None removes it."""
    extra = service.get("extraPodSpec", {})
    main = {**extra.get("mainContainer", {})}
    if value is not None or field in main:
        set_field(main, field, value)
        service["extraPodSpec"] = {**extra, "mainContainer": main}
