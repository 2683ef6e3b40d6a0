"""The Events about an object, and about all that a graph owns."""

from dataclasses import dataclass
from typing import Any

from dynamo_graphs.members import events_about, members, owned_uids
from dynamo_graphs.reader import Target, warn
from dynamo_graphs.rows import Rows
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.kinds import Event as KubernetesEvent


@dataclass(frozen=True, slots=True)
class Event:
    """What Kubernetes or the operator reported; `last_seen` is RFC 3339, UTC, `count` how often."""

    last_seen: str
    type: str
    reason: str
    object: str
    count: int
    message: str

    def __str__(self) -> str:
        return f"{self.last_seen} {self.type} {self.reason} {self.object}: {self.message}"


async def events_of(at: Target[Any]) -> Rows[Event]:
    """The Events, the newest last; Kubernetes deletes them after an hour. Raises: OperatorError."""
    stated = await at.get()
    uids = frozenset((stated.metadata.uid,))
    if isinstance(stated, DynamoGraphDeployment):
        dependents = await members(at.reading.client, stated.key)
        for note in dependents.unread:
            warn(note)
        uids = owned_uids(stated, dependents.by_owner)
    listed = await at.reading.all_raw(KubernetesEvent.KIND, at.key.namespace)
    shown = events_about(listed, uids)
    names = ("lastSeen", "type", "reason", "object", "count", "message")
    return Rows(Event(*(event[name] for name in names)) for event in shown)
