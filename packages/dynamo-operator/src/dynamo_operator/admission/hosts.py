"""Host names of the webhooks."""

from dataclasses import dataclass

_LOCAL = ("localhost", "127.0.0.1")
"""Host of an operator on the machine of its API server, as in tests and development."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of one Service. A certificate must cover `needed`."""

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
