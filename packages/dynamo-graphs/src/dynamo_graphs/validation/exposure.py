"""The gateways, hosts, ingress classes and annotations that tenants may use.

A right to write graphs usually comes without one on Ingresses and VirtualServices, which the operator
creates with its own. So the administrator's limits are checked here: at admission, by `dynamoctl lint`, and
again before each apply.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dynamo_graphs.api.component import ComponentSpec, DynamoComponentDeployment, IngressSpec
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.settings.allowed import (
    allows_host,
    allows_key,
    entries,
    executes_configuration,
    is_in_cluster,
)
from dynamo_graphs.validation import Problem, ProblemKind

MESH: Final = "mesh"
"""Istio's word for every sidecar of the mesh."""

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_HOST_ANNOTATIONS = ("server-alias", "server-alias-regex", "hostname", "internal-hostname")
"""Name parts of annotations that add hosts: of ingress-nginx, haproxy-ingress and external-dns."""

_DEFAULT_SUFFIX = "local"


def graph_exposure_problems(
    graph: DynamoGraphDeployment, settings: RenderSettings, *, has_istio: bool = True
) -> Iterator[Problem]:
    """What the administrator does not allow of the ways into a graph's services."""
    for key, service in sorted(graph.spec.services.items()):
        path = f"spec.services.{key}"
        yield from exposure_problems(service, path, settings, has_istio=has_istio)


def component_exposure_problems(
    component: DynamoComponentDeployment, settings: RenderSettings, *, has_istio: bool = True
) -> Iterator[Problem]:
    """What the administrator does not allow of the ways into a component."""
    yield from exposure_problems(component.spec, "spec", settings, has_istio=has_istio)


def exposure_problems(
    spec: ComponentSpec, path: str, settings: RenderSettings, *, has_istio: bool = True
) -> Iterator[Problem]:
    """What the administrator does not allow of the ways into one component, whose spec is at `path`.

    Without Istio no VirtualService is created, so its gateway does not matter.
    """
    wanted = spec.ingress
    if wanted is None or not wanted.enabled:
        return
    at = f"{path}.ingress"
    if has_istio and wanted.use_virtual_service and wanted.virtual_service_gateway:
        yield from _gateway_problems(wanted.virtual_service_gateway, at, settings)
    if name := wanted.ingress_controller_class_name:
        yield from _class_problems(name, f"{at}.ingressControllerClassName", settings)
    if wanted.host:
        yield from _host_problems(host_of(wanted), f"{at}.host", settings)
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    # Annotations of the component are on its Ingress too, those that the list allows.
    yield from _annotation_problems(spec.annotations, f"{path}.annotations", settings)
    yield from _annotation_problems(extra, f"{path}.extraPodMetadata.annotations", settings)
    yield from _annotation_problems(wanted.annotations, f"{at}.annotations", settings)
    yield from _unlisted(wanted.annotations, f"{at}.annotations", settings)


def host_of(wanted: IngressSpec) -> str:
    """The host: prefix and host glued together, then the suffix after a dot."""
    suffix = wanted.host_suffix or _DEFAULT_SUFFIX
    return f"{wanted.host_prefix or ''}{wanted.host or ''}.{suffix}"


def _gateway_problems(gateway: str, at: str, settings: RenderSettings) -> Iterator[Problem]:
    allowed = entries(settings.allowed_gateways)
    if gateway in (settings.virtual_service_gateway, *allowed):
        return
    if "*" in allowed and gateway != MESH:
        return
    usable = [each for each in (settings.virtual_service_gateway, *allowed) if each]
    expected = f"expected one of: {', '.join(usable)}" if usable else "none is allowed"
    message = (
        f'gateway "{gateway}" is not allowed ({expected}); an administrator allows it with '
        "--istio-allowed-gateways"
    )
    yield Problem(f"{at}.virtualServiceGateway", message, ProblemKind.FORBIDDEN)


def _class_problems(name: str, at: str, settings: RenderSettings) -> Iterator[Problem]:
    allowed = entries(settings.ingress_allowed_classes)
    if not allowed or name in (*allowed, settings.ingress_class_name):
        return
    message = (
        f'ingress class "{name}" is not allowed (expected one of: {", ".join(allowed)}); an '
        "administrator allows it with --ingress-allowed-classes"
    )
    yield Problem(at, message, ProblemKind.FORBIDDEN)


def _host_problems(host: str, at: str, settings: RenderSettings) -> Iterator[Problem]:
    if is_in_cluster(host, settings.cluster_domain):
        message = f'host "{host}" is in the cluster\'s own domain, which is reserved for Services'
        yield Problem(at, message, ProblemKind.FORBIDDEN)
        return
    allowed = entries(settings.ingress_allowed_host_suffixes)
    own = settings.ingress_host_suffix or _DEFAULT_SUFFIX
    if not allowed or allows_host(host, (*allowed, own)):
        return
    message = (
        f'host "{host}" is not allowed (expected a host that ends in one of: {", ".join(allowed)}); an '
        "administrator allows it with --ingress-allowed-host-suffixes"
    )
    yield Problem(at, message, ProblemKind.FORBIDDEN)


def _annotation_problems(
    annotations: Mapping[str, str], at: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Annotations that are dangerous by themselves, and those that hold a class or hosts."""
    allowed = entries(settings.ingress_allowed_annotations)
    for key, value in sorted(annotations.items()):
        place = f"{at}[{key}]"
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
            for host in filter(None, (each.strip() for each in value.split(","))):
                yield from _host_problems(host, place, settings)


def _unlisted(
    annotations: Mapping[str, str], at: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Annotations that are not in the administrator's list, if there is one."""
    allowed = entries(settings.ingress_allowed_annotations)
    for key in sorted(annotations) if allowed else ():
        if not executes_configuration(key) and not allows_key(key, allowed):
            message = (
                f'annotation "{key}" is not allowed (expected one of: {", ".join(allowed)}); an '
                "administrator allows it with --ingress-allowed-annotations"
            )
            yield Problem(f"{at}[{key}]", message, ProblemKind.FORBIDDEN)
