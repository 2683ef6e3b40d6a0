"""Hold what `dynamoctl render` prints against what the operator has applied, on the API server itself.

Each printed object is applied once more in a dry run, as the operator's field manager. Nothing may come of
that: no value and no owner of a field may change. This compares what was sent, and not what the API server
makes of it, so defaults and other clients' fields do not count, and a field too many or too few does.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cluster.world import Refused, World
from conformance.compare import differences
from dynamo_operator import FIELD_MANAGER, labels
from dynamo_operator.component.controller import ComponentController
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.controller import GraphController
from dynamo_operator.requests.controller import RequestController
from kube_runtime.types.kinds import PersistentVolumeClaim
from kube_runtime.types.meta import Kind, Object, Resource

_APPLIED: tuple[type[Resource], ...] = (
    *(*GraphController.owns, *ComponentController.owns, *RequestController.owns),
    *(DynamoGraphDeployment, DynamoGraphDeploymentScalingAdapter, PersistentVolumeClaim),
)
KINDS: Mapping[str, Kind] = {each.KIND.name: each.KIND for each in _APPLIED}
"""What the operator applies."""

BOOKKEEPING = {
    labels.LAST_APPLIED_HASH: "compares the desired object with the applied one",
    labels.OWNER_GENERATION: "is a number that only the API server gives out",
}
"""Annotations that only the operator can set. The owner references, whose uids only a cluster knows, are the
other thing that is taken from the live object before it is compared."""

_SET_BY_THE_SERVER = ("generation", "managedFields", "resourceVersion")


class Identity(NamedTuple):
    """What makes an object the same as another, within a namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def identity(body: Object) -> Identity:
    return Identity(body["kind"], body["metadata"]["name"])


def unequal(
    world: World, printed: Iterable[Object], live: Iterable[Object], given: Iterable[Object]
) -> list[str]:
    """Where the printed objects are not those that the operator has applied in a namespace.

    `live` is what exists there, `given` are the documents that a user has written.
    """
    users = {identity(each) for each in given}
    applied = {identity(each): each for each in live if is_applied(each)}
    applied = {name: each for name, each in applied.items() if name not in users}
    wanted = {identity(each): each for each in printed}
    wanted = {name: each for name, each in wanted.items() if name not in users}
    found = [f"{each}: printed, and not applied" for each in sorted(wanted.keys() - applied.keys())]
    found += [f"{each}: applied, and not printed" for each in sorted(applied.keys() - wanted.keys())]
    for name in sorted(wanted.keys() & applied.keys()):
        found += _differences(world, wanted[name], applied[name])
    return found


def is_applied(body: Object) -> bool:
    """Whether the operator has written an object, beyond its status."""
    return body["kind"] in KINDS and any(_ours(body))


def _ours(body: Object) -> Iterator[Object]:
    for entry in body["metadata"].get("managedFields", ()):
        if entry["manager"] == FIELD_MANAGER and not entry.get("subresource"):
            yield entry


def _differences(world: World, printed: Object, live: Object) -> list[str]:
    """Where the live object would change; compared again when others have changed it meanwhile."""
    found = _changes(world, printed, live)
    now = world.get(KINDS[printed["kind"]], printed["metadata"]["name"]) if found else None
    if now is None or now["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]:
        return found
    return _differences(world, printed, {"kind": live["kind"], **now})


def _changes(world: World, printed: Object, live: Object) -> list[str]:
    kind = KINDS[printed["kind"]]
    try:
        after = world.reapplied(kind, _as_applied(printed, live), FIELD_MANAGER)
    except Refused as refused:
        return [f"{identity(printed)}: {refused}"]
    was_created = not any(each["operation"] == "Apply" for each in _ours(live))
    sides = (_compared(each, was_created=was_created) for each in (after, live))
    named = ({str(identity(printed)): each} for each in sides)
    return [
        f"{each.object} {each.path}: printed {each.theirs}, applied {each.ours}"
        for each in differences(*named)
    ]


def _as_applied(printed: Object, live: Object) -> Object:
    """The printed object with what only a cluster knows."""
    metadata = dict(printed["metadata"])
    theirs = live["metadata"].get("annotations", {})
    kept = {name: theirs[name] for name in BOOKKEEPING if name in theirs}
    if kept:
        metadata["annotations"] = {**metadata.get("annotations", {}), **kept}
    if owners := live["metadata"].get("ownerReferences"):
        metadata["ownerReferences"] = owners
    return {**printed, "metadata": metadata}


def _compared(body: Object, *, was_created: bool) -> Object:
    """An object without its status and what each write changes, and with the fields that are the operator's.

    What it created by POST is its by an update, so that an apply adds an entry; then only values count.
    """
    metadata = {name: each for name, each in body["metadata"].items() if name not in _SET_BY_THE_SERVER}
    if not was_created:
        metadata["fields"] = [each["fieldsV1"] for each in _ours(body)]
    left_out = ("apiVersion", "kind", "metadata", "status")
    kept = {name: each for name, each in body.items() if name not in left_out}
    return {**kept, "metadata": metadata}
