"""Resolve a tag to its graph: from a ConfigMap, the store of archives, or the services of the deployment.

A build writes its graph as a ConfigMap too, so a deployment that waits for a build waits for that. If there
is no graph, the message says what was tried.
"""

from dataclasses import dataclass
from typing import Final

from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.generate import services_only
from dynamo_legacy.graph_config import GraphConfig, GraphConfigError, parse_graph_config
from dynamo_legacy.names import DYNAMO_TAG, GRAPH_CONFIG, GRAPH_CONFIG_KEY
from dynamo_legacy.status.conditions import NIM_AVAILABLE, State
from dynamo_operator.legacy.deployment.read import DeploymentInputs
from dynamo_operator.legacy.store import ArchiveStore, StoreError
from dynamo_operator.reconcile.offload import Offload
from kube_runtime.types.meta import condition

RETRY_SECONDS: Final = 60.0
"""Seconds until a store without the graph is queried again."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The graph of a tag, or why there is none.

    If `graph` is None, `problem` is the cause, `state` says whether waiting may help, and
    `requeue_after_seconds` when to retry, None for never. `text` is the configuration that `graph` was parsed
    from. `to_keep`: the text is stored in a ConfigMap of the deployments of that tag.
    """

    graph: GraphConfig | None = None
    text: str = ""
    to_keep: bool = False
    state: State = State.FAILED
    problem: str = ""
    requeue_after_seconds: float | None = None


class Resolver:
    """Finds the graphs of deployments. `store` is None if no store is configured."""

    def __init__(self, store: ArchiveStore | None, offload: Offload) -> None:
        self._store, self._offload = store, offload

    async def resolve(self, deployment: DynamoDeployment, inputs: DeploymentInputs) -> Resolution:
        """Resolve the graph of a deployment: the first source that has one counts."""
        if inputs.config is not None:
            return await self._parsed(deployment, inputs.config, to_keep=inputs.is_config_kept)
        if GRAPH_CONFIG in deployment.metadata.annotations:
            return Resolution(problem=_no_config_map(inputs), state=State.PENDING)
        if self._store is not None:
            return await self._stored(self._store, deployment)
        if deployment.spec.services and inputs.image is not None:
            tag = deployment.metadata.annotations.get(DYNAMO_TAG, "")
            return Resolution(services_only(deployment, tag))
        return _waiting(inputs)

    async def _stored(self, store: ArchiveStore, deployment: DynamoDeployment) -> Resolution:
        try:
            text = await store.graph_config(deployment.spec.dynamo_nim)
        except StoreError as error:
            return Resolution(problem=str(error), requeue_after_seconds=RETRY_SECONDS)
        return await self._parsed(deployment, text, to_keep=True)

    async def _parsed(
        self, deployment: DynamoDeployment, text: str, *, to_keep: bool
    ) -> Resolution:
        if not text:
            return Resolution(problem=f"the configuration has no key {GRAPH_CONFIG_KEY}")
        try:
            graph = await self._offload.one(
                deployment, parse_graph_config, text, more_bytes=len(text)
            )
        except GraphConfigError as error:
            return Resolution(problem=str(error))
        return Resolution(graph, text, to_keep=to_keep)


def _waiting(inputs: DeploymentInputs) -> Resolution:
    """A resolution that waits for the build, or reports its failure."""
    built = condition(inputs.request.status.conditions, NIM_AVAILABLE) if inputs.request else None
    if built is not None and built.status == "False":
        text = f"DynamoNimRequest {inputs.nim_name}: {built.message}"
        return Resolution(problem=f"{_no_config_map(inputs)}; {text}")
    text = (
        f"{_no_config_map(inputs)}; no store of archives is configured (YATAI_ENDPOINT); waiting for "
        f"DynamoNimRequest {inputs.nim_name}"
    )
    return Resolution(problem=text, state=State.PENDING)


def _no_config_map(inputs: DeploymentInputs) -> str:
    return f"ConfigMap {inputs.config_name} with the label {GRAPH_CONFIG} not found"
