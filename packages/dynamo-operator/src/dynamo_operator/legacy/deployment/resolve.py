"""From a tag to its graph: a ConfigMap, the store of archives, or the services that the deployment names.

A build writes its graph as a ConfigMap too, so to wait for the build is to wait for that. Where nothing has a
graph, the text says what was tried.
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

AGAIN_SECONDS: Final = 60.0
"""How soon a store that had no graph is asked again."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is known of the graph of a tag.

    `graph` is None if nothing is known; then `problem` says why, `state` whether waiting may help, and
    `again_seconds` when to look again, None for never. `text` is what `graph` was read from, "" if from
    nothing.
    `to_keep` is whether the text is kept as an object of the deployments of that tag.
    """

    graph: GraphConfig | None = None
    text: str = ""
    to_keep: bool = False
    state: State = State.FAILED
    problem: str = ""
    again_seconds: float | None = None


class Resolver:
    """Finds the graphs of deployments. `store` is None if no store is configured."""

    def __init__(self, store: ArchiveStore | None, offload: Offload) -> None:
        self._store, self._offload = store, offload

    async def resolve(self, deployment: DynamoDeployment, inputs: DeploymentInputs) -> Resolution:
        """The graph of a deployment: the first place that has one counts."""
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
            return Resolution(problem=str(error), again_seconds=AGAIN_SECONDS)
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
    """That a build may still bring the graph, or that it has failed."""
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
