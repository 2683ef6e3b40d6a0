"""Fields that are accepted and have no effect, given the other fields."""

from collections.abc import Iterator

from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.validation import Problem, service_path
from kube_runtime.kind import Object


def ineffective(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warnings of one component, whose spec is at `path` and has no problems."""
    if spec.model_ref and spec.model_ref.revision:
        yield Problem(f"{path}.modelRef.revision", "has no effect: nothing reads it")
    if spec.epp_config and spec.component_type != "epp":
        yield Problem(f"{path}.eppConfig", "has no effect without componentType: epp")
    if spec.shared_memory and spec.shared_memory.disabled and spec.shared_memory.size is not None:
        yield Problem(f"{path}.sharedMemory.size", "has no effect with disabled: true")
    sides = (spec.resources.requests, spec.resources.limits) if spec.resources else ()
    if any(side and side.gpu_type for side in sides) and not any(
        side and side.gpu for side in sides
    ):
        yield Problem(f"{path}.resources", "gpuType has no effect without gpu")
    yield from _ingress_warnings(spec, f"{path}.ingress")


def graph_ineffective(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warnings of what all services of a graph share, and of services in a graph."""
    for index, claim in enumerate(graph.spec.pvcs):
        creating = {
            "storageClass": claim.storage_class,
            "size": claim.size,
            "volumeAccessMode": claim.volume_access_mode,
            "retain": claim.retain,
        }
        for field, value in creating.items():
            if value and not claim.create:
                path = f"spec.pvcs[{index}].{field}"
                yield Problem(path, "has no effect without create: true")
    on_grove = is_on_grove(graph)
    for key, service in sorted(graph.spec.services.items()):
        path = service_path(key)
        if service.service_name and service.service_name != key:
            message = f'has no effect: the name of a service is its key, "{key}"'
            yield Problem(f"{path}.serviceName", message)
        if on_grove and service.disruption_budget:
            message = "has no effect on Grove: budgets are for components that run as a Deployment"
            yield Problem(f"{path}.disruptionBudget", message)
        is_hidden = on_grove and service.component_type != "frontend"
        if is_hidden and service.ingress and service.ingress.enabled:
            message = "has no effect on Grove: only frontends are exposed"
            yield Problem(f"{path}.ingress", message)


def _ingress_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    ingress = spec.ingress
    if ingress is None or not ingress.enabled:
        return
    if ingress.virtual_service_gateway and not ingress.use_virtual_service:
        message = "has no effect without useVirtualService: true"
        yield Problem(f"{path}.virtualServiceGateway", message)
    if ingress.tls and ingress.use_virtual_service and not ingress.ingress_controller_class_name:
        message = "has no effect on a VirtualService: the certificate belongs to its gateway"
        yield Problem(f"{path}.tls", message)


def without_switch(document: Object) -> Iterator[Problem]:
    """Warnings of objects that are off because `enabled` was left out, in a document as it was written.

    The API server adds the default, so that later nothing shows whether a user meant it.
    """
    spec = document.get("spec")
    services = spec.get("services") if isinstance(spec, dict) else None
    places = {"spec": spec}
    if isinstance(services, dict):
        places = {service_path(key): service for key, service in services.items()}
    for path, place in places.items():
        adapter, ingress = (
            (place.get(field) if isinstance(place, dict) else None)
            for field in ("scalingAdapter", "ingress")
        )
        if isinstance(adapter, dict) and "enabled" not in adapter:
            yield Problem(f"{path}.scalingAdapter", "has no effect without enabled: true")
        if isinstance(ingress, dict) and ingress and "enabled" not in ingress:
            yield Problem(f"{path}.ingress", "exposes nothing without enabled: true")
