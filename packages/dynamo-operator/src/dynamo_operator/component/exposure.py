"""The Ingresses and VirtualServices of graphs, and what tenants may write in them.

Users who may write graphs usually may not write Ingresses and VirtualServices; the operator creates those for
them. So it enforces the administrator's limits: at admission, in `dynamoctl lint`, and before each apply.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    DEFAULT_HOST_SUFFIX,
    MESH,
    ComponentSpec,
    DynamoComponentDeployment,
    IngressSpec,
    ingress_host,
)
from dynamo_operator.component.objects import object_metadata
from dynamo_operator.component.plan import ComponentPlan
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import (
    RenderSettings,
    allows_host,
    allows_key,
    entries,
    executes_configuration,
    is_in_cluster,
)
from dynamo_operator.shared.cluster import VirtualService
from dynamo_operator.shared.problems import Problem, ProblemKind, service_path
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.types.kinds import Ingress
from kube_runtime.types.meta import Key, Object, key_of

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_HOST_ANNOTATIONS = ("server-alias", "server-alias-regex", "hostname", "internal-hostname")
"""Names of annotations that add hosts, in ingress-nginx, haproxy-ingress and external-dns."""


_OWN_PREFIX = "nvidia.com/"


def exposing_objects(plan: ComponentPlan) -> Iterator[Object]:
    """The component's Ingress, if it has an ingress class, and its VirtualService, if it has a gateway."""
    ingress = plan.spec.ingress
    if ingress is None or not ingress.enabled:
        return
    metadata, host = _outside_metadata(plan, ingress), ingress_host(ingress)
    service, port = names.service_name(plan.name), {"number": plan.role.service_ports[0]["port"]}
    if ingress.ingress_controller_class_name:
        backend = {"service": {"name": service, "port": port}}
        path = {"path": "/", "pathType": "Prefix", "backend": backend}
        spec: Object = {
            "ingressClassName": ingress.ingress_controller_class_name,
            "rules": [{"host": host, "http": {"paths": [path]}}],
        }
        if ingress.tls is not None:
            secret = {"secretName": ingress.tls.secret_name} if ingress.tls.secret_name else {}
            spec["tls"] = [{"hosts": [host], **secret}]
        yield Ingress.KIND.manifest(metadata, spec=spec)
    gateway = ingress.virtual_service_gateway
    if plan.knows_istio and ingress.use_virtual_service and gateway:
        destination = {"host": service, "port": port}
        route = {"match": [{"uri": {"prefix": "/"}}], "route": [{"destination": destination}]}
        # A route for sidecars must not affect other namespaces. A gateway may run in any namespace.
        scope = {"exportTo": ["."]} if gateway == MESH else {}
        spec = {"hosts": [host], "gateways": [gateway], "http": [route], **scope}
        yield VirtualService.KIND.manifest(metadata, spec=spec)


def _outside_metadata(plan: ComponentPlan, ingress: IngressSpec) -> Object:
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


def graph_exposure_problems(graph: DynamoGraphDeployment, settings: RenderSettings) -> Iterator[Problem]:
    """Report what the administrator does not allow in the Ingresses of a graph's services."""
    for key, service in sorted(graph.spec.services.items()):
        yield from exposure_problems(service, service_path(key), settings)


def exposure_problems(
    spec: ComponentSpec, path: str, settings: RenderSettings, *, has_istio: bool = True
) -> Iterator[Problem]:
    """Report what the administrator does not allow in the Ingress of one component, whose spec is at `path`.

    Without Istio no VirtualService is created, so its gateway does not matter.
    """
    ingress = spec.ingress
    if ingress is None or not ingress.enabled:
        return
    at = f"{path}.ingress"
    gateway = ingress.virtual_service_gateway
    if has_istio and ingress.use_virtual_service and gateway:
        gateways, own = entries(settings.allowed_gateways), settings.virtual_service_gateway
        if gateway not in (own, *gateways) and ("*" not in gateways or gateway == MESH):
            usable = [name for name in (own, *gateways) if name]
            expected = f"expected one of: {', '.join(usable)}" if usable else "none is allowed"
            subject, flag = f'gateway "{gateway}"', "--istio-allowed-gateways"
            yield _not_allowed(f"{at}.virtualServiceGateway", subject, expected, flag)
    if name := ingress.ingress_controller_class_name:
        yield from _class_problems(name, f"{at}.ingressControllerClassName", settings)
    if ingress.host:
        yield from _host_problems(ingress_host(ingress), f"{at}.host", settings)
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    # The Ingress also gets those annotations of the component that the list allows.
    yield from _annotation_problems(spec.annotations, f"{path}.annotations", settings)
    yield from _annotation_problems(extra, f"{path}.extraPodMetadata.annotations", settings)
    yield from _annotation_problems(ingress.annotations, f"{at}.annotations", settings)
    allowed = entries(settings.ingress_allowed_annotations)
    for key in sorted(ingress.annotations) if allowed else ():
        if not executes_configuration(key) and not allows_key(key, allowed):
            subject, expected = f'annotation "{key}"', f"expected one of: {', '.join(allowed)}"
            yield _not_allowed(f"{at}.annotations[{key}]", subject, expected, "--ingress-allowed-annotations")


def _class_problems(name: str, path: str, settings: RenderSettings) -> Iterator[Problem]:
    allowed = entries(settings.ingress_allowed_classes)
    if allowed and name not in (*allowed, settings.ingress_class_name):
        expected = f"expected one of: {', '.join(allowed)}"
        yield _not_allowed(path, f'ingress class "{name}"', expected, "--ingress-allowed-classes")


def _host_problems(host: str, path: str, settings: RenderSettings) -> Iterator[Problem]:
    if is_in_cluster(host, settings.cluster_domain):
        message = f'host "{host}" is in the cluster\'s own domain, which is reserved for Services'
        yield Problem(path, message, ProblemKind.FORBIDDEN)
        return
    allowed = entries(settings.ingress_allowed_host_suffixes)
    own = settings.ingress_host_suffix or DEFAULT_HOST_SUFFIX
    if allowed and not allows_host(host, (*allowed, own)):
        expected = f"expected a host that ends in one of: {', '.join(allowed)}"
        yield _not_allowed(path, f'host "{host}"', expected, "--ingress-allowed-host-suffixes")


def _annotation_problems(
    annotations: Mapping[str, str], path: str, settings: RenderSettings
) -> Iterator[Problem]:
    allowed = entries(settings.ingress_allowed_annotations)
    for key, value in sorted(annotations.items()):
        place = f"{path}[{key}]"
        if executes_configuration(key) and key not in allowed:
            message = (
                f'annotation "{key}" passes configuration to the ingress controller as text and '
                "is not allowed; an administrator allows it by its full name with "
                "--ingress-allowed-annotations"
            )
            yield Problem(place, message, ProblemKind.FORBIDDEN)
        elif key == _CLASS_ANNOTATION:
            yield from _class_problems(value, place, settings)
        elif key.rpartition("/")[2] in _HOST_ANNOTATIONS:
            for host in filter(None, (part.strip() for part in value.split(","))):
                yield from _host_problems(host, place, settings)


def _not_allowed(path: str, subject: str, expected: str, flag: str) -> Problem:
    message = f"{subject} is not allowed ({expected}); an administrator allows it with {flag}"
    return Problem(path, message, ProblemKind.FORBIDDEN)


_OUTSIDE = (Ingress.KIND.name, VirtualService.KIND.name)


# A withheld object is neither written nor deleted: an upgrade of the operator interrupts no traffic
# and exposes nothing new.
class Exposure(msgspec.Struct, frozen=True):
    """The objects to apply, the keys to leave alone, and the reasons for the status."""

    desired: Sequence[Object]
    spared: frozenset[tuple[str, Key]] = frozenset()
    blocked: tuple[Blocked, ...] = ()


# The rules are those of the webhooks. They are checked again here, because an object may be stored
# while the webhooks are off, or before the administrator restricts exposure.
def component_exposure(
    component: DynamoComponentDeployment, desired: Sequence[Object], settings: RenderSettings
) -> Exposure:
    """Split the objects of a component into those to apply and those that are not allowed."""
    specs = {component.metadata.name: (component.spec, "spec")}
    return allowed(desired, specs, component.metadata.namespace, settings)


def allowed(
    desired: Sequence[Object],
    specs: Mapping[str, tuple[ComponentSpec, str]],
    namespace: str,
    settings: RenderSettings,
) -> Exposure:
    """The objects without those of components whose exposure has problems. `specs` have paths, by name."""
    virtual = {key_of(body).name for body in desired if body["kind"] == VirtualService.KIND.name}
    refused: dict[str, tuple[Problem, ...]] = {}
    for component, (spec, path) in specs.items():
        name = names.workload_name(component)
        if denials := tuple(exposure_problems(spec, path, settings, has_istio=name in virtual)):
            refused[name] = denials
    if not refused:
        return Exposure(desired)
    kept: list[Object] = []
    blocked: list[Blocked] = []
    for body in desired:
        kind, name = body["kind"], key_of(body).name
        if kind in _OUTSIDE and name in refused:
            text = f"{kind} {name} is not created: {'; '.join(map(str, refused[name]))}"
            blocked.append(Blocked(Obstacle.NOT_ALLOWED, kind, name, text))
        else:
            kept.append(body)
    # Both kinds are spared: an edit that switches the kind must not end traffic while it is not allowed.
    spared = frozenset((kind, Key(namespace, name)) for kind in _OUTSIDE for name in refused)
    return Exposure(tuple(kept), spared, tuple(blocked))
