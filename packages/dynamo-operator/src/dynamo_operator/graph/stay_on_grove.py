"""Record that a graph of an earlier operator runs on Grove, while this operator may not read Grove.

The evidence is what that operator has left on the graph: its finalizer and its status. Both go with our first
writes, so the record comes before them.
"""

from collections.abc import Iterable

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.pause import is_paused
from dynamo_graphs.api.provider import GROVE
from dynamo_graphs.render.provider import runs_on_withheld_grove
from dynamo_operator.reconcile.finalizer import FINALIZER
from dynamo_operator.reconcile.read import read_facts
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource


async def stay_on_grove(
    key: Key, cache: Cache, writer: Writer, owns: Iterable[type[Resource]]
) -> None:
    """Write the provider on a graph that may have an invisible PodCliqueSet; no request for any other.

    Raises:
        Conflict: the graph has changed since it was read; the caller retries at once.
        OperatorError: that could not be written.
    """
    graph = cache.get(DynamoGraphDeployment, key)
    if graph is None or labels.WORKLOAD_PROVIDER in graph.metadata.annotations:
        return
    metadata = graph.metadata
    if metadata.deletion_timestamp or is_paused(graph):
        return
    children = {each.KIND.name for each in cache.owned_by(metadata.uid, owns, metadata.namespace)}
    if runs_on_withheld_grove(
        graph,
        read_facts(metadata.namespace, cache),
        children,
        has_foreign_finalizer=FINALIZER in metadata.finalizers,
    ):
        record = {labels.WORKLOAD_PROVIDER: GROVE}
        patch = {"annotations": record, "resourceVersion": metadata.resource_version}
        await writer.merge_patch(
            DynamoGraphDeployment, graph.key, {"metadata": patch}, uid=metadata.uid
        )
