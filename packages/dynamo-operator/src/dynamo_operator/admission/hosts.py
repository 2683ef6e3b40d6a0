"""Under which names the webhooks are called."""

from dataclasses import dataclass

_LOCAL = ("localhost", "127.0.0.1")
"""For an operator that runs beside its API server, as in tests and on a developer's machine."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of one Service. A certificate that lacks `needed` is of no use."""

    needed: str
    all: tuple[str, ...]


def service_host(namespace: str, service: str) -> str:
    """The name by which the API server calls a Service."""
    return f"{service}.{namespace}.svc"


def hosts_of(namespace: str, service: str, domain: str = "cluster.local") -> Hosts:
    """Every name that a new certificate covers."""
    host = service_host(namespace, service)
    names = (service, f"{service}.{namespace}", host, f"{host}.{domain}", *_LOCAL)
    return Hosts(host, names)
