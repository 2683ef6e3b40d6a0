"""Which former specs of a graph to keep, in ControllerRevisions as those of a StatefulSet.

The name of a revision contains the hash of its spec, so its existence alone shows that the spec was recorded.
"""

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.features.decision import Decision, Delete, Feature, History, Patch, Write
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.apply.result import Cause, Change, Verb
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import Object

DEFAULT_HISTORY_LIMIT = 10
"""Former specs kept beside the current one, as many as a StatefulSet keeps."""

MAX_HISTORY_LIMIT = 100
"""Each former spec takes as much of the API server's store as the graph."""

CHANGE_CAUSE = "kubernetes.io/change-cause"
"""Annotation of kubectl with the reason of a change. A revision copies the graph's."""

SIZES = frozenset(("replicas", "restart"))
"""Fields of a graph that `scale`, autoscalers and restarts write. A change creates no revision, and undo
leaves them alone."""

SIZE_OF_SERVICE = "replicas"
"""The field of a service that does not count either."""

_LAST = 999_999_998
"""The largest revision number. Larger ones were not written by the operator."""

_MOST_OF_CAUSE = 1000
"""Characters of a change cause to copy; all annotations of an object share 256 KiB."""


def parsed_history_limit(text: str) -> int | None:
    """The number in the text of the annotation; None if it is invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_HISTORY_LIMIT))):
        return None
    return int(text) if int(text) <= MAX_HISTORY_LIMIT else None


def plan_history(graph: DynamoGraphDeployment, former: Sequence[ControllerRevision]) -> History:
    """Compare the graph with the stored revisions and return the changes."""
    ordered = sorted(former, key=lambda revision: (revision_number(revision), revision.metadata.name))
    limit = parsed_history_limit(graph.metadata.annotations.get(labels.REVISION_HISTORY_LIMIT, ""))
    limit = DEFAULT_HISTORY_LIMIT if limit is None else limit
    if not limit:
        return History(outdated=tuple(ordered))
    spec: Object = msgspec.to_builtins(graph.spec)
    # The uid keeps the name apart from those of a deleted graph of the same name.
    content = msgspec.json.encode([graph.metadata.uid, without_sizes(spec)], order="sorted")
    name = names.dns_subdomain(f"{graph.metadata.name}-{hashlib.sha256(content).hexdigest()[:10]}")
    earlier = [revision for revision in ordered if revision.metadata.name != name]
    current = next((revision for revision in ordered if revision.metadata.name == name), None)
    number = min(max(map(revision_number, earlier), default=0) + 1, _LAST)
    outdated = tuple(earlier[: max(len(earlier) - limit, 0)])
    if current is None:
        marks = {labels.GRAPH: names.label_value(graph.metadata.name), labels.GRAPH_REVISION: str(number)}
        metadata: Object = {"name": name, "namespace": graph.metadata.namespace, "labels": marks}
        if cause := graph.metadata.annotations.get(CHANGE_CAUSE, "")[:_MOST_OF_CAUSE]:
            metadata["annotations"] = {CHANGE_CAUSE: cause}
        created = ControllerRevision.KIND.manifest(metadata, data={"spec": spec}, revision=number)
        return History(created, outdated=outdated)
    if revision_number(current) < number:
        return History(renewed=(current, number), outdated=outdated)
    return History(outdated=outdated)


def revision_number(revision: ControllerRevision) -> int:
    """The number of a revision; 0 if a user changed its label."""
    text = revision.metadata.labels.get(labels.GRAPH_REVISION, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_LAST))
    return int(text) if is_number and int(text) <= _LAST else 0


def without_sizes(spec: Object) -> Object:
    """The spec without sizes: two specs that are equal in it share a revision."""
    services = spec.get("services", {})
    kept = {
        key: {name: value for name, value in service.items() if name != SIZE_OF_SERVICE}
        for key, service in services.items()
    }
    rest = {name: value for name, value in spec.items() if name not in SIZES}
    return {**rest, "services": kept}


def _plan_writes(decision: Decision) -> Decision:
    kind = ControllerRevision.KIND.name
    history = plan_history(decision.graph, decision.inputs.former)
    writes: list[Write] = []
    if history.renewed is not None:
        revision, number = history.renewed
        cause = f"{Cause.ROLLOUT}: revision {number}"
        body = {"metadata": {"labels": {labels.GRAPH_REVISION: str(number)}}, "revision": number}
        change = Change(Verb.UPDATE, kind, revision.metadata.name, cause)
        writes.append(Patch(revision, body, change, ControllerRevision))
    for revision in history.outdated:
        change = Change(Verb.DELETE, kind, revision.metadata.name, Cause.UNWANTED)
        writes.append(Delete(revision, change, checks_owner=False))
    return replace(decision, history=history, before=(*decision.before, *writes))


HISTORY = Feature(lambda _: True, plan=_plan_writes)
