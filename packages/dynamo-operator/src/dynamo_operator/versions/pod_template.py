"""The pod template of v1beta1 that a service of v1alpha1 becomes."""

from typing import Final

from dynamo_operator.versions.containers import (
    MAIN,
    PROBES,
    SIDECAR,
    containers_of,
    env_from_secret,
    has_more_than_a_name,
    merged,
    name_of,
    named,
)
from dynamo_operator.versions.mounts import entries_of, is_cache, mount_of, mounts_of
from dynamo_operator.versions.parts import present, some, without
from dynamo_operator.versions.resources import container_resources
from kube_runtime.types.meta import Fields, Object

_OF_PODS: Final = frozenset(
    {"resources", "envs", "envFromSecret", *PROBES, "extraPodMetadata", "frontendSidecar"}
)
"""Fields of a service that say something of its pods wherever they are present."""


def has_content(extra_pod_spec: Fields) -> bool:
    """Whether an `extraPodSpec` says more than the name of the main container."""
    is_more = bool(extra_pod_spec.keys() - {"mainContainer"})
    return is_more or has_more_than_a_name(extra_pod_spec.get("mainContainer", {}))


def needs_template(service: Fields) -> bool:
    """Whether a service says anything of its pods; a compilation cache alone has its own field."""
    return (
        not _OF_PODS.isdisjoint(service)
        or has_content(service.get("extraPodSpec", {}))
        or any(not is_cache(entry) for entry in entries_of(service))
    )


def pod_template(service: Fields) -> Object:
    """The pod template of a service: `main` first, then its other containers.

    A container of `extraPodSpec` that is named `main`, too, has no place in a template.
    """
    extra = service.get("extraPodSpec", {})
    main = {"name": MAIN, **main_container(service)}
    others = [container for container in extra.get("containers", []) if name_of(container) != MAIN]
    if "frontendSidecar" in service and named(others, SIDECAR) is None:
        others.append(_sidecar(service["frontendSidecar"]))
    spec = {**without(extra, "mainContainer", "containers"), "containers": [main, *others]}
    return {**present(metadata=service.get("extraPodMetadata")), "spec": spec}


def with_mount_paths(template: Object) -> Object:
    """The template with an empty path in mounts that have none: it is their key in server-side apply."""
    if "containers" not in template.get("spec", {}):
        return template
    containers = [
        {**container, "volumeMounts": [{"mountPath": "", **mount} for mount in mounts_of(container)]}
        if mounts_of(container)
        else container
        for container in containers_of(template)
    ]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def main_container(service: Fields) -> Object:
    """What a service says of `main`, in its own fields and in `mainContainer`, without the name."""
    dedicated = {
        **present(
            resources=container_resources(service.get("resources", {})),
            env=service.get("envs"),
            envFrom=env_from_secret(service.get("envFromSecret")),
            volumeMounts=[*map(mount_of, entries_of(service))],
        ),
        **some(service, PROBES),
    }
    return merged(dedicated, service.get("extraPodSpec", {}).get("mainContainer", {}))


def _sidecar(sidecar: Fields) -> Object:
    return present(
        name=SIDECAR,
        image=sidecar.get("image"),
        args=sidecar.get("args"),
        env=sidecar.get("envs"),
        envFrom=env_from_secret(sidecar.get("envFromSecret")),
    )
