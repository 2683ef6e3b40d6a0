"""The writes of a rollout that rendering and apply do not do: history of the spec, replaced components.

The order matters. A revision of the spec is recorded before any of it is rolled out. The apply that no
longer wants old components deletes them; only a later reconcile that finds none of them writes the new hash
on the graph, and only that counts as complete. So each step may be repeated, and none can be skipped.
"""

from collections.abc import Iterator

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.history import History
from dynamo_operator.features.rollouts.plan import Rollout, is_managed
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import ReplicasSpec
from dynamo_operator.shared.patches import patch_metadata, patch_replicas
from kube_runtime.apply.applier import Applier, CreateOnly
from kube_runtime.apply.result import Applied, Cause, Change, Verb, merge, stopped
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.errors import NotFound, Refused, ServerFailure
from kube_runtime.kind import Key
from kube_runtime.types.kinds import ControllerRevision, Pod
from kube_runtime.types.meta import Resource

_REVISION = ControllerRevision.KIND.name


async def keep_history(
    graph: DynamoGraphDeployment, history: History, applier: Applier, writer: Writer
) -> Applied:
    """Create the new revision, renumber a reused one, and delete revisions beyond the limit.

    The next reconcile repeats a write that was lost.

    Raises: OperatorError.
    """
    parts = []
    if history.created is not None:
        created = CreateOnly((history.created,), (ControllerRevision,))
        parts.append(await applier.apply(graph, created))
    try:
        if history.renewed is not None:
            parts.append(await _renumber(*history.renewed, writer))
        for revision in history.outdated:
            await writer.delete(revision)
            change = Change(Verb.DELETE, _REVISION, revision.metadata.name, Cause.UNWANTED)
            parts.append(Applied(changes=(change,)))
    except (Refused, ServerFailure) as error:
        parts.append(stopped(_REVISION, graph.metadata.name, error))
    return merge(parts)


def history_watch() -> Watches:
    """Revisions wake no graph: its next reconcile recreates a missing one."""
    return Watches(ControllerRevision, lambda _: ())


async def _renumber(revision: ControllerRevision, number: int, writer: Writer) -> Applied:
    patch = {"metadata": {"labels": {labels.GRAPH_REVISION: str(number)}}, "revision": number}
    name, uid = revision.metadata.name, revision.metadata.uid
    try:
        await writer.merge_patch(ControllerRevision, revision.key, patch, uid=uid)
    except NotFound:
        return Applied()  # the next reconcile creates it
    change = Change(Verb.UPDATE, _REVISION, name, f"{Cause.ROLLOUT}: revision {number}")
    return Applied(changes=(change,))


class ComponentScale(Resource):
    """The scale subresource of a component. Its own type keeps it out of the cache of components."""

    KIND = DynamoComponentDeployment.KIND

    spec: ReplicasSpec = ReplicasSpec()


async def carry_out(
    graph: DynamoGraphDeployment, rollout: Rollout, writer: Writer
) -> tuple[DynamoGraphDeployment, Applied]:
    """Scale old components; when none is left, record on the graph the worker hash that serves now.

    Returns the graph after that, and the changes.
    """
    parts = []
    for component, replicas in rollout.resized:
        # Without spec.replicas the API server serves no scale subresource.
        has_scale = component.spec.replicas is not None
        resized = await patch_replicas(
            component,
            replicas,
            writer,
            Cause.ROLLOUT,
            type_=ComponentScale if has_scale else DynamoComponentDeployment,
            subresource="scale" if has_scale else "",
        )
        parts.append(resized)
    return await _record_hash(graph, rollout, writer), merge(parts)


def leaving_pod_watch(cache: Cache) -> Watches:
    """Wake a graph when a pod of an old revision is deleted: no status of a component changes then.

    Only the last pods of a component count, so pods of one with desired replicas wake no graph. A pod need
    not have been terminating: when its node is lost it vanishes at once.
    """

    def keys(pod: Pod) -> Iterator[Key]:
        component = cache.get(DynamoComponentDeployment, _component(pod))
        owner = component.metadata.controller if component else None
        if component and owner and component.spec.replicas == 0:
            graph = cache.get(DynamoGraphDeployment, Key(pod.metadata.namespace, owner.name))
            if graph and (is_managed(graph) or labels.WORKER_HASH in component.metadata.labels):
                yield graph.key

    return Watches(Pod, keys)


def _component(pod: Pod) -> Key:
    """The component of a pod: its Deployment has the same name."""
    return Key(pod.metadata.namespace, pod.metadata.labels.get(labels.SELECTOR, ""))


async def _record_hash(
    graph: DynamoGraphDeployment, rollout: Rollout, writer: Writer
) -> DynamoGraphDeployment:
    """Record the hash of the workers that serve; remove it when the workers are not managed any more."""
    serves, annotations = rollout.target_hash, graph.metadata.annotations
    if rollout.is_under_way or annotations.get(labels.CURRENT_WORKER_HASH, "") == serves:
        return graph
    if not serves and labels.WORKER_ROLLOUT not in annotations:
        return graph  # the annotation of another operator, which this one never managed
    # With resourceVersion: the response must not contain a newer spec than the one that was applied.
    record = {labels.CURRENT_WORKER_HASH: serves or None}
    return await patch_metadata(graph, {"annotations": record}, writer)
