"""An administrator's lists of what is allowed, and which hosts and annotations are always dangerous."""

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
"""Annotations whose value becomes configuration of a proxy as it is: of haproxy-ingress, whose prefix can be
chosen, of Skipper, and of Emissary. Sources: the reference pages of these controllers."""

_SNIPPETS: Final = ("-snippet", "-snippets")
"""Endings of those of ingress-nginx (risk level "Critical" there), NGINX's own controller and HAProxy's,
whatever their prefix."""


def entries(text: str) -> tuple[str, ...]:
    """The entries of a list that is written with commas."""
    return tuple(filter(None, (entry.strip() for entry in text.split(","))))


def executes_configuration(key: str) -> bool:
    """Whether the annotation's value becomes configuration of an ingress controller as it is."""
    name = key.rpartition("/")[2]
    return name.endswith(_SNIPPETS) or name in _CONFIGURATION or key in _CONFIGURATION


def allows_key(key: str, allowed: Iterable[str]) -> bool:
    """Whether an annotation is in the list. An entry that ends in `*` stands for all with that beginning."""
    return any(
        key.startswith(entry.removesuffix("*")) if entry.endswith("*") else key == entry
        for entry in allowed
    )


def allows_host(host: str, suffixes: Iterable[str]) -> bool:
    """Whether a host is in one of the domains.

    A wildcard over a whole domain of the list is not: it would take the hosts of everyone else there.
    """
    base = host.removeprefix("*.")
    is_wildcard = base != host
    return any(
        base.endswith(f".{suffix}") or (base == suffix and not is_wildcard)
        for suffix in (suffix.removeprefix("*").removeprefix(".").lower() for suffix in suffixes)
    )


def is_in_cluster(host: str, cluster_domain: str) -> bool:
    """Whether a host is one of a Service in the cluster, or a wildcard that covers such names.

    A name of a single label is one too: every pod resolves it in its own namespace first.
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
