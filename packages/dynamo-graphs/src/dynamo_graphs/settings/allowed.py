"""Allow lists of administrators, and the hosts and annotations that are dangerous without one."""

from collections.abc import Iterable
from typing import Final

_SERVICES: Final = "svc"

_CONFIGURATION: Final = frozenset(
    (
        *("config-backend", "config-defaults", "config-frontend", "config-global", "config-peers"),
        *("config-proxy", "config-sections", "config-tcp", "config-tcp-service"),
        *("skipper-filter", "skipper-routes"),
        "getambassador.io/config",
    )
)
"""Annotations whose value is passed to a proxy as configuration: of haproxy-ingress, under any prefix, of
Skipper and of Emissary. Sources: the reference pages of these controllers."""

_SNIPPETS: Final = ("-snippet", "-snippets")
"""Suffixes of such annotations of ingress-nginx (with risk level "Critical"), NGINX's controller and
HAProxy's, under any prefix."""


def entries(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(filter(None, (entry.strip() for entry in text.split(","))))


def executes_configuration(key: str) -> bool:
    """Whether an ingress controller takes the annotation's value as configuration text."""
    name = key.rpartition("/")[2]
    return name.endswith(_SNIPPETS) or name in _CONFIGURATION or key in _CONFIGURATION


def allows_key(key: str, allowed: Iterable[str]) -> bool:
    """Whether an annotation is in the list. An entry that ends in `*` matches as a prefix."""
    return any(
        key.startswith(entry.removesuffix("*")) if entry.endswith("*") else key == entry
        for entry in allowed
    )


def allows_host(host: str, suffixes: Iterable[str]) -> bool:
    """Whether a host is in one of the domains.

    A wildcard for a whole domain of the list is not allowed: it would take over the hosts of all others
    there.
    """
    base = host.removeprefix("*.")
    is_wildcard = base != host
    return any(
        base.endswith(f".{suffix}") or (base == suffix and not is_wildcard)
        for suffix in (suffix.removeprefix("*").removeprefix(".").lower() for suffix in suffixes)
    )


def is_in_cluster(host: str, cluster_domain: str) -> bool:
    """Whether a host is the name of a Service in the cluster, or a wildcard that covers such names.

    A single label counts too, since every pod resolves it in its own namespace first.
    """
    lowered = host.lower().rstrip(".")
    base = lowered.removeprefix("*.")
    if base == lowered and "." not in base:
        return True
    domains = tuple(
        filter(None, (cluster_domain.lower().strip("."), "svc.cluster.local", _SERVICES))
    )
    if any(base == domain or base.endswith(f".{domain}") for domain in domains):
        return True
    return base != lowered and any(domain.endswith(f".{base}") for domain in domains)
