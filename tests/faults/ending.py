"""The final state of a namespace, so that it can be compared with that of another one.

Only what differs between two runs with the same result is left out: identities, times and random names.
Pods and ReplicaSets have such names; their owners identify them.
"""

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cluster.history import recording
from cluster.world import PODS, World
from dynamo_legacy.api import RESOURCES as LEGACY_RESOURCES
from dynamo_legacy.names import HorizontalPodAutoscaler
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.kinds import (
    ConfigMap,
    ControllerRevision,
    Deployment,
    Ingress,
    PersistentVolumeClaim,
    Role,
    RoleBinding,
    Service,
    ServiceAccount,
    StatefulSet,
)
from kube_runtime.types.meta import Kind, Object
from texts import replaced

REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets")
BUDGETS = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
GRAPHS = (DynamoGraphDeployment.KIND, DynamoComponentDeployment.KIND)
OURS = (*GRAPHS, *(each.KIND for each in LEGACY_RESOURCES))
"""Kinds whose whole status the operator writes."""
KINDS = (
    *GRAPHS,
    *(DynamoGraphDeploymentScalingAdapter.KIND, BUDGETS, PersistentVolumeClaim.KIND),
    *(Deployment.KIND, Service.KIND, Ingress.KIND, ConfigMap.KIND),
    *(ServiceAccount.KIND, Role.KIND, RoleBinding.KIND),
)
_EVERY_NAMESPACES = frozenset(("default", "kube-root-ca.crt"))
_VOLATILE = frozenset(
    (
        *("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"),
        *("clusterIP", "clusterIPs", "lastTransitionTime", "lastUpdateTime"),
        *("since", "startTime", "endTime", "lastScaleTime", "completionTime"),
        *("lastProbeTime", labels.REQUEST_UID),
        *(labels.LAST_APPLIED_HASH, labels.GROUP_HASH),  # of texts that hold the namespace
        "collisionCount",  # of the Deployment controller: its ReplicaSet of before was still there
        labels.OWNER_GENERATION,  # of the last write; how many there are depends on their moments
    )
)
_HISTORY = frozenset(
    (
        *("generation", "observedGeneration", "deployment.kubernetes.io/revision"),
        *(labels.RESTART_AT, "restart", "progress", "rollingUpdate"),
    )
)
"""The fields that describe how an object came to be as it is."""
_PAST = (("Suspended", "False"), ("ConfigurationWarning", "False"), ("EndpointExposed", "False"))
"""Conditions that do so, by type and status."""
_SCALED = (HorizontalPodAutoscaler.KIND,)
"""Kinds whose status is about what was measured and done, and when."""


@dataclass(frozen=True)
class Ending:
    """All that there is in a namespace. `uids` and `orphans` are by kind and name, and not compared."""

    content: dict[str, Any]
    uids: dict[str, str]
    orphans: tuple[str, ...]

    def difference(self, other: "Ending") -> str:
        """What the other one has instead, as lines; empty when they are alike."""
        mine, theirs = (
            json.dumps(each.content, indent=1, sort_keys=True).splitlines() for each in (self, other)
        )
        return "\n".join(difflib.unified_diff(mine, theirs, "expected", "actual", lineterm="", n=12))


def ending(world: World, *, with_history: bool = True, more: Sequence[Kind] = ()) -> Ending:
    """The state of the world now, with `more` kinds. Without history, all ways to a spec end alike."""
    kinds = (*KINDS, *more)
    others = (REPLICA_SETS, StatefulSet.KIND, PODS)
    found = {
        kind: [each for each in world.list(kind) if each["metadata"]["name"] not in _EVERY_NAMESPACES]
        for kind in (*kinds, *others)
    }
    names = {
        each["metadata"]["uid"]: f"{kind.name} {each['metadata']['name']}"
        for kind, items in found.items()
        for each in items
    }
    left_out = _VOLATILE if with_history else _VOLATILE | _HISTORY
    content = {
        f"{kind.name} {each['metadata']['name']}": _lasting(each, world.namespace, left_out, kind)
        for kind in kinds
        for each in found[kind]
    }
    if more:
        # Labels and texts have uids too, as those of a Job.
        content = replaced(content, {uid: f"uid of {name}" for uid, name in names.items()})
    content["Pods"] = _told_by_owner(found[REPLICA_SETS], found[PODS])
    if with_history:
        content["Former specs"] = _former_specs(world)
        content["Templates"] = _told_by_owner((), found[REPLICA_SETS])
    orphans = tuple(
        f"{kind.name} {each['metadata']['name']}"
        for kind, items in found.items()
        for each in items
        for owner in each["metadata"].get("ownerReferences", ())
        if owner["uid"] not in names
    )
    return Ending(content, {names[uid]: uid for uid in names if names[uid] in content}, orphans)


def _former_specs(world: World) -> list[Object]:
    """What the revisions of graphs keep, by number; their names are made of uids."""
    found = world.list(ControllerRevision.KIND)
    ours = [each for each in found if labels.GRAPH_REVISION in each["metadata"]["labels"]]
    ours.sort(key=lambda each: each["revision"])
    return [
        {
            "revision": each["revision"],
            "label": each["metadata"]["labels"][labels.GRAPH_REVISION],
            "data": each["data"],
        }
        for each in ours
    ]


@contextmanager
def births_and_deaths(world: World, kinds: Sequence[Kind] = KINDS) -> Iterator[Callable[[], Counter[str]]]:
    """Count how often each object is created and deleted, no matter by which client, from now on.

    The function ends the count and returns it, by lines such as `ADDED Service chat-frontend`.
    """
    with recording(world, kinds) as changes:
        yield lambda: Counter(
            f"{each['type']} {kind.name} {each['object']['metadata']['name']}"
            for kind, events in changes().items()
            for each in events
            if each["type"] in ("ADDED", "DELETED")
        )


def _told_by_owner(owners: Sequence[Object], owned: Sequence[Object]) -> dict[str, int]:
    """How many there are of each sort: by the owner of their owner, and whether they are on their way out."""
    above: dict[str, str] = {each["metadata"]["uid"]: _owner(each)["name"] for each in owners}

    def sort(each: Object) -> str:
        owner = _owner(each)
        replicas = f" replicas {each['spec']['replicas']}" if "replicas" in each["spec"] else ""
        going = " going" if "deletionTimestamp" in each["metadata"] else ""
        name = above.get(owner["uid"], owner["name"])
        return f"{name}{replicas}{going}"

    return dict(sorted(Counter(map(sort, owned)).items()))


def _owner(each: Object) -> Object:
    owners: list[Object] = each["metadata"].get("ownerReferences", [{"name": "-", "uid": "-"}])
    return owners[0]


def _lasting(value: Any, namespace: str, left_out: frozenset[str], kind: Kind) -> Any:
    """A JSON value without what differs between two runs."""
    if isinstance(value, dict):
        texts = () if kind in OURS else ("message",)  # others name their ReplicaSets in them
        kept = {
            name: _lasting(each, namespace, left_out, kind)
            for name, each in value.items()
            if name not in left_out and name not in texts
        }
        if kind in _SCALED:
            kept.pop("status", None)
        if left_out > _VOLATILE:  # a map that held nothing but history
            kept = {name: each for name, each in kept.items() if each != {} or value[name] == {}}
        return dict(sorted(kept.items()))
    if isinstance(value, list):
        items = [_lasting(each, namespace, left_out, kind) for each in value]
        if not _are_conditions(items):
            return items
        past = _PAST if left_out > _VOLATILE else ()
        return [
            each
            for each in sorted(items, key=_type)
            if (_type(each), each["status"]) not in past and not _is_over(each, kind)
        ]
    return value.replace(namespace, "NAMESPACE") if isinstance(value, str) else value


def _is_over(condition: Any, kind: Kind) -> bool:
    """Whether others report a state that has passed: that depends on how fast it went by."""
    return kind not in OURS and condition["status"] == "False"


def _type(condition: Any) -> str:
    return str(condition["type"])


def _are_conditions(items: list[Any]) -> bool:
    """Whether the order of the list means nothing."""
    return all(isinstance(each, dict) and {"type", "status"} <= each.keys() for each in items)
