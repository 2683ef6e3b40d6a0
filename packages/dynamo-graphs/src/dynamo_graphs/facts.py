"""Facts about the cluster for validation and rendering, gathered once per reconcile."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamo_graphs.types.optional_apis import OptionalApi
from kube_runtime.kind import Kind

_DOCKER_HUB = frozenset(("docker.io", "index.docker.io", "registry-1.docker.io"))


@dataclass(frozen=True, slots=True)
class LiveTemplate:
    """Immutable fields of a clique or scaling group in a live Grove template.

    `min_available` and `scheduler` cannot be changed. `replicas` are changed on the live object once
    there is one. `restart` is the id of the last restart; without it the pods would start once more.
    None means: free to be set.
    """

    replicas: int | None = None
    min_available: int | None = None
    restart: str = ""
    scheduler: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The cluster as one component or graph sees it.

    `pull_secrets` maps a registry host (with port, as `registry_of_credential` gives it) to the
    names of the pull secrets in the object's own namespace, sorted. `component_service_account` is
    the first ServiceAccount there that is labelled `nvidia.com/dynamo-component-pod=true`, or "".
    The flags are whether each optional API is served. `withheld` are those that are installed and that the
    operator may not use, each with its kinds that are forbidden. `kai_queues` are the queues of the KAI
    scheduler, `claims` the PVCs in the namespace. `gang` is what is in use of the PodCliqueSet that a
    graph already has, by the names of its cliques and scaling groups. `missing_ssh_keys` is where
    the SSH keys of a graph should come from, as `namespace/name`, if they are not there.
    """

    pull_secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    component_service_account: str = ""
    lws_served: bool = False
    grove_served: bool = False
    kai_served: bool = False
    istio_served: bool = False
    inference_pools_served: bool = False
    withheld: Mapping[OptionalApi, tuple[Kind, ...]] = field(default_factory=dict)
    kai_queues: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    gang: Mapping[str, LiveTemplate] = field(default_factory=dict)
    missing_ssh_keys: str = ""


def registry_of_image(image: str) -> str:
    """The registry host of an image, with its port; Docker Hub for a name without a host."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first.lower() == "localhost")
    return _registry(first) if is_host else "docker.io"


def registry_of_credential(server: str) -> str:
    """The registry host of a key under `auths` in a Docker configuration, as `https://h/v1/`."""
    return _registry(server.split("://", 1)[-1].partition("/")[0])


def _registry(host: str) -> str:
    lowered = host.lower()
    return "docker.io" if lowered in _DOCKER_HUB else lowered
