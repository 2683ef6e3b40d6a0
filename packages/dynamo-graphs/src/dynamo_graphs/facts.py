"""What validation and rendering need to know about the cluster, gathered once per reconcile."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from dynamo_graphs.types.optional_apis import OptionalApi
from kube_runtime.kind import Kind

_DOCKER_HUB = frozenset(("docker.io", "index.docker.io", "registry-1.docker.io"))


@dataclass(frozen=True, slots=True)
class LiveTemplate:
    """Fields of a clique or scaling group in a live PodCliqueSet that rendering must repeat.

    `min_available` and `scheduler` are immutable. `replicas` are scaled on the live object. `restart` is
    the id of the last restart; dropping it would restart the pods. A field that is None can still be
    set.
    """

    replicas: int | None = None
    min_available: int | None = None
    restart: str = ""
    scheduler: str | None = None


class NamespaceDefaults(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the pods of a component get from their namespace where the spec names nothing.

    `image_pull_secrets` are the names of the pull secrets for the registry of the image; None if the user
    switched the search off. `service_account_name` is a marked ServiceAccount, "" for none.
    """

    image_pull_secrets: tuple[str, ...] | None = ()
    service_account_name: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """The cluster as one component or graph sees it.

    `pull_secrets` maps a registry host (with port, as `registry_of_credential` returns it) to the sorted
    names of the pull secrets in the object's namespace. `component_service_account` is the first
    ServiceAccount there with the label `nvidia.com/dynamo-component-pod=true`, or "";
    `component_service_accounts` are all of them. `running_defaults` are those of the components, by name,
    whose pods keep what they have.

    The flags are whether each optional API is served; `withheld` are the installed ones that RBAC denies,
    with their forbidden kinds. `kai_queues` are the queues of the KAI scheduler, `claims` the PVCs in the
    namespace. `live_templates` are from the PodCliqueSet of the graph, by the names of its cliques and
    scaling groups, in their order there. `missing_ssh_keys` is the Secret, as `namespace/name`, from which
    SSH keys should be copied and that does not exist, `ssh_keys_refusal` the answer of the API server when
    the operator tried to create it.
    """

    pull_secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    component_service_account: str = ""
    component_service_accounts: frozenset[str] = frozenset()
    running_defaults: Mapping[str, NamespaceDefaults] = field(default_factory=dict)
    lws_served: bool = False
    grove_served: bool = False
    kai_served: bool = False
    istio_served: bool = False
    inference_pools_served: bool = False
    withheld: Mapping[OptionalApi, tuple[Kind, ...]] = field(default_factory=dict)
    kai_queues: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    live_templates: Mapping[str, LiveTemplate] = field(default_factory=dict)
    missing_ssh_keys: str = ""
    ssh_keys_refusal: str = ""


def registry_of_image(image: str) -> str:
    """The registry host of an image, with its port; `docker.io` for a name without a host."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first.lower() == "localhost")
    return _registry(first) if is_host else "docker.io"


def registry_of_credential(server: str) -> str:
    """The registry host of a key under `auths` in a Docker configuration, such as `https://h/v1/`."""
    return _registry(server.split("://", 1)[-1].partition("/")[0])


def _registry(host: str) -> str:
    lowered = host.lower()
    return "docker.io" if lowered in _DOCKER_HUB else lowered
