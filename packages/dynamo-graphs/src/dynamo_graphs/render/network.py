"""How a component is reached: its Services, Ingress and VirtualService, the Service of its model."""

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import ComponentSpec, IngressSpec
from dynamo_graphs.render.components.plain import SYSTEM_PORT
from dynamo_graphs.render.interfaces import ComponentPlan, metadata
from dynamo_graphs.settings.allowed import allows_key, entries
from dynamo_graphs.types.istio import VirtualService
from kube_runtime.kind import Object

_DEFAULT_HOST_SUFFIX = "local"
_OWN_PREFIX = "nvidia.com/"
_MESH = "mesh"
"""The gateway that stands for all sidecars. A route of one namespace must not change what those of others do;
a real gateway may run in any namespace, so only this one is limited."""


def services(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's Service; while its traffic is being stolen also one per side."""
    everything = _service(plan, "", {})
    if not plan.is_on(labels.STEALING_DEBUG_MODE):
        return (everything,)
    debug = _service(plan, "-d", {labels.TARGET_TYPE: "debug"})
    return (everything, _service(plan, "-p", {}), debug)


def _service(plan: ComponentPlan, suffix: str, also: dict[str, str]) -> Object:
    own: dict[str, str] = {}
    if plan.is_discovered_by_kubernetes:
        own[labels.DISCOVERY_BACKEND_LABEL] = "kubernetes"
        if plan.component_type != "frontend":
            own[labels.DISCOVERY_ENABLED] = "true"
    name = names.service_name(plan.name, suffix)
    serving = plan.orchestrator.serving_labels()
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(plan, name, plan.labels | own, plan.annotations),
        "spec": {
            "selector": plan.selector | serving | also,
            "ports": list(plan.role.service_ports()),
        },
    }


def ingresses(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's Ingress, if it is wanted and a controller is named."""
    wanted = plan.ingress
    if wanted is None or not wanted.enabled or not wanted.ingress_controller_class_name:
        return ()
    host = ingress_host(wanted)
    port = plan.role.service_ports()[0]["port"]
    backend = {"service": {"name": names.service_name(plan.name), "port": {"number": port}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec: Object = {
        "ingressClassName": wanted.ingress_controller_class_name,
        "rules": [{"host": host, "http": {"paths": [path]}}],
    }
    if wanted.tls is not None:
        secret = {"secretName": wanted.tls.secret_name} if wanted.tls.secret_name else {}
        spec["tls"] = [{"hosts": [host], **secret}]
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": _outside_metadata(plan, wanted),
        "spec": spec,
    }
    return (ingress,)


def virtual_services(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's VirtualService, if it is wanted and its gateway is named."""
    wanted = plan.ingress
    if wanted is None or not wanted.enabled or not plan.knows_istio:
        return ()
    if not wanted.use_virtual_service or not wanted.virtual_service_gateway:
        return ()
    port = {"number": plan.role.service_ports()[0]["port"]}
    destination = {"host": names.service_name(plan.name), "port": port}
    route = {
        "match": [{"uri": {"prefix": "/"}}],
        "route": [{"destination": destination}],
    }
    spec: Object = {
        "hosts": [ingress_host(wanted)],
        "gateways": [wanted.virtual_service_gateway],
        "http": [route],
    }
    if wanted.virtual_service_gateway == _MESH:
        spec["exportTo"] = ["."]
    virtual_service = {
        "apiVersion": VirtualService.KIND.api_version,
        "kind": VirtualService.KIND.name,
        "metadata": _outside_metadata(plan, wanted),
        "spec": spec,
    }
    return (virtual_service,)


def _outside_metadata(plan: ComponentPlan, wanted: IngressSpec) -> Object:
    """Metadata of what leads to the component from outside, with the user's for just that."""
    users = {key: value for key, value in wanted.labels.items() if key not in labels.SELECTING}
    name = names.workload_name(plan.name)
    # Validation refuses what is listed under `ingress`; others are the component's and only left out here.
    allowed = entries(plan.settings.ingress_allowed_annotations)
    own = {
        key: text
        for key, text in plan.annotations.items()
        if not allowed or key.startswith(_OWN_PREFIX) or allows_key(key, allowed)
    }
    return metadata(plan, name, plan.labels | users, own | wanted.annotations)


def ingress_host(wanted: IngressSpec) -> str:
    """The host name of an Ingress: prefix and host glued together, then the suffix after a dot."""
    suffix = wanted.host_suffix or _DEFAULT_HOST_SUFFIX
    return f"{wanted.host_prefix or ''}{wanted.host or ''}.{suffix}"


def model_services(namespace: str, spec: ComponentSpec) -> tuple[Object, ...]:
    """The headless Service over every pod of the namespace that serves the component's model.

    It depends on the model's name only: reconciles render it in the event loop, however large the spec is.
    """
    if spec.model_ref is None or not spec.model_ref.name:
        return ()
    model = spec.model_ref.name
    hashed = {labels.BASE_MODEL_HASH: names.model_hash(model)}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.model_service_name(model),
            "namespace": namespace,
            "labels": {**hashed, labels.MANAGED_BY: labels.MANAGER},
            "annotations": {labels.BASE_MODEL: model},
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": False,
            "selector": hashed,
            "ports": [
                {
                    "name": "system",
                    "port": SYSTEM_PORT,
                    "targetPort": SYSTEM_PORT,
                    "protocol": "TCP",
                }
            ],
        },
    }
    return (service,)
