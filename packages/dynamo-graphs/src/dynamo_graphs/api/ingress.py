"""Access to a component from outside the cluster: Ingress or VirtualService."""

from typing import Annotated

from kube_runtime.crd.declare import Field
from kube_runtime.types.meta import Struct

DEFAULT_HOST_SUFFIX = "local"
MESH = "mesh"
"""Istio's word for every sidecar of the mesh, where the name of a gateway is expected."""


class IngressTls(Struct):
    """The certificate of an Ingress."""

    secret_name: Annotated[
        str | None, Field("Secret of type `kubernetes.io/tls` with the certificate and its key.")
    ] = None


class IngressSpec(Struct):
    """Exposes a component outside the cluster."""

    enabled: Annotated[
        bool, Field("Create an Ingress, or a VirtualService, for the component.")
    ] = False
    host: Annotated[str | None, Field("Host name, between `hostPrefix` and `hostSuffix`.")] = None
    use_virtual_service: Annotated[
        bool, Field("Create an Istio VirtualService in place of an Ingress.")
    ] = False
    virtual_service_gateway: Annotated[
        str | None, Field("Istio gateway of the VirtualService, which is not created without it.")
    ] = None
    host_prefix: Annotated[
        str | None, Field("Text put directly in front of `host`; no separator is added.")
    ] = None
    annotations: Annotated[
        dict[str, str], Field("Annotations of the Ingress or VirtualService.")
    ] = {}
    labels: Annotated[dict[str, str], Field("Labels of the Ingress or VirtualService.")] = {}
    tls: Annotated[
        IngressTls | None, Field("Certificate with which the Ingress answers HTTPS.")
    ] = None
    host_suffix: Annotated[
        str | None, Field("Domain after `host` and a dot. Left out, it is `local`.")
    ] = None
    ingress_controller_class_name: Annotated[
        str | None,
        Field("Ingress class, such as `nginx`. Without it no Ingress is created."),
    ] = None


def ingress_host(ingress: IngressSpec) -> str:
    """The host name of an Ingress: prefix and host glued together, then the suffix after a dot."""
    suffix = ingress.host_suffix or DEFAULT_HOST_SUFFIX
    return f"{ingress.host_prefix or ''}{ingress.host or ''}.{suffix}"
