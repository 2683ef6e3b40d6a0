"""Read everything that one reconcile of a DynamoDeployment depends on, once, from the cache."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from dynamo_legacy import names
from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim import DynamoNim
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.types import GraphConfigMap
from dynamo_operator.reconcile.read import LiveObjects, live_objects
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class DeploymentInputs:
    """The inputs of one reconcile.

    `nim_name` is the object name of its tag. `image` and `request` are the DynamoNim and the
    DynamoNimRequest of that name. `config` is the configuration in the ConfigMap `config_name`; None if
    that does not exist. `is_config_kept`: the operator has written it. `live` are the components that the
    deployment owns.
    """

    nim_name: str
    config_name: str
    config: str | None = None
    is_config_kept: bool = False
    image: DynamoNim | None = None
    request: DynamoNimRequest | None = None
    live: LiveObjects = field(default_factory=dict)


def read_deployment(deployment: DynamoDeployment, cache: Cache) -> DeploymentInputs:
    """Read the inputs of a deployment with a valid tag."""
    namespace = deployment.metadata.namespace
    nim_name = names.nim_name(deployment.spec.dynamo_nim)
    config_name = deployment.metadata.annotations.get(names.GRAPH_CONFIG) or nim_name
    config = cache.get(GraphConfigMap, Key(namespace, config_name))
    return DeploymentInputs(
        nim_name,
        config_name,
        _text(config) if config else None,
        config is not None and names.SHARED_BY in config.metadata.labels,
        cache.get(DynamoNim, Key(namespace, nim_name)),
        cache.get(DynamoNimRequest, Key(namespace, nim_name)),
        live_objects(deployment, cache, (DynamoNimDeployment,)),
    )


def deployment_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake deployments when an image, a build or a configuration that they name changes."""

    def of_tag(changed: Resource) -> Iterator[Key]:
        for deployment in cache.list(DynamoDeployment, changed.metadata.namespace):
            if changed.metadata.name in _names(deployment):
                yield deployment.key

    return tuple(Watches(type_, of_tag) for type_ in (DynamoNim, DynamoNimRequest, GraphConfigMap))


def _names(deployment: DynamoDeployment) -> tuple[str, ...]:
    """The names of the objects that a deployment reads; none if its tag is invalid."""
    try:
        nim_name = names.nim_name(deployment.spec.dynamo_nim)
    except ValueError:
        return ()
    return nim_name, deployment.metadata.annotations.get(names.GRAPH_CONFIG, "")


def _text(config: GraphConfigMap) -> str:
    """The configuration in the ConfigMap; "" if it has no such key."""
    data = msgspec.json.decode(config.data, type=dict[str, str])
    return data.get(names.GRAPH_CONFIG_KEY, "")
