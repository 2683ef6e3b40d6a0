"""What is saved of a service of v1alpha1, because a component of v1beta1 cannot hold it."""

from typing import Final

from dynamo_operator.versions import mounts, resources
from dynamo_operator.versions.containers import SIDECAR, named
from dynamo_operator.versions.origins import has_origins, save_origins
from dynamo_operator.versions.parts import some
from dynamo_operator.versions.pod_template import has_content
from dynamo_operator.versions.quantities import is_zero
from dynamo_operator.versions.restored_service import ONLY_V1ALPHA1, ROLES, SWITCHES, role_of
from kube_runtime.types.meta import Fields, Object

_ALWAYS: Final = (*ONLY_V1ALPHA1, "envFromSecret", "frontendSidecar")


def saved_service(service: Fields, *, saves_origins: bool) -> Object:
    """The part of a service to be saved; empty if there is none.

    `saves_origins`: also where values of `main` came from if nothing else has to be saved.
    """
    is_role = service.get("componentType") in ROLES
    is_saved = {
        "componentType": is_role,
        "subComponentType": is_role or role_of(service) is None,
        "resources": not resources.come_back(service.get("resources")),
        "volumeMounts": not mounts.come_back(service),
        "sharedMemory": not _comes_back(service.get("sharedMemory", {})),
        "extraPodMetadata": not service.get("extraPodMetadata"),
        "extraPodSpec": not _is_rebuilt(service),
        **{field: not service.get(field, {}).get("enabled") for field in SWITCHES},
    }
    saved = some(service, (*_ALWAYS, *(field for field in is_saved if is_saved[field])))
    main = service.get("extraPodSpec", {}).get("mainContainer")
    if main is not None and (saves_origins or saved or has_origins(main)):
        save_origins(saved, service, main)
    return saved


def _comes_back(memory: Fields) -> bool:
    """Whether shared memory has either a size or `disabled`, of which v1beta1 makes a size."""
    if memory.get("disabled"):
        return "size" not in memory
    return "disabled" not in memory and not is_zero(memory.get("size", 0))


def _is_rebuilt(service: Fields) -> bool:
    """Whether an `extraPodSpec` says something, and not of a container that a sidecar replaces."""
    extra = service.get("extraPodSpec", {})
    has_sidecar = named(extra.get("containers", []), SIDECAR) is not None
    return has_content(extra) and not (has_sidecar and "frontendSidecar" in service)
