"""Every setting of the operator, in one frozen struct, read once at start."""

from typing import Literal

import msgspec


class RenderSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings that change what we render. Source: specification `rendering` 1.1."""

    nats_address: str = ""
    etcd_address: str = ""
    model_express_url: str = ""
    prometheus_endpoint: str = ""
    discovery_backend: Literal["kubernetes", "etcd"] = "kubernetes"
    probe_profile: Literal["http", "documented"] = "http"
    mpi_secret_name: str = ""
    mpi_secret_namespace: str = ""
    grove_termination_delay_seconds: int = 900
    virtual_service_gateway: str = ""
    ingress_class_name: str = ""
    ingress_tls_secret_name: str = ""
    ingress_host_suffix: str = ""
    planner_cluster_role_name: str = ""
    epp_cluster_role_name: str = ""
    restricted_namespace: str = ""
    debugger_image: str = "python:3.12-slim"
