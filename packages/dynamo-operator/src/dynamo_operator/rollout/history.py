"""Writes the revisions of a graph's spec, before anything of it is rolled out."""

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.plan.history import History
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import CreateOnly
from kube_runtime.apply.result import Applied, Cause, Change, Verb, merge, rejected
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.errors import Forbidden, Invalid, NotFound
from kube_runtime.types.apps import ControllerRevision

_KIND = ControllerRevision.KIND.name


async def keep_history(
    graph: DynamoGraphDeployment, history: History, applier: Applier, writer: Writer
) -> Applied:
    """Create the new revision, give an old one its new number, and delete what is beyond the limit.

    Each of them is one write that the next reconcile repeats if it was lost.

    Raises: OperatorError.
    """
    parts = []
    if history.created is not None:
        created = CreateOnly((history.created,), (ControllerRevision,))
        parts.append(await applier.apply(graph, created))
    try:
        if history.renewed is not None:
            parts.append(await _renewed(*history.renewed, writer))
        for revision in history.outdated:
            await writer.delete(ControllerRevision, revision.key, uid=revision.metadata.uid)
            change = Change(Verb.DELETE, _KIND, revision.metadata.name, Cause.UNWANTED)
            parts.append(Applied(changes=(change,)))
    except (Invalid, Forbidden) as error:
        parts.append(Applied(blocked=(rejected(_KIND, graph.metadata.name, error),)))
    return merge(parts)


def history_watch() -> Watches:
    """Revisions are read, and wake no graph: its next reconcile restores one that is missing."""
    return Watches(ControllerRevision, lambda _: ())


async def _renewed(revision: ControllerRevision, number: int, writer: Writer) -> Applied:
    patch = {"metadata": {"labels": {labels.GRAPH_REVISION: str(number)}}, "revision": number}
    name, uid = revision.metadata.name, revision.metadata.uid
    try:
        await writer.merge_patch(ControllerRevision, revision.key, patch, uid=uid)
    except NotFound:
        return Applied()  # the next reconcile creates it
    change = Change(Verb.UPDATE, _KIND, name, f"{Cause.ROLLOUT}: revision {number}")
    return Applied(changes=(change,))
