"""The objects of one component: workload, Services, Ingress or VirtualService, Service of its model."""

from collections.abc import Sequence

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_graphs.api.component_fields import MESH, IngressSpec, ingress_host
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.disruption import component_disruption_budgets
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.leader_wait import wait_config_maps
from dynamo_graphs.render.merge import canonical
from dynamo_graphs.render.metadata import object_metadata
from dynamo_graphs.render.plan import component_plan
from dynamo_graphs.render.roles import SYSTEM_PORT
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.settings.allowed import allows_key, entries
from dynamo_graphs.types.optional_apis import VirtualService
from kube_runtime.kind import Object


def component_objects(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """Return the objects that the component controls, without owner references, in order of creation."""
    around, workloads = component_parts(component, facts, settings)
    return (*around, *workloads)


def component_parts(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Sequence[Object], Sequence[Object]]:
    """Return the same in two parts: the other objects, and the workloads, rendered when they are read."""
    plan = component_plan(component, facts, settings)
    outside = (*ingresses(plan), *virtual_services(plan))
    budgets = () if plan.graph else component_disruption_budgets(component, settings)
    around = (*services(plan), *outside, *budgets, *wait_config_maps(plan))
    return tuple(map(canonical, around)), plan.orchestrator.workloads(plan)


def component_shared_objects(component: DynamoComponentDeployment) -> tuple[Object, ...]:
    """Return the Service of the base model, which all its components own and none controls."""
    return tuple(map(canonical, model_services(component.metadata.namespace, component.spec)))


_OWN_PREFIX = "nvidia.com/"


def services(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's Service; in the debug mode that steals traffic also one for each Deployment."""
    main = _service(plan, "", {})
    if not plan.is_on(labels.STEALING_DEBUG_MODE):
        return (main,)
    debug = _service(plan, "-d", {labels.TARGET_TYPE: "debug"})
    return (main, _service(plan, "-p", {}), debug)


def _service(plan: ComponentPlan, suffix: str, selector: dict[str, str]) -> Object:
    own: dict[str, str] = {}
    if plan.is_discovered_by_kubernetes:
        own[labels.DISCOVERY_BACKEND_LABEL] = "kubernetes"
        if plan.component_type != "frontend":
            own[labels.DISCOVERY_ENABLED] = "true"
    name = names.service_name(plan.name, suffix)
    serving = plan.orchestrator.serving_labels
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": object_metadata(plan.namespace, name, plan.labels | own, plan.annotations),
        "spec": {
            "selector": plan.selector | serving | selector,
            "ports": [dict(port) for port in plan.role.service_ports],
        },
    }


def ingresses(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's Ingress, if it is enabled and has an ingress class."""
    ingress = plan.ingress
    if ingress is None or not ingress.enabled or not ingress.ingress_controller_class_name:
        return ()
    host = ingress_host(ingress)
    port = plan.role.service_ports[0]["port"]
    backend = {"service": {"name": names.service_name(plan.name), "port": {"number": port}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec: Object = {
        "ingressClassName": ingress.ingress_controller_class_name,
        "rules": [{"host": host, "http": {"paths": [path]}}],
    }
    if ingress.tls is not None:
        secret = {"secretName": ingress.tls.secret_name} if ingress.tls.secret_name else {}
        spec["tls"] = [{"hosts": [host], **secret}]
    return (
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": _outside_metadata(plan, ingress),
            "spec": spec,
        },
    )


def virtual_services(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's VirtualService, if it is enabled and has a gateway."""
    ingress = plan.ingress
    if ingress is None or not ingress.enabled or not plan.knows_istio:
        return ()
    if not ingress.use_virtual_service or not ingress.virtual_service_gateway:
        return ()
    port = {"number": plan.role.service_ports[0]["port"]}
    destination = {"host": names.service_name(plan.name), "port": port}
    route = {
        "match": [{"uri": {"prefix": "/"}}],
        "route": [{"destination": destination}],
    }
    spec: Object = {
        "hosts": [ingress_host(ingress)],
        "gateways": [ingress.virtual_service_gateway],
        "http": [route],
    }
    # A route for sidecars must not affect other namespaces. A gateway may run in any namespace.
    if ingress.virtual_service_gateway == MESH:
        spec["exportTo"] = ["."]
    virtual_service = {
        "apiVersion": VirtualService.KIND.api_version,
        "kind": VirtualService.KIND.name,
        "metadata": _outside_metadata(plan, ingress),
        "spec": spec,
    }
    return (virtual_service,)


def _outside_metadata(plan: ComponentPlan, ingress: IngressSpec) -> Object:
    """Metadata of the Ingress or VirtualService, with the labels and annotations under `ingress`."""
    users = {key: value for key, value in ingress.labels.items() if key not in labels.SELECTING}
    name = names.workload_name(plan.name)
    # Validation rejects forbidden annotations under `ingress`; those of the component are only dropped.
    allowed = entries(plan.settings.ingress_allowed_annotations)
    own = {
        key: text
        for key, text in plan.annotations.items()
        if not allowed or key.startswith(_OWN_PREFIX) or allows_key(key, allowed)
    }
    return object_metadata(plan.namespace, name, plan.labels | users, own | ingress.annotations)


def model_services(namespace: str, spec: ComponentSpec) -> tuple[Object, ...]:
    """The headless Service of all pods in the namespace that serve the component's model.

    It depends on the model's name only, so rendering it is cheap however large the spec is.
    """
    if spec.model_ref is None or not spec.model_ref.name:
        return ()
    model = spec.model_ref.name
    port = {"name": "system", "port": SYSTEM_PORT, "targetPort": SYSTEM_PORT, "protocol": "TCP"}
    hashed = {labels.BASE_MODEL_HASH: names.model_hash(model)}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": object_metadata(
            namespace,
            names.model_service_name(model),
            {**hashed, labels.MANAGED_BY: labels.MANAGER},
            {labels.BASE_MODEL: model},
        ),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": False,
            "selector": hashed,
            "ports": [port],
        },
    }
    return (service,)
