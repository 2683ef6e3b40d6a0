"""The operators that run in a cluster, by their Deployments, and their settings."""

from dataclasses import dataclass

import msgspec

from dynamo_graphs.leadership import PODS
from dynamo_graphs.reader import Missing, Reading
from dynamo_operator.process.flags import canonical, read_settings
from dynamo_operator.settings import RenderSettings
from kube_runtime.errors import ConfigError
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key, Object

_RESTRICTED = ("restricted-namespace", "restrictedNamespace")
"""Both spellings of the flag; `canonical` keeps the Go operator's."""

SELECTOR = f"{PODS},app.kubernetes.io/part-of=dynamo-operator"
"""The labels of the Deployments of operators."""

_MANAGER = "manager"
"""The name of the operator's container, in both charts."""


@dataclass(frozen=True, slots=True)
class Running:
    """An operator in a cluster. `namespace` is what it is restricted to, or "".

    `account` is its ServiceAccount, `elects` whether it takes part in leader election, `ready_replicas` the
    number of its pods that are ready.
    """

    deployment: Key
    account: Key
    namespace: str
    elects: bool
    ready_replicas: int


async def operators(reading: Reading) -> list[Running]:
    """The operators in a cluster, by their Deployments. Raises: ApiError, Unreachable."""
    running = []
    for deployment in await reading.all(Deployment, labels=SELECTOR):
        pod = _pod(deployment)
        given = _given(pod)
        account = Key(deployment.metadata.namespace, pod.get("serviceAccountName") or "default")
        namespaces = (given.get(flag, "") for flag in _RESTRICTED)
        elects = given.get("leader-elect", "false") != "false"
        ready = deployment.status.ready_replicas
        restricted = next(filter(None, namespaces), "")
        running.append(Running(deployment.key, account, restricted, elects, ready))
    return running


def _pod(deployment: Deployment) -> Object:
    pod: Object = msgspec.json.decode(deployment.spec)["template"]["spec"]
    return pod


def _given(pod: Object) -> dict[str, str]:
    """The operator's flags by name. The Go operator's pod also has a proxy with flags of its own."""
    containers = pod["containers"]
    named = [container for container in containers if container["name"] == _MANAGER] or containers
    arguments = [flag for container in named for flag in container.get("args", ())]
    words = (argument.removeprefix("--").partition("=") for argument in canonical(arguments))
    return {name: value or "true" for name, _, value in words}


async def running_settings(reading: Reading) -> RenderSettings:
    """The render settings of the running operator.

    Raises: Missing if no Deployment runs it; ConfigError if several do; ApiError; ConfigErrors for its flags.
    """
    deployments = await reading.all(Deployment, labels=SELECTOR)
    if not deployments:
        raise Missing("operator: expected one Deployment in the cluster, found none")
    if len(deployments) > 1:
        names = ", ".join(str(deployment.key) for deployment in deployments)
        raise ConfigError("operator", f"expected one Deployment in the cluster, found {names}")
    return read_settings(_given(_pod(deployments[0])), environment={}).render
