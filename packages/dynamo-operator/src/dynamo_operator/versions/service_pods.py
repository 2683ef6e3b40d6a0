"""The fields of a v1alpha1 service that a pod template of v1beta1 becomes."""

from typing import Final

from dynamo_operator.versions.containers import (
    PROBES,
    SIDECAR,
    containers_of,
    main_and_others,
    name_of,
    secret_of,
)
from dynamo_operator.versions.mounts import entries_from
from dynamo_operator.versions.parts import present, some, without
from dynamo_operator.versions.resources import service_resources
from kube_runtime.types.meta import Fields, Object

_OWN_FIELDS: Final = ("name", "resources", "env", "volumeMounts", *PROBES)
"""The fields of `main` that a service has fields for."""


def service_pods(component: Fields, saved: Fields) -> Object:
    """The fields of a service that a component's pod template, sidecar and compilation cache become.

    `saved` has the sidecar of the service, if the component's is one that v1alpha1 has a field for.
    """
    is_sidecar_saved = component.get("frontendSidecar") == SIDECAR and "frontendSidecar" in saved
    template = component.get("podTemplate", {})
    main, others = main_and_others(containers_of(template))
    service: Object = {}
    if is_sidecar_saved:
        sidecars = [container for container in others if name_of(container) == SIDECAR]
        others = [container for container in others if name_of(container) != SIDECAR]
        service["frontendSidecar"] = _sidecar(sidecars, saved["frontendSidecar"])
    if main is not None:
        service.update(_main_fields(main))
    extra = {
        **without(template.get("spec", {}), "containers"),
        **present(containers=others, mainContainer=_rest(main or {})),
    }
    metadata = some(template.get("metadata", {}), ("annotations", "labels"))
    return {
        **service,
        **present(extraPodMetadata=metadata, extraPodSpec=extra, volumeMounts=entries_from(component, main)),
    }


def _rest(main: Fields) -> Object:
    """What a service has no fields for: it stays in the `mainContainer`."""
    resources = without(main.get("resources", {}), "requests", "limits", "claims")
    return {**without(main, *_OWN_FIELDS), **present(resources=resources)}


def _main_fields(main: Fields) -> Object:
    resources = service_resources(main.get("resources", {}))
    return {**present(resources=resources, envs=main.get("env")), **some(main, PROBES)}


def _sidecar(sidecars: list[Object], saved: Object) -> Object:
    """The sidecar of a service: what its container says now, or as it was saved if there is none."""
    if not sidecars:
        return saved
    (sidecar, *_) = sidecars
    secret = secret_of(sidecar.get("envFrom", []))
    if secret is None and saved.get("envFromSecret") == "":
        secret = ""
    fields = present(image=sidecar.get("image"), args=sidecar.get("args"), envs=sidecar.get("env"))
    return fields if secret is None else {**fields, "envFromSecret": secret}
